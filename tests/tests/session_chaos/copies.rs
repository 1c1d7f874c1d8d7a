//! Copies of sessions: forks, checkpoints and rollbacks to them.

use crate::driver::{ANY, Driver, Failure, Outcome};
use crate::history::Until;
use crate::model::Made;
use vm_system_protocol::control::{ErrorCode, SessionAddCheckpoint, SessionFork, SessionRollback};
use vm_system_tests::killer::Strike;

/// The kills that end a checkpoint.
const END_COPIES: [Strike; 5] =
    [Strike::Supervisor, Strike::Everything, Strike::Keeper, Strike::Worker, Strike::FullDisk];

impl Driver<'_> {
    pub(crate) fn fork(&mut self, chosen: usize) -> Outcome<()> {
        let created_after = self.strikes.ended();
        let parent = self.known[chosen].session.id.to_string();
        match self.request(SessionFork { session: parent, count: 1 }) {
            Ok(mut forks) => {
                let fork = forks.remove(0);
                let parent = self.known[chosen].clone();
                let state = self.history(&parent).state(&parent, Until::Forked(fork.id));
                self.totals.forks += 1;
                self.add(fork, parent.on_crash, created_after, (state.tokens, state.unknown));
                // Not more at a time than before.
                self.close(chosen)
            }
            Err(Failure::Refused(error)) if error.code == ErrorCode::CapacityExceeded => {
                assert!(self.strikes.any_since(0, ANY), "{error:?}");
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    pub(crate) fn checkpoint(&mut self, chosen: usize) -> Outcome<()> {
        let after = self.strikes.ended();
        let session = self.known[chosen].session.id.to_string();
        let result = self.request(SessionAddCheckpoint { session, name: None });
        let copies = &mut self.known[chosen].copies;
        match result {
            Ok(made) => {
                self.totals.checkpoints += 1;
                copies.made.push(made.number);
                copies.present.push(Made { number: made.number, after });
                Ok(())
            }
            // Too many, or the worker was killed before it had forked.
            Err(Failure::Refused(error)) if error.code == ErrorCode::CapacityExceeded => Ok(()),
            Err(failure) => {
                copies.made_unknown += usize::from(failure.may_have_happened());
                Err(failure)
            }
        }
    }

    /// Back to one of its checkpoints; makes the first one if there is none.
    pub(crate) fn roll_back(&mut self, chosen: usize) -> Outcome<()> {
        let Some(last) = self.known[chosen].copies.present.len().checked_sub(1) else {
            return self.checkpoint(chosen);
        };
        let at = self.random.index(last + 1);
        let Made { number, after } = self.known[chosen].copies.present[at];
        let session = self.known[chosen].session.id.to_string();
        let result = self.request(SessionRollback { session, checkpoint: Some(number.to_string()) });
        let copies = &mut self.known[chosen].copies;
        match result {
            Ok(_) => {
                self.totals.rollbacks += 1;
                copies.rolled_back.push(number);
                Ok(())
            }
            Err(Failure::Refused(error)) if error.code == ErrorCode::NotFound => {
                assert!(self.strikes.any_since(after, &END_COPIES), "{error:?} of {:#?}", self.known[chosen]);
                copies.present.remove(at);
                Ok(())
            }
            Err(failure) => {
                // It may have ended in the middle of it.
                let is_busy =
                    matches!(&failure, Failure::Refused(error) if error.code == ErrorCode::SessionBusy);
                copies.rolled_back_unknown.extend((!is_busy).then_some(number));
                Err(failure)
            }
        }
    }
}
