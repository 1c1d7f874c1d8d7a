//! Owns the messages of errors that QuickJS throws: they get V8's words, and name what is not a function. This happens when an
//! error is created, so that code that catches it sees the same. Errors that a script constructs are never changed, and no code of
//! the script runs.
//!
//! Where the text does not say for certain which call failed, QuickJS's message stays as it is.

mod calls;
mod marks;
mod shown;
mod texts;

pub(super) use texts::SourceTexts;

use super::exception::PRELUDE_PREFIX;
use super::inspect::Inspector;
use super::natives::define_hidden;
use super::state::SharedState;
use super::sys;
use calls::{Candidate, Operation};
use rquickjs::function::This;
use rquickjs::{Ctx, FromJs, Object, Value};
use std::rc::Rc;
use texts::Kept;
use vm_system_inspect::EngineValues;

/// Names that QuickJS may have cut in a message (bytes).
const CUT_NAME_BYTES: usize = 60;

/// Rewrites the message of an error that is being created, if the engine throws it. `site` is where it is thrown.
pub(super) fn rewrite<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    inspector: &Inspector<'js>,
    error: &Object<'js>,
    site: &Object<'js>,
) {
    if !sys::is_in_script_code(ctx) {
        // The constructor of an error, or a built-in function.
        return;
    }
    let has_stack = inspector.call::<Value>("errorStack", error.as_value()).is_none_or(|s| !s.is_undefined());
    let message = inspector.own_data(error, "message");
    let message = message.as_ref().and_then(Value::as_string).and_then(|message| message.to_string().ok());
    let Some(message) = message.filter(|_| !has_stack) else { return };
    let site = Site { ctx, state, inspector, call: site };
    let better = site.property(&message).or_else(|| site.operation(&message));
    let Some(better) = better else { return };
    let text = rquickjs::String::from_str(ctx.clone(), &better);
    let set = text.and_then(|text| define_hidden(error, "message", text.into_value()));
    if set.is_err() {
        drop(ctx.catch());
    }
}

/// Where an error is thrown.
struct Site<'a, 'js> {
    ctx: &'a Ctx<'js>,
    state: &'a SharedState,
    inspector: &'a Inspector<'js>,
    call: &'a Object<'js>,
}

/// `'x' of undefined`: the name, and whether the value is `null`.
fn name_and_value(rest: &str) -> Option<(&str, &'static str)> {
    let rest = rest.strip_prefix('\'')?;
    let of = |value| rest.strip_suffix(value);
    match (of("' of undefined"), of("' of null")) {
        (Some(name), _) => Some((name, "undefined")),
        (_, Some(name)) => Some((name, "null")),
        _ => None,
    }
}

/// A key as V8 writes it; well-known symbols have names that no other key has.
fn key(name: &str) -> String {
    if name.starts_with("Symbol.") { format!("Symbol({name})") } else { name.to_owned() }
}

/// The value behind `is not iterable` in messages that cannot name an expression.
fn not_iterable(value: &str) -> String {
    let kind = if value == "null" { "object null" } else { value };
    format!("{kind} is not iterable (cannot read property Symbol(Symbol.iterator))")
}

