//! Owns the native half of the standard input: reads that block, and the wait of the event loop. The wall clock goes on meanwhile.

use super::modules::host_call::{failed, returned, unexpected};
use super::state::SharedState;
use super::sys;
use super::timers::QueuedCallback;
use rquickjs::{Array, Ctx, Function, Object, Persistent, Result, Value};
use std::time::Duration;
use vm_system_protocol::limits::STDIN_CHUNK_BYTES;
use vm_system_protocol::worker::{HostError, HostReply, HostRequest, StdinReply};

/// `stdinRead(most)`: waits for input; `[bytes]`, `[null]` at its end, or `[undefined, code, message]`.
/// `stdinWait(callback, referenced)`: the callback gets the same for the next piece; without a callback nothing waits any more.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let read = move |ctx: Ctx<'js>, most: f64| loop {
        let most = most.clamp(1.0, f64::from(STDIN_CHUNK_BYTES)) as u32;
        if let Some(piece) = read(&ctx, &shared, most, shared.budget.wall_left())? {
            return Ok::<_, rquickjs::Error>(piece);
        }
    };
    natives.set("stdinRead", Function::new(ctx.clone(), read)?)?;
    let shared = state.clone();
    let wait = move |ctx: Ctx<'js>, callback: Option<Function<'js>>, referenced: bool| {
        let callback = callback.map(|callback| QueuedCallback {
            callback: Persistent::save(&ctx, callback),
            arguments: Vec::new(),
        });
        shared.timers.borrow_mut().wait_for_input(callback.map(|callback| (callback, referenced)));
    };
    natives.set("stdinWait", Function::new(ctx.clone(), wait)?)
}

/// The next piece for the callback that waits, if it comes in time.
pub(super) fn next_piece<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    wait: Duration,
) -> Result<Option<Array<'js>>> {
    read(ctx, state, STDIN_CHUNK_BYTES, wait)
}

fn read<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    max_bytes: u32,
    wait: Duration,
) -> Result<Option<Array<'js>>> {
    // Rounded up: after the wait, the timer that ended it is due, or the wall clock has run out.
    let wait_ms = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    match state.call(ctx, HostRequest::Stdin { max_bytes, wait_ms })? {
        HostReply::Stdin(StdinReply::NotYet) => Ok(None),
        HostReply::Stdin(StdinReply::End) => returned(ctx, Value::new_null(ctx.clone())).map(Some),
        HostReply::Stdin(StdinReply::Data(bytes)) => {
            returned(ctx, sys::new_uint8_array(ctx, &bytes)?).map(Some)
        }
        HostReply::Failed(HostError { code, message }) => failed(ctx, &code, &message).map(Some),
        _ => unexpected(ctx).map(Some),
    }
}
