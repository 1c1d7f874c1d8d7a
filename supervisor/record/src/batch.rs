//! What can be written. Enums of our own: nothing here knows how rows are stored.

use super::rows::{
    AuditEntry, Checkpoint, KeyClaim, LibraryRow, NewProgramVersion, Owner, PolicySnapshot, TaskOutcome,
    TaskRow,
};
use std::sync::Arc;
use vm_system_protocol::ids::{
    CapabilityId, ExecutionId, ProgramId, SessionId, StartupFileId, TaskId, TemplateId,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Capability, Event, Execution, ExecutionKind, ExecutionStatus, Metrics, Session, SessionStatus, Settings,
    StartupFile, TemplateDetail,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

/// Writes that become durable together or not at all, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch(pub Vec<Write>);

impl From<Write> for Batch {
    fn from(write: Write) -> Self {
        Self(vec![write])
    }
}

impl From<Vec<Write>> for Batch {
    fn from(writes: Vec<Write>) -> Self {
        Self(writes)
    }
}

/// What a committed batch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Rows inserted, changed or deleted (dependent rows of a deletion included only for [`Write::Prune`] and
    /// [`Write::PruneOwner`]).
    pub rows: u64,
}

/// One change. What it needs and does not find is `Rejected(Missing)`; a taken id or name `Rejected(Conflict)`; a
/// change of an ended session or execution `Rejected(Finished)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new template with all its parts. Names are unique among the owner's active ones.
    TemplateInsert {
        /// Whose.
        owner: Owner,
        /// The template.
        detail: Box<TemplateDetail>,
    },
    /// Changes a template; absent parts stay.
    TemplateUpdate {
        /// Which.
        id: TemplateId,
        /// New name.
        name: Option<String>,
        /// New settings.
        settings: Option<Box<Settings>>,
        /// When.
        at: Timestamp,
    },
    /// Hides a template and removes its parts; its name is free again, its sessions go on.
    TemplateDelete {
        /// Which.
        id: TemplateId,
        /// When.
        at: Timestamp,
    },
    /// Adds a host module's name; adding it twice changes nothing.
    ModuleAdd {
        /// To which.
        template: TemplateId,
        /// The module.
        name: String,
        /// When.
        at: Timestamp,
    },
    /// Removes a host module's name; removing an absent one changes nothing.
    ModuleRemove {
        /// From which.
        template: TemplateId,
        /// The module.
        name: String,
        /// When.
        at: Timestamp,
    },
    /// Adds a library's name; adding it twice changes nothing.
    LibraryAdd {
        /// To which.
        template: TemplateId,
        /// `name-version`.
        name: String,
        /// When.
        at: Timestamp,
    },
    /// Removes a library's name; removing an absent one changes nothing.
    LibraryRemove {
        /// From which.
        template: TemplateId,
        /// `name-version`.
        name: String,
        /// When.
        at: Timestamp,
    },
    /// Adds a capability row; (kind, name) is unique in its template.
    CapabilityAdd {
        /// The row.
        capability: Capability,
        /// When.
        at: Timestamp,
    },
    /// Removes a capability row.
    CapabilityRemove {
        /// From which.
        template: TemplateId,
        /// The row.
        id: CapabilityId,
        /// When.
        at: Timestamp,
    },
    /// Adds a startup file; its path is unique in its template.
    StartupFileAdd {
        /// The row.
        file: StartupFile,
        /// When.
        at: Timestamp,
    },
    /// Removes a startup file.
    StartupFileRemove {
        /// From which.
        template: TemplateId,
        /// The row.
        id: StartupFileId,
        /// When.
        at: Timestamp,
    },
    /// Records an installed library (`name-version`) by the hash of its content; the same name again replaces it.
    LibraryInstall(Box<LibraryRow>),
    /// Forgets an installed library.
    LibraryUninstall {
        /// `name-version`.
        name: String,
    },
    /// A new session with the snapshot of its template (interned by content).
    SessionInsert {
        /// Whose.
        owner: Owner,
        /// The session.
        session: Arc<Session>,
        /// What it was made with.
        policy: Arc<PolicySnapshot>,
    },
    /// `starting → ready`.
    SessionReady {
        /// Which.
        id: SessionId,
    },
    /// `starting|ready → closed|crashed`.
    SessionEnd {
        /// Which.
        id: SessionId,
        /// `closed` or `crashed`.
        status: SessionStatus,
        /// When.
        at: Timestamp,
        /// Why.
        reason: CloseReason,
        /// What went wrong, in words.
        last_error: Option<String>,
    },
    /// Replaces the free-form facts of a session.
    SessionMeta {
        /// Which.
        id: SessionId,
        /// An object.
        runtime_meta: JsonText,
    },
    /// The last message of a session's worker whose effects are stored: belongs into the batch of these effects.
    WorkerSeq {
        /// Which.
        session: SessionId,
        /// The worker's sequence number.
        seq: u64,
    },
    /// A new execution; its owner is the session's. `events` is not stored from here.
    ExecutionStarted {
        /// A name that the client gave; unique among the owner's unfinished ones.
        name: Option<String>,
        /// The execution.
        execution: Arc<Execution>,
    },
    /// `running ⇄ waiting`.
    ExecutionStatus {
        /// Which.
        id: ExecutionId,
        /// `running` or `waiting`.
        status: ExecutionStatus,
    },
    /// The end: status, `ended_at`, result, error, metrics and `degraded` of this record (`degraded` never goes back).
    ExecutionEnded(Arc<Execution>),
    /// Something of this execution could not be stored.
    ExecutionDegraded {
        /// Which.
        id: ExecutionId,
    },
    /// Output; (execution, seq) is unique.
    Events(Arc<[Event]>),
    /// After a start of the supervisor: every `quickjs` session that is starting or ready and not in `alive` becomes
    /// `crashed(host_restart)`, its unfinished executions `error` with code `WORKER_DIED`, their questions withdrawn.
    HostRestart {
        /// When.
        at: Timestamp,
        /// Sessions whose workers were taken over.
        alive: Vec<SessionId>,
    },
    /// A new version of a program; makes the program if there is none of this name. What is the newest version already
    /// is no new one.
    ProgramVersion(Box<NewProgramVersion>),
    /// Which version of a program an execution runs.
    ProgramRun {
        /// The execution.
        execution: ExecutionId,
        /// The program.
        program: ProgramId,
        /// Its version.
        version: u32,
    },
    /// Hides a program; executions keep their version.
    ProgramDelete {
        /// Which.
        id: ProgramId,
        /// When.
        at: Timestamp,
    },
    /// A question that waits for its answer; an execution has at most one.
    TaskInsert(Box<TaskRow>),
    /// An answer that did not fit: counts as an attempt.
    TaskAttempt {
        /// Which.
        id: TaskId,
        /// When.
        at: Timestamp,
    },
    /// The end of a question. `Rejected(Finished)` if it is not pending.
    TaskEnd {
        /// Which.
        id: TaskId,
        /// How.
        outcome: TaskOutcome,
        /// The answer, or the message of the error that it becomes.
        answer: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// Whatever question of an execution is pending ends as withdrawn; that there is none is fine.
    TasksWithdraw {
        /// Of which.
        execution: ExecutionId,
        /// When.
        at: Timestamp,
    },
    /// A state of a durable execution: the pages that changed.
    Checkpoint(Box<Checkpoint>),
    /// Drops page versions that no checkpoint from `keep_from` on needs, and the checkpoints before it.
    CheckpointCompact {
        /// Of which.
        execution: ExecutionId,
        /// The oldest checkpoint that must stay whole.
        keep_from: u64,
        /// If given: later ones go, too, while those behind them wrote more than so many bytes; never the newest.
        keep_bytes: Option<u64>,
    },
    /// `Rejected(TooLarge)` if the newest pages of an execution's state, [`DURABLE_PAGE_BYTES`] more for each, are more than so
    /// many bytes. Looks at all pages: for now and then, as old versions are forgotten.
    ///
    /// [`DURABLE_PAGE_BYTES`]: vm_system_protocol::limits::DURABLE_PAGE_BYTES
    StateBound {
        /// Of which.
        execution: ExecutionId,
        /// So large it may be (bytes).
        most: u64,
    },
    /// Gives an execution the state of another one as of a checkpoint, under the same number.
    CheckpointCopy {
        /// Whose state.
        from: ExecutionId,
        /// As of when.
        checkpoint: u64,
        /// Who gets it.
        to: ExecutionId,
        /// When.
        at: Timestamp,
    },
    /// Where an unfinished execution stands, and what it used so far.
    RunProgress {
        /// Which.
        id: ExecutionId,
        /// `running` or `waiting`.
        status: ExecutionStatus,
        /// So far.
        metrics: Metrics,
    },
    /// Takes an execution's name away.
    ExecutionUnname {
        /// Which.
        id: ExecutionId,
    },
    /// Forgets an ended execution of a program with all that belongs to it, and its session.
    RunDelete {
        /// Which.
        id: ExecutionId,
    },
    /// Which execution a client means when it names none.
    CurrentSet {
        /// Whose client.
        owner: Owner,
        /// Which client.
        client: String,
        /// Which execution.
        execution: ExecutionId,
        /// When.
        at: Timestamp,
    },
    /// Takes an idempotency key for a request. `Rejected(Conflict)` if it is taken since after `expired_before`.
    KeyClaim(Box<KeyClaim>),
    /// The answer to the request that holds a key.
    KeyAnswer {
        /// Whose.
        owner: Owner,
        /// The key.
        key: String,
        /// The encoded answer.
        reply: Vec<u8>,
    },
    /// Gives a key back: nothing was done for it.
    KeyRelease {
        /// Whose.
        owner: Owner,
        /// The key.
        key: String,
    },
    /// Somebody changed something.
    Audit(Box<AuditEntry>),
    /// Sets or removes a value of the store's own book-keeping.
    MetaSet {
        /// Which.
        key: String,
        /// The value.
        value: Option<Vec<u8>>,
    },
    /// Forgets what ended before a moment: events, executions, sessions, keys and audit entries, at most about
    /// `max_rows` rows. [`Applied::rows`] says how many went; 0 = nothing left to forget.
    Prune {
        /// What ended earlier may go.
        before: Timestamp,
        /// Idempotency keys that were taken earlier may go.
        keys_before: Timestamp,
        /// Bound of the work in one turn.
        max_rows: u32,
    },
    /// Forgets what an owner has that ended before a moment, the oldest first: events, executions, sessions, at most about
    /// `max_rows` rows. [`Applied::rows`] says how many went; 0 = nothing left to forget.
    PruneOwner {
        /// Whose.
        owner: Owner,
        /// What ended earlier may go.
        before: Timestamp,
        /// Bound of the work in one turn.
        max_rows: u32,
    },
}

