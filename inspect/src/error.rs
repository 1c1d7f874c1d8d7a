//! Owns errors as text: header, stack, cause, and the errors of an `AggregateError`.

use crate::format::{Formatter, ObjectFacts, ObjectFormat};
use crate::values::{EngineValues, ObjectClass, ValueType};

/// `TypeError: message` from plain data; `Error` if the name is behind an accessor.
pub fn error_header<E: EngineValues>(engine: &E, error: &E::Value) -> String {
    let text = |key: &str| {
        let value = engine.inherited_data(error, key)?;
        match engine.value_type(&value) {
            ValueType::String => Some(engine.string(&value)),
            ValueType::Undefined | ValueType::Object | ValueType::Symbol => None,
            _ => Some(engine.primitive(&value)),
        }
    };
    let (name, message) = engine.dom_exception(error).unwrap_or_else(|| {
        (text("name").unwrap_or_else(|| "Error".to_owned()), text("message").unwrap_or_default())
    });
    match (name.is_empty(), message.is_empty()) {
        (_, true) => name,
        (true, _) => message,
        _ => format!("{name}: {message}"),
    }
}

impl<E: EngineValues> Formatter<'_, E> {
    pub(super) fn error_shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
        let mut keys = self.keys(&raw.object);
        let header = error_header(self.engine, &raw.object);
        let stack = self.engine.error_stack(&raw.object).filter(|stack| !stack.is_empty());
        let stack = stack.unwrap_or_else(|| header.clone());
        keys.retain(|key| !self.repeats_stack(&raw.object, key, &stack));
        for hidden in ["cause", "errors"] {
            let shown = keys.iter().any(|key| self.engine.key_text(key).is_some_and(|key| key == hidden));
            if !shown
                && let Some(value) = self.engine.own_data(&raw.object, hidden)
                && (hidden == "cause"
                    || self.engine.is_object(&value) && self.engine.class(&value) == ObjectClass::Array)
                && let Some(key) = self.engine.key(hidden)
            {
                keys.push(key);
            }
        }
        let mut base = match self.engine.dom_exception(&raw.object) {
            // As Node shows it: the class, with the name in brackets.
            Some((name, message)) if message.is_empty() => {
                stack.replacen(&header, &format!("DOMException [{name}]"), 1)
            }
            Some((name, message)) => stack.replacen(&header, &format!("DOMException [{name}]: {message}"), 1),
            None => improve(stack, raw),
        };
        let message = self.engine.inherited_data(&raw.object, "message");
        let message = message.filter(|message| self.engine.is_string(message));
        let message = message.map(|message| self.engine.string(&message)).unwrap_or_default();
        let after =
            if message.is_empty() { 0 } else { base.find(&message).map_or(0, |at| at + message.len()) };
        if !base[after..].contains("\n    at") {
            base = format!("[{base}]");
        }
        if self.indentation != 0 {
            let line = format!("\n{}", " ".repeat(self.indentation));
            base = base.replace('\n', &line);
        }
        ObjectFormat::with_base(base, keys)
    }

    /// Whether this is an own `name`, `message` or `stack` of the error that its stack text already contains.
    fn repeats_stack(&self, error: &E::Value, key: &E::Key, stack: &str) -> bool {
        let Some(name) = self.engine.key_text(key) else { return false };
        if !["name", "message", "stack"].contains(&name.as_str()) {
            return false;
        }
        match self.engine.own_data(error, &name).filter(|text| self.engine.is_string(text)) {
            Some(text) => self.engine.string_units(&text) == 0 || stack.contains(&self.engine.string(&text)),
            None => false,
        }
    }
}

/// Adds the class of the error to the first line of the stack if it is missing there.
fn improve<V>(stack: String, raw: &ObjectFacts<V>) -> String {
    let first = stack.split('\n').next().unwrap_or_default();
    let named = first.split(':').next().unwrap_or_default();
    let name = raw.constructor.clone().unwrap_or_else(|| {
        let fallback = if named.ends_with("Error") { named } else { "Error" };
        format!("[{fallback}: null prototype]")
    });
    if !name.is_empty() && name != "Error" && !first.contains(name.as_str()) {
        if raw.constructor.is_none() {
            return format!("{name} {}", &stack[named.len()..].trim_start_matches(": "));
        }
        if named.ends_with("Error") && named.chars().all(|character| character.is_ascii_alphanumeric()) {
            return format!("{name}{}", &stack[named.len()..]);
        }
    }
    stack
}
