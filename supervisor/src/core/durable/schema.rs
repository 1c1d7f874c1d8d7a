//! JSON Schema as far as questions need it, in time proportional to schema and answer: no references, no patterns.
//! Keywords that say nothing about validity are allowed; one that is not known here is an error of the program.

use serde_json::{Map, Value};

/// Deepest nesting of a schema that is followed; the parser allows no more either.
const DEPTH: usize = 128;

/// A schema.
#[derive(Debug)]
pub struct Schema;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "array", "object"];
const NOTES: [&str; 9] =
    ["title", "description", "default", "examples", "$schema", "$id", "$comment", "format", "deprecated"];
const COUNTS: [&str; 6] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
const BOUNDS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

impl Schema {
    /// Whether this is a schema that can be checked; in words why not.
    pub fn check(schema: &Value) -> Result<(), String> {
        check(schema, 0)
    }

    /// Whether a value fits a schema that passed [`Schema::check`]; in words where and why not.
    pub fn fits(schema: &Value, value: &Value) -> Result<(), String> {
        fits(schema, value, "answer", 0)
    }
}

fn check(schema: &Value, depth: usize) -> Result<(), String> {
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
            "type" => match value {
                Value::String(name) => TYPES.contains(&name.as_str()),
                Value::Array(names) => {
                    !names.is_empty() && names.iter().all(|n| n.as_str().is_some_and(|n| TYPES.contains(&n)))
                }
                _ => false,
            },
            "enum" => value.is_array(),
            "const" => true,
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "properties" => {
                for schema in value.as_object().into_iter().flat_map(Map::values) {
                    check(schema, depth + 1)?;
                }
                value.is_object()
            }
            "items" | "additionalProperties" | "not" => {
                check(value, depth + 1)?;
                true
            }
            "anyOf" | "oneOf" | "allOf" => {
                for schema in value.as_array().into_iter().flatten() {
                    check(schema, depth + 1)?;
                }
                value.as_array().is_some_and(|list| !list.is_empty())
            }
            "uniqueItems" => value.is_boolean(),
            name if COUNTS.contains(&name) => value.is_u64(),
            name if BOUNDS.contains(&name) => value.is_number(),
            name if NOTES.contains(&name) => true,
            other => return Err(format!("the keyword {other:?} is not supported")),
        };
        if !good {
            return Err(format!("{name:?} has a value that it cannot have"));
        }
    }
    Ok(())
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Numbers are equal by value, as JSON Schema has it.
fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

fn fits(schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
    let fields = match schema {
        Value::Object(fields) if depth <= DEPTH => fields,
        Value::Bool(false) => return Err(format!("{place} must not be there")),
        _ => return Ok(()),
    };
    let wrong = |what: String| Err(format!("{place} {what}"));
    match fields.get("type") {
        Some(Value::String(name)) if !is_type(value, name) => {
            return wrong(format!("must be of type {name}"));
        }
        Some(Value::Array(names)) if !names.iter().any(|n| n.as_str().is_some_and(|n| is_type(value, n))) => {
            return wrong(format!("must be of one of the types {}", schema["type"]));
        }
        _ => {}
    }
    if let Some(Value::Array(list)) = fields.get("enum")
        && !list.iter().any(|one| same(one, value))
    {
        return wrong(format!("must be one of {}", fields["enum"]));
    }
    if let Some(one) = fields.get("const")
        && !same(one, value)
    {
        return wrong(format!("must be {one}"));
    }
    sizes(fields, value).or_else(wrong)?;
    parts(fields, value, place, depth)?;
    combined(fields, value, place, depth)
}

/// Counts and bounds.
fn sizes(fields: &Map<String, Value>, value: &Value) -> Result<(), String> {
    let limit = |name: &str| fields.get(name).and_then(Value::as_u64);
    let count = |what: &str, least: &str, most: &str, is: u64| {
        if let Some(least) = limit(least).filter(|least| is < *least) {
            return Err(format!("must have at least {least} {what}"));
        }
        if let Some(most) = limit(most).filter(|most| is > *most) {
            return Err(format!("must have at most {most} {what}"));
        }
        Ok(())
    };
    match value {
        Value::String(text) => count("characters", "minLength", "maxLength", text.chars().count() as u64)?,
        Value::Array(items) => {
            count("items", "minItems", "maxItems", items.len() as u64)?;
            if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
                let mut seen = std::collections::HashSet::new();
                if !items.iter().all(|item| seen.insert(item.to_string())) {
                    return Err("must not have an item twice".to_owned());
                }
            }
        }
        Value::Object(fields) => {
            count("properties", "minProperties", "maxProperties", fields.len() as u64)?;
        }
        _ => {}
    }
    let Some(number) = value.as_f64() else { return Ok(()) };
    for name in BOUNDS {
        let Some(bound) = fields.get(name).and_then(Value::as_f64) else { continue };
        let good = match name {
            "minimum" => number >= bound,
            "maximum" => number <= bound,
            "exclusiveMinimum" => number > bound,
            "exclusiveMaximum" => number < bound,
            _ => bound == 0.0 || (number / bound).fract() == 0.0,
        };
        if !good {
            return Err(format!("does not fit {name} {bound}"));
        }
    }
    Ok(())
}

/// Properties and items.
fn parts(fields: &Map<String, Value>, value: &Value, place: &str, depth: usize) -> Result<(), String> {
    match value {
        Value::Object(object) => {
            for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
                if name.as_str().is_some_and(|name| !object.contains_key(name)) {
                    return Err(format!("{place} lacks the property {name}"));
                }
            }
            let known = fields.get("properties").and_then(Value::as_object);
            for (name, part) in object {
                let schema = known.and_then(|known| known.get(name)).or(fields.get("additionalProperties"));
                if let Some(schema) = schema {
                    fits(schema, part, &format!("{place}.{name}"), depth + 1)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = fields.get("items") {
                for (index, item) in items.iter().enumerate() {
                    fits(schema, item, &format!("{place}[{index}]"), depth + 1)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn combined(fields: &Map<String, Value>, value: &Value, place: &str, depth: usize) -> Result<(), String> {
    let list = |name: &str| fields.get(name).and_then(Value::as_array);
    for schema in list("allOf").into_iter().flatten() {
        fits(schema, value, place, depth + 1)?;
    }
    let matching = |schemas: &Vec<Value>| {
        schemas.iter().filter(|schema| fits(schema, value, place, depth + 1).is_ok()).count()
    };
    if list("anyOf").is_some_and(|schemas| matching(schemas) == 0) {
        return Err(format!("{place} fits none of the alternatives"));
    }
    if list("oneOf").is_some_and(|schemas| matching(schemas) != 1) {
        return Err(format!("{place} must fit exactly one of the alternatives"));
    }
    match fields.get("not") {
        Some(schema) if fits(schema, value, place, depth + 1).is_ok() => {
            Err(format!("{place} is what it must not be"))
        }
        _ => Ok(()),
    }
}
