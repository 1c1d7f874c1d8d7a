//! Frozen copies of a session's worker: how they are made, listed and given up. [`super::replacement`] is how the session continues from
//! one of them.
//!
//! A copy is a fork that never gets a `Start`: the owner task stops it, and it runs nothing. *Checkpoints* are copies that clients
//! request. With `on_crash: rollback` there is one more, the *guard copy*: it is made when the session becomes idle, so that it has the state
//! before each execution and after the last one. The one before is kept until there is the next: a worker that exits in between costs
//! the effect of one execution on the state, and not the state.

use super::caller::Token;
use super::close::StopCause;
use super::execution::{Current, ExecutionJob};
use super::fork::{ForkPurpose, Forking};
use super::input::{Now, Refusal, SessionAction};
use super::machine::SessionMachine;
use super::phase::Phase;
use super::record::{Mark, Pending};
use super::replacement::{Replacement, RestoringStage, StateSource};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::limits::CHECKPOINTS;
use vm_system_protocol::model::{
    LostCheckpoints, OnCrash, SessionCheckpoint, SessionEventType, SessionFacts,
};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::Start;
use vm_system_record::Write;

/// A frozen copy of a session's worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyId {
    /// The checkpoint with this number.
    Checkpoint(u64),
    Guard,
}

/// The name of a frozen copy in the keeper, and the child's of a fork that may become one. No session has such an id: theirs are UUIDs of
/// version 7.
pub fn copy_name(session: SessionId, order: u64) -> SessionId {
    let mut name = [0; 16];
    name[..8].copy_from_slice(&copies_of(session));
    name[8..].copy_from_slice(&order.to_be_bytes());
    SessionId::from_bytes(name)
}

/// How the names of the copies of a session begin.
pub fn copies_of(session: SessionId) -> [u8; 8] {
    const VERSION_8: u8 = 0x80;
    let mut name = [0; 8];
    name.copy_from_slice(&session.as_bytes()[8..]);
    name[6] = VERSION_8 | (name[6] & 0x0f);
    name
}

/// The mark of a guard copy in the order of its fork.
const GUARD: u64 = 1;

/// The order of a fork: in the upper half the number of the worker's last message, in the lower one what differs between forks, and the
/// mark of a guard copy. With a number that is too large a guard copy has no mark, and no other supervisor uses it.
pub(super) fn fork_order(forks: u64, last_seq: u64, is_guard: bool) -> u64 {
    let last_seq = u32::try_from(last_seq);
    let mark = if is_guard && last_seq.is_ok() { GUARD } else { 0 };
    (u64::from(last_seq.unwrap_or(0)) << 32) | ((forks << 1) & u64::from(u32::MAX)) | mark
}

/// How the name of a guard copy begins; none for other names.
pub fn of_guard(name: SessionId) -> Option<[u8; 8]> {
    guard_named(name).map(|(of_session, _)| of_session)
}

/// The number of the last message that the worker of a session with these facts had sent before the guard copy of this name: what the
/// copy has is in the store if that message is. The messages of a worker that was made from the copy begin after it.
pub fn last_before_guard(name: SessionId, facts: &SessionFacts) -> Option<u64> {
    let (_, last_seq) = guard_named(name)?;
    Some(if super::continuation::copy_of_worker(facts) == Some(name) { 0 } else { last_seq })
}

fn guard_named(name: SessionId) -> Option<([u8; 8], u64)> {
    let (of_session, order) = name.as_bytes().split_first_chunk::<8>()?;
    let order = u64::from_be_bytes(order.try_into().ok()?);
    (order & GUARD != 0).then_some((*of_session, order >> 32))
}

/// The effect on the state that a guard copy does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LostEffect {
    Of(ExecutionId),
    /// Perhaps: the copy was taken over, and the worker has sent messages since.
    OfLast,
}

impl fmt::Display for LostEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(execution) => {
                write!(f, "the state lacks the effect of execution {execution}, which had ended")
            }
            Self::OfLast => f.write_str("the state may lack the effect of the last execution"),
        }
    }
}

