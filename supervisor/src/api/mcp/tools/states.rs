//! Tools that look inside, change variables, go back, and branch off.

use super::{Answer, Effect, Row};
use crate::api::mcp::call::Call;
use crate::api::mcp::outcome::{Failure, Outcome};
use crate::api::mcp::{schema, views};
use serde::Deserialize;
use serde_json::{Value, json};
use vm_system_protocol::control::{DurableOp, DurableReply};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::ProgramFrame;

/// Most checkpoints in an answer, the newest ones.
const CHECKPOINTS: usize = 200;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "get_state",
            title: "Look inside",
            description: "The inside of an execution that stands still: calls with their variables and source lines, \
                global variables, and the checkpoints to which it can be rewound.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::which_execution()),
                        ("checkpoint", schema::count("As of this checkpoint; now if absent")),
                    ],
                    &[],
                )
            },
            output: state_schema,
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        Row {
            name: "set_variable",
            title: "Change a variable",
            description: "Change a variable of an execution that waits for an answer.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::which_execution()),
                        ("name", schema::text("The variable")),
                        ("value", schema::any("Its new value, any JSON")),
                        (
                            "frame",
                            schema::count(
                                "Which call, 0 is the innermost; the innermost that has such a variable if absent",
                            ),
                        ),
                    ],
                    &["name", "value"],
                )
            },
            output: schema::execution,
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(set(call)),
        },
        Row {
            name: "rewind",
            title: "Go back",
            description: "Go back to a checkpoint: a new execution starts there and takes over the name, the old one \
                ends. What the program did to files since is not undone.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::which_execution()),
                        ("checkpoint", schema::count("Its number, as get_state lists it")),
                    ],
                    &["checkpoint"],
                )
            },
            output: schema::execution,
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(rewind(call)),
        },
        Row {
            name: "fork",
            title: "Branch off",
            description: "Make a new execution that stands where this one stands, or stood at a checkpoint. The old \
                one stays as it is.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::which_execution()),
                        (
                            "checkpoint",
                            schema::count("Its number, as get_state lists it; where it stands if absent"),
                        ),
                        ("newExecutionId", schema::text("A name for the new execution")),
                        ("setCurrent", schema::flag("Make it the current execution (default: false)")),
                    ],
                    &[],
                )
            },
            output: schema::execution,
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(branch_off(call)),
        },
    ]
}

