//! Tools for tasks and events: read the pending task, submit its answer; send an event.

use super::{Effect, ToolResult, ToolRow, ToolSet, console};
use crate::mcp::call::{ToolCall, exact_json};
use crate::mcp::lists;
use crate::mcp::outcome;
use crate::mcp::output::{ToolError, ToolOutput, listed, prompt, shortened};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::{self, ExecutionView, OutputView, RESULT_BYTES, TaskStatusView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vm_system_protocol::control::{EventEmit, GivenAnswer, StateGet, TaskGet, TaskList, TaskSubmit};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionError, ExecutionStatus, ListedTask, ResultValue, TaskState};

/// Console output of one response (bytes).
const OUTPUT_BYTES: usize = 16 * 1024;
/// Longest prompt and longest answer in a list (bytes).
const LISTED_BYTES: usize = 1_000;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "list_tasks",
            title: "List tasks",
            description: "Tasks of programs and sessions (200 at a time): pending ones, oldest first; with `status`, \
                tasks that have ended, newest first, each with its answer.",
            input: schema::input::<List>,
            output: schema::output::<TaskListView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        ToolRow {
            name: "emit_event",
            title: "Send an event",
            description: "Give an execution of a program the event for which it waits, or will wait, with waitFor(name); or \
                all of your executions that wait for it now.",
            input: schema::input::<Emit>,
            output: schema::output::<EmittedView>,
            effect: Effect::Adds,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(emit(call)),
        },
        ToolRow {
            name: "getTask",
            title: "Get the pending task",
            description: "The prompt of an execution's pending task, or the execution's result if it has ended; on request \
                its console output and its stack. Read only. `state` of the structured result distinguishes a prompt from \
                a result.",
            input: schema::input::<Get>,
            output: schema::output::<TaskStatusView>,
            effect: Effect::Reads,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        ToolRow {
            name: "submitTask",
            title: "Submit an answer",
            description: "Submit the answer to an execution's pending task. The call returns when the program has reached \
                its next task or its end: the result has it. An answer that does not match the task's schema is refused \
                with the reason: submit another one.",
            input: schema::input::<Submit>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(submit(call)),
        },
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    /// Only tasks with this status; all: pending ones and those that have ended (default: pending)
    #[schemars(extend("enum" = ["pending", "answered", "defaulted", "expired", "failed", "withdrawn", "all"]))]
    status: Option<String>,
    /// Only tasks of this execution, by name or id
    execution_id: Option<String>,
    /// Only tasks of executions of this program, by name or id
    program_id: Option<String>,
    /// Only tasks that were created at or after this time (RFC 3339)
    since: Option<String>,
    /// Only tasks that were created before this time (RFC 3339)
    until: Option<String>,
    /// For administrators: only tasks of this owner
    owner: Option<String>,
    /// `nextCursor` of an earlier result, with the same filters
    cursor: Option<String>,
}

/// Data of `list_tasks`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TaskListView {
    tasks: Vec<ListedTaskView>,
    /// There are more: pass it as `cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListedTaskView {
    /// Id of the task
    id: String,
    /// Id of the execution that has it
    execution_id: String,
    /// pending, answered, defaulted, expired, failed, or withdrawn: its execution ended
    #[schemars(with = "String")]
    status: TaskState,
    /// The prompt; of a long one the beginning, and its size
    prompt: String,
    /// The answer or the default; of an expired or failed task the message of its error. Of a long one the beginning, and its size
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// When the task was created
    created: String,
    /// When it was answered, or ended in another way
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    /// The owner, for administrators
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl From<&ListedTask> for ListedTaskView {
    fn from(ListedTask { task, status, ended_at, answer, owner }: &ListedTask) -> Self {
        Self {
            id: task.id.to_string(),
            execution_id: task.execution_id.to_string(),
            status: *status,
            prompt: listed(&task.prompt, LISTED_BYTES),
            answer: answer.as_ref().map(|answer| listed(answer, LISTED_BYTES)),
            created: task.created_at.to_string(),
            ended: ended_at.as_ref().map(ToString::to_string),
            owner: owner.clone(),
        }
    }
}

