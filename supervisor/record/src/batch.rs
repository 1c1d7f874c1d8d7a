//! The possible writes, as enums. Knows nothing of how rows are stored.

use super::items::{ItemOutcome, ItemRow, MailRow};
use super::repeat::RepeatFacts;
use super::rows::{
    AuditEntry, Checkpoint, Fence, Incarnation, KeyClaim, LibraryRow, NewProgramVersion, Owner,
    PolicySnapshot, RecordedWorktree, UsedLimits,
};
use super::schedule::{ScheduleChange, ScheduleRow};
use std::sync::Arc;
use vm_system_protocol::ids::{
    CapabilityId, ExecutionId, ProgramId, ScheduleId, SessionId, StartupFileId, TaskId, TemplateId,
};
use vm_system_protocol::model::{
    Capability, Event, Execution, ExecutionKind, ExecutionStatus, Metrics, Session, SessionEventType,
    SessionFacts, SessionStatus, Settings, StartupFile, TemplateDetail,
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

/// The effect of a committed batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Rows inserted, changed or deleted (dependent rows of a deletion included only for [`Write::Prune`] and
    /// [`Write::PruneOwner`]).
    pub rows: u64,
}

/// One change. A missing row that the change needs is `Rejected(Missing)`; a taken id or name `Rejected(Conflict)`; a
/// change of an ended session or execution `Rejected(Finished)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new template with all its parts. Names are unique among the owner's active ones.
    TemplateInsert { owner: Owner, detail: Box<TemplateDetail> },
    /// Changes a template; absent parts stay.
    TemplateUpdate {
        id: TemplateId,
        /// New name.
        name: Option<String>,
        /// New settings.
        settings: Option<Box<Settings>>,
        at: Timestamp,
    },
    /// Hides a template and removes its parts; its name is free again, its sessions continue.
    TemplateDelete { id: TemplateId, at: Timestamp },
    /// Adds a host module's name; adding it twice changes nothing.
    ModuleAdd { template: TemplateId, name: String, at: Timestamp },
    /// Removes a host module's name; removing an absent one changes nothing.
    ModuleRemove { template: TemplateId, name: String, at: Timestamp },
    /// Adds a library's name; adding it twice changes nothing.
    LibraryAdd {
        template: TemplateId,
        /// `name-version`.
        name: String,
        at: Timestamp,
    },
    /// Removes a library's name; removing an absent one changes nothing.
    LibraryRemove {
        template: TemplateId,
        /// `name-version`.
        name: String,
        at: Timestamp,
    },
    /// Adds a capability row; (kind, name) is unique in its template.
    CapabilityAdd { capability: Capability, at: Timestamp },
    /// Removes a capability row.
    CapabilityRemove { template: TemplateId, id: CapabilityId, at: Timestamp },
    /// Adds a startup file; its path is unique in its template.
    StartupFileAdd { file: StartupFile, at: Timestamp },
    /// Removes a startup file.
    StartupFileRemove { template: TemplateId, id: StartupFileId, at: Timestamp },
    /// Records an installed library (`name-version`) by the hash of its content; the same name again replaces it.
    LibraryInstall(Box<LibraryRow>),
    /// Deletes the record of an installed library.
    LibraryUninstall {
        /// `name-version`.
        name: String,
    },
    /// A new session with the snapshot of its template (interned by content).
    SessionInsert {
        owner: Owner,
        session: Arc<Session>,
        policy: Arc<PolicySnapshot>,
        worktree: Option<Arc<RecordedWorktree>>,
    },
    /// `starting → ready`.
    SessionReady { id: SessionId },
    /// `starting|ready → starting`: another worker is to continue, whose messages are numbered from 1.
    SessionRestoring {
        id: SessionId,
        /// Of its event: `rolled_back` or `restarted`.
        kind: SessionEventType,
        at: Timestamp,
        /// Of its event.
        detail: String,
    },
    /// `starting|ready → closed|crashed`.
    SessionEnd {
        id: SessionId,
        /// `closed` or `crashed`.
        status: SessionStatus,
        at: Timestamp,
        reason: CloseReason,
        /// Message for users.
        last_error: Option<String>,
    },
    /// `starting → ready`: all inputs of another session were repeated in it.
    SessionRestored {
        id: SessionId,
        /// The name of the other session.
        name: Option<String>,
        facts: Box<SessionFacts>,
    },
    /// A change of a session that has not ended.
    SessionChange { id: SessionId, change: SessionChange },
    /// Replaces the facts of a session.
    SessionFacts { id: SessionId, facts: Box<SessionFacts> },
    /// An event of a session that no other write implies.
    SessionEvent { session: SessionId, kind: SessionEventType, at: Timestamp, detail: Option<String> },
    /// The sequence number up to which the effects of a worker's messages are stored; in the same batch as these effects.
    WorkerSeq {
        session: SessionId,
        /// The worker's sequence number.
        seq: u64,
    },
    /// A new execution; its owner is the session's. `events` is not stored from here.
    ExecutionStarted {
        /// Chosen by the client; unique among the owner's unfinished executions.
        name: Option<String>,
        execution: Arc<Execution>,
    },
    /// `running ⇄ waiting`.
    ExecutionStatus {
        id: ExecutionId,
        /// `running` or `waiting`.
        status: ExecutionStatus,
    },
    /// Adds facts to an execution.
    ExecutionFacts { id: ExecutionId, facts: RepeatFacts },
    /// The end: status, `ended_at`, result, error, metrics and `degraded` of this record (`degraded` is never reset).
    ExecutionEnded(Arc<Execution>),
    /// A write of this execution was lost.
    ExecutionDegraded { id: ExecutionId },
    /// Output; (execution, seq) is unique.
    Events(Arc<[Event]>),
    /// After a start of the supervisor: every `quickjs` session of this node that is starting or ready and not listed here becomes
    /// `crashed(host_restart)`. Sessions of other nodes, which have supervisors of their own, are not affected. Its unfinished executions become `error` with code `WORKER_DIED`, and their tasks are withdrawn.
    HostRestart {
        at: Timestamp,
        /// Sessions with adopted workers.
        alive: Vec<SessionId>,
        /// Sessions that continue with another worker: their unfinished executions end.
        continued: Vec<SessionId>,
        /// The sessions of the earlier supervisor, if this one has begun others already.
        earlier: Option<Vec<SessionId>>,
        /// The reason of the end of all others, if it is known.
        why: Option<String>,
    },
    /// A new version of a program; creates the program if there is none of this name. Source that equals the newest version
    /// adds no version.
    ProgramVersion(Box<NewProgramVersion>),
    /// A version of a program that is imported in several batches: hidden, as that of a deleted program, until
    /// [`Self::ProgramImported`]. The program is the one with the id, and is created hidden with its first version.
    ProgramImport(Box<NewProgramVersion>),
    /// Shows a program that was imported in several batches. `Rejected(Conflict)` if there is another one with its name.
    ProgramImported { id: ProgramId },
    /// The version of a program that an execution runs.
    ProgramRun { execution: ExecutionId, program: ProgramId, version: u32 },
    /// Hides a program; executions keep their version.
    ProgramDelete { id: ProgramId, at: Timestamp },
    /// An item, pending or ended.
    ItemInsert(Box<ItemRow>),
    /// An answer that did not fit the schema: counts as an attempt.
    TaskAttempt { execution: ExecutionId, id: TaskId, at: Timestamp },
    /// The end of an item. `Rejected(Finished)` if it is not pending.
    ItemEnd {
        execution: ExecutionId,
        id: TaskId,
        outcome: ItemOutcome,
        /// The answer, or the message of the error that it becomes.
        answer: Option<String>,
        at: Timestamp,
        /// The checkpoint of the same batch, if its state has the answer.
        taken_at: Option<u64>,
    },
    /// Answers of items are in the state of a checkpoint: they need not be used again.
    ItemsTaken {
        execution: ExecutionId,
        /// Numbers of the items.
        items: Vec<u64>,
        checkpoint: u64,
    },
    /// An event for an execution that does not wait for it now.
    MailInsert { execution: ExecutionId, mail: MailRow },
    /// An event was given to an item: it is in the mailbox no longer.
    MailTake { execution: ExecutionId, seq: u64 },
    /// Pending items of an execution end as withdrawn.
    ItemsWithdraw { execution: ExecutionId, at: Timestamp },
    /// A state of a durable execution: the pages that changed.
    Checkpoint(Box<Checkpoint>),
    /// Deletes page versions that no checkpoint from `keep_from` on needs, and the checkpoints before it.
    CheckpointCompact {
        execution: ExecutionId,
        /// The oldest checkpoint that must stay complete.
        keep_from: u64,
        /// If present: later checkpoints are deleted too, while those after them wrote more than this many bytes; never the
        /// newest.
        keep_bytes: Option<u64>,
    },
    /// Drops the checkpoints of an execution behind its last pause, and what they wrote; all of them if it never paused. Written
    /// with the end of the execution, from whose checkpoints nothing goes on.
    CheckpointsTrim { execution: ExecutionId },
    /// `Rejected(TooLarge)` if the newest pages of an execution's state, [`DURABLE_PAGE_BYTES`] more for each, are larger than
    /// `most` bytes. Reads the sizes of all pages: to be used rarely, when old versions are deleted.
    ///
    /// [`DURABLE_PAGE_BYTES`]: vm_system_protocol::limits::DURABLE_PAGE_BYTES
    StateBound {
        execution: ExecutionId,
        /// Largest permitted size (bytes).
        most: u64,
    },
    /// Copies the state of another execution at a checkpoint, under the same number.
    CheckpointCopy { from: ExecutionId, checkpoint: u64, to: ExecutionId, at: Timestamp },
    /// Status and metrics of an unfinished execution.
    RunProgress {
        id: ExecutionId,
        /// `running` or `waiting`.
        status: ExecutionStatus,
        metrics: Metrics,
        /// Of a program.
        limits: Option<Box<UsedLimits>>,
    },
    /// The first write of a batch: the batch is refused as [`Fenced`](crate::StoreError::Fenced) unless its writer holds the execution.
    Guard(Guard),
    /// A supervisor was killed while it ran these executions.
    RunsKilled {
        /// Of those that still run.
        executions: Vec<ExecutionId>,
    },
    /// Removes an execution's name.
    ExecutionUnname { id: ExecutionId },
    /// Deletes an ended execution of a program with all its rows, and its session.
    RunDelete { id: ExecutionId },
    /// Sets a client's current execution: the default of its requests.
    CurrentSet { owner: Owner, client: String, execution: ExecutionId, at: Timestamp },
    /// A new schedule with the time at which it is due first; names are unique among the owner's.
    ScheduleInsert { schedule: Box<ScheduleRow>, due_at: Option<Timestamp> },
    /// A change of a schedule, if nobody else has changed it.
    ScheduleChange(Box<ScheduleChange>),
    /// Deletes a schedule; its executions continue.
    ScheduleDelete { id: ScheduleId },
    /// Claims an idempotency key for a request. `Rejected(Conflict)` if it was claimed at `expired_before` or later.
    KeyClaim(Box<KeyClaim>),
    /// Takes a key over that has no response, from a process that has ended. `Rejected(Conflict)` if another one holds it by now, or it
    /// has a response.
    KeyTakeOver {
        owner: Owner,
        key: String,
        /// The process that holds it, as it was read.
        from: Option<Incarnation>,
        to: Incarnation,
    },
    /// The response to the request that holds a key.
    KeyResponse {
        owner: Owner,
        key: String,
        /// The encoded response.
        reply: Vec<u8>,
    },
    /// Releases a key: the request changed nothing.
    KeyRelease { owner: Owner, key: String },
    /// A line of the audit log.
    Audit(Box<AuditEntry>),
    /// Sets or removes a meta value of the store.
    MetaSet { key: String, value: Option<Vec<u8>> },
    /// Deletes rows that ended before a point in time: events, executions, sessions, keys and audit entries, at most about
    /// `max_rows` rows. [`Applied::rows`] is their number; 0 = nothing left to delete.
    Prune {
        /// Rows that ended earlier may be deleted.
        before: Timestamp,
        /// Idempotency keys that were claimed earlier may be deleted.
        keys_before: Timestamp,
        /// Bound of the work in one turn.
        max_rows: u32,
    },
    /// Deletes an owner's rows that ended before a point in time, the oldest first: events, executions, sessions, at most about
    /// `max_rows` rows. [`Applied::rows`] is their number; 0 = nothing left to delete.
    PruneOwner {
        owner: Owner,
        /// Rows that ended earlier may be deleted.
        before: Timestamp,
        /// Bound of the work in one turn.
        max_rows: u32,
    },
}

