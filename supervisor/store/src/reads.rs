//! Every read of the store, once: its name, its arguments and its result. The trait that a store implements and the methods of
//! [`StoreHandle`](crate::StoreHandle) come from this table, and so do decorators of stores. Knows no implementation.

use super::{BoxFuture, Lane};
use prelude::*;

/// The types that the table names: whoever expands a macro with it imports them all.
pub(crate) mod prelude {
    pub(crate) use std::sync::Arc;
    pub(crate) use vm_system_protocol::ids::{
        ExecutionId, ProgramId, ScheduleId, SessionId, TaskId, TemplateId,
    };
    pub(crate) use vm_system_protocol::model::{Event, SessionEvent, WaitingFor};
    pub(crate) use vm_system_protocol::time::Timestamp;
    pub(crate) use vm_system_record::{
        AuditEntry, CheckpointRow, DueSchedule, ExecutionQuery, ExecutionRow, IdKind, ItemRow, KeyRow,
        LibraryRow, LiveSessionRow, MailRow, Owner, Page, PageVersion, PolicySnapshot, ProgramCode,
        ProgramQuery, ProgramRow, PromptBeginning, RunHead, RunQuery, RunRow, ScheduleRow, Scope,
        SessionQuery, SessionRow, StoreError, TaskQuery, TemplateRow, UnfinishedRun, VersionRow,
    };
}

/// Expands a macro with all reads. Each has its borrowed arguments in brackets, then those that are `Copy` in parentheses. The owner
/// whose rows alone a read returns is among the borrowed ones ([`RowsOwner`]): the read takes its turn in the lane of this owner.
macro_rules! for_each_read {
    ($with:ident) => {
        $with! {
            /// An active template.
            template[scope: Scope](id: TemplateId) -> Option<Box<TemplateRow>>;
            /// An active template by its name.
            template_by_name[scope: Scope, name: str]() -> Option<Box<TemplateRow>>;
            /// Active templates, newest first.
            templates[scope: Scope](page: Page) -> Vec<TemplateRow>;
            /// Installed libraries by name.
            libraries[]() -> Vec<LibraryRow>;

            /// A session.
            session[scope: Scope](id: SessionId) -> Option<Box<SessionRow>>;
            /// The policy that a session was created with.
            session_policy[](id: SessionId) -> Option<Arc<PolicySnapshot>>;
            /// Sessions, newest first.
            sessions[scope: Scope, filter: SessionQuery](page: Page) -> Vec<SessionRow>;
            /// All starting and ready sessions with workers of their own, for the start of a supervisor.
            live_sessions[]() -> Vec<LiveSessionRow>;
            /// Events of a session after a number; at most about `limit`.
            session_events[](session: SessionId, after: u64, limit: u32) -> Vec<SessionEvent>;

            /// An execution, without its events.
            execution[scope: Scope](id: ExecutionId) -> Option<Box<ExecutionRow>>;
            /// An owner's execution by its name: the unfinished one, else the newest.
            execution_by_name[owner: Owner, name: str]() -> Option<Box<ExecutionRow>>;
            /// Executions of a session, newest first, without their events.
            executions[scope: Scope](session: SessionId, filter: ExecutionQuery, page: Page) -> Vec<ExecutionRow>;
            /// At most `limit` events of an execution in order (0 = all), until their content reaches `bytes`; at least one.
            some_events[](execution: ExecutionId, after_seq: u64, limit: u32, bytes: usize) -> Vec<Event>;

            /// At most `limit` ids between two bounds (inclusive), ascending.
            ids[scope: Scope](kind: IdKind, from: [u8; 16], to: [u8; 16], limit: u32) -> Vec<[u8; 16]>;
            /// An idempotency key.
            key[owner: Owner, key: str]() -> Option<KeyRow>;
            /// The subjects of an owner's idempotency keys between two texts (exclusive) that were claimed at or after a time, by key.
            key_subjects[owner: Owner, from: str, to: str](since: Timestamp, limit: u32) -> Vec<[u8; 16]>;
            /// Audit entries with their numbers, newest first, below a number.
            audit[scope: Scope](before: Option<u64>, limit: u32) -> Vec<(u64, AuditEntry)>;
            /// A meta value of the store.
            meta[key: str]() -> Option<Vec<u8>>;

            /// The newest version of an active program.
            program[scope: Scope](id: ProgramId) -> Option<Box<ProgramRow>>;
            /// The newest version of an active program by its name.
            program_by_name[scope: Scope, name: str]() -> Option<Box<ProgramRow>>;
            /// Active programs, newest first.
            programs[scope: Scope, filter: ProgramQuery](page: Page) -> Vec<ProgramRow>;
            /// Source and code of a version, of deleted programs too.
            program_code[](id: ProgramId, version: u32) -> Option<Box<ProgramCode>>;
            /// Versions of a program, of deleted ones too, newest first, below a number.
            program_versions[](program: ProgramId, below: Option<u32>, limit: u32) -> Vec<VersionRow>;
            /// Versions of a program with this source (SHA-256), newest first.
            versions_of_source[](program: ProgramId, source_hash: [u8; 32], limit: u32) -> Vec<VersionRow>;
            /// Number of active programs, and of executions of programs.
            program_counts[scope: Scope]() -> (u64, u64);

            /// Executions of programs, newest first.
            runs[scope: Scope, filter: RunQuery](page: Page) -> Vec<RunRow>;
            /// An execution of a program; at most one.
            run_by_id[scope: Scope](id: ExecutionId) -> Vec<RunRow>;
            /// An execution of a program by its name: the unfinished one, else the newest; at most one.
            run_by_name[owner: Owner, name: str]() -> Vec<RunRow>;
            /// Everything that is needed to resume an execution of a program, from one snapshot; none: it runs no program.
            run_head[](execution: ExecutionId) -> Option<Box<RunHead>>;
            /// Whether an execution of a program runs, or is due by this time, or a schedule is: it is to go on without a request.
            goes_on[](until: Timestamp) -> bool;
            /// Executions of programs that have not ended, by their sessions, behind one of these.
            unfinished_runs[](behind: Option<SessionId>, limit: u32) -> Vec<UnfinishedRun>;
            /// Program and version that an execution runs.
            program_run[](execution: ExecutionId) -> Option<(ProgramId, u32)>;
            /// The current execution of an owner's client: the default of its requests.
            current[owner: Owner, client: str]() -> Option<ExecutionId>;

            /// A schedule.
            schedule[scope: Scope](id: ScheduleId) -> Option<Box<ScheduleRow>>;
            /// An owner's schedule by its name.
            schedule_by_name[owner: Owner, name: str]() -> Option<Box<ScheduleRow>>;
            /// Schedules, newest first.
            schedules[scope: Scope](page: Page) -> Vec<ScheduleRow>;
            /// Number of an owner's schedules.
            schedule_count[owner: Owner]() -> u64;
            /// At most `limit` schedules that are due by a time, behind a position, in the order of their times.
            due_schedules[](after: (Timestamp, ScheduleId), until: Timestamp, limit: u32) -> Vec<DueSchedule>;

            /// A task.
            task[scope: Scope](id: TaskId) -> Option<Box<ItemRow>>;
            /// The oldest pending task of an execution.
            pending_task[](execution: ExecutionId) -> Option<Box<ItemRow>>;
            /// Pending tasks oldest first, those of an execution in the order of their checkpoints, others newest first.
            tasks[scope: Scope](filter: TaskQuery, page: Page) -> Vec<ItemRow>;
            /// The beginnings (at most `bytes`) of the pending prompts of these executions, in their order.
            prompts[scope: Scope, executions: [ExecutionId]](bytes: u32) -> Vec<PromptBeginning>;
            /// The question of the last pause of an execution as of a checkpoint, or now.
            task_of[](execution: ExecutionId, checkpoint: Option<u64>) -> Option<Box<ItemRow>>;
            /// The number of things of each kind that an execution waits for.
            waiting_for[](execution: ExecutionId) -> WaitingFor;
            /// Pending items of a program as of a checkpoint, in their order.
            items_at[](execution: ExecutionId, checkpoint: u64) -> Vec<ItemRow>;
            /// Items whose answers a program has not used, in the order of the answers; once it has ended, with those that were
            /// withdrawn.
            abandoned[](execution: ExecutionId, limit: u32) -> Vec<ItemRow>;
            /// Events that have come for an execution and are not used, in their order.
            mailbox[](execution: ExecutionId) -> Vec<MailRow>;
            /// Executions of an owner that wait for an event of this name, by their ids, behind one of them.
            event_waiters[owner: Owner, name: str](behind: Option<ExecutionId>, limit: u32) -> Vec<ExecutionId>;
            /// Items of an execution behind a number, in their order.
            items_of_run[](execution: ExecutionId, after: u64, limit: u32) -> Vec<ItemRow>;

            /// The newest checkpoint of an execution; at most one.
            last_checkpoint[](execution: ExecutionId) -> Vec<CheckpointRow>;
            /// Checkpoints of an execution in order.
            checkpoints[](execution: ExecutionId) -> Vec<CheckpointRow>;
            /// A part of the state as of a checkpoint: the newest version of each page after `behind`, by number, up to this many
            /// bytes. Fewer bytes: they are the last pages.
            state_part[](execution: ExecutionId, checkpoint: u64, behind: Option<u64>, bytes: usize) -> Vec<(u64, Vec<u8>)>;
            /// Versions of an execution's pages after a page and checkpoint, in this order, up to this many bytes; at least one.
            page_versions[](execution: ExecutionId, after: Option<(u64, u64)>, bytes: usize) -> Vec<PageVersion>;
        }
    };
}
pub(crate) use for_each_read;

