//! Owns the methods of `console`: what each writes, in Node's format. Must not: write it, or keep state.

use crate::values::{EngineValues, ObjectClass};
use crate::{LineRules, cut_to, format_message, inspect, inspect_with, table};

/// A method of `console`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleMethod {
    Write(OutputLevel),
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
    /// Does nothing, as in Node without a profiler or a terminal.
    Nothing,
}

/// The level of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLevel {
    Log,
    Info,
    Warn,
    Error,
    Debug,
}

/// Names and meanings.
pub const METHODS: [(&str, ConsoleMethod); 22] = [
    ("log", ConsoleMethod::Write(OutputLevel::Log)),
    ("info", ConsoleMethod::Write(OutputLevel::Info)),
    ("warn", ConsoleMethod::Write(OutputLevel::Warn)),
    ("error", ConsoleMethod::Write(OutputLevel::Error)),
    ("debug", ConsoleMethod::Write(OutputLevel::Debug)),
    ("dir", ConsoleMethod::Dir),
    ("dirxml", ConsoleMethod::Write(OutputLevel::Log)),
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
    ("timeStamp", ConsoleMethod::Nothing),
    ("profile", ConsoleMethod::Nothing),
    ("profileEnd", ConsoleMethod::Nothing),
    ("clear", ConsoleMethod::Nothing),
];

/// Longest label of a counter or timer (characters).
const LABEL_UNITS: usize = 256;
/// Deepest indentation of groups (levels).
const GROUPS: usize = 100;

/// The state of `console`: groups, counters, timers. Implementations bound the number of labels.
pub trait ConsoleMemory {
    fn groups(&self) -> usize;
    fn set_groups(&mut self, levels: usize);
    /// Adds one to a counter; the new count.
    fn count(&mut self, label: &str) -> u64;
    /// Removes a counter; false if there is none.
    fn reset_count(&mut self, label: &str) -> bool;
    /// Starts a timer, unless it runs; false if it does.
    fn start_timer(&mut self, label: &str) -> bool;
    /// Nanoseconds since the timer was started; `end` removes it.
    fn elapsed(&mut self, label: &str, end: bool) -> Option<u64>;
}

/// A text to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleOutput {
    pub level: OutputLevel,
    pub text: String,
}

/// A call of a method: what it writes, of at most about `most` bytes.
pub fn call<E: EngineValues>(
    engine: &E,
    memory: &mut dyn ConsoleMemory,
    method: ConsoleMethod,
    arguments: &[E::Value],
    most: usize,
) -> Option<ConsoleOutput> {
    let groups = memory.groups();
    let (level, text) = written(engine, memory, method, arguments, most)?;
    Some(ConsoleOutput { level, text: crate::cut_to(indented(text, groups, most), most) })
}

fn written<E: EngineValues>(
    engine: &E,
    memory: &mut dyn ConsoleMemory,
    method: ConsoleMethod,
    arguments: &[E::Value],
    most: usize,
) -> Option<(OutputLevel, String)> {
    let format = |arguments: &[E::Value]| format_message(engine, arguments, most);
    let first = arguments.first();
    Some(match method {
        ConsoleMethod::Write(level) => (level, format(arguments)),
        ConsoleMethod::Dir => {
            let text = match (first, arguments.get(1).and_then(|options| depth_option(engine, options))) {
                (None, _) => "undefined".to_owned(),
                (Some(value), None) => inspect(engine, value),
                (Some(value), Some(depth)) => {
                    cut_to(inspect_with(engine, value, depth, LineRules::default()), E::TEXT_BYTES)
                }
            };
            (OutputLevel::Log, text)
        }
        ConsoleMethod::Assert => {
            if first.is_some_and(|first| engine.truthy(first)) {
                return None;
            }
            let text = match arguments.get(1) {
                None => "Assertion failed".to_owned(),
                Some(_) => format!("Assertion failed: {}", format(&arguments[1..])),
            };
            (OutputLevel::Error, text)
        }
        ConsoleMethod::Group => {
            memory.set_groups((memory.groups() + 1).min(GROUPS));
            if arguments.is_empty() {
                return None;
            }
            (OutputLevel::Log, format(arguments))
        }
        ConsoleMethod::GroupEnd => {
            memory.set_groups(memory.groups().saturating_sub(1));
            return None;
        }
        ConsoleMethod::Table => {
            let drawn = first.and_then(|data| table::table(engine, data, arguments.get(1)));
            let drawn = drawn.map(|text| crate::cut_to(text, E::TEXT_BYTES));
            (OutputLevel::Log, drawn.unwrap_or_else(|| format(arguments)))
        }
        ConsoleMethod::Trace => {
            let message = format(arguments);
            let colon = if message.is_empty() { "" } else { ": " };
            (OutputLevel::Error, format!("Trace{colon}{message}{}", engine.calls()))
        }
        ConsoleMethod::Nothing => return None,
        _ => return labelled(engine, memory, method, arguments, most),
    })
}

/// `depth` of the options of `console.dir`.
fn depth_option<E: EngineValues>(engine: &E, options: &E::Value) -> Option<i32> {
    if !engine.is_object(options) || engine.class(options) == ObjectClass::Proxy {
        return None;
    }
    let depth = engine.own_data(options, "depth")?;
    let is_null = engine.value_type(&depth) == crate::ValueType::Null;
    engine.number(&depth).map(|depth| depth as i32).or(is_null.then_some(i32::MAX))
}

/// The methods that count or measure under a label.
fn labelled<E: EngineValues>(
    engine: &E,
    memory: &mut dyn ConsoleMemory,
    method: ConsoleMethod,
    arguments: &[E::Value],
    most: usize,
) -> Option<(OutputLevel, String)> {
    let label = match arguments.first() {
        None => "default".to_owned(),
        Some(label) if engine.value_type(label) == crate::ValueType::Undefined => "default".to_owned(),
        Some(label) if engine.is_string(label) => {
            String::from_utf16_lossy(&engine.units(label, LABEL_UNITS).0)
        }
        Some(label) => inspect(engine, label).chars().take(LABEL_UNITS).collect(),
    };
    let warning = |text: String| Some((OutputLevel::Warn, text));
    match method {
        ConsoleMethod::Count => {
            let count = memory.count(&label);
            Some((OutputLevel::Log, format!("{label}: {count}")))
        }
        ConsoleMethod::CountReset if memory.reset_count(&label) => None,
        ConsoleMethod::CountReset => warning(format!("Warning: Count for '{label}' does not exist")),
        ConsoleMethod::Time if memory.start_timer(&label) => None,
        ConsoleMethod::Time => warning(format!("Warning: Label '{label}' already exists for console.time()")),
        ConsoleMethod::TimeLog | ConsoleMethod::TimeEnd => {
            let end = method == ConsoleMethod::TimeEnd;
            let Some(elapsed) = memory.elapsed(&label, end) else {
                let name = if end { "timeEnd" } else { "timeLog" };
                return warning(format!("Warning: No such label '{label}' for console.{name}()"));
            };
            let mut text = format!("{label}: {}", duration(elapsed));
            if let Some(rest) = arguments.get(1..).filter(|rest| !end && !rest.is_empty()) {
                text.push(' ');
                text.push_str(&format_message(engine, rest, most));
            }
            Some((OutputLevel::Log, text))
        }
        _ => None,
    }
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

/// A text indented by the open groups.
fn indented(text: String, groups: usize, most: usize) -> String {
    if groups == 0 {
        return text;
    }
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
}
