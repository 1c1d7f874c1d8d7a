//! The beginning with a session whose worker was being replaced when its supervisor exited. What was begun is in the session's facts,
//! in the commit of its new generation: the restart begins anew, the rollback forks the same frozen copy again. A worker that the earlier
//! supervisor had started for that is killed. Each continuation counts as a recovery, so that a session that ends its supervisors ends,
//! too.

use super::input::{Now, SessionAction, SessionSpec};
use super::machine::SessionMachine;
use super::phase::{Phase, PhaseChange};
use super::record::Pending;
use super::replacement::{ReplacedWorker, Replacement, RestoringStage, RollbackCause, StateSource};
use super::rollback::{CopyId, LostEffect, last_before_guard};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{LastRollback, SessionFacts};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

/// The replacement of a worker that an earlier supervisor has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The frozen copy with its name in the keeper; none for a restart.
    pub copy: Option<(CopyId, SessionId)>,
    reason: String,
    recoveries: Vec<Timestamp>,
}

impl Continuation {
    /// The work of a session that is starting; none if it was being created.
    pub fn recorded(facts: &SessionFacts) -> Option<Self> {
        if let Some(rollback) = rollback_of_worker(facts) {
            let copy = Some(copy_of(rollback)?);
            return Some(Self {
                copy,
                reason: rollback.reason.clone(),
                recoveries: rollback.recoveries.clone(),
            });
        }
        let restart =
            facts.restart.as_ref().filter(|restart| facts.generation == Some(restart.generation))?;
        Some(Self { copy: None, reason: restart.reason.clone(), recoveries: restart.recoveries.clone() })
    }
}

/// The rollback with which the present worker began.
fn rollback_of_worker(facts: &SessionFacts) -> Option<&LastRollback> {
    facts.rollback.as_ref().filter(|rollback| facts.generation == Some(rollback.generation))
}

/// The copy of which the present worker is a fork.
pub(super) fn copy_of_worker(facts: &SessionFacts) -> Option<SessionId> {
    rollback_of_worker(facts).and_then(copy_of).map(|(_, name)| name)
}

fn copy_of(rollback: &LastRollback) -> Option<(CopyId, SessionId)> {
    Some((rollback.checkpoint.map_or(CopyId::Guard, CopyId::Checkpoint), rollback.copy?))
}

impl SessionMachine {
    /// A session that continues with another worker, as an earlier supervisor had begun. Its frozen copy was adopted.
    pub fn continue_replacement(
        spec: SessionSpec,
        continuation: Continuation,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) -> Self {
        let mut machine = Self::without_creation(spec, now);
        let Continuation { copy, reason, recoveries } = continuation;
        let from = match copy {
            None => StateSource::Template,
            Some((copy, name)) => {
                machine.keep_copy(copy, name);
                StateSource::Copy(copy)
            }
        };
        machine.begin_with_drain(now);
        machine.forget_lost_copies(out);
        machine.resume_recoveries(&recoveries, now);
        let too_many = machine.too_many_recoveries(now);
        machine.copies.recoveries.push_back(now.mono_ms);
        let (cause, stage) = (RollbackCause::Continued(reason), RestoringStage::Storing);
        let worker = ReplacedWorker::Gone;
        machine.copies.restoring = Some(Replacement { from, cause, stage, worker });
        machine.enter(Phase::Restoring, PhaseChange::Continued);
        machine.begin_restoring(now);
        if too_many {
            machine.end(CloseReason::HostRestart, now, out);
        } else {
            machine.replace_worker((Vec::new(), Pending::default()), now, out);
        }
        machine
    }

    /// The copy from which the session continues outlived its supervisor.
    fn keep_copy(&mut self, copy: CopyId, name: SessionId) {
        let CopyId::Checkpoint(number) = copy else { return self.keep_guard(name) };
        self.copies.names.insert(copy, name);
        let recorded = self.record.runtime_meta.checkpoints.iter().flatten();
        if let Some(checkpoint) = recorded.into_iter().find(|checkpoint| checkpoint.number == number) {
            self.copies.checkpoints.push(checkpoint.clone());
            self.copies.lost = self.copies.lost.saturating_sub(1);
        }
    }

    /// After its copy was made the worker reports that. It may have run something since if it has sent more, and runs nothing.
    pub(super) fn examine_guard(&mut self, name: SessionId, last_committed: u64, runs: bool) {
        let last_before = last_before_guard(name, &self.record.runtime_meta);
        let is_current = last_before.is_some_and(|last_before| last_committed <= last_before + 1);
        if !is_current && !runs {
            self.copies.guard_lacks = Some(LostEffect::OfLast);
        }
    }

    pub(super) fn keep_guard(&mut self, name: SessionId) {
        self.copies.names.insert(CopyId::Guard, name);
        self.copies.has_guard = true;
    }
}
