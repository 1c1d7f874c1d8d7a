//! Tools for sessions of the JavaScript engine and their executions.

use super::evaluations::{EVENTS, EvaluationView, evaluated};
use super::executions::events;
use super::hints;
use super::{Effect, ToolResult, ToolRow, ToolSet};
use crate::mcp::call::{ToolCall, exact_json};
use crate::mcp::output::{ToolError, ToolOutput};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::SessionView;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    AGENT_TEMPLATE, ErrorCode, ExecCancel, ExecStart, ExecWait, ExecutionState, ListPage,
    SessionAddCheckpoint, SessionClose, SessionCreate, SessionEvents, SessionFork, SessionGet,
    SessionInspect, SessionList, SessionRename, SessionRollback,
};
use vm_system_protocol::model::{Engine, ExecutionKind, SessionInspection, SessionStatus};
use vm_system_protocol::module_syntax::has_module_syntax;

/// Most sessions of a list.
const LISTED: u32 = 200;
/// Events of one response (bytes of JSON).
const EVENTS_BYTES: usize = 64 * 1024;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "session_create",
            title: "Create a JavaScript session",
            description: "Create a sandboxed JavaScript session. Variables are kept from one session_eval to the next. \
                It can read the files beneath its worktree through `require('fs')`, and nothing else. To let such sessions \
                change files, too, your user runs `vm-system template add-capability mcp --kind fs --name write --enabled`; \
                sessions created after that can.",
            input: schema::input::<Create>,
            output: schema::output::<SessionView>,
            effect: Effect::Adds,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(create(call)),
        },
        ToolRow {
            name: "session_eval",
            title: "Run JavaScript",
            description: "Run JavaScript in a session; returns the value of the last expression and the console output. \
                Cancelling the request ends the execution.",
            input: schema::input::<Eval>,
            output: schema::output::<EvaluationView>,
            effect: Effect::Destroys,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(eval(call)),
        },
        ToolRow {
            name: "session_run_file",
            title: "Run a file",
            description: "Run a file of the session's worktree in the session.",
            input: schema::input::<RunFile>,
            output: schema::output::<EvaluationView>,
            effect: Effect::Destroys,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(run_file(call)),
        },
        ToolRow {
            name: "session_inspect",
            title: "Inspect a session",
            description: "The process of a session as the kernel reports it: CPU time, memory, limits, sandbox walls.",
            input: schema::input::<Which>,
            output: schema::output::<InspectionView>,
            effect: Effect::Reads,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(inspect(call)),
        },
        ToolRow {
            name: "session_fork",
            title: "Fork a session",
            description: "Make independent copies of an idle session, each with all its current variables. To try several \
                ways from one prepared state, prepare the session once and fork it for each.",
            input: schema::input::<Fork>,
            output: schema::output::<SessionListView>,
            effect: Effect::Adds,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(fork(call)),
        },
        ToolRow {
            name: "session_checkpoint",
            title: "Keep a checkpoint of a session",
            description: "Keep a frozen copy of an idle session with all its variables. session_rollback returns to it, any \
                number of times. Files and databases are not part of it.",
            input: schema::input::<CheckpointInput>,
            output: schema::output::<CheckpointView>,
            effect: Effect::Adds,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(checkpoint(call)),
        },
        ToolRow {
            name: "session_rollback",
            title: "Roll a session back",
            description: "Continue an idle session from a checkpoint: its variables are what they were then. The checkpoint \
                stays. Files, databases and recorded executions are not rolled back.",
            input: schema::input::<RollbackInput>,
            output: schema::output::<SessionView>,
            effect: Effect::Destroys,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(roll_back(call)),
        },
        ToolRow {
            name: "session_rename",
            title: "Rename a session",
            description: "Give a session that has not ended another name, by which all tools find it.",
            input: schema::input::<RenameInput>,
            output: schema::output::<SessionView>,
            effect: Effect::Destroys,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(rename(call)),
        },
        ToolRow {
            name: "session_close",
            title: "Close a session",
            description: "End a session; a running execution becomes cancelled. Closing it again changes nothing.",
            input: schema::input::<Which>,
            output: schema::output::<SessionView>,
            effect: Effect::Destroys,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(close(call)),
        },
        ToolRow {
            name: "list_sessions",
            title: "List sessions",
            description: "Sessions of scripts, newest first (at most 200); with engine `cvm`, those of programs.",
            input: schema::input::<List>,
            output: schema::output::<SessionListView>,
            effect: Effect::Reads,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        ToolRow {
            name: "get_events",
            title: "Events of an execution",
            description: "Events of an execution, of a session or of a program, in order. Pass `next` as `after` to \
                continue.",
            input: schema::input::<Events>,
            output: schema::output::<EventList>,
            effect: Effect::Reads,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(get_events(call)),
        },
        ToolRow {
            name: "session_events",
            title: "Events of a session",
            description: "What happened to a session, in order: its executions, forks, adoptions, its end with the reason. Pass \
                `next` as `after` to continue.",
            input: schema::input::<SessionEventsInput>,
            output: schema::output::<EventList>,
            effect: Effect::Reads,
            set: ToolSet::Sessions,
            reads_files: false,
            run: |call| Box::pin(session_events(call)),
        },
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Create {
    /// Name or id of a template; absent: your template `mcp`, made with default limits and `fs` if you have none
    template_id: Option<String>,
    #[doc = "Absolute path of an existing folder whose files it may read; required unless the server was started with \
             --worktree"]
    worktree: Option<String>,
    /// For administrators: the user with whose rights the folder is used, a name or a number (default: you)
    as_user: Option<String>,
    /// A name for the session
    name: Option<String>,
}

async fn create(call: &ToolCall<'_>) -> ToolResult {
    let Create { template_id, worktree, as_user, name } = call.input()?;
    let worktree = worktree.or_else(|| call.backend.worktree()).ok_or_else(|| {
        let or_flag =
            if call.backend.reads_files() { " (or start the server with --worktree DIR)" } else { "" };
        ToolError::invalid(format!(
            "a session needs a worktree: pass `worktree`, the absolute path of an existing folder{or_flag}"
        ))
    })?;
    let new = SessionCreate {
        template: template_id.unwrap_or_else(|| AGENT_TEMPLATE.to_owned()),
        workspace_id: "mcp".to_owned(),
        base_commit_oid: "none".to_owned(),
        worktree_path: worktree,
        as_user,
        name,
        ttl_s: None,
        idle_timeout_s: None,
    };
    let session = call.perform(new).await?;
    Ok(ToolOutput::new(format!("Session created: {}", session.id), &SessionView::new(&session)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Eval {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// JavaScript, with top-level await
    code: String,
}

async fn eval(call: &ToolCall<'_>) -> ToolResult {
    let Eval { session_id, code } = call.input()?;
    execute(call, ExecStart { input: Some(code), ..ExecStart::new(session_id, ExecutionKind::Repl) }).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RunFile {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// Path of the file, relative to the worktree
    path: String,
    /// The script's `args`
    #[serde(default)]
    args: Map<String, Value>,
    /// The script's `process.env`
    #[serde(default)]
    env: BTreeMap<String, String>,
}

async fn run_file(call: &ToolCall<'_>) -> ToolResult {
    let RunFile { session_id, path, args, env } = call.input()?;
    let new = ExecStart {
        path: Some(path),
        args: exact_json(&Value::Object(args))?,
        env: env.into_iter().collect(),
        ..ExecStart::new(session_id, ExecutionKind::RunFile)
    };
    execute(call, new).await
}

/// Runs one execution in a session. Its id is known from the start: when the client cancels its request, this execution
/// is cancelled and no other of the session.
async fn execute(call: &ToolCall<'_>, new: ExecStart) -> ToolResult {
    let is_module = new.input.as_deref().is_some_and(has_module_syntax);
    let begin = ExecStart { wait: false, ..new };
    let owner = call.client.caller.as_ref().map(|caller| caller.owner.clone());
    let running = call.evaluations.begin(owner, call.context.ct.clone());
    let begun = match call.perform(begin.clone()).await {
        Err(ToolError::Reported { code, .. })
            if code == ErrorCode::SessionBusy.as_str() && running.after_cancelled().await =>
        {
            call.perform(begin).await?
        }
        begun => begun?,
    };
    let execution = begun.execution().id.to_string();
    match call.long(ExecWait { execution: execution.clone() }).await {
        Ok(ExecutionState::Execution(execution)) => {
            let hint = hints::hint_after(call, &execution, is_module).await?;
            Ok(evaluated(&execution, None, &call.client.toolsets, hint.as_deref()))
        }
        Ok(ExecutionState::Run(run)) => {
            call.give(run.execution.id, None, run.task.as_ref().map(|task| task.id));
            Ok(evaluated(&run.execution, run.task.as_ref(), &call.client.toolsets, None))
        }
        Err(ToolError::Cancelled) => {
            call.perform(ExecCancel { execution: execution.clone() }).await?;
            call.perform(ExecWait { execution }).await?;
            Err(ToolError::Cancelled)
        }
        Err(failure) => Err(failure),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Which {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
}

/// Data of `session_inspect`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InspectionView {
    session: SessionView,
    /// Absent if the session has ended
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    inspection: Option<SessionInspection>,
}

async fn inspect(call: &ToolCall<'_>) -> ToolResult {
    let Which { session_id } = call.input()?;
    let session = call.perform(SessionGet { session: session_id }).await?;
    let mut data = InspectionView { session: SessionView::new(&session), inspection: None };
    if matches!(session.status, SessionStatus::Ready | SessionStatus::Suspended) {
        let inspection = call.perform(SessionInspect { session: session.id.to_string() }).await?;
        data.inspection = Some(inspection);
    }
    Ok(ToolOutput::json(&data))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fork {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// Number of copies (1–64, default 1); if one fails, none is created
    count: Option<u32>,
}

/// Data of the tools that return several sessions.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionListView {
    /// Newest first; copies of a fork in the order of creation
    sessions: Vec<SessionView>,
}

async fn fork(call: &ToolCall<'_>) -> ToolResult {
    let Fork { session_id, count } = call.input()?;
    let sessions = call.perform(SessionFork { session: session_id, count: count.unwrap_or(1) }).await?;
    let ids: Vec<String> = sessions.iter().map(|session| session.id.to_string()).collect();
    let data = SessionListView { sessions: sessions.iter().map(SessionView::new).collect() };
    Ok(ToolOutput::new(format!("Session forked: {}", ids.join(", ")), &data))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CheckpointInput {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// A name for the checkpoint, unique in the session
    name: Option<String>,
}

/// Data of `session_checkpoint`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckpointView {
    /// The checkpoint's number in the session, from 1
    checkpoint: u64,
    /// The checkpoint's name
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// When it was made
    created: String,
}

async fn checkpoint(call: &ToolCall<'_>) -> ToolResult {
    let CheckpointInput { session_id, name } = call.input()?;
    let made = call.perform(SessionAddCheckpoint { session: session_id, name }).await?;
    let text = format!("Checkpoint: {}", made.number);
    let created = made.created_at.to_string();
    let data = CheckpointView { checkpoint: made.number, name: made.name, created };
    Ok(ToolOutput::new(text, &data))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RollbackInput {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// Number or name of the checkpoint (default: the newest)
    #[schemars(with = "Option<String>")]
    checkpoint: Option<Value>,
}

async fn roll_back(call: &ToolCall<'_>) -> ToolResult {
    let RollbackInput { session_id, checkpoint } = call.input()?;
    // The result of `session_checkpoint` has the checkpoint's number as a number.
    let checkpoint = checkpoint.map(|given| match given {
        Value::String(text) => text,
        other => other.to_string(),
    });
    let session = call.perform(SessionRollback { session: session_id, checkpoint }).await?;
    Ok(ToolOutput::new(format!("Session rolled back: {}", session.id), &SessionView::new(&session)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RenameInput {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// The new name: no other session of yours that has not ended has it (1–200 characters)
    name: String,
}

async fn rename(call: &ToolCall<'_>) -> ToolResult {
    let RenameInput { session_id, name } = call.input()?;
    let session = call.perform(SessionRename { session: session_id, name }).await?;
    let text = format!("Session renamed: {} ({})", session.name.as_deref().unwrap_or_default(), session.id);
    Ok(ToolOutput::new(text, &SessionView::new(&session)))
}

async fn close(call: &ToolCall<'_>) -> ToolResult {
    let Which { session_id } = call.input()?;
    let session = call.perform(SessionClose { session: session_id }).await?;
    Ok(ToolOutput::new(format!("Session closed: {}", session.id), &SessionView::new(&session)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    /// Only sessions with this status
    status: Option<SessionStatus>,
    /// Only sessions of this engine (default quickjs)
    #[schemars(with = "Option<String>", extend("enum" = ["quickjs", "cvm"]))]
    engine: Option<Engine>,
}

async fn list(call: &ToolCall<'_>) -> ToolResult {
    let List { status, engine } = call.input()?;
    let filter = SessionList { status, engine, page: ListPage::first(LISTED), ..SessionList::default() };
    let sessions = call.perform(filter).await?;
    let sessions: Vec<SessionView> = sessions.iter().map(SessionView::new).collect();
    let text = serde_json::to_string_pretty(&json!(sessions)).unwrap_or_default();
    Ok(ToolOutput::new(text, &SessionListView { sessions }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Events {
    /// Name or id of the execution
    execution_id: String,
    /// Only events after this sequence number
    #[serde(default)]
    after: u64,
    /// At most this many (1–1000)
    limit: Option<u32>,
}

/// Data of `get_events` and `session_events`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventList {
    /// In order; those of an execution have seq, ts, type and payload, those of a session seq, at and type
    #[schemars(with = "Vec<Map<String, Value>>")]
    events: Vec<Value>,
    /// Pass it as `after` to continue
    next: u64,
    /// There is more
    truncated: bool,
}

async fn get_events(call: &ToolCall<'_>) -> ToolResult {
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
            // An event that is larger than a response is reduced to its type and size.
            value =
                json!({ "seq": event.seq, "ts": event.ts, "type": event.payload.type_name(), "bytes": size });
        }
        bytes += size;
        next = event.seq;
        shown.push(value);
    }
    let truncated = shown.len() < found.len() || found.len() >= limit as usize;
    if !truncated {
        call.give_last_of(&found);
    }
    let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
    Ok(ToolOutput::new(text, &EventList { events: shown, next, truncated }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SessionEventsInput {
    /// Id of the session, its unique beginning, or its name
    session_id: String,
    /// Only events after this sequence number
    #[serde(default)]
    after: u64,
    /// At most this many (1–1000)
    limit: Option<u32>,
}

async fn session_events(call: &ToolCall<'_>) -> ToolResult {
    let SessionEventsInput { session_id: session, after: after_seq, limit } = call.input()?;
    let limit = limit.unwrap_or(EVENTS).clamp(1, EVENTS);
    let op = SessionEvents { session, after_seq, limit, wait: false };
    let page = call.perform(op).await?;
    let next = page.events.last().map_or(after_seq, |event| event.seq);
    let truncated = page.events.len() >= limit as usize;
    let events: Vec<Value> = page.events.iter().map(|event| json!(event)).collect();
    let text = serde_json::to_string_pretty(&events).unwrap_or_default();
    Ok(ToolOutput::new(text, &EventList { events, next, truncated }))
}
