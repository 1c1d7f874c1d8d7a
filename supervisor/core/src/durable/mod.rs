//! One execution of a durable program as a pure machine: `step(event, now) → actions`. No runtime, no clock, no I/O.
//!
//! ```text
//!            ┌────────────── answer, timer, start of the supervisor ──────────────┐
//!            ▼                                                                    │
//!   Starting (a worker is born and told code and pages) ──▶ Running ──▶ Held ──▶ Warm ──▶ Cold (nothing in memory)
//!            ▲                                               │  ▲        │
//!            └──────── the worker died: again from the ──────┘  └────────┘ goes on: steps, effect
//!                      last checkpoint, a few times              (or Calling: a host call is under way)
//! ```
//! - *Held*: the worker stands at a checkpoint whose batch is being written. One batch has everything: pages, the
//!   question or the end, status, output, and the answer that led here. Only then is anybody told.
//! - An answer is used at once and committed with the checkpoint it leads to, or by itself when that takes longer than
//!   [`machine::COMMIT_MS`]: until one of the two is stored nobody was told that it was taken, and no effect was made.
//! - An *effect* (a call that others can see) is made after the checkpoint before it is stored, under an id of that
//!   checkpoint; after a death or a restart it is made again under the same id.
//! - What the store has is enough to go on: [`input::StoredExecution`]. Whatever this machine knows beyond it may be lost at any
//!   moment.
//! - The worker is hostile: a message that does not fit costs it its life, and that counts as a death.

mod answers;
mod commit;
mod input;
mod machine;
mod options;
pub mod schema;
mod spent;
mod state;
mod stops;
mod stored;
#[cfg(test)]
mod tests;

pub(super) use answers::{judged, unfit, when_due};
pub use input::{
    DurableAction, DurableInput, DurableSpec, Fresh, HostWork, LoadFrom, Refused, RunStatus, StoredExecution,
    Unstored, life,
};
pub use machine::DurableMachine;
pub use options::{TIMEOUT_MAX_MS, task_id, task_of_pause};
pub use spent::{REFILL_MS, Spent};
pub(super) use stored::answer_of;
pub use stored::{fresh_record, session_record};
