//! The verbs. References to templates, sessions and executions are text: a whole id, a unique prefix of one, or a name
//! if there is one; the supervisor resolves them among the objects that the caller may see.

use super::{DurableOp, ExecutionFilter, ListPage, NewRestoration, Period, SessionFilter};
use crate::codec::{Decode, Encode};
use crate::json::JsonText;
use crate::model::{CapabilityKind, Engine, ExecutionKind, Settings};
use crate::time::Timestamp;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Op {
    /// Create a template.
    TemplateCreate {
        /// Unique among the owner's templates.
        name: String,
        engine: Engine,
        /// Absent fields have their defaults.
        settings: Box<Settings>,
        /// Host modules that sessions may require.
        modules: Vec<String>,
    },
    /// Templates, newest first.
    TemplateList {
        page: ListPage,
        /// Include the built-in template, which has no owner, at the end.
        built_in: bool,
    },
    /// One template with its parts.
    TemplateGet {
        template: String,
    },
    /// Change a template.
    TemplateUpdate {
        template: String,
        change: Box<TemplateChange>,
    },
    /// Delete a template; its sessions continue.
    TemplateDelete {
        template: String,
    },
    /// Allow sessions of a template to use a host module.
    TemplateAddModule {
        template: String,
        name: String,
    },
    /// Withdraw a host module.
    TemplateRemoveModule {
        template: String,
        name: String,
    },
    /// Create a session and wait until it is ready.
    SessionCreate(Box<NewSession>),
    /// Sessions, newest first.
    SessionList(SessionFilter),
    /// One session.
    SessionGet {
        session: String,
    },
    /// End a session; a running execution becomes `cancelled` first. Idempotent.
    SessionClose {
        session: String,
    },
    /// A live session as the kernel sees it.
    SessionInspect {
        session: String,
    },
    /// Kill a session's worker.
    SessionKill {
        session: String,
        /// Signal number; 9 is SIGKILL.
        signal: i32,
    },
    /// Run code in a session.
    ExecStart(Box<NewExecution>),
    /// Executions of a session, newest first.
    ExecList(ExecutionFilter),
    /// One execution.
    ExecGet {
        execution: String,
    },
    /// Events of an execution.
    ExecEvents {
        execution: String,
        /// Only later events.
        after_seq: u64,
        /// At most this many; 0 = all.
        limit: u32,
        /// Stream further events until the execution ends.
        follow: bool,
    },
    /// End a running execution as `cancelled`.
    ExecCancel {
        execution: String,
    },
    /// Check that the supervisor responds.
    Health,
    RuntimeSummary,
    /// Version, layers in force, zygotes, totals, store lag.
    RuntimeInfo,
    /// The layers of the jail, and the layers that the host supports.
    Doctor,
    /// Stop the supervisor: drain, TERM, KILL.
    Shutdown,
    /// The host modules that templates may name.
    ModuleCatalog,
    /// Grant, narrow or withdraw a right of a template's sessions. The reply is [`Reply::Capability`](super::Reply).
    TemplateAddCapability {
        template: String,
        capability: Box<NewCapability>,
    },
    /// Remove a capability row. Replies with the removed row.
    TemplateRemoveCapability {
        template: String,
        /// The row's id, or a unique prefix of it.
        capability: String,
    },
    /// Add a file that new sessions of a template run first. The reply is [`Reply::StartupFile`](super::Reply).
    TemplateAddStartup {
        template: String,
        file: Box<NewStartupFile>,
    },
    /// Remove a startup file. Replies with the removed row.
    TemplateRemoveStartup {
        template: String,
        /// The row's id, a unique prefix of it, or its path.
        file: String,
    },
    /// Add a library to new sessions of a template. The reply is [`Reply::TemplateName`](super::Reply) with the stored name.
    TemplateAddLibrary {
        template: String,
        /// `id-version`, or `id` for the installed version.
        name: String,
    },
    /// Remove a library; existing sessions keep it. The reply is [`Reply::TemplateName`](super::Reply).
    TemplateRemoveLibrary {
        template: String,
        /// `id-version`, or `id` if the template has one version of the library.
        name: String,
    },
    /// The installed libraries, and those of the original catalog that are not installed.
    LibraryCatalog,
    /// Install a library for every template. Administrators only: its code runs in their users' sessions.
    LibraryInstall(Box<NewLibrary>),
    /// Remove an installed library; existing sessions keep it.
    LibraryRemove {
        /// `id-version`, or `id` if one version is installed.
        name: String,
    },
    /// Compare installed libraries with the hashes that were recorded when they were installed.
    LibraryVerify {
        /// Only this library.
        name: Option<String>,
    },
    /// The audit log, newest first. The reply is [`Reply::Audit`](super::Reply).
    AuditList {
        /// Only entries with a smaller number.
        before: Option<u64>,
        /// At most this many.
        limit: u32,
    },
    /// A verb of durable programs.
    Durable(DurableOp),
    /// Fork a live, idle session. The reply is [`Reply::Sessions`](super::Reply): either all forks are created, or none.
    SessionFork {
        session: String,
        /// 1 to [`FORKS`](crate::limits::FORKS).
        count: u32,
    },
    /// Wait until an execution does not run: it has ended, or has a pending task. Returns at once if that is already so. Except for
    /// a program that waits, the reply has the events, as many as fit. An end because of too much output is no error of this verb.
    ExecWait {
        execution: String,
    },
    /// Keep a frozen copy of a live, idle session's worker. The reply is [`Reply::Checkpoint`](super::Reply).
    SessionCheckpoint {
        session: String,
        /// Unique in the session.
        name: Option<String>,
    },
    /// The checkpoints of a live session. The reply is [`Reply::Checkpoints`](super::Reply).
    SessionCheckpoints {
        session: String,
    },
    /// Give up a checkpoint.
    SessionDeleteCheckpoint {
        session: String,
        /// Number or name.
        checkpoint: String,
    },
    /// Continue an idle session from a checkpoint. The reply is [`Reply::Session`](super::Reply).
    SessionRollback {
        session: String,
        /// Number or name; absent: the newest.
        checkpoint: Option<String>,
    },
    /// Copy the control database for this client. The reply is [`Reply::Backup`](super::Reply). Administrators only, as the
    /// two below.
    BackupBegin,
    /// A part of a copy. The reply is [`Reply::BackupPart`](super::Reply).
    BackupPart {
        backup: String,
        /// Offset in the file (bytes).
        at: u64,
    },
    /// The copy is not needed any more.
    BackupEnd {
        backup: String,
    },
    /// The events of a session's life, in order. The reply is [`Reply::SessionEvents`](super::Reply).
    SessionEvents {
        session: String,
        /// Only later events.
        after_seq: u64,
        /// At most this many.
        limit: u32,
        /// Without such events, wait for one, or for the end of the session, for at most
        /// [`SESSION_EVENTS_WAIT_MS`](crate::limits::SESSION_EVENTS_WAIT_MS).
        wait: bool,
    },
    /// Check the control database. The reply is [`Reply::Checked`](super::Reply). Administrators only.
    DatabaseCheck,
    /// Stop an idle session's worker until a request needs it. The reply is [`Reply::Session`](super::Reply).
    SessionSuspend {
        session: String,
    },
    /// Let the worker of a suspended session run again. The reply is [`Reply::Session`](super::Reply).
    SessionResume {
        session: String,
    },
    /// Repeat the inputs of an ended session in a new one. The reply is [`Reply::Restoration`](super::Reply).
    SessionRestore(Box<NewRestoration>),
    /// How far the restoration in a session is. The reply is [`Reply::Restoration`](super::Reply).
    SessionRestoration {
        /// The new session.
        session: String,
        /// While this many inputs were repeated and no more, wait for the next one, for at most
        /// [`SESSION_EVENTS_WAIT_MS`](crate::limits::SESSION_EVENTS_WAIT_MS); absent: reply at once.
        wait_after: Option<u64>,
    },
    /// Which builds the workers run. The reply is [`Reply::Upgrade`](super::Reply). Administrators only, as the next.
    Upgrade,
    /// By when workers of other builds than the supervisor's are replaced; none: not at all. The reply is as for [`Self::Upgrade`].
    UpgradeDrain {
        drain_by: Option<Timestamp>,
    },
}

