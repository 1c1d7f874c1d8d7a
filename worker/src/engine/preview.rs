//! Owns results as events: the name of a value's type, its text, and its JSON if that represents the value completely.
//! Runs no code of the script: a value with `toJSON`, getters or proxies has no JSON.

use super::inspect::{Inspector, ObjectClass, cut};
use super::sys::{self, Property};
use rquickjs::{Coerced, Object, Value};
use std::fmt::Write;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{EVENT_JSON_DEPTH, EVENT_TEXT_BYTES};
use vm_system_protocol::model::{EventPayload, JsType};

/// JavaScript's name of a value's type.
pub(super) fn js_type(inspector: &Inspector<'_>, value: &Value<'_>) -> JsType {
    let Some(object) = value.as_object() else {
        return match value {
            value if value.is_undefined() => JsType::Undefined,
            value if value.is_null() => JsType::Null,
            value if value.is_bool() => JsType::Boolean,
            value if value.is_number() => JsType::Number,
            value if value.is_string() => JsType::String,
            value if value.is_symbol() => JsType::Symbol,
            value if value.is_big_int() => JsType::Bigint,
            _ => JsType::Object,
        };
    };
    match inspector.classes.kind(object) {
        ObjectClass::Array => JsType::Array,
        ObjectClass::Function => JsType::Function,
        ObjectClass::Date => JsType::Date,
        ObjectClass::Map => JsType::Map,
        ObjectClass::Set => JsType::Set,
        ObjectClass::Promise => JsType::Promise,
        ObjectClass::Error => JsType::Error,
        ObjectClass::Proxy if object.is_function() => JsType::Function,
        _ => JsType::Object,
    }
}

/// The `value` event of a result.
pub(super) fn event<'js>(
    inspector: &Inspector<'js>,
    value: &Value<'js>,
    json: Option<JsonText>,
) -> EventPayload {
    EventPayload::Value { kind: js_type(inspector, value), preview: cut(inspector.inspect(value)), json }
}

/// The JSON that represents a value completely, if there is one of limited size.
pub(super) fn json<'js>(inspector: &Inspector<'js>, value: &Value<'js>) -> Option<JsonText> {
    let mut writer = Writer { inspector, text: String::new(), inside: Vec::new() };
    writer.value(value, EVENT_JSON_DEPTH)?;
    Some(JsonText::from_untrusted(writer.text))
}

struct Writer<'a, 'js> {
    inspector: &'a Inspector<'js>,
    text: String,
    /// The objects that contain the current one: a cycle has no JSON.
    inside: Vec<usize>,
}

impl<'js> Writer<'_, 'js> {
    fn value(&mut self, value: &Value<'js>, levels: usize) -> Option<()> {
        if self.text.len() > EVENT_TEXT_BYTES {
            return None;
        }
        if let Some(object) = value.as_object() {
            let levels = levels.checked_sub(1)?;
            let identity = sys::identity(value);
            if self.inside.contains(&identity) {
                return None;
            }
            self.inside.push(identity);
            match self.inspector.classes.kind(object) {
                ObjectClass::Array if self.has_prototype(object, "arrayPrototype") => {
                    self.array(object, levels)?;
                }
                ObjectClass::Plain if self.is_plain(object) => self.object(object, levels)?,
                _ => return None,
            }
            self.inside.pop();
            return Some(());
        }
        if let Some(string) = value.as_string() {
            return self.string(string);
        }
        if let Some(number) = value.as_number() {
            if !number.is_finite() || (number == 0.0 && number.is_sign_negative()) {
                return None;
            }
            let text = self.inspector.primitive(value);
            self.text.push_str(&text);
            return Some(());
        }
        match value.as_bool() {
            Some(true) => self.text.push_str("true"),
            Some(false) => self.text.push_str("false"),
            None if value.is_null() => self.text.push_str("null"),
            None => return None,
        }
        Some(())
    }

    fn string(&mut self, string: &rquickjs::String<'js>) -> Option<()> {
        let (units, more) = self.inspector.units(string, EVENT_TEXT_BYTES);
        if more {
            return None;
        }
        self.text.push('"');
        for character in char::decode_utf16(units) {
            match character.ok()? {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                control @ '\0'..='\u{1f}' => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(control));
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
        Some(())
    }

    fn has_prototype(&self, object: &Object<'js>, name: &str) -> bool {
        match (sys::prototype(object), self.inspector.captured_object(name)) {
            (Some(own), Some(wanted)) => sys::identity(own.as_value()) == sys::identity(wanted.as_value()),
            _ => false,
        }
    }

    fn is_plain(&self, object: &Object<'js>) -> bool {
        sys::prototype(object).is_none() || self.has_prototype(object, "objectPrototype")
    }

    fn array(&mut self, array: &Object<'js>, levels: usize) -> Option<()> {
        let length = self.inspector.own_data(array, "length")?.as_number()? as usize;
        // Each element takes at least two bytes.
        if length > EVENT_TEXT_BYTES / 2 {
            return None;
        }
        // `length` and the elements, nothing else.
        if sys::own_keys(array, sys::Keys::All, 0).ok()?.1 != length + 1 {
            return None;
        }
        self.text.push('[');
        for index in 0..length {
            if index > 0 {
                self.text.push(',');
            }
            self.property(array, &Value::new_number(self.inspector.ctx().clone(), index as f64), levels)?;
        }
        self.text.push(']');
        Some(())
    }

    fn object(&mut self, object: &Object<'js>, levels: usize) -> Option<()> {
        self.text.push('{');
        let (keys, count) = sys::own_keys(object, sys::Keys::All, EVENT_TEXT_BYTES / 4).ok()?;
        if keys.len() < count {
            return None;
        }
        for (index, key) in keys.into_iter().enumerate() {
            if key.is_symbol() {
                return None;
            }
            if index > 0 {
                self.text.push(',');
            }
            self.string(&key.get::<Coerced<rquickjs::String>>().ok()?.0)?;
            self.text.push(':');
            self.property(object, &key, levels)?;
        }
        self.text.push('}');
        Some(())
    }

    fn property(&mut self, object: &Object<'js>, key: &Value<'js>, levels: usize) -> Option<()> {
        match sys::own_property(object, key).ok()?? {
            sys::OwnKey { property: Property::Data(value), enumerable: true } => self.value(&value, levels),
            _ => None,
        }
    }
}