impl Batch {
    /// The executions with incomplete records if this batch is lost. A step of a durable program is not among them:
    /// no other batch depends on it, and it is repeated from the stored state.
    pub fn incomplete(&self) -> impl Iterator<Item = ExecutionId> {
        let durable = self.0.iter().any(Write::is_of_a_durable_step);
        self.0.iter().filter(move |_| !durable).filter_map(Write::execution)
    }

    /// The executions whose rows this batch reads or changes. `None`: it names none and may be about any.
    pub fn subjects(&self) -> Option<Vec<ExecutionId>> {
        let mut subjects = Vec::new();
        self.0.iter().all(|write| write.add_subjects(&mut subjects)).then_some(subjects)
    }
}

/// The condition of a batch about an execution of a program: nobody else has taken it since, and its newest checkpoint (0: none) is the
/// one that the writer goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The writer is the holder with this fence.
    Held { execution: ExecutionId, fence: Fence, after: u64 },
    /// The writer becomes the holder with this fence; an earlier one is fenced off.
    Take { execution: ExecutionId, fence: Fence, after: u64 },
}

impl Guard {
    /// The execution that it is about.
    pub const fn execution(&self) -> ExecutionId {
        match self {
            Self::Held { execution, .. } | Self::Take { execution, .. } => *execution,
        }
    }
}