impl Op {
    /// Executions of a session, whatever their status.
    pub fn exec_list(session: impl Into<String>, page: ListPage) -> Self {
        let session = session.into();
        Self::ExecList(ExecutionFilter { session, status: None, period: Period::default(), page })
    }

    /// Whether the verb streams events before its reply.
    pub fn follows(&self) -> bool {
        match self {
            Self::ExecStart(new) => new.follow,
            Self::ExecEvents { follow, .. } => *follow,
            _ => false,
        }
    }
}

/// A capability row to be created.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewCapability {
    pub kind: CapabilityKind,
    /// The module, global, …; (kind, name) is unique in a template.
    pub name: String,
    /// Whether the row grants (true) or withdraws (false) the right.
    pub enabled: bool,
    /// An object that narrows the right.
    pub config: JsonText,
}

/// A startup file to be added.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewStartupFile {
    /// Relative to the session's worktree.
    pub path: String,
    /// Lower runs first; equal ones by path.
    pub order_index: i64,
    /// `eval`, or `import` if the template's `runtime.esm` is true; as the client sent it.
    pub mode: String,
}

/// A library with its source.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewLibrary {
    /// The name in `require` and `import`, as on npm.
    pub id: String,
    pub version: String,
    /// The global variable; absent: as in the original catalog, else none.
    pub global: Option<String>,
    /// One JavaScript file without relative imports: a script (UMD, `CommonJS`, IIFE) or an ES module.
    pub source: String,
    /// Install it although it may not load by itself, such as one that needs another library of its template.
    pub unchecked: bool,
}

