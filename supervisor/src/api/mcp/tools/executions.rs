//! Tools of executions: starting them, where they stand, what they said.

use super::programs::{ask_first, confirmation, confirmed};
use super::{Answer, Effect, Row};
use crate::api::mcp::call::Call;
use crate::api::mcp::outcome::{Failure, Outcome};
use crate::api::mcp::{schema, views};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage, NewRun, Op, Reply};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, ExecutionStatus, ProgramState, Run};

/// Most executions of a list.
const LISTED: u32 = 200;
/// Longest question in a list (bytes).
const LISTED_PROMPT_BYTES: u32 = 1_000;
/// Events that are read at a time.
const EVENTS: u32 = 2_000;
/// Console output of one answer (bytes).
const OUTPUT_BYTES: usize = 64 * 1024;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "start",
            title: "Start an execution",
            description: "Start an execution of a program. When the answer comes, it has run to its first question \
                or its end: ask getTask next, or look at `task` of the structured answer.",
            input: || {
                schema::object(
                    &[
                        ("programId", schema::text("Name or id of the program")),
                        (
                            "executionId",
                            schema::text(
                                "A name for the execution; one that has not ended keeps its name to itself",
                            ),
                        ),
                        ("setCurrent", schema::flag("Make it the current execution (default: true)")),
                        (
                            "args",
                            schema::list(json!({ "type": "string" }), "What the program sees as `args`"),
                        ),
                        ("env", schema::texts("What the program sees as `env`")),
                        (
                            "worktree",
                            schema::text(
                                "Absolute path of the folder whose files the program may use; default: the one that \
                                the server was given with --worktree, else none, and its `fs` fails",
                            ),
                        ),
                        (
                            "asTask",
                            schema::flag(
                                "Answer with a task of the protocol's extension, whose inputs are the questions, \
                                if this client knows that (default: false)",
                            ),
                        ),
                    ],
                    &["programId", "executionId"],
                )
            },
            output: schema::execution,
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(start(call)),
        },
        Row {
            name: "restart",
            title: "Start again",
            description: "Start a new execution of a program under a new name, and make it the current one.",
            input: || {
                schema::object(
                    &[
                        ("programId", schema::text("Name or id of the program")),
                        ("executionId", schema::text("A name for the new execution; made up if absent")),
                    ],
                    &["programId"],
                )
            },
            output: schema::execution,
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(restart(call)),
        },
        Row {
            name: "status",
            title: "Status of an execution",
            description: "Where an execution stands, with its program counter, calls in progress and variables.",
            input: only_execution,
            output: || {
                let mut fields = schema::execution_fields();
                fields.extend([
                    ("pc", schema::text("Line and column where it stands")),
                    ("stack", schema::list(schema::text("A call"), "Calls in progress, innermost first")),
                    ("variables", schema::variables()),
                ]);
                schema::object(&fields, schema::EXECUTION_REQUIRED)
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(status(call)),
        },
        Row {
            name: "list_executions",
            title: "List executions",
            description: "Executions of programs, newest first (at most 200), and which is the current one.",
            input: || schema::object(&[("programId", schema::text("Only of this program"))], &[]),
            output: || {
                schema::object(
                    &[("executions", schema::list(listed_schema(), "Newest first"))],
                    &["executions"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        Row {
            name: "get_execution",
            title: "One execution",
            description: "An execution with its current task, how often it was answered wrongly, and its variables.",
            input: only_execution,
            output: || {
                let mut fields = schema::execution_fields();
                fields.extend([("currentTask", schema::task()), ("variables", schema::variables())]);
                schema::object(&fields, schema::EXECUTION_REQUIRED)
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        Row {
            name: "set_current",
            title: "Set the current execution",
            description: "Which execution tools mean when no executionId is given. Each client has one of its own.",
            input: || {
                schema::object(
                    &[("executionId", schema::text("Name or id of the execution"))],
                    &["executionId"],
                )
            },
            output: schema::execution,
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(set_current(call)),
        },
        Row {
            name: "delete_execution",
            title: "Delete an execution",
            description: "Forget an execution with its output and states; one that has not ended is ended first. The \
                first call answers a token, the second one with this token deletes.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::text("Name or id of the execution")),
                        ("confirmToken", schema::text("The token of the first call")),
                    ],
                    &["executionId"],
                )
            },
            output: || confirmation("executionId"),
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(delete(call)),
        },
        Row {
            name: "get_output",
            title: "Output of an execution",
            description: "What a program said on its console so far. Pass `next` as `after` to get what came since.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::which_execution()),
                        ("after", schema::count("Only what came after this (`next` of an earlier answer)")),
                    ],
                    &[],
                )
            },
            output: || {
                schema::object(
                    &[
                        ("executionId", schema::text("Its name, or its id if it has none")),
                        ("lines", schema::list(schema::text("A line"), "In order")),
                        ("next", schema::count("Pass it as `after` to go on")),
                        ("truncated", schema::flag("There is more: ask again with `next`")),
                    ],
                    &["executionId", "lines", "next", "truncated"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(output(call)),
        },
    ]
}

fn only_execution() -> Value {
    schema::object(&[("executionId", schema::which_execution())], &[])
}

fn listed_schema() -> Value {
    let summary = schema::object(&[("currentPrompt", schema::text("What it asks, perhaps shortened"))], &[]);
    schema::object(
        &[
            ("executionId", schema::text("Its name, or its id if it has none")),
            ("id", schema::text("Its id")),
            ("programId", schema::text("Name of the program, or its id if it was deleted")),
            ("state", schema::text("RUNNING, AWAITING_COGNITIVE_RESULT, COMPLETED or ERROR")),
            ("status", schema::text("The same, finer")),
            ("created", schema::text("When it was started")),
            ("isCurrent", schema::flag("Tools without executionId mean this one")),
            ("summary", summary),
        ],
        &["executionId", "id", "programId", "state", "status", "created", "isCurrent", "summary"],
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Start {
    program_id: String,
    execution_id: String,
    set_current: Option<bool>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    worktree: Option<String>,
    /// What becomes of the answer: see [`Call::is_as_task`].
    #[serde(rename = "asTask")]
    _as_task: Option<bool>,
}

async fn start(call: &Call<'_>) -> Answer {
    let Start { program_id, execution_id, set_current, args, env, worktree, .. } = call.input()?;
    let new = NewRun {
        program: program_id,
        name: Some(execution_id.clone()),
        args,
        env: env.into_iter().collect(),
        template: None,
        worktree_path: worktree.or_else(|| call.front.worktree()),
        // A task is there at once: whoever takes the request back knows what runs.
        wait: !call.is_as_task(),
    };
    started(call, new, set_current.unwrap_or(true)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Restart {
    program_id: String,
    execution_id: Option<String>,
}

async fn restart(call: &Call<'_>) -> Answer {
    let Restart { program_id, execution_id } = call.input()?;
    let name = execution_id.unwrap_or_else(|| {
        let unique = Uuid::new_v4().simple().to_string();
        format!("{}-{}", program_id.chars().take(100).collect::<String>(), &unique[..12])
    });
    let new = NewRun {
        program: program_id,
        name: Some(name),
        worktree_path: call.front.worktree(),
        ..NewRun::default()
    };
    started(call, new, true).await
}

async fn started(call: &Call<'_>, new: NewRun, set_current: bool) -> Answer {
    let run = call.long_run(DurableOp::ProgramStart(Box::new(new))).await?;
    let mut data = views::run(&run);
    let current = set_current && call.make_current(&run).await?;
    if current {
        data.insert("isCurrent".to_owned(), Value::Bool(true));
    }
    let note = if current { " (set as current)" } else { "" };
    Ok(Outcome::new(format!("Execution started: {}{note}", views::name_of(&run)), Value::Object(data)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Which {
    execution_id: Option<String>,
}

/// The inside of an execution that waits; of one that runs or has ended there is none.
async fn inside(call: &Call<'_>, run: &Run) -> Result<Option<Box<ProgramState>>, Failure> {
    if run.execution.status != ExecutionStatus::Waiting {
        return Ok(None);
    }
    let op = DurableOp::StateGet { execution: run.execution.id.to_string(), checkpoint: None };
    match call.durable(op).await? {
        DurableReply::State(state) => Ok(Some(state)),
        other => Err(Failure::unexpected(&other)),
    }
}

/// Variables of the innermost call, then the global ones.
fn variables(state: &ProgramState) -> Value {
    let mut all = state.frames.first().map(|frame| frame.variables.clone()).unwrap_or_default();
    all.extend(state.globals.iter().cloned());
    views::variables(&all)
}

async fn found(call: &Call<'_>) -> Result<(Box<Run>, Map<String, Value>), Failure> {
    let Which { execution_id } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.run(DurableOp::RunGet { execution }).await?;
    let mut data = views::run(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.insert("isCurrent".to_owned(), Value::Bool(current));
    Ok((run, data))
}

async fn status(call: &Call<'_>) -> Answer {
    let (run, mut data) = found(call).await?;
    if let Some(state) = inside(call, &run).await? {
        if let Some(frame) = state.frames.first() {
            data.insert("pc".to_owned(), json!(format!("{}:{}", frame.line, frame.column)));
        }
        let stack = state.frames.iter().map(|frame| {
            let name = if frame.function.is_empty() { "(top level)" } else { &frame.function };
            format!("{name} {}:{} {}", frame.line, frame.column, frame.source_line.trim())
        });
        data.insert("stack".to_owned(), stack.collect());
        data.insert("variables".to_owned(), variables(&state));
    }
    Ok(Outcome::json(Value::Object(data)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    program_id: Option<String>,
}

async fn list(call: &Call<'_>) -> Answer {
    let List { program_id } = call.input()?;
    let runs = match call
        .durable(DurableOp::RunList { program: program_id, page: ListPage::first(LISTED) })
        .await?
    {
        DurableReply::Runs(runs) => runs,
        other => return Err(Failure::unexpected(&other)),
    };
    let current = call.current().await?.map(|run| run.execution.id);
    let prompts = prompts(call, &runs).await?;
    let listed = runs.iter().map(|run| {
        let execution = &run.execution;
        let mut summary = json!({});
        if let Some(prompt) = prompts.get(&execution.id) {
            summary["currentPrompt"] = json!(prompt);
        }
        json!({
            "executionId": views::name_of(run),
            "id": execution.id,
            "programId": views::program_of(run),
            "state": views::legacy(execution.status),
            "status": execution.status,
            "created": execution.started_at,
            "isCurrent": current == Some(execution.id),
            "summary": summary,
        })
    });
    let listed: Vec<Value> = listed.collect();
    let text = serde_json::to_string_pretty(&listed).unwrap_or_default();
    Ok(Outcome::new(text, json!({ "executions": listed })))
}

/// What the waiting ones of these executions ask.
async fn prompts(call: &Call<'_>, runs: &[Run]) -> Result<HashMap<ExecutionId, String>, Failure> {
    let waits = |run: &&Run| run.execution.status == ExecutionStatus::Waiting;
    let executions: Vec<_> = runs.iter().filter(waits).map(|run| run.execution.id).collect();
    if executions.is_empty() {
        return Ok(HashMap::new());
    }
    match call.durable(DurableOp::Prompts { executions, bytes: LISTED_PROMPT_BYTES }).await? {
        DurableReply::Prompts(prompts) => Ok(prompts.into_iter().collect()),
        other => Err(Failure::unexpected(&other)),
    }
}

async fn get(call: &Call<'_>) -> Answer {
    let (run, mut data) = found(call).await?;
    if let Some(task) = data.get("task").cloned() {
        data.insert("currentTask".to_owned(), task);
    }
    if let Some(state) = inside(call, &run).await? {
        data.insert("variables".to_owned(), variables(&state));
    }
    Ok(Outcome::json(Value::Object(data)))
}

async fn set_current(call: &Call<'_>) -> Answer {
    let Which { execution_id } = call.input()?;
    let named = execution_id.ok_or_else(|| Failure::invalid("executionId is missing"))?;
    let run = call.set_current(named.clone()).await?;
    let mut data = views::run(&run);
    data.insert("isCurrent".to_owned(), Value::Bool(true));
    Ok(Outcome::new(format!("Current execution set to: {named}"), Value::Object(data)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Delete {
    execution_id: String,
    confirm_token: Option<String>,
}

async fn delete(call: &Call<'_>) -> Answer {
    let Delete { execution_id, confirm_token } = call.input()?;
    let id = call.run(DurableOp::RunGet { execution: execution_id.clone() }).await?.execution.id.to_string();
    let Some(token) = confirm_token else {
        return Ok(ask_first(call, ("execution", "executionId"), &execution_id, &id));
    };
    confirmed(call, "execution", &execution_id, &id, &token)?;
    call.run(DurableOp::RunDelete { execution: id }).await?;
    let data = json!({ "executionId": execution_id, "deleted": true });
    Ok(Outcome::new(format!("Execution deleted: {execution_id}"), data))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Output {
    execution_id: Option<String>,
    #[serde(default)]
    after: u64,
}

async fn output(call: &Call<'_>) -> Answer {
    let Output { execution_id, after } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.run(DurableOp::RunGet { execution }).await?;
    let (lines, next, truncated) = console(call, &run.execution.id.to_string(), after, OUTPUT_BYTES).await?;
    let text = if lines.is_empty() { "(no output)".to_owned() } else { lines.join("\n") };
    let data = json!({
        "executionId": views::name_of(&run), "lines": lines, "next": next, "truncated": truncated
    });
    let more = if truncated { format!("\n[there is more: after={next}]") } else { String::new() };
    Ok(Outcome::new(text + &more, data))
}

/// Console lines behind a place, as many as one answer has room for.
pub(in crate::api::mcp) async fn console(
    call: &Call<'_>,
    execution: &str,
    after: u64,
    most: usize,
) -> Result<(Vec<String>, u64, bool), Failure> {
    let events = events(call, execution, after, EVENTS).await?;
    let (lines, next, all) = views::lines(&events, after, most);
    Ok((lines, next, !all || events.len() >= EVENTS as usize))
}

/// Events behind a place.
pub(super) async fn events(
    call: &Call<'_>,
    execution: &str,
    after_seq: u64,
    limit: u32,
) -> Result<Vec<Event>, Failure> {
    let op = Op::ExecEvents { execution: execution.to_owned(), after_seq, limit, follow: false };
    match call.ask(op).await? {
        Reply::Events(events) => Ok(events),
        other => Err(Failure::unexpected(&other)),
    }
}
