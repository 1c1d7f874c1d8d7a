//! Owns the native half of HTTP requests: calls of the host, and which exchanges the event loop waits for. A call is made at once and
//! returns at once; progress arrives when the execution has nothing else to do.

use super::super::budget::now;
use super::super::modules::host_call::{failed, returned, unexpected};
use super::super::state::SharedState;
use super::super::sys;
use rquickjs::{Array, Ctx, Function, Object, Persistent, Result, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vm_system_protocol::egress::{
    ExchangeProgress, HttpCall, HttpHeader, HttpProgress, HttpReply, HttpRequest,
};
use vm_system_protocol::limits::HTTP_WAIT_MS;
use vm_system_protocol::worker::{HostError, HostReply, HostRequest};

/// While timers are due all the time, progress is fetched this often (nanoseconds).
const WAIT_EVERY: u64 = 5_000_000;

/// The exchanges of the running execution.
#[derive(Default)]
pub(in crate::engine) struct OpenExchanges {
    /// Exchanges whose end was not received, and what the prelude has of each.
    open: BTreeMap<u64, Persistent<Object<'static>>>,
    /// The exchanges among them that may receive a piece.
    pull: BTreeSet<u64>,
    /// Takes a list of progress.
    handler: Option<Persistent<Function<'static>>>,
    /// The last number; never used again in the session.
    last: u64,
    last_wait: u64,
}

impl OpenExchanges {
    /// Takes what an execution has left open, with all values that wait for it; the supervisor ends it.
    #[must_use = "to be dropped outside of the borrow"]
    pub(in crate::engine) fn end_execution(&mut self) -> BTreeMap<u64, Persistent<Object<'static>>> {
        self.pull.clear();
        std::mem::take(&mut self.open)
    }

    /// Drops all values of the script.
    pub(in crate::engine) fn clear(&mut self) {
        *self = Self { last: self.last, ..Self::default() };
    }
}

/// `open(method, url, headers, bytes, end, exchange)`, `send(exchange, bytes, end)`, `close(exchange)`: `[value]` or `[undefined, code, message]`;
/// the value of `open` is the exchange's number; the object `exchange` is given to the handler. `pull(exchange)`, `handle(handler)`. `headers` has names and values in turn, one
/// character for each byte.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let open = move |ctx: Ctx<'js>,
                     method: String,
                     url: String,
                     headers: Array<'js>,
                     bytes: Value<'js>,
                     end: bool,
                     made: Object<'js>| {
        let mut fields = Vec::new();
        for at in (0..headers.len()).step_by(2) {
            let (name, value): (String, String) = (headers.get(at)?, headers.get(at + 1)?);
            // The prelude has checked that all characters are below 256.
            fields.push(HttpHeader { name, value: value.chars().map(|char| char as u8).collect() });
        }
        let data = bytes_of(&bytes);
        let exchange = {
            let mut http = shared.http.borrow_mut();
            http.last += 1;
            http.last
        };
        let request = HttpRequest { method, url, headers: fields, data, end };
        let called = call(&ctx, &shared, HttpCall::Open { exchange, request })?;
        if let Some(refused) = called {
            return Ok(refused);
        }
        let mut http = shared.http.borrow_mut();
        http.open.insert(exchange, Persistent::save(&ctx, made));
        http.pull.insert(exchange);
        returned(&ctx, Value::new_number(ctx.clone(), exchange as f64))
    };
    natives.set("open", Function::new(ctx.clone(), open)?)?;
    let shared = state.clone();
    let send = move |ctx: Ctx<'js>, exchange: f64, bytes: Value<'js>, end: bool| {
        let data = bytes_of(&bytes);
        let exchange = exchange as u64;
        if !shared.http.borrow().open.contains_key(&exchange) {
            return done(&ctx);
        }
        call(&ctx, &shared, HttpCall::Send { exchange, data, end })?.map_or_else(|| done(&ctx), Ok)
    };
    natives.set("send", Function::new(ctx.clone(), send)?)?;
    let shared = state.clone();
    let close = move |ctx: Ctx<'js>, exchange: f64| {
        let exchange = exchange as u64;
        let was_open = {
            let mut http = shared.http.borrow_mut();
            http.pull.remove(&exchange);
            http.open.remove(&exchange)
        };
        if was_open.is_none() {
            return done(&ctx);
        }
        call(&ctx, &shared, HttpCall::Close { exchange })?.map_or_else(|| done(&ctx), Ok)
    };
    natives.set("close", Function::new(ctx.clone(), close)?)?;
    let shared = state.clone();
    let pull = move |exchange: f64| {
        let exchange = exchange as u64;
        let mut http = shared.http.borrow_mut();
        if http.open.contains_key(&exchange) {
            http.pull.insert(exchange);
        }
    };
    natives.set("pull", Function::new(ctx.clone(), pull)?)?;
    let shared = state.clone();
    let handle = move |ctx: Ctx<'js>, handler: Function<'js>| {
        shared.http.borrow_mut().handler = Some(Persistent::save(&ctx, handler));
    };
    natives.set("handle", Function::new(ctx.clone(), handle)?)
}

