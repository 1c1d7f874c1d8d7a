//! Frozen copies of a session's worker, and how the session continues from one of them.
//!
//! A copy is a fork that never gets a `Start`: the owner task stops it, and it runs nothing. *Checkpoints* are copies that clients
//! request. With `on_crash: rollback` there is one more, the *guard copy*: it is made when the session becomes idle, so that it has the state
//! before each execution and after the last one.
//!
//! ```text
//!  Ready ── rollback ──▶ the worker is killed ─┐ exited
//!    │                                         ▼
//!    └── crash, with a guard copy ─────▶ the new generation is stored ──▶ the copy is forked ──▶ Start, Started ──▶ Ready
//! ```
//! The copy stays as it is: its fork continues, with messages from 1. Meanwhile the row's status is `starting`, so that a
//! supervisor that starts in between ends the session instead of adopting a worker without a `Start`.
//!
//! With `on_crash: restart` the next worker has no state of the last one ([`super::restart`]); the way to it is the same.

use super::deadlines::EXIT_MS;
use super::execution::{Current, ExecutionJob, StopCause};
use super::fork::{FORK_MS, ForkPurpose, Forking};
use super::input::{ForkFault, Now, Refusal, SessionAction, SessionReply, Token};
use super::machine::{ChannelState, Phase, SessionMachine, SessionTimers};
use super::record::{Mark, Pending};
use std::collections::VecDeque;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{CHECKPOINTS, HELLO_MS};
use vm_system_protocol::model::{OnCrash, SessionCheckpoint, SessionEventType, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{Start, ToWorker};
use vm_system_record::Write;

/// A frozen copy of a session's worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyId {
    /// With this number.
    Checkpoint(u64),
    Guard,
}

/// The frozen copies of a session, and how it continues after the end of its worker.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) on_crash: OnCrash,
    /// Counts the session's workers from 1.
    generation: u64,
    last_number: u64,
    checkpoints: Vec<SessionCheckpoint>,
    pub(super) has_guard: bool,
    /// Checkpoints that ended with the previous supervisor.
    lost: usize,
    /// Times of the last rollbacks or restarts after crashes (`mono_ms`).
    pub(super) recoveries: VecDeque<u64>,
    /// The reason of a restart that no execution has reported yet.
    pub(super) unreported_restart: Option<String>,
    /// What the next worker gets.
    pub(super) start: Box<Start>,
    pub(super) restoring: Option<Replacement>,
}

/// What the next worker has its state from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateSource {
    Copy(CopyId),
    /// The startup files of the template, alone.
    Template,
}

/// Why a session continues with another worker.
#[derive(Debug)]
pub(super) enum RollbackCause {
    Request(Token),
    Crash(CloseReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoringStage {
    /// The worker was killed.
    Ending,
    /// The new generation is being stored.
    Storing,
    /// The back-off of a restart.
    BackOff,
    /// The copy is being forked, or a worker is being started.
    Forking,
    /// The next worker got its `Start`.
    SettingUp,
}

#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) from: StateSource,
    pub(super) cause: RollbackCause,
    pub(super) stage: RestoringStage,
}

impl Copies {
    pub(super) fn new(on_crash: OnCrash, start: &Start, facts: &JsonText) -> Self {
        let facts = facts.to_value().unwrap_or_default();
        let number = |name: &str| facts[name].as_u64();
        Self {
            on_crash,
            generation: number("generation").unwrap_or(1),
            last_number: number("last_checkpoint").unwrap_or(0),
            checkpoints: Vec::new(),
            has_guard: false,
            lost: facts["checkpoints"].as_array().map_or(0, Vec::len),
            recoveries: VecDeque::new(),
            unreported_restart: super::restart::unreported(&facts),
            start: Box::new(start.clone()),
            restoring: None,
        }
    }

