//! The phase of a session, and the one place where it changes ([`SessionMachine::enter`]). All transitions, each with its name:
//! ```text
//! New ────────┬─ created ───────────▶ Spawning     the row is being written, a worker is being started
//!             ├─ adopted ───────────▶ Ready        the worker outlived the previous supervisor
//!             └─ continued ─────────▶ Restoring    the previous supervisor was replacing the worker
//! Spawning ───┬─ spawned ───────────▶ SettingUp    the worker gets its `Start`
//!             ├─ killed ────────────▶ Killed       the session was closed meanwhile: no code has run in the worker
//!             ├─ replaced ──────────▶ Restoring    a restart: no worker could be started, the next attempt follows
//!             └─ ended ─────────────▶ Ended        no worker could be started, or none is wanted
//! SettingUp ──┬─ set up ────────────▶ Starting     the worker has sent `Started`: the startup files run
//!             ├─ restored ──────────▶ Ready        the worker is a fork of a frozen copy, whose startup files have run
//!             ├─ closed ────────────▶ Closing
//!             ├─ killed ────────────▶ Killed
//!             ├─ replaced ──────────▶ Restoring    a restart: the new worker has exited, too
//!             └─ ended ─────────────▶ Ended        the worker has exited
//! Starting ───┬─ started ───────────▶ Ready        the startup files have run
//!             ├─ closed ────────────▶ Closing
//!             ├─ killed ────────────▶ Killed
//!             ├─ replaced ──────────▶ Restoring    a restart: the new worker has exited, too
//!             └─ ended ─────────────▶ Ended        the worker has exited
//! Ready ──────┬─ closed ────────────▶ Closing      by a client, `ttl_s`, `idle_timeout_s` or the supervisor's stop
//!             ├─ killed ────────────▶ Killed       a violation, a limit, the operator
//!             ├─ replaced ──────────▶ Restoring    a rollback, or the worker has exited and `on_crash` continues the session
//!             └─ ended ─────────────▶ Ended        the worker has exited
//! Restoring ──┬─ respawned ─────────▶ Spawning     a restart: a worker without state is being started
//!             ├─ forked ────────────▶ SettingUp    a rollback: a fork of the frozen copy gets its `Start`
//!             ├─ not stored ────────▶ Ready        a requested rollback could not be stored: the worker goes on
//!             ├─ killed ────────────▶ Killed       the session ends, and the worker that is being replaced has not exited
//!             └─ ended ─────────────▶ Ended        the session ends, or the replacement failed
//! Closing ────┬─ killed ────────────▶ Killed       the grace has passed, or a violation
//!             └─ ended ─────────────▶ Ended        the worker has exited
//! Killed ─────┬─ replaced ──────────▶ Restoring    the worker has exited, and `on_crash` continues the session
//!             └─ ended ─────────────▶ Ended        the worker has exited, or did not within the deadline
//! Ended ──────── released ──────────▶ Released     the end is committed, or the store will never accept it
//! ```
//! The table in [`Phase::exits`] has the same rows; a test compares them, another one shows that the simulation takes each.

use super::input::{Now, SessionAction};
use super::machine::SessionMachine;
use vm_system_protocol::reason::CloseReason;

/// The phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing has happened yet.
    New,
    /// A worker is being started.
    Spawning,
    /// The set-up was sent to the worker.
    SettingUp,
    /// Startup files run.
    Starting,
    /// Accepts executions.
    Ready,
    /// The worker is being replaced: by a fork of a frozen copy (`rollback`), or by one without state (`restart`).
    Restoring,
    /// The session is to end; the worker may finish its execution.
    Closing,
    /// SIGKILL was sent.
    Killed,
    /// The worker has exited, the end is being recorded.
    Ended,
    /// Recorded.
    Released,
}

/// Why a phase changes: the names of the transitions in the module's drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhaseChange {
    Created,
    Adopted,
    Continued,
    Spawned,
    SetUp,
    Started,
    Replaced,
    Respawned,
    Forked,
    Restored,
    NotStored,
    Closed,
    Killed,
    Ended,
    Released,
}

