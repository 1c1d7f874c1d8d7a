//! Rows as data, beyond the model that clients see: owners, policy snapshots, programs, tasks, checkpoints, idempotency keys and
//! audit entries. Knows nothing of tables or statements.

use crate::batch::Write;
use crate::items::{ItemRow, MailRow};
use crate::repeat::RepeatFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_protocol::model::{
    Capability, Engine, Execution, HttpRecord, Session, Settings, StartupFile, TemplateDetail, WaitingFor,
};
use vm_system_protocol::time::Timestamp;

/// The principal that a row belongs to: a token's name, or `uid:1000` on the local socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }
    /// A user of this machine.
    pub fn of_uid(uid: u32) -> Self {
        Self::new(format!("uid:{uid}"))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rows that a query may return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Rows of all owners: for administrators and the supervisor itself.
    All,
    /// Rows of one owner.
    Owner(Owner),
}

impl Scope {
    /// Whether a row of this owner is in the scope.
    pub fn sees(&self, owner: &Owner) -> bool {
        match self {
            Self::All => true,
            Self::Owner(mine) => mine == owner,
        }
    }
}

/// A session's copy of its template (docs/decisions/015).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySnapshot {
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
    pub owner: Owner,
    /// The template with its parts.
    pub detail: TemplateDetail,
}

/// Where the worktree of a session is and whose rights use it, as recorded when the session was created. With it the folder is opened
/// again; the text that a client named is only shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWorktree {
    /// The user whose rights use it.
    pub uid: u32,
    /// The name of this user; absent if a supervisor without files agents used its own rights.
    pub user: Option<String>,
    /// The root above it, as the operator configured it.
    pub root: String,
    /// The folder's path relative to the root.
    pub beneath: String,
    /// The file handle of the folder, if its file system has them.
    pub handle: Option<Vec<u8>>,
}

/// A session with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub owner: Owner,
    /// Absent for a program without files, and where the worktree is a folder of the operator.
    pub worktree: Option<Arc<RecordedWorktree>>,
    /// Sequence number of its worker's last message with stored effects.
    pub worker_seq: u64,
    pub session: Session,
}

/// An execution with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    pub owner: Owner,
    /// Chosen by the client.
    pub name: Option<String>,
    /// The execution; `events` is none.
    pub execution: Execution,
    /// Facts that a repetition of the input needs.
    pub facts: RepeatFacts,
}

/// A session of an earlier supervisor that is starting or ready: what another one needs to continue it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSessionRow {
    pub row: SessionRow,
    pub policy: Arc<PolicySnapshot>,
    pub running: Option<RunningExecutionRow>,
}

/// An unfinished execution of a session, with the sums of its stored events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningExecutionRow {
    pub execution: Execution,
    /// Number of the last event.
    pub events: u64,
    /// Text of the events (bytes).
    pub output_bytes: u64,
    /// Time of the last event; of the start, if there is none.
    pub last_event_at: Timestamp,
    /// The last task, ended or not.
    pub task: Option<ItemRow>,
}

/// An installed library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryRow {
    /// `id-version`.
    pub name: String,
    /// The specifier in `require` and `import`.
    pub id: String,
    pub version: String,
    /// The global variable of the library, if any.
    pub global: Option<String>,
    /// SHA-256 of its source.
    pub hash: [u8; 32],
    /// Size of its source (bytes).
    pub bytes: u64,
    /// When it was installed.
    pub installed_at: Timestamp,
}

/// A new version of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProgramVersion {
    pub owner: Owner,
    /// Id of the program if this is its first version; ignored otherwise.
    pub id: ProgramId,
    /// Unique among the owner's active programs.
    pub name: String,
    pub source: String,
    /// SHA-256 of the source.
    pub source_hash: [u8; 32],
    /// Format of `code`.
    pub format: u32,
    /// Compiled, opaque.
    pub code: Vec<u8>,
    pub at: Timestamp,
}

