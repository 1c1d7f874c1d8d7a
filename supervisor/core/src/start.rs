//! From `Spawning` to `Ready`: the worker, its set-up, the startup files.

use super::caller::Token;
use super::deadlines::EXIT_MS;
use super::execution::{Current, ExecutionJob};
use super::input::{CloseCause, LibraryFailure, Now, Refusal, SessionAction, SpawnFailure};
use super::machine::SessionMachine;
use super::phase::{Phase, PhaseChange};
use super::record::{Mark, Pending};
use std::sync::Arc;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_protocol::model::{ExecutionStatus, Session, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::worker::ToWorker;
use vm_system_record::Write;

impl SessionMachine {
    pub(super) fn create(&mut self, token: Token<Session>, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::New {
            return Self::reply(token, Err(Refusal::NotReady("it was created before".to_owned())), out);
        }
        self.enter(Phase::Spawning, PhaseChange::Created);
        self.begin_with_drain(now);
        // The reply is due when the session is ready: no client gets a session that it cannot use.
        self.creation.creator = Some(token);
        self.lifetime.ends_at = self.lifetime.ttl_ms.map(|ttl| now.mono_ms + ttl);
        self.timers.ttl_at = self.lifetime.ends_at;
        let pending = Pending { mark: Mark::SessionInserted, ..Pending::default() };
        let insert = self.creation.row.take().map(|(owner, policy, worktree)| Write::SessionInsert {
            owner,
            session: Arc::new(self.record.clone()),
            policy,
            worktree,
        });
        // Not urgent: the worker starts meanwhile, and the caller waits for the commit of `ready`, which comes after the row.
        self.persist(pending, insert.into_iter().collect(), false, out);
        match self.ending.closing {
            // The session was closed before: no worker is started.
            Some(cause) => self.end(cause.reason(), now, out),
            None => out.push(SessionAction::Spawn),
        }
    }

    pub(super) fn spawned(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Spawning {
            return;
        }
        if let Some(unwanted) = self.ending.verdict.clone().or(self.ending.closing.map(CloseCause::reason)) {
            // No code has run in the worker.
            self.ending.verdict = Some(unwanted);
            self.enter(Phase::Killed, PhaseChange::Killed);
            self.timers.phase_at = Some(now.mono_ms + EXIT_MS);
            out.push(SessionAction::Kill);
            return;
        }
        self.enter(Phase::SettingUp, PhaseChange::Spawned);
        self.timers.phase_at = Some(now.mono_ms + HELLO_MS);
        if let Some(start) = self.creation.start.take() {
            out.push(SessionAction::Send(ToWorker::Start(start)));
        }
    }

    pub(super) fn spawn_failed(&mut self, failure: SpawnFailure, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Spawning {
            return;
        }
        let why = failure.why.clone();
        self.creation.spawn_failure = Some(failure);
        // An end that was requested while the worker was being started is the reason, and not that there is no worker.
        let reason = match (&self.ending.verdict, self.ending.closing) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(cause)) => cause.reason(),
            (None, None) => CloseReason::SpawnFailed(why),
        };
        self.worker_ended(reason, now, out);
    }

    /// No worker: one of its libraries is not available.
    pub(super) fn library_failed(&mut self, failure: LibraryFailure, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Spawning {
            return;
        }
        let reason = match (&self.ending.verdict, self.ending.closing) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(cause)) => cause.reason(),
            (None, None) => CloseReason::StartupFailed(failure.text.clone()),
        };
        self.creation.library_failure = Some(failure);
        self.worker_ended(reason, now, out);
    }

    /// Handles the worker's report that it is set up.
    pub(super) fn started(&mut self, heap_bytes: u64, now: Now, out: &mut Vec<SessionAction>) {
        if !std::mem::replace(&mut self.peer.setting_up, false) {
            return self.violation("Started twice", now, out);
        }
        // The store's integers are signed, and the number comes from the worker.
        self.peer.heap_bytes = heap_bytes.min(i64::MAX as u64);
        self.ledger.settle(self.peer.next_seq - 1);
        // A session that was closed in the meantime only waits for the worker's exit.
        if self.phase() == Phase::SettingUp && !self.restored(now, out) {
            self.timers.phase_at = None;
            self.enter(Phase::Starting, PhaseChange::SetUp);
            self.go_on_starting(now, out);
        }
    }

    /// After `Started` or a successful startup file: runs the next file, or enters `Ready`.
    pub(super) fn go_on_starting(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if let Some(request) = self.creation.startup.pop_front() {
            let policy = Arc::clone(&self.creation.startup_policy);
            return self.begin(ExecutionJob { token: None, request: Box::new(request), policy }, now, out);
        }
        if self.is_restoration {
            return self.await_inputs(now, out);
        }
        self.enter(Phase::Ready, PhaseChange::Started);
        self.record.status = SessionStatus::Ready;
        // Nothing but a restart comes here with one.
        self.copies.restoring = None;
        let pending = Pending { mark: Mark::SessionReady, ..Pending::default() };
        self.persist(pending, vec![Write::SessionReady { id: self.id() }], true, out);
        self.rest_changed(None, now, out);
    }

    /// A startup file ended.
    pub(super) fn startup_ended(
        &mut self,
        what: &str,
        status: ExecutionStatus,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        debug_assert!(!matches!(self.current, Some(Current::Running(_))), "one execution at a time");
        if status == ExecutionStatus::Ok {
            return self.go_on_starting(now, out);
        }
        self.condemn(CloseReason::StartupFailed(what.to_owned()), now, out);
    }
}
