//! Owns the event loop: ticks, promise jobs, timers, and when an execution is over.

use super::{Evaluated, Failure, failure, process_events};
use crate::engine::budget::now;
use crate::engine::inspect::Inspector;
use crate::engine::platform::http;
use crate::engine::state::SharedState;
use crate::engine::timers::QueuedCallback;
use crate::engine::{stdin, sys};
use rquickjs::function::Args;
use rquickjs::{Ctx, Error, Function, Persistent, Result, Value};
use std::time::Duration;

/// While both input and responses are waited for, one of them is waited for so long at a time.
const TURN: Duration = Duration::from_millis(10);

/// Runs the event loop until the result is settled and nothing is left to do.
pub(super) fn settle<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    evaluated: Evaluated<'js>,
) -> std::result::Result<Value<'js>, Failure<'js>> {
    let promise = match &evaluated {
        Evaluated::Value(_) => None,
        Evaluated::Script(promise) | Evaluated::Module(promise) => Some(promise.clone()),
    };
    if let Some(promise) = &promise {
        sys::mark_handled(promise);
        state.rejections.borrow_mut().forget(sys::identity(promise.as_value()));
    }
    let mut is_main_handled = false;
    loop {
        if let Err(failed) = microtasks(ctx, state) {
            process_events::uncaught(ctx, state, failed)?;
            continue;
        }
        if let Some(promise) = promise.as_ref().filter(|_| !is_main_handled)
            && let Some((sys::Settled::Rejected, reason)) = sys::promise_result(promise.as_value())
        {
            let failed = if state.budget.check() { Failure::Stopped } else { Failure::Threw(reason) };
            process_events::uncaught(ctx, state, failed)?;
            is_main_handled = true;
            continue;
        }
        let unhandled = state.rejections.borrow_mut().take_first(ctx);
        if let Some((promise, reason)) = unhandled {
            process_events::rejected(ctx, state, promise, reason)?;
            continue;
        }
        match macrotask(ctx, state) {
            Ok(true) => {}
            Ok(false) => break,
            Err(failed) => drop(process_events::uncaught(ctx, state, failed)?),
        }
    }
    if state.budget.check() {
        return Err(Failure::Stopped);
    }
    if is_main_handled {
        return Ok(Value::new_undefined(ctx.clone()));
    }
    let Some(promise) = promise else {
        let Evaluated::Value(value) = evaluated else { return Ok(Value::new_undefined(ctx.clone())) };
        return Ok(value);
    };
    match (evaluated, sys::promise_result(promise.as_value())) {
        (Evaluated::Script(_), Some((sys::Settled::Fulfilled, holder))) => Ok(holder
            .as_object()
            .and_then(|holder| Inspector::new(ctx, state).own_data(holder, "value"))
            .unwrap_or(holder)),
        (evaluated, Some((sys::Settled::Pending, _))) => Err(Failure::Unsettled(evaluated)),
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}

/// `process.nextTick` callbacks and promise jobs until there are none.
fn microtasks<'js>(ctx: &Ctx<'js>, state: &SharedState) -> std::result::Result<(), Failure<'js>> {
    loop {
        loop {
            let tick = state.timers.borrow_mut().next_tick();
            let Some(tick) = tick else { break };
            run_task(ctx, state, tick)?;
        }
        promise_jobs(ctx, state)?;
        if !state.timers.borrow().has_ticks() {
            if state.keeps_targets.replace(false) {
                let release =
                    state.captured_function(ctx, "release").and_then(|release| release.call::<_, ()>(()));
                release.map_err(|error| failure(ctx, state, &error))?;
            }
            return Ok(());
        }
    }
}

/// Promise jobs until there are none.
pub(super) fn promise_jobs<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
) -> std::result::Result<(), Failure<'js>> {
    let mut count = 0_u32;
    while let Some(well) = sys::run_job(ctx) {
        if !well {
            // Not of a promise's callback, which rejects: of `queueMicrotask` or of a `FinalizationRegistry`.
            return Err(failure(ctx, state, &Error::Exception));
        }
        // A short job never reaches the interrupt hook, but many of them must be interruptible.
        count = count.wrapping_add(1);
        if state.budget.stop().is_some() || (count.is_multiple_of(1_024) && state.interrupted()) {
            return Err(Failure::Stopped);
        }
    }
    if state.budget.stop().is_some() { Err(Failure::Stopped) } else { Ok(()) }
}

