//! Owns one execution from source text to outcome: globals of the run, evaluation, event loop, last events.

mod event_loop;
mod globals;
mod process_events;

use super::budget::StopReason;
use super::inspect::Inspector;
use super::position::FileMap;
use super::preload::STACK_BYTES;
use super::source::repl::{self, DeclarationKind, PreparedInput};
use super::source::{SourceError, typescript};
use super::state::SharedState;
use super::{exception, modules, preview, sys};
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Error, Promise, Result, Value};
use vm_system_protocol::control::INTERACTIVE_INPUT;
use vm_system_protocol::model::{EventPayload, ExecutionKind, SYNTAX_ERROR_CODE};
use vm_system_protocol::reason::{EXIT_UNSETTLED, LimitKind, NEVER_SETTLED};
use vm_system_protocol::worker::{Execute, Outcome, SourceFormat, WorkerEvent};

/// Most jobs that are discarded after a stop; a longer queue ends the process.
const DISCARDED_JOBS: usize = 50_000_000;

/// The result of an execution.
pub(super) struct ExecutionEnd {
    pub(super) events: Vec<WorkerEvent>,
    pub(super) outcome: Outcome,
}

/// The result of evaluating the text, before the event loop.
enum Evaluated<'js> {
    Value(Value<'js>),
    /// A script that awaits: resolves to an object with the result in `value`.
    Script(Promise<'js>),
    /// A module: its promise has no useful value.
    Module(Promise<'js>),
}

/// Why an execution failed.
enum Failure<'js> {
    Threw(Value<'js>),
    /// The text could not be parsed.
    Syntax(Value<'js>),
    /// Nothing is left that could settle what the top level awaits.
    Unsettled(Evaluated<'js>),
    /// Stopped; the budget has the reason.
    Stopped,
}

/// Runs a job; the budget was started.
pub(super) fn execute(ctx: &Ctx<'_>, state: &SharedState, job: &Execute) -> ExecutionEnd {
    sys::stack_starts_here(ctx);
    let result = globals::begin(ctx, state, job).and_then(|run_globals| {
        let result = evaluate(ctx, state, job).or_else(|failed| process_events::uncaught(ctx, state, failed));
        let result = result.and_then(|evaluated| event_loop::settle(ctx, state, evaluated));
        let result = process_events::at_the_end(ctx, state, result);
        let ended = state.captured_function(ctx, "endOutput").and_then(|end| end.call::<_, ()>(()));
        let result = ended.map_err(|error| failure(ctx, state, &error)).and(result);
        globals::end(ctx, run_globals);
        result
    });
    let ended = finish(ctx, state, job, result);
    tidy_up(ctx, state);
    ended
}

/// Runs code outside of an execution, with its event loop, within the started budget. Returns the failure and its position.
pub(super) fn to_the_end<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    mem_mb: u32,
    start: impl FnOnce() -> Result<Option<Promise<'js>>>,
) -> std::result::Result<(), String> {
    sys::stack_starts_here(ctx);
    let started = start().map_err(|error| failure(ctx, state, &error));
    let result = started.and_then(|promise| {
        let undefined = Evaluated::Value(Value::new_undefined(ctx.clone()));
        event_loop::settle(ctx, state, promise.map_or(undefined, Evaluated::Module))
    });
    let outcome = match result {
        Ok(_) => Ok(()),
        Err(Failure::Stopped) => Err(match state.budget.stop() {
            Some(StopReason::Limit(kind)) => {
                format!("it reached its {} limit while it was evaluated", kind.name())
            }
            Some(StopReason::Exit(code)) => format!("it called process.exit({code})"),
            Some(StopReason::Interrupted) | None => "it was interrupted".to_owned(),
        }),
        Err(failed) => {
            let thrown = match failed {
                Failure::Threw(thrown) | Failure::Syntax(thrown) => thrown,
                Failure::Unsettled(_) | Failure::Stopped => error_value(ctx, NEVER_SETTLED),
            };
            let exception::Described { message, stack, .. } = exception::describe(ctx, state, &thrown);
            if is_out_of_memory(&thrown, &message, mem_mb) {
                Err(format!("it needs more than {mem_mb} MiB while it is evaluated"))
            } else {
                let place = stack.lines().find_map(|line| line.trim_start().strip_prefix("at "));
                Err(place.map_or_else(|| message.clone(), |place| format!("{message} (at {place})")))
            }
        }
    };
    tidy_up(ctx, state);
    outcome
}

/// Discards timers and queued jobs: a stopped execution must not continue in the next one.
fn tidy_up(ctx: &Ctx<'_>, state: &SharedState) {
    state.timers.borrow_mut().clear();
    let open = state.http.borrow_mut().end_execution();
    let has_waited = !open.is_empty();
    drop(open);
    state.budget.end();
    sys::discard_jobs(ctx, STACK_BYTES, DISCARDED_JOBS);
    state.rejections.borrow_mut().clear();
    if has_waited {
        // Promises that wait for a request are held by cycles, with whatever memory they have.
        state.collect(ctx);
    } else {
        state.tidy_heap(ctx);
    }
}

/// The failure of the pending exception; `Stopped` if the exception only carries a stop.
fn failure<'js>(ctx: &Ctx<'js>, state: &SharedState, error: &Error) -> Failure<'js> {
    let thrown = if error.is_exception() { ctx.catch() } else { error_value(ctx, &error.to_string()) };
    if state.budget.stop().is_some() { Failure::Stopped } else { Failure::Threw(thrown) }
}

/// An error of this crate as a JavaScript value.
fn error_value<'js>(ctx: &Ctx<'js>, message: &str) -> Value<'js> {
    let exception = rquickjs::Exception::from_message(ctx.clone(), message);
    let no_memory = |_| {
        drop(ctx.catch());
        Value::new_null(ctx.clone())
    };
    exception.map_or_else(no_memory, rquickjs::Exception::into_value)
}