/// The changes of a template; absent parts stay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct TemplateChange {
    /// New name.
    pub name: Option<String>,
    /// Part of [`Settings`] as an object (`{"limits":{"cpu_ms":100}}`): a present field replaces the setting, `null` resets it to
    /// the default, other settings stay (JSON merge patch, RFC 7396).
    pub settings: Option<JsonText>,
}

/// The name of the default template of agents: for an owner without a template of this name, one with the module `fs` is created
/// together with the first session from it.
pub const AGENT_TEMPLATE: &str = "mcp";

/// The options of a new session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewSession {
    /// The template; see [`AGENT_TEMPLATE`].
    pub template: String,
    /// Any name. Sessions of one owner and workspace share its database files.
    pub workspace_id: String,
    /// Any text; only recorded.
    pub base_commit_oid: String,
    /// Absolute path of an existing folder.
    pub worktree_path: String,
    /// The user with whose rights an administrator uses the folder: a name or a number. Absent: those of the caller.
    pub as_user: Option<String>,
    /// A name for people (1–200 characters).
    pub name: Option<String>,
    /// Replaces the template's `ttl_s`; not longer than that.
    pub ttl_s: Option<u32>,
    /// Replaces the template's `idle_timeout_s`; not longer than that.
    pub idle_timeout_s: Option<u32>,
}

/// The options of a new execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewExecution {
    pub session: String,
    /// [`ExecutionKind::Repl`] (then `input`) or [`ExecutionKind::RunFile`] (then `path`).
    pub kind: ExecutionKind,
    /// Source text.
    pub input: Option<String>,
    /// File relative to the worktree; with `input` only its name. Of a repl input: none, [`INTERACTIVE_INPUT`] or
    /// [`TYPESCRIPT_INPUT`].
    pub path: Option<String>,
    /// Visible as `args` (an object).
    pub args: JsonText,
    /// Visible in `process.env`.
    pub env: Vec<(String, String)>,
    /// Visible as `process.argv` after the first two entries.
    pub argv: Vec<String>,
    /// Reply when the execution has ended (true), or as soon as it runs.
    pub wait: bool,
    /// Stream the events before the reply.
    pub follow: bool,
}

/// The path of a repl input of a shell, in which `_` is the value of the last one.
pub const INTERACTIVE_INPUT: &str = "repl.js";
/// The path of a repl input that is TypeScript.
pub const TYPESCRIPT_INPUT: &str = "repl.ts";

impl NewExecution {
    /// With default options: waits for the end, streams no events.
    pub fn new(session: impl Into<String>, kind: ExecutionKind) -> Self {
        Self {
            session: session.into(),
            kind,
            input: None,
            path: None,
            args: JsonText::empty_object(),
            env: Vec::new(),
            argv: Vec::new(),
            wait: true,
            follow: false,
        }
    }
}
