//! Owns `console`: the output of each method, in Node's format, as events.

use super::budget::now;
use super::inspect::{Inspector, LineRules, cut, cut_to};
use super::state::SharedState;
use super::{preview, table};
use rquickjs::{Coerced, Ctx, Result, Value};
use std::collections::HashMap;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, console_piece};

/// A method of `console`.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConsoleMethod {
    Write(ConsoleLevel),
    Dir,
    Assert,
    Count,
    CountReset,
    Group,
    GroupEnd,
    Table,
    Time,
    TimeEnd,
    TimeLog,
    Trace,
}

/// Names and meanings.
pub(super) const METHODS: [(&str, ConsoleMethod); 20] = [
    ("log", ConsoleMethod::Write(ConsoleLevel::Log)),
    ("info", ConsoleMethod::Write(ConsoleLevel::Info)),
    ("warn", ConsoleMethod::Write(ConsoleLevel::Warn)),
    ("error", ConsoleMethod::Write(ConsoleLevel::Error)),
    ("debug", ConsoleMethod::Write(ConsoleLevel::Debug)),
    ("dir", ConsoleMethod::Dir),
    ("dirxml", ConsoleMethod::Write(ConsoleLevel::Log)),
    ("assert", ConsoleMethod::Assert),
    ("count", ConsoleMethod::Count),
    ("countReset", ConsoleMethod::CountReset),
    ("group", ConsoleMethod::Group),
    ("groupCollapsed", ConsoleMethod::Group),
    ("groupEnd", ConsoleMethod::GroupEnd),
    ("table", ConsoleMethod::Table),
    ("time", ConsoleMethod::Time),
    ("timeEnd", ConsoleMethod::TimeEnd),
    ("timeLog", ConsoleMethod::TimeLog),
    ("trace", ConsoleMethod::Trace),
    ("timeStamp", ConsoleMethod::CountReset),
    ("profile", ConsoleMethod::CountReset),
];

/// Longest text of one call (bytes); longer ones are cut and marked. `max_output_kb` is mostly lower.
const TEXT_BYTES: usize = 64 << 20;
/// Longest label of a counter or timer (characters), and how many there may be.
const LABEL_UNITS: usize = 256;
const LABELS: usize = 1_000;
/// Deepest indentation of groups (levels).
const GROUPS: usize = 100;