impl<'js> Site<'_, 'js> {
    /// Messages about properties of `undefined` and `null`, variables, and classes: they need no source text.
    fn property(&self, message: &str) -> Option<String> {
        if let Some((name, value)) = message.strip_prefix("cannot read property ").and_then(name_and_value) {
            return Some(match name {
                "Symbol.iterator" => self.iterated().unwrap_or_else(|| not_iterable(value)),
                name if name.len() >= CUT_NAME_BYTES => format!("Cannot read properties of {value}"),
                name => format!("Cannot read properties of {value} (reading '{}')", key(name)),
            });
        }
        if let Some((name, value)) = message.strip_prefix("cannot set property ").and_then(name_and_value) {
            return Some(if name.len() >= CUT_NAME_BYTES {
                format!("Cannot set properties of {value}")
            } else {
                format!("Cannot set properties of {value} (setting '{}')", key(name))
            });
        }
        if let Some(name) = message.strip_suffix(" is not initialized") {
            let known = name != "lexical variable" && name.len() < CUT_NAME_BYTES;
            return known.then(|| format!("Cannot access '{name}' before initialization"));
        }
        if message == "class constructors must be invoked with 'new'" {
            let name = self.text("functionName").filter(|name| !name.is_empty())?;
            return Some(format!("Class constructor {name} cannot be invoked without 'new'"));
        }
        None
    }

    /// Messages that name an expression of the source text.
    fn operation(&self, message: &str) -> Option<String> {
        match message {
            "not a function" => {
                let (operation, shown) =
                    self.only(true, |operation| matches!(operation, Operation::Call | Operation::New))?;
                let what = if operation == Operation::New { "constructor" } else { "function" };
                Some(format!("{shown} is not a {what}"))
            }
            "value is not iterable" => self.iterated(),
            message if message == "not a constructor" || message.ends_with(" is not a constructor") => {
                let (_, shown) = self.only(false, |operation| operation == Operation::New)?;
                Some(format!("{shown} is not a constructor"))
            }
            _ => None,
        }
    }

    /// `x is not iterable`.
    fn iterated(&self) -> Option<String> {
        let is_iteration = |operation| matches!(operation, Operation::ForOf(_) | Operation::Spread);
        let (operation, shown) = self.only(false, is_iteration)?;
        Some(match operation {
            Operation::ForOf(true) => {
                format!("{shown} is not a function or its return value is not iterable")
            }
            _ => format!("{shown} is not iterable"),
        })
    }

    /// The only operation of these kinds that may have failed here, and what it is about. `calls`: because it is no function.
    fn only(&self, calls: bool, of_kind: impl Fn(Operation) -> bool) -> Option<(Operation, String)> {
        let candidates = self.candidates()?;
        let iterators = self.state.texts.borrow().may_have_iterators();
        // A candidate that is certainly a function can be called, but need not be a constructor or iterable.
        let is_function = |candidate: &Candidate| {
            calls && (candidate.is_function || self.is_global_function(&candidate.path))
        };
        let mut left =
            candidates.iter().filter(|candidate| of_kind(candidate.operation) && !is_function(candidate));
        let (candidate, None) = (left.next()?, left.next()) else { return None };
        let is_call = matches!(candidate.operation, Operation::Call | Operation::New);
        let beside = candidate.beside;
        // Calls of a method `next`, and of a parent's constructor, have no position of their own.
        let uncertain = if is_call {
            beside.constructs || (beside.iterates && iterators)
        } else {
            beside.begins_iteration
        };
        if uncertain {
            return None;
        }
        Some((candidate.operation, candidate.shown.clone()?))
    }

    fn candidates(&self) -> Option<Rc<[Candidate]>> {
        let file = self.text("fileName").filter(|file| !file.starts_with(PRELUDE_PREFIX))?;
        let (line, column) = (self.number("lineNumber")?, self.number("columnNumber")?);
        let kept = self.kept(&file, line, column)?;
        let mut texts = self.state.texts.borrow_mut();
        Some(texts.candidates(&kept, (line, column), || {
            calls::offset(&kept.text, line, column)
                .map_or_else(Vec::new, |at| calls::candidates(&kept.text, kept.module, at))
        }))
    }

    /// The text that the running function is a part of. Several inputs may have the same name.
    fn kept(&self, file: &str, line: u32, column: u32) -> Option<Kept> {
        let (named, alone) = self.state.texts.borrow().named(file);
        if alone {
            return named.into_iter().next();
        }
        let function: Value = self.get("siteFunction")?;
        let own: Option<Value> = self.inspector.call("functionToString", &function);
        let own = own.and_then(|own| own.as_string().and_then(|own| own.to_string().ok()))?;
        if own.ends_with("[native code]\n}") {
            // Code outside of functions.
            return self.state.texts.borrow().newest(file);
        }
        named.into_iter().find(|kept| {
            let at = calls::offset(&kept.text, line, column).map_or(usize::MAX, |at| at as usize);
            let mut places = kept.text.match_indices(own.as_str());
            places.any(|(start, text)| (start..=start + text.len()).contains(&at))
        })
    }

    /// Whether a global variable, or a property of it, is a function now. Its value was read before the arguments of the call.
    fn is_global_function(&self, path: &[String]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let mut value = self.data(&self.ctx.globals(), first);
        for name in rest {
            value = value.and_then(|value| self.data(value.as_object()?, name));
        }
        value.is_some_and(|value| value.is_function())
    }

    /// A data property of an object or its prototypes.
    fn data(&self, object: &Object<'js>, name: &str) -> Option<Value<'js>> {
        self.inspector.inherited_data(object.as_value(), name)
    }

    fn get<T: FromJs<'js>>(&self, name: &str) -> Option<T> {
        self.inspector.call_with(name, (This(self.call.clone()),))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get::<Value>(name)?.as_string()?.to_string().ok()
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.get::<Value>(name)?.as_number().map(|number| number as u32)
    }
}
