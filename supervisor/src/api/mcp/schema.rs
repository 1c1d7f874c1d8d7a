//! JSON Schema, as far as the tools need it.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// An object with these fields; those of `required` must be there, and there are no others.
pub(super) fn object(fields: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The same as the SDK wants it.
pub(super) fn as_object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(map) => map,
        // All schemas of tools are objects.
        _ => JsonObject::new(),
    }
}

/// A text.
pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// A count.
pub(super) fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

/// Yes or no.
pub(super) fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// Anything.
pub(super) fn any(description: &str) -> Value {
    json!({ "description": description })
}

/// A list.
pub(super) fn list(items: Value, description: &str) -> Value {
    let mut schema = json!({ "type": "array", "description": description });
    schema["items"] = items;
    schema
}

/// An object of texts.
pub(super) fn texts(description: &str) -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" }, "description": description })
}

/// Which execution of a program, where the current one is meant if it is absent.
pub(super) fn which_execution() -> Value {
    text("Name or id of the execution; the current one if absent")
}

/// A question of a program.
pub(super) fn task() -> Value {
    object(
        &[
            (
                "id",
                text("Pass it to submitTask as taskId, so that the answer is for this question and no other"),
            ),
            ("prompt", text("What the program asks")),
            ("truncated", flag("The prompt is longer than an answer has room for")),
            ("schema", any("JSON Schema that the answer must fit; any text will do if absent")),
            ("attempts", count("Answers that did not fit so far")),
            ("createdAt", text("When it was asked")),
            ("deadline", text("When it is answered by its default or fails")),
            ("firstAttemptAt", text("When the first answer came that did not fit")),
            ("lastAttemptAt", text("When the last answer came that did not fit")),
        ],
        &["id", "prompt", "attempts", "createdAt"],
    )
}

/// The fields of an execution of a program.
pub(super) fn execution_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("executionId", text("Its name, or its id if it has none")),
        ("id", text("Its id")),
        (
            "programId",
            text("Name of the program, or its id if it was deleted; absent for an execution of a session"),
        ),
        ("programVersion", count("Version of the program that it runs")),
        (
            "state",
            json!({ "type": "string", "description": "AWAITING_COGNITIVE_RESULT: `task` wants an answer",
                "enum": ["RUNNING", "AWAITING_COGNITIVE_RESULT", "COMPLETED", "ERROR"] }),
        ),
        (
            "status",
            json!({ "type": "string", "description": "The same, finer",
                "enum": ["running", "waiting", "ok", "error", "timeout", "cancelled"] }),
        ),
        ("created", text("When it was started")),
        ("ended", text("When it ended")),
        ("result", any("What the program returned, once it is COMPLETED")),
        ("truncated", flag("The result is too large for an answer")),
        (
            "error",
            object(
                &[("code", text("EXCEPTION, CPU_LIMIT, CANCELLED, …")), ("message", text("In words"))],
                &["code", "message"],
            ),
        ),
        ("task", task()),
        ("isCurrent", flag("Tools without executionId mean this one")),
    ]
}

/// What an execution always says of itself.
pub(super) const EXECUTION_REQUIRED: &[&str] = &["executionId", "id", "state", "status", "created"];

/// An execution of a program.
pub(super) fn execution() -> Value {
    object(&execution_fields(), EXECUTION_REQUIRED)
}

/// A program that was loaded.
pub(super) fn program() -> Value {
    object(
        &[
            ("programId", text("Its name")),
            ("id", text("Its id")),
            ("name", text("Its name")),
            ("version", count("Number of its newest version")),
            ("sourceHash", text("SHA-256 of its source")),
            ("created", text("When it was first loaded")),
            ("modified", text("When its newest version was loaded")),
        ],
        &["programId", "id", "name", "version", "sourceHash", "created", "modified"],
    )
}

/// Variables with their values as text.
pub(super) fn variables() -> Value {
    list(
        object(&[("name", text("Its name")), ("value", text("Its value as text"))], &["name", "value"]),
        "Variables",
    )
}

/// A session of the JavaScript engine.
pub(super) fn session() -> Value {
    object(
        &[
            ("sessionId", text("Its id")),
            ("templateId", text("The template that it was made from")),
            (
                "status",
                text("starting, ready, crashed or closed; waiting: of a program that has no process now"),
            ),
            ("engine", text("cvm: of a durable program")),
            ("executionId", text("The execution of a program's session")),
            ("forkedFrom", text("The session that it was forked from")),
            ("worktree", text("The folder whose files it may read")),
            ("created", text("When it was made")),
            ("closed", text("When it ended")),
            ("lastError", text("What went wrong")),
            ("closeReason", text("Why it ended")),
        ],
        &["sessionId", "templateId", "status", "worktree", "created"],
    )
}

/// What came of a piece of JavaScript in a session.
pub(super) fn evaluation() -> Value {
    object(
        &[
            ("executionId", text("Its id: get_events has all that it said")),
            ("sessionId", text("Where it ran")),
            ("status", text("ok, error, timeout, cancelled, running or waiting")),
            ("value", text("The value of the last expression, for people")),
            ("result", any("The same as JSON, where it has a faithful form and is not too large")),
            ("output", list(text("A line"), "What it said on the console")),
            ("next", count("Pass it to get_events as `after` for what is not here")),
            ("truncated", flag("There was more output than an answer has room for")),
            ("task", task()),
            (
                "error",
                object(
                    &[("code", text("EXCEPTION, …")), ("message", text("In words"))],
                    &["code", "message"],
                ),
            ),
        ],
        &["executionId", "sessionId", "status", "output", "next"],
    )
}
