//! Deadlines: the earliest one of the whole session, and what is done when it passes.
//!
//! The owner task arms one timer for [`SessionMachine::deadline`] after each step: no transition can leave a timer
//! behind, and an idle session without `ttl_s` and `idle_timeout_s` has no timer.

use super::close::StopCause;
use super::execution::Current;
use super::input::LoadFailure;
use super::input::{CloseCause, Now, Refusal, SessionAction};
use super::machine::SessionMachine;
use super::messages::host_error;
use super::phase::Phase;
use super::record::Pending;
use vm_system_protocol::limits::INTERRUPT_GRACE_MS;
use vm_system_protocol::model::ExecutionStatus;
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::HostReply;
use vm_system_record::Write;

/// Longest wait for a host call or a file (milliseconds); the workers of the host have shorter deadlines.
pub(super) const HOST_CALL_MS: u64 = 60_000;
/// Longest wait for the exit of a killed worker (milliseconds); then its end is recorded without its wait status.
pub(super) const EXIT_MS: u64 = 5_000;
/// Time beyond the remaining wall time after which an adopted worker must have sent its `Adopted` (milliseconds): it may be inside a
/// native that never polls, and is then killed for its wall time first.
pub(super) const ADOPTED_SLACK_MS: u64 = 2 * INTERRUPT_GRACE_MS;
/// Time between two records of what a running execution has used of its limits (milliseconds). Another supervisor continues there.
pub(super) const PROGRESS_MS: u64 = 1_000;
/// An interrupted worker that still runs is interrupted again after this time (milliseconds): it clears its flag when
/// it begins an execution, so an interrupt that arrives before `Execute` is lost.
pub(super) const INTERRUPT_AGAIN_MS: u64 = 20;
/// CPU time beyond `cpu_ms` before this machine acts: the worker's own limit comes first (milliseconds).
pub(super) const CPU_SLACK_MS: u64 = 100;
/// Step by which the kernel's CPU limit is raised (milliseconds).
pub(super) const CPU_STEP_MS: u64 = 10_000;

impl SessionMachine {
    /// When the next [`SessionInput::Tick`](super::SessionInput::Tick) is due (`mono_ms`); `None`: no deadline is set.
    pub fn deadline(&self) -> Option<u64> {
        let timers = &self.timers;
        let session = [
            timers.ttl_at,
            timers.idle_at,
            timers.suspend_at,
            timers.phase_at,
            timers.hang_up_at,
            self.drain_due(),
            self.ledger.retry_at(),
        ];
        let execution = self.execution_deadlines().into_iter().chain([self.unrecorded_deadline()]);
        session.into_iter().chain(execution).flatten().min()
    }

    /// When `ttl_s`, `idle_timeout_s` or the deadline for its build ends the session, as things are.
    pub fn next_cull_at(&self, now: Now) -> Option<Timestamp> {
        let drained_at = self.drain_due().filter(|_| !self.is_restarting());
        let at = [self.timers.ttl_at, self.timers.idle_at, drained_at].into_iter().flatten().min()?;
        let left_ms = i64::try_from(at.saturating_sub(now.mono_ms)).unwrap_or(i64::MAX);
        Some(Timestamp(now.unix_ms.saturating_add(left_ms)))
    }

    fn execution_deadlines(&self) -> [Option<u64>; 3] {
        if self.phase() == Phase::Killed {
            return [None; 3];
        }
        match &self.current {
            None => [None; 3],
            Some(Current::Loading(loading)) => [Some(loading.until), None, None],
            // The store has its own deadline, and so has the check of types.
            Some(Current::Running(running)) if running.withheld.is_some() => [None; 3],
            Some(Current::Forking(forking)) => [Some(forking.until), None, None],
            Some(Current::Running(running)) => match (running.stopping.grace_until, running.host) {
                (Some(grace), _) => [Some(grace), Some(running.stopping.interrupt_again_at), None],
                (None, Some(_)) if running.tasks.pending.is_some() => [
                    running.tasks.pending.as_ref().and_then(super::pending_task::PendingTask::due_at),
                    None,
                    None,
                ],
                (None, Some(wait)) if wait.on_wall_clock => [running.wall.runs_out(), None, None],
                (None, Some(wait)) => [Some(wait.since + HOST_CALL_MS), None, None],
                (None, None) => {
                    [running.wall.runs_out(), Some(running.cpu_check_at), Some(running.progress_at)]
                }
            },
        }
    }

