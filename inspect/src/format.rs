//! Owns the traversal of a value: prefix, entries, depth (Node's `formatValue` and `formatRaw`).

use crate::layout::{Grouping, LineRules, reduce};
use crate::members::typed_array;
use crate::text::{escape, escape_symbol, is_identifier};
use crate::values::{Boxed, EngineValues, ObjectClass, OwnKey, PROTOTYPES, Property, ValueType};
use std::fmt::Write;

/// Most keys that are visited; the text of more would be too long.
const KEYS: usize = 100_000;
/// Characters of a string that are shown.
const STRING_UNITS: usize = 10_000;

/// The traversal of one value.
pub(super) struct Formatter<'a, E: EngineValues> {
    pub(super) engine: &'a E,
    pub(super) depth: usize,
    pub(super) rules: LineRules,
    /// The objects that contain the current one.
    seen: Vec<usize>,
    /// Objects that refer to themselves, in order of discovery.
    circular: Vec<usize>,
    pub(super) indentation: usize,
    pub(super) current_depth: usize,
    /// Bytes of text that may still be written; bounds the work.
    left: usize,
}

/// Facts about an object that are determined before its members are visited.
pub(super) struct ObjectFacts<V> {
    pub(super) object: V,
    pub(super) kind: ObjectClass,
    /// `None`: null prototype.
    pub(super) constructor: Option<String>,
    pub(super) tag: String,
}

/// The format of one kind of object.
pub(super) struct ObjectFormat<K> {
    pub(super) base: String,
    pub(super) open: String,
    pub(super) close: &'static str,
    pub(super) keys: Vec<K>,
    pub(super) members: Members,
    /// Elements may be put in columns.
    pub(super) list: bool,
    /// The complete text of an object without keys.
    pub(super) alone: Option<String>,
}

impl<K> ObjectFormat<K> {
    /// A text, and the properties after it in braces.
    pub(super) fn with_base(base: String, keys: Vec<K>) -> Self {
        Self {
            alone: keys.is_empty().then(|| base.clone()),
            base,
            open: "{".to_owned(),
            close: "}",
            keys,
            members: Members::None,
            list: false,
        }
    }

    /// Elements in brackets.
    pub(super) fn list(open: String, keys: Vec<K>, members: Members, is_empty: bool) -> Self {
        Self {
            alone: (is_empty && keys.is_empty()).then(|| format!("{open}]")),
            base: String::new(),
            open,
            close: "]",
            keys,
            members,
            list: true,
        }
    }
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
    Iterator,
    Pairs,
    Fields,
    Promise,
    Unknown,
    WeakRef,
}

