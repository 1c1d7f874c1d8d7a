//! Owns the values of QuickJS as the shared inspector reads them.
//!
//! Internals are read through functions that were captured before any script ran.

use super::Inspector;
use super::classify::behind_proxies;
use super::sys::{continue_at, iterated};
use crate::engine::{preview, sys};
use rquickjs::function::This;
use rquickjs::{Array, Coerced, Object, Value};
use vm_system_inspect::{
    Boxed, EngineValues, FunctionKind, IteratorItems, IteratorRest, MapEntries, ObjectClass, OwnKey, Settled,
    Uninitialized, ValueType,
};
use vm_system_protocol::limits::EVENT_TEXT_BYTES;

impl<'js> EngineValues for Inspector<'js> {
    type Value = Value<'js>;
    type Key = Value<'js>;

    const TEXT_BYTES: usize = EVENT_TEXT_BYTES;

    fn value_type(&self, value: &Value<'js>) -> ValueType {
        if value.is_string() {
            ValueType::String
        } else if value.is_object() {
            ValueType::Object
        } else if value.is_number() {
            ValueType::Number
        } else if value.is_undefined() {
            ValueType::Undefined
        } else if value.is_null() {
            ValueType::Null
        } else if value.is_bool() {
            ValueType::Boolean
        } else if value.is_symbol() {
            ValueType::Symbol
        } else if value.is_big_int() {
            ValueType::Bigint
        } else {
            ValueType::Undefined
        }
    }

    fn number(&self, value: &Value<'js>) -> Option<f64> {
        value.as_number()
    }

