//! Owns one execution from source text to outcome: globals of the run, evaluation, event loop, last events.

use super::budget::{Stop, now};
use super::console::ConsoleState;
use super::inspect::Look;
use super::position::FileMap;
use super::preload::STACK_BYTES;
use super::source::repl::{self, Kind, Prepared};
use super::source::{SourceError, typescript};
use super::state::Shared;
use super::timers::Task;
use super::{disabled, exception, modules, natives, preview, sys};
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::{Ctx, Error, Function, Object, Persistent, Promise, Result, Value};
use std::time::Duration;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{EventPayload, ExecutionKind};
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::{Execute, Outcome, SourceFormat, WorkerEvent};

/// Most jobs that are discarded after a stop; a queue that is longer ends with the process.
const DISCARDED_JOBS: usize = 50_000_000;

/// What came of an execution.
pub(super) struct Ended {
    pub(super) events: Vec<WorkerEvent>,
    pub(super) outcome: Outcome,
    pub(super) result: Option<JsonText>,
}

/// What evaluating the text gave so far.
enum Evaluated<'js> {
    Value(Value<'js>),
    /// A script that awaits: resolves to an object whose `value` is the result.
    Script(Promise<'js>),
    /// A module: resolves to nothing of interest.
    Module(Promise<'js>),
}

/// Why an execution did not run to its end.
enum Failure<'js> {
    Threw(Value<'js>),
    /// The text could not be parsed.
    Syntax(Value<'js>),
    /// The stop is in the budget.
    Stopped,
}

/// Runs a job; the budget has begun.
pub(super) fn execute(ctx: &Ctx<'_>, state: &Shared, job: &Execute) -> Ended {
    sys::stack_starts_here(ctx);
    let result = begin(ctx, state, job).and_then(|globals| {
        let result = evaluate(ctx, state, job).and_then(|evaluated| settle(ctx, state, evaluated));
        end_globals(ctx, globals);
        result
    });
    let ended = finish(ctx, state, job, result);
    // What is left over belongs to nobody: an execution that was stopped must not go on in the next one.
    state.timers.borrow_mut().clear();
    state.budget.end();
    sys::discard_jobs(ctx, STACK_BYTES, DISCARDED_JOBS);
    state.rejections.borrow_mut().clear();
    state.tidy_heap(ctx);
    ended
}

/// Globals of this run. Gives what `args` hid.
fn begin<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    job: &Execute,
) -> std::result::Result<Option<RunGlobals>, Failure<'js>> {
    let prepare = || -> Result<Option<RunGlobals>> {
        state.allowed_modules.borrow_mut().clone_from(&job.policy.modules);
        *state.console.borrow_mut() = ConsoleState::default();
        disabled::apply(ctx, state, &job.policy.disabled_globals)?;
        let mut globals = modules::begin(ctx, state, job)?;
        if job.kind == ExecutionKind::Repl
            && job.env.is_empty()
            && job.argv.is_empty()
            && !state.run_set.get()
        {
            return Ok(None);
        }
        state.run_set.set(job.kind != ExecutionKind::Repl || !job.env.is_empty());
        let env = Object::new(ctx.clone())?;
        for (name, value) in &job.env {
            env.prop(
                name.as_str(),
                rquickjs::object::Property::from(value.as_str()).enumerable().writable().configurable(),
            )?;
        }
        let argv = if job.argv.is_empty() {
            vec!["vm-system".to_owned(), job.file_name.clone()]
        } else {
            job.argv.clone()
        };
        let _: Value = state.captured_function(ctx, "beginRun")?.call((argv, env))?;
        if job.kind == ExecutionKind::Repl && job.args.as_str() == "{}" {
            return Ok(None);
        }
        let args: Value = ctx.json_parse(job.args.as_str())?;
        globals.push(("args", args.clone()));
        globals.push(("__ARGS__", args));
        RunGlobals::define(ctx, globals).map(Some)
    };
    prepare().map_err(|error| failure(ctx, state, &error))
}

/// Globals that only one run sees: name, value, and what the name meant before.
struct RunGlobals(Vec<RunGlobal>);

type RunGlobal = (&'static str, Persistent<Value<'static>>, Option<Persistent<Value<'static>>>);

impl RunGlobals {
    fn define<'js>(ctx: &Ctx<'js>, values: Vec<(&'static str, Value<'js>)>) -> Result<Self> {
        let globals = ctx.globals();
        let mut defined = Vec::with_capacity(values.len());
        for (name, value) in values {
            let before: Option<Value> =
                if globals.contains_key(name)? { globals.get(name).ok() } else { None };
            if natives::define_hidden(&globals, name, value.clone()).is_err() {
                // A `var` of a script, which cannot be defined anew.
                drop(ctx.catch());
                globals.set(name, value.clone())?;
            }
            defined.push((
                name,
                Persistent::save(ctx, value),
                before.map(|before| Persistent::save(ctx, before)),
            ));
        }
        Ok(Self(defined))
    }

    /// A script that declared a variable of one of the names keeps it.
    fn remove(self, ctx: &Ctx<'_>) -> Result<()> {
        let globals = ctx.globals();
        for (name, ours, before) in self.0 {
            let (ours, now): (Value, Value) = (ours.restore(ctx)?, globals.get(name)?);
            if ours.type_of() != now.type_of() || sys::identity(&now) != sys::identity(&ours) {
                continue;
            }
            let before = before.map(|before| before.restore(ctx)).transpose()?;
            if globals.remove(name).is_err() {
                drop(ctx.catch());
                globals.set(name, before)?;
            } else if let Some(before) = before {
                natives::define_hidden(&globals, name, before)?;
            }
        }
        Ok(())
    }
}

fn end_globals(ctx: &Ctx<'_>, globals: Option<RunGlobals>) {
    if globals.is_some_and(|globals| globals.remove(ctx).is_err()) {
        drop(ctx.catch());
    }
}

/// The pending exception, unless it only carries a stop.
fn failure<'js>(ctx: &Ctx<'js>, state: &Shared, error: &Error) -> Failure<'js> {
    let thrown = if error.is_exception() { ctx.catch() } else { error_value(ctx, error) };
    if state.budget.stop().is_some() { Failure::Stopped } else { Failure::Threw(thrown) }
}

