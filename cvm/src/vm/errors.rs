//! Creation of the engine's own exceptions, and stacks as text.
//!
//! Owns: error objects and messages. Must not: throw by itself; callers return the created errors.

use super::{Raise, Vm};
use crate::builtins::ids;
use crate::heap::object::{Code, ObjectKind, Prop, attr};
use crate::program::{SourcePosition, USER_TEMPLATES};
use crate::value::{Id, Value};

/// Frames shown in a stack.
const SHOWN_FRAMES: usize = 12;

impl Vm<'_> {
    /// A new error object with message and stack.
    pub(crate) fn make_error(&mut self, proto: Id, message: &str) -> Value {
        let id = self.st.heap.new_object(proto, ObjectKind::Error);
        let text = self.st.heap.str_value(message);
        self.st.heap.obj_mut(id).props.push(Prop {
            key: ids::key(ids::MESSAGE),
            flags: attr::HIDDEN,
            value: text,
        });
        self.st.heap.charge(24);
        self.capture_stack(id);
        Value::Obj(id)
    }

    /// Sets an error's stack text; the first line has the present name and message.
    pub(crate) fn capture_stack(&mut self, id: Id) {
        let head = self.error_head(id);
        let text = format!("{head}{}", self.stack_text());
        let value = self.st.heap.str_value(&text);
        self.st.heap.obj_mut(id).props.push(Prop { key: ids::key(ids::ERROR_DATA), flags: attr::W, value });
        self.st.heap.charge(24);
    }

    /// The stack text of an error: the program's `stack` property, or the captured text.
    pub(crate) fn stack_of(&self, id: Id) -> Option<Id> {
        [ids::STACK, ids::ERROR_DATA].into_iter().find_map(|name| match self.own_data(id, name) {
            Some(Value::Str(text)) => Some(text),
            _ => None,
        })
    }

    /// The value of an own data property.
    pub(crate) fn own_data(&self, id: Id, name: Id) -> Option<Value> {
        let found = self.st.heap.obj(id).props.get(ids::key(name))?;
        (found.flags & attr::ACCESSOR == 0).then_some(found.value)
    }

    /// `Name: message` of an error, reading only plain data properties.
    pub(crate) fn error_head(&mut self, id: Id) -> String {
        let name = match self.get(id, ids::key(ids::NAME)) {
            super::props::PropertyRead::Value(v @ Value::Str(_)) => self.plain_text(v),
            _ => "Error".to_owned(),
        };
        let message = match self.get(id, ids::key(ids::MESSAGE)) {
            super::props::PropertyRead::Value(v @ Value::Str(_)) => self.plain_text(v),
            _ => String::new(),
        };
        match (name.is_empty(), message.is_empty()) {
            (_, true) => name,
            (true, false) => message,
            _ => format!("{name}: {message}"),
        }
    }

    /// The calls in progress, innermost first, each with its source position.
    pub(crate) fn stack_text(&self) -> String {
        let mut text = String::new();
        let frames = self.st.frames.iter().rev();
        for frame in frames.take(SHOWN_FRAMES) {
            let template = self.p.template(frame.template);
            let name = self.template_name(frame.template);
            if frame.template < USER_TEMPLATES {
                if !name.is_empty() && !name.starts_with(char::is_uppercase) {
                    text.push_str(&format!("\n    at {name} (native)"));
                }
                continue;
            }
            let offset = template.position(frame.pc.saturating_sub(template.start + 1));
            let SourcePosition { file, line, column, .. } = self.p.position(offset);
            let location = format!("{file}:{line}:{column}");
            if name.is_empty() {
                text.push_str(&format!("\n    at {location}"));
            } else {
                text.push_str(&format!("\n    at {name} ({location})"));
            }
        }
        text
    }

    /// Name of a compiled function, empty if it has none.
    pub(crate) fn template_name(&self, number: u32) -> String {
        match self.template_name_value(number) {
            Value::Str(id) => self.st.heap.str(id).to_utf8(),
            _ => String::new(),
        }
    }

    /// The same as a value; undefined for none.
    pub(crate) fn template_name_value(&self, number: u32) -> Value {
        let at = self.p.template(number).name;
        self.p.consts.get(at as usize).copied().unwrap_or(Value::Undefined)
    }

    /// Name of a function value for messages.
    pub(crate) fn function_name(&self, value: Value) -> String {
        if let Some(id) = value.as_obj()
            && let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && let Code::Template(n) = f.code
        {
            return self.template_name(n);
        }
        String::new()
    }

    pub(crate) fn type_error(&mut self, message: &str) -> Raise {
        Raise::Throw(self.make_error(ids::TYPE_ERROR_PROTO, message))
    }

    pub(crate) fn range_error(&mut self, message: &str) -> Raise {
        Raise::Throw(self.make_error(ids::RANGE_ERROR_PROTO, message))
    }

    pub(crate) fn reference_error(&mut self, message: &str) -> Raise {
        Raise::Throw(self.make_error(ids::REFERENCE_ERROR_PROTO, message))
    }

    pub(crate) fn syntax_error(&mut self, message: &str) -> Raise {
        Raise::Throw(self.make_error(ids::SYNTAX_ERROR_PROTO, message))
    }

    pub(crate) fn not_callable(&mut self, value: Value, what: &str) -> Raise {
        let shown = self.brief(value);
        self.type_error(&format!("{shown} {what}"))
    }

    /// A value in a message, short.
    pub(crate) fn brief(&self, value: Value) -> String {
        match value {
            Value::Str(id) => {
                let text = self.st.heap.str(id).to_utf8();
                let cut: String = text.chars().take(40).collect();
                if cut.len() < text.len() { format!("\"{cut}…\"") } else { format!("\"{cut}\"") }
            }
            Value::Obj(id) => match &self.st.heap.obj(id).kind {
                ObjectKind::Function(_) | ObjectKind::Bound(_) => {
                    let name = self.function_name(value);
                    if name.is_empty() { "function".to_owned() } else { format!("function {name}") }
                }
                ObjectKind::Array(_) => "[object Array]".to_owned(),
                _ => "#<Object>".to_owned(),
            },
            Value::Sym(id) => self.symbol_text(id),
            other => self.plain_text(other),
        }
    }

    /// `Symbol(description)`.
    pub(crate) fn symbol_text(&self, id: Id) -> String {
        match self.st.heap.symbol(id).map(|s| s.description) {
            Some(Value::Str(d)) => format!("Symbol({})", self.st.heap.str(d).to_utf8()),
            _ => "Symbol()".to_owned(),
        }
    }

    /// A primitive as text.
    pub(crate) fn plain_text(&self, value: Value) -> String {
        match value {
            Value::Undefined | Value::Hole | Value::Uninit | Value::Cell(_) => "undefined".to_owned(),
            Value::Null => "null".to_owned(),
            Value::Bool(b) => b.to_string(),
            Value::Int(i) => i.to_string(),
            Value::Num(n) => crate::pure::number::to_string(n),
            Value::Str(id) => self.st.heap.str(id).to_utf8(),
            Value::Sym(id) => self.symbol_text(id),
            Value::Big(id) => self.st.heap.big(id).to_string(),
            Value::Obj(_) => "[object Object]".to_owned(),
        }
    }

    /// A key in a message.
    pub(crate) fn key_text(&mut self, key: crate::value::Key) -> String {
        let value = self.st.heap.key_value(key);
        self.plain_text(value)
    }
}
