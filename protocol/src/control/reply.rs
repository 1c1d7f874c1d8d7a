//! Results of verbs.

use super::DatabaseSize;
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, SessionId, TemplateId};
use crate::json::JsonText;
use crate::model::{Execution, Program, Run, SessionEvent};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// A deleted template.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct TemplateDeleted {
    #[schemars(extend("enum" = ["ok"]))]
    pub status: String,
    pub template_id: TemplateId,
}

/// An execution in a session as it is when its verb replies.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "one at a time, in the box of its reply")]
pub enum ExecutionState {
    /// It runs or has ended.
    Execution(Execution),
    /// It waits for the answer to a task, or belongs to a program.
    Run(Run),
}

/// The fields of an execution are among those of a run.
impl JsonSchema for ExecutionState {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Run::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Run>()
    }
}

impl ExecutionState {
    /// The record of the execution.
    pub fn execution(&self) -> &Execution {
        match self {
            Self::Execution(execution) => execution,
            Self::Run(run) => &run.execution,
        }
    }
}

/// An imported object.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "one at a time, in the box of its reply")]
pub enum ImportedObject {
    Program(Program),
    /// An execution of a program.
    Run(Run),
}

/// A part of the events of a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct SessionEventPage {
    pub events: Vec<SessionEvent>,
    /// The session has ended, and no events follow these.
    pub is_last: bool,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct AuditRecord {
    /// For the next page. For administrators it increases with each record; for others it is a mark that says no more, and is known
    /// until the supervisor ends.
    pub seq: u64,
    pub at: Timestamp,
    pub owner: String,
    /// The API: `control`, `rest`, `embedded`.
    pub api: String,
    pub verb: String,
    pub subject: String,
    /// `ok` or the error's code.
    pub outcome: String,
}

/// The name of a module or a library in a template.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct TemplateName {
    pub template_id: TemplateId,
    /// The name as stored.
    pub name: String,
}

/// A library that is installed, or that `libs download` would install.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct LibraryInfo {
    /// `id-version`: the name in templates.
    pub name: String,
    /// The name in `require` and `import`.
    pub id: String,
    pub version: String,
    /// The global variable of the library, if it has one.
    pub global: Option<String>,
    /// Whether the source is installed.
    pub installed: bool,
    /// SHA-256 of the source (hexadecimal), if it is installed.
    pub sha256: Option<String>,
    /// Size of the source (bytes), if it is installed.
    pub bytes: Option<u64>,
    pub installed_at: Option<Timestamp>,
}

/// The check of one installed library.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct LibraryCheck {
    /// `id-version`.
    pub name: String,
    /// Whether the source is unchanged since the installation.
    pub ok: bool,
    /// The reason why the check failed.
    pub problem: Option<String>,
}

/// A host module.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct ModuleInfo {
    /// The name in `require` and `import`.
    pub name: String,
    pub description: String,
}

/// The supervisor responds.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct Health {
    #[schemars(extend("enum" = ["ok"]))]
    pub status: String,
    #[schemars(extend("enum" = ["normal", "high", "critical"]))]
    /// `high`: idle sessions are suspended; `critical`: nothing new is begun for owners who hold their share of the memory.
    pub memory: String,
    /// The owner who holds most memory, for administrators while `memory` is not `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_owner: Option<MemoryOwner>,
    /// The size of the database, for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseSize>,
    /// Executions of programs that nothing would wake, as of some minutes ago, for administrators. There should be none: `vm-system ops
    /// doctor` lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<u64>,
}

/// The memory that the sessions and programs of an owner hold.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct MemoryOwner {
    pub owner: String,
    /// MiB.
    pub held_mb: u64,
    /// The memory that all hold divided by the number of owners (MiB).
    pub share_mb: u64,
}

/// The live sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct RuntimeSummary {
    pub active_sessions: u64,
    /// Sorted.
    pub active_session_ids: Vec<SessionId>,
}

/// Which builds the workers run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct UpgradeReport {
    /// The last deadline by which workers of other builds than the supervisor's are replaced; absent: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_at: Option<Timestamp>,
    /// The supervisor's own build first.
    pub builds: Vec<BuildUse>,
    /// Sessions that did not report their build in time: they have no deadline from this request.
    pub unreached: Vec<SessionId>,
}

/// The workers of one build.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct BuildUse {
    pub version: String,
    /// Identifies the executable; `unknown` if it cannot be read.
    pub build: String,
    /// Version of the protocol between supervisor and workers.
    pub protocol: u32,
    /// It is the supervisor's.
    pub current: bool,
    /// Pids on the host.
    pub keepers: Vec<u32>,
    /// Sessions in which nothing runs.
    pub idle: u64,
    /// Sessions in which an execution runs.
    pub busy: u64,
    /// Sessions whose execution waits for an answer.
    pub waiting: u64,
    pub suspended: u64,
    /// Programs with a worker, all of the supervisor's build: a program gets a new worker after each pause and each start.
    pub programs: u64,
    /// When the oldest of the sessions was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
}