/// Runs the next macrotask, after waiting until there is one; `false`: nothing is left.
fn macrotask<'js>(ctx: &Ctx<'js>, state: &SharedState) -> std::result::Result<bool, Failure<'js>> {
    loop {
        if state.interrupted() {
            return Err(Failure::Stopped);
        }
        let task = state.timers.borrow_mut().next(now());
        if let Some(task) = task {
            run_task(ctx, state, task)?;
            return Ok(true);
        }
        if !is_alive(state) {
            return Ok(false);
        }
        let wait = state.timers.borrow().next_due().map(|due| due.saturating_sub(now()));
        let wait = wait.map_or(Duration::MAX, Duration::from_nanos).min(state.budget.wall_left());
        if wait_outside(ctx, state, wait)? {
            return Ok(true);
        }
    }
}

/// Whether a callback or a request keeps the execution alive.
pub(super) fn is_alive(state: &SharedState) -> bool {
    state.timers.borrow().is_alive() || http::is_waiting(state)
}

/// Waits for what comes from outside of the worker, at most so long; `true`: its callback has run. A wait is one call of the host:
/// where input and responses are waited for, they take turns, and neither keeps the other waiting.
fn wait_outside<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    wait: Duration,
) -> std::result::Result<bool, Failure<'js>> {
    let waits_for_input = state.timers.borrow().waits_for_input();
    match (waits_for_input, http::is_waiting(state)) {
        (true, true) => {}
        (true, false) => return input(ctx, state, wait),
        (false, true) => return responses(ctx, state, wait),
        (false, false) => {
            if !wait.is_zero() {
                state.host.lend(|host| host.sleep(wait));
            }
            return Ok(false);
        }
    }
    let turn = wait.min(TURN);
    let is_turn_of_input = state.timers.borrow_mut().is_turn_of_input();
    if is_turn_of_input {
        Ok(responses(ctx, state, Duration::ZERO)? || input(ctx, state, turn)?)
    } else {
        Ok(input(ctx, state, Duration::ZERO)? || responses(ctx, state, turn)?)
    }
}

/// Waits for a piece of the standard input.
fn input<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    wait: Duration,
) -> std::result::Result<bool, Failure<'js>> {
    let piece = stdin::next_piece(ctx, state, wait).map_err(|error| failure(ctx, state, &error))?;
    let Some(piece) = piece else { return Ok(false) };
    let callback = state.timers.borrow_mut().take_input_callback();
    if let Some(QueuedCallback { callback, .. }) = callback {
        let arguments = vec![Persistent::save(ctx, piece.into_value())];
        run_task(ctx, state, QueuedCallback { callback, arguments })?;
    }
    Ok(true)
}

/// Waits for progress of requests. While other work is due all the time, it is fetched now and then.
fn responses<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    wait: Duration,
) -> std::result::Result<bool, Failure<'js>> {
    if wait.is_zero() && !http::is_wait_due(state, now()) {
        return Ok(false);
    }
    http::wait(ctx, state, wait).map_err(|error| failure(ctx, state, &error))
}

fn run_task<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    task: QueuedCallback,
) -> std::result::Result<(), Failure<'js>> {
    let run = || -> Result<()> {
        if state.promise_reports.is_started() {
            state.captured_function(ctx, "clearContext")?.call::<_, ()>(())?;
        }
        let callback: Function = task.callback.restore(ctx)?;
        let mut arguments = Args::new(ctx.clone(), task.arguments.len());
        for argument in task.arguments {
            let argument: Value = argument.restore(ctx)?;
            arguments.push_arg(argument)?;
        }
        callback.call_arg::<Value>(arguments).map(drop)
    };
    run().map_err(|error| failure(ctx, state, &error))
}