    fn find(&self, reference: &str) -> Option<usize> {
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
    /// ends within [`INTERRUPT_GRACE_MS`](vm_system_protocol::limits::INTERRUPT_GRACE_MS), or its worker does.
    pub fn is_busy_briefly(&self) -> bool {
        let is_ending = || {
            self.phase == Phase::Ready
                && self.channel_usable()
                && matches!(&self.current, Some(Current::Running(running))
                    if running.stopping.stop == Some(StopCause::Cancelled))
        };
        self.is_making_guard() || is_ending()
    }

    /// Whether a checkpoint is being made.
    pub fn is_making_checkpoint(&self) -> bool {
        matches!(&self.current, Some(Current::Forking(forking))
            if matches!(forking.purpose, ForkPurpose::Checkpoint { .. }))
    }

    /// Whether the fork of a copy is expected ([`SessionAction::ForkCopy`]).
    pub fn awaits_fork_of_copy(&self) -> bool {
        self.phase == Phase::Restoring && self.stage() == Some(RestoringStage::Forking)
    }

    pub(super) fn stage(&self) -> Option<RestoringStage> {
        self.copies.restoring.as_ref().map(|restoring| restoring.stage)
    }

    /// Whether a job needs a guard copy first.
    pub(super) fn lacks_guard(&self) -> bool {
        self.copies.on_crash == OnCrash::Rollback && !self.copies.has_guard && !self.is_restoration
    }

    /// No execution runs, and the state may have changed.
    pub(super) fn rest_changed(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        self.rest(now);
        if self.copies.on_crash != OnCrash::Rollback || self.phase != Phase::Ready || self.is_restoration {
            return;
        }
        if std::mem::take(&mut self.copies.has_guard) {
            out.push(SessionAction::DropCopy { copy: CopyId::Guard });
        }
        // An adopted worker may run an execution that the store does not have: the next request orders the copy.
        let is_free = self.current.is_none() && !self.is_taking_over();
        if is_free && self.ending.verdict.is_none() && self.ending.closing.is_none() {
            self.make_guard(None, now, out);
        }
    }

    /// Orders the guard copy; `job` runs then.
    pub(super) fn make_guard(&mut self, job: Option<ExecutionJob>, now: Now, out: &mut Vec<SessionAction>) {
        self.timers.idle_at = None;
        self.order_fork(ForkPurpose::Guard { job }, now, out);
    }

    pub(super) fn checkpoint(
        &mut self,
        token: Token,
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
        if self.phase != Phase::Ready || self.ending.verdict.is_some() || self.is_restoration {
            return Some(Refusal::NotReady(self.not_ready_because()));
        }
        // An adopted worker may run an execution that the store does not have.
        (self.current.is_some() || self.is_taking_over()).then_some(Refusal::Busy)
    }

    /// The child of a fork is to become a frozen copy.
    pub(super) fn copy_made(&mut self, forking: Forking, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase != Phase::Ready {
            forking.refuse(&Refusal::NotReady(self.not_ready_because()), out);
            out.push(SessionAction::ForksOver);
            return self.shut_down(now, out);
        }
        match forking.purpose {
            // A fork of its own kind.
            ForkPurpose::Sessions { .. } => {}
            ForkPurpose::Checkpoint { token, name } => {
                self.copies.last_number += 1;
                let number = self.copies.last_number;
                out.push(SessionAction::Freeze { copy: CopyId::Checkpoint(number) });
                out.push(SessionAction::ForksOver);
                let checkpoint = SessionCheckpoint {
                    number,
                    name,
                    created_at: Timestamp(now.unix_ms),
                    heap_bytes: self.peer.heap_bytes,
                };
                self.copies.checkpoints.push(checkpoint.clone());
                let mark = Mark::Checkpoints {
                    token,
                    made: Some(number),
                    reply: SessionReply::Checkpoint(Box::new(checkpoint)),
                };
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

    pub(super) fn delete_checkpoint(&mut self, token: Token, reference: &str, out: &mut Vec<SessionAction>) {
        if self.phase != Phase::Ready || self.ending.verdict.is_some() {
            let refusal = Refusal::NotReady(self.not_ready_because());
            return Self::reply(token, Err(refusal), out);
        }
        let Some(at) = self.copies.find(reference) else {
            return Self::reply(token, Err(Refusal::NoCheckpoint(reference.to_owned())), out);
        };
        let number = self.copies.checkpoints.remove(at).number;
        out.push(SessionAction::DropCopy { copy: CopyId::Checkpoint(number) });
        self.store_facts(Mark::Checkpoints { token, made: None, reply: SessionReply::Done }, None, out);
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
            out.push(SessionAction::DropCopy { copy: CopyId::Checkpoint(number) });
        }
    }

    /// No rollback may bring their worker back.
    pub(super) fn give_up_checkpoints(&mut self, out: &mut Vec<SessionAction>) {
        let given_up = std::mem::take(&mut self.copies.checkpoints);
        let drop = |checkpoint: SessionCheckpoint| SessionAction::DropCopy {
            copy: CopyId::Checkpoint(checkpoint.number),
        };
        out.extend(given_up.into_iter().map(drop));
    }

    /// A frozen copy was killed from outside.
    pub(super) fn copy_exited(&mut self, number: u64, out: &mut Vec<SessionAction>) {
        let known = self.copies.checkpoints.iter().any(|checkpoint| checkpoint.number == number);
        if known && self.phase != Phase::Ended && self.phase != Phase::Released {
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
        let mut facts = match self.record.runtime_meta.to_value() {
            Some(serde_json::Value::Object(facts)) => facts,
            _ => serde_json::Map::new(),
        };
        let copies = &self.copies;
        facts.insert("generation".to_owned(), copies.generation.into());
        facts.insert("last_checkpoint".to_owned(), copies.last_number.into());
        facts.insert("checkpoints".to_owned(), serde_json::json!(copies.checkpoints));
        self.record.runtime_meta = JsonText::from_value(&serde_json::Value::Object(facts));
        Write::SessionMeta { id: self.id(), runtime_meta: self.record.runtime_meta.clone() }
    }

    /// After an adoption: the copies ended with the previous supervisor.
    pub(super) fn forget_lost_copies(&mut self, out: &mut Vec<SessionAction>) {
        if self.copies.lost > 0 {
            let lost = self.copies.lost;
            self.add_fact(
                "checkpoints_lost",
                &serde_json::json!({ "count": lost, "reason": "host_restart" }),
            );
            self.store_facts(Mark::Nothing, None, out);
        }
    }

    pub(super) fn add_fact(&mut self, name: &str, fact: &serde_json::Value) {
        self.record.runtime_meta = super::crash::with_fact(&self.record.runtime_meta, name, fact);
    }

    /// A client's request to continue from a checkpoint.
    pub(super) fn roll_back(
        &mut self,
        token: Token,
        reference: Option<&str>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(refusal) = self.refuses_idle_request() {
            return Self::reply(token, Err(refusal), out);
        }
        let found = match reference {
            Some(reference) => self.copies.find(reference).and_then(|at| self.copies.checkpoints.get(at)),
            None => self.copies.checkpoints.last(),
        };
        let Some(checkpoint) = found else {
            let reference = reference.unwrap_or("(the newest)").to_owned();
            return Self::reply(token, Err(Refusal::NoCheckpoint(reference)), out);
        };
        let from = StateSource::Copy(CopyId::Checkpoint(checkpoint.number));
        let (cause, stage) = (RollbackCause::Request(token), RestoringStage::Ending);
        self.copies.restoring = Some(Replacement { from, cause, stage });
        self.begin_restoring(now);
        self.timers.phase_at = Some(now.mono_ms + EXIT_MS);
        out.push(SessionAction::Kill);
    }

    pub(super) fn begin_restoring(&mut self, now: Now) {
        self.phase = Phase::Restoring;
        self.forget_suspension();
        self.record.status = SessionStatus::Starting;
        self.timers = SessionTimers { ttl_at: self.lifetime.ends_at, ..SessionTimers::default() };
        self.timers.ttl_at = self.timers.ttl_at.map(|at| at.max(now.mono_ms));
    }

    /// The worker that was killed for a rollback has exited.
    pub(super) fn exited_for_rollback(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if self.stage() == Some(RestoringStage::Ending) {
            self.ending.usage = None;
            self.timers.phase_at = None;
            self.replace_worker((Vec::new(), Pending::default()), now, out);
        }
    }

    /// Stores the new generation.
    pub(super) fn replace_worker(
        &mut self,
        (mut batch, mut pending): (Vec<Write>, Pending),
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(restoring) = &mut self.copies.restoring else { return };
        restoring.stage = RestoringStage::Storing;
        let why = match &restoring.cause {
            RollbackCause::Request(_) => "request".to_owned(),
            RollbackCause::Crash(reason) => reason.to_string(),
        };
        let number = match restoring.from {
            StateSource::Copy(CopyId::Checkpoint(number)) => Some(number),
            StateSource::Copy(CopyId::Guard) | StateSource::Template => None,
        };
        let detail = number.map_or_else(|| why.clone(), |number| format!("checkpoint {number}"));
        let kind = if restoring.from == StateSource::Template {
            self.note_restart(why, now);
            SessionEventType::Restarted
        } else {
            let rollback =
                serde_json::json!({ "at": Timestamp(now.unix_ms), "checkpoint": number, "reason": why });
            self.add_fact("rollback", &rollback);
            if number.is_some() {
                // The state of the checkpoint lacks nothing.
                self.restart_reported();
            }
            SessionEventType::RolledBack
        };
        self.copies.generation += 1;
        self.peer = ChannelState { forks: self.peer.forks, ..ChannelState::of_new_worker() };
        self.ledger.begin_worker();
        self.forget_adoption();
        batch.push(self.facts_write());
        batch.push(Write::SessionRestoring { id: self.id(), kind, at: Timestamp(now.unix_ms), detail });
        pending.mark = Mark::Restoring;
        self.persist(pending, batch, true, out);
    }

    /// The new generation is stored: its worker may exist.
    pub(super) fn restoring_stored(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase != Phase::Restoring {
            return;
        }
        let Some(restoring) = &mut self.copies.restoring else { return };
        match restoring.from {
            StateSource::Copy(copy) => {
                restoring.stage = RestoringStage::Forking;
                self.timers.phase_at = Some(now.mono_ms + FORK_MS);
                out.push(SessionAction::ForkCopy { copy });
            }
            StateSource::Template => self.back_off(now, out),
        }
    }

    pub(super) fn restoring_not_stored(&mut self, error: &str, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase == Phase::Restoring {
            self.restoring_failed(&format!("its new generation could not be stored: {error}"), now, out);
        }
    }

    /// The result of [`SessionAction::ForkCopy`].
    pub(super) fn copy_forked(
        &mut self,
        result: Result<[u8; 32], ForkFault>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if !self.awaits_fork_of_copy() {
            return;
        }
        match result {
            Ok(random_seed) => {
                if let Some(restoring) = &mut self.copies.restoring {
                    restoring.stage = RestoringStage::SettingUp;
                }
                self.phase = Phase::SettingUp;
                self.timers.phase_at = Some(now.mono_ms + HELLO_MS);
                let start = Start { random_seed, ..(*self.copies.start).clone() };
                out.push(SessionAction::Send(ToWorker::Start(Box::new(start))));
            }
            Err(ForkFault::Violation(what)) => {
                let what: String = what.chars().take(150).collect();
                self.end(CloseReason::ProtocolViolation(format!("its frozen copy: {what}")), now, out);
            }
            Err(ForkFault::NotOrdered(failure) | ForkFault::Failed(failure)) => {
                self.restoring_failed(&failure.why, now, out);
            }
        }
    }

    fn restoring_failed(&mut self, why: &str, now: Now, out: &mut Vec<SessionAction>) {
        let reason = match self.copies.restoring.as_ref().map(|restoring| &restoring.cause) {
            Some(RollbackCause::Crash(reason)) => reason.clone(),
            _ => CloseReason::SpawnFailed(format!("it could not continue from its frozen copy: {why}")),
        };
        self.end(reason, now, out);
    }

    /// The worker that continues is set up; `false`: this is no rollback.
    pub(super) fn restored(&mut self, now: Now, out: &mut Vec<SessionAction>) -> bool {
        let from_copy = |restoring: &mut Replacement| restoring.from != StateSource::Template;
        let Some(restoring) = self.copies.restoring.take_if(from_copy) else { return false };
        self.timers.phase_at = None;
        self.phase = Phase::Ready;
        self.record.status = SessionStatus::Ready;
        let token = match restoring.cause {
            RollbackCause::Request(token) => Some(token),
            RollbackCause::Crash(_) => None,
        };
        let pending = Pending { mark: Mark::RolledBack { token }, ..Pending::default() };
        self.persist(pending, vec![Write::SessionReady { id: self.id() }], true, out);
        if restoring.from == StateSource::Copy(CopyId::Guard) {
            // It has the state of this worker.
            self.rest(now);
        } else {
            self.rest_changed(now, out);
        }
        true
    }

    /// A deadline of a rollback has passed.
    pub(super) fn restoring_overdue(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let why = match self.stage() {
            Some(RestoringStage::BackOff) => return self.respawn(out),
            Some(RestoringStage::Ending) => "its worker did not exit within the deadline",
            _ => "the copy was not forked within the deadline",
        };
        self.restoring_failed(why, now, out);
    }

    /// A rollback is given up: the session ends.
    pub(super) fn give_up_restoring(&mut self, reason: CloseReason, now: Now, out: &mut Vec<SessionAction>) {
        if self.stage() == Some(RestoringStage::Ending) {
            // SIGKILL was sent, once; its exit ends the session.
            self.ending.verdict.get_or_insert_with(|| reason.clone());
            self.phase = Phase::Killed;
            self.timers = SessionTimers { phase_at: Some(now.mono_ms + EXIT_MS), ..SessionTimers::default() };
            self.refuse_rollback(&reason, out);
        } else {
            self.end(reason, now, out);
        }
    }

    /// The session ends: whoever waits for a rollback gets the reason.
    pub(super) fn refuse_rollback(&mut self, reason: &CloseReason, out: &mut Vec<SessionAction>) {
        if let Some(Replacement { cause: RollbackCause::Request(token), .. }) = self.copies.restoring.take() {
            let why = Refusal::NotReady(format!("it ended while it was rolled back ({reason})"));
            Self::reply(token, Err(why), out);
        }
    }
}
