//! Owns values as text, in the form of Node's `util.inspect` with its default options.
//!
//! Reads own properties only through their descriptors, and internals through functions that were captured before any script
//! ran: getters, proxies, `toString`, `Symbol.toStringTag` accessors and replaced prototypes are never run. Work is bounded by the
//! size of the text.

mod classify;
mod error;
mod format;
mod layout;
mod members;
mod text;

pub(super) use classify::{Boxed, ClassNumbers, ObjectClass};
pub(super) use layout::LineRules;
pub(super) use text::width as display_width;

use super::state::SharedState;
use super::sys::{self, Property};
use rquickjs::function::{IntoArgs, This};
use rquickjs::{Coerced, Ctx, FromJs, Function, Object, Value};
use vm_system_protocol::limits::EVENT_TEXT_BYTES;

/// The end of a text that was cut.
const CUT_MARK: &str = "... [cut: too long]";

/// Cuts a text to the limit of an event.
pub(super) fn cut(text: String) -> String {
    cut_to(text, EVENT_TEXT_BYTES)
}

/// Cuts a text to this many bytes, and marks it.
pub(super) fn cut_to(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - CUT_MARK.len()));
        text.push_str(CUT_MARK);
    }
    text
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

    /// A value as `util.inspect` shows it.
    pub(super) fn inspect(&self, value: &Value<'js>) -> String {
        format::Formatter::new(self, format::DEPTH).value(value, 0, false)
    }

    /// As `inspect`, with another depth.
    pub(super) fn inspect_to_depth(&self, value: &Value<'js>, depth: usize) -> String {
        format::Formatter::new(self, depth).value(value, 0, false)
    }

    /// As `inspect`, for `util.inspect`: a negative depth shows only what kind of object it is.
    pub(super) fn inspect_with(&self, value: &Value<'js>, depth: i32, rules: LineRules) -> String {
        let mut formatter = format::Formatter::new(self, usize::try_from(depth).unwrap_or(0));
        formatter.rules = rules;
        formatter.value(value, usize::from(depth < 0), false)
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
        let key = self.key(key)?;
        match sys::own_property(object, &key) {
            Ok(Some(own)) => match own.property {
                Property::Data(value) => Some(value),
                Property::Accessor { .. } => None,
            },
            Ok(None) => None,
            Err(_) => {
                drop(self.ctx.catch());
                None
            }
        }
    }

    /// The first data property of this name along the prototypes; an accessor or a proxy on the way hides it.
    pub(super) fn inherited_data(&self, object: &Object<'js>, key: &str) -> Option<Value<'js>> {
        let key = self.key(key)?;
        let mut at = object.clone();
        for _ in 0..PROTOTYPES {
            if at.is_proxy() {
                return None;
            }
            match sys::own_property(&at, &key) {
                Ok(Some(own)) => {
                    return match own.property {
                        Property::Data(value) => Some(value),
                        Property::Accessor { .. } => None,
                    };
                }
                Ok(None) => at = sys::prototype(&at)?,
                Err(_) => {
                    drop(self.ctx.catch());
                    return None;
                }
            }
        }
        None
    }

    /// At most `most` code units of a JavaScript string; `true`: it is longer.
    pub(super) fn units(&self, string: &rquickjs::String<'js>, most: usize) -> (Vec<u16>, bool) {
        if sys::string_units(string) <= most {
            return (sys::string_utf16(string).unwrap_or_default(), false);
        }
        let start: Option<Value> = self.call_with("stringSlice", (This(string.clone()), 0, most as f64));
        let units = start.and_then(|start| start.as_string().and_then(sys::string_utf16)).unwrap_or_default();
        (units, true)
    }

    /// The code units of a JavaScript string in slices of at most `most`; no slice ends within a surrogate pair.
    pub(super) fn slices(
        &self,
        string: &rquickjs::String<'js>,
        most: usize,
    ) -> impl Iterator<Item = Vec<u16>> {
        let length = sys::string_units(string);
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
            let mut units = slice.as_ref().and_then(sys::string_utf16).unwrap_or_default();
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

    /// The key `Symbol.toStringTag`.
    fn to_string_tag(&self) -> Option<Value<'js>> {
        self.captured.as_ref()?.get("toStringTag").ok()
    }

    /// A name as a key.
    fn key(&self, name: &str) -> Option<Value<'js>> {
        let name = rquickjs::String::from_str(self.ctx.clone(), name);
        name.map(rquickjs::String::into_value).map_err(|_| drop(self.ctx.catch())).ok()
    }

    /// Own enumerable keys, as many as may be shown; no keys for a proxy.
    fn keys(&self, object: &Object<'js>, which: sys::Keys) -> Vec<Value<'js>> {
        let keys = sys::own_keys(object, which, KEYS);
        keys.map(|(keys, _)| keys).map_err(|_| drop(self.ctx.catch())).unwrap_or_default()
    }

    /// A key's text, if it is a string or number.
    pub(super) fn key_text(&self, key: &Value<'js>) -> Option<String> {
        if key.is_symbol() {
            return None;
        }
        match key.as_string() {
            Some(text) => Some(String::from_utf16_lossy(&self.units(text, EVENT_TEXT_BYTES).0)),
            None => Some(self.primitive(key)),
        }
    }

    /// The own property at an index.
    pub(super) fn element(&self, list: &Object<'js>, index: usize) -> Option<sys::OwnKey<'js>> {
        let key = Value::new_number(self.ctx.clone(), index as f64);
        sys::own_property(list, &key).unwrap_or_else(|_| {
            drop(self.ctx.catch());
            None
        })
    }

    /// A captured object.
    pub(super) fn captured_object(&self, name: &str) -> Option<Object<'js>> {
        self.captured.as_ref()?.get(name).ok()
    }

    /// What is shown of an object of a platform class, whose state is in private fields. Runs functions of the prelude, which read
    /// private fields only.
    fn view(
        &self,
        object: &Object<'js>,
        kind: ObjectClass,
        constructor: Option<&str>,
    ) -> Option<Object<'js>> {
        if kind != ObjectClass::Plain || constructor.is_none_or(|name| name == "Object") {
            return None;
        }
        self.call_with::<Value>("view", (object.clone(),))?.into_object()
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

/// Most keys that are visited; the text of more would exceed an event.
const KEYS: usize = 100_000;

/// Longest prototype chain that is followed.
const PROTOTYPES: usize = 1_000;
