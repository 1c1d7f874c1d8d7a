//! Owns results as events: the name of a value's type, its text, and its JSON if that represents the value completely.
//! Runs no code of the script: a value with `toJSON`, getters or proxies has no JSON.

use super::inspect::{Inspector, ObjectClass, cut, is_cut};
use super::sys::{self, Property};
use rquickjs::{Coerced, Object, Value};
use std::fmt::Write;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{EVENT_JSON_BYTES, EVENT_JSON_DEPTH};
use vm_system_protocol::model::{JsType, ResultValue};

/// Most values that are visited for the JSON of one value: as many as fit the longest JSON, at two bytes each.
const VISITS: usize = EVENT_JSON_BYTES / 2;
/// JSON up to this size is counted, also if it is too long to be kept (bytes).
const COUNTED_BYTES: u64 = 64 << 20;
/// Code units of a string that are copied at a time.
const STRING_UNITS: usize = 64 << 10;

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
        ObjectClass::Error | ObjectClass::DomException => JsType::Error,
        ObjectClass::Proxy if object.is_function() => JsType::Function,
        _ => JsType::Object,
    }
}

/// A result as its event has it; `output_left` is the rest of the output limit (bytes).
pub(super) fn result<'js>(inspector: &Inspector<'js>, value: &Value<'js>, output_left: u64) -> ResultValue {
    let kind = js_type(inspector, value);
    let preview = cut(inspector.inspect(value));
    let most = usize::try_from(output_left).unwrap_or(usize::MAX).saturating_sub(preview.len());
    let mut writer = Writer::new(inspector, most.min(EVENT_JSON_BYTES));
    let whole = writer.value(value, EVENT_JSON_DEPTH).is_some();
    let size = whole.then_some(writer.size);
    let json = writer.kept().filter(|_| whole);
    let truncated = is_cut(&preview) || writer.is_too_much || (whole && json.is_none());
    ResultValue { kind, preview, json, truncated, full_bytes: size.filter(|_| truncated) }
}

/// The JSON that represents a value completely, if there is one of limited size.
pub(super) fn json<'js>(inspector: &Inspector<'js>, value: &Value<'js>) -> Option<JsonText> {
    let mut writer = Writer::new(inspector, EVENT_JSON_BYTES);
    writer.value(value, EVENT_JSON_DEPTH)?;
    writer.kept()
}

struct Writer<'a, 'js> {
    inspector: &'a Inspector<'js>,
    /// The text, as long as it is not longer than `most`; then it is only counted.
    text: String,
    most: usize,
    /// Length of the whole text so far (bytes).
    size: u64,
    visits: usize,
    /// The value is too large even to be counted.
    is_too_much: bool,
    /// The objects that contain the current one: a cycle has no JSON.
    inside: Vec<usize>,
}

impl<'a, 'js> Writer<'a, 'js> {
    fn new(inspector: &'a Inspector<'js>, most: usize) -> Self {
        let (text, inside) = (String::new(), Vec::new());
        Self { inspector, text, most, size: 0, visits: 0, is_too_much: false, inside }
    }

    /// The text, unless it is too long.
    fn kept(&mut self) -> Option<JsonText> {
        let text = std::mem::take(&mut self.text);
        (text.len() as u64 == self.size).then(|| JsonText::from_untrusted(text))
    }

    fn push(&mut self, text: &str) {
        self.size += text.len() as u64;
        if self.size <= self.most as u64 {
            self.text.push_str(text);
        } else {
            self.text = String::new();
        }
    }

    fn too_much(&mut self) -> Option<()> {
        self.is_too_much = true;
        None
    }

    fn value(&mut self, value: &Value<'js>, levels: usize) -> Option<()> {
        self.visits += 1;
        if self.visits > VISITS || self.size > COUNTED_BYTES {
            return self.too_much();
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
            self.push(&text);
            return Some(());
        }
        match value.as_bool() {
            Some(true) => self.push("true"),
            Some(false) => self.push("false"),
            None if value.is_null() => self.push("null"),
            None => return None,
        }
        Some(())
    }

    fn string(&mut self, string: &rquickjs::String<'js>) -> Option<()> {
        self.push("\"");
        let mut piece = String::new();
        for units in self.inspector.slices(string, STRING_UNITS) {
            if self.size > COUNTED_BYTES {
                return self.too_much();
            }
            piece.clear();
            for character in char::decode_utf16(units) {
                match character.ok()? {
                    '"' => piece.push_str("\\\""),
                    '\\' => piece.push_str("\\\\"),
                    '\n' => piece.push_str("\\n"),
                    '\r' => piece.push_str("\\r"),
                    '\t' => piece.push_str("\\t"),
                    control @ '\0'..='\u{1f}' => {
                        let _ = write!(piece, "\\u{:04x}", u32::from(control));
                    }
                    other => piece.push(other),
                }
            }
            self.push(&piece);
        }
        self.push("\"");
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
        if length > VISITS {
            return self.too_much();
        }
        // `length` and the elements, nothing else.
        if sys::own_keys(array, sys::Keys::All, 0).ok()?.1 != length + 1 {
            return None;
        }
        self.push("[");
        for index in 0..length {
            if index > 0 {
                self.push(",");
            }
            self.property(array, &Value::new_number(self.inspector.ctx().clone(), index as f64), levels)?;
        }
        self.push("]");
        Some(())
    }

    fn object(&mut self, object: &Object<'js>, levels: usize) -> Option<()> {
        self.push("{");
        let (keys, count) = sys::own_keys(object, sys::Keys::All, VISITS).ok()?;
        if keys.len() < count {
            return self.too_much();
        }
        for (index, key) in keys.into_iter().enumerate() {
            if key.is_symbol() {
                return None;
            }
            if index > 0 {
                self.push(",");
            }
            self.string(&key.get::<Coerced<rquickjs::String>>().ok()?.0)?;
            self.push(":");
            self.property(object, &key, levels)?;
        }
        self.push("}");
        Some(())
    }

    fn property(&mut self, object: &Object<'js>, key: &Value<'js>, levels: usize) -> Option<()> {
        match sys::own_property(object, key).ok()?? {
            sys::OwnKey { property: Property::Data(value), enumerable: true } => self.value(&value, levels),
            _ => None,
        }
    }
}
