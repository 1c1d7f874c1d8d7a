//! The recovery from an end of a worker that nobody requested: the session ends, or continues from its guard copy
//! ([`super::replacement`]) or with an empty state ([`super::restart`]), but not more than a few times within a while.

use super::execution::Current;
use super::input::{Now, Refusal, SessionAction};
use super::machine::SessionMachine;
use super::phase::{Phase, PhaseChange};
use super::record::Pending;
use super::replacement::{ReplacedWorker, Replacement, RestoringStage, RollbackCause, StateSource};
use super::rollback::{Copies, CopyId};
use vm_system_protocol::limits::{RECOVERIES, RECOVERY_WINDOW_MS};
use vm_system_protocol::model::{OnCrash, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

const WINDOW_MS: i64 = RECOVERY_WINDOW_MS.cast_signed();

impl Copies {
    /// The recovery after a crash, as a participle.
    pub(super) fn recovery(&self) -> &'static str {
        match self.on_crash {
            OnCrash::Restart => "restarted",
            OnCrash::Close | OnCrash::Rollback => "rolled back",
        }
    }

    /// Whether the session continues after a crash with this reason. A worker that violated the protocol is hostile, and so is its
    /// copy; a worker with an empty state is not.
    fn covers(&self, reason: &CloseReason) -> bool {
        match self.on_crash {
            OnCrash::Close => false,
            OnCrash::Rollback => {
                self.has_guard
                    && self.restoring.is_none()
                    && matches!(
                        reason,
                        CloseReason::Limit(_)
                            | CloseReason::Seccomp(_)
                            | CloseReason::Signal(_)
                            | CloseReason::Unknown
                            | CloseReason::OutOfMemory
                            | CloseReason::Cancelled
                            | CloseReason::ExitedUnasked(_)
                    )
            }
            OnCrash::Restart => {
                let is_requested = matches!(
                    reason,
                    CloseReason::Exited
                        | CloseReason::Idle
                        | CloseReason::Expired
                        | CloseReason::KilledByOperator
                        | CloseReason::MemoryShort
                        | CloseReason::HostRestart
                );
                let rolls_back = self.restoring.as_ref().is_some_and(|one| one.from != StateSource::Template);
                !is_requested && !rolls_back
            }
        }
    }
}

impl SessionMachine {
    /// Decides what follows the end of a worker, or of the attempt to start one: another worker, or the end of the session.
    pub(super) fn worker_ended(&mut self, reason: CloseReason, now: Now, out: &mut Vec<SessionAction>) {
        if self.continues_after(&reason, now) {
            self.continue_after(reason, now, out);
        } else {
            self.end(reason, now, out);
        }
    }

    /// Whether the session continues with another worker after this end of its worker.
    fn continues_after(&self, reason: &CloseReason, now: Now) -> bool {
        let was_ready = matches!(self.phase(), Phase::Ready | Phase::Killed)
            && self.record.status == SessionStatus::Ready;
        self.copies.covers(reason)
            && (was_ready || self.is_restarting())
            && self.ending.closing.is_none()
            && self.ending.enders.is_empty()
            && (*reason == CloseReason::Replaced || !self.too_many_recoveries(now))
    }

    pub(super) fn too_many_recoveries(&self, now: Now) -> bool {
        let recent = self.copies.recoveries.iter().filter(|at| now.mono_ms - **at < RECOVERY_WINDOW_MS);
        recent.count() >= RECOVERIES
    }

    /// When there were rollbacks or restarts within the window: another supervisor counts on.
    pub(super) fn recent_recoveries(&self, now: Now) -> Vec<Timestamp> {
        let ago = |at: &u64| i64::try_from(now.mono_ms - at).unwrap_or(i64::MAX);
        let recent = self.copies.recoveries.iter().map(ago).filter(|ago| *ago < WINDOW_MS);
        recent.map(|ago| Timestamp(now.unix_ms.saturating_sub(ago))).collect()
    }

    /// Counts on where an earlier supervisor stopped.
    pub(super) fn resume_recoveries(&mut self, recorded: &[Timestamp], now: Now) {
        let ago = |at: &Timestamp| now.unix_ms.saturating_sub(at.0).max(0);
        let recent = recorded.iter().map(ago).filter(|ago| *ago < WINDOW_MS);
        // The clock of this supervisor may have begun later: then it counts a little longer.
        let at = |ago: i64| now.mono_ms.saturating_sub(ago.unsigned_abs());
        self.copies.recoveries = recent.map(at).collect();
    }

    /// The sentence of the session's error about rollbacks and restarts.
    pub(super) fn why_not_continued(&self, reason: &CloseReason, now: Now) -> Option<String> {
        let (most, seconds) = (RECOVERIES, RECOVERY_WINDOW_MS / 1_000);
        let what = self.copies.recovery();
        (self.copies.covers(reason) && self.too_many_recoveries(now))
            .then(|| format!("; it was {what} {most} times within {seconds} s before"))
    }

    /// The worker has exited: the execution ends, and the session continues from the guard copy or its template.
    fn continue_after(&mut self, reason: CloseReason, now: Now, out: &mut Vec<SessionAction>) {
        let what = self.copies.recovery();
        let why = || Refusal::NotReady(format!("its worker ended ({reason}), and it is being {what}"));
        // A startup file that is not read any more is no failure of its own.
        self.enter(Phase::Restoring, PhaseChange::Replaced);
        self.drop_loading(why(), now, out);
        self.drop_forks(&why(), out);
        let (batch, pending) = match self.current.take() {
            Some(Current::Running(running)) => {
                if running.has_host_work() {
                    out.push(SessionAction::DropHostWork);
                }
                self.cut_short(*running, &reason, now)
            }
            _ => (Vec::new(), Pending::default()),
        };
        self.copies.recoveries.retain(|at| now.mono_ms - at < RECOVERY_WINDOW_MS);
        if reason != CloseReason::Replaced {
            self.copies.recoveries.push_back(now.mono_ms);
        }
        // The new worker is of this supervisor's build.
        if self.copies.on_crash == OnCrash::Restart {
            self.forget_drain();
        }
        if reason == CloseReason::Replaced {
            // They are of the replaced build, too.
            self.give_up_checkpoints(out);
        }
        let crash = super::crash::CrashRecord {
            reason: &reason,
            execution: pending.execution,
            usage: self.ending.usage,
            was_stopped: self.ending.was_stopped,
        };
        self.record.runtime_meta.crash = Some(crash.fact());
        (self.ending.verdict, self.ending.operator_signal, self.ending.usage) = (None, None, None);
        self.ending.was_stopped = false;
        let (cause, stage) = (RollbackCause::Crash(reason), RestoringStage::Storing);
        let from = match self.copies.on_crash {
            OnCrash::Restart => StateSource::Template,
            OnCrash::Close | OnCrash::Rollback => StateSource::Copy(CopyId::Guard),
        };
        let worker = ReplacedWorker::Gone;
        self.copies.restoring = Some(Replacement { from, cause, stage, worker });
        self.begin_restoring(now);
        self.replace_worker((batch, pending), now, out);
    }
}
