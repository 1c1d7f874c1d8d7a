//! Verbs of sessions: their life, checkpoints, restorations.

use crate::codec::{Decode, Encode};
use crate::control::{GivenInput, ListPage};
use crate::model::{Engine, SessionStatus};

/// The name of the default template of agents: for an owner without a template of this name, one with the module `fs` is created
/// together with the first session from it.
pub const AGENT_TEMPLATE: &str = "mcp";

/// Create a session and wait until it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionCreate {
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

/// Sessions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct SessionList {
    /// Only of this status.
    pub status: Option<SessionStatus>,
    /// Only of this template.
    pub template: Option<String>,
    /// Only of this workspace.
    pub workspace_id: Option<String>,
    /// Only of this engine; absent: sessions of scripts, or those of the given template.
    pub engine: Option<Engine>,
    pub page: ListPage,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionGet {
    pub session: String,
}

/// Give a session that has not ended another name, unique among those of its owner that have not ended either.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRename {
    pub session: String,
    /// 1–200 characters.
    pub name: String,
}

/// End a session; a running execution becomes `cancelled` first. Idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionClose {
    pub session: String,
}

/// A live session as the kernel sees it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionInspect {
    pub session: String,
}

/// Kill a session's worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionKill {
    pub session: String,
    /// Signal number; 9 is SIGKILL.
    pub signal: i32,
}

/// Fork a live, idle session: either all forks are created, or none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionFork {
    pub session: String,
    /// 1 to [`FORKS`](crate::limits::FORKS).
    pub count: u32,
}

/// Keep a frozen copy of a live, idle session's worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionAddCheckpoint {
    pub session: String,
    /// Unique in the session.
    pub name: Option<String>,
}

/// The checkpoints of a live session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionCheckpoints {
    pub session: String,
}

/// Give up a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionDeleteCheckpoint {
    pub session: String,
    /// Number or name.
    pub checkpoint: String,
}

/// Continue an idle session from a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRollback {
    pub session: String,
    /// Number or name; absent: the newest.
    pub checkpoint: Option<String>,
}

/// The events of a session's life, in order.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionEvents {
    pub session: String,
    /// Only later events.
    pub after_seq: u64,
    /// At most this many.
    pub limit: u32,
    /// Without such events, wait for one, or for the end of the session, for at most
    /// [`SESSION_EVENTS_WAIT_MS`](crate::limits::SESSION_EVENTS_WAIT_MS).
    pub wait: bool,
}

/// Stop an idle session's worker until a request needs it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionSuspend {
    pub session: String,
}

/// Let the worker of a suspended session run again.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionResume {
    pub session: String,
}

/// Repeat the inputs of an ended session in a new one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRestore {
    /// The ended session.
    pub session: String,
    /// Repeat inputs that had effects outside of the session, too.
    pub repeat_effects: bool,
    /// The parts of inputs that the record does not have.
    pub inputs: Vec<GivenInput>,
    /// Reply when the new session is ready (true), or as soon as its startup files have run.
    pub wait: bool,
}

/// How far the restoration in a session is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RestorationGet {
    /// The new session.
    pub session: String,
    /// While this many inputs were repeated and no more, wait for the next one, for at most
    /// [`SESSION_EVENTS_WAIT_MS`](crate::limits::SESSION_EVENTS_WAIT_MS); absent: reply at once.
    pub wait_after: Option<u64>,
}