    /// Handles every deadline that has passed.
    pub(super) fn tick(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now.mono_ms);
        if due(self.ledger.retry_at()) {
            self.retry_owed(out);
        }
        if due(self.timers.phase_at) {
            self.timers.phase_at = None;
            self.phase_overdue(now, out);
        }
        if due(self.timers.hang_up_at) {
            self.timers.hang_up_at = None;
            self.condemn(CloseReason::HungUp, now, out);
        }
        if due(self.timers.ttl_at) {
            self.timers.ttl_at = None;
            self.begin_close(CloseCause::Expired, now, out);
        }
        if due(self.timers.idle_at) {
            self.timers.idle_at = None;
            self.begin_close(CloseCause::Idle, now, out);
        }
        if due(self.timers.suspend_at) {
            self.timers.suspend_at = None;
            self.suspend(None, now, out);
        }
        self.tick_drain(now, out);
        self.tick_execution(now, out);
        self.tick_unrecorded(now, out);
    }

    fn phase_overdue(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        match self.phase() {
            Phase::SettingUp => {
                let why = "the worker did not report the end of its set-up within the deadline";
                self.condemn(CloseReason::SpawnFailed(why.to_owned()), now, out);
            }
            Phase::Ready => self.violation("no reply to Adopt", now, out),
            // The session is recorded as closed all the same: its client need not know that the worker had to be killed.
            Phase::Closing => {
                let reason = self.ending.closing.map_or(CloseReason::Exited, CloseCause::reason);
                self.condemn(reason, now, out);
            }
            Phase::Killed => {
                let reason = self.close_reason_of(super::WorkerExitStatus::Unknown);
                self.end(reason, now, out);
            }
            Phase::Restoring => self.restoring_overdue(now, out),
            Phase::New | Phase::Spawning | Phase::Starting | Phase::Ended | Phase::Released => {}
        }
    }

    fn tick_execution(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() {
            return;
        }
        match &mut self.current {
            Some(Current::Loading(loading)) if loading.until <= now.mono_ms => {
                let why =
                    LoadFailure::Unreadable("the file could not be read within the deadline".to_owned());
                self.drop_loading(Refusal::Load(why), now, out);
            }
            Some(Current::Forking(forking)) if forking.until <= now.mono_ms => {
                self.violation("did not report the result of its fork", now, out);
            }
            None | Some(Current::Loading(_) | Current::Forking(_)) => {}
            Some(Current::Running(running)) if running.withheld.is_some() => {}
            Some(Current::Running(running)) => match (running.stopping.grace_until, running.host) {
                (Some(grace), _) if grace <= now.mono_ms => {
                    let reason = match (self.ending.closing, running.stopping.stop) {
                        (Some(cause), _) => cause.reason(),
                        (None, Some(StopCause::Limit(kind))) => CloseReason::Limit(kind),
                        (None, _) => CloseReason::Cancelled,
                    };
                    self.condemn(reason, now, out);
                }
                (Some(_), _) => {
                    if running.stopping.interrupt_again_at <= now.mono_ms {
                        running.stopping.interrupt_again_at = now.mono_ms + INTERRUPT_AGAIN_MS;
                        out.push(SessionAction::Interrupt);
                    }
                }
                (None, Some(_)) if running.tasks.pending.is_some() => self.expire_task(now, out),
                (None, Some(wait)) if wait.on_wall_clock => self.tick_limits(now, out),
                (None, Some(wait)) => {
                    if wait.since + HOST_CALL_MS <= now.mono_ms {
                        out.push(SessionAction::DropHostWork);
                        let error = host_error("ETIMEDOUT", "the host did not answer in time");
                        self.host_replied(wait.call, HostReply::Failed(error), now, out);
                    }
                }
                (None, None) => {
                    self.store_progress(now, out);
                    self.tick_limits(now, out);
                }
            },
        }
    }

    /// Stores what the running execution has used of its limits, now and then.
    fn store_progress(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        if running.progress_at > now.mono_ms {
            return;
        }
        running.progress_at = now.mono_ms + PROGRESS_MS;
        let (id, metrics) = (running.id(), running.metrics(now, 0));
        let progress = Write::RunProgress { id, status: ExecutionStatus::Running, metrics, limits: None };
        // A lost one loses no output of the execution.
        self.persist(Pending::default(), vec![progress], false, out);
    }

    fn tick_limits(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        if running.wall.runs_out().is_some_and(|at| at <= now.mono_ms) {
            return self.stop(StopCause::Limit(LimitKind::Wall), now, out);
        }
        if running.cpu_check_at <= now.mono_ms {
            let allowed_us = (u64::from(running.policy.wire.limits.cpu_ms) + CPU_SLACK_MS) * 1_000;
            let used_us = running.cpu_us(now);
            if used_us >= allowed_us {
                return self.stop(StopCause::Limit(LimitKind::Cpu), now, out);
            }
            // The CPU limit cannot be reached before this much more time has passed.
            running.cpu_check_at = now.mono_ms + ((allowed_us - used_us) / 1_000).max(1);
        }
    }
}