fn done<'js>(ctx: &Ctx<'js>) -> Result<Array<'js>> {
    returned(ctx, Value::new_undefined(ctx.clone()))
}

/// A copy of the bytes of a `Uint8Array` that the prelude gives.
fn bytes_of(value: &Value<'_>) -> Vec<u8> {
    let bytes = value.as_object().and_then(|object| sys::view_bytes(object, usize::MAX));
    bytes.map(|(bytes, _)| bytes).unwrap_or_default()
}

/// Makes a call; `Some`: why it failed.
fn call<'js>(ctx: &Ctx<'js>, state: &SharedState, call: HttpCall) -> Result<Option<Array<'js>>> {
    match state.call(ctx, HostRequest::Http(call))? {
        HostReply::Http(HttpReply::Done) => Ok(None),
        HostReply::Failed(HostError { code, message }) => failed(ctx, &code, &message).map(Some),
        _ => unexpected(ctx).map(Some),
    }
}

/// Whether the event loop has exchanges to wait for.
pub(in crate::engine) fn is_waiting(state: &SharedState) -> bool {
    !state.http.borrow().open.is_empty()
}

/// Whether progress should be fetched although other work is due.
pub(in crate::engine) fn is_wait_due(state: &SharedState, now: u64) -> bool {
    let http = state.http.borrow();
    !http.open.is_empty() && now.saturating_sub(http.last_wait) > WAIT_EVERY
}

/// Waits for progress, at most so long, and hands it to the prelude; `false`: there was none.
pub(in crate::engine) fn wait(ctx: &Ctx<'_>, state: &SharedState, at_most: Duration) -> Result<bool> {
    // Rounded up: after the wait, the timer that ended it is due.
    let timeout_ms = at_most.as_nanos().div_ceil(1_000_000).min(u128::from(HTTP_WAIT_MS)) as u32;
    let request = {
        let http = state.http.borrow();
        let (open, pull) = (http.open.keys().copied().collect(), http.pull.iter().copied().collect());
        HttpCall::Wait { open, pull, timeout_ms }
    };
    let reply = state.call(ctx, HostRequest::Http(request))?;
    let progress = match reply {
        HostReply::Http(HttpReply::Progress(progress)) => progress,
        HostReply::Failed(error) => fail_all(state, &error),
        _ => Vec::new(),
    };
    state.http.borrow_mut().last_wait = now();
    if progress.is_empty() {
        return Ok(false);
    }
    state.timers.borrow_mut().begin_calls();
    let list = Array::new(ctx.clone())?;
    for ExchangeProgress { exchange, progress } in progress {
        let made = {
            let mut http = state.http.borrow_mut();
            if !matches!(progress, HttpProgress::Sent | HttpProgress::Head { .. }) {
                http.pull.remove(&exchange);
            }
            match &progress {
                HttpProgress::End | HttpProgress::Failed(_) => http.open.remove(&exchange),
                _ => http.open.get(&exchange).cloned(),
            }
        };
        // Of an exchange that the script has closed.
        let Some(made) = made else { continue };
        list.set(list.len(), shown(made.restore(ctx)?, progress)?)?;
    }
    let handler = state.http.borrow().handler.clone();
    if let Some(handler) = handler {
        handler.restore(ctx)?.call::<_, Value>((list,))?;
    }
    Ok(true)
}

/// The host refuses to wait: nothing is left to wait for.
fn fail_all(state: &SharedState, error: &HostError) -> Vec<ExchangeProgress> {
    let failed = |exchange: &u64| ExchangeProgress {
        exchange: *exchange,
        progress: HttpProgress::Failed(error.clone()),
    };
    state.http.borrow().open.keys().map(failed).collect()
}

/// `[exchange, kind, …]`.
fn shown(exchange: Object<'_>, progress: HttpProgress) -> Result<Array<'_>> {
    let ctx = &exchange.ctx().clone();
    let item = Array::new(ctx.clone())?;
    item.set(0, exchange)?;
    match progress {
        HttpProgress::Sent => item.set(1, "sent")?,
        HttpProgress::Head { status, reason, headers, http2 } => {
            let fields = Array::new(ctx.clone())?;
            for (at, HttpHeader { name, value }) in headers.into_iter().enumerate() {
                fields.set(2 * at, name)?;
                fields.set(2 * at + 1, value.into_iter().map(char::from).collect::<String>())?;
            }
            item.set(1, "head")?;
            item.set(2, status)?;
            item.set(3, reason)?;
            item.set(4, fields)?;
            item.set(5, http2)?;
        }
        HttpProgress::Data(bytes) => {
            item.set(1, "data")?;
            item.set(2, sys::new_uint8_array(ctx, &bytes)?)?;
        }
        HttpProgress::End => item.set(1, "end")?,
        HttpProgress::Failed(HostError { code, message }) => {
            item.set(1, "failed")?;
            item.set(2, code)?;
            item.set(3, message)?;
        }
    }
    Ok(item)
}