impl<'a, E: EngineValues> Formatter<'a, E> {
    pub(super) fn new(engine: &'a E, depth: usize) -> Self {
        Self {
            engine,
            depth,
            rules: LineRules::default(),
            seen: Vec::new(),
            circular: Vec::new(),
            indentation: 0,
            current_depth: 0,
            left: E::TEXT_BYTES + 1,
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
    pub(super) fn value(&mut self, value: &E::Value, level: usize, typed: bool) -> String {
        if self.is_spent() {
            return "...".to_owned();
        }
        if !self.engine.is_object(value) {
            let text = self.primitive(value);
            return self.spend(text);
        }
        let Some(object) = self.engine.behind_proxies(value) else { return "<Revoked Proxy>".to_owned() };
        let identity = self.engine.identity(&object);
        if self.seen.contains(&identity) {
            let index = self.circular.iter().position(|other| *other == identity).unwrap_or_else(|| {
                self.circular.push(identity);
                self.circular.len() - 1
            });
            return format!("[Circular *{}]", index + 1);
        }
        self.raw(object, identity, level, typed)
    }

    pub(super) fn primitive(&self, value: &E::Value) -> String {
        match self.engine.value_type(value) {
            ValueType::String => self.string(value),
            ValueType::Symbol => self.engine.symbol(value),
            ValueType::Number
                if self.engine.number(value).is_some_and(|n| n == 0.0 && n.is_sign_negative()) =>
            {
                "-0".to_owned()
            }
            ValueType::Bigint => self.engine.primitive(value) + "n",
            _ => self.engine.primitive(value),
        }
    }

    fn string(&self, string: &E::Value) -> String {
        let length = self.engine.string_units(string);
        let (shown, more) = self.engine.units(string, STRING_UNITS);
        self.quoted(&shown, more, length)
    }

    /// A string of this length, of which some units are shown; `more`: not all of them.
    pub(super) fn quoted(&self, shown: &[u16], more: bool, length: usize) -> String {
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
        escape(shown) + &trailer
    }

    fn raw(&mut self, object: E::Value, identity: usize, level: usize, typed: bool) -> String {
        let kind = self.engine.class(&object);
        let constructor = self.constructor_name(&object, level);
        let tag = self.tag(&object, kind, constructor.as_deref());
        let view = self.engine.view(&object, kind, constructor.as_deref());
        let (object, kind) = view.unwrap_or((object, kind));
        let raw = ObjectFacts { object, kind, constructor, tag };
        let shape = self.shape(&raw);
        if let Some(alone) = shape.alone {
            return self.spend(alone);
        }
        if level > self.depth {
            if kind == ObjectClass::RegExp && !shape.base.is_empty() {
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
    fn all_numbers(&self, raw: &ObjectFacts<E::Value>, count: usize) -> bool {
        match raw.kind {
            ObjectClass::TypedArray(_) => true,
            ObjectClass::Array => (0..count).all(|index| {
                match self.engine.element(&raw.object, index).map(|own| own.property) {
                    Some(Property::Data(value)) => {
                        matches!(self.engine.value_type(&value), ValueType::Number | ValueType::Bigint)
                    }
                    _ => false,
                }
            }),
            _ => false,
        }
    }

    /// `name: value`; `None` if the property is gone.
    pub(super) fn property(&mut self, object: &E::Value, key: &E::Key, level: usize) -> Option<String> {
        let Ok(own) = self.engine.own(object, key) else {
            return Some(format!("{}: <uninitialized>", self.engine.key_text(key).unwrap_or_default()));
        };
        let own = own?;
        let text = self.property_value(&own.property, level);
        let name = match self.engine.key_units(key, E::TEXT_BYTES) {
            None => format!("[{}]", escape_symbol(&self.engine.key_symbol(key))),
            Some((shown, more)) => {
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
            }
        };
        self.left = self.left.saturating_sub(name.len() + 2);
        Some(format!("{name}: {text}"))
    }

    /// The value of a property, or the names of its accessors.
    pub(super) fn property_value(&mut self, property: &Property<E::Value>, level: usize) -> String {
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
    pub(super) fn keys(&self, object: &E::Value) -> Vec<E::Key> {
        self.engine.keys(object, true, KEYS)
    }

    fn is_proxy(&self, object: &E::Value) -> bool {
        self.engine.class(object) == ObjectClass::Proxy
    }

    /// An own data property that is an object.
    fn own_object(&self, object: &E::Value, name: &str) -> Option<E::Value> {
        self.engine.own_data(object, name).filter(|value| self.engine.is_object(value))
    }

    fn constructor_name(&mut self, object: &E::Value, level: usize) -> Option<String> {
        let mut at = object.clone();
        let mut first = None;
        for _ in 0..PROTOTYPES {
            if self.is_proxy(&at) {
                return Some("Object".to_owned());
            }
            if let Some(constructor) = self.own_object(&at, "constructor")
                && self.engine.is_callable(&constructor)
                && let Some(name) = self.function_name(&constructor).filter(|name| !name.is_empty())
                && self.is_instance(object, &constructor)
            {
                return Some(name);
            }
            let next = self.engine.prototype(&at);
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
    fn is_instance(&self, object: &E::Value, constructor: &E::Value) -> bool {
        if self.is_proxy(constructor) {
            return false;
        }
        let Some(prototype) = self.own_object(constructor, "prototype") else { return false };
        let wanted = self.engine.identity(&prototype);
        let mut at = self.engine.prototype(object);
        for _ in 0..PROTOTYPES {
            match at {
                Some(next) if self.engine.identity(&next) == wanted => return true,
                Some(next) if !self.is_proxy(&next) => at = self.engine.prototype(&next),
                _ => return false,
            }
        }
        false
    }

    /// The own `name` of a function, if it is a string.
    pub(super) fn function_name(&self, function: &E::Value) -> Option<String> {
        if self.is_proxy(function) {
            return None;
        }
        let name = self.engine.own_data(function, "name").filter(|name| self.engine.is_string(name))?;
        Some(String::from_utf16_lossy(&self.engine.units(&name, STRING_UNITS).0))
    }

    /// `Symbol.toStringTag` if it is plain data and differs from the class name.
    fn tag(&self, object: &E::Value, kind: ObjectClass, constructor: Option<&str>) -> String {
        let builtin = match kind {
            ObjectClass::Generator => "Generator",
            ObjectClass::AsyncGenerator => "AsyncGenerator",
            // The tag of a typed array is a getter of the prototype, which is not called.
            ObjectClass::TypedArray(element) => typed_array(element).0,
            ObjectClass::Namespace => return "Module".to_owned(),
            _ => "",
        };
        let Some(key) = self.engine.to_string_tag() else { return String::new() };
        let own = self.engine.own(object, &key).unwrap_or_default();
        if own.is_some_and(|own| own.enumerable) {
            return String::new();
        }
        let mut at = Some(object.clone());
        for _ in 0..PROTOTYPES {
            let Some(next) = at.filter(|next| !self.is_proxy(next)) else { break };
            if let Ok(Some(OwnKey { property, .. })) = self.engine.own(&next, &key) {
                let Property::Data(tag) = property else { break };
                if !self.engine.is_string(&tag) {
                    return String::new();
                }
                let tag = String::from_utf16_lossy(&self.engine.units(&tag, STRING_UNITS).0);
                return if constructor == Some(tag.as_str()) { String::new() } else { tag };
            }
            at = self.engine.prototype(&next);
        }
        builtin.to_owned()
    }

    /// The brackets, base text and keys of each kind.
    fn shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
        match raw.kind {
            ObjectClass::Array => self.array_shape(raw),
            ObjectClass::TypedArray(_) => self.typed_array_shape(raw),
            ObjectClass::Function => self.function_shape(raw),
            ObjectClass::Error | ObjectClass::DomException => self.error_shape(raw),
            ObjectClass::RegExp | ObjectClass::Date | ObjectClass::Boxed(_) => self.value_shape(raw),
            _ => self.object_shape(raw),
        }
    }

    fn value_shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
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
                if prefix == "Date " { text } else { format!("{prefix}{text}") }
            }
            _ => {
                let ObjectClass::Boxed(boxed) = raw.kind else { return self.object_shape(raw) };
                self.boxed(raw, boxed, &mut keys)
            }
        };
        ObjectFormat::with_base(base, keys)
    }

    fn boxed(&mut self, raw: &ObjectFacts<E::Value>, boxed: Boxed, keys: &mut Vec<E::Key>) -> String {
        let name = match boxed {
            Boxed::Number => "Number",
            Boxed::String => "String",
            Boxed::Boolean => "Boolean",
            Boxed::Symbol => "Symbol",
            Boxed::Bigint => "BigInt",
        };
        let inner = self.engine.unboxed(&raw.object);
        if boxed == Boxed::String {
            let length = inner.as_ref().map_or(0, |inner| self.engine.string_units(inner));
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

    fn date(&self, date: &E::Value) -> String {
        self.engine.date(date).unwrap_or_else(|| "Invalid Date".to_owned())
    }

    fn regexp(&self, regexp: &E::Value) -> String {
        let (source, flags) = self.engine.regexp(regexp);
        format!("/{source}/{flags}")
    }
}

/// `Foo `, `Foo [tag] `, `[Object: null prototype] `.
pub(super) fn prefix<V>(raw: &ObjectFacts<V>, fallback: &str, size: &str) -> String {
    let tag = raw.tag.as_str();
    match raw.constructor.as_deref() {
        None if !tag.is_empty() && fallback != tag => format!("[{fallback}{size}: null prototype] [{tag}] "),
        None => format!("[{fallback}{size}: null prototype] "),
        Some(constructor) if !tag.is_empty() && constructor != tag => format!("{constructor}{size} [{tag}] "),
        Some(constructor) => format!("{constructor}{size} "),
    }
}