/// The state of `console` during an execution.
#[derive(Default)]
pub(super) struct ConsoleState {
    groups: usize,
    counts: HashMap<String, u64>,
    timers: HashMap<String, u64>,
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
    let format = |arguments: &[Value<'js>]| format(&inspector, arguments, most);
    let first = || arguments.first().cloned().unwrap_or_else(|| Value::new_undefined(ctx.clone()));
    match method {
        ConsoleMethod::Write(level) => write(ctx, state, level, format(arguments)),
        ConsoleMethod::Dir => {
            let text = match depth_of(&inspector, arguments.get(1)) {
                None => inspector.inspect(&first()),
                Some(depth) => inspector.inspect_with(&first(), depth, LineRules::default()),
            };
            write(ctx, state, ConsoleLevel::Log, cut(text))
        }
        ConsoleMethod::Assert => {
            if is_truthy(&first()) {
                return Ok(());
            }
            let text = match arguments.get(1) {
                None => "Assertion failed".to_owned(),
                Some(_) => format!("Assertion failed: {}", format(&arguments[1..])),
            };
            write(ctx, state, ConsoleLevel::Error, text)
        }
        ConsoleMethod::Group => {
            if !arguments.is_empty() {
                write(ctx, state, ConsoleLevel::Log, format(arguments))?;
            }
            let mut console = state.console.borrow_mut();
            console.groups = (console.groups + 1).min(GROUPS);
            Ok(())
        }
        ConsoleMethod::GroupEnd => {
            let mut console = state.console.borrow_mut();
            console.groups = console.groups.saturating_sub(1);
            Ok(())
        }
        ConsoleMethod::Table => {
            let text =
                table::table(&inspector, &first(), arguments.get(1)).map_or_else(|| format(arguments), cut);
            write(ctx, state, ConsoleLevel::Log, text)
        }
        ConsoleMethod::Trace => {
            let message = format(arguments);
            let error = rquickjs::Exception::from_message(ctx.clone(), "")?;
            let stack = inspector.error_stack(error.as_object()).unwrap_or_default();
            let frames = stack.find("\n    at ").map_or("", |at| &stack[at..]);
            let colon = if message.is_empty() { "" } else { ": " };
            write(ctx, state, ConsoleLevel::Error, format!("Trace{colon}{message}{frames}"))
        }
        _ => labelled(ctx, state, &inspector, method, arguments),
    }
}

/// The methods that count or measure under a label.
fn labelled<'js>(
    ctx: &Ctx<'js>,
    state: &SharedState,
    inspector: &Inspector<'js>,
    method: ConsoleMethod,
    arguments: &[Value<'js>],
) -> Result<()> {
    let label = match arguments.first() {
        None => "default".to_owned(),
        Some(label) if label.is_undefined() => "default".to_owned(),
        Some(label) => match label.as_string() {
            Some(text) => String::from_utf16_lossy(&inspector.units(text, LABEL_UNITS).0),
            None => inspector.inspect(label).chars().take(LABEL_UNITS).collect(),
        },
    };
    let console = &state.console;
    match method {
        ConsoleMethod::Count => {
            let count = {
                let counts = &mut console.borrow_mut().counts;
                if counts.len() >= LABELS && !counts.contains_key(&label) {
                    counts.clear();
                }
                let count = counts.entry(label.clone()).or_default();
                *count += 1;
                *count
            };
            write(ctx, state, ConsoleLevel::Log, format!("{label}: {count}"))
        }
        ConsoleMethod::CountReset => {
            console.borrow_mut().counts.remove(&label);
            Ok(())
        }
        ConsoleMethod::Time => {
            let timers = &mut console.borrow_mut().timers;
            if timers.len() < LABELS {
                timers.entry(label).or_insert_with(now);
            }
            Ok(())
        }
        ConsoleMethod::TimeLog | ConsoleMethod::TimeEnd => {
            let started = if matches!(method, ConsoleMethod::TimeEnd) {
                console.borrow_mut().timers.remove(&label)
            } else {
                console.borrow().timers.get(&label).copied()
            };
            let Some(started) = started else {
                let text = format!("Warning: No such label '{label}' for console.{}()", name(method));
                return write(ctx, state, ConsoleLevel::Warn, text);
            };
            let mut text = format!("{label}: {}", duration(now().saturating_sub(started)));
            if let Some(rest) = arguments.get(1..).filter(|rest| !rest.is_empty()) {
                text.push(' ');
                text.push_str(&format(inspector, rest, text_limit(state)));
            }
            write(ctx, state, ConsoleLevel::Log, text)
        }
        _ => Ok(()),
    }
}

fn name(method: ConsoleMethod) -> &'static str {
    if matches!(method, ConsoleMethod::TimeEnd) { "timeEnd" } else { "timeLog" }
}

