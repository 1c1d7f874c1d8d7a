//! The bounds of each record of an imported file; every exported record is within them. Checks no order of records and no
//! relation between them.

use super::super::archive::{CheckpointPart, ExecutionPart, ItemPart, MailPart, TaskPart, VersionPart};
use super::super::tasks::ANSWER_BYTES;
use crate::executions::check_program_inputs;
use std::collections::BTreeMap;
use vm_system_core::durable::schema::Schema;
use vm_system_core::durable::{MAILBOX_BYTES, MAILBOX_EVENTS, TIMEOUT_MAX_MS};
use vm_system_protocol::durable::{EVENT_NAME_BYTES, MESSAGE_BYTES, PROMPT_BYTES, RESULT_BYTES};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::EVENT_TEXT_BYTES;
use vm_system_protocol::model::{Event, EventPayload};
use vm_system_protocol::time::Timestamp;
use vm_system_record::WaitKind;

/// How far the exporting machine's clock may be ahead of ours (milliseconds): a day.
const SKEW_MS: i64 = 24 * 3_600_000;
/// Largest counter: JSON represents it exactly, and counting on from it does not overflow.
pub(super) const COUNT_MAX: u64 = 1 << 53;
/// Above every number of a page: those of large texts begin at 2^62.
pub(super) const PAGE_END: u64 = i64::MAX as u64;
/// Most rejected answers to one task.
const ATTEMPTS_MAX: u32 = 1 << 31;
/// Versions of one program: each is compiled anew.
pub(in crate::durable) const VERSIONS: usize = 4_096;

type Bounds = Result<(), String>;

/// The time of the import; times in the file are compared with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportTime(pub(super) Timestamp);

impl ImportTime {
    /// A time that must be in the past.
    fn past(self, at: Timestamp) -> Bounds {
        self.bounded_until(at, SKEW_MS)
    }

    fn bounded_until(self, at: Timestamp, most: i64) -> Bounds {
        if (0..=self.0.0.saturating_add(most)).contains(&at.0) {
            return Ok(());
        }
        Err("a time in it is out of range".to_owned())
    }

    fn all_past(self, moments: &[Option<Timestamp>]) -> Bounds {
        moments.iter().flatten().try_for_each(|at| self.past(*at))
    }
}

pub(super) fn version(clock: ImportTime, version: &VersionPart) -> Bounds {
    clock.past(version.created_at)
}

pub(super) fn execution(clock: ImportTime, part: &ExecutionPart) -> Bounds {
    clock.all_past(&[Some(part.started_at), part.ended_at])?;
    let args: Option<Vec<String>> = serde_json::from_str(part.args.as_str()).ok();
    let env: Option<BTreeMap<String, String>> = serde_json::from_str(part.env.as_str()).ok();
    let (Some(args), Some(env)) = (args, env) else {
        return Err("its args are not a list of strings, or its env is not an object of strings".to_owned());
    };
    check_program_inputs(&args, &env.into_iter().collect::<Vec<_>>()).map_err(|error| error.message)?;
    if part.result.as_ref().is_some_and(|result| result.as_str().len() > RESULT_BYTES || !result.is_valid()) {
        return Err("its result is too large".to_owned());
    }
    let long = |error: &vm_system_protocol::model::ExecutionError| {
        error.code.len() + error.message.len() + error.reason.as_ref().map_or(0, String::len)
    };
    if part.error.as_ref().is_some_and(|error| long(error) > 2 * MESSAGE_BYTES) {
        return Err("its error is too long".to_owned());
    }
    let is_code = |code: &str| code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if part.error.as_ref().is_some_and(|error| !is_code(&error.code)) {
        return Err("the code of its error is not in capital letters and `_`".to_owned());
    }
    let metrics = &part.metrics;
    let numbers = [
        metrics.duration_ms,
        metrics.cpu_ms,
        metrics.host_wait_ms,
        metrics.events,
        metrics.output_bytes,
        metrics.heap_peak_bytes,
    ];
    if numbers.iter().any(|number| *number > COUNT_MAX) {
        return Err("a number in it is too large".to_owned());
    }
    Ok(())
}

pub(super) fn checkpoint(clock: ImportTime, part: &CheckpointPart) -> Bounds {
    if part.seq > COUNT_MAX {
        return Err("the number of the checkpoint is too large".to_owned());
    }
    clock.past(part.at)
}