/// A rust-side error as a value of the script.
fn error_value<'js>(ctx: &Ctx<'js>, error: &Error) -> Value<'js> {
    let exception = rquickjs::Exception::from_message(ctx.clone(), &error.to_string());
    let no_memory = |_| {
        drop(ctx.catch());
        Value::new_null(ctx.clone())
    };
    exception.map_or_else(no_memory, rquickjs::Exception::into_value)
}

fn evaluate<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    job: &Execute,
) -> std::result::Result<Evaluated<'js>, Failure<'js>> {
    let source = job.source.as_str();
    match job.format {
        SourceFormat::Script => script(ctx, state, job, source, FileMap::default()),
        SourceFormat::TypeScript => {
            let stripped = strip(ctx, state, job, false)?;
            script(ctx, state, job, &stripped.text, stripped.map)
        }
        SourceFormat::Module => module(ctx, state, job, source, FileMap::default()),
        SourceFormat::TypeScriptModule => {
            let stripped = strip(ctx, state, job, true)?;
            module(ctx, state, job, &stripped.text, stripped.map)
        }
        SourceFormat::CommonJs => modules::run_common_js(ctx, state, &job.file_name, source)
            .map(Evaluated::Value)
            .map_err(|error| failure(ctx, state, &error)),
        SourceFormat::Json => {
            ctx.json_parse(source).map(Evaluated::Value).map_err(|error| match failure(ctx, state, &error) {
                Failure::Threw(thrown) => Failure::Syntax(thrown),
                other => other,
            })
        }
    }
}

fn strip<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    job: &Execute,
    module: bool,
) -> std::result::Result<typescript::Stripped, Failure<'js>> {
    typescript::strip(&job.source, &job.file_name, module).map_err(|error| syntax(ctx, state, job, &error))
}

/// A `SyntaxError` of our own parser.
fn syntax<'js>(ctx: &Ctx<'js>, state: &Shared, job: &Execute, error: &SourceError) -> Failure<'js> {
    let value = modules::syntax_error(ctx, error, &job.file_name);
    let _ = state;
    Failure::Syntax(value)
}

