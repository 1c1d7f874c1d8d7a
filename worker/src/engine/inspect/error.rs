//! Owns errors as text: header, stack, cause, and the errors of an `AggregateError`.

use super::Inspector;
use super::classify::ObjectClass;
use super::format::{Formatter, Members, ObjectFacts, ObjectFormat};
use crate::engine::sys;
use rquickjs::{Object, Value};

impl<'js> Inspector<'js> {
    /// `TypeError: message` from plain data; `Error` if the name is behind an accessor.
    pub(in crate::engine) fn error_header(&self, error: &Object<'js>) -> String {
        let is_dom = self.is_dom_exception(error);
        let text = |key: &str| {
            let value = match key {
                "name" if is_dom => self.call("domExceptionName", error.as_value())?,
                "message" if is_dom => self.call("domExceptionMessage", error.as_value())?,
                _ => self.inherited_data(error, key)?,
            };
            match value.as_string() {
                Some(text) => Some(self.string(text)),
                None if value.is_undefined() || value.is_object() || value.is_symbol() => None,
                None => Some(self.primitive(&value)),
            }
        };
        let name = text("name").unwrap_or_else(|| "Error".to_owned());
        let message = text("message").unwrap_or_default();
        match (name.is_empty(), message.is_empty()) {
            (_, true) => name,
            (true, _) => message,
            _ => format!("{name}: {message}"),
        }
    }

    /// Whether the object is a `DOMException`, whose name and message are accessors.
    pub(in crate::engine) fn is_dom_exception(&self, object: &Object<'js>) -> bool {
        self.classes.kind(object) == ObjectClass::DomException
    }

    /// The text of `stack`: an own property that the script set, or the stack that the engine recorded.
    pub(in crate::engine) fn error_stack(&self, error: &Object<'js>) -> Option<String> {
        let stack = match self.own_data(error, "stack") {
            Some(stack) => Some(stack),
            None => self.call::<Value>("errorStack", error.as_value()),
        };
        stack.and_then(Value::into_string).map(|stack| self.string(&stack))
    }
}

impl<'js> Formatter<'_, 'js> {
    pub(super) fn error_shape(&mut self, raw: &ObjectFacts<'js>, level: usize) -> ObjectFormat<'js> {
        let mut keys = self.keys(&raw.object);
        let header = self.inspector.error_header(&raw.object);
        let stack = self
            .inspector
            .error_stack(&raw.object)
            .filter(|stack| !stack.is_empty())
            .unwrap_or_else(|| header.clone());
        keys.retain(|key| !self.repeats_stack(&raw.object, key, &stack));
        for hidden in ["cause", "errors"] {
            let shown = keys.iter().any(|key| self.inspector.key_text(key).is_some_and(|key| key == hidden));
            if !shown
                && let Some(value) = self.inspector.own_data(&raw.object, hidden)
                && (hidden == "cause" || value.is_array())
                && let Some(key) = self.inspector.key(hidden)
            {
                keys.push(key);
            }
        }
        let mut base = match self.inspector.is_dom_exception(&raw.object).then(|| header.split_once(": ")) {
            // As Node shows it: the class, with the name in brackets.
            Some(Some((name, message))) => {
                stack.replacen(&header, &format!("DOMException [{name}]: {message}"), 1)
            }
            Some(None) => stack.replacen(&header, &format!("DOMException [{header}]"), 1),
            None => improve(stack, raw),
        };
        let message = self.inspector.inherited_data(&raw.object, "message").and_then(Value::into_string);
        let message = message.map(|message| self.inspector.string(&message)).unwrap_or_default();
        let after =
            if message.is_empty() { 0 } else { base.find(&message).map_or(0, |at| at + message.len()) };
        if !base[after..].contains("\n    at") {
            base = format!("[{base}]");
        }
        if self.indentation != 0 {
            let line = format!("\n{}", " ".repeat(self.indentation));
            base = base.replace('\n', &line);
        }
        let _ = level;
        let alone = keys.is_empty().then(|| base.clone());
        ObjectFormat {
            base,
            open: "{".to_owned(),
            close: "}",
            keys,
            members: Members::None,
            list: false,
            alone,
        }
    }

    /// Whether this is an own `name`, `message` or `stack` of the error that its stack text already contains.
    fn repeats_stack(&self, error: &Object<'js>, key: &Value<'js>, stack: &str) -> bool {
        let Some(name) = self.inspector.key_text(key) else { return false };
        if !["name", "message", "stack"].contains(&name.as_str()) {
            return false;
        }
        match self.inspector.own_data(error, &name).and_then(Value::into_string) {
            Some(text) => sys::string_units(&text) == 0 || stack.contains(&self.inspector.string(&text)),
            None => false,
        }
    }
}

/// Adds the class of the error to the first line of the stack if it is missing there.
fn improve(stack: String, raw: &ObjectFacts<'_>) -> String {
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
