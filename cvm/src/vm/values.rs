//! The values of a state as the shared inspector reads them. Runs no code, and changes nothing: lazy properties of functions
//! are not created.

use super::Vm;
use super::convert::big_to_number;
use crate::builtins::collections::{MAP_ITERATOR, SET_ITERATOR};
use crate::builtins::ids;
use crate::heap::object::{Code, EntryTable, ObjectKind, attr};
use crate::program::flag;
use crate::pure::{date, number, regexp};
use crate::value::{Id, Key, Value};
use vm_system_inspect::{
    Boxed, EngineValues, FunctionKind, IteratorItems, IteratorRest, MapEntries, ObjectClass, OwnKey,
    Property, Settled, ShownFields, Uninitialized, ValueType,
};

/// Longest chain of proxies that is followed.
const PROXIES: usize = 1_000;
/// Tags of the prelude's records.
const WEAK_MAP: u32 = 912;
const WEAK_SET: u32 = 913;
const WEAK_REF: u32 = 914;

impl Vm<'_> {
    fn kind_of(&self, value: &Value) -> &ObjectKind {
        &self.st.heap.obj(value.as_obj().unwrap_or(Id::NONE)).kind
    }

    /// Flags of a compiled function's template.
    fn template_flags(&self, value: &Value) -> u16 {
        match self.kind_of(value) {
            ObjectKind::Function(f) => match f.code {
                Code::Template(number) => self.p.template(number).flags,
                Code::Native(_) => 0,
            },
            _ => 0,
        }
    }

    fn shown_property(&self, value: Value, flags: u8) -> OwnKey<Value> {
        let property = if flags & attr::ACCESSOR != 0 {
            let (get, set) = self.st.heap.pair(value);
            Property::Accessor { get: get != Value::Undefined, set: set != Value::Undefined }
        } else {
            Property::Data(value)
        };
        OwnKey { property, enumerable: flags & attr::E != 0 }
    }

    fn index_of(&self, key: Key) -> Option<u32> {
        key.as_index().or_else(|| self.large_index(key))
    }
}

/// The live entries of a table, at most `most`, and the number of all.
fn entries(table: &EntryTable, most: usize) -> MapEntries<Value> {
    let live = table.entries.iter().filter(|entry| entry.0 != Value::Hole);
    (live.take(most).copied().collect(), table.live as usize)
}