/// A change of a session by a request. The session's record has it only when it is stored: no reply may show what a restart would
/// take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// Another name.
    Name(String),
}

impl SessionChange {
    /// Makes the change in the record.
    pub fn apply(self, session: &mut Session) {
        match self {
            Self::Name(name) => session.name = Some(name),
        }
    }
}

impl Write {
    /// The execution that this write belongs to.
    fn execution(&self) -> Option<ExecutionId> {
        match self {
            Self::ExecutionStarted { execution, .. } | Self::ExecutionEnded(execution) => Some(execution.id),
            Self::ExecutionStatus { id, .. } | Self::ExecutionFacts { id, .. } => Some(*id),
            Self::Events(events) => events.first().map(|event| event.execution_id),
            _ => None,
        }
    }

    /// The sessions in whose lives this write is an event; a fork is one of its parent's, too.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        let (one, parent) = match self {
            Self::SessionInsert { session, .. } => (Some(session.id), session.runtime_meta.forked_from),
            Self::SessionReady { id }
            | Self::SessionRestoring { id, .. }
            | Self::SessionRestored { id, .. }
            | Self::SessionEnd { id, .. } => (Some(*id), None),
            Self::SessionEvent { session, .. } => (Some(*session), None),
            Self::ExecutionStarted { execution, .. } | Self::ExecutionEnded(execution) => {
                (Some(execution.session_id), None)
            }
            _ => (None, None),
        };
        one.into_iter().chain(parent)
    }

    /// Adds the executions whose rows this write reads or changes; false if it names none and may be about any.
    fn add_subjects(&self, subjects: &mut Vec<ExecutionId>) -> bool {
        match self {
            Self::ExecutionStarted { execution: of, .. } | Self::ExecutionEnded(of) => subjects.push(of.id),
            Self::ExecutionStatus { id, .. }
            | Self::ExecutionDegraded { id }
            | Self::ExecutionFacts { id, .. }
            | Self::ExecutionUnname { id }
            | Self::RunProgress { id, .. }
            | Self::RunDelete { id }
            | Self::ProgramRun { execution: id, .. }
            | Self::TaskAttempt { execution: id, .. }
            | Self::ItemEnd { execution: id, .. }
            | Self::ItemsTaken { execution: id, .. }
            | Self::MailInsert { execution: id, .. }
            | Self::MailTake { execution: id, .. }
            | Self::ItemsWithdraw { execution: id, .. }
            | Self::CheckpointCompact { execution: id, .. }
            | Self::CheckpointsTrim { execution: id }
            | Self::StateBound { execution: id, .. }
            | Self::CurrentSet { execution: id, .. } => subjects.push(*id),
            Self::Guard(guard) => subjects.push(guard.execution()),
            Self::RunsKilled { executions } => subjects.extend(executions),
            Self::Events(events) => subjects.extend(events.iter().map(|event| event.execution_id)),
            Self::ItemInsert(task) => subjects.push(task.execution),
            Self::Checkpoint(checkpoint) => subjects.push(checkpoint.execution),
            Self::CheckpointCopy { from, to, .. } => subjects.extend([*from, *to]),
            Self::HostRestart { .. } | Self::Prune { .. } | Self::PruneOwner { .. } => return false,
            // An execution of a program ends in the same batch as its session.
            _ => {}
        }
        true
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
    fn a_lost_task_of_a_session_marks_its_execution_as_incomplete() {
        let id = ExecutionId::from_bytes([1; 16]);
        let payload = EventPayload::console(ConsoleLevel::Log, "x".to_owned());
        let event = Event { execution_id: id, seq: 1, ts: Timestamp(1), payload };
        let progress = Write::RunProgress {
            id,
            status: ExecutionStatus::Waiting,
            metrics: Metrics::default(),
            limits: None,
        };
        let batch = Batch(vec![Write::Events(Arc::from([event])), progress]);
        assert_eq!(batch.incomplete().collect::<Vec<_>>(), [id]);
    }
}
