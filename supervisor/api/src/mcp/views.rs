//! The types that tools return, from which their schemas are derived: names in the style of the original system, long texts cut. Their
//! values (ids, times, statuses, variables) are those of the other APIs.

use super::output::{PROMPT_BYTES, listed, shortened};
use super::schema::{JsonSchema, schemars};
use super::tools::ToolSets;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TaskId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Engine, Event, EventPayload, ExecutionError, ExecutionStatus, Program, ProgramState, ResultValue, Run,
    Session, SessionStatus, Task, TaskStatus, Variable, WaitingFor,
};
use vm_system_protocol::time::Timestamp;

/// Most lines of a stack in a response.
const PLACES: usize = 20;
/// Longest result in a response (bytes of JSON).
pub(super) const RESULT_BYTES: usize = 128 * 1024;
/// Longest value of a variable in a response (bytes).
const VALUE_BYTES: usize = 4 * 1024;
/// Most variables of one frame in a response.
const VARIABLES: usize = 200;

/// The original system's name of a status. An execution that waits for no answer, but for a time or an event, needs nothing of an agent.
pub(super) fn legacy(status: ExecutionStatus, has_task: bool) -> &'static str {
    match status {
        ExecutionStatus::Waiting if has_task => "AWAITING_COGNITIVE_RESULT",
        ExecutionStatus::Running | ExecutionStatus::Waiting => "RUNNING",
        ExecutionStatus::Ok => "COMPLETED",
        ExecutionStatus::Error | ExecutionStatus::Timeout | ExecutionStatus::Cancelled => "ERROR",
    }
}

/// The same of an execution.
pub(super) fn legacy_of(run: &Run) -> &'static str {
    let has_task = run.task.is_some() || run.waiting_for.is_some_and(|waiting| waiting.questions > 0);
    legacy(run.execution.status, has_task)
}

/// The number of things that an execution waits for. Its fields are in no schema: the list of basic tools has a size.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitingView {
    /// Tasks without an answer.
    questions: u32,
    /// Calls of `sleep`.
    timers: u32,
    /// Calls of `waitFor`.
    events: u32,
    /// When the first of them ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    wakes_at: Option<Timestamp>,
}

