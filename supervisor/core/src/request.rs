//! Requests to a session whose reply is its record, and the changes of its row that are no more than that.

use super::caller::Token;
use super::input::{Now, Refusal, SessionAction};
use super::machine::SessionMachine;
use super::phase::Phase;
use super::record::{Mark, Pending};
use vm_system_protocol::model::{RestoredInputs, Session};
use vm_system_record::{SessionChange, Write};

/// A request to a session whose reply is its record.
#[derive(Debug, Clone)]
pub enum SessionRequest {
    /// Stop the worker of an idle session until a request needs it.
    Suspend,
    /// Let the worker run again.
    Resume,
    /// Continue from a checkpoint (its number or name; the newest if absent).
    Rollback { checkpoint: Option<String> },
    /// Another name, which no other session of the owner has.
    Rename { name: String },
    /// All inputs of the session that this one restores were repeated.
    FinishRestoration {
        /// The session's name from now on.
        name: Option<String>,
        /// The record of the restoration.
        restored: RestoredInputs,
    },
}

impl SessionRequest {
    /// Whether it needs an idle session: it waits while the session is busy briefly.
    pub const fn needs_idle_session(&self) -> bool {
        matches!(self, Self::Suspend | Self::Rollback { .. })
    }
}

impl SessionMachine {
    pub(super) fn request(
        &mut self,
        token: Token<Session>,
        request: SessionRequest,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        match request {
            SessionRequest::Suspend => self.suspend(Some(token), now, out),
            SessionRequest::Resume => self.resume(token, now, out),
            SessionRequest::Rollback { checkpoint } => {
                self.roll_back(token, checkpoint.as_deref(), now, out);
            }
            SessionRequest::Rename { name } => self.change(token, SessionChange::Name(name), out),
            SessionRequest::FinishRestoration { name, restored } => {
                self.finish_restoration(token, name, restored, now, out);
            }
        }
    }

    /// Changes the session's row, and its record when that is stored.
    fn change(&mut self, token: Token<Session>, change: SessionChange, out: &mut Vec<SessionAction>) {
        if self.is_restoration || self.phase() != Phase::Ready || self.ending.verdict.is_some() {
            return Self::reply(token, Err(Refusal::NotReady(self.not_ready_because())), out);
        }
        let write = Write::SessionChange { id: self.id(), change: change.clone() };
        let pending = Pending { mark: Mark::Changed { token, change }, ..Pending::default() };
        self.persist(pending, vec![write], true, out);
    }
}
