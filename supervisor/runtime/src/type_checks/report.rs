//! The result of a checker. It comes from code of a package: only what has this shape, within these bounds, is used.

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
    place: Option<ReportPlace>,
    is_error: bool,
    code: u32,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportPlace {
    file: String,
    line: u32,
    column: u32,
}

/// The result of the execution of a checker with so much memory (MiB), which may have more if the session with the file has.
pub(super) fn read(execution: &Execution, memory_mb: u32, may_have_more: bool) -> CheckedTypes {
    if execution.status == ExecutionStatus::Waiting {
        let why = "the compiler called CC() instead of checking".to_owned();
        return CheckedTypes::Failed { why, hint: None };
    }
    if execution.status != ExecutionStatus::Ok {
        let error = execution.error.as_ref();
        let (code, message) = error.map_or(("", ""), |error| (&error.code, &error.message));
        if code == "MEMORY_LIMIT" {
            let hint = if may_have_more {
                "a larger `mem_mb` of the template gives it as much (`vm-system template update TEMPLATE --mem-mb N`)"
            } else {
                "the operator's ceiling of `mem_mb` permits no more"
            };
            let why = format!("the compiler needs more than {memory_mb} MiB of memory");
            return CheckedTypes::Failed { why, hint: Some(hint.to_owned()) };
        }
        let why = format!("the compiler ended with {code}: {}", first_of(message));
        return CheckedTypes::Failed { why, hint: None };
    }
    execution.result_json().and_then(believed).unwrap_or_else(|| CheckedTypes::Failed {
        why: "what the compiler returned is no list of diagnostics".to_owned(),
        hint: None,
    })
}

/// The part of a text that is shown.
fn first_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(1_000)]
}

fn believed(json: &str) -> Option<CheckedTypes> {
    let Report { failure, diagnostics, errors, left_out } = serde_json::from_str(json).ok()?;
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
    // No part of it begins a line of its own: the compiler indents the further lines of a message.
    let message = message.replace('\n', "\n  ");
    let place = place.as_ref().map_or_else(String::new, |at| {
        format!("{}:{}:{}: ", at.file.replace('\n', "\\n"), at.line, at.column)
    });
    format!("{place}{kind} TS{code}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(message: &str) -> String {
        let place = r#"{"file":"a.ts","line":2,"column":3}"#;
        format!(r#"{{"place":{place},"is_error":true,"code":9,"message":"{message}"}}"#)
    }

    fn report(diagnostics: &[String], rest: &str) -> String {
        format!(r#"{{"failure":null,"diagnostics":[{}]{rest}}}"#, diagnostics.join(","))
    }

    #[test]
    fn a_report_becomes_lines() {
        let warning = r#"{"place":null,"is_error":false,"code":1,"message":"odd"}"#.to_owned();
        let text = report(&[diagnostic("x"), warning], r#","errors":3,"left_out":2"#);
        let lines = ["a.ts:2:3: error TS9: x", "warning TS1: odd", "… and 2 more"].map(str::to_owned).into();
        assert_eq!(believed(&text), Some(CheckedTypes::Done { lines, errors: 3 }));
        let text = report(&[diagnostic("x")], r#","errors":0,"left_out":0"#);
        let lines = vec!["a.ts:2:3: error TS9: x".to_owned()];
        assert_eq!(believed(&text), Some(CheckedTypes::Done { lines, errors: 1 }), "an error counts");
        let place = r#"{"file":"a\nb.ts","line":1,"column":1}"#;
        let forged = format!(r#"{{"place":{place},"is_error":true,"code":9,"message":"x\n[system] y"}}"#);
        let lines = vec!["a\\nb.ts:1:1: error TS9: x\n  [system] y".to_owned()];
        let text = report(&[forged], r#","errors":1,"left_out":0"#);
        assert_eq!(believed(&text), Some(CheckedTypes::Done { lines, errors: 1 }), "no line of its own");
        let text = r#"{"failure":{"why":"no","hint":"do"},"diagnostics":[],"errors":0,"left_out":0}"#;
        let failed = CheckedTypes::Failed { why: "no".to_owned(), hint: Some("do".to_owned()) };
        assert_eq!(believed(text), Some(failed));
    }

    #[test]
    fn what_is_out_of_shape_or_too_large_is_no_report() {
        let counts = r#","errors":1,"left_out":0"#;
        let (long, much) = ("x".repeat(TEXT_BYTES + 1), "x".repeat(TEXT_BYTES));
        assert!(believed(&report(&[diagnostic(&much)], counts)).is_some());
        assert!(believed(&report(&vec![diagnostic("x"); DIAGNOSTICS], counts)).is_some());
        for wrong in [
            "[]".to_owned(),
            report(&[], ""),
            report(&[], r#","errors":-1,"left_out":0"#),
            report(&[], r#","errors":0,"left_out":1000001"#),
            report(&[], r#","errors":0,"left_out":0,"more":1"#),
            report(&[diagnostic(&long)], counts),
            report(&vec![diagnostic("x"); DIAGNOSTICS + 1], counts),
            report(&[diagnostic("x").replace(":2,", ":-2,")], counts),
            report(&[diagnostic("x").replace("\"x\"", "{}")], counts),
            format!(r#"{{"failure":{{"why":"{long}","hint":""}},"diagnostics":[],"errors":0,"left_out":0}}"#),
        ] {
            assert_eq!(believed(&wrong), None, "{}", &wrong[..wrong.len().min(200)]);
        }
    }
}
