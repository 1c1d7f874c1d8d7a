//! One session as a pure state machine: `step(input, now)` gives the actions that the owner task carries out.
//!
//! Invariants of absence: no tokio, no clock, no I/O, no randomness, no lock. Whatever happens outside comes in as an
//! [`Input`], time included ([`Now`]); whatever is to happen outside goes out as an [`Action`]. So a seeded simulation
//! can drive thousands of histories through the very code that ships (`core/simulation`).
//!
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
//! - Any state → `Killed`: this machine decided to kill (protocol violation, limit's hard stop, operator, failed start).
//!   The first decision is kept as the *verdict*; messages that still arrive are dropped unread.
//! - Any state → `Ended`: the worker died. Why is [`exit::judge`]d from the verdict and the wait status.
//! - `Ended` is left only when the end is committed: a store that fails is asked again, with growing pauses.
//! - The session is recorded as `closed` if its end was asked for, as `crashed` if not.
//!
//! # An execution
//! ```text
//!  Loading ──▶ Running ──▶ ok | error | timeout | cancelled
//!     │           │ ▲
//!     ▼           ▼ │ the wall clock stands still
//!   refused     host call, or a question (`waiting`)
//! ```
//! - `Loading` only for files: the session is busy, but a file that is not there leaves no execution behind.
//! - *question*: `CC` is a host call that somebody outside answers, perhaps much later ([`pending_task`]).
//! - *stop*: cancel, close or a limit that this side measured. The worker is interrupted; `Done` ends the execution with
//!   the status of the stop, whatever the worker says; if none comes within the grace, the verdict is to kill.
//! - The start is written before dispatch and not awaited; the end is one awaited commit, after which the caller is
//!   answered, followers see the last events, and the worker may be told to forget what it kept.
//!
//! # A fork
//! Of an idle session, whose worker makes other sessions' workers out of itself ([`fork`]). It keeps the session busy like
//! an execution, for less than a millisecond each. What is made is a session with a machine of its own: it begins at
//! `Spawning` like any other, with a worker that is there already and no startup files.
//!
//! # The worker is hostile
//! Each message is judged in [`messages`]. Anything that an honest worker cannot say at that moment ends the session.

mod close;
mod deadlines;
pub mod durable;
mod execution;
mod exit;
mod finish;
mod fork;
mod input;
mod machine;
mod messages;
mod pending_task;
mod record;
mod source_format;
mod start;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use exit::{ExitStatus, signal_name};
pub use input::{
    Action, ChannelFault, CloseCause, ExecuteRequest, Executed, ForkFault, Input, LibraryFailure,
    LibraryProblem, LoadFailure, LoadedSource, Now, Refusal, SessionReply, SessionSpec, Source, SpawnFailure,
    SpawnFault, Token, Write, WriteId,
};
pub use machine::{AdoptedExecution, SessionMachine};
pub use source_format::{module_format, run_file_format};
