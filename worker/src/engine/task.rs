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

/// `ask(prompt, options)`: `[value]`, or `[undefined, name of the error, message]`. `options` is a JSON text or absent.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let ask = move |ctx: Ctx<'js>, prompt: String, options: Option<String>| {
        if prompt.len() + options.as_ref().map_or(0, String::len) > PROMPT_BYTES {
            return failed(&ctx, FAILED, &format!("the prompt has more than {PROMPT_BYTES} bytes"));
        }
        // The prompt is also an event of the execution.
        if !shared.budget.take_event(prompt.len() as u64) {
            return Err(sys::throw_uncatchable(&ctx));
        }
        let number = shared.budget.next_task();
        let options = options.map(JsonText::from_untrusted);
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
