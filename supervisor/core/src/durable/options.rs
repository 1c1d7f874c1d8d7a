//! The options of `CC`: `{schema, timeout_ms, default, retries}`.

use super::schema::Schema;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemRow, Owner, WaitKind};

/// Longest time that a task may have (milliseconds): a hundred years.
pub const TIMEOUT_MAX_MS: u64 = 100 * 366 * 24 * 3_600_000;

/// The task of a pause; on error a description of the wrong options.
pub fn task_of_pause(
    execution: ExecutionId,
    checkpoint: u64,
    prompt: String,
    options: Option<&JsonText>,
    at: Timestamp,
) -> Result<ItemRow, String> {
    let options = match options {
        None => serde_json::Map::new(),
        Some(json) => match json.to_value() {
            Some(Value::Object(options)) => options,
            _ => return Err("The second argument of CC must be an object that JSON can hold".to_owned()),
        },
    };
    let id = task_id(execution, checkpoint);
    let mut row =
        ItemRow { prompt, ..new_item(execution, (checkpoint, id), WaitKind::Question, at, checkpoint) };
    for (name, value) in options {
        match (name.as_str(), &value) {
            (_, Value::Null) if name != "default" => {}
            ("schema", _) => {
                Schema::check(&value).map_err(|why| format!("The option schema of CC is wrong: {why}"))?;
                row.schema = Some(value.to_string());
            }
            ("timeout_ms", _) => {
                let time = whole(&value).filter(|time| *time <= TIMEOUT_MAX_MS);
                let time = time.ok_or("The option timeout_ms of CC must be a whole number of milliseconds, at most a hundred years")?;
                row.deadline = Some(Timestamp(at.0.saturating_add(i64::try_from(time).unwrap_or(i64::MAX))));
            }
            ("retries", _) => {
                let retries = whole(&value).and_then(|retries| u32::try_from(retries).ok());
                row.retries = Some(retries.ok_or("The option retries of CC must be a whole number")?);
            }
            ("default", _) => row.fallback = Some(value.to_string()),
            (other, _) => return Err(format!("CC has no option {other:?}")),
        }
    }
    Ok(row)
}

/// An item without texts and times.
pub(super) fn new_item(
    execution: ExecutionId,
    (item, id): (u64, TaskId),
    kind: WaitKind,
    created_at: Timestamp,
    checkpoint: u64,
) -> ItemRow {
    ItemRow {
        id,
        owner: Owner::new(""),
        execution,
        item,
        kind,
        name: None,
        prompt: String::new(),
        schema: None,
        attempts: 0,
        created_at,
        deadline: None,
        ended_at: None,
        outcome: None,
        answer: None,
        answer_seq: None,
        taken_at: None,
        checkpoint,
        retries: None,
        fallback: None,
        first_attempt_at: None,
        last_attempt_at: None,
    }
}

/// A whole number, also when written as `1e3` or `1000.0`.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        (0.0..1e15).contains(&number).then_some(number as u64)
    })
}

/// The same task of the same execution has the same id, even when it is repeated after a crash.
pub fn task_id(execution: ExecutionId, checkpoint: u64) -> TaskId {
    id_of(b"task", execution, checkpoint)
}

/// As [`task_id`], of a pending item.
pub fn item_id(execution: ExecutionId, number: u64) -> TaskId {
    id_of(b"item", execution, number)
}

fn id_of(what: &[u8], execution: ExecutionId, number: u64) -> TaskId {
    let mut hash = Sha256::new();
    hash.update(what);
    hash.update(execution.as_bytes());
    hash.update(number.to_be_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    // A UUID of version 8 (RFC 9562): its contents are vendor-specific.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    TaskId::from_bytes(bytes)
}
