//! What is stored beyond the client's model: owners, snapshots, and the rows of durable executions and of the books.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, ProgramId, TaskId};
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_protocol::model::{
    Capability, Engine, Execution, Session, Settings, StartupFile, TemplateDetail,
};
use vm_system_protocol::time::Timestamp;

/// Whose a row is: a token's name, or `uid:1000` on the local socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// From its text.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose rows a query sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's: administrators and the supervisor itself.
    All,
    /// One owner's.
    Owner(Owner),
}

impl Scope {
    /// Whether a row of this owner is seen.
    pub fn sees(&self, owner: &Owner) -> bool {
        match self {
            Self::All => true,
            Self::Owner(mine) => mine == owner,
        }
    }
}

/// What a session keeps of its template (architecture section 2, Policy).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySnapshot {
    /// Which engine.
    pub engine: Engine,
    /// Limits, resolver, runtime.
    pub settings: Settings,
    /// Host modules, sorted.
    pub modules: Vec<String>,
    /// `name-version` of libraries, sorted.
    pub libraries: Vec<String>,
    /// Capability rows.
    pub capabilities: Vec<Capability>,
    /// Startup files in order.
    pub startup_files: Vec<StartupFile>,
}

impl From<&TemplateDetail> for PolicySnapshot {
    fn from(detail: &TemplateDetail) -> Self {
        Self {
            engine: detail.template.engine,
            settings: detail.settings.clone(),
            modules: detail.template.exposed_modules.clone(),
            libraries: detail.template.libraries.clone(),
            capabilities: detail.capabilities.clone(),
            startup_files: detail.startup_files.clone(),
        }
    }
}

/// A template with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRow {
    /// Whose.
    pub owner: Owner,
    /// The template with its parts.
    pub detail: TemplateDetail,
}

/// A session with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Whose.
    pub owner: Owner,
    /// Last message of its worker whose effects are stored.
    pub worker_seq: u64,
    /// The session.
    pub session: Session,
}

/// An execution with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// Whose.
    pub owner: Owner,
    /// A name that the client gave.
    pub name: Option<String>,
    /// The execution; `events` is none.
    pub execution: Execution,
}

/// An installed library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryRow {
    /// `id-version`.
    pub name: String,
    /// What `require` and `import` call it.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The global variable that it becomes, if any.
    pub global: Option<String>,
    /// SHA-256 of its source.
    pub hash: [u8; 32],
    /// Size of its source (bytes).
    pub bytes: u64,
    /// When it was installed.
    pub installed_at: Timestamp,
}

/// A version of a program as it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProgramVersion {
    /// Whose.
    pub owner: Owner,
    /// Id of the program if this is its first version; ignored otherwise.
    pub id: ProgramId,
    /// Unique among the owner's active programs.
    pub name: String,
    /// Its source.
    pub source: String,
    /// SHA-256 of the source.
    pub source_hash: [u8; 32],
    /// Format of `code`.
    pub format: u32,
    /// Compiled, opaque.
    pub code: Vec<u8>,
    /// When.
    pub at: Timestamp,
}

/// A program with one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRow {
    /// Its id.
    pub id: ProgramId,
    /// Whose.
    pub owner: Owner,
    /// Its name.
    pub name: String,
    /// False once deleted.
    pub is_active: bool,
    /// When the first version was loaded.
    pub created_at: Timestamp,
    /// When the newest version was loaded.
    pub modified_at: Timestamp,
    /// Number of this version, from 1.
    pub version: u32,
    /// SHA-256 of this version's source.
    pub source_hash: [u8; 32],
    /// Format of this version's code.
    pub format: u32,
}

/// A version of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// Its number, from 1.
    pub version: u32,
    /// SHA-256 of its source.
    pub source_hash: [u8; 32],
    /// Format of its code.
    pub format: u32,
    /// When it was loaded.
    pub created_at: Timestamp,
}

/// Source and code of a program's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCode {
    /// Its source.
    pub source: String,
    /// Format of `code`.
    pub format: u32,
    /// Compiled, opaque.
    pub code: Vec<u8>,
}

/// A question with an end, and nothing of what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTask {
    /// Its id.
    pub id: TaskId,
    /// Whose question it is.
    pub execution: ExecutionId,
    /// When its time is over.
    pub deadline: Timestamp,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its id.
    pub id: TaskId,
    /// Whose: the execution's owner. Ignored on insertion.
    pub owner: Owner,
    /// Which execution asks.
    pub execution: ExecutionId,
    /// The question.
    pub prompt: String,
    /// JSON of what an answer must fit.
    pub schema: Option<String>,
    /// Answers that did not fit.
    pub attempts: u32,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When it expires.
    pub deadline: Option<Timestamp>,
    /// When it ended; none = pending.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<TaskOutcome>,
    /// Its answer; the message of the error where it has none.
    pub answer: Option<String>,
    /// The checkpoint at which it was asked; in a session, which question of the execution it is.
    pub checkpoint: u64,
    /// How many answers may not fit; none = as many as come.
    pub retries: Option<u32>,
    /// JSON of the answer when the time is over.
    pub fallback: Option<String>,
    /// When the first answer came that did not fit.
    pub first_attempt_at: Option<Timestamp>,
    /// When the last answer came that did not fit.
    pub last_attempt_at: Option<Timestamp>,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOutcome {
    /// Somebody answered.
    Answered,
    /// The time was over; the answer is the default.
    Defaulted,
    /// The time was over.
    Expired,
    /// Too many answers did not fit.
    Failed,
    /// Its execution ended.
    Withdrawn,
}

