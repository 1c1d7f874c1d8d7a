//! How a session continues with another worker: from a frozen copy ([`super::rollback`]), or without state ([`super::restart`]).
//!
//! ```text
//!  Ready ── rollback ────────────────▶ the new generation is stored ──▶ the worker is killed ─┐ exited
//!    │                                                                                        ▼
//!    └── crash, with a guard copy ───▶ the new generation is stored ─────────────▶ the copy is forked ──▶ Start, Started ──▶ Ready
//! ```
//! The copy stays as it is: its fork continues, with messages from 1. Meanwhile the row's status is `starting` and names the copy, so
//! that a supervisor that starts in between continues from it ([`super::continuation`]) instead of adopting a worker without a `Start`.
//! A rollback whose generation cannot be stored changes nothing.
//!
//! If `on_crash` is `restart`, the next worker has no state of the last one ([`super::restart`]); the way to it is the same.

use super::caller::Token;
use super::deadlines::EXIT_MS;
use super::fork::FORK_MS;
use super::input::{ForkFault, Now, Refusal, SessionAction};
use super::machine::{ChannelState, SessionMachine, SessionTimers};
use super::phase::{Phase, PhaseChange};
use super::record::{Mark, Pending};
use super::rollback::CopyId;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_protocol::model::{LastRollback, Session, SessionEventType, SessionFacts, SessionStatus};
use vm_system_protocol::reason::{CloseReason, WorkerExitStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{Start, ToWorker};
use vm_system_record::Write;

/// The source of the next worker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateSource {
    Copy(CopyId),
    /// The startup files of the template, alone.
    Template,
}

/// Why a session continues with another worker.
#[derive(Debug)]
pub(super) enum RollbackCause {
    Request(Token<Session>),
    Crash(CloseReason),
    /// An earlier supervisor began it, for this reason.
    Continued(String),
}

/// The worker that is replaced, while the new generation is being stored.
#[derive(Debug)]
pub(super) enum ReplacedWorker {
    /// It has exited before.
    Gone,
    /// A rollback was requested: if it cannot be stored, the worker goes on.
    Present(Box<BeforeRollback>),
}

