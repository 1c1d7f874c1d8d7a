//! Owns the members that are shown for each kind of object: elements, entries, bytes, states.

use crate::format::{Formatter, Members, ObjectFacts, ObjectFormat, prefix};
use crate::layout::reduce;
use crate::values::{EngineValues, FunctionKind, IteratorItems, ObjectClass, Property, Settled, ShownField};
use std::fmt::Write;

/// Bytes of a `Buffer` that are shown.
const BUFFER_BYTES: usize = 50;
/// Names and sizes of typed arrays, by the number of the element type.
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

/// Name and size of a typed array with this element type.
pub(super) fn typed_array(element: u32) -> (&'static str, usize) {
    TYPED_ARRAYS.get(element as usize).copied().unwrap_or(("TypedArray", 1))
}

fn more(rest: usize, what: &str) -> String {
    format!("... {rest} more {what}{}", if rest > 1 { "s" } else { "" })
}

impl<E: EngineValues> Formatter<'_, E> {
    pub(super) fn array_shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
        let length = self.array_length(&raw.object);
        let own = if raw.constructor.as_deref() == Some("Array") && raw.tag.is_empty() {
            String::new()
        } else {
            prefix(raw, "Array", &format!("({length})"))
        };
        let keys = self.engine.keys_beside_elements(&raw.object, length);
        ObjectFormat::list(format!("{own}["), keys, Members::Array, length == 0)
    }

    fn array_length(&self, array: &E::Value) -> usize {
        let length = self.engine.own_data(array, "length").and_then(|length| self.engine.number(&length));
        length.map_or(0, |length| length as usize)
    }

    pub(super) fn typed_array_shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
        let ObjectClass::TypedArray(element) = raw.kind else { return self.object_shape(raw) };
        let (name, size) = typed_array(element);
        let bytes = self.engine.typed_array_bytes(&raw.object, BUFFER_BYTES);
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
        let keys = self.engine.keys_beside_elements(&raw.object, length);
        let open = format!("{}[", prefix(raw, name, &format!("({length})")));
        ObjectFormat::list(open, keys, Members::TypedArray, length == 0)
    }

    pub(super) fn function_shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
        let keys = self.keys(&raw.object);
        let base = match self.engine.function_kind(&raw.object) {
            FunctionKind::Class => self.class_base(raw),
            kind => self.function_base(raw, kind),
        };
        ObjectFormat::with_base(base, keys)
    }

    fn class_base(&mut self, raw: &ObjectFacts<E::Value>) -> String {
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
            let parent = self.engine.prototype(&raw.object).and_then(|parent| self.function_name(&parent));
            if let Some(parent) = parent.filter(|parent| !parent.is_empty()) {
                let _ = write!(base, " extends {parent}");
            }
        } else {
            base.push_str(" extends null");
        }
        format!("[{base}]")
    }

    fn function_base(&mut self, raw: &ObjectFacts<E::Value>, kind: FunctionKind) -> String {
        let kind = match kind {
            FunctionKind::Class | FunctionKind::Normal => "Function",
            FunctionKind::Generator => "GeneratorFunction",
            FunctionKind::Async => "AsyncFunction",
            FunctionKind::AsyncGenerator => "AsyncGeneratorFunction",
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
    pub(super) fn object_shape(&mut self, raw: &ObjectFacts<E::Value>) -> ObjectFormat<E::Key> {
        let mut keys = self.keys(&raw.object);
        let mut size = None;
        let (open, members) = match raw.kind {
            ObjectClass::Map | ObjectClass::Set => {
                let (name, count, members) = if raw.kind == ObjectClass::Map {
                    ("Map", self.engine.map_entries(&raw.object, 0).1, Members::Map)
                } else {
                    ("Set", self.engine.set_values(&raw.object, 0).1, Members::Set)
                };
                size = Some(count);
                (prefix(raw, name, &format!("({count})")), members)
            }
            ObjectClass::MapIterator | ObjectClass::SetIterator => {
                (self.iterator_open(raw), Members::Iterator)
            }
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
            ObjectClass::Plain if self.engine.fields(&raw.object).is_some() => {
                (prefix(raw, "Object", ""), Members::Fields)
            }
            ObjectClass::Namespace => ("[Module: null prototype] ".to_owned(), Members::None),
            _ if raw.constructor.as_deref() == Some("Object") && raw.tag.is_empty() => {
                (String::new(), Members::None)
            }
            _ => (prefix(raw, "Object", ""), Members::None),
        };
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
        raw: &ObjectFacts<E::Value>,
        members: Members,
        level: usize,
        typed: bool,
        entries: &mut Vec<String>,
    ) -> bool {
        match members {
            Members::None => {}
            Members::Array => return self.elements(&raw.object, level, entries),
            Members::TypedArray => return self.typed_elements(raw, entries),
            Members::Set => return self.values_of_set(&raw.object, level, entries),
            Members::Map => return self.entries_of_map(&raw.object, level, entries),
            Members::Pairs => return self.pairs(&raw.object, level, entries),
            Members::Fields => self.fields(&raw.object, level, entries),
            Members::Promise => self.promise(&raw.object, level, entries),
            Members::Unknown => entries.push("<items unknown>".to_owned()),
            Members::Iterator => return self.rest_of_iterator(&raw.object, level, entries),
            Members::WeakRef => {
                let target = self.engine.weak_target(&raw.object);
                let text = target.map_or("<cleared>".to_owned(), |target| {
                    self.indented(2, |this| this.value(&target, level, false))
                });
                entries.push(text);
            }
            Members::Buffer => {
                buffer_members(self.engine.buffer_bytes(&raw.object, self.rules.elements), typed, entries);
            }
            Members::View => self.view_members(&raw.object, level, entries),
        }
        false
    }

    fn elements(&mut self, array: &E::Value, level: usize, entries: &mut Vec<String>) -> bool {
        let length = self.array_length(array);
        let mut index = 0;
        while index < length && entries.len() < self.rules.elements && !self.is_spent() {
            if let Some(own) = self.engine.element(array, index) {
                entries.push(self.property_value(&own.property, level));
                index += 1;
                continue;
            }
            let next = self.engine.next_element(array, index).unwrap_or(length).min(length);
            let holes = next - index;
            entries.push(format!("<{holes} empty item{}>", if holes > 1 { "s" } else { "" }));
            index = next;
        }
        if index < length {
            entries.push(more(length - index, "item"));
        }
        index < length
    }

    fn typed_elements(&mut self, raw: &ObjectFacts<E::Value>, entries: &mut Vec<String>) -> bool {
        let ObjectClass::TypedArray(element) = raw.kind else { return false };
        let (_, size) = typed_array(element);
        let length = self.engine.typed_array_bytes(&raw.object, 0).map_or(0, |(_, length)| length / size);
        for index in 0..length.min(self.rules.elements) {
            if let Some(digits) = self.engine.bigint_element(&raw.object, index) {
                entries.push(digits + "n");
                continue;
            }
            let Some(own) = self.engine.element(&raw.object, index) else { break };
            entries.push(self.property_value(&own.property, 0));
        }
        if length > self.rules.elements {
            entries.push(more(length - self.rules.elements, "item"));
        }
        length > self.rules.elements
    }

    fn values_of_set(&mut self, set: &E::Value, level: usize, entries: &mut Vec<String>) -> bool {
        let (values, size) = self.engine.set_values(set, self.rules.elements);
        for value in values {
            entries.push(self.indented(2, |this| this.value(&value, level, false)));
            if self.is_spent() {
                break;
            }
        }
        self.more_entries(size, entries)
    }

    fn entries_of_map(&mut self, map: &E::Value, level: usize, entries: &mut Vec<String>) -> bool {
        let (pairs, size) = self.engine.map_entries(map, self.rules.elements);
        for (key, value) in pairs {
            entries.push(self.indented(2, |this| {
                format!("{} => {}", this.value(&key, level, false), this.value(&value, level, false))
            }));
            if self.is_spent() {
                break;
            }
        }
        self.more_entries(size, entries)
    }

    /// `[Map Iterator] `, `[tag] [Set Entries] `.
    fn iterator_open(&self, raw: &ObjectFacts<E::Value>) -> String {
        let collection = if raw.kind == ObjectClass::MapIterator { "Map" } else { "Set" };
        let what = if self.engine.iterates_entries(&raw.object) { "Entries" } else { "Iterator" };
        let own_tag = match raw.tag.as_str() {
            "" => String::new(),
            tag if tag == format!("{collection} Iterator") => String::new(),
            tag => format!("[{tag}] "),
        };
        format!("{own_tag}[{collection} {what}] ")
    }

    fn rest_of_iterator(&mut self, iterator: &E::Value, level: usize, entries: &mut Vec<String>) -> bool {
        let Some((items, size)) = self.engine.iterator_items(iterator, self.rules.elements) else {
            entries.push("<items unknown>".to_owned());
            return false;
        };
        match items {
            IteratorItems::Values(values) => {
                for value in &values {
                    entries.push(self.indented(2, |this| this.value(value, level, false)));
                    if self.is_spent() {
                        break;
                    }
                }
            }
            IteratorItems::Entries(pairs) => {
                for pair in &pairs {
                    entries.push(self.indented(2, |this| this.pair(pair, level)));
                    if self.is_spent() {
                        break;
                    }
                }
            }
        }
        self.more_entries(size, entries)
    }

    /// `[ key, value ]`, on lines of their own if they are long.
    fn pair(&mut self, (key, value): &(E::Value, E::Value), level: usize) -> String {
        let texts = vec![self.value(key, level, false), self.value(value, level, false)];
        let below = self.current_depth - level;
        reduce(texts, "", ("[", "]"), self.indentation, below, (None, self.rules))
    }

    fn more_entries(&self, size: usize, entries: &mut Vec<String>) -> bool {
        if size > self.rules.elements {
            entries.push(more(size - self.rules.elements, "item"));
        }
        size > self.rules.elements
    }

    /// Names and values in turn.
    fn pairs(&mut self, list: &E::Value, level: usize, entries: &mut Vec<String>) -> bool {
        let length = self.array_length(list);
        for index in (0..length.min(2 * self.rules.elements)).step_by(2) {
            let mut text = |index| match self.engine.element(list, index).map(|own| own.property) {
                Some(Property::Data(value)) => self.indented(2, |this| this.value(&value, level, false)),
                _ => String::new(),
            };
            let (name, value) = (text(index), text(index + 1));
            entries.push(format!("{name} => {value}"));
            if self.is_spent() {
                break;
            }
        }
        if length > 2 * self.rules.elements {
            entries.push(more(length / 2 - self.rules.elements, "item"));
        }
        length > 2 * self.rules.elements
    }

    fn fields(&mut self, object: &E::Value, level: usize, entries: &mut Vec<String>) {
        for (name, field) in self.engine.fields(object).unwrap_or_default() {
            let text = self.indented(2, |this| match &field {
                ShownField::Text(text) => this.field_text(text),
                ShownField::Value(value) => this.value(value, level, false),
                ShownField::Pairs(class, _) if level > this.depth => format!("[{class}]"),
                ShownField::Pairs(class, pairs) if pairs.is_empty() => format!("{class} {{}}"),
                ShownField::Pairs(class, pairs) => {
                    let shown = pairs.iter().take(this.rules.elements);
                    let mut texts: Vec<String> = shown
                        .map(|(name, value)| {
                            format!("{} => {}", this.field_text(name), this.field_text(value))
                        })
                        .collect();
                    this.more_entries(pairs.len(), &mut texts);
                    let braces = (&*format!("{class} {{"), "}");
                    reduce(texts, "", braces, this.indentation, 0, (None, this.rules))
                }
            });
            entries.push(format!("{name}: {text}"));
            if self.is_spent() {
                break;
            }
        }
    }

    fn field_text(&self, text: &str) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.quoted(&units, false, units.len())
    }

    fn promise(&mut self, promise: &E::Value, level: usize, entries: &mut Vec<String>) {
        let Some((state, result)) = self.engine.promise(promise) else { return };
        entries.push(match state {
            Settled::Pending => "<pending>".to_owned(),
            Settled::Fulfilled => self.indented(2, |this| this.value(&result, level, false)),
            Settled::Rejected => {
                format!("<rejected> {}", self.indented(2, |this| this.value(&result, level, false)))
            }
        });
    }

    fn view_members(&mut self, view: &E::Value, level: usize, entries: &mut Vec<String>) {
        let Some(values) = self.engine.data_view(view) else { return };
        for (key, value) in ["byteLength", "byteOffset", "buffer"].into_iter().zip(&values) {
            let text = self.indented(2, |this| this.value(value, level, false));
            entries.push(format!("{key}: {text}"));
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

fn buffer_members(bytes: Option<(Vec<u8>, usize)>, typed: bool, entries: &mut Vec<String>) {
    let Some((bytes, length)) = bytes else {
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
