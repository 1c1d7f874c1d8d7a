//! Things as agents see them: names in the original's style, large texts cut.

use super::outcome::shortened;
use serde_json::{Map, Value, json};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Engine, Event, EventPayload, ExecutionError, ExecutionStatus, Program, Run, Session, Task, TaskStatus,
    Variable,
};

/// Longest question in an answer (bytes).
pub(super) const PROMPT_BYTES: usize = 128 * 1024;
/// Longest result in an answer (bytes of JSON).
pub(super) const RESULT_BYTES: usize = 128 * 1024;
/// Longest value of a variable in an answer (bytes).
const VALUE_BYTES: usize = 4 * 1024;
/// Most variables of one frame in an answer.
const VARIABLES: usize = 200;

/// The original's name of a status.
pub(super) fn legacy(status: ExecutionStatus) -> &'static str {
    match status {
        ExecutionStatus::Running => "RUNNING",
        ExecutionStatus::Waiting => "AWAITING_COGNITIVE_RESULT",
        ExecutionStatus::Ok => "COMPLETED",
        ExecutionStatus::Error | ExecutionStatus::Timeout | ExecutionStatus::Cancelled => "ERROR",
    }
}

/// What an execution is called.
pub(super) fn name_of(run: &Run) -> String {
    run.name.clone().unwrap_or_else(|| run.execution.id.to_string())
}

/// What its program is called; none for an execution of a session.
pub(super) fn program_of(run: &Run) -> Option<String> {
    let id = run.program_id?;
    Some(run.program.clone().unwrap_or_else(|| id.to_string()))
}

/// An execution with its question.
pub(super) fn run(run: &Run) -> Map<String, Value> {
    let execution = &run.execution;
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("executionId", json!(name_of(run)));
    put("id", json!(execution.id));
    if let Some(program) = program_of(run) {
        put("programId", json!(program));
        put("programVersion", json!(run.program_version));
    }
    put("state", json!(legacy(execution.status)));
    put("status", json!(execution.status));
    put("created", json!(execution.started_at));
    if let Some(at) = &execution.ended_at {
        put("ended", json!(at));
    }
    if let Some(ended) = &execution.error {
        put("error", error(ended));
    }
    if let Some(question) = &run.task {
        put("task", task(question));
    }
    put_result(&mut map, execution.result.as_ref());
    map
}

/// Where an execution stands, as data of `getTask`.
pub(super) fn status(status: &TaskStatus) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    let id = status.execution_id;
    put("executionId", status.name.as_ref().map_or_else(|| json!(id), |name| json!(name)));
    put("id", json!(id));
    put("state", json!(legacy(status.status)));
    put("status", json!(status.status));
    if let Some(ended) = &status.error {
        put("error", error(ended));
    }
    if let Some(question) = &status.task {
        put("task", task(question));
    }
    put_result(&mut map, status.result.as_ref());
    map
}

fn put_result(map: &mut Map<String, Value>, result: Option<&JsonText>) {
    let Some(result) = result else { return };
    if result.as_str().len() > RESULT_BYTES {
        map.insert("truncated".to_owned(), Value::Bool(true));
    } else if let Some(value) = result.to_value() {
        map.insert("result".to_owned(), value);
    }
}

/// Why something did not end well.
pub(super) fn error(error: &ExecutionError) -> Value {
    json!({ "code": error.code, "message": error.message })
}

/// A question.
pub(super) fn task(task: &Task) -> Value {
    let mut value = json!({
        "id": task.id,
        "prompt": shortened(&task.prompt, PROMPT_BYTES).unwrap_or(&task.prompt),
        "attempts": task.attempts,
        "createdAt": task.created_at,
    });
    if task.prompt.len() > PROMPT_BYTES {
        value["truncated"] = json!(true);
    }
    if let Some(schema) = task.schema.as_ref().and_then(JsonText::to_value) {
        value["schema"] = schema;
    }
    for (name, at) in [
        ("deadline", &task.deadline),
        ("firstAttemptAt", &task.first_attempt_at),
        ("lastAttemptAt", &task.last_attempt_at),
    ] {
        if let Some(at) = at {
            value[name] = json!(at);
        }
    }
    value
}

/// A program without its source.
pub(super) fn program(program: &Program) -> Value {
    json!({
        "programId": program.name,
        "id": program.id,
        "name": program.name,
        "version": program.version,
        "sourceHash": program.source_hash,
        "created": program.created_at,
        "modified": program.modified_at,
    })
}

/// The first variables of a frame, long values cut.
pub(super) fn variables(variables: &[Variable]) -> Value {
    let shown = variables.iter().take(VARIABLES).map(|variable| {
        let value = match shortened(&variable.value, VALUE_BYTES) {
            Some(short) => format!("{short}… ({} bytes)", variable.value.len()),
            None => variable.value.clone(),
        };
        json!({ "name": variable.name, "value": value })
    });
    Value::Array(shown.collect())
}

/// A session.
pub(super) fn session(session: &Session) -> Value {
    let mut value = json!({
        "sessionId": session.id,
        "templateId": session.template_id,
        "status": session.status,
        "worktree": session.worktree_path,
        "created": session.created_at,
    });
    if session.engine == Engine::Cvm {
        value["engine"] = json!(session.engine);
    }
    if let Some(id) = &session.execution_id {
        value["executionId"] = json!(id);
    }
    if let Some(parent) = session.runtime_meta.to_value().and_then(|meta| meta.get("forked_from").cloned()) {
        value["forkedFrom"] = parent;
    }
    if let Some(at) = &session.closed_at {
        value["closed"] = json!(at);
    }
    if let Some(error) = &session.last_error {
        value["lastError"] = json!(error);
    }
    if let Some(reason) = &session.close_reason {
        value["closeReason"] = json!(reason);
    }
    value
}

/// The line that an event is on a console; none if it is none.
pub(super) fn line(event: &Event) -> Option<&str> {
    match &event.payload {
        EventPayload::Console { text, .. }
        | EventPayload::Stdout { text }
        | EventPayload::Stderr { text } => Some(text),
        _ => None,
    }
}

/// Console lines that one answer has room for, the number to go on behind, and whether that is all.
pub(super) fn lines(events: &[Event], after: u64, most: usize) -> (Vec<String>, u64, bool) {
    let (mut lines, mut next, mut bytes) = (Vec::new(), after, 0);
    for event in events {
        if let Some(text) = line(event) {
            // The first one goes in any case, or nobody would ever get past it.
            if bytes + text.len() > most && !lines.is_empty() {
                return (lines, next, false);
            }
            bytes += text.len();
            lines.push(shortened(text, most).unwrap_or(text).to_owned());
        }
        next = event.seq;
    }
    (lines, next, true)
}
