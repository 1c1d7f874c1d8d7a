//! The replacement of a worker of another build than its supervisor's, by a deadline that an administrator sets. The deadline is a fact
//! of the session, so that its owner sees it and a later supervisor keeps it.
//!
//! A session with `on_crash: restart` is restarted as soon as it is idle, at the deadline also while it is busy; the new worker is of
//! the supervisor's build. The others end at the deadline.

use super::caller::Token;
use super::execution::Current;
use super::input::{Activity, CloseCause, Now, SessionAction};
use super::machine::SessionMachine;
use super::phase::Phase;
use super::record::Mark;
use super::replacement::RollbackCause;
use vm_system_protocol::model::OnCrash;
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

/// The sentence of an ended session about its end.
pub(super) const WHY: &str = "its worker was of another build than its supervisor's, and an administrator had such workers replaced by \
     a deadline (`ops upgrade --drain-by`); `vm-system session restore` makes a session in which its successful inputs are repeated";

/// The deadline of one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    pub(super) at: Timestamp,
    /// The same (`mono_ms`); none once it has passed.
    pub(super) due: Option<u64>,
}

impl Drain {
    pub(super) fn due_at(at: Timestamp, now: Now) -> Self {
        let left = at.0.saturating_sub(now.unix_ms).max(0).unsigned_abs();
        Self { at, due: Some(now.mono_ms + left) }
    }
}

impl SessionMachine {
    /// The session's deadline.
    pub fn drain_at(&self) -> Option<Timestamp> {
        self.drain.map(|drain| drain.at)
    }

    /// When that passes (`mono_ms`), unless the session ends already.
    pub(super) fn drain_due(&self) -> Option<u64> {
        self.drain?.due.filter(|_| !self.is_ending())
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase(), Phase::Closing | Phase::Killed | Phase::Ended | Phase::Released)
    }

    /// Whether the next worker replaces one of another build.
    pub(super) fn is_replacing(&self) -> bool {
        let restoring = self.copies.restoring.as_ref();
        restoring.is_some_and(|one| matches!(one.cause, RollbackCause::Crash(CloseReason::Replaced)))
    }

    pub fn activity(&self) -> Activity {
        match &self.current {
            _ if self.is_suspended() => Activity::Suspended,
            Some(Current::Running(running)) if running.tasks.pending.is_some() => Activity::Waiting,
            None if self.phase() == Phase::Ready => Activity::Idle,
            _ => Activity::Busy,
        }
    }

    /// A fork of a session with a deadline has it, too.
    pub(super) fn begin_with_drain(&mut self, now: Now) {
        self.drain = self.record.runtime_meta.drain_at.map(|at| Drain::due_at(at, now));
    }

    /// Sets the deadline, or withdraws it; replies when that is stored.
    pub(super) fn drain(
        &mut self,
        token: Option<Token<()>>,
        at: Option<Timestamp>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if self.phase() == Phase::New || self.is_ending() || self.drain_at() == at {
            if let Some(token) = token {
                Self::reply(token, Ok(()), out);
            }
            return;
        }
        self.forget_drain();
        if let Some(at) = at {
            self.record.runtime_meta.drain_at = Some(at);
            self.drain = Some(Drain::due_at(at, now));
        }
        let mark = token.map_or(Mark::Nothing, |token| Mark::FactsChanged { token });
        self.store_facts(mark, None, out);
    }

    /// The worker is replaced by one of this supervisor's build.
    pub(super) fn forget_drain(&mut self) {
        if self.drain.take().is_some() {
            self.record.runtime_meta.drain_at = None;
        }
    }

    /// Restarts an idle session that has a deadline.
    pub(super) fn replace_idle(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let restarts = self.drain.is_some() && self.copies.on_crash == OnCrash::Restart;
        if restarts && self.phase() == Phase::Ready && self.refuses_idle_request().is_none() {
            self.condemn(CloseReason::Replaced, now, out);
        }
    }

    /// The deadline has passed.
    pub(super) fn tick_drain(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let Some(drain) = &mut self.drain else { return };
        if drain.due.take_if(|due| *due <= now.mono_ms).is_none() || self.is_restarting() || self.is_ending()
        {
            return;
        }
        if self.copies.on_crash == OnCrash::Restart && self.phase() == Phase::Ready {
            self.condemn(CloseReason::Replaced, now, out);
        } else {
            self.begin_close(CloseCause::Replaced, now, out);
        }
    }
}
