//! Validation: whether a value fits a checked schema.
//!
//! Owns: the budget, and the messages about mismatches. Every comparison costs fuel; a value that exhausts it does not fit,
//! whatever the schema: references and alternatives can require unbounded work.

use super::{BOUNDS, patterns, referred, texts};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Write as _;

/// Comparisons for one answer: about 0.1 s. A list of a million numbers takes two million.
const FUEL: u64 = 4_000_000;
/// Deepest nesting of schemas in schemas, references included: enough for values as deep as the parser accepts.
const DEPTH: usize = 512;
/// Longest part of a name or value that a message shows (characters).
const SHOWN: usize = 60;
/// Most values of a list that a message shows.
const SHOWN_VALUES: usize = 12;

/// A value does not fit.
pub(super) enum SchemaMismatch {
    /// Position and reason. Alternatives may still fit.
    Here(String),
    /// The budget is exhausted: the result is unknown.
    TooMuch(&'static str),
}

impl SchemaMismatch {
    pub(super) fn into_words(self) -> String {
        match self {
            Self::Here(words) => words,
            Self::TooMuch(words) => words.to_owned(),
        }
    }
}

type Verdict = Result<(), SchemaMismatch>;

/// Position in the answer.
pub(super) enum ValuePath<'a> {
    Top,
    Key(&'a ValuePath<'a>, &'a str),
    Item(&'a ValuePath<'a>, usize),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str("answer"),
            Self::Key(parent, name) => {
                write!(f, "{parent}.")?;
                name.chars().take(SHOWN).try_for_each(|char| f.write_char(char))
            }
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Validation of one answer against its schema.
pub(super) struct Judge<'s> {
    root: &'s Value,
    fuel: u64,
    patterns: HashMap<&'s str, Option<Regex>>,
}

impl<'s> Judge<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root, fuel: FUEL, patterns: HashMap::new() }
    }

    fn spend(&mut self, cost: usize) -> Verdict {
        match self.fuel.checked_sub(cost as u64) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => {
                Err(SchemaMismatch::TooMuch("answer takes too long to check: it is too large for its schema"))
            }
        }
    }

    pub(super) fn fits(
        &mut self,
        schema: &'s Value,
        value: &Value,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Verdict {
        self.spend(1)?;
        if depth > DEPTH {
            return Err(SchemaMismatch::TooMuch(
                "answer cannot be checked: its schema refers to itself without end",
            ));
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return Err(SchemaMismatch::Here(format!("{path} is not allowed"))),
            _ => return Ok(()),
        };
        self.kind(fields, value, path)?;
        self.sizes(fields, value, path)?;
        match value {
            Value::Object(object) => self.object(fields, object, path, depth)?,
            Value::Array(items) => self.array(fields, items, path, depth)?,
            _ => {}
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let schema = referred(self.root, reference).unwrap_or(&Value::Bool(false));
            self.fits(schema, value, path, depth + 1)?;
        }
        self.combined(fields, value, path, depth)
    }

    /// Whether the value fits, where a mismatch is not an error.
    fn would(
        &mut self,
        schema: &'s Value,
        value: &Value,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Result<bool, SchemaMismatch> {
        match self.fits(schema, value, path, depth + 1) {
            Ok(()) => Ok(true),
            Err(SchemaMismatch::Here(_)) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// `type`, `enum`, `const`.
    fn kind(&mut self, fields: &'s Map<String, Value>, value: &Value, path: &ValuePath<'_>) -> Verdict {
        let wrong = |what: String| Err(SchemaMismatch::Here(format!("{path} {what}")));
        match fields.get("type") {
            Some(Value::String(name)) if !is_type(value, name) => {
                return wrong(format!("must be of type {name}"));
            }
            Some(Value::Array(names))
                if !names.iter().any(|n| n.as_str().is_some_and(|n| is_type(value, n))) =>
            {
                return wrong(format!("must be of one of the types {}", shown(names)));
            }
            _ => {}
        }
        if let Some(Value::Array(list)) = fields.get("enum") {
            let mut found = false;
            for one in list {
                found = found || self.same(one, value)?;
            }
            if !found {
                return wrong(format!("must be one of {}", shown(list)));
            }
        }
        match fields.get("const") {
            Some(one) if !self.same(one, value)? => wrong(format!("must be {}", short(one))),
            _ => Ok(()),
        }
    }

    /// Equality by value, numbers by their numeric value, as JSON Schema defines it.
    fn same(&mut self, a: &Value, b: &Value) -> Result<bool, SchemaMismatch> {
        self.spend(1)?;
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => Ok(a == b || a.as_f64() == b.as_f64()),
            (Value::String(a), Value::String(b)) => {
                self.spend(a.len().min(b.len()) / 64)?;
                Ok(a == b)
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (a, b) in a.iter().zip(b) {
                    if !self.same(a, b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
                for (name, a) in a {
                    match b.get(name) {
                        Some(b) if self.same(a, b)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            (a, b) => Ok(a == b),
        }
    }

    /// Counts, bounds and patterns.
    fn sizes(&mut self, fields: &'s Map<String, Value>, value: &Value, path: &ValuePath<'_>) -> Verdict {
        match value {
            Value::String(text) => {
                self.spend(text.len() / 64)?;
                count(fields, path, "characters", ["minLength", "maxLength"], text.chars().count())?;
                if let Some(pattern) = fields.get("pattern").and_then(Value::as_str)
                    && !self.matches(pattern, text)?
                {
                    let pattern: String = pattern.chars().take(SHOWN).collect();
                    return Err(SchemaMismatch::Here(format!(
                        "{path} does not match the pattern {pattern:?}"
                    )));
                }
                Ok(())
            }
            Value::Array(items) => count(fields, path, "items", ["minItems", "maxItems"], items.len()),
            Value::Object(object) => {
                count(fields, path, "properties", ["minProperties", "maxProperties"], object.len())
            }
            Value::Number(number) => match number.as_f64() {
                Some(number) => bounds(fields, path, number),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn matches(&mut self, pattern: &'s str, text: &str) -> Result<bool, SchemaMismatch> {
        self.spend(1 + text.len() * (1 + pattern.len() / 8) / 8)?;
        let compiled = self.patterns.entry(pattern).or_insert_with(|| patterns::compile(pattern).ok());
        // The pattern was compiled when the schema was checked.
        Ok(compiled.as_ref().is_some_and(|pattern| pattern.is_match(text)))
    }

    fn object(
        &mut self,
        fields: &'s Map<String, Value>,
        object: &Map<String, Value>,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Verdict {
        let lacks = |name: &str| {
            let name: String = name.chars().take(SHOWN).collect();
            SchemaMismatch::Here(format!("{path} lacks the property {name}"))
        };
        for name in texts(fields, "required") {
            self.spend(1)?;
            if !object.contains_key(name) {
                return Err(lacks(name));
            }
        }
        if let Some(dependent) = fields.get("dependentRequired").and_then(Value::as_object) {
            for name in dependent.keys().filter(|name| object.contains_key(*name)) {
                for wanted in texts(dependent, name) {
                    self.spend(1)?;
                    if !object.contains_key(wanted) {
                        return Err(lacks(wanted));
                    }
                }
            }
        }
        let known = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (name, part) in object {
            let inner = ValuePath::Key(path, name);
            if let Some(schema) = fields.get("propertyNames") {
                self.fits(schema, &Value::from(name.as_str()), &inner, depth + 1)?;
            }
            let mut matched = false;
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                matched = true;
                self.fits(schema, part, &inner, depth + 1)?;
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.matches(pattern, name)? {
                    matched = true;
                    self.fits(schema, part, &inner, depth + 1)?;
                }
            }
            if let Some(schema) = fields.get("additionalProperties").filter(|_| !matched) {
                self.fits(schema, part, &inner, depth + 1)?;
            }
        }
        Ok(())
    }

    fn array(
        &mut self,
        fields: &'s Map<String, Value>,
        items: &[Value],
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Verdict {
        let first =
            fields.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| fields.get("items")) {
                self.fits(schema, item, &ValuePath::Item(path, index), depth + 1)?;
            }
        }
        if let Some(schema) = fields.get("contains") {
            let mut found = 0;
            for (index, item) in items.iter().enumerate() {
                found += usize::from(self.would(schema, item, &ValuePath::Item(path, index), depth)?);
            }
            if fields.get("minContains").is_none() && found == 0 {
                return Err(SchemaMismatch::Here(format!("{path} lacks an item that matches `contains`")));
            }
            count(fields, path, "items that match `contains`", ["minContains", "maxContains"], found)?;
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            for item in items {
                let mut text = String::new();
                canonical(item, &mut text);
                self.spend(1 + text.len() / 16)?;
                if !seen.insert(text) {
                    return Err(SchemaMismatch::Here(format!("{path} must not have the same item twice")));
                }
            }
        }
        Ok(())
    }

    fn combined(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &Value,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Verdict {
        let list = |name: &str| fields.get(name).and_then(Value::as_array);
        for schema in list("allOf").into_iter().flatten() {
            self.fits(schema, value, path, depth + 1)?;
        }
        for (name, wrong) in [
            ("anyOf", "fits none of the alternatives"),
            ("oneOf", "must fit exactly one of the alternatives"),
        ] {
            let Some(schemas) = list(name) else { continue };
            let mut fitting = 0;
            for schema in schemas {
                fitting += usize::from(self.would(schema, value, path, depth)?);
            }
            if fitting == 0 || (name == "oneOf" && fitting > 1) {
                return Err(SchemaMismatch::Here(format!("{path} {wrong}")));
            }
        }
        if let Some(schema) = fields.get("not")
            && self.would(schema, value, path, depth)?
        {
            return Err(SchemaMismatch::Here(format!("{path} fits the schema of `not`")));
        }
        let Some(condition) = fields.get("if") else { return Ok(()) };
        let branch = if self.would(condition, value, path, depth)? { "then" } else { "else" };
        fields.get(branch).map_or(Ok(()), |schema| self.fits(schema, value, path, depth + 1))
    }
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

fn count(
    fields: &Map<String, Value>,
    path: &ValuePath<'_>,
    what: &str,
    [least, most]: [&str; 2],
    is: usize,
) -> Verdict {
    let limit = |name: &str| fields.get(name).and_then(Value::as_u64);
    if let Some(least) = limit(least).filter(|least| (is as u64) < *least) {
        return Err(SchemaMismatch::Here(format!("{path} must have at least {least} {what}")));
    }
    match limit(most).filter(|most| is as u64 > *most) {
        Some(most) => Err(SchemaMismatch::Here(format!("{path} must have at most {most} {what}"))),
        None => Ok(()),
    }
}

fn bounds(fields: &Map<String, Value>, path: &ValuePath<'_>, number: f64) -> Verdict {
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
            return Err(SchemaMismatch::Here(format!("{path} does not fit {name} {bound}")));
        }
    }
    Ok(())
}

/// A text that is the same for equal values: names in order, numbers by their numeric value.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => match number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15) {
            // Below 2^53 every such number is a whole one. Writing to a String cannot fail.
            Some(whole) => {
                let _ = write!(out, "{}", whole as i64);
            }
            None => {
                let _ = write!(out, "{number}");
            }
        },
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            out.push('{');
            for name in names {
                let _ = write!(out, "{name:?}:");
                canonical(&fields[name], out);
                out.push(',');
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// The first values of a list.
fn shown(values: &[Value]) -> String {
    let mut parts: Vec<String> = values.iter().take(SHOWN_VALUES).map(short).collect();
    if values.len() > SHOWN_VALUES {
        parts.push(format!("… ({} in all)", values.len()));
    }
    format!("[{}]", parts.join(","))
}

/// A value, shortened to fit a line.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().nth(SHOWN).is_some() => {
            let text: String = text.chars().take(SHOWN).collect();
            format!("{}…", Value::from(text))
        }
        Value::Array(items) if items.len() > 3 => format!("[… {} items]", items.len()),
        Value::Array(items) => shown(items),
        Value::Object(fields) => format!("{{… {} properties}}", fields.len()),
        scalar => scalar.to_string(),
    }
}
