//! Ends of executions and sessions: on request, by a decision to kill, and by the worker's exit.

use super::caller::Token;
use super::crash::CrashRecord;
use super::deadlines::{EXIT_MS, INTERRUPT_AGAIN_MS};
use super::execution::Current;
use super::input::{CloseCause, Now, Refusal, SessionAction, SpawnFailure};
use super::machine::{SessionMachine, SessionTimers};
use super::messages::host_error;
use super::phase::{Phase, PhaseChange};
use super::record::{Mark, Pending};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::{CLOSE_GRACE_MS, INTERRUPT_GRACE_MS};
use vm_system_protocol::model::{Session, SessionStatus};
use vm_system_protocol::reason::{CloseReason, LimitKind, WorkerExitStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{HostReply, ToWorker};
use vm_system_record::Write;

const SIGKILL: i32 = 9;
/// Callers that may wait for one session's end.
const ENDERS_MAX: usize = 1_024;

/// A caller that gets its reply when the session's end is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ender {
    Closing(Token<Session>),
    Killing(Token<()>),
}

impl Ender {
    /// `Ok`: the end is recorded.
    fn reply(self, ended: Result<&Session, Refusal>, out: &mut Vec<SessionAction>) {
        match self {
            Self::Closing(token) => SessionMachine::reply(token, ended.cloned(), out),
            Self::Killing(token) => SessionMachine::reply(token, ended.map(|_| ()), out),
        }
    }
}

/// Why this machine ends an execution. The first reason is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// Requested by a client.
    Cancelled,
    /// The last client that waited for it has gone, and had requested this.
    Abandoned,
    /// The session closes.
    Closing(CloseCause),
    /// A limit that this side measured.
    Limit(LimitKind),
}

impl StopCause {
    /// Whether a client has ended the execution, by a request or by its absence.
    pub(super) const fn is_of_client(self) -> bool {
        matches!(self, Self::Cancelled | Self::Abandoned)
    }
}

impl SessionMachine {
    pub(super) fn cancel(
        &mut self,
        token: Token<()>,
        (execution, cause): (ExecutionId, StopCause),
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        match &self.current {
            Some(Current::Running(running)) if running.id() == execution => {
                // The reply does not wait for the end: whoever wants it waits for the execution.
                self.stop(cause, now, out);
                Self::reply(token, Ok(()), out);
            }
            Some(Current::Loading(loading)) if loading.job.request.id == execution => {
                // Nothing of it is recorded yet, so it ends as a refusal and not as an execution.
                self.drop_loading(Refusal::CancelledEarly, now, out);
                Self::reply(token, Ok(()), out);
            }
            _ => Self::reply(token, Err(Refusal::NoSuchExecution), out),
        }
    }

    /// Ends the running execution; the first reason is kept.
    pub(super) fn stop(&mut self, stop: StopCause, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() || self.stop_withheld(stop, now, out) {
            return;
        }
        let Some(Current::Running(running)) = &mut self.current else { return };
        if running.stopping.stop.is_some() {
            return;
        }
        running.stopping.stop = Some(stop);
        // The engine polls the flag; a native that does not poll is killed after the grace, with its session.
        running.stopping.grace_until = Some(now.mono_ms + INTERRUPT_GRACE_MS);
        running.stopping.interrupt_again_at = now.mono_ms + INTERRUPT_AGAIN_MS;
        // The flag first: the worker reads it when the script resumes after its host call.
        out.push(SessionAction::Interrupt);
        if let Some(wait) = running.host {
            out.push(SessionAction::DropHostWork);
            let error = host_error("ECANCELED", "the execution is being ended");
            self.host_replied(wait.call, HostReply::Failed(error), now, out);
        }
    }

    /// Gives up the request that waits for its file.
    pub(super) fn drop_loading(&mut self, why: Refusal, now: Now, out: &mut Vec<SessionAction>) {
        if let Some(Current::Loading(loading)) =
            self.current.take_if(|current| matches!(current, Current::Loading(_)))
        {
            out.push(SessionAction::DropHostWork);
            self.abandon(&loading.job, why, now, out);
        }
    }

    pub(super) fn close(
        &mut self,
        token: Token<Session>,
        cause: CloseCause,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if !self.await_end(Ender::Closing(token), out) {
            return;
        }
        self.begin_close(cause, now, out);
    }