impl BuildUse {
    pub fn sessions(&self) -> u64 {
        self.idle + self.busy + self.waiting + self.suspended
    }
}

/// One layer of the sandbox around the workers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct SandboxLayer {
    /// `namespaces`, `seccomp`, …
    pub name: String,
    /// Whether it is in force.
    pub in_force: bool,
    /// Whether the daemon refuses to start without it.
    pub required: bool,
    /// Details; or what to do.
    pub detail: String,
}

/// A process from which sessions are forked.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct ZygoteInfo {
    pub engine: String,
    pub libraries: Vec<String>,
    /// Modules of one owner that it has compiled for this owner's sessions.
    pub modules: u32,
    /// The pid on the host.
    pub pid: u32,
    /// Forks ordered so far; of a zygote of a further kind, workers that were also assigned to a session.
    pub forks: u64,
}

/// The supervisor itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct RuntimeInfo {
    /// Version of the binary.
    pub version: String,
    /// The supervisor's pid.
    pub pid: u32,
    /// Time since the start (milliseconds).
    pub uptime_ms: u64,
    /// The keeper's pid on the host.
    pub keeper_pid: Option<u32>,
    /// The walls in force.
    pub sandbox: Vec<SandboxLayer>,
    /// The zygotes of all owners for administrators; others see those for their sessions alone.
    pub zygotes: Vec<ZygoteInfo>,
    /// Live sessions: the caller's, those of all owners for administrators.
    pub active_sessions: u64,
    /// Sessions created since the start, without those of programs: the caller's, those of all owners for administrators.
    pub sessions_created: u64,
    /// Executions started in sessions since the start, without those of programs: the caller's, those of all owners for
    /// administrators.
    pub executions_started: u64,
    #[schemars(extend("enum" = ["full", "normal"]))]
    pub durability: String,
    /// Batches of all owners that wait for the store; 0 for who is no administrator.
    pub store_queue: u64,
    /// Why the store is not well, as `health` reports it.
    pub store_problem: Option<String>,
}

/// The host, layer by layer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct DoctorReport {
    /// Kernel release.
    pub kernel: String,
    /// Whether the host supports all required layers.
    pub ok: bool,
    /// Why there is no jail or the host could not be examined, and what to do.
    pub problem: Option<String>,
    /// The walls of the current jail.
    pub layers: Vec<SandboxLayer>,
    /// The walls that were tried on this machine.
    pub host: Vec<HostFinding>,
    /// Executions of programs that nothing would wake: the caller's, or for administrators all; at most 100.
    pub stuck: Vec<StuckExecution>,
}

/// An execution of a program that has not ended, and that nothing would wake.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct StuckExecution {
    pub execution_id: ExecutionId,
    /// For administrators.
    pub owner: Option<String>,
    pub why: String,
}

/// The result of trying a wall on this machine, in a separate process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct HostFinding {
    /// `namespaces`, `seccomp`, …
    pub name: String,
    /// Whether this machine supports it.
    pub works: bool,
    /// Whether a supervisor refuses to start without it.
    pub required: bool,
    /// Version; or why the wall is missing, and what to do.
    pub detail: String,
}

/// Declares the error codes with their text, HTTP status and CLI exit code.
macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $member:ident = $text:literal, $http:literal, $exit:literal;)+) => {
        /// Stable identifier of an error, the same in every API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
        pub enum ErrorCode { $($(#[doc = $doc])+ $member),+ }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$member),+];
            /// The text that clients match on.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$member => $text),+ }
            }
            /// A sentence for the reference.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$member => concat!($($doc),+)),+ }
            }
            /// HTTP status.
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$member => $http),+ }
            }
            /// Exit code of the CLI (`cli/src/contract.rs`).
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$member => $exit),+ }
            }
        }
    };
}

