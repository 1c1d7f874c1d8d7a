//! Owns the traversal of a value: prefix, entries, depth (Node's `formatValue` and `formatRaw`).

use super::classify::{Boxed, ObjectClass, behind_proxies};
use super::layout::{Grouping, LineRules, reduce};
use super::text::{escape, is_identifier};
use super::{Inspector, PROTOTYPES};
use crate::engine::sys::{self, Property};
use rquickjs::{Object, Value};
use std::fmt::Write;
use vm_system_protocol::limits::EVENT_TEXT_BYTES;

/// Levels that are shown.
pub(super) const DEPTH: usize = 2;
/// Characters of a string that are shown.
const STRING_UNITS: usize = 10_000;

/// The traversal of one value.
pub(super) struct Formatter<'a, 'js> {
    pub(super) inspector: &'a Inspector<'js>,
    depth: usize,
    pub(super) rules: LineRules,
    /// The objects that contain the current one.
    seen: Vec<usize>,
    /// Objects that refer to themselves, in order of discovery.
    circular: Vec<usize>,
    pub(super) indentation: usize,
    current_depth: usize,
    /// Bytes of text that may still be written; bounds the work.
    left: usize,
}

/// Facts about an object that are determined before its members are visited.
pub(super) struct ObjectFacts<'js> {
    pub(super) object: Object<'js>,
    pub(super) kind: ObjectClass,
    /// `None`: null prototype.
    pub(super) constructor: Option<String>,
    pub(super) tag: String,
}

/// The format of one kind of object.
pub(super) struct ObjectFormat<'js> {
    pub(super) base: String,
    pub(super) open: String,
    pub(super) close: &'static str,
    pub(super) keys: Vec<Value<'js>>,
    pub(super) members: Members,
    /// Elements may be put in columns.
    pub(super) list: bool,
    /// The complete text of an object without keys.
    pub(super) alone: Option<String>,
}

/// The members between the braces, before the properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Members {
    None,
    Array,
    TypedArray,
    Buffer,
    View,
    Set,
    Map,
    SetIterator,
    MapIterator,
    Pairs,
    Promise,
    Unknown,
    WeakRef,
}

impl<'a, 'js> Formatter<'a, 'js> {
    pub(super) fn new(inspector: &'a Inspector<'js>, depth: usize) -> Self {
        Self {
            inspector,
            depth,
            rules: LineRules::default(),
            seen: Vec::new(),
            circular: Vec::new(),
            indentation: 0,
            current_depth: 0,
            left: EVENT_TEXT_BYTES + 1,
        }
    }

    /// Subtracts the text from the budget and returns it.
    fn spend(&mut self, text: String) -> String {
        self.left = self.left.saturating_sub(text.len() + 1);
        text
    }

    /// Whether the budget is used up: the rest is left out.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// A value at a level; `typed`: an `ArrayBuffer` inside a view, shown in short.
    pub(super) fn value(&mut self, value: &Value<'js>, level: usize, typed: bool) -> String {
        if self.is_spent() {
            return "...".to_owned();
        }
        let Some(object) = value.as_object() else {
            let text = self.primitive(value);
            return self.spend(text);
        };
        let object = if object.is_proxy() {
            match behind_proxies(value).and_then(Value::into_object) {
                Some(target) => target,
                None => return "<Revoked Proxy>".to_owned(),
            }
        } else {
            object.clone()
        };
        let identity = sys::identity(object.as_value());
        if self.seen.contains(&identity) {
            let index = self.circular.iter().position(|other| *other == identity).unwrap_or_else(|| {
                self.circular.push(identity);
                self.circular.len() - 1
            });
            return format!("[Circular *{}]", index + 1);
        }
        self.raw(object, identity, level, typed)
    }

    pub(super) fn primitive(&self, value: &Value<'js>) -> String {
        if let Some(string) = value.as_string() {
            return self.string(string);
        }
        if value.is_symbol() {
            return self.inspector.symbol(value);
        }
        if let Some(number) = value.as_float()
            && number == 0.0
            && number.is_sign_negative()
        {
            return "-0".to_owned();
        }
        let mut text = self.inspector.primitive(value);
        if value.is_big_int() {
            text.push('n');
        }
        text
    }

