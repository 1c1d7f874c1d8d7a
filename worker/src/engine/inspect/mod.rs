//! Owns values as text, in the form of Node's `util.inspect` with its default options.
//!
//! Reads own properties only through their descriptors, and internals through functions that were captured before any script
//! ran: getters, proxies, `toString`, `Symbol.toStringTag` accessors and replaced prototypes are never run. Work is bounded by the
//! size of the text.

mod classify;
mod sys;
mod values;

pub(super) use classify::ClassNumbers;
pub(super) use vm_system_inspect::{Boxed, LineRules, ObjectClass};

use super::state::SharedState;
use super::sys::{self as engine_sys, Property};
use rquickjs::function::{IntoArgs, This};
use rquickjs::{Coerced, Ctx, FromJs, Function, Object, Value};
use vm_system_inspect::{CUT_MARK, EngineValues, cut_to};
use vm_system_protocol::limits::EVENT_TEXT_BYTES;

/// Cuts a text to the limit of an event.
pub(super) fn cut(text: String) -> String {
    cut_to(text, EVENT_TEXT_BYTES)
}

/// Whether [`cut`] cut this text.
pub(super) fn is_cut(text: &str) -> bool {
    text.len() > EVENT_TEXT_BYTES - char::MAX.len_utf8() && text.ends_with(CUT_MARK)
}

/// The context for inspecting values.
pub(super) struct Inspector<'js> {
    ctx: Ctx<'js>,
    captured: Option<Object<'js>>,
    pub(super) classes: ClassNumbers,
}

impl<'js> Inspector<'js> {
    pub(super) fn new(ctx: &Ctx<'js>, state: &SharedState) -> Self {
        let classes =
            state.intrinsics.borrow().as_ref().map(|intrinsics| intrinsics.classes).unwrap_or_default();
        Self { ctx: ctx.clone(), captured: state.captured(ctx), classes }
    }

    /// A value as `util.inspect` shows it, cut to the limit of an event.
    pub(super) fn inspect(&self, value: &Value<'js>) -> String {
        vm_system_inspect::inspect(self, value)
    }

    /// `TypeError: message` of an error.
    pub(super) fn error_header(&self, error: &Object<'js>) -> String {
        vm_system_inspect::error_header(self, error.as_value())
    }

    /// The text of an error's `stack`.
    pub(super) fn error_stack(&self, error: &Object<'js>) -> Option<String> {
        EngineValues::error_stack(self, error.as_value())
    }

    /// `Promise`, for its prototype, whose `constructor` is an accessor of ours once `node:async_hooks` follows promises.
    fn traced_promise(&self, prototype: &Object<'js>) -> Option<Value<'js>> {
        let promise: Object = self.captured.as_ref()?.get("tracedPromise").ok()?;
        let own = self.own_data(&promise, "prototype")?;
        engine_sys::is_same(&own, prototype.as_value()).then(|| promise.into_value())
    }

    /// Whether the object or one of its prototypes has a method of this key. Runs no code of the script.
    pub(super) fn has_method(&self, object: &Object<'js>, key: &Value<'js>) -> bool {
        let mut next = Some(object.clone());
        // As deep as the chain of a class may usefully be.
        for _ in 0..64 {
            let Some(object) = next.filter(|object| !object.is_proxy()) else { return false };
            match engine_sys::own_property(&object, key) {
                Ok(Some(own)) => {
                    return matches!(own.property, Property::Data(value) if value.is_function());
                }
                Ok(None) => next = engine_sys::prototype(&object),
                Err(_) => {
                    drop(self.ctx.catch());
                    return false;
                }
            }
        }
        false
    }

    /// Whether the object is a `DOMException`, which is no `Error` to the engine.
    pub(super) fn is_dom_exception(&self, object: &Object<'js>) -> bool {
        self.classes.kind(object) == ObjectClass::DomException
    }

    /// A function captured before any script ran.
    pub(super) fn captured(&self, name: &str) -> Option<Function<'js>> {
        self.captured.as_ref()?.get(name).ok()
    }

