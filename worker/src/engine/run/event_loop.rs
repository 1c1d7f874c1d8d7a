//! Owns the event loop: ticks, promise jobs, timers, and when an execution is over.

use super::{Evaluated, Failure, error_value, failure};
use crate::engine::budget::now;
use crate::engine::inspect::Inspector;
use crate::engine::platform::http;
use crate::engine::state::SharedState;
use crate::engine::sys;
use crate::engine::timers::QueuedCallback;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function, Result, Value};
use std::time::Duration;

/// Message of the exception for a result that nothing can settle; Node exits with code 13 in this case.
pub(super) const NEVER_SETTLED: &str = "top-level await never settled: nothing is left that could resolve it";

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
    loop {
        microtasks(ctx, state)?;
        if let Some(promise) = &promise
            && let Some((sys::Settled::Rejected, reason)) = sys::promise_result(promise.as_value())
        {
            return Err(if state.budget.check() { Failure::Stopped } else { Failure::Threw(reason) });
        }
        let unhandled = state.rejections.borrow_mut().take_first(ctx);
        if let Some(reason) = unhandled {
            return Err(Failure::Threw(reason));
        }
        if !macrotask(ctx, state)? {
            break;
        }
    }
    if state.budget.check() {
        return Err(Failure::Stopped);
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
        (_, Some((sys::Settled::Pending, _))) => Err(Failure::Threw(error_value(ctx, NEVER_SETTLED))),
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
        let mut count = 0_u32;
        while let Some(well) = sys::run_job(ctx) {
            if !well {
                drop(ctx.catch());
            }
            // A short job never reaches the interrupt hook, but many of them must be interruptible.
            count = count.wrapping_add(1);
            if state.budget.stop().is_some() || (count.is_multiple_of(1_024) && state.interrupted()) {
                return Err(Failure::Stopped);
            }
        }
        if state.budget.stop().is_some() {
            return Err(Failure::Stopped);
        }
        if !state.timers.borrow().has_ticks() {
            return Ok(());
        }
    }
}

/// Runs the next macrotask, after waiting until it is due; `false`: nothing is left.
fn macrotask<'js>(ctx: &Ctx<'js>, state: &SharedState) -> std::result::Result<bool, Failure<'js>> {
    loop {
        if state.interrupted() {
            return Err(Failure::Stopped);
        }
        // A timer that is due again and again does not keep responses waiting.
        if http::is_wait_due(state, now())
            && http::wait(ctx, state, Duration::ZERO).map_err(|error| failure(ctx, state, &error))?
        {
            return Ok(true);
        }
        let due = state.timers.borrow_mut().take_due(now());
        if let Some(task) = due {
            run_task(ctx, state, task)?;
            return Ok(true);
        }
        let immediate = state.timers.borrow_mut().take_immediate();
        if let Some(task) = immediate {
            run_task(ctx, state, task)?;
            return Ok(true);
        }
        if http::is_waiting(state) {
            // A request keeps the execution alive, so that every timer runs.
            let next = state.timers.borrow().first_due();
            let wait = next.map_or(Duration::MAX, |next| Duration::from_nanos(next.saturating_sub(now())));
            if http::wait(ctx, state, wait).map_err(|error| failure(ctx, state, &error))? {
                return Ok(true);
            }
            continue;
        }
        let Some(next) = state.timers.borrow().next_due() else { return Ok(false) };
        let wait = Duration::from_nanos(next.saturating_sub(now())).min(state.budget.wall_left());
        if !wait.is_zero() {
            state.host.with(|host| host.sleep(wait));
        }
    }
}

fn run_task<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    task: QueuedCallback,
) -> std::result::Result<(), Failure<'js>> {
    let run = || -> Result<()> {
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
