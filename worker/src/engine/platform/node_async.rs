//! Owns the native functions of `node:async_hooks`: the engine's reports about promises. Must not keep a context: the part does.

use super::super::state::SharedState;
use super::super::sys;
use rquickjs::{Ctx, Function, Object, Result, Value};

/// `watchPromises(callback)`: from now on `callback(kind, promise)` is called for each report, in this session and in those that are
/// forked from it. `isPromise(value)`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, own: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let watch = move |ctx: Ctx<'js>, callback: Function<'js>| {
        shared.promise_reports.start(&ctx, callback);
    };
    own.set("watchPromises", Function::new(ctx.clone(), watch)?)?;
    own.set(
        "isPromise",
        Function::new(ctx.clone(), |value: Value<'js>| sys::promise_result(&value).is_some())?,
    )
}
