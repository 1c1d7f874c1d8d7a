//! Owns the members that are shown for each kind of object: elements, entries, bytes, states.

use super::classify::ObjectClass;
use super::format::{Formatter, Members, ObjectFacts, ObjectFormat, prefix};
use crate::engine::sys::{self, Property};
use rquickjs::function::This;
use rquickjs::{Array, Object, Value};
use std::fmt::Write;

/// Elements of a list that are shown.
const ELEMENTS: usize = 100;
/// Bytes of a `Buffer` that are shown.
const BUFFER_BYTES: usize = 50;
/// Lists longer than this are not searched for properties besides their elements: QuickJS would list every index.
const SEARCHED_ELEMENTS: usize = 100_000;

/// Names and sizes of typed arrays, by QuickJS's number.
const TYPED_ARRAYS: [(&str, usize); 12] = [
    ("Uint8ClampedArray", 1),
    ("Int8Array", 1),
    ("Uint8Array", 1),
    ("Int16Array", 2),
    ("Uint16Array", 2),
    ("Int32Array", 4),
    ("Uint32Array", 4),
    ("BigInt64Array", 8),
    ("BigUint64Array", 8),
    ("Float16Array", 2),
    ("Float32Array", 4),
    ("Float64Array", 8),
];

fn more(rest: usize, what: &str) -> String {
    format!("... {rest} more {what}{}", if rest > 1 { "s" } else { "" })
}