fn script<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    job: &Execute,
    source: &str,
    map: FileMap,
) -> std::result::Result<Evaluated<'js>, Failure<'js>> {
    let prepared = repl::prepare(source, &state.constants.borrow()).map_err(|mut error| {
        (error.line, error.column) = map.original(error.line, error.column);
        syntax(ctx, state, job, &error)
    })?;
    declare(ctx, state, &prepared).map_err(|error| failure(ctx, state, &error))?;
    let map = FileMap { insertions: prepared.map.insertions, tokens: map.tokens };
    let name = state.maps.borrow_mut().add(&job.file_name, map);
    let mut options = EvalOptions::default();
    options.strict = job.policy.strict;
    options.promise = prepared.awaits;
    options.filename = Some(name);
    let evaluated: Result<Value> = ctx.eval_with_options(prepared.text.as_bytes(), options);
    match evaluated {
        Ok(value) if prepared.awaits => match Promise::from_value(value) {
            Ok(promise) => Ok(Evaluated::Script(promise)),
            Err(error) => Err(failure(ctx, state, &error)),
        },
        Ok(value) => Ok(Evaluated::Value(value)),
        Err(error) => {
            Err(script_failure(ctx, state, &error, &prepared.text, prepared.awaits, job.policy.strict))
        }
    }
}

/// Tells a text that never ran from one that threw a `SyntaxError`: only the former does not compile.
fn script_failure<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    error: &Error,
    text: &str,
    awaits: bool,
    strict: bool,
) -> Failure<'js> {
    let failure = failure(ctx, state, error);
    let Failure::Threw(thrown) = &failure else { return failure };
    let is_syntax_error = thrown
        .as_object()
        .is_some_and(|error| Look::new(ctx, state).error_header(error).starts_with("SyntaxError"));
    if is_syntax_error && !sys::compiles(ctx, text, awaits, strict) {
        return Failure::Syntax(thrown.clone());
    }
    failure
}

/// Makes the top-level names of a script known, so that they can be declared again and again.
fn declare(ctx: &Ctx<'_>, state: &Shared, prepared: &Prepared<'_>) -> Result<()> {
    if prepared.declared.is_empty() {
        return Ok(());
    }
    let declare = state.captured_function(ctx, "declare")?;
    let undeclare = state.captured_function(ctx, "undeclare")?;
    for declared in &prepared.declared {
        let name = declared.name.as_str();
        if declared.kind == Kind::Variable {
            let _: Value = undeclare.call((name,))?;
            state.constants.borrow_mut().remove(name);
            continue;
        }
        let constant = declared.kind == Kind::Constant;
        let done: bool = declare.call((name, constant))?;
        if !done {
            let message = format!("Identifier '{name}' has already been declared");
            return Err(rquickjs::Exception::throw_syntax(ctx, &message));
        }
        if constant {
            state.constants.borrow_mut().insert(name.to_owned());
        } else {
            state.constants.borrow_mut().remove(name);
        }
    }
    Ok(())
}

fn module<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    job: &Execute,
    source: &str,
    map: FileMap,
) -> std::result::Result<Evaluated<'js>, Failure<'js>> {
    let declared = modules::declare_main(ctx, state, &job.file_name, source, map).map_err(|error| {
        match failure(ctx, state, &error) {
            Failure::Threw(thrown)
                if thrown.as_object().is_some_and(|error| {
                    Look::new(ctx, state).error_header(error).starts_with("SyntaxError")
                }) =>
            {
                Failure::Syntax(thrown)
            }
            other => other,
        }
    })?;
    modules::start(declared).map(Evaluated::Module).map_err(|error| failure(ctx, state, &error))
}

/// Runs the event loop until the result is settled and nothing is left to do.
fn settle<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
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
            .and_then(|holder| Look::new(ctx, state).own_data(holder, "value"))
            .unwrap_or(holder)),
        (_, Some((sys::Settled::Pending, _))) => {
            let message = "top-level await never settled: nothing is left that could resolve it";
            Err(Failure::Threw(error_value(ctx, &Error::new_loading(message))))
        }
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}

