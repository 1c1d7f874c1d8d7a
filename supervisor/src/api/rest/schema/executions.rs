//! Executions and their events.

use super::Json;
use super::programs::Task;
use std::collections::BTreeMap;
use utoipa::ToSchema;

and_with_more! {
    /// One run of code.
    Execution {
        #[schema(format = "uuid")]
        id: String,
        #[schema(format = "uuid")]
        session_id: String,
        kind: ExecutionKind,
        #[schema(nullable = false)]
        input: Option<String>,
        #[schema(nullable = false)]
        path: Option<String>,
        /// An object; of a program, a list of texts. Values named `secret` are redacted.
        args: Json,
        #[schema(value_type = Object)]
        env: BTreeMap<String, Json>,
        status: ExecutionStatus,
        #[schema(format = "date-time")]
        started_at: String,
        #[schema(format = "date-time", nullable = false)]
        ended_at: Option<String>,
        /// The last value, where it has a faithful JSON form.
        #[schema(required = false)]
        result: Json,
        #[schema(nullable = false)]
        error: Option<ExecutionError>,
        metrics: Metrics,
        /// True where a write failed: the record may be incomplete. Absent otherwise.
        #[schema(nullable = false)]
        degraded: Option<bool>,
        /// Only in the answer to the request that ran it.
        #[schema(nullable = false)]
        events: Option<Vec<Event>>,
    }
    /// One run of a program.
    ProgramExecution {
        /// Its name; among those that have not ended it is its owner's only one of this name.
        #[schema(nullable = false)]
        name: Option<String>,
        /// Absent where it is no program's: an execution of a session that waits for an answer.
        #[schema(format = "uuid", nullable = false)]
        program_id: Option<String>,
        /// The program's name; absent once it was deleted.
        #[schema(nullable = false)]
        program: Option<String>,
        /// The version that it runs; a newer one changes nothing for it.
        #[schema(nullable = false)]
        program_version: Option<u32>,
        /// Its question, while it waits.
        #[schema(nullable = false)]
        task: Option<Task>,
    }
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum ExecutionKind {
    Repl,
    RunFile,
    Startup,
    Program,
}

/// `running → ok | error | timeout | cancelled`, and `running ⇄ waiting` while a task is pending.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum ExecutionStatus {
    Running,
    Waiting,
    Ok,
    Error,
    Timeout,
    Cancelled,
}

/// Why an execution did not end `ok`.
#[derive(ToSchema)]
pub(super) struct ExecutionError {
    code: String,
    message: String,
    /// How the worker died.
    #[schema(nullable = false)]
    reason: Option<String>,
}

/// What an execution used.
#[derive(ToSchema)]
struct Metrics {
    duration_ms: u64,
    cpu_ms: u64,
    /// Time in which the script waited for the host.
    host_wait_ms: u64,
    events: u64,
    output_bytes: u64,
    /// As the worker said.
    heap_peak_bytes: u64,
}

/// One entry of an execution's output.
#[derive(ToSchema)]
pub(in crate::api::rest) struct Event {
    #[schema(format = "uuid")]
    execution_id: String,
    /// 1, 2, 3, … without a gap.
    seq: u64,
    #[schema(format = "date-time")]
    ts: String,
    #[schema(rename = "type")]
    kind: EventType,
    /// `input_echo {text}` · `console {level,text}` · `value {type,preview,json?}` · `exception {message,stack}` ·
    /// `system {message,level}` · `stdout {text}` · `stderr {text}` · `task {task_id,prompt}`.
    #[schema(value_type = Object)]
    payload: BTreeMap<String, Json>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum EventType {
    InputEcho,
    Console,
    Value,
    Exception,
    System,
    Stdout,
    Stderr,
    Task,
}

#[derive(ToSchema)]
pub(in crate::api::rest) struct ExecutionCancelled {
    /// `ok`.
    status: String,
    #[schema(format = "uuid")]
    execution_id: String,
}