fn evaluate<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    job: &Execute,
) -> std::result::Result<Evaluated<'js>, Failure<'js>> {
    let source = job.source.as_str();
    match job.format {
        SourceFormat::Script => script(ctx, state, job, source, FileMap::default()),
        SourceFormat::TypeScript => {
            let stripped = strip(ctx, state, job, false)?;
            // As in TypeScript, except `.cts`, which is CommonJS.
            let is_common_js =
                job.file_name.rsplit_once('.').is_some_and(|(_, extension)| extension == "cts");
            if stripped.is_module && !is_common_js {
                return module(ctx, state, job, &stripped.text, stripped.map);
            }
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
    state: &SharedState,
    job: &Execute,
    module: bool,
) -> std::result::Result<typescript::Stripped, Failure<'js>> {
    typescript::strip(&job.source, &job.file_name, module).map_err(|error| syntax(ctx, state, job, &error))
}

/// A `SyntaxError` of our parser.
fn syntax<'js>(ctx: &Ctx<'js>, state: &SharedState, job: &Execute, error: &SourceError) -> Failure<'js> {
    let value = modules::syntax_error(ctx, error, &job.file_name);
    let _ = state;
    Failure::Syntax(value)
}

fn script<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
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
    state.texts.borrow_mut().keep(&name, &prepared.text, false);
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

/// Distinguishes a `SyntaxError` of the text, which did not compile, from one that the text threw.
fn script_failure<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    error: &Error,
    text: &str,
    awaits: bool,
    strict: bool,
) -> Failure<'js> {
    let failure = failure(ctx, state, error);
    let Failure::Threw(thrown) = &failure else { return failure };
    let is_syntax_error = thrown
        .as_object()
        .is_some_and(|error| Inspector::new(ctx, state).error_header(error).starts_with("SyntaxError"));
    if is_syntax_error && !sys::compiles(ctx, text, awaits, strict) {
        return Failure::Syntax(thrown.clone());
    }
    failure
}

