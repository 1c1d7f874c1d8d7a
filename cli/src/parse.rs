//! Parsers of argument values: times, JSON objects, signals, enum names.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vm_system_protocol::input::{json_for_script, read_json};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::{
    CapabilityKind, Engine, ExecutionStatus, OnCrash, Overlap, SessionStatus, StartupMode, TaskState,
    TypeCheck,
};
use vm_system_protocol::time::Timestamp;

/// `500ms`, `10s`, `2m`, `1h`; a number alone means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| {
        "expected a time such as 500ms, 10s, 2m or 1h (a number alone means seconds)".to_owned()
    })?;
    let ms = match unit {
        "ms" => Some(number),
        "" | "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ if unit.starts_with('.') => {
            return Err("a time is a whole number with a unit: ms, s, m or h".to_owned());
        }
        _ => return Err(format!("unknown unit `{unit}`; expected ms, s, m or h")),
    };
    match ms {
        Some(0) => Err("must be more than zero".to_owned()),
        Some(ms) if u32::try_from(ms).is_ok() => Ok(Duration::from_millis(ms)),
        _ => Err("too long: at most 49 days".to_owned()),
    }
}

/// A time from now on, as [`duration`], or a point in time (RFC 3339).
pub(crate) fn deadline(text: &str) -> Result<TimeArgument, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(TimeArgument::At(at));
    }
    duration(text)
        .map(TimeArgument::After)
        .map_err(|problem| format!("{problem}; a point in time is written as 2030-01-31T18:00:00Z"))
}

/// A point in time (RFC 3339), or how long ago it was, as [`duration`].
pub(crate) fn past(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let ago = duration(text)
        .map_err(|problem| format!("{problem}; a point in time is written as 2030-01-31T18:00:00Z"))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(ago);
    Ok(Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

/// When something is to be done at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeArgument {
    After(Duration),
    At(Timestamp),
}

impl TimeArgument {
    pub(crate) fn timestamp(self) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::After(after) => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + after;
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// The longest source text of a script that is run by hand (KiB): what fits a request.
pub(crate) fn source_kb() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..(CONTROL_FRAME_BYTES / 1024) as i64)
}

/// The name of an environment variable.
pub(crate) fn variable_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the name is empty".to_owned()),
        _ if text.contains('=') => Err("only a name: the value is taken from your environment".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// A JSON object.
pub(crate) fn json_object(text: &str) -> Result<JsonText, String> {
    match json_for_script(text)? {
        value @ serde_json::Value::Object(_) => Ok(JsonText::from_value(&value)),
        _ => Err("must be a JSON object, such as {\"n\":3}".to_owned()),
    }
}

/// Variables, from a JSON object of strings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables(pub(crate) Vec<(String, String)>);

/// A JSON object of strings.
pub(crate) fn variables(text: &str) -> Result<Variables, String> {
    let object: serde_json::Map<String, serde_json::Value> = read_json("the value", text.as_bytes())?;
    let pairs = object.into_iter().map(|(name, value)| match value {
        serde_json::Value::String(value) => Ok((name, value)),
        _ => Err(format!("the value of `{name}` must be a string")),
    });
    Ok(Variables(pairs.collect::<Result<Vec<_>, String>>()?))
}

/// A signal by name (`KILL`, `SIGTERM`) or number.
pub(crate) fn signal(text: &str) -> Result<i32, String> {
    use std::str::FromStr as _;
    let name = text.to_ascii_uppercase();
    let name = if name.starts_with("SIG") { name } else { format!("SIG{name}") };
    if let Ok(signal) = nix::sys::signal::Signal::from_str(&name) {
        return Ok(signal as i32);
    }
    text.parse()
        .ok()
        .and_then(|number: i32| nix::sys::signal::Signal::try_from(number).ok())
        .map(|signal| signal as i32)
        .ok_or_else(|| "expected a signal such as KILL, TERM or 9".to_owned())
}

/// One of the engines.
pub(crate) fn engine() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::ALL.iter().map(|engine| engine.as_str()))
        .try_map(|name| name.parse::<Engine>())
}