/// A program with one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRow {
    pub id: ProgramId,
    pub owner: Owner,
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
    /// The version's number, from 1.
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
    pub source: String,
    /// Format of `code`.
    pub format: u32,
    /// Compiled, opaque.
    pub code: Vec<u8>,
}

/// An execution of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub row: ExecutionRow,
    pub program: ProgramId,
    pub version: u32,
    /// The program's name; none once it was deleted.
    pub program_name: Option<String>,
    pub waiting_for: WaitingFor,
}

/// Everything that is needed to resume an execution of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    pub execution: Execution,
    pub program: ProgramId,
    pub version: u32,
    pub owner: Owner,
    /// Folder of its files; empty = none.
    pub worktree_path: String,
    /// As in [`SessionRow`].
    pub worktree: Option<Arc<RecordedWorktree>>,
    /// The copy of the template in the execution's session.
    pub policy: Arc<PolicySnapshot>,
    /// The current template; none once it was deleted.
    pub template: Option<TemplateRow>,
    /// The execution's last checkpoint.
    pub checkpoint: Option<CheckpointRow>,
    /// The question of the execution's last pause.
    pub task: Option<ItemRow>,
    /// Pending items, and those whose answers are in no checkpoint yet.
    pub items: Vec<ItemRow>,
    /// Number of the last item; 0: there was none.
    pub last_item: u64,
    /// In the order in which they came.
    pub mailbox: Vec<MailRow>,
    pub limits: UsedLimits,
    /// The fence under which the reader of this may take the execution ([`Guard`](crate::Guard)).
    pub fence: Fence,
    /// The state of its last checkpoint, if that is small (`RUN_HEAD_STATE_BYTES`): a resuming worker needs it next.
    pub state: Option<Vec<(u64, Vec<u8>)>>,
}

/// One process of a supervisor, by a random number: a later process of the same state directory has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incarnation(pub [u8; 16]);

/// The number of a holder of an execution: a later holder has a higher one, and what an earlier one writes from then on is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// An execution of a program that its claimer holds from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedRun {
    pub execution: ExecutionId,
    pub fence: Fence,
}

/// The executions of programs that a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// Executions with an open item that is due.
    Due,
    /// Executions that run and have no holder: the last one has ended, or could not go on.
    OfEnded,
}

/// The state in which a holder leaves an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetGo {
    /// It waits, or has ended; with the time at which it is due, if it has a deadline.
    Rests(Option<Timestamp>),
    /// It could not go on: the next attempt is made after a pause.
    Failed,
}

/// The use of limits that a later machine, also of another supervisor, goes on with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedLimits {
    pub spent: SpentLimits,
    /// Workers that exited since the last checkpoint.
    pub exits: u32,
    /// Supervisors that were killed while they ran the execution, since the last checkpoint.
    pub kills: u32,
}

/// The part of its limits that an execution of a program has used since the last submitted answer, as of its last checkpoint. Stored as
/// JSON: another field is another schema version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpentLimits {
    pub wall_ms: u64,
    pub cpu_us: u64,
    pub events: u64,
    pub output_bytes: u64,
    /// The use of host modules, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, SpentCalls>,
}

/// The use of one host module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpentCalls {
    pub calls: u64,
    /// Calls that the policy denied.
    pub denied: u64,
    /// Calls that the kernel refused.
    pub refused: u64,
    /// Bytes to the program and from it.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// The error code of an execution of which the state is being copied or imported, or of which that was interrupted.
pub const INCOMPLETE: &str = "INCOMPLETE";

/// A state that is read together with a [`RunHead`] is smaller than this (bytes).
pub const RUN_HEAD_STATE_BYTES: usize = 16 << 10;

