//! What a checker returns. It comes from code of a package: only what has this shape, within these bounds, is used.

use serde::Deserialize;
use vm_system_core::CheckedTypes;
use vm_system_protocol::model::{Execution, ExecutionStatus};

/// Most diagnostics; `check.js` leaves others out.
const DIAGNOSTICS: usize = 100;
/// Longest message, name of a file, reason or hint (bytes); `check.js` cuts the first.
const TEXT_BYTES: usize = 8 * 1024;
/// Largest number of errors that is believed.
const ERRORS: u64 = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    failure: Option<Failure>,
    diagnostics: Vec<Diagnostic>,
    /// Of them and of those that were left out.
    errors: u64,
    left_out: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    why: String,
    hint: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Diagnostic {
    /// None for one about the options.
    place: Option<Place>,
    is_error: bool,
    code: u32,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    file: String,
    line: u32,
    column: u32,
}

/// The result of a checker's execution.
pub(super) fn read(execution: &Execution) -> CheckedTypes {
    if execution.status != ExecutionStatus::Ok {
        let error = execution.error.as_ref();
        let (code, message) = error.map_or(("", ""), |error| (&error.code, &error.message));
        let why = format!("the compiler ended with {code}: {}", first_of(message));
        return CheckedTypes::Failed { why, hint: None };
    }
    let report = execution.result_json().and_then(|json| serde_json::from_str::<Report>(json).ok());
    report.and_then(believed).unwrap_or_else(|| CheckedTypes::Failed {
        why: "what the compiler returned is no list of diagnostics".to_owned(),
        hint: None,
    })
}

/// The part of a text that is shown.
fn first_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(1_000)]
}

fn believed(report: Report) -> Option<CheckedTypes> {
    let Report { failure, diagnostics, errors, left_out } = report;
    if let Some(Failure { why, hint }) = failure {
        let fits = why.len() <= TEXT_BYTES && hint.len() <= TEXT_BYTES;
        return fits.then_some(CheckedTypes::Failed { why, hint: Some(hint) });
    }
    let texts = |found: &Diagnostic| {
        let file = found.place.as_ref().map_or(0, |place| place.file.len());
        found.message.len().max(file)
    };
    let fits = diagnostics.len() <= DIAGNOSTICS
        && diagnostics.iter().all(|found| texts(found) <= TEXT_BYTES)
        && errors.max(left_out) <= ERRORS;
    if !fits {
        return None;
    }
    let listed = diagnostics.iter().filter(|found| found.is_error).count() as u64;
    let mut lines: Vec<String> = diagnostics.iter().map(line).collect();
    if left_out > 0 {
        lines.push(format!("… and {left_out} more"));
    }
    Some(CheckedTypes::Done { lines, errors: errors.max(listed) })
}

fn line(Diagnostic { place, is_error, code, message }: &Diagnostic) -> String {
    let kind = if *is_error { "error" } else { "warning" };
    let place =
        place.as_ref().map_or_else(String::new, |at| format!("{}:{}:{}: ", at.file, at.line, at.column));
    format!("{place}{kind} TS{code}: {message}")
}