impl EngineValues for Vm<'_> {
    type Value = Value;
    type Key = Key;

    /// The bound of a text, which is that of a session's values.
    const TEXT_BYTES: usize = 256 * 1024;

    fn value_type(&self, value: &Value) -> ValueType {
        match value {
            Value::Undefined | Value::Hole | Value::Uninit | Value::Cell(_) => ValueType::Undefined,
            Value::Null => ValueType::Null,
            Value::Bool(_) => ValueType::Boolean,
            Value::Int(_) | Value::Num(_) => ValueType::Number,
            Value::Str(_) => ValueType::String,
            Value::Sym(_) => ValueType::Symbol,
            Value::Big(_) => ValueType::Bigint,
            Value::Obj(_) => ValueType::Object,
        }
    }

    fn number(&self, value: &Value) -> Option<f64> {
        value.as_num()
    }

    fn value_of_number(&self, number: f64) -> Value {
        Value::num(number)
    }

    fn truthy(&self, value: &Value) -> bool {
        Vm::truthy(self, *value)
    }

    fn primitive(&self, value: &Value) -> String {
        self.plain_text(*value)
    }

    fn to_number(&self, value: &Value) -> f64 {
        match *value {
            Value::Null => 0.0,
            Value::Bool(b) => f64::from(u8::from(b)),
            Value::Str(id) => number::string_to_number(&self.st.heap.str(id)),
            Value::Big(id) => big_to_number(&self.st.heap.big(id)),
            other => other.as_num().unwrap_or(f64::NAN),
        }
    }

    fn symbol(&self, value: &Value) -> String {
        match value {
            Value::Sym(id) => self.symbol_text(*id),
            _ => String::new(),
        }
    }

    fn string_units(&self, string: &Value) -> usize {
        match string {
            Value::Str(id) => self.st.heap.str(*id).len(),
            _ => 0,
        }
    }

    fn units(&self, string: &Value, most: usize) -> (Vec<u16>, bool) {
        let Value::Str(id) = string else { return (Vec::new(), false) };
        let text = self.st.heap.str(*id);
        (text.slice(0, text.len().min(most)).to_wide(), text.len() > most)
    }

    fn text(&self, string: &Value, most: usize) -> String {
        let Value::Str(id) = string else { return String::new() };
        let text = self.st.heap.str(*id);
        // No unit is shorter than a byte: what is behind `most` units is cut in any case.
        vm_system_inspect::cut_to(text.slice(0, text.len().min(most + 1)).to_utf8(), most)
    }

    fn identity(&self, object: &Value) -> usize {
        object.as_obj().map_or(0, Id::index)
    }

    fn class(&self, object: &Value) -> ObjectClass {
        match self.kind_of(object) {
            ObjectKind::Plain if self.is_namespace(*object) => ObjectClass::Namespace,
            ObjectKind::Plain | ObjectKind::Weak(_) => ObjectClass::Plain,
            ObjectKind::Array(_) => ObjectClass::Array,
            ObjectKind::Arguments(_) => ObjectClass::Arguments,
            ObjectKind::Function(_) | ObjectKind::Bound(_) => ObjectClass::Function,
            ObjectKind::Error => ObjectClass::Error,
            ObjectKind::Primitive(value) => ObjectClass::Boxed(match value {
                Value::Str(_) => Boxed::String,
                Value::Bool(_) => Boxed::Boolean,
                Value::Sym(_) => Boxed::Symbol,
                Value::Big(_) => Boxed::Bigint,
                _ => Boxed::Number,
            }),
            ObjectKind::Date(_) => ObjectClass::Date,
            ObjectKind::RegExp(..) => ObjectClass::RegExp,
            ObjectKind::Map(_) => ObjectClass::Map,
            ObjectKind::Set(_) => ObjectClass::Set,
            ObjectKind::Coroutine(coroutine) => {
                if self.p.template(coroutine.template).is(flag::ASYNC) {
                    ObjectClass::AsyncGenerator
                } else {
                    ObjectClass::Generator
                }
            }
            ObjectKind::Promise(_) => ObjectClass::Promise,
            ObjectKind::Record(WEAK_MAP, _) => ObjectClass::WeakMap,
            ObjectKind::Record(WEAK_SET, _) => ObjectClass::WeakSet,
            ObjectKind::Record(WEAK_REF, _) => ObjectClass::WeakRef,
            ObjectKind::Record(MAP_ITERATOR, _) => ObjectClass::MapIterator,
            ObjectKind::Record(SET_ITERATOR, _) => ObjectClass::SetIterator,
            ObjectKind::Record(..) => ObjectClass::Plain,
            ObjectKind::Proxy(_) => ObjectClass::Proxy,
            ObjectKind::Buffer(_) => ObjectClass::ArrayBuffer,
            ObjectKind::View(view) => {
                view.element.map_or(ObjectClass::DataView, |element| ObjectClass::TypedArray(element as u32))
            }
        }
    }

    fn behind_proxies(&self, object: &Value) -> Option<Value> {
        let mut value = *object;
        for _ in 0..PROXIES {
            match self.kind_of(&value) {
                ObjectKind::Proxy(proxy) if proxy.1 == Value::Null => return None,
                ObjectKind::Proxy(proxy) => value = proxy.0,
                _ => return value.is_object().then_some(value),
            }
        }
        None
    }

    fn is_callable(&self, value: &Value) -> bool {
        Vm::is_callable(self, *value)
    }

    fn prototype(&self, object: &Value) -> Option<Value> {
        self.st.heap.obj(object.as_obj()?).proto.some().map(Value::Obj)
    }

    fn view(
        &self,
        object: &Value,
        _class: ObjectClass,
        _constructor: Option<&str>,
    ) -> Option<(Value, ObjectClass)> {
        Some((self.shown_pairs(*object)?, ObjectClass::Pairs))
    }

    fn fields(&self, object: &Value) -> Option<ShownFields<Value>> {
        self.shown_fields(*object)
    }

    fn own(&self, object: &Value, key: &Key) -> Result<Option<OwnKey<Value>>, Uninitialized> {
        let Some(id) = object.as_obj() else { return Ok(None) };
        if let ObjectKind::Function(f) = self.kind_of(object)
            && f.lazy
            && *key == ids::key(ids::NAME)
            && let Code::Template(number) = f.code
        {
            let name = self.template_name_value(number);
            return Ok(matches!(name, Value::Str(_)).then(|| self.shown_property(name, attr::C)));
        }
        let Some(own) = Vm::own(self, id, *key) else { return Ok(None) };
        let is_accessor = own.flags & attr::ACCESSOR != 0;
        match is_accessor.then(|| self.exported_value(own.value)).flatten() {
            Some(Value::Uninit) => Err(Uninitialized),
            Some(value) => Ok(Some(self.shown_property(value, own.flags & !attr::ACCESSOR))),
            None => Ok(Some(self.shown_property(own.value, own.flags))),
        }
    }

    fn element(&self, list: &Value, index: usize) -> Option<OwnKey<Value>> {
        let index = u32::try_from(index).ok().filter(|index| *index <= Key::MAX_INDEX)?;
        Vm::own(self, list.as_obj()?, Key::index(index)).map(|own| self.shown_property(own.value, own.flags))
    }

    fn next_element(&self, list: &Value, from: usize) -> Option<usize> {
        let object = self.st.heap.obj(list.as_obj()?);
        let (ObjectKind::Array(array) | ObjectKind::Arguments(array)) = &object.kind else { return None };
        let dense = array.dense.iter().enumerate().skip(from).find(|(_, value)| **value != Value::Hole);
        let sparse = object.props.iter().filter_map(|p| self.index_of(p.key)).map(|index| index as usize);
        let sparse = sparse.filter(|index| *index >= from).min();
        dense.map(|(index, _)| index).into_iter().chain(sparse).min()
    }

    fn keys_beside_elements(&self, list: &Value, _length: usize) -> Vec<Key> {
        let Some(id) = list.as_obj() else { return Vec::new() };
        let props = self.st.heap.obj(id).props.iter();
        let enumerable = props.filter(|p| p.flags & attr::E != 0 && self.index_of(p.key).is_none());
        let (symbols, names): (Vec<Key>, Vec<Key>) = enumerable
            .map(|p| p.key)
            .filter(|key| !self.st.heap.key_is_private(*key))
            .partition(|key| self.st.heap.key_is_symbol(*key));
        names.into_iter().chain(symbols).collect()
    }

    fn key(&self, name: &str) -> Option<Key> {
        self.st.heap.find_key_of(name)
    }

    fn to_string_tag(&self) -> Option<Key> {
        Some(ids::key(ids::SYM_TO_STRING_TAG))
    }

    fn keys(&self, object: &Value, symbols: bool, most: usize) -> Vec<Key> {
        let Some(id) = object.as_obj() else { return Vec::new() };
        self.present_keys(id)
            .into_iter()
            .filter(|key| symbols || !self.st.heap.key_is_symbol(*key))
            .filter(|key| Vm::own(self, id, *key).is_some_and(|own| own.flags & attr::E != 0))
            .take(most)
            .collect()
    }

    fn key_units(&self, key: &Key, most: usize) -> Option<(Vec<u16>, bool)> {
        if let Some(index) = key.as_index() {
            return Some((index.to_string().encode_utf16().collect(), false));
        }
        let id = key.as_cell().filter(|id| self.st.heap.symbol(*id).is_none())?;
        Some(self.units(&Value::Str(id), most))
    }

    fn key_symbol(&self, key: &Key) -> Vec<u16> {
        let symbol = key.as_cell().and_then(|id| self.st.heap.symbol(id));
        symbol.map_or_else(Vec::new, |symbol| self.units(&symbol.description, usize::MAX).0)
    }

    fn unboxed(&self, object: &Value) -> Option<Value> {
        match self.kind_of(object) {
            ObjectKind::Primitive(value) => Some(*value),
            _ => None,
        }
    }

    fn date(&self, object: &Value) -> Option<String> {
        match self.kind_of(object) {
            ObjectKind::Date(time) => date::to_iso_string(*time),
            _ => None,
        }
    }

    fn regexp(&self, object: &Value) -> (String, String) {
        match self.kind_of(object) {
            ObjectKind::RegExp(Value::Str(source), flags) => {
                let source = regexp::escape_pattern(&self.st.heap.str(*source).to_wide());
                (String::from_utf16_lossy(&source), self.plain_text(*flags))
            }
            _ => Default::default(),
        }
    }

    fn function_kind(&self, function: &Value) -> FunctionKind {
        let flags = self.template_flags(function);
        let is = |wanted: u16| flags & wanted != 0;
        match (is(flag::CLASS), is(flag::GENERATOR), is(flag::ASYNC)) {
            (true, ..) => FunctionKind::Class,
            (_, true, true) => FunctionKind::AsyncGenerator,
            (_, true, false) => FunctionKind::Generator,
            (_, false, true) => FunctionKind::Async,
            _ => FunctionKind::Normal,
        }
    }

    fn error_stack(&self, error: &Value) -> Option<String> {
        self.stack_of(error.as_obj()?).map(|text| self.string(&Value::Str(text)))
    }

    fn map_entries(&self, map: &Value, most: usize) -> MapEntries<Value> {
        match self.kind_of(map) {
            ObjectKind::Map(table) => entries(table, most),
            _ => Default::default(),
        }
    }

    fn set_values(&self, set: &Value, most: usize) -> (Vec<Value>, usize) {
        match self.kind_of(set) {
            ObjectKind::Set(table) => {
                let (entries, count) = entries(table, most);
                (entries.into_iter().map(|entry| entry.0).collect(), count)
            }
            _ => Default::default(),
        }
    }

    fn iterator_items(&self, iterator: &Value, most: usize) -> Option<IteratorRest<Value>> {
        let ObjectKind::Record(_, slots) = self.kind_of(iterator) else { return None };
        let [collection, after, kind] = slots.as_slice() else { return None };
        let after = after.as_num().unwrap_or(-1.0);
        // One that has ended has no collection.
        let table = collection.as_obj().and_then(|collection| self.table(collection));
        let numbered = table.iter().flat_map(|table| table.entries.iter().zip(&table.order));
        let live = numbered.filter(|(entry, number)| entry.0 != Value::Hole && **number as f64 > after);
        let all = live.clone().count();
        let shown = live.map(|(entry, _)| *entry).take(most);
        let items = match kind {
            Value::Int(2) => IteratorItems::Entries(shown.collect()),
            Value::Int(0) => IteratorItems::Values(shown.map(|entry| entry.0).collect()),
            _ => IteratorItems::Values(shown.map(|entry| entry.1).collect()),
        };
        Some((items, all))
    }

    fn iterates_entries(&self, iterator: &Value) -> bool {
        let ObjectKind::Record(_, slots) = self.kind_of(iterator) else { return false };
        matches!(slots.as_slice(), [_, _, Value::Int(2)])
    }

    fn promise(&self, promise: &Value) -> Option<(Settled, Value)> {
        let ObjectKind::Promise(promise) = self.kind_of(promise) else { return None };
        let state = match promise.state {
            0 => Settled::Pending,
            1 => Settled::Fulfilled,
            _ => Settled::Rejected,
        };
        Some((state, promise.result))
    }

    fn weak_target(&self, reference: &Value) -> Option<Value> {
        match self.kind_of(reference) {
            ObjectKind::Record(WEAK_REF, slots) => slots.first().copied(),
            _ => None,
        }
    }

    fn buffer_bytes(&self, buffer: &Value, most: usize) -> Option<(Vec<u8>, usize)> {
        let buffer = self.st.heap.buffer(buffer.as_obj()?).filter(|buffer| !buffer.detached)?;
        let bytes = buffer.bytes.as_slice();
        Some((bytes.get(..most).unwrap_or(bytes).to_vec(), bytes.len()))
    }

    fn typed_array_bytes(&self, array: &Value, most: usize) -> Option<(Vec<u8>, usize)> {
        let view = self.st.heap.typed_array(*array)?;
        let range = self.st.heap.range_of(view, 0, self.st.heap.count_of(view)?)?;
        let bytes = self.st.heap.bytes_at(view.buffer, range)?;
        Some((bytes.get(..most).unwrap_or(bytes).to_vec(), bytes.len()))
    }

    fn bigint_element(&self, array: &Value, index: usize) -> Option<String> {
        self.big_element_text(*array, index)
    }

    fn data_view(&self, view: &Value) -> Option<[Value; 3]> {
        let view = self.st.heap.view(*view)?;
        let count = self.st.heap.count_of(view)?;
        Some([Value::count(count), Value::num(view.offset as f64), Value::Obj(view.buffer)])
    }

    fn json(&self, value: &Value) -> Option<String> {
        let has_none =
            matches!(self.value_type(value), ValueType::Undefined | ValueType::Symbol | ValueType::Bigint);
        if has_none || Vm::is_callable(self, *value) { None } else { self.export_json(*value).ok() }
    }

    fn calls(&self) -> String {
        self.stack_text()
    }
}