/// The frozen copies of a session, and how it continues after the end of its worker.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) on_crash: OnCrash,
    /// Counts the session's workers from 1.
    pub(super) generation: u64,
    last_number: u64,
    pub(super) checkpoints: Vec<SessionCheckpoint>,
    pub(super) has_guard: bool,
    /// The guard copy is of the time before this: no execution runs until there is another.
    pub(super) guard_lacks: Option<LostEffect>,
    /// The keeper's names of the copies.
    pub(super) names: HashMap<CopyId, SessionId>,
    /// Checkpoints that ended with the previous supervisor.
    pub(super) lost: usize,
    /// Times of the last rollbacks or restarts after crashes (`mono_ms`).
    pub(super) recoveries: VecDeque<u64>,
    /// The reason of a restart that no execution has reported yet.
    pub(super) unreported_restart: Option<String>,
    /// The message that the next worker gets.
    pub(super) start: Box<Start>,
    pub(super) restoring: Option<Replacement>,
}

impl Copies {
    pub(super) fn new(on_crash: OnCrash, start: &Start, facts: &SessionFacts) -> Self {
        Self {
            on_crash,
            generation: facts.generation.unwrap_or(1),
            last_number: facts.last_checkpoint.unwrap_or(0),
            checkpoints: Vec::new(),
            has_guard: false,
            guard_lacks: None,
            names: HashMap::new(),
            lost: facts.checkpoints.as_ref().map_or(0, Vec::len),
            recoveries: VecDeque::new(),
            unreported_restart: super::restart::unreported(facts),
            start: Box::new(start.clone()),
            restoring: None,
        }
    }

    pub(super) fn find(&self, reference: &str) -> Option<usize> {
        let number = reference.parse().ok();
        self.checkpoints.iter().position(|checkpoint| {
            Some(checkpoint.number) == number || checkpoint.name.as_deref() == Some(reference)
        })
    }
}

impl SessionMachine {
    /// The checkpoints, oldest first.
    pub fn checkpoints(&self) -> &[SessionCheckpoint] {
        &self.copies.checkpoints
    }

    /// Checkpoints that ended with the previous supervisor.
    pub fn lost_checkpoints(&self) -> usize {
        self.copies.lost
    }

    /// Counts the session's workers from 1.
    pub fn generation(&self) -> u64 {
        self.copies.generation
    }

    /// Whether the guard copy is being made: less than a millisecond, after which the session accepts requests.
    pub fn is_making_guard(&self) -> bool {
        matches!(&self.current, Some(Current::Forking(forking)) if forking.is_of_guard())
            && self.channel_usable()
    }

    /// Whether it accepts requests again very soon: the guard copy is being made, or a client has cancelled the running execution, which
    /// ends within [`INTERRUPT_GRACE_MS`](vm_system_protocol::limits::INTERRUPT_GRACE_MS), or its worker does; or an adopted worker, which
    /// runs nothing according to the store, has not replied yet or ends an unrecorded execution, for each of which it has about as long.
    pub fn is_busy_briefly(&self) -> bool {
        let is_ending = || {
            self.phase() == Phase::Ready
                && self.channel_usable()
                && matches!(&self.current, Some(Current::Running(running))
                    if running.stopping.stop.is_some_and(StopCause::is_of_client))
        };
        let is_adopted = || {
            self.phase() == Phase::Ready
                && self.channel_usable()
                && self.current.is_none()
                && (self.peer.adoption.is_awaited() || self.peer.adoption.has_unrecorded())
        };
        self.is_making_guard() || is_ending() || is_adopted()
    }

    /// Whether a checkpoint is being made.
    pub fn is_making_checkpoint(&self) -> bool {
        matches!(&self.current, Some(Current::Forking(forking))
            if matches!(forking.purpose, ForkPurpose::Checkpoint { .. }))
    }

    /// Whether the fork of a copy is expected ([`SessionAction::ForkCopy`]).
    pub fn awaits_fork_of_copy(&self) -> bool {
        self.phase() == Phase::Restoring && self.stage() == Some(RestoringStage::Forking)
    }

    pub(super) fn stage(&self) -> Option<RestoringStage> {
        self.copies.restoring.as_ref().map(|restoring| restoring.stage)
    }

