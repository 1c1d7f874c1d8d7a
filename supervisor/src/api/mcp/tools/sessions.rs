//! Tools of the JavaScript engine: sessions that keep their variables, and what was run in them.

use super::executions::events;
use super::{Answer, Effect, Row};
use crate::api::mcp::call::Call;
use crate::api::mcp::outcome::{Failure, Outcome, cut, shortened};
use crate::api::mcp::{schema, views};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    DurableReply, ErrorCode, ListPage, NewExecution, NewSession, Op, Reply, SessionFilter,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Engine, EventPayload, Execution, ExecutionKind, Session, SessionStatus, Settings, Task,
};

/// The template of sessions for which none is named; each owner has one of its own.
const TEMPLATE: &str = "mcp";
/// Most sessions of a list.
const LISTED: u32 = 200;
/// Console output of one evaluation (bytes).
const OUTPUT_BYTES: usize = 16 * 1024;
/// The value of one evaluation (bytes).
const VALUE_BYTES: usize = 16 * 1024;
/// Events that are read for one evaluation, and listed by `get_events`.
const EVENTS: u32 = 1_000;
/// Events of one answer (bytes of JSON).
const EVENTS_BYTES: usize = 64 * 1024;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "session_create",
            title: "Make a JavaScript session",
            description: "Make a sandboxed JavaScript session. Variables stay from one session_eval to the next. It \
                reads files beneath its worktree through `require('fs')` and reaches nothing else.",
            input: || {
                schema::object(
                    &[
                        ("templateId", schema::text("Name or id of a template; a plain one if absent")),
                        (
                            "worktree",
                            schema::text(
                                "Absolute path of an existing folder whose files it may read; required unless the \
                                server was given one with --worktree",
                            ),
                        ),
                        ("name", schema::text("A name for the session")),
                    ],
                    &[],
                )
            },
            output: schema::session,
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(create(call)),
        },
        Row {
            name: "session_eval",
            title: "Run JavaScript",
            description: "Run JavaScript in a session: the value of the last expression and what it said on the \
                console. Cancelling the request ends it.",
            input: || {
                schema::object(
                    &[
                        ("sessionId", session_id()),
                        ("code", schema::text("JavaScript; top-level await works")),
                    ],
                    &["sessionId", "code"],
                )
            },
            output: schema::evaluation,
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(eval(call)),
        },
        Row {
            name: "session_run_file",
            title: "Run a file",
            description: "Run a file of the session's worktree in the session.",
            input: || {
                schema::object(
                    &[
                        ("sessionId", session_id()),
                        ("path", schema::text("The file, relative to the worktree")),
                        ("args", json!({ "type": "object", "description": "What it sees as `args`" })),
                        ("env", schema::texts("What it sees in `process.env`")),
                    ],
                    &["sessionId", "path"],
                )
            },
            output: schema::evaluation,
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(run_file(call)),
        },
        Row {
            name: "session_inspect",
            title: "Inspect a session",
            description: "A session as the kernel sees it: process, CPU time, memory, limits, walls in force.",
            input: || schema::object(&[("sessionId", session_id())], &["sessionId"]),
            output: || {
                schema::object(
                    &[
                        ("session", schema::session()),
                        ("inspection", json!({ "type": "object", "description": "Absent if it has ended" })),
                    ],
                    &["session"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(inspect(call)),
        },
        Row {
            name: "session_fork",
            title: "Fork a session",
            description: "Make copies of an idle session: each has all its variables as they are now and goes on by \
                itself. To try several ways from one prepared state, prepare it once and fork it for each.",
            input: || {
                schema::object(
                    &[
                        ("sessionId", session_id()),
                        ("count", schema::count("How many copies (1–64, default 1): all of them or none")),
                    ],
                    &["sessionId"],
                )
            },
            output: || {
                schema::object(&[("sessions", schema::list(schema::session(), "The copies"))], &["sessions"])
            },
            effect: Effect::Adds,
            reads_files: false,
            run: |call| Box::pin(fork(call)),
        },
        Row {
            name: "session_close",
            title: "Close a session",
            description: "End a session; what runs in it becomes cancelled. Closing it again changes nothing.",
            input: || schema::object(&[("sessionId", session_id())], &["sessionId"]),
            output: schema::session,
            effect: Effect::Destroys,
            reads_files: false,
            run: |call| Box::pin(close(call)),
        },
        Row {
            name: "list_sessions",
            title: "List sessions",
            description: "Sessions of scripts, newest first (at most 200); those of programs with engine `cvm`.",
            input: || {
                schema::object(
                    &[
                        (
                            "status",
                            json!({ "type": "string", "enum": ["starting", "ready", "crashed", "closed", "waiting"],
                            "description": "Only of this status" }),
                        ),
                        (
                            "engine",
                            json!({ "type": "string", "enum": ["quickjs", "cvm"],
                            "description": "Only of this engine (default quickjs)" }),
                        ),
                    ],
                    &[],
                )
            },
            output: || {
                schema::object(
                    &[("sessions", schema::list(schema::session(), "Newest first"))],
                    &["sessions"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        Row {
            name: "get_events",
            title: "Events of an execution",
            description: "All that an execution of a session or of a program said and did, in order. Pass `next` as \
                `after` to go on.",
            input: || {
                schema::object(
                    &[
                        ("executionId", schema::text("Name or id of the execution")),
                        ("after", schema::count("Only events behind this number")),
                        ("limit", schema::count("At most this many (1–1000)")),
                    ],
                    &["executionId"],
                )
            },
            output: || {
                let event = json!({ "type": "object", "description": "seq, ts, type, payload" });
                schema::object(
                    &[
                        ("events", schema::list(event, "In order")),
                        ("next", schema::count("Pass it as `after` to go on")),
                        ("truncated", schema::flag("There is more")),
                    ],
                    &["events", "next", "truncated"],
                )
            },
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(get_events(call)),
        },
    ]
}

fn session_id() -> Value {
    schema::text("Id of the session, its unique beginning, or its name")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Create {
    template_id: Option<String>,
    worktree: Option<String>,
    name: Option<String>,
}

async fn create(call: &Call<'_>) -> Answer {
    let Create { template_id, worktree, name } = call.input()?;
    let worktree = worktree.or_else(|| call.front.worktree()).ok_or_else(|| {
        Failure::invalid(
            "a session needs a worktree: pass `worktree`, the absolute path of an existing folder (or start the server \
             with --worktree DIR)",
        )
    })?;
    let template = match template_id {
        Some(template) => template,
        None => own_template(call).await?,
    };
    let new = NewSession {
        template,
        workspace_id: "mcp".to_owned(),
        base_commit_oid: "none".to_owned(),
        worktree_path: worktree,
        name,
        ttl_s: None,
        idle_timeout_s: None,
    };
    match call.ask(Op::SessionCreate(Box::new(new))).await? {
        Reply::Session(session) => {
            let data = views::session(&session);
            Ok(Outcome::new(format!("Session created: {}", session.id), data))
        }
        other => Err(Failure::unexpected(&other)),
    }
}

/// The template of this name, made when it is first needed.
async fn own_template(call: &Call<'_>) -> Result<String, Failure> {
    let not_there = ErrorCode::TemplateNotFound.as_str();
    match call.ask(Op::TemplateGet { template: TEMPLATE.to_owned() }).await {
        Err(Failure::Told { code, .. }) if code == not_there => {}
        other => return other.map(|_| TEMPLATE.to_owned()),
    }
    let new = Op::TemplateCreate {
        name: TEMPLATE.to_owned(),
        engine: Engine::Quickjs,
        settings: Box::new(Settings::default()),
        modules: vec!["fs".to_owned()],
    };
    match call.ask(new).await {
        // Another client of the owner's was faster.
        Err(Failure::Told { code, .. }) if code == ErrorCode::Conflict.as_str() => {}
        other => {
            other?;
        }
    }
    Ok(TEMPLATE.to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Eval {
    session_id: String,
    code: String,
}

async fn eval(call: &Call<'_>) -> Answer {
    let Eval { session_id, code } = call.input()?;
    execute(call, NewExecution { input: Some(code), ..NewExecution::new(session_id, ExecutionKind::Repl) })
        .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RunFile {
    session_id: String,
    path: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

async fn run_file(call: &Call<'_>) -> Answer {
    let RunFile { session_id, path, args, env } = call.input()?;
    let new = NewExecution {
        path: Some(path),
        args: JsonText::from_value(&Value::Object(args)),
        env: env.into_iter().collect(),
        ..NewExecution::new(session_id, ExecutionKind::RunFile)
    };
    execute(call, new).await
}

/// Runs something in a session. It is known by its id from its beginning: when the client takes its request back, that
/// execution is ended and no other, whoever else runs something there.
async fn execute(call: &Call<'_>, new: NewExecution) -> Answer {
    let begin = Op::ExecStart(Box::new(NewExecution { wait: false, ..new }));
    let execution = match call.ask(begin).await? {
        Reply::Execution(execution) => execution.id.to_string(),
        Reply::Durable(DurableReply::Run(run)) => run.execution.id.to_string(),
        other => return Err(Failure::unexpected(&other)),
    };
    match call.long(Op::ExecWait { execution: execution.clone() }).await {
        Ok(Reply::Execution(execution)) => evaluated(call, *execution, None).await,
        Ok(Reply::Durable(DurableReply::Run(run))) => evaluated(call, run.execution, run.task).await,
        Ok(other) => Err(Failure::unexpected(&other)),
        Err(Failure::Cancelled) => {
            call.ask(Op::ExecCancel { execution }).await?;
            Err(Failure::Cancelled)
        }
        Err(failure) => Err(failure),
    }
}

async fn evaluated(call: &Call<'_>, execution: Execution, asked: Option<Task>) -> Answer {
    let id = execution.id.to_string();
    let said = events(call, &id, 0, EVENTS).await?;
    let (lines, next, all) = views::lines(&said, 0, OUTPUT_BYTES);
    let mut data = json!({
        "executionId": id, "sessionId": execution.session_id, "status": execution.status,
        "output": lines, "next": next,
    });
    let mut text = lines.join("\n");
    let mut add = |line: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    };
    let too_much = ErrorCode::OutputLimitExceeded.as_str();
    if !all || said.len() >= EVENTS as usize {
        data["truncated"] = json!(true);
        add(&format!("[output cut: get_events executionId={id} after={next} has the rest]"));
    } else if execution.error.as_ref().is_some_and(|error| error.code == too_much) {
        add(&format!("[get_events executionId={id} has what was kept of its output]"));
    }
    let value = said.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Value { preview, json, .. } => Some((preview, json)),
        _ => None,
    });
    if let Some((preview, json)) = value {
        let preview = shortened(preview, VALUE_BYTES).unwrap_or(preview);
        data["value"] = json!(preview);
        add(preview);
        if let Some(json) = json.as_ref().filter(|json| json.as_str().len() <= VALUE_BYTES) {
            data["result"] = json.to_value().unwrap_or(Value::Null);
        }
    }
    if let Some(question) = asked {
        data["task"] = views::task(&question);
        add(&format!("It waits for an answer (submitTask executionId={id}): {}", cut(question.prompt)));
    }
    match execution.error {
        Some(error) => {
            data["error"] = views::error(&error);
            add(&format!("Error: {}", error.message));
            Ok(Outcome::failed(text, data))
        }
        None => Ok(Outcome::new(text, data)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Which {
    session_id: String,
}

async fn one(call: &Call<'_>, op: Op) -> Result<Box<Session>, Failure> {
    match call.ask(op).await? {
        Reply::Session(session) => Ok(session),
        other => Err(Failure::unexpected(&other)),
    }
}

async fn inspect(call: &Call<'_>) -> Answer {
    let Which { session_id } = call.input()?;
    let session = one(call, Op::SessionGet { session: session_id }).await?;
    let mut data = json!({ "session": views::session(&session) });
    if session.status == SessionStatus::Ready {
        match call.ask(Op::SessionInspect { session: session.id.to_string() }).await? {
            Reply::Inspection(inspection) => data["inspection"] = json!(inspection),
            other => return Err(Failure::unexpected(&other)),
        }
    }
    Ok(Outcome::json(data))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fork {
    session_id: String,
    count: Option<u32>,
}

async fn fork(call: &Call<'_>) -> Answer {
    let Fork { session_id, count } = call.input()?;
    match call.ask(Op::SessionFork { session: session_id, count: count.unwrap_or(1) }).await? {
        Reply::Sessions(sessions) => {
            let ids: Vec<String> = sessions.iter().map(|session| session.id.to_string()).collect();
            let data: Vec<Value> = sessions.iter().map(views::session).collect();
            Ok(Outcome::new(format!("Session forked: {}", ids.join(", ")), json!({ "sessions": data })))
        }
        other => Err(Failure::unexpected(&other)),
    }
}

async fn close(call: &Call<'_>) -> Answer {
    let Which { session_id } = call.input()?;
    let session = one(call, Op::SessionClose { session: session_id }).await?;
    Ok(Outcome::new(format!("Session closed: {}", session.id), views::session(&session)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    status: Option<SessionStatus>,
    engine: Option<Engine>,
}

async fn list(call: &Call<'_>) -> Answer {
    let List { status, engine } = call.input()?;
    let filter = SessionFilter { status, engine, page: ListPage::first(LISTED), ..SessionFilter::default() };
    let sessions: Vec<Value> = match call.ask(Op::SessionList(filter)).await? {
        Reply::Sessions(sessions) => sessions.iter().map(views::session).collect(),
        other => return Err(Failure::unexpected(&other)),
    };
    let text = serde_json::to_string_pretty(&sessions).unwrap_or_default();
    Ok(Outcome::new(text, json!({ "sessions": sessions })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Events {
    execution_id: String,
    #[serde(default)]
    after: u64,
    limit: Option<u32>,
}

async fn get_events(call: &Call<'_>) -> Answer {
    let Events { execution_id, after, limit } = call.input()?;
    let limit = limit.unwrap_or(EVENTS).clamp(1, EVENTS);
    let found = events(call, &execution_id, after, limit).await?;
    let (mut shown, mut next, mut bytes) = (Vec::new(), after, 0);
    for event in &found {
        let mut value = json!(event);
        let size = value.to_string().len();
        if bytes + size > EVENTS_BYTES && !shown.is_empty() {
            break;
        }
        if size > EVENTS_BYTES {
            // One that is larger than an answer: what it was, and how large.
            value =
                json!({ "seq": event.seq, "ts": event.ts, "type": event.payload.type_name(), "bytes": size });
        }
        bytes += size;
        next = event.seq;
        shown.push(value);
    }
    let truncated = shown.len() < found.len() || found.len() >= limit as usize;
    let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
    Ok(Outcome::new(text, json!({ "events": shown, "next": next, "truncated": truncated })))
}
