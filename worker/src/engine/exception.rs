//! Owns how thrown values are told: V8's text of stacks, `exception` events, and what a message is.
//! Reads errors without running code of the script.

use super::inspect::{self, Look};
use super::position::shown_name;
use super::state::Shared;
use rquickjs::function::This;
use rquickjs::{Array, Ctx, Function, Object, Value};

/// Frames of the engine's own JavaScript; they say nothing to the author of a script.
pub(super) const PRELUDE_PREFIX: &str = "vm:";

/// What an uncaught exception looks like.
pub(super) struct Described {
    /// `ReferenceError: x is not defined`, `Uncaught 42`.
    pub(super) message: String,
    /// Message and frames; empty for a value that has none.
    pub(super) stack: String,
}

/// Describes a thrown value.
pub(super) fn describe<'js>(ctx: &Ctx<'js>, state: &Shared, thrown: &Value<'js>) -> Described {
    let look = Look::new(ctx, state);
    match thrown.as_object().filter(|_| thrown.is_error()) {
        Some(error) => {
            let message = look.error_header(error);
            let stack = look.error_stack(error).unwrap_or_default();
            let stack = if stack.starts_with(message.as_str()) || stack.is_empty() {
                stack
            } else {
                // The message was changed after the error was made.
                let frames = stack.find("\n    at ").map_or("", |at| &stack[at..]);
                format!("{message}{frames}")
            };
            Described { message: inspect::cut(message), stack: inspect::cut(stack) }
        }
        None => Described {
            message: inspect::cut(format!("Uncaught {}", look.inspect(thrown))),
            stack: String::new(),
        },
    }
}

/// Builds the `stack` text of a new error from its call sites, as V8 writes it.
pub(super) fn prepare_stack<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    error: &Value<'js>,
    sites: &Value<'js>,
) -> String {
    let look = Look::new(ctx, state);
    let mut text = error.as_object().map_or_else(String::new, |error| look.error_header(error));
    let Some(sites) = sites.as_array() else { return text };
    for index in 0..sites.len() {
        if let Some(frame) = frame(ctx, state, &look, sites, index) {
            text.push_str("\n    at ");
            text.push_str(&frame);
        }
    }
    text
}

fn frame<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    look: &Look<'js>,
    sites: &Array<'js>,
    index: usize,
) -> Option<String> {
    let site: Object = sites.get(index).ok()?;
    let text = |name: &str| -> Option<String> {
        let get: Function = look.captured(name)?;
        let value: Value = get.call((This(site.clone()),)).ok()?;
        value.as_string()?.to_string().ok()
    };
    let number = |name: &str| -> Option<u32> {
        let get: Function = look.captured(name)?;
        let value: Value = get.call((This(site.clone()),)).ok()?;
        value.as_number().map(|number| number as u32)
    };
    let function =
        text("functionName").filter(|name| !name.is_empty() && name != "<eval>" && name != "<anonymous>");
    let place = match text("fileName") {
        Some(file) if file.starts_with(PRELUDE_PREFIX) => return None,
        Some(file) => match (number("lineNumber"), number("columnNumber")) {
            (Some(line), Some(column)) => {
                let maps = state.maps.borrow();
                let (file, line, column) = maps.original(&file, line, column);
                format!("{file}:{line}:{column}")
            }
            _ => shown_name(&file).to_owned(),
        },
        None => match &function {
            // A frame of the engine's own functions.
            None => return None,
            Some(_) => "native".to_owned(),
        },
    };
    let _ = ctx;
    Some(match function {
        Some(function) => format!("{function} ({place})"),
        None => place,
    })
}