    /// The name of the guard copy in the keeper.
    #[cfg(test)]
    pub(super) fn guard(&self) -> Option<SessionId> {
        self.copies.names.get(&CopyId::Guard).copied().filter(|_| self.copies.has_guard)
    }

    /// Whether a job needs a guard copy first.
    pub(super) fn lacks_guard(&self) -> bool {
        let is_current = self.copies.has_guard && self.copies.guard_lacks.is_none();
        self.copies.on_crash == OnCrash::Rollback && !is_current && !self.is_restoration
    }

    /// No execution runs, and the state may have changed: by this execution, or the session has another one.
    pub(super) fn rest_changed(
        &mut self,
        ended: Option<ExecutionId>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        self.rest(now);
        if self.copies.on_crash != OnCrash::Rollback || self.phase() != Phase::Ready || self.is_restoration {
            return;
        }
        match ended {
            Some(execution) => self.copies.guard_lacks = Some(LostEffect::Of(execution)),
            None => self.drop_guard(out),
        }
        // An adopted worker may run an execution that the store does not have: the next request orders the copy.
        let is_free = self.current.is_none() && !self.is_taking_over();
        if is_free && self.ending.verdict.is_none() && self.ending.closing.is_none() {
            self.make_guard(None, now, out);
        }
    }

    fn drop_guard(&mut self, out: &mut Vec<SessionAction>) {
        self.copies.guard_lacks = None;
        if std::mem::take(&mut self.copies.has_guard) {
            out.push(SessionAction::DropCopy { copy: CopyId::Guard });
        }
    }

    /// Orders the guard copy; `job` runs then.
    pub(super) fn make_guard(&mut self, job: Option<ExecutionJob>, now: Now, out: &mut Vec<SessionAction>) {
        self.timers.idle_at = None;
        self.order_fork(ForkPurpose::Guard { job }, now, out);
    }

    pub(super) fn checkpoint(
        &mut self,
        token: Token<SessionCheckpoint>,
        name: Option<String>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(refusal) = self.refuses_idle_request() {
            return Self::reply(token, Err(refusal), out);
        }
        if self.copies.checkpoints.len() >= CHECKPOINTS {
            return Self::reply(token, Err(Refusal::TooManyCheckpoints), out);
        }
        if let Some(name) = name.as_deref().filter(|name| self.copies.find(name).is_some()) {
            return Self::reply(token, Err(Refusal::CheckpointExists(name.to_owned())), out);
        }
        self.timers.idle_at = None;
        self.order_fork(ForkPurpose::Checkpoint { token, name }, now, out);
    }

    /// Why a request that needs an idle session is refused.
    pub(super) fn refuses_idle_request(&self) -> Option<Refusal> {
        if self.phase() != Phase::Ready || self.ending.verdict.is_some() || self.is_restoration {
            return Some(Refusal::NotReady(self.not_ready_because()));
        }
        // An adopted worker may run an execution that the store does not have.
        (self.current.is_some() || self.is_taking_over()).then_some(Refusal::Busy)
    }

    /// The child of a fork is to become a frozen copy.
    pub(super) fn copy_made(&mut self, forking: Forking, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Ready {
            forking.refuse(&Refusal::NotReady(self.not_ready_because()), out);
            out.push(SessionAction::ForksOver);
            return self.shut_down(now, out);
        }
        let in_keeper = copy_name(self.id(), forking.order());
        match forking.purpose {
            // A fork of its own kind.
            ForkPurpose::Sessions { .. } => {}
            ForkPurpose::Checkpoint { token, name } => {
                self.copies.last_number += 1;
                let number = self.copies.last_number;
                self.copies.names.insert(CopyId::Checkpoint(number), in_keeper);
                out.push(SessionAction::Freeze { copy: CopyId::Checkpoint(number) });
                out.push(SessionAction::ForksOver);
                let checkpoint = SessionCheckpoint {
                    number,
                    name,
                    created_at: Timestamp(now.unix_ms),
                    heap_bytes: self.peer.heap_bytes,
                };
                self.copies.checkpoints.push(checkpoint.clone());
                let mark = Mark::CheckpointMade { token, checkpoint };
                let event = Write::SessionEvent {
                    session: self.id(),
                    kind: SessionEventType::Checkpointed,
                    at: Timestamp(now.unix_ms),
                    detail: Some(number.to_string()),
                };
                self.store_facts(mark, Some(event), out);
                self.rest(now);
            }
            ForkPurpose::Guard { job } => {
                self.drop_guard(out);
                self.copies.names.insert(CopyId::Guard, in_keeper);
                out.push(SessionAction::Freeze { copy: CopyId::Guard });
                out.push(SessionAction::ForksOver);
                self.copies.has_guard = true;
                match job {
                    Some(job) => self.begin(job, now, out),
                    None => self.rest(now),
                }
            }
        }
    }