    fn string(&self, string: &rquickjs::String<'js>) -> String {
        let length = sys::string_units(string);
        let (shown, more) = self.inspector.units(string, STRING_UNITS);
        let trailer = if more {
            let rest = length - shown.len();
            format!("... {rest} more character{}", if rest > 1 { "s" } else { "" })
        } else {
            String::new()
        };
        let newline = u16::from(b'\n');
        if shown.len() > 16
            && shown.len() > self.rules.break_length.saturating_sub(self.indentation + 4)
            && shown[..shown.len() - 1].contains(&newline)
        {
            let joint = format!(" +\n{}", " ".repeat(self.indentation + 2));
            let lines: Vec<String> = shown.split_inclusive(|unit| *unit == newline).map(escape).collect();
            return lines.join(&joint) + &trailer;
        }
        escape(&shown) + &trailer
    }

    fn raw(&mut self, object: Object<'js>, identity: usize, level: usize, typed: bool) -> String {
        let kind = self.inspector.classes.kind(&object);
        let constructor = self.constructor_name(&object, level);
        let tag = self.tag(&object, kind, constructor.as_deref());
        let (object, kind) = match self.inspector.view(&object, kind, constructor.as_deref()) {
            // A list is names and values in turn.
            Some(view) if view.is_array() => (view, ObjectClass::Pairs),
            Some(view) => (view, kind),
            None => (object, kind),
        };
        let raw = ObjectFacts { object, kind, constructor, tag };
        let shape = self.shape(&raw, level, typed);
        if let Some(alone) = shape.alone {
            return self.spend(alone);
        }
        if level > self.depth {
            if matches!(
                kind,
                ObjectClass::RegExp | ObjectClass::Date | ObjectClass::Error | ObjectClass::DomException
            ) && !shape.base.is_empty()
                && kind == ObjectClass::RegExp
            {
                return shape.base;
            }
            let prefix = prefix(&raw, if kind == ObjectClass::Array { "Array" } else { "Object" }, "");
            let name = prefix.trim_end();
            return if raw.constructor.is_some() { format!("[{name}]") } else { name.to_owned() };
        }
        let level = level + 1;
        self.seen.push(identity);
        self.current_depth = level;
        let mut entries = Vec::new();
        let more = self.members(&raw, shape.members, level, typed, &mut entries);
        let elements = entries.len();
        for key in &shape.keys {
            if self.is_spent() {
                entries.push("...".to_owned());
                break;
            }
            if let Some(entry) = self.property(&raw.object, key, level) {
                entries.push(entry);
            }
        }
        self.seen.pop();
        let base = match self.circular.iter().position(|other| *other == identity) {
            Some(index) if shape.base.is_empty() => format!("<ref *{}>", index + 1),
            Some(index) => format!("<ref *{}> {}", index + 1, shape.base),
            None => shape.base,
        };
        let numbers = elements == entries.len() && self.all_numbers(&raw, entries.len());
        let grouping = shape.list.then_some(Grouping { more, numbers });
        let below = self.current_depth - level;
        let text = reduce(
            entries,
            &base,
            (&shape.open, shape.close),
            self.indentation,
            below,
            (grouping, self.rules),
        );
        self.spend(text)
    }

    /// Whether the elements that are shown are numbers only.
    fn all_numbers(&self, raw: &ObjectFacts<'js>, count: usize) -> bool {
        match raw.kind {
            ObjectClass::TypedArray(_) => true,
            ObjectClass::Array => (0..count).all(|index| {
                match self.inspector.element(&raw.object, index).map(|own| own.property) {
                    Some(Property::Data(value)) => value.is_number() || value.is_big_int(),
                    _ => false,
                }
            }),
            _ => false,
        }
    }

    /// `name: value`; `None` if the property is gone.
    pub(super) fn property(
        &mut self,
        object: &Object<'js>,
        key: &Value<'js>,
        level: usize,
    ) -> Option<String> {
        let Ok(own) = sys::own_property(object, key) else {
            // A binding of a module that is not initialised yet.
            drop(self.inspector.ctx().catch());
            return Some(format!("{}: <uninitialized>", self.inspector.key_text(key).unwrap_or_default()));
        };
        let own = own?;
        let text = self.property_value(&own.property, level);
        let name = if key.is_symbol() {
            format!("[{}]", self.inspector.symbol(key))
        } else {
            let name = key.get::<rquickjs::Coerced<rquickjs::String>>().ok()?.0;
            let (shown, more) = self.inspector.units(&name, EVENT_TEXT_BYTES);
            let plain = String::from_utf16_lossy(&shown);
            if more || plain == "__proto__" {
                format!("[{}]", escape(&shown))
            } else if !own.enumerable {
                format!("[{plain}]")
            } else if is_identifier(&plain) {
                plain
            } else {
                escape(&shown)
            }
        };
        self.left = self.left.saturating_sub(name.len() + 2);
        Some(format!("{name}: {text}"))
    }

