//! The verbs. References to templates, sessions and executions are text: a whole id, a unique prefix of one, or a name
//! where the thing has one; the supervisor resolves them among what the caller may see.

use super::DurableOp;
use crate::codec::{Decode, Encode};
use crate::json::JsonText;
use crate::model::{CapabilityKind, Engine, ExecutionKind, SessionStatus, Settings};
use crate::time::Timestamp;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Op {
    /// Make a template.
    TemplateCreate {
        /// Unique among the owner's.
        name: String,
        /// Which engine.
        engine: Engine,
        /// Its settings; defaults where absent.
        settings: Box<Settings>,
        /// Host modules that its sessions may require.
        modules: Vec<String>,
    },
    /// Templates, newest first.
    TemplateList {
        /// Which part of the list.
        page: ListPage,
        /// With the system's own, which belongs to nobody, behind all others.
        built_in: bool,
    },
    /// One template with its parts.
    TemplateGet {
        /// Which.
        template: String,
    },
    /// Change a template.
    TemplateUpdate {
        /// Which.
        template: String,
        /// What.
        change: Box<TemplateChange>,
    },
    /// Hide a template; its sessions go on.
    TemplateDelete {
        /// Which.
        template: String,
    },
    /// Let sessions of a template require a host module.
    TemplateAddModule {
        /// Which.
        template: String,
        /// The module.
        name: String,
    },
    /// Withdraw a host module.
    TemplateRemoveModule {
        /// Which.
        template: String,
        /// The module.
        name: String,
    },
    /// Make a session and wait until it is ready.
    SessionCreate(Box<NewSession>),
    /// Sessions, newest first.
    SessionList(SessionFilter),
    /// One session.
    SessionGet {
        /// Which.
        session: String,
    },
    /// End a session; a running execution becomes `cancelled` first. Idempotent.
    SessionClose {
        /// Which.
        session: String,
    },
    /// A live session as the kernel sees it.
    SessionInspect {
        /// Which.
        session: String,
    },
    /// Kill a session's worker.
    SessionKill {
        /// Which.
        session: String,
        /// Signal number; 9 is SIGKILL.
        signal: i32,
    },
    /// Run code in a session.
    ExecStart(Box<NewExecution>),
    /// Executions of a session, newest first.
    ExecList {
        /// Which session.
        session: String,
        /// Which part of the list.
        page: ListPage,
    },
    /// One execution.
    ExecGet {
        /// Which.
        execution: String,
    },
    /// Events of an execution.
    ExecEvents {
        /// Which.
        execution: String,
        /// Only later ones.
        after_seq: u64,
        /// At most this many; 0 = all.
        limit: u32,
        /// Stream what is still to come until the execution ends.
        follow: bool,
    },
    /// End a running execution as `cancelled`.
    ExecCancel {
        /// Which.
        execution: String,
    },
    /// Whether the supervisor answers.
    Health,
    /// Which sessions are alive.
    RuntimeSummary,
    /// Version, layers in force, zygotes, totals, store lag.
    RuntimeInfo,
    /// The table of layers, and what the host lacks.
    Doctor,
    /// Stop the supervisor: drain, TERM, KILL.
    Shutdown,
    /// The host modules that templates may name.
    ModuleCatalog,
    /// Give, narrow or withdraw a right of a template's sessions. Answered by [`Reply::Capability`](super::Reply).
    TemplateAddCapability {
        /// Which template.
        template: String,
        /// The row.
        capability: Box<NewCapability>,
    },
    /// Take a capability row away. Answered by the row that is gone.
    TemplateRemoveCapability {
        /// From which template.
        template: String,
        /// The row: its id, or a unique prefix of it.
        capability: String,
    },
    /// Let new sessions of a template run a file first. Answered by [`Reply::StartupFile`](super::Reply).
    TemplateAddStartup {
        /// Which template.
        template: String,
        /// The file.
        file: Box<NewStartupFile>,
    },
    /// Take a startup file away. Answered by the row that is gone.
    TemplateRemoveStartup {
        /// From which template.
        template: String,
        /// The row: its id, a unique prefix of it, or its path.
        file: String,
    },
    /// Give new sessions of a template a library. Answered by [`Reply::TemplateName`](super::Reply) with the name as it
    /// is stored.
    TemplateAddLibrary {
        /// Which template.
        template: String,
        /// `id-version`, or `id` for the version that is installed.
        name: String,
    },
    /// Take a library away; sessions that have it keep it. Answered by [`Reply::TemplateName`](super::Reply).
    TemplateRemoveLibrary {
        /// From which template.
        template: String,
        /// `id-version`, or `id` where the template has one version of it.
        name: String,
    },
    /// The libraries that are installed, and those of the original catalog that are not.
    LibraryCatalog,
    /// Install a library for every template. Administrators only: its code runs in their users' sessions.
    LibraryInstall(Box<NewLibrary>),
    /// Remove an installed library; sessions that have it keep it.
    LibraryRemove {
        /// `id-version`, or `id` where one version is installed.
        name: String,
    },
    /// Compare installed libraries with the hashes that were recorded when they were installed.
    LibraryVerify {
        /// Only this one.
        name: Option<String>,
    },
    /// Who changed what, newest first. Answered by [`Reply::Audit`](super::Reply).
    AuditList {
        /// Only entries with a smaller number.
        before: Option<u64>,
        /// At most this many.
        limit: u32,
    },
    /// Something about durable programs.
    Durable(DurableOp),
    /// Make sessions that go on from where a live, idle one stands. Answered by [`Reply::Sessions`](super::Reply): all of them,
    /// or none is made.
    SessionFork {
        /// Which.
        session: String,
        /// How many; 1 to [`FORKS`](crate::limits::FORKS).
        count: u32,
    },
    /// An execution once it does not run: it has ended, or waits for an answer. Returns at once where that is so. Except for a
    /// program that waits, it has its events, as many as a reply has room for. Too much output is no error here.
    ExecWait {
        /// Which.
        execution: String,
    },
}