    pub(super) fn delete_checkpoint(
        &mut self,
        token: Token<()>,
        reference: &str,
        out: &mut Vec<SessionAction>,
    ) {
        if self.phase() != Phase::Ready || self.ending.verdict.is_some() {
            let refusal = Refusal::NotReady(self.not_ready_because());
            return Self::reply(token, Err(refusal), out);
        }
        let Some(at) = self.copies.find(reference) else {
            return Self::reply(token, Err(Refusal::NoCheckpoint(reference.to_owned())), out);
        };
        let number = self.copies.checkpoints.remove(at).number;
        self.drop_checkpoint(number, out);
        self.store_facts(Mark::FactsChanged { token }, None, out);
    }

    /// A checkpoint could not be stored.
    pub(super) fn checkpoint_lost(&mut self, number: u64, out: &mut Vec<SessionAction>) {
        let in_use =
            |restoring: &Replacement| restoring.from == StateSource::Copy(CopyId::Checkpoint(number));
        if self.copies.restoring.as_ref().is_some_and(in_use) {
            // The session continues from it: its next record has it.
            return;
        }
        if let Some(at) = self.copies.checkpoints.iter().position(|known| known.number == number) {
            self.copies.checkpoints.remove(at);
            self.drop_checkpoint(number, out);
        }
    }

    fn drop_checkpoint(&mut self, number: u64, out: &mut Vec<SessionAction>) {
        let copy = CopyId::Checkpoint(number);
        self.copies.names.remove(&copy);
        out.push(SessionAction::DropCopy { copy });
    }

    /// No rollback may bring their worker back.
    pub(super) fn give_up_checkpoints(&mut self, out: &mut Vec<SessionAction>) {
        for checkpoint in std::mem::take(&mut self.copies.checkpoints) {
            self.drop_checkpoint(checkpoint.number, out);
        }
    }

    /// A frozen copy was killed from outside.
    pub(super) fn copy_exited(&mut self, number: u64, out: &mut Vec<SessionAction>) {
        let known = self.copies.checkpoints.iter().any(|checkpoint| checkpoint.number == number);
        if known && self.phase() != Phase::Ended && self.phase() != Phase::Released {
            self.checkpoint_lost(number, out);
            self.store_facts(Mark::Nothing, None, out);
        }
    }

    pub(super) fn store_facts(&mut self, mark: Mark, event: Option<Write>, out: &mut Vec<SessionAction>) {
        let batch = std::iter::once(self.facts_write()).chain(event).collect();
        let urgent = !matches!(mark, Mark::Nothing);
        self.persist(Pending { mark, ..Pending::default() }, batch, urgent, out);
    }

    /// Brings the session's facts up to date.
    pub(super) fn facts_write(&mut self) -> Write {
        let (facts, copies) = (&mut self.record.runtime_meta, &self.copies);
        facts.generation = Some(copies.generation);
        facts.last_checkpoint = Some(copies.last_number);
        facts.checkpoints = Some(copies.checkpoints.clone());
        Write::SessionFacts { id: self.record.id, facts: Box::new(facts.clone()) }
    }

    /// After an adoption: the copies ended with the previous supervisor.
    pub(super) fn forget_lost_copies(&mut self, out: &mut Vec<SessionAction>) {
        if self.copies.lost > 0 {
            let lost = LostCheckpoints::with_supervisor(self.copies.lost as u64);
            self.record.runtime_meta.checkpoints_lost = Some(lost);
            self.store_facts(Mark::Nothing, None, out);
        }
    }
}