type Exits = &'static [(PhaseChange, Phase)];

impl Phase {
    /// The transitions that leave this phase.
    const fn exits(self) -> Exits {
        use PhaseChange as Change;
        match self {
            Self::New => &[
                (Change::Created, Self::Spawning),
                (Change::Adopted, Self::Ready),
                (Change::Continued, Self::Restoring),
            ],
            Self::Spawning => &[
                (Change::Spawned, Self::SettingUp),
                (Change::Killed, Self::Killed),
                (Change::Replaced, Self::Restoring),
                (Change::Ended, Self::Ended),
            ],
            Self::SettingUp => &[
                (Change::SetUp, Self::Starting),
                (Change::Restored, Self::Ready),
                (Change::Closed, Self::Closing),
                (Change::Killed, Self::Killed),
                (Change::Replaced, Self::Restoring),
                (Change::Ended, Self::Ended),
            ],
            Self::Starting => &[
                (Change::Started, Self::Ready),
                (Change::Closed, Self::Closing),
                (Change::Killed, Self::Killed),
                (Change::Replaced, Self::Restoring),
                (Change::Ended, Self::Ended),
            ],
            Self::Ready => &[
                (Change::Closed, Self::Closing),
                (Change::Killed, Self::Killed),
                (Change::Replaced, Self::Restoring),
                (Change::Ended, Self::Ended),
            ],
            Self::Restoring => &[
                (Change::Respawned, Self::Spawning),
                (Change::Forked, Self::SettingUp),
                (Change::NotStored, Self::Ready),
                (Change::Killed, Self::Killed),
                (Change::Ended, Self::Ended),
            ],
            Self::Closing => &[(Change::Killed, Self::Killed), (Change::Ended, Self::Ended)],
            Self::Killed => &[(Change::Replaced, Self::Restoring), (Change::Ended, Self::Ended)],
            Self::Ended => &[(Change::Released, Self::Released)],
            Self::Released => &[],
        }
    }
}

/// The present phase of one session; written by [`SessionMachine::enter`] alone.
#[derive(Debug)]
pub(super) struct CurrentPhase {
    phase: Phase,
    /// A transition that the table does not have, until the session ends because of it.
    refused: Option<(Phase, PhaseChange, Phase)>,
}

impl CurrentPhase {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::New, refused: None }
    }
}

impl SessionMachine {
    pub(super) const fn phase(&self) -> Phase {
        self.phase.phase
    }

    /// Changes the phase. A transition that the table does not have is a fault of this crate: it fails a test or a simulation, and
    /// anywhere else it is refused, and the session ends with this step.
    pub(super) fn enter(&mut self, next: Phase, change: PhaseChange) {
        let from = self.phase.phase;
        if from.exits().contains(&(change, next)) {
            #[cfg(test)]
            taken::note(from, change);
            self.phase.phase = next;
            return;
        }
        debug_assert!(false, "a transition that the table does not have: {from:?} {change:?} {next:?}");
        self.phase.refused.get_or_insert((from, change, next));
    }

    /// Ends the session after a refused transition: nobody knows what its worker may do now.
    pub(super) fn end_if_refused(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if let Some((from, change, next)) = self.phase.refused.take() {
            let what = format!("{from:?} cannot become {next:?} ({change:?})");
            self.condemn(CloseReason::InternalError(what), now, out);
        }
    }
}

/// The transitions that this process has taken.
#[cfg(test)]
pub(super) mod taken {
    use super::{Phase, PhaseChange};
    use std::sync::Mutex;

    static TAKEN: Mutex<Vec<(Phase, PhaseChange)>> = Mutex::new(Vec::new());

    pub(in crate::phase) fn note(from: Phase, change: PhaseChange) {
        let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !taken.contains(&(from, change)) {
            taken.push((from, change));
        }
    }

    /// The rows of the table that were not taken.
    pub(crate) fn missing() -> Vec<(Phase, PhaseChange)> {
        let taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rows = super::tests::rows().into_iter().map(|(from, change, _)| (from, change));
        rows.filter(|row| !taken.contains(row)).collect()
    }
}

#[cfg(test)]
mod tests;