impl<'js> Formatter<'_, 'js> {
    pub(super) fn array_shape(&mut self, raw: &ObjectFacts<'js>) -> ObjectFormat<'js> {
        let length = self.array_length(&raw.object);
        let own = if raw.constructor.as_deref() == Some("Array") && raw.tag.is_empty() {
            String::new()
        } else {
            prefix(raw, "Array", &format!("({length})"))
        };
        let keys = self.keys_beside_elements(&raw.object, length);
        let open = format!("{own}[");
        let alone = (length == 0 && keys.is_empty()).then(|| format!("{open}]"));
        ObjectFormat {
            base: String::new(),
            open,
            close: "]",
            keys,
            members: Members::Array,
            list: true,
            alone,
        }
    }

    fn array_length(&self, array: &Object<'js>) -> usize {
        let length = self.inspector.own_data(array, "length").and_then(|length| length.as_number());
        length.map_or(0, |length| length as usize)
    }

    fn keys_beside_elements(&self, object: &Object<'js>, length: usize) -> Vec<Value<'js>> {
        if length > SEARCHED_ELEMENTS {
            return Vec::new();
        }
        let is_index = |key: &Value<'js>| {
            key.is_number()
                || self.inspector.key_text(key).is_some_and(|text| {
                    text.parse::<u32>().is_ok_and(|index| index < u32::MAX && index.to_string() == text)
                })
        };
        self.keys(object).into_iter().filter(|key| !is_index(key)).collect()
    }

    pub(super) fn typed_array_shape(&mut self, raw: &ObjectFacts<'js>) -> ObjectFormat<'js> {
        let ObjectClass::TypedArray(element) = raw.kind else { return self.object_shape(raw, false) };
        let (name, size) = TYPED_ARRAYS.get(element as usize).copied().unwrap_or(("TypedArray", 1));
        let bytes = sys::view_bytes(&raw.object, BUFFER_BYTES);
        if raw.constructor.as_deref() == Some("Buffer") && name == "Uint8Array" {
            let alone = Some(buffer_text(bytes));
            return ObjectFormat {
                base: String::new(),
                open: String::new(),
                close: "",
                keys: Vec::new(),
                members: Members::None,
                list: false,
                alone,
            };
        }
        let length = bytes.map_or(0, |(_, length)| length / size);
        let keys = self.keys_beside_elements(&raw.object, length);
        let open = format!("{}[", prefix(raw, name, &format!("({length})")));
        let alone = (length == 0 && keys.is_empty()).then(|| format!("{open}]"));
        ObjectFormat {
            base: String::new(),
            open,
            close: "]",
            keys,
            members: Members::TypedArray,
            list: true,
            alone,
        }
    }

    pub(super) fn function_shape(&mut self, raw: &ObjectFacts<'js>) -> ObjectFormat<'js> {
        let keys = self.keys(&raw.object);
        let base = if self.is_class(&raw.object) { self.class_base(raw) } else { self.function_base(raw) };
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

    fn is_class(&self, function: &Object<'js>) -> bool {
        // A class has a read-only `prototype`; reading the source text of every function would be slow.
        let text: Option<Value> = self.inspector.call("functionToString", function.as_value());
        let Some(text) = text.and_then(Value::into_string) else { return false };
        let (start, _) = self.inspector.units(&text, 6);
        let start = String::from_utf16_lossy(&start);
        start.starts_with("class") && start[5..].chars().all(|next| next.is_whitespace() || next == '{')
    }

    fn class_base(&mut self, raw: &ObjectFacts<'js>) -> String {
        let name = self.function_name(&raw.object).filter(|name| !name.is_empty());
        let mut base = format!("class {}", name.as_deref().unwrap_or("(anonymous)"));
        match raw.constructor.as_deref() {
            Some("Function") | None => {}
            Some(constructor) => {
                let _ = write!(base, " [{constructor}]");
            }
        }
        if !raw.tag.is_empty() && raw.constructor.as_deref() != Some(raw.tag.as_str()) {
            let _ = write!(base, " [{}]", raw.tag);
        }
        if raw.constructor.is_some() {
            let parent = sys::prototype(&raw.object).and_then(|parent| self.function_name(&parent));
            if let Some(parent) = parent.filter(|parent| !parent.is_empty()) {
                let _ = write!(base, " extends {parent}");
            }
        } else {
            base.push_str(" extends null");
        }
        format!("[{base}]")
    }

    fn function_base(&mut self, raw: &ObjectFacts<'js>) -> String {
        let class = sys::class_id(&raw.object);
        let classes = self.inspector.classes;
        let kind = if class == classes.generator_function {
            "GeneratorFunction"
        } else if class == classes.async_generator_function {
            "AsyncGeneratorFunction"
        } else if class == classes.async_function {
            "AsyncFunction"
        } else {
            "Function"
        };
        let mut base = format!("[{kind}");
        if raw.constructor.is_none() {
            base.push_str(" (null prototype)");
        }
        match self.function_name(&raw.object) {
            Some(name) if !name.is_empty() => {
                let _ = write!(base, ": {name}");
            }
            _ => base.push_str(" (anonymous)"),
        }
        base.push(']');
        let constructor = raw.constructor.as_deref();
        if let Some(constructor) =
            constructor.filter(|constructor| *constructor != kind && *constructor != "Function")
        {
            let _ = write!(base, " {constructor}");
        }
        if !raw.tag.is_empty() && constructor != Some(raw.tag.as_str()) && raw.tag != kind {
            let _ = write!(base, " [{}]", raw.tag);
        }
        base
    }

    /// The format of objects with braces.
    pub(super) fn object_shape(&mut self, raw: &ObjectFacts<'js>, typed: bool) -> ObjectFormat<'js> {
        let mut keys = self.keys(&raw.object);
        let mut size = None;
        let (open, members) = match raw.kind {
            ObjectClass::Map | ObjectClass::Set => {
                let (name, getter, members) = if raw.kind == ObjectClass::Map {
                    ("Map", "mapSize", Members::Map)
                } else {
                    ("Set", "setSize", Members::Set)
                };
                let count: Option<Value> = self.inspector.call(getter, raw.object.as_value());
                let count = count.and_then(|count| count.as_number()).unwrap_or(0.0) as usize;
                size = Some(count);
                (prefix(raw, name, &format!("({count})")), members)
            }
            ObjectClass::MapIterator => ("[Map Iterator] ".to_owned(), Members::MapIterator),
            ObjectClass::SetIterator => ("[Set Iterator] ".to_owned(), Members::SetIterator),
            ObjectClass::Promise => (prefix(raw, "Promise", ""), Members::Promise),
            ObjectClass::WeakSet => (prefix(raw, "WeakSet", ""), Members::Unknown),
            ObjectClass::WeakMap => (prefix(raw, "WeakMap", ""), Members::Unknown),
            ObjectClass::WeakRef => (prefix(raw, "WeakRef", ""), Members::WeakRef),
            ObjectClass::ArrayBuffer => (prefix(raw, "ArrayBuffer", ""), Members::Buffer),
            ObjectClass::SharedArrayBuffer => (prefix(raw, "SharedArrayBuffer", ""), Members::Buffer),
            ObjectClass::DataView => (prefix(raw, "DataView", ""), Members::View),
            ObjectClass::Arguments => {
                keys = self.keys(&raw.object);
                ("[Arguments] ".to_owned(), Members::None)
            }
            ObjectClass::Generator | ObjectClass::AsyncGenerator => {
                (format!("Object [{}] ", raw.tag), Members::None)
            }
            ObjectClass::Pairs => {
                keys.clear();
                size = Some(self.array_length(&raw.object));
                (prefix(raw, "Object", ""), Members::Pairs)
            }
            ObjectClass::Namespace => ("[Module: null prototype] ".to_owned(), Members::None),
            _ if raw.constructor.as_deref() == Some("Object") && raw.tag.is_empty() => {
                (String::new(), Members::None)
            }
            _ => (prefix(raw, "Object", ""), Members::None),
        };
        let _ = typed;
        let empty = keys.is_empty() && (members == Members::None || size == Some(0));
        let alone = empty.then(|| format!("{open}{{}}"));
        ObjectFormat {
            base: String::new(),
            open: format!("{open}{{"),
            close: "}",
            keys,
            members,
            list: false,
            alone,
        }
    }

    /// Adds the members; `true`: the last one is `... n more items`.
    pub(super) fn members(
        &mut self,
        raw: &ObjectFacts<'js>,
        members: Members,
        level: usize,
        typed: bool,
        entries: &mut Vec<String>,
    ) -> bool {
        match members {
            Members::None => {}
            Members::Array => return self.elements(&raw.object, level, entries),
            Members::TypedArray => return self.typed_elements(raw, entries),
            Members::Set => {
                return self.entries_of(&raw.object, "setValues", "setNext", false, level, entries);
            }
            Members::Map => {
                return self.entries_of(&raw.object, "mapEntries", "mapNext", true, level, entries);
            }
            Members::Pairs => return self.pairs(&raw.object, level, entries),
            Members::Promise => self.promise(&raw.object, level, entries),
            Members::Unknown | Members::MapIterator | Members::SetIterator => {
                entries.push("<items unknown>".to_owned());
            }
            Members::WeakRef => {
                let target: Option<Value> = self.inspector.call("weakRefDeref", raw.object.as_value());
                let text = target.map_or("<cleared>".to_owned(), |target| {
                    self.indented(2, |this| this.value(&target, level, false))
                });
                entries.push(text);
            }
            Members::Buffer => buffer_members(&raw.object, typed, entries),
            Members::View => self.view_members(&raw.object, level, entries),
        }
        false
    }

    fn elements(&mut self, array: &Object<'js>, level: usize, entries: &mut Vec<String>) -> bool {
        let length = self.array_length(array);
        let mut index = 0;
        while index < length && entries.len() < ELEMENTS && !self.is_spent() {
            if let Some(own) = self.inspector.element(array, index) {
                entries.push(self.property_value(&own.property, level));
                index += 1;
                continue;
            }
            let next = self.next_element(array, index, length);
            let holes = next - index;
            entries.push(format!("<{holes} empty item{}>", if holes > 1 { "s" } else { "" }));
            index = next;
        }
        if index < length {
            entries.push(more(length - index, "item"));
        }
        index < length
    }

    /// The first index of the array from `from` on that is not a hole; the array's length if there is none.
    fn next_element(&self, array: &Object<'js>, from: usize, length: usize) -> usize {
        // QuickJS stores an array with holes as a hash table: it has few keys, or the search costs as much as any loop.
        self.inspector
            .keys(array, sys::Keys::EnumerableStrings)
            .iter()
            .filter_map(|key| self.inspector.key_text(key)?.parse::<usize>().ok())
            .filter(|index| *index >= from)
            .min()
            .unwrap_or(length)
            .min(length)
    }

    fn typed_elements(&mut self, raw: &ObjectFacts<'js>, entries: &mut Vec<String>) -> bool {
        let ObjectClass::TypedArray(element) = raw.kind else { return false };
        let (_, size) = TYPED_ARRAYS.get(element as usize).copied().unwrap_or(("", 1));
        let length = sys::view_bytes(&raw.object, 0).map_or(0, |(_, length)| length / size);
        for index in 0..length.min(ELEMENTS) {
            let Some(own) = self.inspector.element(&raw.object, index) else { break };
            entries.push(self.property_value(&own.property, 0));
        }
        if length > ELEMENTS {
            entries.push(more(length - ELEMENTS, "item"));
        }
        length > ELEMENTS
    }

    fn entries_of(
        &mut self,
        collection: &Object<'js>,
        iterate: &str,
        next: &str,
        pairs: bool,
        level: usize,
        entries: &mut Vec<String>,
    ) -> bool {
        let Some(iterator) = self.inspector.call::<Object>(iterate, collection.as_value()) else {
            return false;
        };
        let Some(next) = self.inspector.captured(next) else { return false };
        let size: Option<Value> =
            self.inspector.call(if pairs { "mapSize" } else { "setSize" }, collection.as_value());
        let size = size.and_then(|size| size.as_number()).unwrap_or(0.0) as usize;
        for _ in 0..size.min(ELEMENTS) {
            let Ok(step) = next.call::<_, Object>((This(iterator.clone()),)) else {
                drop(self.inspector.ctx().catch());
                break;
            };
            if self.inspector.own_data(&step, "done").and_then(|done| done.as_bool()) != Some(false) {
                break;
            }
            let Some(value) = self.inspector.own_data(&step, "value") else { break };
            let text = self.indented(2, |this| {
                if !pairs {
                    return this.value(&value, level, false);
                }
                let pair = value.as_array().map(Array::as_object).cloned();
                let part = |index: &str| pair.as_ref().and_then(|pair| this.inspector.own_data(pair, index));
                match (part("0"), part("1")) {
                    (Some(key), Some(value)) => {
                        format!("{} => {}", this.value(&key, level, false), this.value(&value, level, false))
                    }
                    _ => String::new(),
                }
            });
            entries.push(text);
            if self.is_spent() {
                break;
            }
        }
        if size > ELEMENTS {
            entries.push(more(size - ELEMENTS, "item"));
        }
        size > ELEMENTS
    }

    /// Names and values in turn.
    fn pairs(&mut self, list: &Object<'js>, level: usize, entries: &mut Vec<String>) -> bool {
        let length = self.array_length(list);
        for index in (0..length.min(2 * ELEMENTS)).step_by(2) {
            let mut text = |index| match self.inspector.element(list, index).map(|own| own.property) {
                Some(Property::Data(value)) => self.indented(2, |this| this.value(&value, level, false)),
                _ => String::new(),
            };
            let (name, value) = (text(index), text(index + 1));
            entries.push(format!("{name} => {value}"));
            if self.is_spent() {
                break;
            }
        }
        if length > 2 * ELEMENTS {
            entries.push(more(length / 2 - ELEMENTS, "item"));
        }
        length > 2 * ELEMENTS
    }

    fn promise(&mut self, promise: &Object<'js>, level: usize, entries: &mut Vec<String>) {
        let Some((state, result)) = sys::promise_result(promise.as_value()) else { return };
        entries.push(match state {
            sys::Settled::Pending => "<pending>".to_owned(),
            sys::Settled::Fulfilled => self.indented(2, |this| this.value(&result, level, false)),
            sys::Settled::Rejected => {
                format!("<rejected> {}", self.indented(2, |this| this.value(&result, level, false)))
            }
        });
    }

    fn view_members(&mut self, view: &Object<'js>, level: usize, entries: &mut Vec<String>) {
        for (key, getter) in
            [("byteLength", "viewByteLength"), ("byteOffset", "viewByteOffset"), ("buffer", "viewBuffer")]
        {
            let value: Option<Value> = self.inspector.call(getter, view.as_value());
            if let Some(value) = value {
                let text = self.indented(2, |this| this.value(&value, level, false));
                entries.push(format!("{key}: {text}"));
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    for (index, byte) in bytes.iter().enumerate() {
        let _ = write!(text, "{}{byte:02x}", if index == 0 { "" } else { " " });
    }
    text
}

fn buffer_text(bytes: Option<(Vec<u8>, usize)>) -> String {
    let (bytes, length) = bytes.unwrap_or_default();
    let mut text = format!("<Buffer {}", hex(&bytes));
    if length > bytes.len() {
        text.push(' ');
        text.push_str(&more(length - bytes.len(), "byte"));
    }
    text.push('>');
    text
}

fn buffer_members(buffer: &Object<'_>, typed: bool, entries: &mut Vec<String>) {
    let Some((bytes, length)) = sys::buffer_bytes(buffer, ELEMENTS) else {
        entries.push("(detached)".to_owned());
        entries.push("byteLength: 0".to_owned());
        return;
    };
    if !typed {
        let rest = if length > bytes.len() {
            format!(" {}", more(length - bytes.len(), "byte"))
        } else {
            String::new()
        };
        entries.push(format!("[Uint8Contents]: <{}{rest}>", hex(&bytes)));
    }
    entries.push(format!("byteLength: {length}"));
}
