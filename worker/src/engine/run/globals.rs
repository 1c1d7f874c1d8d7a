//! Owns the globals of one run: `process.argv` and `process.env`, `args`, `require`, `module`, `exports`, `__filename`, `__dirname`.

use super::{Failure, process_events};
use crate::engine::console::ConsoleState;
use crate::engine::state::SharedState;
use crate::engine::{disabled, modules, natives, sys};
use rquickjs::{Ctx, Object, Persistent, Result, Value};
use vm_system_protocol::model::ExecutionKind;
use vm_system_protocol::worker::Execute;

/// Sets the globals of this run. Returns the previous value of `args`.
pub(super) fn begin<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    job: &Execute,
) -> std::result::Result<Option<RunGlobals>, Failure<'js>> {
    let prepare = || -> Result<Option<RunGlobals>> {
        state.allowed_modules.borrow_mut().clone_from(&job.policy.modules);
        state.refused_modules.borrow_mut().clone_from(&job.policy.refused_modules);
        *state.console.borrow_mut() = ConsoleState::default();
        process_events::begin(ctx, state)?;
        disabled::apply(ctx, state, &job.policy.disabled_globals)?;
        let mut globals = modules::begin(ctx, state, job)?;
        let usual = is_usual(job);
        if state.promise_reports.is_started() {
            state.captured_function(ctx, "clearContext")?.call::<_, ()>(())?;
        }
        if !usual || state.run_set.get() {
            state.run_set.set(!usual);
            begin_run(ctx, state, job)?;
        }
        if job.kind == ExecutionKind::Repl && job.args.as_str() == "{}" {
            return Ok(None);
        }
        let args: Value = ctx.json_parse(job.args.as_str())?;
        globals.push(("args", args.clone()));
        globals.push(("__ARGS__", args));
        RunGlobals::define(ctx, globals).map(Some)
    };
    prepare().map_err(|error| super::failure(ctx, state, &error))
}

fn begin_run(ctx: &Ctx<'_>, state: &SharedState, job: &Execute) -> Result<()> {
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
    state.captured_function(ctx, "beginRun")?.call((argv, env))
}

/// Whether `process.argv` and `process.env` have their initial values (`prelude/core.js`), as for most repl inputs. Then they are
/// not written, so that the session shares their memory with other sessions.
fn is_usual(job: &Execute) -> bool {
    job.kind == ExecutionKind::Repl
        && job.env.is_empty()
        && (job.argv.is_empty() || job.argv.iter().eq(["vm-system", modules::REPL_NAME]))
}

/// Globals of one run: name, value, and the previous value of the name.
pub(super) struct RunGlobals(Vec<RunGlobal>);

type RunGlobal = (&'static str, Persistent<Value<'static>>, Option<Persistent<Value<'static>>>);

impl RunGlobals {
    fn define<'js>(ctx: &Ctx<'js>, values: Vec<(&'static str, Value<'js>)>) -> Result<Self> {
        let globals = ctx.globals();
        let mut defined = Vec::with_capacity(values.len());
        for (name, value) in values {
            let before: Option<Value> =
                if globals.contains_key(name)? { globals.get(name).ok() } else { None };
            if natives::define_hidden(&globals, name, value.clone()).is_err() {
                // A `var` of a script, which cannot be redefined.
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

    /// Removes the globals; a variable of the same name that the script declared stays.
    fn remove(self, ctx: &Ctx<'_>) -> Result<()> {
        let globals = ctx.globals();
        for (name, ours, before) in self.0 {
            let (ours, now): (Value, Value) = (ours.restore(ctx)?, globals.get(name)?);
            if !sys::is_same(&now, &ours) {
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

pub(super) fn end(ctx: &Ctx<'_>, globals: Option<RunGlobals>) {
    if globals.is_some_and(|globals| globals.remove(ctx).is_err()) {
        drop(ctx.catch());
    }
}