impl JsonSchema for WaitingView {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WaitingView".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

impl WaitingView {
    pub(super) fn new(waiting: &WaitingFor) -> Self {
        let WaitingFor { questions, timers, events, wakes_at } = *waiting;
        Self { questions, timers, events, wakes_at }
    }
}

/// The text about an execution that waits and has no task for an agent.
pub(super) fn waits(waiting: Option<&WaitingFor>) -> String {
    let Some(waiting) = waiting else { return "Waiting for input".to_owned() };
    let parts = [(waiting.timers, "timer"), (waiting.events, "event")].into_iter();
    let parts = parts.filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts.map(|(number, what)| counted(u64::from(number), what)).collect();
    let until = waiting.wakes_at.map_or_else(String::new, |at| format!(", until {at} at the latest"));
    format!("Waiting for {}{until}: no answer is needed, call getTask again later", parts.join(" and "))
}

/// The text about tasks besides the one that is shown; none: there are none.
pub(super) fn more_tasks(more: u32, execution: &str, sets: &ToolSets) -> Option<String> {
    let list = sets.named("list_tasks");
    let more = (more > 0).then(|| counted(u64::from(more), "more task"))?;
    Some(format!("{more} pending, which may be answered first: {list} executionId={execution} shows them"))
}

/// The name of an execution, or its id.
pub(super) fn name_of(run: &Run) -> String {
    run.name.clone().unwrap_or_else(|| run.execution.id.to_string())
}

/// The name of an execution's program, or the program's id; none for an execution of a session.
pub(super) fn program_of(run: &Run) -> Option<String> {
    let id = run.program_id?;
    Some(run.program.clone().unwrap_or_else(|| id.to_string()))
}

/// An execution with its task.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExecutionView {
    /// Name of the execution, or its id if it has none
    execution_id: String,
    /// Id of the execution
    id: ExecutionId,
    /// Name of the program, or its id if it was deleted; absent for an execution of a session
    #[serde(skip_serializing_if = "Option::is_none")]
    program_id: Option<String>,
    /// Version of the program that it runs
    #[serde(skip_serializing_if = "Option::is_none")]
    program_version: Option<u32>,
    /// AWAITING_COGNITIVE_RESULT: `task` needs an answer
    #[schemars(extend("enum" = ["RUNNING", "AWAITING_COGNITIVE_RESULT", "COMPLETED", "ERROR"]))]
    state: &'static str,
    /// The same in more detail
    status: ExecutionStatus,
    /// When it was started
    created: Timestamp,
    /// When it ended
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    #[serde(flatten)]
    result: ResultView,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorView>,
    /// The oldest task that it waits for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<TaskView>,
    /// The numbers of `questions`, `timers` and `events` for which it waits, and `wakesAt`, when the first of them ends by itself
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingView>,
    /// Whether tools without executionId use this execution
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_current: Option<bool>,
    /// The owner, for administrators
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl ExecutionView {
    pub(super) fn new(run: &Run) -> Self {
        let execution = &run.execution;
        let program_id = program_of(run);
        Self {
            execution_id: name_of(run),
            id: execution.id,
            program_version: program_id.as_ref().and(run.program_version),
            program_id,
            state: legacy_of(run),
            status: execution.status,
            created: execution.started_at,
            ended: execution.ended_at,
            result: ResultView::new(execution.result.as_ref()),
            error: execution.error.as_ref().map(ErrorView::new),
            task: run.task.as_ref().map(TaskView::new),
            waiting_for: run.waiting_for.as_ref().map(WaitingView::new),
            is_current: None,
            owner: execution.owner.clone(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Data of `getTask`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskStatusView {
    /// Name of the execution, or its id if it has none
    pub(super) execution_id: String,
    /// Id of the execution
    id: ExecutionId,
    /// AWAITING_COGNITIVE_RESULT: `task` needs an answer
    #[schemars(extend("enum" = ["RUNNING", "AWAITING_COGNITIVE_RESULT", "COMPLETED", "ERROR"]))]
    state: &'static str,
    /// The same in more detail
    status: ExecutionStatus,
    #[serde(flatten)]
    result: ResultView,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorView>,
    /// The oldest task that it waits for
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskView>,
    /// How many more tasks are pending
    #[serde(skip_serializing_if = "is_zero")]
    more_tasks: u32,
    /// The numbers of `questions`, `timers` and `events` for which it waits, and `wakesAt`, when the first of them ends by itself
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingView>,
    #[serde(flatten)]
    pub(super) output: Option<OutputView>,
    /// Calls in progress, innermost first, where `stack` is requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<Vec<String>>,
}

/// Console output of an execution.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OutputView {
    /// Console output after `after`
    output: Vec<String>,
    /// Pass it as `after` to get newer output only
    next: u64,
    /// There is more output: call again with `next` as `after`
    more_output: bool,
}

impl OutputView {
    pub(super) fn new(output: Vec<String>, next: u64, more_output: bool) -> Self {
        Self { output, next, more_output }
    }

    /// As text.
    pub(super) fn text(&self) -> String {
        if self.output.is_empty() {
            return format!("Output: none (next: after={})", self.next);
        }
        let more = if self.more_output { "there is more: " } else { "next: " };
        format!("Output:\n{}\n[{more}after={}]", self.output.join("\n"), self.next)
    }
}

impl TaskStatusView {
    pub(super) fn new(status: &TaskStatus) -> Self {
        let id = status.execution_id;
        Self {
            execution_id: status.name.clone().unwrap_or_else(|| id.to_string()),
            id,
            state: legacy(status.status, status.task.is_some()),
            status: status.status,
            result: ResultView::new(status.result.as_ref()),
            error: status.error.as_ref().map(ErrorView::new),
            task: status.task.as_ref().map(TaskView::new),
            more_tasks: status.more_tasks,
            waiting_for: status.waiting_for.as_ref().map(WaitingView::new),
            output: None,
            stack: None,
        }
    }
}

/// The result of an execution, if it is not too large for a response.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct ResultView {
    /// Return value of the program, once `state` is COMPLETED
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// True: the result is too large for a response
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Bytes of a result that is too large for a response
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "fullBytes")]
    full_bytes: Option<u64>,
}

impl ResultView {
    fn new(result: Option<&ResultValue>) -> Self {
        match result.and_then(|result| result.json.as_ref()) {
            Some(result) if result.as_str().len() > RESULT_BYTES => {
                let full_bytes = Some(result.as_str().len() as u64);
                Self { result: None, truncated: Some(true), full_bytes }
            }
            Some(result) => Self { result: result.to_value(), ..Self::default() },
            None => Self::default(),
        }
    }
}

/// Why an execution failed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ErrorView {
    /// EXCEPTION, CPU_LIMIT, CANCELLED, …
    code: String,
    /// A sentence
    message: String,
    /// True: the message or the stack was cut for its size
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Bytes of the whole message, if it was cut
    #[serde(skip_serializing_if = "Option::is_none")]
    full_bytes: Option<u64>,
}