    /// Keeps a caller until the end is recorded; false if the caller got its reply at once.
    fn await_end(&mut self, ender: Ender, out: &mut Vec<SessionAction>) -> bool {
        if self.phase() == Phase::Released {
            ender.reply(Ok(&self.record), out);
            return false;
        }
        let unmade = self.phase() == Phase::New && matches!(ender, Ender::Killing(_));
        // A kill before the session is created would end nothing, and the creation would go on.
        if unmade || self.ending.enders.len() >= ENDERS_MAX {
            ender.reply(Err(Refusal::Busy), out);
            return false;
        }
        self.ending.enders.push(ender);
        true
    }

    /// Ends the session in order: first the running execution, as `cancelled`.
    pub(super) fn begin_close(&mut self, cause: CloseCause, now: Now, out: &mut Vec<SessionAction>) {
        if self.ending.closing.is_some() || self.ending.verdict.is_some() {
            return;
        }
        match self.phase() {
            Phase::Ended | Phase::Released | Phase::Killed | Phase::Closing => {}
            // A session without a worker yet is created first, and then closed.
            Phase::New | Phase::Spawning => self.ending.closing = Some(cause),
            Phase::Restoring => {
                self.ending.closing = Some(cause);
                self.give_up_restoring(cause.reason(), now, out);
            }
            Phase::SettingUp | Phase::Starting | Phase::Ready => {
                // A stopped process receives no message: it runs again before it is shut down.
                self.wake(now, out);
                self.ending.closing = Some(cause);
                self.enter(Phase::Closing, PhaseChange::Closed);
                // The deadlines of a session in use end here: a second close, by `idle` or `ttl`, would replace the reason.
                self.timers =
                    SessionTimers { hang_up_at: self.timers.hang_up_at, ..SessionTimers::default() };
                self.drop_loading(Refusal::NotReady("it is closing".to_owned()), now, out);
                // The execution ends first: its end is recorded as `cancelled`, and not as the death of its worker.
                match self.current {
                    Some(_) => self.stop(StopCause::Closing(cause), now, out),
                    None => self.shut_down(now, out),
                }
            }
        }
    }

    /// No execution runs: shuts the worker down.
    pub(super) fn shut_down(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        self.timers.idle_at = None;
        self.timers.phase_at = Some(now.mono_ms + CLOSE_GRACE_MS);
        out.push(SessionAction::Send(ToWorker::Shutdown));
    }

    pub(super) fn kill_by_operator(
        &mut self,
        token: Token<()>,
        signal: i32,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if signal != SIGKILL {
            if !self.has_worker() {
                return Self::reply(token, Err(Refusal::NotReady("it has no worker".to_owned())), out);
            }
            // Remembered: an exit by this signal is `killed(operator)`, and not a crash.
            self.ending.operator_signal = Some(signal);
            out.push(SessionAction::Signal(signal));
            return Self::reply(token, Ok(()), out);
        }
        if self.await_end(Ender::Killing(token), out) {
            self.condemn(CloseReason::KilledByOperator, now, out);
        }
    }

    /// Decides to kill the worker. The first verdict is kept.
    pub(super) fn condemn(&mut self, reason: CloseReason, now: Now, out: &mut Vec<SessionAction>) {
        if self.ending.verdict.is_some()
            || matches!(self.phase(), Phase::New | Phase::Ended | Phase::Released)
        {
            return;
        }
        // Before the kill: from now on messages are dropped unread, and the exit is explained by this reason.
        self.ending.verdict = Some(reason.clone());
        match self.phase() {
            // There is no worker to kill yet; the one that is being started is killed when it arrives.
            Phase::Spawning => return,
            Phase::Restoring => return self.give_up_restoring(reason, now, out),
            _ => {}
        }
        self.enter(Phase::Killed, PhaseChange::Killed);
        out.push(SessionAction::Kill);
        self.drop_loading(Refusal::NotReady("its worker is being ended".to_owned()), now, out);
        self.drop_forks(&Refusal::NotReady(self.not_ready_because()), out);
        self.timers = SessionTimers { phase_at: Some(now.mono_ms + EXIT_MS), ..SessionTimers::default() };
        if let Some(Current::Running(running)) = &mut self.current
            && running.has_host_work()
        {
            running.host = None;
            out.push(SessionAction::DropHostWork);
        }
    }