fn state_schema() -> Value {
    let frame = schema::object(
        &[
            ("function", schema::text("Its name; empty at the top level")),
            ("line", schema::count("Where it stands")),
            ("column", schema::count("Where it stands")),
            ("source", schema::text("The line itself")),
            ("variables", schema::variables()),
        ],
        &["function", "line", "column", "source", "variables"],
    );
    let checkpoint = schema::object(
        &[
            ("checkpoint", schema::count("Its number")),
            ("at", schema::text("When")),
            ("cause", schema::text("start, pause, effect, steps, edit or end")),
            ("bytes", schema::count("Written with it")),
        ],
        &["checkpoint", "at", "cause", "bytes"],
    );
    schema::object(
        &[
            ("executionId", schema::text("Its name, or its id if it has none")),
            ("id", schema::text("Its id")),
            ("frames", schema::list(frame, "Calls in progress, innermost first")),
            ("globals", schema::variables()),
            ("checkpoints", schema::list(checkpoint, "In order, the newest 200")),
        ],
        &["executionId", "id", "frames", "globals", "checkpoints"],
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Get {
    execution_id: Option<String>,
    checkpoint: Option<u64>,
}

async fn get(call: &Call<'_>) -> Answer {
    let Get { execution_id, checkpoint } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.run(DurableOp::RunGet { execution }).await?;
    let id = run.execution.id.to_string();
    let state = match call.durable(DurableOp::StateGet { execution: id.clone(), checkpoint }).await? {
        DurableReply::State(state) => state,
        other => return Err(Failure::unexpected(&other)),
    };
    let kept = match call.durable(DurableOp::CheckpointList { execution: id.clone() }).await? {
        DurableReply::Checkpoints(kept) => kept,
        other => return Err(Failure::unexpected(&other)),
    };
    let frames: Vec<Value> = state
        .frames
        .iter()
        .map(|frame| {
            json!({
                "function": frame.function, "line": frame.line, "column": frame.column,
                "source": frame.source_line, "variables": views::variables(&frame.variables),
            })
        })
        .collect();
    let kept = kept.iter().skip(kept.len().saturating_sub(CHECKPOINTS)).map(|point| {
        json!({ "checkpoint": point.seq, "at": point.at, "cause": point.cause, "bytes": point.bytes })
    });
    let kept: Vec<Value> = kept.collect();
    let globals = views::variables(&state.globals);
    Ok(Outcome::json(json!({
        "executionId": views::name_of(&run), "id": id,
        "frames": frames, "globals": globals, "checkpoints": kept,
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Set {
    execution_id: Option<String>,
    name: String,
    value: Value,
    frame: Option<u32>,
}

async fn set(call: &Call<'_>) -> Answer {
    let Set { execution_id, name, value, frame } = call.input()?;
    let execution = call.which(execution_id).await?;
    let frame = match frame {
        Some(frame) => frame,
        None => frame_of(call, &execution, &name).await?,
    };
    let value = JsonText::from_value(&value);
    let run = call.run(DurableOp::StateSet { execution, name: name.clone(), value, frame }).await?;
    let mut data = views::run(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.insert("isCurrent".to_owned(), json!(current));
    Ok(Outcome::new(format!("Variable set: {name}"), Value::Object(data)))
}

/// The innermost call that has a variable of this name.
async fn frame_of(call: &Call<'_>, execution: &str, name: &str) -> Result<u32, Failure> {
    let op = DurableOp::StateGet { execution: execution.to_owned(), checkpoint: None };
    let state = match call.durable(op).await? {
        DurableReply::State(state) => state,
        other => return Err(Failure::unexpected(&other)),
    };
    let has = |frame: &ProgramFrame| frame.variables.iter().any(|variable| variable.name == name);
    let place = state.frames.iter().position(has).unwrap_or(0);
    Ok(u32::try_from(place).unwrap_or(0))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rewind {
    execution_id: Option<String>,
    checkpoint: u64,
}

async fn rewind(call: &Call<'_>) -> Answer {
    let Rewind { execution_id, checkpoint } = call.input()?;
    let execution = call.which(execution_id).await?;
    let old = call.run(DurableOp::RunGet { execution }).await?;
    let current = call.current().await?.is_some_and(|current| current.execution.id == old.execution.id);
    let op = DurableOp::Rewind { execution: old.execution.id.to_string(), checkpoint };
    let run = call.long_run(op).await?;
    let mut data = views::run(&run);
    if current {
        // Whoever worked on the old one goes on with the new one.
        call.make_current(&run).await?;
    }
    data.insert("isCurrent".to_owned(), json!(current));
    let text = format!("Execution rewound to checkpoint {checkpoint}: {}", views::name_of(&run));
    Ok(Outcome::new(text, Value::Object(data)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fork {
    execution_id: Option<String>,
    checkpoint: Option<u64>,
    new_execution_id: Option<String>,
    #[serde(default)]
    set_current: bool,
}

async fn branch_off(call: &Call<'_>) -> Answer {
    let Fork { execution_id, checkpoint, new_execution_id, set_current } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.long_run(DurableOp::Fork { execution, checkpoint, name: new_execution_id }).await?;
    let mut data = views::run(&run);
    let current = set_current && call.make_current(&run).await?;
    data.insert("isCurrent".to_owned(), json!(current));
    let note = if current { " (set as current)" } else { "" };
    Ok(Outcome::new(format!("Execution forked: {}{note}", views::name_of(&run)), Value::Object(data)))
}