impl TaskOutcome {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Answered, "answered"),
        (Self::Defaulted, "defaulted"),
        (Self::Expired, "expired"),
        (Self::Failed, "failed"),
        (Self::Withdrawn, "withdrawn"),
    ];

    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, text)| text)
    }

    /// From what is stored.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, stored)| *stored == text).map(|(outcome, _)| *outcome)
    }
}

/// An execution of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The execution.
    pub row: ExecutionRow,
    /// What it runs.
    pub program: ProgramId,
    /// Which version.
    pub version: u32,
    /// The program's name; none once it was deleted.
    pub program_name: Option<String>,
}

/// Everything that says how an execution of a program goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its record.
    pub execution: Execution,
    /// What it runs.
    pub program: ProgramId,
    /// Which version.
    pub version: u32,
    /// The owner of its rows, with whose rights its files are used.
    pub owner: Owner,
    /// Folder of its files; empty = none.
    pub worktree_path: String,
    /// What its session keeps of the template.
    pub policy: Arc<PolicySnapshot>,
    /// The template as it is now; none once it was deleted.
    pub template: Option<TemplateRow>,
    /// Its last checkpoint.
    pub checkpoint: Option<CheckpointRow>,
    /// Its last question.
    pub task: Option<TaskRow>,
    /// The state of its last checkpoint, if that is small (`STANDING_BYTES`): whoever wants to go on needs it next.
    pub state: Option<Vec<(u64, Vec<u8>)>>,
}

/// States that are read together with how an execution stands are smaller than this (bytes).
pub const STANDING_BYTES: usize = 16 << 10;

/// A state of a durable execution. Pages are opaque; the newest version of each is the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Of which execution.
    pub execution: ExecutionId,
    /// Counts up in its execution.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// `start`, `pause`, `effect`, `steps`, `edit`, `end`.
    pub cause: String,
    /// Pages that changed: number, and bytes (none = the page is gone).
    pub pages: Vec<(u64, Option<Vec<u8>>)>,
    /// What was written since the state was last weighed ([`Write::StateBound`](crate::Write::StateBound)), with this
    /// one (bytes); none = nobody knows.
    pub unweighed: Option<u64>,
    /// What the program has written to files so far (bytes).
    pub written: u64,
}

impl Checkpoint {
    /// What it takes in the store (bytes).
    pub fn bytes(&self) -> u64 {
        let content = |(_, bytes): &(u64, Option<Vec<u8>>)| bytes.as_ref().map_or(0, Vec::len) as u64;
        self.pages.iter().map(|page| DURABLE_PAGE_BYTES + content(page)).sum()
    }
}

/// A checkpoint without its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Counts up in its execution.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// As in [`Checkpoint::cause`].
    pub cause: String,
    /// Written with it (bytes), [`DURABLE_PAGE_BYTES`] more for each page.
    pub bytes: u64,
    /// As in [`Checkpoint::unweighed`].
    pub unweighed: Option<u64>,
    /// As in [`Checkpoint::written`].
    pub written: u64,
}

/// A request that takes an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClaim {
    /// Whose.
    pub owner: Owner,
    /// The key.
    pub key: String,
    /// SHA-256 of the request.
    pub request_hash: [u8; 32],
    /// Id of what the request makes, chosen before it is made, so that a retry after a crash can look.
    pub subject: [u8; 16],
    /// When.
    pub at: Timestamp,
    /// Older claims of the key do not count any more.
    pub expired_before: Timestamp,
    /// The encoded answer, where claim and effect are one batch.
    pub reply: Option<Vec<u8>>,
}

/// An idempotency key in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 of the first request.
    pub request_hash: [u8; 32],
    /// Id of what it makes.
    pub subject: [u8; 16],
    /// When it was claimed.
    pub created_at: Timestamp,
    /// The encoded first answer; none = under way, or the supervisor died before it was given.
    pub reply: Option<Vec<u8>>,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub owner: Owner,
    /// Through which door.
    pub door: String,
    /// Which verb.
    pub verb: String,
    /// What it was about.
    pub subject: String,
    /// `ok` or the error's code.
    pub outcome: String,
}
