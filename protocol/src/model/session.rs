//! Sessions.

use super::{Engine, SessionFacts, text_enum};
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, SessionId, TemplateId};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

text_enum! {
    /// `starting → ready → closed`, `starting|ready → crashed`. Sessions of programs are `ready` while they have a process.
    SessionStatus {
        /// The worker is being started.
        Starting = "starting",
        /// The worker accepts executions.
        Ready = "ready",
        /// Ended unexpectedly.
        Crashed = "crashed",
        /// Ended on request.
        Closed = "closed",
        /// Only sessions of programs: there is no process; the program waits for an answer, or for a free worker.
        Waiting = "waiting",
        /// Ready, and its worker is stopped until a request needs it.
        Suspended = "suspended",
    }
}

/// One sandboxed worker process and its record.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: SessionId,
    /// The client's name for the session, unique among those of its owner that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The template that the session was created from.
    pub template_id: TemplateId,
    /// The same as `template_id`, for old clients.
    pub vm_id: TemplateId,
    /// A label of the client.
    pub workspace_id: String,
    /// A label of the client.
    pub base_commit_oid: String,
    /// Absolute path of the folder with the files that the session may read.
    pub worktree_path: String,
    pub status: SessionStatus,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// The error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Why the session ended, as text of [`CloseReason`](crate::reason::CloseReason).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    /// Facts about its process, its origin and its checkpoints; absent facts are left out.
    pub runtime_meta: SessionFacts,
    /// `cvm`: the session of a durable program, created and ended with its execution; absent in all other sessions, which have the
    /// engine of their template.
    #[serde(default = "scripts", skip_serializing_if = "of_scripts")]
    pub engine: Engine,
    /// The execution for which a program's session was created; both end together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The owner, `uid:1000` or the name of a token: in lists and single objects, for administrators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

fn scripts() -> Engine {
    Engine::Quickjs
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn of_scripts(engine: &Engine) -> bool {
    *engine != Engine::Cvm
}

/// A frozen copy of a session's worker, to which the session can be rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct SessionCheckpoint {
    /// Counts from 1 in each session, never reused.
    pub number: u64,
    /// The client's name for it, unique in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: Timestamp,
    /// JavaScript heap (bytes) as the worker reported it; advisory. The memory is shared with the session until either writes.
    pub heap_bytes: u64,
}

text_enum! {
    /// `running → done | failed | cancelled`.
    RestorationStatus {
        /// Inputs are being repeated; the new session's status is `starting`.
        Running = "running",
        /// The new session is ready.
        Done = "done",
        /// The new session has ended; `error` has the reason.
        Failed = "failed",
        /// The new session was closed before all inputs were repeated.
        Cancelled = "cancelled",
    }
}

/// The restoration of an ended session: a new session in which its inputs are repeated.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct SessionRestoration {
    /// The new session.
    pub session: Session,
    /// The ended one.
    pub restored_from: SessionId,
    pub status: RestorationStatus,
    /// Inputs to be repeated: those that ended `ok`.
    pub inputs: u64,
    /// Inputs that were repeated so far.
    pub repeated: u64,
    /// Inputs that are not repeated, because they did not end `ok`.
    pub not_repeated: u64,
    /// Inputs with another result than before.
    pub different: u64,
    /// The first 100 of them; none once the supervisor was restarted.
    pub differences: Vec<InputDifference>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A repeated input with another result than before.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct InputDifference {
    /// The number of the input, from 1.
    pub input: u64,
    /// The execution in the ended session.
    pub execution_id: ExecutionId,
    /// The execution that repeated it, in the new session.
    pub repeated_as: ExecutionId,
    /// The result before, shortened.
    pub before: String,
    /// The result or the error now, shortened.
    pub now: String,
}

text_enum! {
    /// The kind of an event of a session.
    SessionEventType {
        /// It exists from now on; `other_session_id`: it is a fork of that session.
        Created = "created",
        /// `other_session_id` is a fork of it.
        Forked = "forked",
        /// It accepts executions.
        Ready = "ready",
        ExecutionStarted = "execution_started",
        /// The execution waits for an answer.
        ExecutionWaiting = "execution_waiting",
        /// The execution goes on after an answer.
        ExecutionResumed = "execution_resumed",
        /// `detail`: the status of the execution.
        ExecutionEnded = "execution_ended",
        /// Another supervisor has taken its worker over.
        Adopted = "adopted",
        /// `detail`: the number of the checkpoint.
        Checkpointed = "checkpointed",
        /// It continues with another worker, from a frozen copy. `detail`: `checkpoint` and its number, or why its worker ended.
        RolledBack = "rolled_back",
        /// The session's worker is stopped until a request needs it.
        Suspended = "suspended",
        /// The session's worker runs again.
        Resumed = "resumed",
        /// `detail`: the closing reason.
        Closed = "closed",
        /// `detail`: the closing reason and what is known.
        Crashed = "crashed",
        /// It continues with a new worker, without the state of the last one. `detail`: why that one ended.
        Restarted = "restarted",
    }
}

/// One event of a session's life.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct SessionEvent {
    pub session_id: SessionId,
    #[schemars(range(min = 1))]
    /// 1, 2, 3, … in each session. The first ones are deleted together with the executions that they are about, and of more than
    /// 10 000 by checkpoints, rollbacks and adoptions.
    pub seq: u64,
    pub at: Timestamp,
    #[serde(rename = "type")]
    pub kind: SessionEventType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// Of `created`: the session that it is a fork of; of `forked`: the fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_session_id: Option<SessionId>,
    /// The status of an ended execution; the number of a checkpoint; to which checkpoint the session was rolled back, or after which
    /// end of its worker it was rolled back or restarted; why the session ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A live session, inspected through the kernel. Only `js_heap_bytes` was reported by the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct SessionInspection {
    pub session_id: SessionId,
    pub status: SessionStatus,
    /// The worker's pid on the host.
    pub pid: u32,
    /// CPU time used (milliseconds).
    pub cpu_ms: u64,
    /// Resident set (KiB), if readable.
    pub rss_kib: Option<u64>,
    /// Proportional set (KiB), if readable.
    pub pss_kib: Option<u64>,
    /// Unique set (KiB), if readable.
    pub uss_kib: Option<u64>,
    /// JavaScript heap (bytes) in the worker's last report; advisory.
    pub js_heap_bytes: Option<u64>,
    /// Open descriptors, if readable.
    pub fds: Option<u32>,
    /// `Seccomp:` of /proc/pid/status; 2 is a filter.
    pub seccomp_mode: Option<u32>,
    /// `NoNewPrivs:` of /proc/pid/status.
    pub no_new_privs: Option<bool>,
    /// `CapEff:` of /proc/pid/status.
    pub cap_eff: Option<u64>,
    /// `name=inode` of each namespace that differs from the supervisor's, if readable.
    pub namespaces: Vec<String>,
    /// Soft resource limits, `name=value`.
    pub rlimits: Vec<String>,
    /// The execution that runs, if any.
    pub running_execution: Option<crate::ids::ExecutionId>,
    /// Time since the worker's last message (milliseconds).
    pub heartbeat_age_ms: u64,
    /// Whether this supervisor took the worker over from an earlier one.
    pub adopted: bool,
    /// Counts the session's workers from 1: each rollback replaces the worker.
    pub generation: u64,
    /// When `ttl_s` or `idle_timeout_s` ends the session, unless it is used before; absent while an execution runs and only
    /// `idle_timeout_s` is set, and without these settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cull_at: Option<Timestamp>,
}
