//! Owns the presentation of thrown values: stacks in V8's format, `exception` events, messages. Reads errors without running code
//! of the script.

use super::inspect::{self, Inspector};
use super::messages;
use super::position::shown_name;
use super::state::SharedState;
use super::sys;
use rquickjs::function::This;
use rquickjs::{Array, Ctx, Function, Object, Value};
use vm_system_inspect::CUT_MARK;
use vm_system_protocol::limits::EVENT_TEXT_BYTES;
use vm_system_protocol::model::{CUT_MESSAGE, is_exception_code};

/// Frames of the prelude, which are not shown.
pub(super) const PRELUDE_PREFIX: &str = "vm:";

/// The texts of an uncaught exception.
pub(super) struct Described {
    /// `ReferenceError: x is not defined`, `Uncaught 42`.
    pub(super) message: String,
    /// Message and frames; empty for a value that has none.
    pub(super) stack: String,
    /// Of the error, or of its cause.
    pub(super) code: Option<String>,
    /// One of the two was cut.
    pub(super) truncated: bool,
    /// Size of the whole message, if one of the two was cut and it is known (bytes).
    pub(super) full_bytes: Option<u64>,
}

/// Globals that scripts of other platforms expect, and why there are none.
const ABSENT: &[(&str, &str)] = &[
    ("WebAssembly", "sessions run JavaScript only"),
    ("XMLHttpRequest", "use `fetch`"),
    ("WebSocket", "sessions have no sockets; `fetch` makes requests"),
    ("Worker", "a session has one thread"),
];

/// Says of a global that does not exist why it does not.
fn with_hint(message: String) -> String {
    let missing = |name: &str| {
        message.strip_prefix("ReferenceError: ").and_then(|rest| rest.strip_suffix(" is not defined"))
            == Some(name)
    };
    match ABSENT.iter().find(|(name, _)| missing(name)) {
        Some((_, reason)) => format!("{message}: {reason}"),
        None => message,
    }
}

/// The cause of an error, behind its message: of a failed request the error itself says nothing else.
fn cause<'js>(inspector: &Inspector<'js>, error: &Object<'js>) -> String {
    let Some(cause) = inspector.own_data(error, "cause").filter(Value::is_error) else {
        return String::new();
    };
    let Some(cause) = cause.as_object() else { return String::new() };
    let code = inspector.own_data(cause, "code").and_then(|code| code.as_string()?.to_string().ok());
    let header = inspector.error_header(cause);
    code.map_or_else(|| format!(" [cause: {header}]"), |code| format!(" [cause: {header}, code {code}]"))
}

/// The code of an error, or of its cause, if it is one.
fn code<'js>(inspector: &Inspector<'js>, error: &Object<'js>) -> Option<String> {
    let own = |error: &Object<'js>| {
        let code = inspector.own_data(error, "code")?.as_string()?.to_string().ok()?;
        is_exception_code(&code).then_some(code)
    };
    own(error).or_else(|| own(inspector.own_data(error, "cause").filter(Value::is_error)?.as_object()?))
}

/// Whether the text of an error does not fit an event, or was cut before.
fn is_too_long(text: &str) -> bool {
    text.len() > EVENT_TEXT_BYTES || inspect::is_cut(text)
}

/// Cuts the text of an error to the limit of an event; one that was cut says how long the message is (UTF-16 units).
fn fitted(text: String, length: usize) -> String {
    if !is_too_long(&text) {
        return text;
    }
    let mark = format!("{CUT_MESSAGE}{length} characters]");
    let begin = text.strip_suffix(CUT_MARK).unwrap_or(&text);
    let end = begin.floor_char_boundary(EVENT_TEXT_BYTES - mark.len());
    format!("{}{mark}", &begin[..end])
}

/// Size of a string as UTF-8 (bytes).
fn utf8_bytes<'js>(inspector: &Inspector<'js>, string: &rquickjs::String<'js>) -> u64 {
    let decoded = |units: Vec<u16>| -> u64 {
        char::decode_utf16(units)
            .map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER).len_utf8() as u64)
            .sum()
    };
    inspector.slices(string, EVENT_TEXT_BYTES).map(decoded).sum()
}

