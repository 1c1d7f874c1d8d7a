//! Suspension of an idle session: its worker is stopped (SIGSTOP) until a request needs it. The record says `ready`: whoever takes the
//! session over lets its worker run, and a supervisor that does not know the suspension needs to know nothing.
//!
//! Never while something runs. Whatever needs the worker resumes it first (`wake`).

use super::caller::Token;
use super::input::{Now, SessionAction};
use super::machine::SessionMachine;
use super::phase::Phase;
use super::record::Pending;
use vm_system_protocol::model::{Session, SessionEventType, SessionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_record::Write;

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

/// Part of the idle timeout after which a session is suspended at the latest, so that it is suspended before it ends.
const PART_OF_IDLE: u64 = 2;

impl SessionMachine {
    /// The session is suspended after this time without a request (milliseconds); none: only on request. Before its end by
    /// `idle_timeout_s` in any case.
    pub fn suspend_after(&mut self, idle_ms: Option<u64>, now: Now) {
        self.suspension.after_ms = idle_ms;
        // An adopted session is idle from the beginning.
        if self.phase() == Phase::Ready && self.current.is_none() {
            self.timers.suspend_at = self.suspends_at(now);
        }
    }

    pub fn is_suspended(&self) -> bool {
        self.suspension.is_suspended
    }

    /// When an idle session is suspended.
    pub(super) fn suspends_at(&self, now: Now) -> Option<u64> {
        let after = self.suspension.after_ms?;
        let most = self.lifetime.idle_ms.map_or(after, |idle| after.min(idle / PART_OF_IDLE));
        (!self.suspension.is_suspended).then(|| now.mono_ms + most)
    }

    /// `None`: the supervisor suspends it, if it is idle.
    pub(super) fn suspend(&mut self, token: Option<Token<Session>>, now: Now, out: &mut Vec<SessionAction>) {
        if let Some(refusal) = self.refuses_idle_request() {
            if let Some(token) = token {
                Self::reply(token, Err(refusal), out);
            }
            return;
        }
        if !std::mem::replace(&mut self.suspension.is_suspended, true) {
            self.timers.suspend_at = None;
            out.push(SessionAction::Signal(SIGSTOP));
            self.note_suspension(SessionEventType::Suspended, now, out);
        }
        if let Some(token) = token {
            Self::reply(token, Ok(self.shown_record()), out);
        }
    }

    /// A client's request to let the worker run again.
    pub(super) fn resume(&mut self, token: Token<Session>, now: Now, out: &mut Vec<SessionAction>) {
        // The input has woken it.
        if let Some(refusal) = self.refuses_idle_request().filter(|_| self.current.is_none()) {
            return Self::reply(token, Err(refusal), out);
        }
        if self.current.is_none() {
            self.rest(now);
        }
        Self::reply(token, Ok(self.record.clone()), out);
    }

    /// Something needs the worker.
    pub(super) fn wake(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if std::mem::take(&mut self.suspension.is_suspended) {
            out.push(SessionAction::Signal(SIGCONT));
            self.note_suspension(SessionEventType::Resumed, now, out);
        }
    }

    /// The worker has exited.
    pub(super) fn forget_suspension(&mut self) {
        self.suspension.is_suspended = false;
    }

    /// The record as clients see it.
    pub fn shown_record(&self) -> Session {
        let mut record = self.record.clone();
        if self.suspension.is_suspended {
            record.status = SessionStatus::Suspended;
        }
        record
    }

    fn note_suspension(&mut self, kind: SessionEventType, now: Now, out: &mut Vec<SessionAction>) {
        let at = Timestamp(now.unix_ms);
        let event = Write::SessionEvent { session: self.id(), kind, at, detail: None };
        self.persist(Pending::default(), vec![event], false, out);
    }
}
