//! Tools for executions: start, state, output.

use super::programs::{Deletion, ask_first, confirmed};
use super::session_tasks::{ListedSessionTask, session_tasks};
use super::{Effect, ToolResult, ToolRow, ToolSet};
use crate::mcp::call::ToolCall;
use crate::mcp::lists;
use crate::mcp::outcome;
use crate::mcp::output::{ToolError, ToolOutput};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::{self, ExecutionView, TaskStatusView, TaskView};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use uuid::Uuid;
use vm_system_protocol::control::{
    ExecCancel, ExecEvents, PendingPrompt, ProgramStart, RunDelete, RunGet, RunList, StateGet, TaskGet,
    TaskPrompts,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, EventPayload, ExecutionStatus, ProgramState, Run, Variable};

/// Longest prompt in a list (bytes).
const LISTED_PROMPT_BYTES: u32 = 1_000;
/// Events that are read at a time.
const EVENTS: u32 = 2_000;
/// Console output of one response (bytes).
const OUTPUT_BYTES: usize = 64 * 1024;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "start",
            title: "Start an execution",
            description: "Start an execution of a program. The call returns when the program has reached its first task, \
                or its end: the result has the task, the program's result or its error.",
            input: schema::input::<Start>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(start(call)),
        },
        ToolRow {
            name: "restart",
            title: "Start again",
            description: "Start a new execution of a program under a new name, and make it the current one.",
            input: schema::input::<Restart>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(restart(call)),
        },
        ToolRow {
            name: "status",
            title: "Status of an execution",
            description: "Status of an execution, with its program counter, calls in progress and variables.",
            input: schema::input::<Which>,
            output: schema::output::<StatusView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(status(call)),
        },
        ToolRow {
            name: "list_executions",
            title: "List executions",
            description: "Executions of programs, newest first (200 at a time), each with its pending task; which is the \
                current one. Also the pending tasks of sessions.",
            input: schema::input::<List>,
            output: schema::output::<ExecutionList>,
            effect: Effect::Reads,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        ToolRow {
            name: "cancel",
            title: "Cancel an execution",
            description: "End an execution that has not ended: it runs no further. Its output and its states are kept.",
            input: schema::input::<Which>,
            output: schema::output::<TaskStatusView>,
            effect: Effect::Destroys,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(cancel(call)),
        },
        ToolRow {
            name: "get_execution",
            title: "One execution",
            description: "An execution with its pending task, the number of wrong answers so far, and its variables.",
            input: schema::input::<Which>,
            output: schema::output::<DetailView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        ToolRow {
            name: "set_current",
            title: "Set the current execution",
            description: "Set the execution that tools use when no executionId is given. Each client has one of its own.",
            input: schema::input::<SetCurrent>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(set_current(call)),
        },
        ToolRow {
            name: "delete_execution",
            title: "Delete an execution",
            description: "Delete an execution with its output and states; if it has not ended, it is ended first. The \
                first call returns a token; a second call with this token deletes.",
            input: schema::input::<Delete>,
            output: schema::output::<ExecutionDeletion>,
            effect: Effect::Destroys,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(delete(call)),
        },
        ToolRow {
            name: "get_output",
            title: "Output of an execution",
            description: "Console output of a program so far. Pass `next` as `after` to get only newer output.",
            input: schema::input::<Output>,
            output: schema::output::<OutputView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(output(call)),
        },
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Start {
    /// Name or id of the program; NAME@VERSION starts an older version
    program_id: String,
    /// A name for the execution; must not be the name of another one that has not ended
    execution_id: String,
    /// Make it the current execution (default: true)
    set_current: Option<bool>,
    /// The program's `args`
    #[serde(default)]
    args: Vec<String>,
    /// The program's `env`
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[doc = "Absolute path of the folder whose files the program may use; default: the server's --worktree; without one, \
             calls of `fs` fail"]
    worktree: Option<String>,
    /// For administrators: the user with whose rights the folder is used, a name or a number (default: you)
    as_user: Option<String>,
    #[doc = "Return a task of the protocol's extension, whose required inputs are the prompts, if this client supports it \
             (default: false)"]
    // Read by [`ToolCall::is_as_task`].
    #[serde(rename = "asTask")]
    _as_task: Option<bool>,
}

async fn start(call: &ToolCall<'_>) -> ToolResult {
    let Start { program_id, execution_id, set_current, args, env, worktree, as_user, .. } = call.input()?;
    let new = ProgramStart {
        program: program_id,
        name: Some(execution_id.clone()),
        args,
        env: env.into_iter().collect(),
        template: None,
        worktree_path: worktree.or_else(|| call.backend.worktree()),
        as_user,
        // A task is returned at once, so that a client which cancels the request knows the execution.
        wait: !call.is_as_task(),
    };
    started(call, new, set_current.unwrap_or(true)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Restart {
    /// Name or id of the program; NAME@VERSION starts an older version
    program_id: String,
    /// A name for the new execution; generated if absent
    execution_id: Option<String>,
    /// For administrators: the user with whose rights the server's --worktree is used, a name or a number (default: you)
    as_user: Option<String>,
}

async fn restart(call: &ToolCall<'_>) -> ToolResult {
    let Restart { program_id, execution_id, as_user } = call.input()?;
    let name = execution_id.unwrap_or_else(|| {
        let unique = Uuid::new_v4().simple().to_string();
        format!("{}-{}", program_id.chars().take(100).collect::<String>(), &unique[..12])
    });
    let new = ProgramStart {
        program: program_id,
        name: Some(name),
        worktree_path: call.backend.worktree(),
        as_user,
        ..ProgramStart::default()
    };
    started(call, new, true).await
}

async fn started(call: &ToolCall<'_>, new: ProgramStart, set_current: bool) -> ToolResult {
    let run = call.long(new).await?;
    let mut data = call.give_run(&run);
    let current = set_current && call.make_current(&run).await?;
    data.is_current = current.then_some(true);
    let note = if current { " (set as current)" } else { "" };
    let done = ToolOutput::new(format!("Execution started: {}{note}", views::name_of(&run)), &data);
    if call.is_as_task() {
        return Ok(done);
    }
    Ok(done.with_outcome(outcome::describe(call, &run).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Which {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
}

/// The state of an execution that waits; none for one that runs or has ended.
pub(super) async fn inside(call: &ToolCall<'_>, run: &Run) -> Result<Option<ProgramState>, ToolError> {
    if run.execution.status != ExecutionStatus::Waiting {
        return Ok(None);
    }
    let op = StateGet { execution: run.execution.id.to_string(), checkpoint: None };
    let state = call.perform(op).await?;
    Ok(Some(state))
}

/// Variables of the innermost call, then the global ones.
fn variables(state: &ProgramState) -> Vec<Variable> {
    let mut all = state.frames.first().map(|frame| frame.variables.clone()).unwrap_or_default();
    all.extend(state.globals.iter().cloned());
    views::variables(&all)
}

async fn found(call: &ToolCall<'_>) -> Result<(Run, ExecutionView), ToolError> {
    let Which { execution_id } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.perform(RunGet { execution }).await?;
    let mut data = call.give_run(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.is_current = Some(current);
    Ok((run, data))
}

async fn cancel(call: &ToolCall<'_>) -> ToolResult {
    let Which { execution_id } = call.input()?;
    let execution = call.which(execution_id).await?;
    call.perform(ExecCancel { execution: execution.clone() }).await?;
    let status = call.perform(TaskGet { execution }).await?;
    let data = call.give_status(&status);
    let text = if matches!(status.status, ExecutionStatus::Cancelled | ExecutionStatus::Running) {
        format!("Requested the cancellation of {}. Status: {}", data.execution_id, status.status)
    } else {
        format!(
            "Nothing to cancel: {0} had already ended ({1}). getTask executionId={0} shows its result; start begins \
                     another execution.",
            data.execution_id, status.status
        )
    };
    Ok(ToolOutput::new(text, &data))
}

/// Data of `status`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatusView {
    #[serde(flatten)]
    execution: ExecutionView,
    /// Line and column that it has reached
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<String>,
    /// Calls in progress, innermost first
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<String>>,
    /// Variables of the innermost call, then the global ones
    #[serde(skip_serializing_if = "Option::is_none")]
    variables: Option<Vec<Variable>>,
}

async fn status(call: &ToolCall<'_>) -> ToolResult {
    let (run, execution) = found(call).await?;
    let mut data = StatusView { execution, pc: None, stack: None, variables: None };
    if let Some(state) = inside(call, &run).await? {
        data.pc = state.frames.first().map(|frame| format!("{}:{}", frame.line, frame.column));
        data.stack = Some(views::stack(&state));
        data.variables = Some(variables(&state));
    }
    Ok(ToolOutput::json(&data))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    /// Only executions of this program
    program_id: Option<String>,
    /// Only executions with this status; waiting: a task needs an answer
    status: Option<ExecutionStatus>,
    /// Only executions with exactly this name
    name: Option<String>,
    /// Only executions that were started at or after this time (RFC 3339)
    since: Option<String>,
    /// Only executions that were started before this time (RFC 3339)
    until: Option<String>,
    /// For administrators: only executions of this owner
    owner: Option<String>,
    /// `nextCursor` of an earlier result, with the same filters: older executions
    cursor: Option<String>,
}

/// Data of `list_executions`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecutionList {
    /// Newest first
    executions: Vec<ListedExecution>,
    /// True: there are more, older ones
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Pass it as `cursor` to get older ones
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Executions of sessions that wait for the answer to a task; only without filters, or with the status `waiting` alone
    #[serde(skip_serializing_if = "Option::is_none")]
    session_tasks: Option<Vec<ListedSessionTask>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListedExecution {
    /// Name of the execution, or its id if it has none
    execution_id: String,
    /// Id of the execution
    id: String,
    /// Name of the program, or its id if it was deleted
    program_id: Option<String>,
    /// RUNNING, AWAITING_COGNITIVE_RESULT, COMPLETED or ERROR
    state: &'static str,
    /// The same in more detail
    #[schemars(with = "String")]
    status: ExecutionStatus,
    /// The numbers of `questions`, `timers` and `events` for which it waits, and `wakesAt`, when the first of them ends by itself
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<views::WaitingView>,
    /// When it was started
    created: String,
    /// Whether tools without executionId use this execution
    is_current: bool,
    /// The owner, for administrators
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    summary: Summary,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Summary {
    /// The pending prompt; of a long one the beginning, and its size
    #[serde(skip_serializing_if = "Option::is_none")]
    current_prompt: Option<String>,
}

async fn list(call: &ToolCall<'_>) -> ToolResult {
    let List { program_id, status, name, since, until, owner, cursor } = call.input()?;
    let texts = [&program_id, &name, &since, &until, &owner, &cursor];
    let with_sessions = texts.iter().all(|text| text.is_none())
        && status.is_none_or(|status| status == ExecutionStatus::Waiting);
    let period = lists::period(since, until)?;
    let filter = RunList { status, program: program_id, name, period, owner, ..RunList::default() };
    let mut list = lists::ListParts::new(cursor)?;
    while let Some(page) = list.wanted() {
        let part = call.perform(RunList { page, ..filter.clone() }).await?;
        list.add(part);
    }
    let (runs, next_cursor) = list.finish();
    let session_tasks = if with_sessions { session_tasks(call, &runs).await? } else { Vec::new() };
    let current = call.current().await?.map(|run| run.execution.id);
    let prompts = prompts(call, &runs).await?;
    let listed = runs.iter().map(|run| ListedExecution {
        execution_id: views::name_of(run),
        id: run.execution.id.to_string(),
        program_id: views::program_of(run),
        state: views::legacy_of(run),
        status: run.execution.status,
        waiting_for: run.waiting_for.as_ref().map(views::WaitingView::new),
        created: run.execution.started_at.to_string(),
        is_current: current == Some(run.execution.id),
        owner: run.execution.owner.clone(),
        summary: Summary { current_prompt: prompts.get(&run.execution.id).map(|prompt| prompt.text.clone()) },
    });
    for run in &runs {
        let task = prompts.get(&run.execution.id).map(|prompt| prompt.task);
        call.give(run.execution.id, run.name.as_deref(), task);
    }
    let data = ExecutionList {
        executions: listed.collect(),
        truncated: next_cursor.is_some().then_some(true),
        next_cursor,
        session_tasks: (!session_tasks.is_empty()).then_some(session_tasks),
    };
    let mut text = serde_json::to_string_pretty(&json!(data.executions)).unwrap_or_default();
    for task in data.session_tasks.iter().flatten() {
        let _ = write!(
            text,
            "\nTask of session {}: submitTask executionId={}: {}",
            task.session_id, task.execution_id, task.prompt
        );
    }
    let output = ToolOutput::new(text, &data);
    Ok(match lists::note(data.next_cursor.as_ref()) {
        Some(note) => output.and(note),
        None => output,
    })
}

/// The prompts of the executions that wait.
async fn prompts(
    call: &ToolCall<'_>,
    runs: &[Run],
) -> Result<HashMap<ExecutionId, PendingPrompt>, ToolError> {
    let waits = |run: &&Run| run.execution.status == ExecutionStatus::Waiting;
    let executions: Vec<_> = runs.iter().filter(waits).map(|run| run.execution.id).collect();
    if executions.is_empty() {
        return Ok(HashMap::new());
    }
    let prompts = call.perform(TaskPrompts { executions, bytes: LISTED_PROMPT_BYTES }).await?;
    Ok(prompts.into_iter().map(|prompt| (prompt.execution, prompt)).collect())
}

/// Data of `get_execution`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DetailView {
    #[serde(flatten)]
    execution: ExecutionView,
    /// The task that it waits for
    #[serde(skip_serializing_if = "Option::is_none")]
    current_task: Option<TaskView>,
    /// Variables of the innermost call, then the global ones
    #[serde(skip_serializing_if = "Option::is_none")]
    variables: Option<Vec<Variable>>,
}

async fn get(call: &ToolCall<'_>) -> ToolResult {
    let (run, execution) = found(call).await?;
    let variables = inside(call, &run).await?.map(|state| variables(&state));
    let current_task = execution.task.clone();
    Ok(ToolOutput::json(&DetailView { execution, current_task, variables }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SetCurrent {
    /// Name or id of the execution
    execution_id: String,
}

async fn set_current(call: &ToolCall<'_>) -> ToolResult {
    let SetCurrent { execution_id } = call.input()?;
    let run = call.set_current(execution_id.clone()).await?;
    let mut data = call.give_run(&run);
    data.is_current = Some(true);
    Ok(ToolOutput::new(format!("Current execution set to: {execution_id}"), &data))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Delete {
    /// Name or id of the execution
    execution_id: String,
    /// The token that the first call returned
    confirm_token: Option<String>,
}

/// Data of `delete_execution`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecutionDeletion {
    /// The name or id that was given
    execution_id: String,
    #[serde(flatten)]
    deletion: Deletion,
}

async fn delete(call: &ToolCall<'_>) -> ToolResult {
    let Delete { execution_id, confirm_token } = call.input()?;
    let id = call.perform(RunGet { execution: execution_id.clone() }).await?.execution.id.to_string();
    let Some(token) = confirm_token else {
        let deletion = ask_first(call, "execution", &execution_id, id);
        return Ok(ToolOutput::json(&ExecutionDeletion { execution_id, deletion }));
    };
    confirmed(call, "execution", &execution_id, &id, &token)?;
    call.perform(RunDelete { execution: id }).await?;
    let text = format!("Execution deleted: {execution_id}");
    Ok(ToolOutput::new(text, &ExecutionDeletion { execution_id, deletion: Deletion::done() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Output {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Only output after this sequence number (`next` of an earlier result)
    #[serde(default)]
    after: u64,
}

/// Data of `get_output`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OutputView {
    /// Name of the execution, or its id if it has none
    execution_id: String,
    /// In order
    lines: Vec<String>,
    /// Pass it as `after` to continue
    next: u64,
    /// There is more: call again with `next` as `after`
    truncated: bool,
}

async fn output(call: &ToolCall<'_>) -> ToolResult {
    let Output { execution_id, after } = call.input()?;
    let execution = call.which(execution_id).await?;
    let run = call.perform(RunGet { execution }).await?;
    let (lines, next, truncated) = console(call, &run.execution.id.to_string(), after, OUTPUT_BYTES).await?;
    let text = if lines.is_empty() { "(no output)".to_owned() } else { lines.join("\n") };
    let more = if truncated { format!("\n[truncated: after={next} has the rest]") } else { String::new() };
    let data = OutputView { execution_id: views::name_of(&run), lines, next, truncated };
    Ok(ToolOutput::new(text + &more, &data))
}

/// Console lines after a sequence number, as many as fit one response.
pub(in crate::mcp) async fn console(
    call: &ToolCall<'_>,
    execution: &str,
    after: u64,
    most: usize,
) -> Result<(Vec<String>, u64, bool), ToolError> {
    let events = events(call, execution, after, EVENTS).await?;
    let (mut lines, next, all) = views::lines(&events, after, most);
    // The first event of a branch names the execution with the output before it.
    if let Some(EventPayload::System { message, .. }) = events.first().map(|event| &event.payload)
        && after == 0
    {
        lines.insert(0, format!("[{message}]"));
    }
    Ok((lines, next, !all || events.len() >= EVENTS as usize))
}

/// Events after a sequence number.
pub(super) async fn events(
    call: &ToolCall<'_>,
    execution: &str,
    after_seq: u64,
    limit: u32,
) -> Result<Vec<Event>, ToolError> {
    let op = ExecEvents { execution: execution.to_owned(), after_seq, limit, follow: false };
    call.perform(op).await
}