/// A state of a durable execution. Pages are opaque; the newest version of each is the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub execution: ExecutionId,
    /// Counts up in its execution.
    pub seq: u64,
    pub at: Timestamp,
    /// `start`, `pause`, `effect`, `steps`, `edit`, `end`.
    pub cause: String,
    /// Pages that changed: number, and bytes (none = the page was deleted).
    pub pages: Vec<(u64, Option<Vec<u8>>)>,
    /// Bytes written since the state was last measured ([`Write::StateBound`]), with this
    /// checkpoint; `None`: unknown.
    pub unweighed: Option<u64>,
    /// Bytes that the program has written to files so far.
    pub written: u64,
}

impl Checkpoint {
    /// Size of its content (bytes).
    pub fn bytes(&self) -> u64 {
        self.contents().map(|content| DURABLE_PAGE_BYTES + content).sum()
    }

    /// The bytes that the page takes in the database file: content that is larger than a quarter of a page of the file has pages of
    /// its own. The triggers of the store compute the same.
    pub fn file_bytes(&self) -> u64 {
        self.contents().map(Self::page_file_bytes).sum()
    }

    /// The bytes that a page with `content` bytes takes in the database file.
    pub fn page_file_bytes(content: u64) -> u64 {
        if content <= 962 { 60 + content * 3 / 2 } else { 1_024 + (content + 3_129) / 4_092 * 4_096 }
    }

    fn contents(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().map(|(_, bytes)| bytes.as_ref().map_or(0, Vec::len) as u64)
    }
}

/// A checkpoint without its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Counts up in its execution.
    pub seq: u64,
    pub at: Timestamp,
    /// As in [`Checkpoint::cause`].
    pub cause: String,
    /// Size of its pages (bytes), [`DURABLE_PAGE_BYTES`] more for each page.
    pub bytes: u64,
    /// As in [`Checkpoint::unweighed`].
    pub unweighed: Option<u64>,
    /// As in [`Checkpoint::written`].
    pub written: u64,
}

/// A request that takes an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClaim {
    pub owner: Owner,
    pub key: String,
    /// SHA-256 of the request.
    pub request_hash: [u8; 32],
    /// Id of what the request creates, chosen before it is created, so that a retry after a crash can find it.
    pub subject: [u8; 16],
    pub at: Timestamp,
    /// Claims of the key before this time have expired.
    pub expired_before: Timestamp,
    /// The encoded response, where claim and effect are one batch.
    pub reply: Option<Vec<u8>>,
    /// The process that carries the request out.
    pub holder: Incarnation,
}

/// An idempotency key in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 of the first request.
    pub request_hash: [u8; 32],
    /// Id of what it creates.
    pub subject: [u8; 16],
    /// When it was claimed.
    pub created_at: Timestamp,
    /// The encoded first response; `None`: in progress, or the supervisor exited before it responded.
    pub reply: Option<Vec<u8>>,
    /// The process that carries the request out, or did; `None`: one of an earlier version.
    pub holder: Option<Incarnation>,
}

/// The part of a path that a line of the audit log has; the event of the execution has more (bytes).
const AUDIT_PATH_BYTES: usize = 200;

/// The line of the audit log about an HTTP request that has ended.
pub fn http_audit(owner: &Owner, session: SessionId, at: Timestamp, record: &HttpRecord) -> Write {
    let HttpRecord { method, origin, path, status, error, sent, received, ms } = record;
    let outcome = error.clone().or_else(|| status.map(|status| status.to_string())).unwrap_or_default();
    Write::Audit(Box::new(AuditEntry {
        at,
        owner: owner.clone(),
        api: "session".to_owned(),
        verb: "http".to_owned(),
        subject: format!(
            "{session} {method} {origin}{} sent={sent} received={received} ms={ms}",
            &path[..path.floor_char_boundary(AUDIT_PATH_BYTES)]
        ),
        outcome,
    }))
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub owner: Owner,
    /// The API that took the request; the name is the stored column's.
    pub api: String,
    pub verb: String,
    /// Id or name of the object.
    pub subject: String,
    /// `ok` or the error's code.
    pub outcome: String,
}