/// Declares the top-level names of a script as properties, so that later scripts can declare them again.
fn declare(ctx: &Ctx<'_>, state: &SharedState, prepared: &PreparedInput<'_>) -> Result<()> {
    if prepared.declared.is_empty() {
        return Ok(());
    }
    let declare = state.captured_function(ctx, "declare")?;
    let undeclare = state.captured_function(ctx, "undeclare")?;
    for declared in &prepared.declared {
        let name = declared.name.as_str();
        if declared.kind == DeclarationKind::Variable {
            let _: Value = undeclare.call((name,))?;
            state.constants.borrow_mut().remove(name);
            continue;
        }
        let constant = declared.kind == DeclarationKind::Constant;
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
    state: &SharedState,
    job: &Execute,
    source: &str,
    map: FileMap,
) -> std::result::Result<Evaluated<'js>, Failure<'js>> {
    let declared = modules::declare_main(ctx, state, &job.file_name, source, map).map_err(|error| {
        match failure(ctx, state, &error) {
            Failure::Threw(thrown)
                if thrown.as_object().is_some_and(|error| {
                    Inspector::new(ctx, state).error_header(error).starts_with("SyntaxError")
                }) =>
            {
                Failure::Syntax(thrown)
            }
            other => other,
        }
    })?;
    modules::start(declared).map(Evaluated::Module).map_err(|error| failure(ctx, state, &error))
}

/// The last events and the outcome.
fn finish<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    job: &Execute,
    result: std::result::Result<Value<'js>, Failure<'js>>,
) -> ExecutionEnd {
    let mut events = Vec::new();
    let at = || state.budget.elapsed_us();
    let is_unsettled = matches!(result, Err(Failure::Unsettled(_)));
    let result = match result {
        Err(Failure::Unsettled(_)) => {
            // As in Node, a file's own exit code is the one that counts.
            let is_file = job.kind != ExecutionKind::Repl;
            let code = if is_file { exit_code(ctx, state, EXIT_UNSETTLED) } else { EXIT_UNSETTLED };
            if code != EXIT_UNSETTLED {
                return ExecutionEnd { events, outcome: stopped(StopReason::Exit(code)) };
            }
            Err(Failure::Threw(error_value(ctx, NEVER_SETTLED)))
        }
        result => result,
    };
    let outcome = match result {
        Ok(value) => {
            let inspector = Inspector::new(ctx, state);
            let exit = if job.kind == ExecutionKind::Repl { 0 } else { exit_code(ctx, state, 0) };
            if job.kind == ExecutionKind::Repl && job.file_name == INTERACTIVE_INPUT {
                remember(ctx, state, &value);
            }
            if exit == 0 {
                let result = preview::result(&inspector, &value, state.budget.output_left());
                let payload = EventPayload::Value(result);
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
        Err(Failure::Stopped | Failure::Unsettled(_)) => {
            state.budget.stop().map_or(Outcome::Interrupted, stopped)
        }
        Err(Failure::Threw(thrown)) => {
            let described = exception::describe(ctx, state, &thrown);
            let out_of_memory = is_out_of_memory(&thrown, &described.message, job.policy.limits.mem_mb);
            let exception::Described { mut message, stack, code, truncated, full_bytes } = described;
            if out_of_memory {
                "InternalError: out of memory".clone_into(&mut message);
            }
            let payload =
                EventPayload::Exception { message: message.clone(), stack, code, truncated, full_bytes };
            events.push(WorkerEvent { at_us: at(), payload });
            match () {
                () if out_of_memory => Outcome::Limit(LimitKind::Memory),
                () if is_unsettled => Outcome::Exit { code: EXIT_UNSETTLED },
                () => Outcome::Exception { message },
            }
        }
        Err(Failure::Syntax(thrown)) => {
            let exception::Described { message, stack, truncated, full_bytes, .. } =
                exception::describe(ctx, state, &thrown);
            let code = Some(SYNTAX_ERROR_CODE.to_owned());
            let payload =
                EventPayload::Exception { message: message.clone(), stack, code, truncated, full_bytes };
            events.push(WorkerEvent { at_us: at(), payload });
            Outcome::SyntaxError { message }
        }
    };
    ExecutionEnd { events, outcome }
}

fn stopped(stop: StopReason) -> Outcome {
    match stop {
        StopReason::Limit(kind) => Outcome::Limit(kind),
        StopReason::Interrupted => Outcome::Interrupted,
        StopReason::Exit(0) => Outcome::Ok,
        StopReason::Exit(code) => Outcome::Exit { code },
    }
}

/// Keeps the value for `_`; without memory for that, there is no `_`.
fn remember<'js>(ctx: &Ctx<'js>, state: &SharedState, value: &Value<'js>) {
    let kept: Result<()> =
        state.captured_function(ctx, "remember").and_then(|remember| remember.call((value.clone(),)));
    if kept.is_err() {
        drop(ctx.catch());
    }
}

/// `process.exitCode`, or `unset` if the script has not set it.
fn exit_code(ctx: &Ctx<'_>, state: &SharedState, unset: i32) -> i32 {
    let code = state.captured_function(ctx, "exitCode").and_then(|get| get.call::<_, f64>((unset,)));
    code.map_or_else(
        |_| {
            drop(ctx.catch());
            unset
        },
        |code| (code as i64 & 0xff) as i32,
    )
}

/// QuickJS throws an `InternalError`. If there is no memory for the error's parts, it throws the error without a message, `null`,
/// or nothing at all, and the code after an `await` does not continue.
fn is_out_of_memory(thrown: &Value<'_>, message: &str, mem_mb: u32) -> bool {
    let limit = u64::from(mem_mb) * 1024 * 1024;
    let near = sys::own_heap_peak() as u64 >= limit - limit / 8;
    message.starts_with("InternalError: out of memory")
        || thrown.type_of() == rquickjs::Type::Uninitialized
        || (near && (thrown.is_null() || message == "InternalError" || message.ends_with(NEVER_SETTLED)))
}