error_codes! {
    /// A field is missing or invalid, a query parameter is unknown or invalid, a text is not an id, a value is none of those that are
    /// possible.
    ValidationError = "VALIDATION_ERROR", 400, 1;
    /// The request is malformed: its body is not one JSON object, or has an unknown field, or one of a wrong type.
    InvalidRequest = "INVALID_REQUEST", 400, 1;
    /// No such template.
    TemplateNotFound = "TEMPLATE_NOT_FOUND", 404, 1;
    /// No such session.
    SessionNotFound = "SESSION_NOT_FOUND", 404, 1;
    /// No such execution.
    ExecutionNotFound = "EXECUTION_NOT_FOUND", 404, 1;
    /// No such file in the worktree.
    FileNotFound = "FILE_NOT_FOUND", 404, 1;
    /// No such library.
    LibraryNotFound = "LIBRARY_NOT_FOUND", 404, 1;
    /// No such object of any other kind.
    NotFound = "NOT_FOUND", 404, 1;
    /// The name is in use, or the object has ended or is too large for the change.
    Conflict = "CONFLICT", 409, 1;
    /// The session is starting, crashed or closed.
    SessionNotReady = "SESSION_NOT_READY", 409, 1;
    /// Another execution of the session runs or waits; try again when it has ended.
    SessionBusy = "SESSION_BUSY", 409, 75;
    /// An absolute path, `..`, a symlink that leaves the worktree, NUL, or a blank path.
    InvalidPath = "INVALID_PATH", 422, 1;
    /// The execution wrote more output than allowed; `details.execution_id`.
    OutputLimitExceeded = "OUTPUT_LIMIT_EXCEEDED", 422, 1;
    /// The startup mode is not available.
    StartupModeUnsupported = "STARTUP_MODE_UNSUPPORTED", 422, 1;
    /// A startup file failed; `details.session_id`.
    StartupFailed = "STARTUP_FAILED", 422, 1;
    /// Sessions or programs of this engine cannot do this.
    EngineUnsupported = "ENGINE_UNSUPPORTED", 422, 1;
    /// The same idempotency key with another request.
    IdempotencyMismatch = "IDEMPOTENCY_MISMATCH", 409, 1;
    /// The template names a library that is not installed; `details.command` installs it.
    LibraryNotInstalled = "LIBRARY_NOT_INSTALLED", 422, 1;
    /// A library's source has changed since its installation, or its file is missing; `details.command` installs it again.
    LibraryCorrupt = "LIBRARY_CORRUPT", 422, 1;
    /// Not a host module.
    ModuleNotAllowed = "MODULE_NOT_ALLOWED", 422, 1;
    /// A limit is over the operator's ceiling; `details.ceiling`.
    LimitNotAllowed = "LIMIT_NOT_ALLOWED", 422, 1;
    /// Too many sessions, too little memory, or too many requests; try again later.
    CapacityExceeded = "CAPACITY_EXCEEDED", 503, 75;
    /// The store cannot write, or the owner's quota is used up.
    StorageUnavailable = "STORAGE_UNAVAILABLE", 503, 75;
    /// The worktree is outside the operator's roots, or the caller lacks the right.
    NotPermitted = "NOT_PERMITTED", 403, 77;
    /// The supervisor is stopping.
    ShuttingDown = "SHUTTING_DOWN", 503, 75;
    /// A bug of the supervisor.
    Internal = "INTERNAL", 500, 70;
    /// This host, or the supervisor's rights on it, does not allow the jail of a worker.
    SandboxUnavailable = "SANDBOX_UNAVAILABLE", 503, 70;
    /// The source text of a program has errors; `details.diagnostics`.
    CompileError = "COMPILE_ERROR", 422, 1;
    /// No such program.
    ProgramNotFound = "PROGRAM_NOT_FOUND", 404, 1;
    /// No such task.
    TaskNotFound = "TASK_NOT_FOUND", 404, 1;
    /// The execution does not wait, or not for this task.
    TaskNotPending = "TASK_NOT_PENDING", 409, 1;
    /// Several tasks of the execution are pending, and the answer names none; `details.task_ids`.
    TaskAmbiguous = "TASK_AMBIGUOUS", 409, 1;
    /// The execution keeps as many events as it may, for which it has not waited yet.
    MailboxFull = "MAILBOX_FULL", 409, 1;
    /// The answer does not match the task's schema.
    AnswerInvalid = "ANSWER_INVALID", 422, 1;
    /// A plan has errors: the message has a line for each.
    PlanInvalid = "PLAN_INVALID", 422, 1;
    /// The user whose rights use a worktree has no passwd entry any more, or its uid has another name.
    OwnerGone = "OWNER_GONE", 409, 1;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The error of a verb that failed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    /// The stable identifier, for programs.
    pub code: ErrorCode,
    pub message: String,
    /// Facts for programs (an object).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<JsonText>,
    /// A hint on what to do, for people.
    #[serde(skip)]
    pub hint: Option<String>,
}

impl OpError {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, hint: None }
    }

    /// Adds a hint on what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks that the code ran and only storing its record failed (`details.ran`).
    #[must_use]
    pub fn of_what_ran(self) -> Self {
        self.with_details(&serde_json::json!({ "ran": true }))
    }

    /// Whether the code ran and only storing its record failed; then a repeated request runs it twice.
    pub fn has_run(&self) -> bool {
        let details = self.details.as_ref().and_then(JsonText::to_value);
        details.is_some_and(|details| details["ran"] == true)
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: &serde_json::Value) -> Self {
        self.details = Some(JsonText::from_value(details));
        self
    }
}
