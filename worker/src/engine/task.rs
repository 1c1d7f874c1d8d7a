//! Owns the native half of `CC`: one task for the client that drives the session, its answer as a value. Blocks until the task is
//! answered; this time does not count against any limit. The supervisor interprets options and answers.

use super::modules::host_call::{failed, returned, unexpected};
use super::state::SharedState;
use super::sys;
use rquickjs::{Ctx, Function, Object, Result};
use vm_system_protocol::durable::{PROMPT_BYTES, TaskAnswer};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::worker::{HostError, HostReply, HostRequest};

/// The error class that the prelude throws for a failure.
const FAILED: &str = "CCError";
const EXPIRED: &str = "CCTimeoutError";
const WRONG: &str = "TypeError";

/// Why JSON of `JSON.stringify` is not valid; such a number is from `JSON.rawJSON`.
const NOT_READABLE: &str = "The options of CC are nested more than 127 deep, or have a number out of range";

/// `ask(prompt, options)`: `[value]`, or `[undefined, name of the error, message]`. `options` is a JSON text or absent.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let ask = move |ctx: Ctx<'js>, prompt: String, options: Option<String>| {
        let options = options.map(|options| JsonText::from_untrusted(with_whole_characters(options)));
        let option_bytes = options.as_ref().map_or(0, |options| options.as_str().len());
        if prompt.len() + option_bytes > PROMPT_BYTES {
            let what = if prompt.len() > PROMPT_BYTES { "the prompt has" } else { "prompt and options have" };
            return failed(&ctx, FAILED, &format!("{what} more than {PROMPT_BYTES} bytes"));
        }
        // The judgement of the supervisor, which ends a worker that sends anything else.
        if options.as_ref().is_some_and(|options| !options.is_valid()) {
            return failed(&ctx, WRONG, NOT_READABLE);
        }
        // The prompt is also an event of the execution.
        if !shared.budget.take_event(prompt.len() as u64) {
            return Err(sys::throw_uncatchable(&ctx));
        }
        let number = shared.budget.next_task();
        match shared.call(&ctx, HostRequest::Ask { number, prompt, options })? {
            HostReply::Answer(TaskAnswer::Text(text)) => {
                returned(&ctx, rquickjs::String::from_str(ctx.clone(), &text)?.into_value())
            }
            HostReply::Answer(TaskAnswer::Json(json)) => returned(&ctx, ctx.json_parse(json.as_str())?),
            HostReply::Answer(TaskAnswer::Failed(message)) | HostReply::Failed(HostError { message, .. }) => {
                failed(&ctx, FAILED, &message)
            }
            HostReply::Answer(TaskAnswer::Expired(message)) => failed(&ctx, EXPIRED, &message),
            HostReply::Answer(TaskAnswer::Wrong(message)) => failed(&ctx, WRONG, &message),
            _ => unexpected(&ctx),
        }
    };
    natives.set("ask", Function::new(ctx.clone(), ask)?)
}

/// JSON as `JSON.stringify` has made it, with U+FFFD for halves of surrogate pairs: it escapes no others.
fn with_whole_characters(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut result = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        result.push_str(before);
        let length = if escape.starts_with("\\u") { 6 } else { 2 };
        let (escape, behind) = escape.split_at_checked(length).unwrap_or((escape, ""));
        result.push_str(if escape.starts_with("\\ud") { "\u{fffd}" } else { escape });
        rest = behind;
    }
    result.push_str(rest);
    result
}
