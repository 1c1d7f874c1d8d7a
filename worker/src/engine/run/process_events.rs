//! Owns when the events of a process's end are emitted: `uncaughtException`, `unhandledRejection`, `beforeExit`, `exit`. For these an
//! execution is a process: its listeners are removed when the next one begins. `process.exit` emits its event by itself.

use super::event_loop::{is_alive, promise_jobs, settle};
use super::{Evaluated, Failure, failure};
use crate::engine::state::SharedState;
use rquickjs::function::IntoArgs;
use rquickjs::{Ctx, FromJs, Value};
use vm_system_protocol::reason::EXIT_UNSETTLED;

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
    let null = || Value::new_null(ctx.clone());
    let mut result = result;
    while matches!(result, Ok(_) | Err(Failure::Unsettled(_))) {
        emit::<Value>(ctx, state, "emitExit", ("beforeExit", null()))?;
        let again = is_alive(state);
        // Also without a timer: promises, and what the top level awaits.
        result = match result {
            Ok(value) => {
                settle(ctx, state, Evaluated::Value(Value::new_undefined(ctx.clone()))).map(|_| value)
            }
            Err(Failure::Unsettled(evaluated)) => settle(ctx, state, evaluated),
            Err(failed) => Err(failed),
        };
        if !again {
            break;
        }
    }
    let (code, unset) = match result {
        Ok(_) => (null(), null()),
        Err(Failure::Unsettled(_)) => (null(), Value::new_int(ctx.clone(), EXIT_UNSETTLED)),
        Err(Failure::Stopped) => return result,
        Err(_) => (Value::new_int(ctx.clone(), 1), null()),
    };
    emit::<Value>(ctx, state, "emitExit", ("exit", code, unset))?;
    // As in Node: promises still get their turn, but not after an exception.
    if result.is_ok() {
        promise_jobs(ctx, state)?;
    }
    result
}