/// A duration as Node writes it.
fn duration(nanoseconds: u64) -> String {
    let ms = nanoseconds as f64 / 1e6;
    match ms {
        ms if ms >= 3_600_000.0 => {
            let seconds = (ms / 1_000.0) as u64;
            format!("{}:{:02}:{:02} (h:mm:ss)", seconds / 3_600, seconds / 60 % 60, seconds % 60)
        }
        ms if ms >= 60_000.0 => {
            format!("{}:{:06.3} (m:ss.mmm)", (ms / 60_000.0) as u64, ms % 60_000.0 / 1_000.0)
        }
        ms if ms >= 1_000.0 => format!("{:.3}s", ms / 1_000.0),
        ms => {
            let text = format!("{ms:.3}");
            format!("{}ms", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// Sends a text, indented by the open groups.
fn write(ctx: &Ctx<'_>, state: &SharedState, level: ConsoleLevel, text: String) -> Result<()> {
    let groups = state.console.borrow().groups;
    let most = text_limit(state);
    let text = if groups == 0 {
        text
    } else {
        let indentation = "  ".repeat(groups);
        let mut indented = String::new();
        for line in text.split_inclusive('\n') {
            indented.push_str(&indentation);
            indented.push_str(line);
            if indented.len() > most {
                break;
            }
        }
        if text.is_empty() || text.ends_with('\n') {
            indented.push_str(&indentation);
        }
        indented
    };
    print(ctx, state, level, &cut_to(text, most))
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

/// The option `depth`, if it is given: `null` and infinity are everything, a negative one nothing.
fn depth_of<'js>(inspector: &Inspector<'js>, options: Option<&Value<'js>>) -> Option<i32> {
    let depth = inspector.own_data(options?.as_object()?, "depth")?;
    if depth.is_null() { Some(i32::MAX) } else { depth.as_number().map(|depth| depth as i32) }
}

fn is_truthy(value: &Value<'_>) -> bool {
    if value.is_undefined() || value.is_null() {
        return false;
    }
    if let Some(truth) = value.as_bool() {
        return truth;
    }
    if let Some(number) = value.as_number() {
        return number != 0.0 && !number.is_nan();
    }
    if let Some(text) = value.as_string() {
        return super::sys::string_units(text) != 0;
    }
    true
}

/// `util.format`; strings are cut to `most` bytes, objects to the limit of an event.
pub(super) fn format<'js>(inspector: &Inspector<'js>, arguments: &[Value<'js>], most: usize) -> String {
    let mut text = String::new();
    let mut rest = arguments;
    if let Some(template) = arguments.first().and_then(Value::as_string) {
        let template = inspector.text(template, most);
        rest = &arguments[1..];
        if rest.is_empty() {
            return template;
        }
        let used = substitute(inspector, &template, rest, &mut text, most);
        rest = &rest[used..];
        if !rest.is_empty() {
            text.push(' ');
        }
    }
    for (index, argument) in rest.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        if text.len() > most {
            break;
        }
        match argument.as_string() {
            Some(string) => text.push_str(&inspector.text(string, most)),
            None => text.push_str(&cut(inspector.inspect(argument))),
        }
    }
    text
}

/// Replaces the `%` directives; returns how many arguments they used.
fn substitute<'js>(
    inspector: &Inspector<'js>,
    template: &str,
    arguments: &[Value<'js>],
    text: &mut String,
    most: usize,
) -> usize {
    let mut used = 0;
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match characters.peek() {
            Some('%') => {
                characters.next();
                text.push('%');
            }
            Some(directive) if used < arguments.len() && text.len() <= most => {
                match directive_text(inspector, *directive, &arguments[used], most) {
                    Some(replacement) => {
                        characters.next();
                        used += 1;
                        text.push_str(&replacement);
                    }
                    None => text.push('%'),
                }
            }
            _ => text.push('%'),
        }
    }
    used
}

fn directive_text<'js>(
    inspector: &Inspector<'js>,
    directive: char,
    argument: &Value<'js>,
    most: usize,
) -> Option<String> {
    Some(match directive {
        's' => match argument.as_string() {
            Some(string) => inspector.text(string, most),
            None if argument.is_object() => cut(inspector.inspect_to_depth(argument, 0)),
            None => cut(inspector.inspect(argument)),
        },
        'd' | 'i' | 'f' => {
            if argument.is_big_int() && directive != 'f' {
                return Some(format!("{}n", inspector.primitive(argument)));
            }
            let number = number(inspector, argument, directive);
            let number = if directive == 'i' { number.trunc() } else { number };
            inspector.inspect(&Value::new_number(inspector.ctx().clone(), number))
        }
        'j' => preview::json(inspector, argument)
            .map_or_else(|| cut(inspector.inspect(argument)), |json| json.as_str().to_owned()),
        'o' => cut(inspector.inspect_to_depth(argument, 4)),
        'O' => cut(inspector.inspect(argument)),
        'c' => String::new(),
        _ => return None,
    })
}

fn number<'js>(inspector: &Inspector<'js>, argument: &Value<'js>, directive: char) -> f64 {
    if let Some(number) = argument.as_number() {
        return number;
    }
    if argument.is_object() || argument.is_symbol() {
        return f64::NAN;
    }
    if directive == 'd' {
        // As `Number(x)` for a primitive.
        return argument.get::<Coerced<f64>>().map_or(f64::NAN, |number| number.0);
    }
    let Some(text) = argument.as_string() else { return f64::NAN };
    let text = inspector.string(text);
    let text = text.trim();
    let mut end = 0;
    for (at, character) in text.char_indices() {
        let sign = at == 0 && matches!(character, '-' | '+');
        if !(sign || character.is_ascii_digit() || (directive == 'f' && matches!(character, '.' | 'e'))) {
            break;
        }
        end = at + character.len_utf8();
    }
    text[..end].parse().unwrap_or(f64::NAN)
}
