//! Owns errors as text: header, stack, cause, and the errors of an `AggregateError`.

use crate::format::{Formatter, ObjectFacts, ObjectFormat, prefix};
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
        let stack = stack.map_or_else(|| header.clone(), |stack| self.with_header(stack, &header, raw));
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
            None => improve(stack, raw, self.name(raw).as_deref()),
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

    /// The error's `name`; none behind an accessor.
    fn name(&self, raw: &ObjectFacts<E::Value>) -> Option<String> {
        let Some(name) = self.engine.inherited_data(&raw.object, "name") else {
            return raw.constructor.is_none().then(|| "Error".to_owned());
        };
        Some(match self.engine.value_type(&name) {
            ValueType::String => self.engine.string(&name),
            ValueType::Undefined | ValueType::Null | ValueType::Object | ValueType::Symbol => {
                "Error".to_owned()
            }
            _ => self.engine.primitive(&name),
        })
    }

    /// The stack with the name and message that the error has now: to Node they are those of the time when the stack is read first. Not
    /// one that the script has made: it is an enumerable property, or does not begin with the name of the error's class.
    fn with_header(&self, stack: String, header: &str, raw: &ObjectFacts<E::Value>) -> String {
        let own = self.engine.key("stack").and_then(|key| self.engine.own(&raw.object, &key).ok().flatten());
        let is_made_by_script = own.is_some_and(|own| own.enumerable);
        let is_current =
            stack.strip_prefix(header).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'));
        if is_made_by_script || is_current || raw.kind != ObjectClass::Error {
            return stack;
        }
        let class = self.engine.prototype(&raw.object);
        let made_with = match class.map(|class| self.engine.inherited_data(&class, "name")) {
            None => stack.split([':', '\n']).next().unwrap_or_default().to_owned(),
            Some(name) => name
                .filter(|name| self.engine.is_string(name))
                .map_or_else(|| "Error".to_owned(), |name| self.engine.string(&name)),
        };
        let frames = stack.find("\n    at ").unwrap_or(stack.len());
        match stack[..frames].strip_prefix(made_with.as_str()) {
            Some(message) if message.is_empty() || message.starts_with(": ") => {
                format!("{header}{}", &stack[frames..])
            }
            _ => stack,
        }
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

/// Adds the class of the error to the first line of the stack if it is missing there, as Node's `improveStack`. Behind an accessor the
/// name is taken for the class.
fn improve<V>(stack: String, raw: &ObjectFacts<V>, name: Option<&str>) -> String {
    let is_end = |text: &str| text.is_empty() || text.starts_with([':', '\n']);
    let Some(class) = &raw.constructor else {
        // A name of letters, as in Node's two patterns.
        let first = stack.split([':', '\n']).next().unwrap_or_default();
        let is_name = first.starts_with(|first: char| first.is_ascii_uppercase())
            && first.len() < stack.len()
            || first.ends_with("Error") && first.len() == stack.len();
        let named = if is_name { first } else { "" };
        let prefix = prefix(raw, if named.is_empty() { "Error" } else { named }, "");
        let separator = if named.is_empty() { ": " } else { "" };
        return format!("{}{separator}{}", prefix.trim_end(), &stack[named.len()..]);
    };
    let shown = name.unwrap_or_else(|| stack.split([':', '\n']).next().unwrap_or_default());
    let Some(rest) = stack.strip_prefix(shown).filter(|rest| shown.ends_with("Error") && is_end(rest)) else {
        return stack;
    };
    let prefix = prefix(raw, class, "");
    let prefix = prefix.trim_end();
    match name {
        Some(name) if !prefix.contains(name) => format!("{prefix} [{name}]{rest}"),
        _ => format!("{prefix}{rest}"),
    }
}