impl ErrorView {
    pub(super) fn new(error: &ExecutionError) -> Self {
        let (code, message) = (error.code.clone(), error.message.clone());
        Self { code, message, truncated: error.truncated, full_bytes: error.full_bytes }
    }
}

/// A task of a program.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskView {
    /// Pass it to submitTask as taskId, so that the answer is for this task and no other
    id: TaskId,
    /// The work to do or the question to answer
    prompt: String,
    /// True: the prompt is too long for a response and was cut
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Bytes of the whole prompt, if it was cut
    #[serde(skip_serializing_if = "Option::is_none")]
    full_bytes: Option<u64>,
    /// JSON Schema that the answer must match; absent: any text
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    /// Answers so far that did not match the schema
    attempts: u32,
    /// When the task was created
    created_at: Timestamp,
    /// When the task takes its default answer, or fails if it has none
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    /// When the first answer that did not match was submitted
    #[serde(skip_serializing_if = "Option::is_none")]
    first_attempt_at: Option<Timestamp>,
    /// When the last answer that did not match was submitted
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt_at: Option<Timestamp>,
}

impl TaskView {
    pub(super) fn new(task: &Task) -> Self {
        let short = shortened(&task.prompt, PROMPT_BYTES);
        Self {
            id: task.id,
            prompt: short.unwrap_or(&task.prompt).to_owned(),
            truncated: short.map(|_| true),
            full_bytes: short.map(|_| task.prompt.len() as u64),
            schema: task.schema.as_ref().and_then(JsonText::to_value),
            attempts: task.attempts,
            created_at: task.created_at,
            deadline: task.deadline,
            first_attempt_at: task.first_attempt_at,
            last_attempt_at: task.last_attempt_at,
        }
    }
}

/// A program without its source.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProgramView {
    /// Name of the program
    program_id: String,
    /// Id of the program
    id: ProgramId,
    /// The same as programId
    name: String,
    /// Number of the newest version
    version: u32,
    /// SHA-256 of the source of this version
    source_hash: String,
    /// When the program was first loaded
    created: Timestamp,
    /// When the newest version was loaded
    modified: Timestamp,
    /// The owner, for administrators
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl ProgramView {
    pub(super) fn new(program: &Program) -> Self {
        Self {
            program_id: program.name.clone(),
            id: program.id,
            name: program.name.clone(),
            version: program.version,
            source_hash: program.source_hash.clone(),
            created: program.created_at,
            modified: program.modified_at,
            owner: program.owner.clone(),
        }
    }
}

