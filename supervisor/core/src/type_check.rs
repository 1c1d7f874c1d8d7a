//! The check of a file's types before the file runs (`typecheck`). The execution is recorded and holds the session, and the worker gets it
//! when the result is there; no clock of it runs meanwhile, since the check has its own. Who finds the errors is not known here: the result is
//! lines to be shown, and how many of them are errors.

use super::execution::{Current, Running};
use super::finish::ExecutionOutcome;
use super::input::{ExecuteRequest, Now, SessionAction, Source};
use super::machine::SessionMachine;
use vm_system_policy::EffectivePolicy;
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, ExecutionStatus, TypeCheck};
use vm_system_protocol::worker::SourceFormat;

/// The result of the check of a file's types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedTypes {
    /// The compiler has read the file and what it imports.
    Done {
        /// `FILE:LINE:COLUMN: error TSNUMBER: MESSAGE`, in order; also of warnings.
        lines: Vec<String>,
        /// How many errors there are, with those that have no line here.
        errors: u64,
    },
    /// There was no check: why, and what helps.
    Failed { why: String, hint: Option<String> },
}

/// The lines that are recorded of it, and whether the execution ends with it.
struct Notice {
    lines: Vec<String>,
    /// Code and message.
    end: Option<(&'static str, String)>,
}

/// Whether the types of a source are checked before it runs: files of the worktree, which have their packages and declarations around
/// them.
pub(super) fn is_checked(request: &ExecuteRequest, format: SourceFormat, policy: &EffectivePolicy) -> bool {
    policy.typecheck != TypeCheck::Off
        && format != SourceFormat::Json
        && matches!(request.source, Source::File { .. })
}

impl SessionMachine {
    /// Drops a result that is late: the execution has ended.
    pub(super) fn types_checked(
        &mut self,
        execution: ExecutionId,
        result: CheckedTypes,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if !self.channel_usable() {
            return;
        }
        let Some(Current::Running(running)) = &mut self.current else { return };
        let policy = running.policy.typecheck;
        let checked = running.withheld.as_mut().filter(|withheld| withheld.checking);
        let Some(withheld) = checked.filter(|_| running.record.id == execution) else { return };
        withheld.checking = false;
        let Some(Notice { lines, end }) = notice(result, policy) else {
            return self.release_withheld(now, out);
        };
        let Some((code, message)) = end else {
            let number = |line| running.number_own(line, (ConsoleLevel::Warn, None), now);
            let events: Vec<_> = lines.into_iter().map(number).collect();
            for event in events {
                self.add_event(event, out);
            }
            return self.release_withheld(now, out);
        };
        let Some(Current::Running(mut running)) = self.current.take() else { return };
        let mut events = Vec::new();
        if lines != [message.as_str()] {
            for message in lines {
                let payload = EventPayload::System { message, level: ConsoleLevel::Error, code: None };
                events.push(running.number(now.unix_ms, payload));
            }
        }
        let ending = ExecutionOutcome::error(ExecutionStatus::Error, code, message);
        self.end_withheld(*running, ending, events, now, out);
    }
}

impl Running {
    /// Whether a host call or the check of its types is under way for it.
    pub(super) fn has_host_work(&self) -> bool {
        self.host.is_some() || self.withheld.as_ref().is_some_and(|withheld| withheld.checking)
    }
}

fn notice(result: CheckedTypes, policy: TypeCheck) -> Option<Notice> {
    let ends = policy == TypeCheck::Error;
    match result {
        CheckedTypes::Done { lines, errors } => {
            let first = lines.first()?;
            let message = match errors {
                0 | 1 => first.clone(),
                _ => format!("{first} (and {})", counted(errors - 1, "more error")),
            };
            let end = (ends && errors > 0).then_some(("TYPE_ERRORS", message));
            Some(Notice { lines, end })
        }
        CheckedTypes::Failed { why, hint } => {
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            let text = format!("types were not checked: {why}{hint}");
            let end = ends.then(|| ("TYPE_CHECK_FAILED", text.clone()));
            Some(Notice { lines: vec![text], end })
        }
    }
}
