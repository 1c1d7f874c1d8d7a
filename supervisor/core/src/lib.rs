//! One session as a pure state machine: `step(input, now)` gives the actions that the owner task carries out.
//!
//! Absent by design: tokio, clocks, I/O, randomness, locks. Every event from outside is a [`SessionInput`], time included ([`Now`]);
//! every effect is a [`SessionAction`]. A seeded simulation drives thousands of histories (`core/simulation`).
//! # A session
//! ```text
//!            Spawned            Started + startup files ok
//!  Spawning ─────────▶ Starting ───────────────────────────▶ Ready
//!     │                   │                                   │
//!     │ close             │ close                             │ close (client, idle, ttl, supervisor's stop)
//!     ▼                   ▼                                   ▼
//!   (kill at once)     Killed ◀─── grace is over ────────── Closing      the running execution ends first, as
//!                        │                                    │          `cancelled`; then Shutdown is sent
//!                        │ Exited                             │ Exited
//!                        ▼                                    ▼
//!                      Ended ─── end committed ──▶ released
//! ```
//! - Any state → `Killed`: violation, limit, operator, failed start. The first decision is the *verdict*; later messages are dropped unread.
//! - Any state → `Ended`: the worker exited. [`exit::judge`] derives the closing reason from the verdict and the wait status.
//! - `Ended` is left only when the end is committed, as `closed` if it was requested, `crashed` if not; a failed commit is retried.
//! # An execution
//! ```text
//!  Loading ──▶ Running ──▶ ok | error | timeout | cancelled
//!     │           │ ▲
//!     ▼           ▼ │ the wall clock is paused
//!   refused     host call, or a task (`waiting`)
//! ```
//! - `Loading` only for files: the session is busy, but a missing file leaves no execution behind.
//! - *task*: `CC` is a host call that waits for an answer, perhaps for a long time ([`pending_task`]).
//! - *stop*: cancel, close or a limit. The worker is interrupted; its `Done` has the status of the stop; or it is killed.
//! - Before the worker gets it, types of its file may be checked ([`type_check`]).
//! - The start is written, and awaited only for a request with a key ([`dispatch`]): an adopted worker may have others that the store
//!   lacks ([`adoption`]). The end is one awaited commit: then come the reply, the last events for followers, and the acknowledgement.
//! # Forks and rollbacks
//! The worker of an idle session forks; each child becomes the worker of a new session ([`fork`]), or a frozen copy ([`rollback`]), a fork
//! of which replaces the worker later; so may one without state ([`replacement`]).
//! # The worker is hostile: [`messages`] ends the session after a message that a correct one cannot send in this state.

mod adoption;
mod close;
mod continuation;
mod crash;
mod deadlines;
mod dispatch;
mod drain;
pub mod durable;
mod execution;
mod exit;
mod finish;
mod fork;
mod input;
mod machine;
mod messages;
mod pending_task;
pub mod pressure;
mod record;
mod recovery;
mod replacement;
mod restart;
mod restoration;
mod rollback;
mod source_format;
mod start;
mod suspension;
mod type_check;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use continuation::Continuation;
pub use crash::with_fact;
pub use exit::{WorkerExitStatus, signal_name};
pub use input::{
    Activity, ChannelFault, CloseCause, ExecuteRequest, Executed, ForkFault, LibraryFailure, LibraryProblem,
    LoadFailure, LoadedSource, Now, Refusal, Respawned, SessionAction, SessionInput, SessionReply,
    SessionSpec, Source, SpawnFailure, SpawnFault, Token, WriteId,
};
pub use machine::{AdoptedExecution, SessionMachine};
pub use rollback::{CopyId, copies_of, copy_name, guard_named};
pub use source_format::{module_format, run_file_format};
pub use type_check::CheckedTypes;