/// The first variables of a frame, long values cut.
pub(super) fn variables(variables: &[Variable]) -> Vec<Variable> {
    let shown = variables.iter().take(VARIABLES).map(|variable| Variable {
        name: variable.name.clone(),
        value: listed(&variable.value, VALUE_BYTES),
    });
    shown.collect()
}

/// The calls in progress, innermost first, as lines.
pub(super) fn stack(state: &ProgramState) -> Vec<String> {
    let calls = state.frames.iter().map(|frame| {
        let name = if frame.function.is_empty() { "(top level)" } else { &frame.function };
        format!("{name} {} {}", frame.place(), frame.source_line.trim())
    });
    let more = (state.more_frames > 0)
        .then(|| format!("… {}, further out", counted(state.more_frames, "more call")));
    calls.chain(more).collect()
}

/// A session of the JavaScript engine.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SessionView {
    /// Id of the session
    session_id: SessionId,
    /// The session's name, if it has one
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The template from which it was created
    template_id: TemplateId,
    /// starting, ready, crashed, closed, suspended; or waiting: a program's session that has no process now
    #[schemars(with = "String")]
    status: SessionStatus,
    /// cvm: the session of a durable program
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    engine: Option<Engine>,
    /// The execution of a program's session
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    /// The session from which it was forked
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<SessionId>,
    /// The folder whose files it may read
    worktree: String,
    /// When it was created
    created: Timestamp,
    /// When it ended
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<Timestamp>,
    /// The last error
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Why it ended
    #[serde(skip_serializing_if = "Option::is_none")]
    close_reason: Option<String>,
    /// The owner, for administrators
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl SessionView {
    pub(super) fn new(session: &Session) -> Self {
        Self {
            session_id: session.id,
            name: session.name.clone(),
            template_id: session.template_id,
            status: session.status,
            engine: (session.engine == Engine::Cvm).then_some(session.engine),
            execution_id: session.execution_id,
            forked_from: session.runtime_meta.forked_from,
            worktree: session.worktree_path.clone(),
            created: session.created_at,
            closed: session.closed_at,
            last_error: session.last_error.clone(),
            close_reason: session.close_reason.as_ref().map(ToString::to_string),
            owner: session.owner.clone(),
        }
    }
}

/// The text of a console event; none for another event.
pub(super) fn line(event: &Event) -> Option<&str> {
    match &event.payload {
        EventPayload::Console { text, .. }
        | EventPayload::Stdout { text }
        | EventPayload::Stderr { text } => Some(text),
        _ => None,
    }
}

/// The lines of an exception's stack that are places in the code.
pub(super) fn places_of(event: &Event) -> Option<impl Iterator<Item = &str>> {
    match &event.payload {
        EventPayload::Exception { stack, .. } => {
            Some(stack.lines().filter(|line| line.trim_start().starts_with("at ")).take(PLACES))
        }
        _ => None,
    }
}

/// Console lines that fit one response, the sequence number of the last event that was used, and whether these are all.
pub(super) fn lines(events: &[Event], after: u64, most: usize) -> (Vec<String>, u64, bool) {
    let (mut lines, mut next, mut bytes) = (Vec::<String>::new(), after, 0);
    let mut is_continued = false;
    for event in events {
        if let Some(text) = line(event) {
            // The first line is always included (shortened), or no client could get past it.
            if bytes + text.len() > most && !lines.is_empty() {
                return (lines, next, false);
            }
            bytes += text.len();
            let text = shortened(text, most).unwrap_or(text);
            match lines.last_mut() {
                Some(last) if is_continued => last.push_str(text),
                _ => lines.push(text.to_owned()),
            }
            is_continued = matches!(event.payload, EventPayload::Console { more: true, .. });
        }
        next = event.seq;
    }
    (lines, next, true)
}