    /// The value of a property, or the names of its accessors.
    pub(super) fn property_value(&mut self, property: &Property<'js>, level: usize) -> String {
        match property {
            Property::Data(value) => self.indented(2, |this| this.value(value, level, false)),
            Property::Accessor { get: true, set: true } => "[Getter/Setter]".to_owned(),
            Property::Accessor { get: true, .. } => "[Getter]".to_owned(),
            Property::Accessor { set: true, .. } => "[Setter]".to_owned(),
            Property::Accessor { .. } => "undefined".to_owned(),
        }
    }

    pub(super) fn indented<R>(&mut self, by: usize, run: impl FnOnce(&mut Self) -> R) -> R {
        self.indentation += by;
        let result = run(self);
        self.indentation -= by;
        result
    }

    /// Own enumerable keys: strings, then symbols.
    pub(super) fn keys(&self, object: &Object<'js>) -> Vec<Value<'js>> {
        self.inspector.keys(object, sys::Keys::Enumerable)
    }

    fn constructor_name(&mut self, object: &Object<'js>, level: usize) -> Option<String> {
        let mut at = object.clone();
        let mut first = None;
        for _ in 0..PROTOTYPES {
            if at.is_proxy() {
                return Some("Object".to_owned());
            }
            if let Some(constructor) =
                self.inspector.own_data(&at, "constructor").and_then(Value::into_object)
                && constructor.is_function()
                && let Some(name) = self.function_name(&constructor).filter(|name| !name.is_empty())
                && self.is_instance(object, &constructor)
            {
                return Some(name);
            }
            let next = sys::prototype(&at);
            if first.is_none() {
                first = Some(next.clone());
            }
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        let first = first.flatten()?;
        if level > self.depth {
            return Some("Object <Complex prototype>".to_owned());
        }
        match self.constructor_name(&first, level + 1) {
            Some(name) => Some(format!("Object <{name}>")),
            None => Some("Object <[Object: null prototype] {}>".to_owned()),
        }
    }

    /// `instanceof` without `Symbol.hasInstance`.
    fn is_instance(&self, object: &Object<'js>, constructor: &Object<'js>) -> bool {
        let Some(prototype) = self.inspector.own_data(constructor, "prototype").and_then(Value::into_object)
        else {
            return false;
        };
        let wanted = sys::identity(prototype.as_value());
        let mut at = sys::prototype(object);
        for _ in 0..PROTOTYPES {
            match at {
                Some(next) if sys::identity(next.as_value()) == wanted => return true,
                Some(next) if !next.is_proxy() => at = sys::prototype(&next),
                _ => return false,
            }
        }
        false
    }

    /// The own `name` of a function, if it is a string.
    pub(super) fn function_name(&self, function: &Object<'js>) -> Option<String> {
        if function.is_proxy() {
            return None;
        }
        let name = self.inspector.own_data(function, "name")?.into_string()?;
        let (units, _) = self.inspector.units(&name, STRING_UNITS);
        Some(String::from_utf16_lossy(&units))
    }

    /// `Symbol.toStringTag` if it is plain data and differs from the class name.
    fn tag(&self, object: &Object<'js>, kind: ObjectClass, constructor: Option<&str>) -> String {
        let builtin = match kind {
            ObjectClass::Generator => "Generator",
            ObjectClass::AsyncGenerator => "AsyncGenerator",
            ObjectClass::Namespace => return "Module".to_owned(),
            _ => "",
        };
        let Some(key) = self.inspector.to_string_tag() else { return String::new() };
        let own = sys::own_property(object, &key).unwrap_or_default();
        if own.is_some_and(|own| own.enumerable) {
            return String::new();
        }
        let mut at = Some(object.clone());
        for _ in 0..PROTOTYPES {
            let Some(next) = at.filter(|next| !next.is_proxy()) else { break };
            if let Ok(Some(own)) = sys::own_property(&next, &key) {
                let Property::Data(tag) = own.property else { break };
                let Some(tag) = tag.as_string() else { return String::new() };
                let tag = String::from_utf16_lossy(&self.inspector.units(tag, STRING_UNITS).0);
                return if constructor == Some(tag.as_str()) { String::new() } else { tag };
            }
            at = sys::prototype(&next);
        }
        builtin.to_owned()
    }

    /// The brackets, base text and keys of each kind.
    fn shape(&mut self, raw: &ObjectFacts<'js>, level: usize, typed: bool) -> ObjectFormat<'js> {
        match raw.kind {
            ObjectClass::Array => self.array_shape(raw),
            ObjectClass::TypedArray(_) => self.typed_array_shape(raw),
            ObjectClass::Function => self.function_shape(raw),
            ObjectClass::Error | ObjectClass::DomException => self.error_shape(raw, level),
            ObjectClass::RegExp | ObjectClass::Date | ObjectClass::Boxed(_) => self.value_shape(raw),
            _ => self.object_shape(raw, typed),
        }
    }

    fn value_shape(&mut self, raw: &ObjectFacts<'js>) -> ObjectFormat<'js> {
        let mut keys = self.keys(&raw.object);
        let base = match raw.kind {
            ObjectClass::RegExp => {
                let prefix = prefix(raw, "RegExp", "");
                let text = self.regexp(&raw.object);
                if prefix == "RegExp " { text } else { format!("{prefix}{text}") }
            }
            ObjectClass::Date => {
                let prefix = prefix(raw, "Date", "");
                let text = self.date(&raw.object);
                if prefix == "Date " || keys.is_empty() { text } else { format!("{prefix}{text}") }
            }
            _ => {
                let ObjectClass::Boxed(boxed) = raw.kind else { return self.object_shape(raw, false) };
                self.boxed(raw, boxed, &mut keys)
            }
        };
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

    fn boxed(&mut self, raw: &ObjectFacts<'js>, boxed: Boxed, keys: &mut Vec<Value<'js>>) -> String {
        let (name, unwrap) = match boxed {
            Boxed::Number => ("Number", "numberValueOf"),
            Boxed::String => ("String", "stringValueOf"),
            Boxed::Boolean => ("Boolean", "booleanValueOf"),
            Boxed::Symbol => ("Symbol", "symbolValueOf"),
            Boxed::Bigint => ("BigInt", "bigintValueOf"),
        };
        let inner: Option<Value> = self.inspector.call(unwrap, raw.object.as_value());
        if boxed == Boxed::String {
            let length =
                inner.as_ref().and_then(|inner| inner.as_string().map(sys::string_units)).unwrap_or(0);
            keys.drain(..length.min(keys.len()));
        }
        let inner = inner.map(|inner| self.primitive(&inner)).unwrap_or_default();
        let mut base = format!("[{name}");
        match raw.constructor.as_deref() {
            None => base.push_str(" (null prototype)"),
            Some(constructor) if constructor != name => {
                let _ = write!(base, " ({constructor})");
            }
            Some(_) => {}
        }
        let _ = write!(base, ": {inner}]");
        if !raw.tag.is_empty() && raw.constructor.as_deref() != Some(raw.tag.as_str()) {
            let _ = write!(base, " [{}]", raw.tag);
        }
        base
    }

    /// A date's ISO text.
    pub(super) fn date(&self, date: &Object<'js>) -> String {
        let iso: Option<Value> = self.inspector.call("dateToISOString", date.as_value());
        iso.and_then(Value::into_string)
            .and_then(|text| text.to_string().ok())
            .unwrap_or("Invalid Date".to_owned())
    }

    fn regexp(&self, regexp: &Object<'js>) -> String {
        let source: Option<Value> = self.inspector.call("regexpSource", regexp.as_value());
        let source = source.and_then(Value::into_string).map(|source| self.inspector.string(&source));
        let mut flags = String::new();
        for letter in ["d", "g", "i", "m", "s", "u", "v", "y"] {
            let set: Option<Value> = self.inspector.call(&format!("regexpFlag_{letter}"), regexp.as_value());
            if set.and_then(|set| set.as_bool()) == Some(true) {
                flags.push_str(letter);
            }
        }
        format!("/{}/{flags}", source.unwrap_or_default())
    }
}

/// `Foo `, `Foo [tag] `, `[Object: null prototype] `.
pub(super) fn prefix(raw: &ObjectFacts<'_>, fallback: &str, size: &str) -> String {
    let tag = raw.tag.as_str();
    match raw.constructor.as_deref() {
        None if !tag.is_empty() && fallback != tag => format!("[{fallback}{size}: null prototype] [{tag}] "),
        None => format!("[{fallback}{size}: null prototype] "),
        Some(constructor) if !tag.is_empty() && constructor != tag => format!("{constructor}{size} [{tag}] "),
        Some(constructor) => format!("{constructor}{size} "),
    }
}
