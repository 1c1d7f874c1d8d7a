//! Validation: whether a value fits a checked schema.
//!
//! Owns: the budget, and the messages about mismatches. Everything costs fuel by what it takes; a value that exhausts it does not
//! fit, whatever the schema: references and alternatives can require unbounded work. A message is formatted only where it can be
//! the result, not for each alternative that does not fit.

use super::patterns::TooManyStates;
use super::{BOUNDS, Schema, referred, texts};
use regex_automata::hybrid::dfa::Cache;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Write as _;
use vm_system_protocol::counted::counted;

/// Budget of one answer: some tenths of a second. A list of a million numbers takes five million.
const FUEL: u64 = 8_000_000;
/// Fuel of one schema at one value, besides its keywords.
const SCHEMA_FUEL: usize = 4;
/// Bytes of a text for one unit of fuel: compared, and searched for a pattern.
const COMPARED_BYTES: usize = 64;
const SEARCHED_BYTES: usize = 16;
/// Fuel for a byte of the states that a pattern needs.
const STATES_FUEL: usize = 4;
/// Deepest nesting of schemas in schemas, references included: enough for values as deep as the parser accepts.
const DEPTH: usize = 512;
/// Longest part of a name or value that a message shows (characters).
const SHOWN: usize = 60;
/// Most values of a list that a message shows.
const SHOWN_VALUES: usize = 12;
/// Longest position and longest reason in a message (bytes).
pub(super) const PATH_BYTES: usize = 400;
const REASON_BYTES: usize = 1_000;

/// A value does not fit.
pub(super) enum SchemaMismatch {
    /// Position and reason; empty where it is only whether the value fits. Alternatives may still fit.
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
    schema: &'s Schema,
    fuel: u64,
    /// The states that each pattern has needed so far.
    states: HashMap<&'s str, Cache>,
    /// The alternatives that are being tried, one within the other: a mismatch is no error there.
    pub(super) alternatives: usize,
}

