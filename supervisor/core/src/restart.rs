//! `on_crash: restart`: a new worker, which has run the startup files and nothing else, replaces one that has exited.
//!
//! ```text
//!  Ready ── exit ──▶ the new generation is stored ──▶ back-off ──▶ Spawning ──▶ Start, startup files ──▶ Ready
//!                        ▲                                            │                │
//!                        └──────────── a failure counts as a crash ───┴────────────────┘
//! ```
//! The first restart follows at once, each further one within [`RECOVERY_WINDOW_MS`](vm_system_protocol::limits::RECOVERY_WINDOW_MS)
//! after twice the time of the one before. What was lost is said to the next execution, once, and to a later supervisor's if this one
//! exits before.

use super::input::{Now, Respawned, SessionAction};
use super::machine::SessionMachine;
use super::phase::{Phase, PhaseChange};
use super::replacement::{RestoringStage, RollbackCause, StateSource};
use vm_system_protocol::limits::RESTART_BACK_OFF_MS;
use vm_system_protocol::model::{LastRestart, SessionFacts};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::Start;

/// The reason of the last restart, if no execution has reported it.
pub(super) fn unreported(facts: &SessionFacts) -> Option<String> {
    facts.restart.as_ref().filter(|restart| !restart.reported).map(|restart| restart.reason.clone())
}

/// The warning of the next execution about a restart.
pub(super) fn warning(reason: &str) -> String {
    format!(
        "the session was restarted, because its worker ended ({reason}): its variables, functions and loaded modules are lost; \
         only its startup files have run since"
    )
}

impl SessionMachine {
    /// Whether a new worker is on its way to replace one that has exited.
    pub fn is_restarting(&self) -> bool {
        self.copies.restoring.as_ref().is_some_and(|restoring| restoring.from == StateSource::Template)
    }

    pub(super) fn restarting_because(&self) -> String {
        match self.copies.restoring.as_ref().map(|restoring| &restoring.cause) {
            Some(RollbackCause::Crash(reason)) => {
                format!("it is being restarted, because its worker ended ({reason})")
            }
            _ => "it is being restarted".to_owned(),
        }
    }

    pub(super) fn note_restart(&mut self, reason: String, now: Now) {
        self.record.runtime_meta.restart = Some(LastRestart {
            at: Timestamp(now.unix_ms),
            reason: reason.clone(),
            reported: false,
            generation: self.generation() + 1,
            recoveries: self.recent_recoveries(now),
        });
        self.copies.unreported_restart = Some(reason);
        self.creation.startup.clear();
        (self.creation.spawn_failure, self.creation.library_failure) = (None, None);
    }

    /// The reason of a restart that no execution has reported yet; the session's facts say that one has.
    pub(super) fn restart_reported(&mut self) -> Option<String> {
        let reason = self.copies.unreported_restart.take()?;
        if let Some(restart) = &mut self.record.runtime_meta.restart {
            restart.reported = true;
        }
        Some(reason)
    }

    /// The new generation is stored: its worker may exist, after a while.
    pub(super) fn back_off(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if self.is_replacing() {
            return self.respawn(out);
        }
        let earlier = self.copies.recoveries.len().saturating_sub(1);
        let Some(doubled) = earlier.checked_sub(1) else { return self.respawn(out) };
        if let Some(restoring) = &mut self.copies.restoring {
            restoring.stage = RestoringStage::BackOff;
        }
        self.timers.phase_at = Some(now.mono_ms + (RESTART_BACK_OFF_MS << doubled));
    }

    /// Starts the next worker.
    pub(super) fn respawn(&mut self, out: &mut Vec<SessionAction>) {
        if let Some(restoring) = &mut self.copies.restoring {
            restoring.stage = RestoringStage::Forking;
        }
        self.timers.phase_at = None;
        self.enter(Phase::Spawning, PhaseChange::Respawned);
        out.push(SessionAction::Respawn);
    }

    /// The next worker exists.
    pub(super) fn respawned(&mut self, respawned: Respawned, now: Now, out: &mut Vec<SessionAction>) {
        if let Some(restoring) = &mut self.copies.restoring {
            restoring.stage = RestoringStage::SettingUp;
        }
        let Respawned { random_seed, startup, policy } = respawned;
        let limits = policy.wire.limits.clone();
        self.creation.start = Some(Box::new(Start { random_seed, limits, ..(*self.copies.start).clone() }));
        self.creation.startup = startup.into();
        self.creation.startup_policy = policy;
        self.spawned(now, out);
    }
}