impl Op {
    /// Whether the verb streams events before its reply.
    pub fn follows(&self) -> bool {
        match self {
            Self::ExecStart(new) => new.follow,
            Self::ExecEvents { follow, .. } => *follow,
            _ => false,
        }
    }
}

/// A part of a list that is sorted newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct ListPage {
    /// At most this many; absent: as many as an answer has room for.
    pub limit: Option<u32>,
    /// Only what comes behind this place.
    pub after: Option<ListCursor>,
}

impl ListPage {
    /// The first ones.
    pub const fn first(limit: u32) -> Self {
        Self { limit: Some(limit), after: None }
    }
}

/// The place of an element of such a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ListCursor {
    /// When it was made (executions: started).
    pub at: Timestamp,
    /// Its id.
    pub id: [u8; 16],
}

/// A capability row that is to be.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewCapability {
    /// What it is about.
    pub kind: CapabilityKind,
    /// Which module, global, …; (kind, name) is unique in a template.
    pub name: String,
    /// Whether it gives (true) or withdraws (false).
    pub enabled: bool,
    /// An object that narrows it.
    pub config: JsonText,
}

/// A startup file that is to be.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewStartupFile {
    /// Relative to the session's worktree.
    pub path: String,
    /// Lower runs first; equal ones by path.
    pub order_index: i64,
    /// `eval`, or `import` where the template's `runtime.esm` is true; as the client wrote it.
    pub mode: String,
}

/// A library with its source.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewLibrary {
    /// What `require` and `import` call it, as on npm.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The global variable that it becomes; absent: as in the original catalog, else none.
    pub global: Option<String>,
    /// One JavaScript file without relative imports: a script (UMD, `CommonJS`, IIFE) or an ES module.
    pub source: String,
}

/// What to change of a template; absent parts stay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct TemplateChange {
    /// New name.
    pub name: Option<String>,
    /// Part of [`Settings`] as an object (`{"limits":{"cpu_ms":100}}`): fields that are named replace, `null` resets to the
    /// default, the rest stays (JSON merge patch, RFC 7396).
    pub settings: Option<JsonText>,
}

/// The name of the plain template of agents: an owner who has none of this name gets one with the module `fs` when a session is
/// created from it.
pub const AGENT_TEMPLATE: &str = "mcp";

/// What a session is to be.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewSession {
    /// The template; see [`AGENT_TEMPLATE`].
    pub template: String,
    /// A label of the client.
    pub workspace_id: String,
    /// A label of the client.
    pub base_commit_oid: String,
    /// Absolute path of an existing folder.
    pub worktree_path: String,
    /// A name for people (1–200 characters).
    pub name: Option<String>,
    /// Instead of the template's `ttl_s`; not longer than it.
    pub ttl_s: Option<u32>,
    /// Instead of the template's `idle_timeout_s`; not longer than it.
    pub idle_timeout_s: Option<u32>,
}

/// Which sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct SessionFilter {
    /// Only of this status.
    pub status: Option<SessionStatus>,
    /// Only of this template.
    pub template: Option<String>,
    /// Only of this workspace.
    pub workspace_id: Option<String>,
    /// Only of this engine; absent: those of scripts, or of the template that is asked for.
    pub engine: Option<Engine>,
    /// Which part of the list.
    pub page: ListPage,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewExecution {
    /// Where.
    pub session: String,
    /// [`ExecutionKind::Repl`] (then `input`) or [`ExecutionKind::RunFile`] (then `path`).
    pub kind: ExecutionKind,
    /// Source text.
    pub input: Option<String>,
    /// File relative to the worktree.
    pub path: Option<String>,
    /// Visible as `args` (an object).
    pub args: JsonText,
    /// Visible in `process.env`.
    pub env: Vec<(String, String)>,
    /// Visible as `process.argv` behind the first two entries.
    pub argv: Vec<String>,
    /// Reply when it has ended (true), or as soon as it runs.
    pub wait: bool,
    /// Stream its events before the reply.
    pub follow: bool,
}

impl NewExecution {
    /// Nothing given but where and what kind; waited for, not followed.
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
