//! The subset of JSON Schema for the answers of tasks (2020-12; why it is our own code: `docs/decisions/022`).
//!
//! Owns: which schemas are accepted, and whether a value fits one. Schema and answer are both hostile: a schema is checked
//! once, in time linear in its length, without compiling its patterns; these are compiled when an answer first needs them. The
//! validation of an answer has a budget, whatever the references are, and still takes too long for a thread of an async runtime.
//! An unknown keyword is an error of the program, never ignored. Must not: open or fetch anything that a schema refers to.

mod judge;
mod patterns;
#[cfg(test)]
mod tests;

use judge::{Judge, SchemaMismatch, ValuePath};
use patterns::{CompiledPattern, PatternCount};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::OnceLock;
use vm_system_protocol::input::not_json;

/// Deepest nesting of a schema, as in the parser.
const DEPTH: usize = 128;
/// Memory of a parsed schema per byte of its text, about.
const VALUE_BYTES: usize = 8;

/// A schema that was checked, with the patterns that answers have needed so far.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    patterns: HashMap<String, OnceLock<Option<CompiledPattern>>>,
    bytes: usize,
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "array", "object"];
/// Keywords without an effect on validity. `format` is one of them, as by default in the standard.
const NOTES: [&str; 13] = [
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "$comment",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];
const COUNTS: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];
const BOUNDS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
/// Keywords whose entries a reference may name, besides the whole schema.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

impl Schema {
    /// Checks that answers can be validated with the schema; on error the reason.
    pub fn check(schema: &Value) -> Result<(), String> {
        Check::of_schema(schema).map(drop)
    }

    /// A schema for validations; on error the reason why it cannot be used.
    pub fn new(text: &str) -> Result<Self, String> {
        let root: Value = serde_json::from_str(text).map_err(|error| not_json(&error))?;
        let Check { found, count, .. } = Check::of_schema(&root)?;
        let bytes = text.len().saturating_mul(VALUE_BYTES).saturating_add(count.compiled_bytes());
        Ok(Self {
            patterns: found.into_iter().map(|pattern| (pattern, OnceLock::new())).collect(),
            root,
            bytes,
        })
    }

    /// Memory that it takes with all of its patterns (bytes), about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks that a value fits; on error the position and the reason. Takes up to some tenths of a second.
    pub fn fits(&self, value: &Value) -> Result<(), String> {
        Judge::new(self).fits(&self.root, value, &ValuePath::Top, 0).map_err(SchemaMismatch::into_words)
    }

    /// Whether the schema says that a string is an answer. One that only does not exclude strings (`{"required": ["a"]}`) does
    /// not: there, text that is not JSON is a mistake.
    pub fn names_strings(&self) -> bool {
        names_strings(&self.root)
    }

    /// Whether the schema allows strings alone.
    pub fn is_for_strings(&self) -> bool {
        let only_strings =
            |values: &Value| values.as_array().is_some_and(|all| all.iter().all(Value::is_string));
        let kinds = &self.root["type"];
        kinds == "string"
            || kinds.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "string"))
            || self.root["const"].is_string()
            || only_strings(&self.root["enum"])
    }

    /// A compiled pattern of the schema. `None`: it does not compile, which its check excludes.
    fn pattern(&self, pattern: &str) -> Option<&CompiledPattern> {
        self.patterns.get(pattern)?.get_or_init(|| CompiledPattern::new(pattern).ok()).as_ref()
    }
}

fn names_strings(schema: &Value) -> bool {
    let is_string = |kind: &Value| kind == "string";
    let by_type = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is_string),
        kind => is_string(kind),
    };
    let choices = |name: &str| schema[name].as_array().into_iter().flatten();
    by_type
        || schema["const"].is_string()
        || choices("enum").any(Value::is_string)
        || choices("anyOf").chain(choices("oneOf")).any(names_strings)
}

/// The schema of the same document that a reference names.
fn referred<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let path = reference.strip_prefix('#')?;
    if path.is_empty() {
        return Some(root);
    }
    let (group, name) = path.strip_prefix('/')?.split_once('/')?;
    if !DEFINITIONS.contains(&group) || name.contains('/') {
        return None;
    }
    root.get(group)?.get(name.replace("~1", "/").replace("~0", "~"))
}

struct Check<'s> {
    root: &'s Value,
    count: PatternCount,
    found: Vec<String>,
}

impl<'s> Check<'s> {
    fn of_schema(schema: &'s Value) -> Result<Self, String> {
        let mut check = Self { root: schema, count: PatternCount::default(), found: Vec::new() };
        check.schema(schema, 0)?;
        Ok(check)
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return Err("a schema is an object".to_owned()),
        };
        for (name, value) in fields {
            let good = match name.as_str() {
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames" => {
                    self.schema(value, depth + 1)?;
                    true
                }
                "properties" | "patternProperties" | "$defs" | "definitions" => {
                    self.named(name, value, depth)?
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    for schema in value.as_array().into_iter().flatten() {
                        self.schema(schema, depth + 1)?;
                    }
                    value.as_array().is_some_and(|list| !list.is_empty())
                }
                "$ref" => match value.as_str() {
                    Some(reference) if referred(self.root, reference).is_some() => true,
                    Some(reference) => {
                        let reference: String = reference.chars().take(100).collect();
                        return Err(format!(
                            "the reference {reference:?} cannot be resolved: only \"#\" and \"#/$defs/NAME\" are supported"
                        ));
                    }
                    None => false,
                },
                "pattern" => {
                    self.pattern(value.as_str().unwrap_or_default())?;
                    value.is_string()
                }
                // A nested `$id` would change the meaning of references.
                "$id" if depth == 0 => value.is_string(),
                name => plain(name, value)?,
            };
            if !good {
                return Err(format!("{name:?} has an invalid value"));
            }
        }
        Ok(())
    }

    /// Schemas by name.
    fn named(&mut self, keyword: &str, value: &Value, depth: usize) -> Result<bool, String> {
        for (name, schema) in value.as_object().into_iter().flatten() {
            if keyword == "patternProperties" {
                self.pattern(name)?;
            }
            self.schema(schema, depth + 1)?;
        }
        Ok(value.is_object())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        if !self.found.iter().any(|known| known == pattern) {
            self.count.add(pattern)?;
            self.found.push(pattern.to_owned());
        }
        Ok(())
    }
}

/// A keyword that contains no schemas; an error if it is unknown.
fn plain(name: &str, value: &Value) -> Result<bool, String> {
    let texts = |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    Ok(match name {
        "type" => match value {
            Value::String(name) => TYPES.contains(&name.as_str()),
            Value::Array(names) => {
                !names.is_empty() && names.iter().all(|n| n.as_str().is_some_and(|n| TYPES.contains(&n)))
            }
            _ => false,
        },
        "enum" => value.is_array(),
        "const" => true,
        "required" => texts(value),
        "dependentRequired" => value.as_object().is_some_and(|names| names.values().all(texts)),
        "uniqueItems" => value.is_boolean(),
        name if COUNTS.contains(&name) => value.is_u64(),
        name if BOUNDS.contains(&name) => value.is_number(),
        name if NOTES.contains(&name) => true,
        other => {
            let other: String = other.chars().take(100).collect();
            return Err(format!("the keyword {other:?} is not supported"));
        }
    })
}

/// The strings of a list.
fn texts<'s>(fields: &'s Map<String, Value>, name: &str) -> impl Iterator<Item = &'s str> + use<'s> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
