//! What is recorded, as data: rows, the changes of them, the questions about them, how both fail, and what is forgotten when.
//!
//! The vocabulary between those who decide (`core`) and those who keep (`store`). No database, no runtime, no clock, no I/O.
//!
//! Reading order: [`rows`], [`batch`], [`query`], [`error`], [`retention`].

mod batch;
mod error;
mod query;
mod retention;
mod rows;

pub use batch::{Applied, Batch, Write};
pub use error::{Entity, Rejection, StoreError};
pub use query::{Answer, Cursor, IdKind, Page, PageVersion, Query, SessionQuery};
pub use query::{PAGE_BYTES, is_last_page, weight_of_event};
pub use retention::{CLIENTS_OF_AN_OWNER, PRUNE_EVERY, PRUNE_ROWS, earlier, oldest_id_at};
pub use retention::{KEY_LIFE, Retention};
pub use rows::STANDING_BYTES;
pub use rows::{
    AuditEntry, Checkpoint, CheckpointRow, DueTask, ExecutionRow, KeyClaim, KeyRow, LibraryRow,
    NewProgramVersion, Owner, PolicySnapshot, ProgramCode, ProgramRow, RunRow, Scope, SessionRow, Standing,
    TaskOutcome, TaskRow, TemplateRow, VersionRow,
};