    pub(super) fn on_exit(&mut self, exit_status: WorkerExitStatus, now: Now, out: &mut Vec<SessionAction>) {
        if self.phase() == Phase::Restoring {
            return self.exited_for_rollback(exit_status, now, out);
        }
        if !self.has_worker() {
            return;
        }
        self.forget_suspension();
        // A worker exits so after `Shutdown`: an earlier supervisor was closing the session.
        // The order to shut down was the earlier supervisor's, and its client is gone.
        let was_closed = self.peer.adoption.is_awaited() && exit_status == WorkerExitStatus::Exited(0);
        if was_closed && self.ending.closing.is_none() {
            self.ending.closing = Some(CloseCause::Request);
        }
        let reason = self.close_reason_of(exit_status);
        self.worker_ended(reason, now, out);
    }

    /// The worker has exited, or was never started: records everything that is left.
    pub(super) fn end(&mut self, reason: CloseReason, now: Now, out: &mut Vec<SessionAction>) {
        self.forget_suspension();
        self.drop_loading(Refusal::NotReady(format!("its worker ended ({reason})")), now, out);
        self.drop_forks(&Refusal::NotReady(format!("its worker ended ({reason})")), out);
        self.refuse_rollback(&reason, out);
        // Read before the end is recorded: an exit after a request is no crash, however the worker exited.
        let requested = self.ending.closing.is_some();
        let crash = CrashRecord {
            reason: &reason,
            execution: match &self.current {
                Some(Current::Running(running)) => Some(running.id()),
                _ => None,
            },
            usage: self.ending.usage,
            was_stopped: self.ending.was_stopped,
        };
        self.record.last_error = crash.describe(requested);
        let more = self.why_not_continued(&reason, now);
        if let (Some(error), Some(more)) = (&mut self.record.last_error, more) {
            error.push_str(&more);
        }
        if !requested {
            self.record.runtime_meta.crash = Some(crash.fact());
        }
        let (mut batch, mut pending) = match self.current.take() {
            Some(Current::Running(running)) => {
                if running.has_host_work() {
                    out.push(SessionAction::DropHostWork);
                }
                // In one batch with the session's end: no supervisor finds an execution that runs in a session that has ended.
                self.cut_short(*running, &reason, now)
            }
            _ => (Vec::with_capacity(1), Pending::default()),
        };
        let in_order = requested || reason == CloseReason::Replaced;
        self.record.status = if in_order { SessionStatus::Closed } else { SessionStatus::Crashed };
        self.record.closed_at = Some(Timestamp(now.unix_ms));
        self.record.close_reason = Some(reason.to_string());
        if !requested {
            let facts = Box::new(self.record.runtime_meta.clone());
            batch.push(Write::SessionFacts { id: self.id(), facts });
        }
        batch.push(Write::SessionEnd {
            id: self.id(),
            status: self.record.status,
            at: Timestamp(now.unix_ms),
            reason: reason.clone(),
            last_error: self.record.last_error.clone(),
        });
        pending.mark = Mark::SessionEnded;
        self.ending.verdict.get_or_insert(reason);
        self.enter(Phase::Ended, PhaseChange::Ended);
        self.timers = SessionTimers::default();
        self.creation.startup.clear();
        self.persist(pending, batch, true, out);
    }

    /// The end is recorded (or refused by the store, with the error in `stored`): replies to the callers that wait for it.
    pub(super) fn report_end(&mut self, stored: Result<(), &str>, out: &mut Vec<SessionAction>) {
        // Taken: each caller gets one reply, also if the end is reported again after a retry.
        for ender in std::mem::take(&mut self.ending.enders) {
            let ended = stored.map(|()| &self.record).map_err(|error| Refusal::Storage(error.to_owned()));
            ender.reply(ended, out);
        }
        if let Some(token) = self.creation.creator.take() {
            let refusal = match (stored, self.creation.library_failure.take(), &self.ending.verdict) {
                (Err(error), ..) => Refusal::Storage(error.to_owned()),
                (Ok(()), Some(failure), _) => Refusal::Library(failure),
                (Ok(()), None, Some(CloseReason::SpawnFailed(why))) => Refusal::SpawnFailed(
                    self.creation.spawn_failure.take().unwrap_or_else(|| SpawnFailure::late(why.clone())),
                ),
                (Ok(()), None, Some(CloseReason::StartupFailed(what))) => {
                    Refusal::StartupFailed(what.clone())
                }
                (Ok(()), None, Some(reason)) if self.record.status == SessionStatus::Crashed => {
                    Refusal::DiedAtStart(reason.clone())
                }
                (Ok(()), None, Some(reason)) => {
                    Refusal::NotReady(format!("it ended while starting ({reason})"))
                }
                (Ok(()), None, None) => Refusal::NotReady("it ended while starting".to_owned()),
            };
            Self::reply(token, Err(refusal), out);
        }
    }
}