async fn list(call: &ToolCall<'_>) -> ToolResult {
    let List { status, execution_id, program_id, since, until, owner, cursor } = call.input()?;
    let status = match status.as_deref() {
        None => Some(TaskState::Pending),
        Some("all") => None,
        Some(name) => {
            let state =
                name.parse().map_err(|_| ToolError::invalid(format!("there is no status {name:?} of tasks")));
            Some(state?)
        }
    };
    let period = lists::period(since, until)?;
    let (execution, program) = (execution_id, program_id);
    let filter = TaskList { status, execution, program, period, owner, ..TaskList::default() };
    let mut list = lists::ListParts::new(cursor)?;
    while let Some(page) = list.wanted() {
        let part = call.perform(TaskList { page, ..filter.clone() }).await?;
        list.add(part);
    }
    let (tasks, next_cursor) = list.finish();
    for ListedTask { task, .. } in tasks.iter().filter(|listed| listed.status == TaskState::Pending) {
        call.give(task.execution_id, None, Some(task.id));
    }
    let data = TaskListView { tasks: tasks.iter().map(ListedTaskView::from).collect(), next_cursor };
    let text = if data.tasks.is_empty() {
        "No tasks".to_owned()
    } else {
        serde_json::to_string_pretty(&data.tasks).unwrap_or_default()
    };
    let output = ToolOutput::new(text, &data);
    Ok(match lists::note(data.next_cursor.as_ref()) {
        Some(note) => output.and(note),
        None => output,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Get {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Also return the console output after this sequence number (0: all; later: `next` of the result before)
    after: Option<u64>,
    /// Also return the calls in progress (default: false)
    #[serde(default)]
    stack: bool,
}

async fn get(call: &ToolCall<'_>) -> ToolResult {
    let Get { execution_id, after, stack } = call.input()?;
    let execution = call.which(execution_id).await?;
    let status = call.perform(TaskGet { execution }).await?;
    let id = status.execution_id.to_string();
    let mut data = call.give_status(&status);
    let (mut more, mut failed) = (Vec::new(), false);
    let text = match status.status {
        ExecutionStatus::Waiting => match &status.task {
            Some(task) => {
                more.extend(outcome::schema(task));
                more.extend(views::more_tasks(status.more_tasks, &id, &call.client.toolsets));
                prompt(task)
            }
            None => views::waits(status.waiting_for.as_ref()),
        },
        ExecutionStatus::Running => "Execution is running: call getTask again later".to_owned(),
        ended => match end_text(ended, status.result.as_ref(), status.error.as_ref()) {
            Ok(text) => text,
            Err(text) => {
                failed = true;
                outcome::with_stack(call, &id, status.error.as_ref(), text).await?
            }
        },
    };
    if let Some(after) = after {
        let (lines, next, is_cut) = console(call, &id, after, OUTPUT_BYTES).await?;
        let output = OutputView::new(lines, next, is_cut);
        more.push(output.text());
        data.output = Some(output);
    }
    if stack && status.status == ExecutionStatus::Waiting {
        let op = StateGet { execution: id, checkpoint: None };
        let state = call.perform(op).await?;
        let lines = views::stack(&state);
        more.push(format!("Stack:\n{}", lines.join("\n")));
        data.stack = Some(lines);
    }
    let output = if failed { ToolOutput::failed(text, &data) } else { ToolOutput::new(text, &data) };
    Ok(more.into_iter().fold(output, ToolOutput::and))
}

/// The original system's text about an execution that has ended; `Err` if it failed.
pub(in crate::mcp) fn end_text(
    status: ExecutionStatus,
    result: Option<&ResultValue>,
    error: Option<&ExecutionError>,
) -> Result<String, String> {
    if status == ExecutionStatus::Ok {
        let json = result.and_then(|result| result.json.as_ref());
        return Ok(match json.map(JsonText::as_str).filter(|result| *result != "null") {
            Some(result) => completed(result),
            None => "Execution completed".to_owned(),
        });
    }
    Err(format!("Error: {}", error.map_or_else(|| status.to_string(), |error| error.message.clone())))
}

/// The text about a result; of one that is too large its beginning, and where the rest is.
fn completed(result: &str) -> String {
    let whole = result.len();
    match shortened(result, RESULT_BYTES) {
        None => format!("Execution completed with result: {result}"),
        Some(short) => format!(
            "Execution completed with result: {short}\n[truncated: {} of {whole} bytes are shown; \
             `vm-system program status EXECUTION --output json` has the whole result]",
            short.len()
        ),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Submit {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// The answer: any text, or JSON if the task has a schema (a text where the schema allows one)
    // Declared as a text; agents also send the object itself where a schema requires one.
    #[schemars(with = "String")]
    result: Value,
    /// Id of the task that is answered; refused if another task is pending now. Default: the task of this execution that you were last given
    task_id: Option<String>,
}

/// The original system accepts texts only; agents send the object itself where a schema requires one.
pub(super) fn given(result: Value) -> Result<GivenAnswer, ToolError> {
    Ok(match result {
        Value::String(text) => GivenAnswer::Typed(text),
        other => GivenAnswer::Json(exact_json(&other)?),
    })
}

async fn submit(call: &ToolCall<'_>) -> ToolResult {
    let Submit { execution_id, result, task_id } = call.input()?;
    let result = given(result)?;
    let execution = call.which(execution_id).await?;
    let task = match task_id {
        Some(task) => Some(task),
        None => call.task_of_answer(&execution).await.map(|task| task.to_string()),
    };
    let run = call.long(TaskSubmit { execution, task, result, wait: true }).await?;
    let mut data = call.give_run(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.is_current = Some(current);
    Ok(ToolOutput::new("Execution resumed", &data).with_outcome(outcome::describe(call, &run).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Emit {
    /// Name of the event
    name: String,
    /// The content, any JSON
    event: Value,
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// All of your executions that wait for it now, instead of one (default: false)
    #[serde(default)]
    all: bool,
}

/// Data of `emit_event`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EmittedView {
    /// How many executions got it
    received: u64,
    /// Of them the first ones, at most 1 000
    receivers: Vec<ReceiverView>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReceiverView {
    /// Name of the execution, or its id if it has none
    execution_id: String,
    /// Id of the execution
    id: String,
    /// It waited for the event; false: it keeps it until it does
    awaited: bool,
}

async fn emit(call: &ToolCall<'_>) -> ToolResult {
    let Emit { name, event, execution_id, all } = call.input()?;
    let execution = match (all, execution_id) {
        (true, None) => None,
        (true, Some(_)) => return Err(ToolError::invalid("pass executionId or all, not both")),
        (false, execution) => Some(call.which(execution).await?),
    };
    let event = exact_json(&event)?;
    let emitted = call.long(EventEmit { name, event, execution }).await?;
    let receivers = emitted.receivers.into_iter().map(|receiver| {
        let id = receiver.execution_id.to_string();
        ReceiverView {
            execution_id: receiver.name.unwrap_or_else(|| id.clone()),
            id,
            awaited: receiver.awaited,
        }
    });
    let data = EmittedView { received: emitted.received, receivers: receivers.collect() };
    let text = match &data.receivers[..] {
        [] => "No execution waits for this event".to_owned(),
        [one] if one.awaited => format!("Event received: {} waited for it", one.execution_id),
        [one] => format!("Event kept: {} gets it when it waits for it", one.execution_id),
        _ => format!("Event received by {} executions", data.received),
    };
    Ok(ToolOutput::new(text, &data))
}