    fn value_of_number(&self, number: f64) -> Value<'js> {
        Value::new_number(self.ctx.clone(), number)
    }

    fn truthy(&self, value: &Value<'js>) -> bool {
        match self.value_type(value) {
            ValueType::Undefined | ValueType::Null => false,
            ValueType::Boolean => value.as_bool() == Some(true),
            ValueType::Number => value.as_number().is_some_and(|number| number != 0.0 && !number.is_nan()),
            ValueType::String => value.as_string().is_some_and(|text| sys::string_units(text) != 0),
            ValueType::Bigint => Inspector::primitive(self, value) != "0",
            ValueType::Symbol | ValueType::Object => true,
        }
    }

    fn primitive(&self, value: &Value<'js>) -> String {
        Inspector::primitive(self, value)
    }

    fn to_number(&self, value: &Value<'js>) -> f64 {
        value.get::<Coerced<f64>>().map_or(f64::NAN, |number| number.0)
    }

    fn symbol(&self, value: &Value<'js>) -> String {
        Inspector::symbol(self, value)
    }

    fn string_units(&self, string: &Value<'js>) -> usize {
        string.as_string().map_or(0, sys::string_units)
    }

    fn units(&self, string: &Value<'js>, most: usize) -> (Vec<u16>, bool) {
        string.as_string().map_or_else(Default::default, |string| Inspector::units(self, string, most))
    }

    fn text(&self, string: &Value<'js>, most: usize) -> String {
        string.as_string().map_or_else(String::new, |string| Inspector::text(self, string, most))
    }

    fn identity(&self, object: &Value<'js>) -> usize {
        sys::identity(object)
    }

    fn class(&self, object: &Value<'js>) -> ObjectClass {
        object.as_object().map_or(ObjectClass::Plain, |object| self.classes.kind(object))
    }

    fn behind_proxies(&self, object: &Value<'js>) -> Option<Value<'js>> {
        if object.as_object().is_some_and(|object| object.is_proxy()) {
            behind_proxies(object).filter(Value::is_object)
        } else {
            Some(object.clone())
        }
    }

    fn is_callable(&self, value: &Value<'js>) -> bool {
        value.is_function()
    }

    fn own_data(&self, object: &Value<'js>, name: &str) -> Option<Value<'js>> {
        Inspector::own_data(self, object.as_object()?, name)
    }

    fn prototype(&self, object: &Value<'js>) -> Option<Value<'js>> {
        sys::prototype(object.as_object()?).map(Object::into_value)
    }

    fn view(
        &self,
        object: &Value<'js>,
        class: ObjectClass,
        constructor: Option<&str>,
    ) -> Option<(Value<'js>, ObjectClass)> {
        if class != ObjectClass::Plain || constructor.is_none_or(|name| name == "Object") {
            return None;
        }
        // Runs functions of the prelude, which read private fields only.
        let view = self.call_with::<Value>("view", (object.clone(),)).filter(Value::is_object)?;
        // A list is names and values in turn.
        let class = if view.is_array() { ObjectClass::Pairs } else { class };
        Some((view, class))
    }

    fn own(
        &self,
        object: &Value<'js>,
        key: &Value<'js>,
    ) -> Result<Option<OwnKey<Value<'js>>>, Uninitialized> {
        let Some(object) = object.as_object() else { return Ok(None) };
        sys::own_property(object, key).map_err(|_| {
            drop(self.ctx.catch());
            Uninitialized
        })
    }

    fn element(&self, list: &Value<'js>, index: usize) -> Option<OwnKey<Value<'js>>> {
        Inspector::element(self, list.as_object()?, index)
    }

    fn key(&self, name: &str) -> Option<Value<'js>> {
        Inspector::key(self, name)
    }

    fn to_string_tag(&self) -> Option<Value<'js>> {
        self.captured.as_ref()?.get("toStringTag").ok()
    }

    fn keys(&self, object: &Value<'js>, symbols: bool, most: usize) -> Vec<Value<'js>> {
        let Some(object) = object.as_object() else { return Vec::new() };
        let which = if symbols { sys::Keys::Enumerable } else { sys::Keys::EnumerableStrings };
        let keys = sys::own_keys(object, which, most);
        keys.map(|(keys, _)| keys).map_err(|_| drop(self.ctx.catch())).unwrap_or_default()
    }

    fn key_units(&self, key: &Value<'js>, most: usize) -> Option<(Vec<u16>, bool)> {
        if key.is_symbol() {
            return None;
        }
        Some(match key.as_string() {
            Some(text) => Inspector::units(self, text, most),
            None => (Inspector::primitive(self, key).encode_utf16().collect(), false),
        })
    }

    fn key_symbol(&self, key: &Value<'js>) -> Vec<u16> {
        let description: Option<Value> = self.call("symbolDescription", key);
        let description = description.and_then(Value::into_string);
        description.map_or_else(Vec::new, |text| Inspector::units(self, &text, EVENT_TEXT_BYTES).0)
    }

    fn unboxed(&self, object: &Value<'js>) -> Option<Value<'js>> {
        let ObjectClass::Boxed(boxed) = self.class(object) else { return None };
        let unwrap = match boxed {
            Boxed::Number => "numberValueOf",
            Boxed::String => "stringValueOf",
            Boxed::Boolean => "booleanValueOf",
            Boxed::Symbol => "symbolValueOf",
            Boxed::Bigint => "bigintValueOf",
        };
        self.call(unwrap, object)
    }

    fn date(&self, date: &Value<'js>) -> Option<String> {
        let iso: Option<Value> = self.call("dateToISOString", date);
        iso.and_then(Value::into_string).and_then(|text| text.to_string().ok())
    }

    fn regexp(&self, regexp: &Value<'js>) -> (String, String) {
        let source: Option<Value> = self.call("regexpSource", regexp);
        let source = source.and_then(Value::into_string).map(|source| self.string(&source));
        let mut flags = String::new();
        for letter in ["d", "g", "i", "m", "s", "u", "v", "y"] {
            let set: Option<Value> = self.call(&format!("regexpFlag_{letter}"), regexp);
            if set.and_then(|set| set.as_bool()) == Some(true) {
                flags.push_str(letter);
            }
        }
        (source.unwrap_or_default(), flags)
    }

    fn function_kind(&self, function: &Value<'js>) -> FunctionKind {
        let text: Option<Value> = self.call("functionToString", function);
        let text = text.and_then(Value::into_string).map(|text| Inspector::units(self, &text, 6).0);
        let start = String::from_utf16_lossy(&text.unwrap_or_default());
        if let Some(rest) = start.strip_prefix("class")
            && rest.chars().all(|next| next.is_whitespace() || next == '{')
        {
            return FunctionKind::Class;
        }
        let Some(function) = function.as_object() else { return FunctionKind::Normal };
        let class = sys::class_id(function);
        if class == self.classes.generator_function {
            FunctionKind::Generator
        } else if class == self.classes.async_generator_function {
            FunctionKind::AsyncGenerator
        } else if class == self.classes.async_function {
            FunctionKind::Async
        } else {
            FunctionKind::Normal
        }
    }

    fn dom_exception(&self, object: &Value<'js>) -> Option<(String, String)> {
        if !self.is_dom_exception(object.as_object()?) {
            return None;
        }
        let part = |getter| self.call::<Value>(getter, object).and_then(Value::into_string);
        let part = |getter| part(getter).map(|text| self.string(&text)).unwrap_or_default();
        Some((part("domExceptionName"), part("domExceptionMessage")))
    }

    fn error_stack(&self, error: &Value<'js>) -> Option<String> {
        let stack = match Inspector::own_data(self, error.as_object()?, "stack") {
            Some(stack) => Some(stack),
            None => self.call::<Value>("errorStack", error),
        };
        stack.and_then(Value::into_string).map(|stack| self.string(&stack))
    }

    fn map_entries(&self, map: &Value<'js>, most: usize) -> MapEntries<Value<'js>> {
        let (entries, size) = self.iterated(map, "mapSize", "mapEntries", "mapNext", most);
        (entries.into_iter().filter_map(|entry| self.pair(&entry)).collect(), size)
    }

    fn set_values(&self, set: &Value<'js>, most: usize) -> (Vec<Value<'js>>, usize) {
        self.iterated(set, "setSize", "setValues", "setNext", most)
    }

    fn iterator_items(&self, iterator: &Value<'js>, most: usize) -> Option<IteratorRest<Value<'js>>> {
        let iterator = iterator.as_object()?;
        let (collection, entries) = iterated(iterator)?;
        let (values, all) = if collection.is_undefined() {
            Default::default()
        } else {
            let (iterate, next) = match self.classes.kind(iterator) {
                ObjectClass::MapIterator => ("mapEntries", "mapNext"),
                _ => ("setValues", "setNext"),
            };
            let copy = self.call::<Object>(iterate, &collection)?;
            if !continue_at(&copy, iterator) {
                return None;
            }
            self.steps(&copy, next, most, usize::MAX)
        };
        let items = if entries {
            IteratorItems::Entries(values.into_iter().filter_map(|entry| self.pair(&entry)).collect())
        } else {
            IteratorItems::Values(values)
        };
        Some((items, all))
    }

    fn iterates_entries(&self, iterator: &Value<'js>) -> bool {
        iterator.as_object().and_then(iterated).is_some_and(|(_, entries)| entries)
    }

    fn promise(&self, promise: &Value<'js>) -> Option<(Settled, Value<'js>)> {
        sys::promise_result(promise)
    }

    fn weak_target(&self, reference: &Value<'js>) -> Option<Value<'js>> {
        self.call("weakRefDeref", reference)
    }

    fn buffer_bytes(&self, buffer: &Value<'js>, most: usize) -> Option<(Vec<u8>, usize)> {
        sys::buffer_bytes(buffer.as_object()?, most)
    }

    fn typed_array_bytes(&self, array: &Value<'js>, most: usize) -> Option<(Vec<u8>, usize)> {
        sys::view_bytes(array.as_object()?, most)
    }

    fn data_view(&self, view: &Value<'js>) -> Option<[Value<'js>; 3]> {
        let part = |getter: &str| self.call::<Value>(getter, view);
        Some([part("viewByteLength")?, part("viewByteOffset")?, part("viewBuffer")?])
    }

    fn json(&self, value: &Value<'js>) -> Option<String> {
        preview::json(self, value).map(|json| json.as_str().to_owned())
    }

    fn calls(&self) -> String {
        let Ok(error) = rquickjs::Exception::from_message(self.ctx.clone(), "") else { return String::new() };
        let stack = self.error_stack(error.as_object()).unwrap_or_default();
        stack.find("\n    at ").map_or_else(String::new, |at| stack[at..].to_owned())
    }
}

impl<'js> Inspector<'js> {
    /// At most `most` results of a collection's iterator, by captured functions, and the collection's size.
    fn iterated(
        &self,
        collection: &Value<'js>,
        size: &str,
        iterate: &str,
        next: &str,
        most: usize,
    ) -> (Vec<Value<'js>>, usize) {
        let size: Option<Value> = self.call(size, collection);
        let size = size.and_then(|size| size.as_number()).unwrap_or(0.0) as usize;
        let mut values = Vec::new();
        if most == 0 {
            return (values, size);
        }
        if let Some(iterator) = self.call::<Object>(iterate, collection) {
            values = self.steps(&iterator, next, most, size.min(most)).0;
        }
        (values, size)
    }

    /// At most `kept` results of an iterator, which is advanced at most `steps` times, and how many there were.
    fn steps(
        &self,
        iterator: &Object<'js>,
        next: &str,
        kept: usize,
        steps: usize,
    ) -> (Vec<Value<'js>>, usize) {
        let (mut values, mut count) = (Vec::new(), 0);
        let Some(next) = self.captured(next) else { return (values, count) };
        while count < steps {
            let Ok(step) = next.call::<_, Object>((This(iterator.clone()),)) else {
                drop(self.ctx.catch());
                break;
            };
            if Inspector::own_data(self, &step, "done").and_then(|done| done.as_bool()) != Some(false) {
                break;
            }
            count += 1;
            if values.len() < kept {
                let Some(value) = Inspector::own_data(self, &step, "value") else { break };
                values.push(value);
            }
        }
        (values, count)
    }

    /// The parts of an entry that an iterator returned.
    fn pair(&self, entry: &Value<'js>) -> Option<(Value<'js>, Value<'js>)> {
        let entry = entry.as_array().map(Array::as_object)?;
        let part = |index: &str| Inspector::own_data(self, entry, index);
        Some((part("0")?, part("1")?))
    }
}