    /// Calls a captured function on `this`; an exception is dropped.
    pub(super) fn call<T: FromJs<'js>>(&self, name: &str, this: &Value<'js>) -> Option<T> {
        self.call_with(name, (This(this.clone()),))
    }

    pub(super) fn call_with<T: FromJs<'js>>(&self, name: &str, arguments: impl IntoArgs<'js>) -> Option<T> {
        self.captured(name)?.call(arguments).map_err(|_| drop(self.ctx.catch())).ok()
    }

    /// A property's value if it is an own data property.
    pub(super) fn own_data(&self, object: &Object<'js>, key: &str) -> Option<Value<'js>> {
        let name = key;
        let key = self.key(key)?;
        match engine_sys::own_property(object, &key) {
            Ok(Some(own)) => match own.property {
                Property::Data(value) => Some(value),
                Property::Accessor { .. } if name == "constructor" => self.traced_promise(object),
                Property::Accessor { .. } => None,
            },
            Ok(None) => None,
            Err(_) => {
                drop(self.ctx.catch());
                None
            }
        }
    }

    /// At most `most` code units of a JavaScript string; `true`: it is longer.
    pub(super) fn units(&self, string: &rquickjs::String<'js>, most: usize) -> (Vec<u16>, bool) {
        if engine_sys::string_units(string) <= most {
            return (engine_sys::string_utf16(string).unwrap_or_default(), false);
        }
        let start: Option<Value> = self.call_with("stringSlice", (This(string.clone()), 0, most as f64));
        let units =
            start.and_then(|start| start.as_string().and_then(engine_sys::string_utf16)).unwrap_or_default();
        (units, true)
    }

    /// The code units of a JavaScript string in slices of at most `most`; no slice ends within a surrogate pair.
    pub(super) fn slices(
        &self,
        string: &rquickjs::String<'js>,
        most: usize,
    ) -> impl Iterator<Item = Vec<u16>> {
        let length = engine_sys::string_units(string);
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= length {
                return None;
            }
            let slice = if length <= most {
                Some(string.clone())
            } else {
                let end = (at + most).min(length);
                let slice: Option<Value> =
                    self.call_with("stringSlice", (This(string.clone()), at as f64, end as f64));
                slice.and_then(Value::into_string)
            };
            // Without memory for a slice, the script ends with an error of its own.
            let mut units = slice.as_ref().and_then(engine_sys::string_utf16).unwrap_or_default();
            if at + units.len() < length
                && units.len() > 1
                && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit))
            {
                units.pop();
            }
            at = if units.is_empty() { length } else { at + units.len() };
            Some(units)
        })
    }

    /// A JavaScript string as text, cut to this many bytes.
    pub(super) fn text(&self, string: &rquickjs::String<'js>, most: usize) -> String {
        let mut text = String::new();
        for units in self.slices(string, EVENT_TEXT_BYTES) {
            text.push_str(&String::from_utf16_lossy(&units));
            if text.len() > most {
                return cut_to(text, most);
            }
        }
        text
    }

    /// A JavaScript string as text, cut to the limit of an event.
    pub(super) fn string(&self, string: &rquickjs::String<'js>) -> String {
        let (units, more) = self.units(string, EVENT_TEXT_BYTES);
        let mut text = String::from_utf16_lossy(&units);
        if more {
            text.push_str(&" ".repeat(EVENT_TEXT_BYTES.saturating_sub(text.len()) + 1));
        }
        cut(text)
    }

    /// A name as a key.
    fn key(&self, name: &str) -> Option<Value<'js>> {
        let name = rquickjs::String::from_str(self.ctx.clone(), name);
        name.map(rquickjs::String::into_value).map_err(|_| drop(self.ctx.catch())).ok()
    }

    /// The own property at an index.
    pub(super) fn element(&self, list: &Object<'js>, index: usize) -> Option<engine_sys::OwnKey<'js>> {
        let key = Value::new_number(self.ctx.clone(), index as f64);
        engine_sys::own_property(list, &key).unwrap_or_else(|_| {
            drop(self.ctx.catch());
            None
        })
    }

    /// A captured object.
    pub(super) fn captured_object(&self, name: &str) -> Option<Object<'js>> {
        self.captured.as_ref()?.get(name).ok()
    }

    /// The text of a primitive other than a symbol or string: `String(x)`.
    pub(super) fn primitive(&self, value: &Value<'js>) -> String {
        value.get::<Coerced<String>>().map_or_else(
            |_| {
                drop(self.ctx.catch());
                String::new()
            },
            |text| text.0,
        )
    }

    /// A symbol as `Symbol(description)`.
    pub(super) fn symbol(&self, symbol: &Value<'js>) -> String {
        let description: Option<Value> = self.call("symbolDescription", symbol);
        let description = description.and_then(Value::into_string).map(|text| self.string(&text));
        format!("Symbol({})", description.unwrap_or_default())
    }

    pub(super) fn ctx(&self) -> &Ctx<'js> {
        &self.ctx
    }
}

/// Longest prototype chain that is followed.
const PROTOTYPES: usize = 1_000;