/// The facts that return if a rollback cannot be stored.
#[derive(Debug)]
pub(super) struct BeforeRollback {
    facts: SessionFacts,
    unreported_restart: Option<String>,
    /// The worker has exited meanwhile.
    exited: Option<WorkerExitStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoringStage {
    /// The new generation is being stored.
    Storing,
    /// The worker was killed.
    Ending,
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
    pub(super) worker: ReplacedWorker,
}

impl SessionMachine {
    /// A client's request to continue from a checkpoint.
    pub(super) fn roll_back(
        &mut self,
        token: Token<Session>,
        reference: Option<&str>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(refusal) = self.refuses_idle_request() {
            return Self::reply(token, Err(refusal), out);
        }
        // A rollback begins with a write: while the store refuses writes, the session keeps its worker instead.
        if let Some(error) = self.ledger.refuses_more() {
            return Self::reply(token, Err(Refusal::Storage(error)), out);
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
        let (cause, stage) = (RollbackCause::Request(token), RestoringStage::Storing);
        // The facts as they were: if the new generation is not stored, the session continues with this worker.
        let worker = ReplacedWorker::Present(Box::new(BeforeRollback {
            facts: self.record.runtime_meta.clone(),
            unreported_restart: self.copies.unreported_restart.clone(),
            exited: None,
        }));
        self.copies.restoring = Some(Replacement { from, cause, stage, worker });
        self.enter(Phase::Restoring, PhaseChange::Replaced);
        self.begin_restoring(now);
        self.replace_worker((Vec::new(), Pending::default()), now, out);
    }

    pub(super) fn begin_restoring(&mut self, now: Now) {
        self.forget_suspension();
        self.record.status = SessionStatus::Starting;
        // The other deadlines were the last worker's; the end of the session's life is not postponed by a new one.
        self.timers = SessionTimers { ttl_at: self.lifetime.ends_at, ..SessionTimers::default() };
        self.timers.ttl_at = self.timers.ttl_at.map(|at| at.max(now.mono_ms));
    }

    /// The worker that is replaced by a rollback has exited.
    pub(super) fn exited_for_rollback(
        &mut self,
        exit_status: WorkerExitStatus,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        self.ending.usage = None;
        let Some(restoring) = &mut self.copies.restoring else { return };
        match (restoring.stage, &mut restoring.worker) {
            (RestoringStage::Ending, _) => self.fork_copy(now, out),
            // Kept for later: if the rollback is not stored, this exit is the session's.
            (RestoringStage::Storing, ReplacedWorker::Present(before)) => before.exited = Some(exit_status),
            _ => {}
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
        let is_present = matches!(restoring.worker, ReplacedWorker::Present(_));
        let why = match &restoring.cause {
            RollbackCause::Request(_) => "request".to_owned(),
            RollbackCause::Crash(reason) => reason.to_string(),
            RollbackCause::Continued(reason) => reason.clone(),
        };
        let from = restoring.from;
        let number = match from {
            StateSource::Copy(CopyId::Checkpoint(number)) => Some(number),
            StateSource::Copy(CopyId::Guard) | StateSource::Template => None,
        };
        let lacks = match from {
            StateSource::Copy(CopyId::Guard) => self.copies.guard_lacks.take().map(|lacks| lacks.to_string()),
            StateSource::Copy(CopyId::Checkpoint(_)) | StateSource::Template => None,
        };
        let detail = match (number, &lacks) {
            (Some(number), _) => format!("checkpoint {number}"),
            (None, Some(lacks)) => format!("{why}; {lacks}"),
            (None, None) => why.clone(),
        };
        let kind = if let StateSource::Copy(copy) = from {
            self.record.runtime_meta.rollback = Some(LastRollback {
                at: Timestamp(now.unix_ms),
                checkpoint: number,
                reason: why,
                generation: self.copies.generation + 1,
                copy: self.copies.names.get(&copy).copied(),
                lacks,
                recoveries: self.recent_recoveries(now),
            });
            if number.is_some() {
                // The state of the checkpoint lacks nothing.
                self.restart_reported();
            }
            SessionEventType::RolledBack
        } else {
            self.note_restart(why, now);
            SessionEventType::Restarted
        };
        // The number belongs to the write below; `go_on_without_rollback` takes it back.
        self.copies.generation += 1;
        if !is_present {
            self.begin_generation();
        }
        batch.push(self.facts_write());
        // One batch with the facts: a supervisor that finds the session `starting` continues by them.
        batch.push(Write::SessionRestoring { id: self.id(), kind, at: Timestamp(now.unix_ms), detail });
        pending.mark = Mark::Restoring;
        self.persist(pending, batch, true, out);
    }

    /// No message of the last worker is accepted any more.
    fn begin_generation(&mut self) {
        self.peer = ChannelState { forks: self.peer.forks, ..ChannelState::of_new_worker() };
        self.ledger.begin_worker();
        self.forget_adoption();
    }

    /// The new generation is stored: its worker may exist.
    pub(super) fn restoring_stored(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Restoring {
            return;
        }
        let Some(restoring) = &mut self.copies.restoring else { return };
        if restoring.from == StateSource::Template {
            return self.back_off(now, out);
        }
        match std::mem::replace(&mut restoring.worker, ReplacedWorker::Gone) {
            ReplacedWorker::Present(before) if before.exited.is_none() => {
                restoring.stage = RestoringStage::Ending;
                self.timers.phase_at = Some(now.mono_ms + EXIT_MS);
                // Before the kill: whatever the old worker still sends belongs to no generation.
                self.begin_generation();
                out.push(SessionAction::Kill);
            }
            ReplacedWorker::Present(_) => {
                self.begin_generation();
                self.fork_copy(now, out);
            }
            ReplacedWorker::Gone => self.fork_copy(now, out),
        }
    }

    /// The last worker has exited.
    fn fork_copy(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let Some(restoring) = &mut self.copies.restoring else { return };
        let StateSource::Copy(copy) = restoring.from else { return };
        restoring.stage = RestoringStage::Forking;
        self.timers.phase_at = Some(now.mono_ms + FORK_MS);
        out.push(SessionAction::ForkCopy { copy });
    }

    pub(super) fn restoring_not_stored(&mut self, error: &str, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Restoring {
            return;
        }
        let is_present = |restoring: &mut Replacement| matches!(restoring.worker, ReplacedWorker::Present(_));
        match self.copies.restoring.take_if(is_present) {
            Some(Replacement {
                cause: RollbackCause::Request(token),
                worker: ReplacedWorker::Present(before),
                ..
            }) => self.go_on_without_rollback(token, *before, error, now, out),
            _ => {
                self.restoring_failed(&format!("its new generation could not be stored: {error}"), now, out);
            }
        }
    }

    /// Nothing was stored, and nothing was sent to the worker.
    fn go_on_without_rollback(
        &mut self,
        token: Token<Session>,
        before: BeforeRollback,
        error: &str,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        // Nothing of the generation is stored, so the next rollback may have its number.
        self.copies.generation -= 1;
        self.record.runtime_meta = before.facts;
        self.copies.unreported_restart = before.unreported_restart;
        self.record.status = SessionStatus::Ready;
        self.enter(Phase::Ready, PhaseChange::NotStored);
        self.rest(now);
        Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
        if let Some(exit_status) = before.exited {
            self.on_exit(exit_status, now, out);
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
                self.enter(Phase::SettingUp, PhaseChange::Forked);
                self.timers.phase_at = Some(now.mono_ms + HELLO_MS);
                // A seed of its own: sessions that continue from one copy must not draw the same random numbers.
                let start = Start { random_seed, ..(*self.copies.start).clone() };
                out.push(SessionAction::Send(ToWorker::Start(Box::new(start))));
            }
            Err(ForkFault::Violation(what)) => {
                let what: String = what.chars().take(150).collect();
                // No second attempt: a copy that breaks the protocol is not the one that was frozen.
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
        self.enter(Phase::Ready, PhaseChange::Restored);
        self.record.status = SessionStatus::Ready;
        let token = match restoring.cause {
            RollbackCause::Request(token) => Some(token),
            RollbackCause::Crash(_) | RollbackCause::Continued(_) => None,
        };
        let pending = Pending { mark: Mark::RolledBack { token }, ..Pending::default() };
        self.persist(pending, vec![Write::SessionReady { id: self.id() }], true, out);
        if restoring.from == StateSource::Copy(CopyId::Guard) {
            // It has the state of this worker.
            self.rest(now);
        } else {
            // The guard copy has the state before the rollback, so a new one is due.
            self.rest_changed(None, now, out);
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

    /// Whether a rollback is being stored, whose worker has not exited: it is idle.
    pub(super) fn is_storing_rollback(&self) -> bool {
        let restoring = self.copies.restoring.as_ref().filter(|_| self.phase() == Phase::Restoring);
        restoring.is_some_and(|restoring| {
            matches!(&restoring.worker, ReplacedWorker::Present(before) if before.exited.is_none())
        })
    }

    /// A rollback is given up: the session ends.
    pub(super) fn give_up_restoring(&mut self, reason: CloseReason, now: Now, out: &mut Vec<SessionAction>) {
        let is_present = self.is_storing_rollback();
        // The worker is alive and idle while the rollback is being stored: nobody else ends it.
        if is_present {
            out.push(SessionAction::Kill);
        }
        if is_present || self.stage() == Some(RestoringStage::Ending) {
            // SIGKILL is sent once; its exit ends the session.
            self.ending.verdict.get_or_insert_with(|| reason.clone());
            self.enter(Phase::Killed, PhaseChange::Killed);
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