/// Describes a thrown value.
pub(super) fn describe<'js>(ctx: &Ctx<'js>, state: &SharedState, thrown: &Value<'js>) -> Described {
    let inspector = Inspector::new(ctx, state);
    let is_error = |object: &&Object<'js>| thrown.is_error() || inspector.is_dom_exception(object);
    if let Some(error) = thrown.as_object().filter(is_error) {
        let message = inspector.error_header(error);
        let stack = inspector.error_stack(error).unwrap_or_default();
        let stack = if stack.starts_with(message.as_str()) || stack.is_empty() {
            stack
        } else {
            // The message was changed after the error was created.
            let frames = stack.find("\n    at ").map_or("", |at| &stack[at..]);
            format!("{message}{frames}")
        };
        let shown = with_hint(message.clone()) + &cause(&inspector, error);
        let stack = stack.replacen(&message, &shown, 1);
        let own = inspector.own_data(error, "message");
        let own = own.as_ref().and_then(Value::as_string);
        let length = own.map(sys::string_units).unwrap_or_default();
        let truncated = is_too_long(&shown) || is_too_long(&stack);
        let full_bytes = own.filter(|_| truncated).map(|own| {
            // The texts before and behind that of the property, which may be cut.
            let others = shown.len().saturating_sub(inspector.string(own).len());
            others as u64 + utf8_bytes(&inspector, own)
        });
        let (message, stack) = (fitted(shown, length), fitted(stack, length));
        Described { message, stack, code: code(&inspector, error), truncated, full_bytes }
    } else {
        let message = inspect::cut(format!("Uncaught {}", inspector.inspect(thrown)));
        // A long text is shown with its beginning alone, as by Node.
        let full_bytes = thrown.as_string().map(|text| utf8_bytes(&inspector, text));
        let full_bytes = full_bytes.filter(|bytes| *bytes > message.len() as u64);
        let truncated = full_bytes.is_some() || inspect::is_cut(&message);
        Described { message, stack: String::new(), code: None, truncated, full_bytes }
    }
}

/// Builds the `stack` text of a new error from its call sites, as V8 writes it.
pub(super) fn prepare_stack<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    error: &Value<'js>,
    sites: &Value<'js>,
) -> String {
    let inspector = Inspector::new(ctx, state);
    if let Some(error) = error.as_object().filter(|_| error.is_error())
        && let Some(Ok(site)) = sites.as_array().map(|sites| sites.get::<Object>(0))
    {
        messages::rewrite(ctx, state, &inspector, error, &site);
    }
    let mut text = error.as_object().map_or_else(String::new, |error| inspector.error_header(error));
    let Some(sites) = sites.as_array() else { return text };
    for index in 0..sites.len() {
        if let Some(frame) = frame(ctx, state, &inspector, sites, index) {
            text.push_str("\n    at ");
            text.push_str(&frame);
        }
    }
    text
}

fn frame<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    inspector: &Inspector<'js>,
    sites: &Array<'js>,
    index: usize,
) -> Option<String> {
    let site: Object = sites.get(index).ok()?;
    let text = |name: &str| -> Option<String> {
        let get: Function = inspector.captured(name)?;
        let value: Value = get.call((This(site.clone()),)).ok()?;
        value.as_string()?.to_string().ok()
    };
    let number = |name: &str| -> Option<u32> {
        let get: Function = inspector.captured(name)?;
        let value: Value = get.call((This(site.clone()),)).ok()?;
        value.as_number().map(|number| number as u32)
    };
    let name = text("functionName").unwrap_or_default();
    // Of a function that waits for the one which runs (`quickjs/patches/6-async-callers.patch`).
    let (begin, name) = match name.strip_prefix("async") {
        Some("") => ("async ", ""),
        Some(rest) => rest.strip_prefix(' ').map_or(("", name.as_str()), |name| ("async ", name)),
        None => ("", name.as_str()),
    };
    let function = Some(name).filter(|name| !name.is_empty() && *name != "<eval>" && *name != "<anonymous>");
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
        Some(function) => format!("{begin}{function} ({place})"),
        None => format!("{begin}{place}"),
    })
}