pub(super) fn task(clock: ImportTime, part: &TaskPart) -> Bounds {
    clock.all_past(&[Some(part.created_at), part.ended_at, part.first_attempt_at, part.last_attempt_at])?;
    if let Some(deadline) = part.deadline {
        clock.bounded_until(
            deadline,
            i64::try_from(TIMEOUT_MAX_MS).unwrap_or(i64::MAX).saturating_add(SKEW_MS),
        )?;
    }
    let json = |json: &Option<JsonText>| json.as_ref().map_or(0, |json| json.as_str().len());
    // Options may have become longer when numbers were written again.
    let options = json(&part.schema) + json(&part.fallback);
    if part.prompt.len() > PROMPT_BYTES || options > 2 * PROMPT_BYTES {
        return Err("the prompt of a task is too long".to_owned());
    }
    if part.attempts > ATTEMPTS_MAX || part.answer.as_ref().is_some_and(|answer| answer.len() > ANSWER_BYTES)
    {
        return Err("a task has more or longer answers than possible".to_owned());
    }
    if part.fallback.as_ref().is_some_and(|json| !json.is_valid()) {
        return Err("its default is not JSON".to_owned());
    }
    if let Some(of_item) = &part.item {
        item(of_item, part)?;
    }
    match part.schema.as_ref().map(JsonText::to_value) {
        None => Ok(()),
        Some(Some(schema)) => Schema::check(&schema),
        Some(None) => Err("its schema is not JSON".to_owned()),
    }
}

/// The facts that a pending item has and a pause has not.
fn item(item: &ItemPart, part: &TaskPart) -> Bounds {
    let kind = WaitKind::from_text(&item.kind).ok_or("an item of an unknown kind")?;
    let name = item.name.as_ref().map_or(0, String::len);
    let json = |text: &Option<String>| {
        text.as_ref().is_none_or(|text| JsonText::from_untrusted(text.clone()).is_valid())
    };
    let is_answered = matches!(part.outcome.as_deref(), Some("answered" | "defaulted"));
    let fits = match kind {
        WaitKind::Question => name == 0,
        // Nothing else would ever end it.
        WaitKind::Timer => {
            let ends = part.deadline.is_some() || part.ended_at.is_some();
            name == 0 && part.prompt.is_empty() && part.answer.is_none() && ends
        }
        WaitKind::Event => {
            (1..=EVENT_NAME_BYTES).contains(&name)
                && part.prompt.is_empty()
                && part.schema.is_none()
                && (!is_answered || json(&part.answer))
        }
    };
    let is_small = |number: Option<u64>| number.is_none_or(|number| number < 1 << 40);
    let taken = item.taken_at.is_none() || part.ended_at.is_some();
    if fits
        && taken
        && item.number > 0
        && [Some(item.number), item.answer_seq, item.taken_at].map(is_small) == [true; 3]
    {
        Ok(())
    } else {
        Err("an item that no program can have".to_owned())
    }
}

/// Another event for the execution.
pub(super) fn mail(clock: ImportTime, mail: &MailPart, before: &[MailPart]) -> Bounds {
    clock.past(mail.at)?;
    let bytes = |mail: &MailPart| mail.name.len() + mail.event.as_str().len();
    let all = before.iter().map(bytes).sum::<usize>() + bytes(mail);
    let fits = (1..=EVENT_NAME_BYTES).contains(&mail.name.len()) && mail.event.is_valid();
    if fits && before.len() < MAILBOX_EVENTS && all <= MAILBOX_BYTES {
        Ok(())
    } else {
        Err("more or other events than an execution can keep".to_owned())
    }
}

pub(super) fn event(clock: ImportTime, event: &Event) -> Bounds {
    clock.past(event.ts)?;
    let most = match &event.payload {
        EventPayload::Task { .. } => PROMPT_BYTES,
        // An exception has a message and a stack.
        _ => EVENT_TEXT_BYTES + 2 * MESSAGE_BYTES,
    };
    let echo = if let EventPayload::InputEcho { text } = &event.payload { text.len() } else { 0 };
    if event.payload.output_bytes() > most as u64 || echo > most {
        return Err("the line of output is too long".to_owned());
    }
    Ok(())
}
