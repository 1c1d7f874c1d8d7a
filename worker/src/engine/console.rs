//! Owns `console` of a session: its state, and its texts as events. `vm-system-inspect` has the methods.

use super::budget::now;
use super::inspect::Inspector;
use super::state::SharedState;
use rquickjs::{Ctx, Function, Result, Value};
use std::collections::HashMap;
use vm_system_inspect::{ConsoleMemory, ConsoleMethod, OutputLevel};
use vm_system_protocol::model::{ConsoleLevel, EventPayload, console_piece};

/// Longest text of one call (bytes); longer ones are cut and marked. `max_output_kb` is mostly lower.
const TEXT_BYTES: usize = 64 << 20;
/// How many labels of counters or timers there may be.
const LABELS: usize = 1_000;

/// The state of `console` during an execution.
#[derive(Default)]
pub(super) struct ConsoleState {
    groups: usize,
    counts: HashMap<String, u64>,
    timers: HashMap<String, u64>,
}

impl ConsoleMemory for ConsoleState {
    fn groups(&self) -> usize {
        self.groups
    }

    fn set_groups(&mut self, levels: usize) {
        self.groups = levels;
    }

    fn count(&mut self, label: &str) -> u64 {
        if self.counts.len() >= LABELS && !self.counts.contains_key(label) {
            self.counts.clear();
        }
        let count = self.counts.entry(label.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn reset_count(&mut self, label: &str) -> bool {
        self.counts.remove(label).is_some()
    }

    fn start_timer(&mut self, label: &str) -> bool {
        if self.timers.contains_key(label) {
            return false;
        }
        if self.timers.len() >= LABELS {
            self.timers.clear();
        }
        self.timers.insert(label.to_owned(), now());
        true
    }

    fn elapsed(&mut self, label: &str, end: bool) -> Option<u64> {
        let started = if end { self.timers.remove(label) } else { self.timers.get(label).copied() };
        started.map(|started| now().saturating_sub(started))
    }
}

/// Of a text so much is looked at at a time (code units).
const SLICE_UNITS: usize = 64 * 1024;

/// The arguments of a call, with the texts of those that have a method `util.inspect.custom`. Such a value itself is shown by its
/// method; values in it are not, and neither are those of a format: the inspector runs no code of a script.
pub(super) fn customized<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    method: ConsoleMethod,
    mut arguments: Vec<Value<'js>>,
) -> Result<Vec<Value<'js>>> {
    if !matches!(method, ConsoleMethod::Write(_)) || !arguments.iter().any(Value::is_object) {
        return Ok(arguments);
    }
    let inspector = Inspector::new(ctx, state);
    // In slices: a copy of a long text would exceed the limit of memory.
    let has_percent =
        |text| inspector.slices(text, SLICE_UNITS).any(|units| units.contains(&u16::from(b'%')));
    if arguments.first().and_then(Value::as_string).is_some_and(has_percent) {
        return Ok(arguments);
    }
    let Some(captured) = state.captured(ctx) else { return Ok(arguments) };
    let key: Value = captured.get("customInspect")?;
    let mut first = None;
    for (index, argument) in arguments.iter_mut().enumerate() {
        let Some(object) = argument.as_object().filter(|object| inspector.has_method(object, &key)) else {
            continue;
        };
        let show: Function = captured.get("inspectCustom")?;
        *argument = show.call((object.clone(),))?;
        first = first.or(Some(index));
    }
    if first == Some(0) {
        // The text of the first value is no format.
        let format = rquickjs::String::from_str(ctx.clone(), "%s")?.into_value();
        arguments.insert(0, format);
    }
    Ok(arguments)
}

/// A call of a method.
pub(super) fn call<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    method: ConsoleMethod,
    arguments: &[Value<'js>],
) -> Result<()> {
    let inspector = Inspector::new(ctx, state);
    let most = text_limit(state);
    // Taken out, because inspecting may run functions of the prelude.
    let mut memory = state.console.take();
    let output = vm_system_inspect::call(&inspector, &mut memory, method, arguments, most);
    state.console.replace(memory);
    let Some(output) = output else { return Ok(()) };
    let level = match output.level {
        OutputLevel::Log => ConsoleLevel::Log,
        OutputLevel::Info => ConsoleLevel::Info,
        OutputLevel::Warn => ConsoleLevel::Warn,
        OutputLevel::Error => ConsoleLevel::Error,
        OutputLevel::Debug => ConsoleLevel::Debug,
    };
    print(ctx, state, level, &output.text)
}

/// Longest text of a call now: one byte more than the execution may still print, which ends it.
pub(super) fn text_limit(state: &SharedState) -> usize {
    usize::try_from(state.budget.output_left()).unwrap_or(usize::MAX).saturating_add(1).clamp(100, TEXT_BYTES)
}

/// Sends a line, in several events if it is too long for one.
pub(super) fn print(ctx: &Ctx<'_>, state: &SharedState, level: ConsoleLevel, text: &str) -> Result<()> {
    pieces(ctx, state, level, text, false)
}

/// Sends a text as it is: without a line feed at its end, the next text continues its line.
pub(super) fn write_text(ctx: &Ctx<'_>, state: &SharedState, level: ConsoleLevel, text: &str) -> Result<()> {
    match text.strip_suffix('\n') {
        Some(line) => pieces(ctx, state, level, line, false),
        None if text.is_empty() => Ok(()),
        None => pieces(ctx, state, level, text, true),
    }
}

fn pieces(
    ctx: &Ctx<'_>,
    state: &SharedState,
    level: ConsoleLevel,
    text: &str,
    continues: bool,
) -> Result<()> {
    let mut rest = text;
    loop {
        let (piece, behind) = rest.split_at(console_piece(rest).len());
        let more = continues || !behind.is_empty();
        state.emit(ctx, EventPayload::Console { level, text: piece.to_owned(), more })?;
        if behind.is_empty() {
            return Ok(());
        }
        state.budget.check();
        rest = behind;
    }
}