impl<'s> Judge<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self { schema, fuel: FUEL, states: HashMap::new(), alternatives: 0 }
    }

    #[cfg(test)]
    pub(super) fn spent(&self) -> u64 {
        FUEL - self.fuel
    }

    /// A mismatch; its message is formatted if it can be the result.
    fn wrong(&self, path: &ValuePath<'_>, reason: impl FnOnce() -> String) -> SchemaMismatch {
        if self.alternatives > 0 {
            return SchemaMismatch::Here(String::new());
        }
        let path = cut(path.to_string(), PATH_BYTES);
        SchemaMismatch::Here(format!("{path} {}", cut(reason(), REASON_BYTES)))
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
        self.spend(SCHEMA_FUEL)?;
        if depth > DEPTH {
            return Err(SchemaMismatch::TooMuch(
                "answer cannot be checked: its schema refers to itself without end",
            ));
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return Err(self.wrong(path, || "is not allowed".to_owned())),
            _ => return Ok(()),
        };
        self.spend(fields.len())?;
        self.kind(fields, value, path)?;
        self.sizes(fields, value, path)?;
        match value {
            Value::Object(object) => self.object(fields, object, path, depth)?,
            Value::Array(items) => self.array(fields, items, path, depth)?,
            _ => {}
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            self.spend(1 + reference.len() / SEARCHED_BYTES)?;
            let schema = referred(&self.schema.root, reference).unwrap_or(&Value::Bool(false));
            self.fits(schema, value, path, depth + 1)?;
        }
        self.combined(fields, value, path, depth)
    }

    /// Whether the value fits, where a mismatch is not an error.
    pub(super) fn would(
        &mut self,
        schema: &'s Value,
        value: &Value,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Result<bool, SchemaMismatch> {
        self.alternatives += 1;
        let fits = self.fits(schema, value, path, depth + 1);
        self.alternatives -= 1;
        match fits {
            Ok(()) => Ok(true),
            Err(SchemaMismatch::Here(_)) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// `type`, `enum`, `const`.
    fn kind(&mut self, fields: &'s Map<String, Value>, value: &Value, path: &ValuePath<'_>) -> Verdict {
        match fields.get("type") {
            Some(Value::String(name)) if !is_type(value, name) => {
                return Err(self.wrong(path, || format!("must be of type {name}")));
            }
            Some(Value::Array(names))
                if !names.iter().any(|n| n.as_str().is_some_and(|n| is_type(value, n))) =>
            {
                return Err(self.wrong(path, || format!("must be of one of the types {}", shown(names))));
            }
            _ => {}
        }
        if let Some(Value::Array(list)) = fields.get("enum") {
            let mut found = false;
            for one in list {
                found = found || self.same(one, value)?;
            }
            if !found {
                return Err(self.wrong(path, || format!("must be one of {}", shown(list))));
            }
        }
        match fields.get("const") {
            Some(one) if !self.same(one, value)? => {
                Err(self.wrong(path, || format!("must be {}", short(one))))
            }
            _ => Ok(()),
        }
    }

    /// Equality by value, numbers by their numeric value, as JSON Schema defines it.
    fn same(&mut self, a: &Value, b: &Value) -> Result<bool, SchemaMismatch> {
        self.spend(1)?;
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => Ok(a == b || a.as_f64() == b.as_f64()),
            (Value::String(a), Value::String(b)) => {
                self.spend(a.len().min(b.len()) / COMPARED_BYTES)?;
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
                    self.spend(name.len() / SEARCHED_BYTES)?;
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
                self.spend(text.len() / COMPARED_BYTES)?;
                self.count(fields, path, "characters", ["minLength", "maxLength"], text.chars().count())?;
                if let Some(pattern) = fields.get("pattern").and_then(Value::as_str)
                    && !self.matches(pattern, text)?
                {
                    return Err(self.wrong(path, || {
                        let pattern: String = pattern.chars().take(SHOWN).collect();
                        format!("does not match the pattern {pattern:?}")
                    }));
                }
                Ok(())
            }
            Value::Array(items) => self.count(fields, path, "items", ["minItems", "maxItems"], items.len()),
            Value::Object(object) => {
                self.count(fields, path, "properties", ["minProperties", "maxProperties"], object.len())
            }
            Value::Number(number) => match number.as_f64() {
                Some(number) => self.bounds(fields, path, number),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn matches(&mut self, pattern: &'s str, text: &str) -> Result<bool, SchemaMismatch> {
        self.spend(1 + text.len() / SEARCHED_BYTES)?;
        // The schema was checked: it compiles.
        let Some(compiled) = self.schema.pattern(pattern) else { return Ok(false) };
        let states = self.states.entry(pattern).or_insert_with(|| compiled.states());
        let before = states.memory_usage();
        let matches = compiled.matches(states, text);
        // New states take time in proportion to their size, and the others only a step for each byte.
        let grown = states.memory_usage().saturating_sub(before);
        self.spend(grown.saturating_mul(STATES_FUEL))?;
        matches.map_err(|TooManyStates| {
            SchemaMismatch::TooMuch(
                "answer takes too long to check: a pattern of its schema has too many states",
            )
        })
    }

    /// Finds out whether an object has a required property.
    fn has(&mut self, object: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> Verdict {
        self.spend(1 + name.len() / SEARCHED_BYTES)?;
        if object.contains_key(name) {
            return Ok(());
        }
        Err(self.wrong(path, || {
            let name: String = name.chars().take(SHOWN).collect();
            format!("lacks the property {name}")
        }))
    }

    fn object(
        &mut self,
        fields: &'s Map<String, Value>,
        object: &Map<String, Value>,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Verdict {
        for name in texts(fields, "required") {
            self.has(object, name, path)?;
        }
        if let Some(dependent) = fields.get("dependentRequired").and_then(Value::as_object) {
            for name in dependent.keys() {
                self.spend(1 + name.len() / SEARCHED_BYTES)?;
                if object.contains_key(name) {
                    for wanted in texts(dependent, name) {
                        self.has(object, wanted, path)?;
                    }
                }
            }
        }
        let known = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (name, part) in object {
            self.spend(1 + name.len() / SEARCHED_BYTES)?;
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
                return Err(self.wrong(path, || "lacks an item that matches `contains`".to_owned()));
            }
            self.count(fields, path, "items that match `contains`", ["minContains", "maxContains"], found)?;
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            for item in items {
                let mut text = String::new();
                canonical(item, &mut text);
                self.spend(1 + text.len() / 16)?;
                if !seen.insert(text) {
                    return Err(self.wrong(path, || "must not have the same item twice".to_owned()));
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
                return Err(self.wrong(path, || wrong.to_owned()));
            }
        }
        if let Some(schema) = fields.get("not")
            && self.would(schema, value, path, depth)?
        {
            return Err(self.wrong(path, || "fits the schema of `not`".to_owned()));
        }
        let Some(condition) = fields.get("if") else { return Ok(()) };
        let branch = if self.would(condition, value, path, depth)? { "then" } else { "else" };
        fields.get(branch).map_or(Ok(()), |schema| self.fits(schema, value, path, depth + 1))
    }

    fn count(
        &self,
        fields: &Map<String, Value>,
        path: &ValuePath<'_>,
        what: &str,
        [least, most]: [&str; 2],
        is: usize,
    ) -> Verdict {
        let limit = |name: &str| fields.get(name).and_then(Value::as_u64);
        if let Some(least) = limit(least).filter(|least| (is as u64) < *least) {
            return Err(self.wrong(path, || format!("must have at least {least} {what}")));
        }
        match limit(most).filter(|most| is as u64 > *most) {
            Some(most) => Err(self.wrong(path, || format!("must have at most {most} {what}"))),
            None => Ok(()),
        }
    }

    fn bounds(&self, fields: &Map<String, Value>, path: &ValuePath<'_>, number: f64) -> Verdict {
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
                return Err(self.wrong(path, || format!("does not fit {name} {bound}")));
            }
        }
        Ok(())
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

/// A text, shortened to about so many bytes.
fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    text
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
        Value::Object(fields) => format!("{{… {}}}", counted(fields.len(), "property")),
        scalar => scalar.to_string(),
    }
}
