//! Patterns of JSON and the texts that they capture. The language is described in `contract.txt`.

use serde_json::Value;
use std::collections::BTreeMap;

/// Captured texts by their names.
#[derive(Debug, Default)]
pub(super) struct Memory(BTreeMap<String, String>);

impl Memory {
    pub(super) fn keep(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), text.to_owned());
    }

    /// A text with `<name>` replaced.
    pub(super) fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
    }
}

/// Why a value does not match a pattern, if it does not.
pub(super) fn matches(pattern: &Value, value: &Value, memory: &mut Memory) -> Result<(), String> {
    match (pattern, value) {
        (Value::Object(pattern), Value::Object(object)) => {
            // Texts that are captured here may be used by the members beside it.
            let remembers = |pattern: &Value| pattern.as_str().is_some_and(|text| text.starts_with("$id="));
            let mut fields: Vec<_> = pattern.iter().filter(|(name, _)| *name != "…").collect();
            fields.sort_by_key(|(_, pattern)| !remembers(pattern));
            for (name, pattern) in fields {
                let value = object.get(name).ok_or_else(|| format!("there is no {name}"))?;
                matches(pattern, value, memory).map_err(|why| format!("{name}: {why}"))?;
            }
            let more = object.keys().find(|name| !pattern.contains_key(*name));
            match more {
                Some(name) if !pattern.contains_key("…") => Err(format!("there is a {name}")),
                _ => Ok(()),
            }
        }
        (Value::Array(pattern), Value::Array(array)) => {
            if pattern.len() != array.len() {
                return Err(format!("{} elements instead of {}", array.len(), pattern.len()));
            }
            let mut pairs = pattern.iter().zip(array).enumerate();
            pairs.try_for_each(|(place, (pattern, value))| {
                matches(pattern, value, memory).map_err(|why| format!("[{place}]: {why}"))
            })
        }
        (Value::String(pattern), value) => text_matches(pattern, value, memory),
        (pattern, value) if pattern == value => Ok(()),
        (pattern, value) => Err(format!("{value} instead of {pattern}")),
    }
}

fn text_matches(pattern: &str, value: &Value, memory: &mut Memory) -> Result<(), String> {
    let text = value.as_str();
    if let (Some(name), Some(text)) = (pattern.strip_prefix("$id="), text) {
        memory.keep(name, text);
        return Ok(());
    }
    let holds = match pattern {
        "$any" => true,
        "$text" => text.is_some(),
        "$number" => value.is_number(),
        "$bool" => value.is_boolean(),
        "$uuid" => text.is_some_and(is_uuid),
        "$time" => text.is_some_and(is_time),
        pattern => text == Some(&memory.filled(pattern)),
    };
    if holds { Ok(()) } else { Err(format!("{value} instead of {pattern}")) }
}

pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// RFC 3339, UTC, milliseconds.
pub(super) fn is_time(text: &str) -> bool {
    let shape = "0000-00-00T00:00:00.000Z";
    text.len() == shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(byte, shape)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape })
}