/// One of the actions after a crash.
pub(crate) fn on_crash() -> impl TypedValueParser<Value = OnCrash> {
    PossibleValuesParser::new(OnCrash::ALL.iter().map(|action| action.as_str()))
        .try_map(|name| name.parse::<OnCrash>())
}

/// The meaning of errors of types.
pub(crate) fn type_check() -> impl TypedValueParser<Value = TypeCheck> {
    PossibleValuesParser::new(TypeCheck::ALL.iter().map(|meaning| meaning.as_str()))
        .try_map(|name| name.parse::<TypeCheck>())
}

/// One of the kinds of capabilities.
pub(crate) fn capability_kind() -> impl TypedValueParser<Value = CapabilityKind> {
    PossibleValuesParser::new(CapabilityKind::ALL.iter().map(|kind| kind.as_str()))
        .try_map(|name| name.parse::<CapabilityKind>())
}

/// One of the modes of startup files.
pub(crate) fn startup_mode() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(StartupMode::ALL.iter().map(|mode| mode.as_str()))
}

/// One of the statuses of an execution.
pub(crate) fn execution_status() -> impl TypedValueParser<Value = ExecutionStatus> {
    PossibleValuesParser::new(ExecutionStatus::ALL.iter().map(|status| status.as_str()))
        .try_map(|name| name.parse::<ExecutionStatus>())
}

/// One of the statuses of a task.
pub(crate) fn task_status() -> impl TypedValueParser<Value = TaskState> {
    PossibleValuesParser::new(TaskState::ALL.iter().map(|state| state.as_str()))
        .try_map(|name| name.parse::<TaskState>())
}

/// One of the rules about executions that have not ended.
pub(crate) fn overlap() -> impl TypedValueParser<Value = Overlap> {
    PossibleValuesParser::new(Overlap::ALL.iter().map(|rule| rule.as_str()))
        .try_map(|name| name.parse::<Overlap>())
}

/// One of the statuses of a session.
pub(crate) fn session_status() -> impl TypedValueParser<Value = SessionStatus> {
    PossibleValuesParser::new(SessionStatus::ALL.iter().map(|status| status.as_str()))
        .try_map(|name| name.parse::<SessionStatus>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(deadline("2m"), Ok(TimeArgument::After(Duration::from_mins(2))));
        assert_eq!(deadline("1970-01-01T01:00:01+01:00"), Ok(TimeArgument::At(Timestamp(1_000))));
        assert_eq!(past("1970-01-01T01:00:01+01:00"), Ok(Timestamp(1_000)));
        let (two_hours_ago, one_hour_ago) = (past("2h"), past("1h"));
        assert!(two_hours_ago < one_hour_ago && past("yesterday").is_err());
        assert!(deadline("tomorrow").is_err_and(|problem| problem.contains("2030-01-31T18:00:00Z")));
        for bad in ["", "ms", "-1s", "1d", "0", "99999999999h", "1.5s", "18446744073709551616"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn arguments_are_objects_and_variables_are_strings() {
        assert_eq!(
            json_object("{\"n\": 3}").map(|json| json.as_str().to_owned()),
            Ok("{\"n\":3}".to_owned())
        );
        assert!(json_object("[1]").is_err() && json_object("{").is_err());
        assert_eq!(variables("{\"A\":\"b\"}").map(|v| v.0), Ok(vec![("A".to_owned(), "b".to_owned())]));
        assert!(variables("{\"A\":1}").is_err());
    }

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!((signal("KILL"), signal("sigterm"), signal("9")), (Ok(9), Ok(15), Ok(9)));
        assert!(signal("NOPE").is_err() && signal("0").is_err() && signal("-9").is_err());
    }
}
