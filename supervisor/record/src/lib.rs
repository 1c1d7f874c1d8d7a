//! The store's interface as data: rows, writes, filters of lists, their errors, and the retention rules.
//!
//! Shared by the crates that decide (`core`, `ops`) and the one that stores (`store`). No database, no runtime, no clock, no I/O.
//!
//! Reading order: [`rows`], [`items`], [`schedule`], [`batch`], [`query`], [`error`], [`retention`].

mod batch;
mod error;
mod items;
mod query;
mod repeat;
mod retention;
mod rows;
mod schedule;

pub use batch::{Applied, Batch, Guard, SessionChange, Write};
pub use error::{Entity, Rejection, StorageLimit, StoreError};
pub use items::{ITEMS_FROM, ItemOutcome, ItemRow, MailRow, UnfinishedRun, is_rest};
pub use query::{
    Cursor, ExecutionQuery, IdKind, Page, PageVersion, ProgramQuery, PromptBeginning, RunQuery, SessionQuery,
    TaskQuery,
};
pub use query::{PAGE_BYTES, is_last_page, weight_of_event};
pub use repeat::RepeatFacts;
pub use retention::{CLIENTS_OF_AN_OWNER, KEPT_AFTER_END, PRUNE_EVERY, PRUNE_ROWS, earlier, oldest_id_at};
pub use retention::{KEY_LIFE, Retention};
pub use rows::{
    AuditEntry, Checkpoint, CheckpointRow, ClaimKind, ClaimedRun, ExecutionRow, Fence, Incarnation, KeyClaim,
    KeyRow, LetGo, LibraryRow, LiveSessionRow, NewProgramVersion, Owner, PolicySnapshot, ProgramCode,
    ProgramRow, RecordedWorktree, RunHead, RunRow, RunningExecutionRow, Scope, SessionRow, SpentCalls,
    SpentLimits, TemplateRow, UsedLimits, VersionRow,
};
pub use rows::{INCOMPLETE, RUN_HEAD_STATE_BYTES, http_audit};
pub use schedule::{
    DueSchedule, SCHEDULES_OF_AN_OWNER, ScheduleChange, ScheduleRow, ScheduleSpec, ScheduleState,
};
pub use vm_system_protocol::model::WaitKind;
