//! Owns when the events of a process's end are emitted: `uncaughtException`, `unhandledRejection`, `beforeExit`, `exit`. For these an
//! execution is a process: its listeners are removed when the next one begins. `process.exit` emits its event by itself.

use super::event_loop::{is_alive, promise_jobs, settle};
use super::{Evaluated, Failure, failure};
use crate::engine::state::SharedState;
use rquickjs::function::IntoArgs;
use rquickjs::{Ctx, FromJs, Value};

type Outcome<'js, T> = std::result::Result<T, Failure<'js>>;

/// Removes the listeners of an earlier execution.
pub(super) fn begin(ctx: &Ctx<'_>, state: &SharedState) -> rquickjs::Result<()> {
    if state.process_listens.replace(false) {
        state.captured_function(ctx, "forgetListeners")?.call(())
    } else {
        Ok(())
    }
}

fn emit<'js, T: FromJs<'js>>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    what: &str,
    arguments: impl IntoArgs<'js>,
) -> Outcome<'js, T> {
    let emitted = state.captured_function(ctx, what).and_then(|emit| emit.call(arguments));
    emitted.map_err(|error| failure(ctx, state, &error))
}

/// After an exception that nothing caught: the failure, unless a listener handled it.
pub(super) fn uncaught<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    failed: Failure<'js>,
) -> Outcome<'js, Evaluated<'js>> {
    let Failure::Threw(thrown) = failed else { return Err(failed) };
    if state.process_listens.get() && emit(ctx, state, "uncaught", (thrown.clone(), "uncaughtException"))? {
        return Ok(Evaluated::Value(Value::new_undefined(ctx.clone())));
    }
    Err(Failure::Threw(thrown))
}

/// After a rejection that nothing handled: the failure, unless a listener handled it.
pub(super) fn rejected<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    promise: Value<'js>,
    reason: Value<'js>,
) -> Outcome<'js, ()> {
    if state.process_listens.get() && emit(ctx, state, "rejected", (reason.clone(), promise))? {
        return Ok(());
    }
    Err(Failure::Threw(reason))
}

/// Emits what Node emits when nothing is left to do, or when the process ends by an exception. A limit or an interruption ends it
/// without events.
pub(super) fn at_the_end<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    result: Outcome<'js, Value<'js>>,
) -> Outcome<'js, Value<'js>> {
    if !state.process_listens.get() || matches!(result, Err(Failure::Stopped)) {
        return result;
    }
    let mut result = result;
    while result.is_ok() {
        emit::<Value>(ctx, state, "emitExit", ("beforeExit", Value::new_null(ctx.clone())))?;
        let again = is_alive(state);
        // Also without a timer: promises.
        if let Err(failed) = settle(ctx, state, Evaluated::Value(Value::new_undefined(ctx.clone()))) {
            result = Err(failed);
        }
        if !again {
            break;
        }
    }
    if let Err(Failure::Stopped) = result {
        return result;
    }
    let code = if result.is_ok() { None } else { Some(1) };
    emit::<Value>(ctx, state, "emitExit", ("exit", code))?;
    // As in Node: promises still get their turn, but not after an exception.
    if result.is_ok() {
        promise_jobs(ctx, state)?;
    }
    result
}
