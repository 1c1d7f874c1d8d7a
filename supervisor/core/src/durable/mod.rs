//! One execution of a durable program as a pure machine: `step(input, now) → actions`. No runtime, no clock, no I/O.
//!
//! ```text
//!            ┌────────────── answer, timer, start of the supervisor ──────────────┐
//!            ▼                                                                    │
//!   Starting (a worker is started; gets code and pages) ──▶ Running ──▶ Held ──▶ Warm ──▶ Cold (nothing in memory)
//!            ▲                                               │  ▲        │
//!            └───── the worker exited: again from the ───────┘  └────────┘ continues: steps, effect
//!                      last checkpoint, a few times              (or Calling: a host call is under way)
//! ```
//! - *Held*: the worker waits at a checkpoint while the batch is being written. The batch holds everything: pages, the task or
//!   the end, status, output, and the answer that led here. No caller gets a reply before the batch is stored.
//! - An answer is used at once and committed with the checkpoint it leads to, or alone when that takes longer than
//!   [`machine::COMMIT_MS`]. Until one of the two is stored, its caller gets no reply and no effect is carried out.
//! - *Items* (`CC.async`, `sleep`, `waitFor`) are promises that the program waits for beside its pauses. Their answers are accepted at
//!   any time, kept in order, and given to the program when it has nothing else to do ([`items`]). An answer is *taken* in the checkpoint
//!   whose state has it; until then a crash gives it to the program again.
//! - An *effect* (a call that others can see) is carried out after the checkpoint before it is stored, under an id of that
//!   checkpoint; after an exit of the worker or a restart it is repeated under the same id.
//! - The response of an HTTP request is part of the state, which is stored before the program goes on: cause `response`.
//! - The stored rows are enough to resume: [`input::StoredExecution`]. Any other state of this machine may be lost at any
//!   time.
//! - The worker is hostile: it is killed at an invalid message, and that counts as an exit.

mod answers;
mod commit;
mod effects;
mod input;
mod items;
mod machine;
mod mailbox;
mod options;
pub mod schema;
mod spent;
mod state;
mod stops;
mod stored;
#[cfg(test)]
mod tests;

pub use answers::SubmittedAnswer;
pub(super) use answers::{unfit, when_due};
pub use input::{
    DurableAction, DurableInput, DurableRefusal, DurableSpec, EventWrites, Fresh, HostCallRequest, LoadFrom,
    MAILBOX_BYTES, MAILBOX_EVENTS, RequestEffect, RunStatus, RunToken, StoredExecution, Unstored, life,
};
pub use machine::DurableMachine;
pub use options::{TIMEOUT_MAX_MS, item_id, task_id, task_of_pause};
pub use spent::REFILL_MS;
pub use state::RunActivity;
pub(super) use stored::answer_of;
pub use stored::{fresh_record, session_record};