impl Batch {
    /// The executions whose records are incomplete if this batch is lost. A step of a durable program is none of them:
    /// nothing of it is anywhere else, and it is made again from what is stored.
    pub fn incomplete(&self) -> impl Iterator<Item = ExecutionId> {
        let durable = self.0.iter().any(Write::is_of_a_durable_step);
        self.0.iter().filter(move |_| !durable).filter_map(Write::execution)
    }
}

impl Write {
    /// The execution that this write is a part of.
    fn execution(&self) -> Option<ExecutionId> {
        match self {
            Self::ExecutionStarted { execution, .. } | Self::ExecutionEnded(execution) => Some(execution.id),
            Self::ExecutionStatus { id, .. } => Some(*id),
            Self::Events(events) => events.first().map(|event| event.execution_id),
            _ => None,
        }
    }

    fn is_of_a_durable_step(&self) -> bool {
        match self {
            Self::Checkpoint(_) => true,
            Self::ExecutionStarted { execution, .. } | Self::ExecutionEnded(execution) => {
                execution.kind == ExecutionKind::Program
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, Write};
    use std::sync::Arc;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::model::{ConsoleLevel, Event, EventPayload, ExecutionStatus, Metrics};
    use vm_system_protocol::time::Timestamp;

    #[test]
    fn a_question_of_a_session_that_is_lost_with_its_output_is_remembered() {
        let id = ExecutionId::from_bytes([1; 16]);
        let payload = EventPayload::Console { level: ConsoleLevel::Log, text: "x".to_owned() };
        let event = Event { execution_id: id, seq: 1, ts: Timestamp(1), payload };
        let progress =
            Write::RunProgress { id, status: ExecutionStatus::Waiting, metrics: Metrics::default() };
        let batch = Batch(vec![Write::Events(Arc::from([event])), progress]);
        assert_eq!(batch.incomplete().collect::<Vec<_>>(), [id]);
    }
}
