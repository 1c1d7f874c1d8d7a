//! One session as a pure state machine: `step(input, now)` gives the actions that the owner task carries out. Events from outside, time
//! ([`Now`]) included, are [`SessionInput`]s, effects are [`SessionAction`]s: no tokio, clock, I/O, randomness or lock. A simulation drives it.
//! # A session
//! ```text
//!  New ──▶ Spawning ──▶ SettingUp ──▶ Starting ──▶ Ready ◀── adopted
//!             ▲             ▲                        │ a rollback, or the worker exits and `on_crash` continues the session
//!             │ restart     │ rollback               ▼
//!             └─────────────┴─────────────────── Restoring
//!
//!  Closing: the running execution ends first, as `cancelled`; then `Shutdown` is sent
//!  any with a worker ──▶ Closing ──▶ Killed ──▶ Ended ──▶ Released
//! ```
//! - [`phase`] has every transition, with its name. Any phase with a worker → `Killed`: violation, limit, operator, failed start. The first
//!   decision is the *verdict*; later messages are dropped unread.
//! - Any → `Ended`: the worker exited. [`exit::close_reason`] derives the closing reason from the verdict and the wait status.
//! - `Ended` is left only when the end is committed, as `closed` if it was requested, `crashed` if not; a failed commit is retried.
//! # An execution
//! ```text
//!  Loading ──▶ Running ──▶ ok | error | timeout | cancelled
//!     │           │ ▲
//!     ▼           ▼ │ the wall clock is paused
//!   refused     host call, or a task (`waiting`)
//! ```
//! - `Loading` only for files: a missing one leaves no execution behind. The worker may get it after a check of types ([`type_check`]).
//! - *task*: `CC` waits for an answer, perhaps for long ([`pending_task`]). *stop*: cancel, close or a limit: the worker is interrupted, and
//!   its `Done` has the status of the stop, or it is killed.
//! - The start is written, and awaited only for a request with a key ([`dispatch`]; others may be missing, [`adoption`]). The end is one
//!   awaited commit: then come the reply, the last events for followers, and the acknowledgement.
//! # Forks and rollbacks: a child of an idle worker gets a session ([`fork`]) or is a frozen copy ([`rollback`]); that, or one without state ([`replacement`]), may replace it.
//! # The worker is hostile: [`messages`] ends the session after a message that a correct one cannot send in this state.

mod adoption;
mod caller;
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
mod phase;
pub mod pressure;
mod record;
mod recovery;
mod replacement;
mod request;
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
pub use caller::{ReplyToCaller, SessionReply, Token};
pub use continuation::Continuation;
pub use exit::signal_name;
pub use input::{
    Activity, ChannelFault, CloseCause, ExecuteRequest, Executed, ForkFault, LibraryFailure, LibraryProblem,
    LoadFailure, LoadedSource, Now, Refusal, Respawned, SessionAction, SessionInput, SessionSpec, Source,
    SpawnFailure, SpawnFault, WriteId,
};
pub use machine::{AdoptedExecution, SessionMachine};
pub use request::SessionRequest;
pub use rollback::{CopyId, copies_of, copy_name, last_before_guard, of_guard};
pub use source_format::{module_format, run_file_format};
pub use type_check::CheckedTypes;
pub use vm_system_protocol::reason::WorkerExitStatus;
