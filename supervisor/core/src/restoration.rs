//! A session that restores an ended one: the inputs of the other one are repeated in it, one after the other, by a caller. Which
//! inputs, and whether their results are the same, is not decided here.
//!
//! Until the last one its row says `starting` and has no name, so that a supervisor that starts in between ends the session, and it
//! accepts nothing but these inputs. It has no guard copy: its worker's exit ends the restoration.

use super::caller::Token;
use super::input::{Now, Refusal, SessionAction};
use super::machine::SessionMachine;
use super::phase::{Phase, PhaseChange};
use super::record::{Mark, Pending};
use vm_system_protocol::model::{RestoredInputs, Session, SessionStatus};
use vm_system_record::Write;

impl SessionMachine {
    /// The session's worker is set up and the startup files have run: inputs can be repeated.
    pub(super) fn await_inputs(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        self.enter(Phase::Ready, PhaseChange::Started);
        if let Some(token) = self.creation.creator.take() {
            Self::reply(token, Ok(self.record.clone()), out);
        }
        self.rest(now);
    }

    pub(super) fn finish_restoration(
        &mut self,
        token: Token<Session>,
        name: Option<String>,
        restored: RestoredInputs,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(refusal) = self.refuses_repetition() {
            return Self::reply(token, Err(refusal), out);
        }
        self.is_restoration = false;
        self.record.status = SessionStatus::Ready;
        self.record.name.clone_from(&name);
        self.record.runtime_meta.restored = Some(restored);
        let facts = Box::new(self.record.runtime_meta.clone());
        let write = Write::SessionRestored { id: self.id(), name, facts };
        let pending = Pending { mark: Mark::Restored { token }, ..Pending::default() };
        self.persist(pending, vec![write], true, out);
        self.rest_changed(None, now, out);
    }

    /// Why an input that is to be repeated is refused.
    pub(super) fn refuses_repetition(&self) -> Option<Refusal> {
        if !self.is_restoration || self.phase() != Phase::Ready || self.ending.verdict.is_some() {
            return Some(Refusal::NotReady(self.not_ready_because()));
        }
        self.current.is_some().then_some(Refusal::Busy)
    }
}
