//! Owns the table of native functions that the prelude uses. Must not decide formats or limits; each function calls the module that
//! owns them.

use super::budget::{StopReason, now};
use super::inspect::Inspector;
use super::state::SharedState;
use super::timers::{QueuedCallback, delay_ms};
use super::{codec, console, exception, stdin, sys};
use rquickjs::function::{Opt, Rest};
use rquickjs::{Array, Coerced, Ctx, Function, Object, Persistent, Result, Value};
use vm_system_protocol::model::ConsoleLevel;

fn task<'js>(ctx: &Ctx<'js>, callback: Function<'js>, arguments: &Array<'js>) -> Result<QueuedCallback> {
    let arguments = (0..arguments.len())
        .map(|index| Ok(Persistent::save(ctx, arguments.get::<Value>(index)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(QueuedCallback { callback: Persistent::save(ctx, callback), arguments })
}

/// The object that the prelude gets.
pub(super) fn natives<'js>(ctx: &Ctx<'js>, state: &SharedState) -> Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    timers(ctx, state, &natives)?;
    process(ctx, state, &natives)?;
    codec::install(ctx, &natives)?;
    stdin::install(ctx, state, &natives)?;
    let shared = state.clone();
    natives.set(
        "prepareStackTrace",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, error: Value<'js>, sites: Value<'js>| {
            exception::prepare_stack(&ctx, &shared, &error, &sites)
        })?
        .with_name("prepareStackTrace")?,
    )?;
    let mapped: Value = ctx.eval_with_options("(function () { return arguments; })()", sloppy())?;
    natives.set("mappedArguments", mapped)?;
    natives.set("arch", std::env::consts::ARCH)?;
    natives.set("engineVersion", "0.16.2")?;
    Ok(natives)
}

fn timers<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    natives.set(
        "timerAdd",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  callback: Function<'js>,
                  delay: f64,
                  repeats: bool,
                  arguments: Array<'js>| {
                let task = task(&ctx, callback, &arguments)?;
                Ok::<_, rquickjs::Error>(
                    shared.timers.borrow_mut().add(now(), delay_ms(delay), repeats, task) as f64,
                )
            },
        )?,
    )?;
    let shared = state.clone();
    natives.set(
        "immediateAdd",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, callback: Function<'js>, arguments: Array<'js>| {
            let task = task(&ctx, callback, &arguments)?;
            Ok::<_, rquickjs::Error>(shared.timers.borrow_mut().add_immediate(task) as f64)
        })?,
    )?;
    let shared = state.clone();
    natives.set(
        "callAdd",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, callback: Function<'js>, arguments: Array<'js>| {
            let task = task(&ctx, callback, &arguments)?;
            shared.timers.borrow_mut().add_call(task);
            Ok::<_, rquickjs::Error>(())
        })?,
    )?;
    let shared = state.clone();
    natives.set(
        "tickAdd",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, callback: Function<'js>, arguments: Array<'js>| {
            let task = task(&ctx, callback, &arguments)?;
            shared.timers.borrow_mut().add_tick(task);
            Ok::<_, rquickjs::Error>(())
        })?,
    )?;
    let shared = state.clone();
    natives.set(
        "timerClear",
        Function::new(ctx.clone(), move |id: f64| shared.timers.borrow_mut().remove(id as u64))?,
    )?;
    let shared = state.clone();
    natives.set(
        "timerRef",
        Function::new(ctx.clone(), move |id: f64, on: bool| {
            shared.timers.borrow_mut().set_referenced(id as u64, on);
        })?,
    )?;
    let shared = state.clone();
    natives.set(
        "timerHasRef",
        Function::new(ctx.clone(), move |id: f64| shared.timers.borrow().is_referenced(id as u64))?,
    )?;
    let shared = state.clone();
    natives.set(
        "timerRefresh",
        Function::new(ctx.clone(), move |id: f64, delay: f64| {
            shared.timers.borrow_mut().refresh(id as u64, now(), delay_ms(delay));
        })?,
    )?;
    natives.set("microtask", Function::new(ctx.clone(), |callback: Function<'js>| callback.defer(()))?)
}

fn process<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    natives.set(
        "exit",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, code: Opt<Coerced<f64>>| -> Result<()> {
            let code = code.0.map_or(0.0, |code| code.0);
            // As a process's exit code: only the low byte is used.
            let code = if code.is_finite() { (code as i64 & 0xff) as i32 } else { 0 };
            Err(shared.stop(&ctx, StopReason::Exit(code)))
        })?,
    )?;
    let shared = state.clone();
    natives.set(
        "nanoseconds",
        Function::new(ctx.clone(), move || now().saturating_sub(shared.session_started.get()) as f64)?,
    )?;
    let shared = state.clone();
    natives.set("runSeen", Function::new(ctx.clone(), move || shared.run_set.set(true))?)?;
    let shared = state.clone();
    natives.set("keeps", Function::new(ctx.clone(), move || shared.keeps_targets.set(true))?)?;
    let shared = state.clone();
    natives.set("processListens", Function::new(ctx.clone(), move || shared.process_listens.set(true))?)?;
    natives.set("heapBytes", Function::new(ctx.clone(), || sys::own_heap_bytes() as f64)?)?;
    for (name, level) in [("stdout", ConsoleLevel::Log), ("stderr", ConsoleLevel::Error)] {
        let shared = state.clone();
        let write = move |ctx: Ctx<'js>, text: rquickjs::String<'js>| {
            let text = Inspector::new(&ctx, &shared).text(&text, console::text_limit(&shared));
            console::write_text(&ctx, &shared, level, &text)
        };
        natives.set(name, Function::new(ctx.clone(), write)?)?;
    }
    Ok(())
}

/// `Math.random` with the session's generator.
pub(super) fn install_random(ctx: &Ctx<'_>, state: &SharedState) -> Result<()> {
    let shared = state.clone();
    let random = Function::new(ctx.clone(), move || shared.random.next())?.with_name("random")?;
    let math: Object = ctx.globals().get("Math")?;
    define_hidden(&math, "random", random.into_value())
}

/// The `console` global.
pub(super) fn install_console<'js>(ctx: &Ctx<'js>, state: &SharedState) -> Result<()> {
    let console = Object::new(ctx.clone())?;
    for method in vm_system_inspect::METHODS {
        let shared = state.clone();
        let call = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
            console::call(
                &ctx,
                &shared,
                method.1,
                &console::customized(&ctx, &shared, method.1, arguments.0)?,
            )
        };
        console.set(method.0, Function::new(ctx.clone(), call)?.with_name(method.0)?)?;
    }
    define_hidden(&ctx.globals(), "console", console.into_value())
}

/// Defines a property with the attributes of built-in ones: writable, configurable, not enumerable.
pub(super) fn define_hidden<'js>(object: &Object<'js>, name: &str, value: Value<'js>) -> Result<()> {
    object.prop(name, rquickjs::object::Property::from(value).writable().configurable())
}

fn sloppy() -> rquickjs::context::EvalOptions {
    let mut options = rquickjs::context::EvalOptions::default();
    options.strict = false;
    options
}