/// `process.nextTick` callbacks and promise jobs until there are none.
fn microtasks<'js>(ctx: &Ctx<'js>, state: &Shared) -> std::result::Result<(), Failure<'js>> {
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
            // A job that is short never reaches the interrupt hook, but many of them must.
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

/// Runs what is due next, waiting for it if need be; `false`: nothing is left.
fn macrotask<'js>(ctx: &Ctx<'js>, state: &Shared) -> std::result::Result<bool, Failure<'js>> {
    loop {
        if state.interrupted() {
            return Err(Failure::Stopped);
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
        let Some(next) = state.timers.borrow().next_due() else { return Ok(false) };
        let wait = Duration::from_nanos(next.saturating_sub(now())).min(state.budget.wall_left());
        if !wait.is_zero() {
            state.host.with(|host| host.sleep(wait));
        }
    }
}

fn run_task<'js>(ctx: &Ctx<'js>, state: &Shared, task: Task) -> std::result::Result<(), Failure<'js>> {
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

/// The last events and the outcome.
fn finish<'js>(
    ctx: &Ctx<'js>,
    state: &Shared,
    job: &Execute,
    result: std::result::Result<Value<'js>, Failure<'js>>,
) -> Ended {
    let mut events = Vec::new();
    let mut json = None;
    let at = || state.budget.elapsed_us();
    let outcome = match result {
        Ok(value) => {
            let look = Look::new(ctx, state);
            json = preview::json(&look, &value);
            let exit = if job.kind == ExecutionKind::Repl { 0 } else { exit_code(ctx, state) };
            if job.kind == ExecutionKind::Repl {
                let payload = preview::event(&look, &value, json.clone());
                if state.budget.take_event(payload.output_bytes()) {
                    events.push(WorkerEvent { at_us: at(), payload });
                }
            }
            match state.budget.stop() {
                Some(stop) => stopped(stop),
                None if exit != 0 => Outcome::Exit { code: exit },
                None => Outcome::Ok,
            }
        }
        Err(Failure::Stopped) => state.budget.stop().map_or(Outcome::Interrupted, stopped),
        Err(Failure::Threw(thrown)) => {
            let described = exception::describe(ctx, state, &thrown);
            let out_of_memory = is_out_of_memory(&thrown, &described.message, job);
            let message =
                if out_of_memory { "InternalError: out of memory".to_owned() } else { described.message };
            events.push(WorkerEvent {
                at_us: at(),
                payload: EventPayload::Exception { message: message.clone(), stack: described.stack },
            });
            if out_of_memory { Outcome::Limit(LimitKind::Memory) } else { Outcome::Exception { message } }
        }
        Err(Failure::Syntax(thrown)) => {
            let exception::Described { message, stack } = exception::describe(ctx, state, &thrown);
            let payload = EventPayload::Exception { message: message.clone(), stack };
            events.push(WorkerEvent { at_us: at(), payload });
            Outcome::SyntaxError { message }
        }
    };
    Ended { events, outcome, result: json }
}

fn stopped(stop: Stop) -> Outcome {
    match stop {
        Stop::Limit(kind) => Outcome::Limit(kind),
        Stop::Interrupted => Outcome::Interrupted,
        Stop::Exit(0) => Outcome::Ok,
        Stop::Exit(code) => Outcome::Exit { code },
    }
}

fn exit_code(ctx: &Ctx<'_>, state: &Shared) -> i32 {
    let code = state.captured_function(ctx, "exitCode").and_then(|get| get.call::<_, f64>(()));
    code.map_or_else(
        |_| {
            drop(ctx.catch());
            0
        },
        |code| (code as i64 & 0xff) as i32,
    )
}

/// QuickJS throws an `InternalError`, or `null` when there is no memory for that either.
fn is_out_of_memory(thrown: &Value<'_>, message: &str, job: &Execute) -> bool {
    let limit = u64::from(job.policy.limits.mem_mb) * 1024 * 1024;
    let near = sys::heap_peak() as u64 >= limit - limit / 8;
    message.starts_with("InternalError: out of memory") || (thrown.is_null() && near)
}