/// The form in which a store keeps a borrowed argument while the read waits for its turn.
pub type OwnedArgument<T> = <T as ToOwned>::Owned;

macro_rules! declare_reads {
    ($($(#[$doc:meta])* $name:ident[$($lent:ident: $borrowed:ty),*]($($arg:ident: $copied:ty),*) -> $result:ty;)*) => {
        /// The reads of a store. Each reads from the last commit, in a turn of the lane; one of which the future is dropped while it
        /// waits does not run.
        pub trait StoreReads: Send + Sync {
            $(
                $(#[$doc])*
                fn $name(
                    &self,
                    lane: Lane,
                    $($lent: OwnedArgument<$borrowed>,)*
                    $($arg: $copied),*
                ) -> BoxFuture<'_, Result<$result, StoreError>>;
            )*
        }
    };
}
for_each_read!(declare_reads);

/// A borrowed argument of a read.
pub(super) trait RowsOwner {
    /// The owner whose rows alone a read with this argument returns; `None`: any.
    fn rows_owner(&self) -> Option<&Owner> {
        None
    }
}

impl RowsOwner for Owner {
    fn rows_owner(&self) -> Option<&Owner> {
        Some(self)
    }
}

impl RowsOwner for Scope {
    fn rows_owner(&self) -> Option<&Owner> {
        match self {
            Self::All => None,
            Self::Owner(owner) => Some(owner),
        }
    }
}

impl RowsOwner for str {}
impl RowsOwner for [ExecutionId] {}
impl RowsOwner for SessionQuery {}
impl RowsOwner for ProgramQuery {}
impl RowsOwner for RunQuery {}
