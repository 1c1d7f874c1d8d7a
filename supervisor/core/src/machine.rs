//! The machine's state and the dispatch of inputs. Each transition has its own module.

use super::adoption::Adoption;
use super::caller::{ReplyToCaller, Token};
use super::close::{Ender, StopCause};
use super::drain::Drain;
use super::execution::{Current, ExecutionJob, Running};
use super::input::{
    CloseCause, LibraryFailure, Now, Refusal, SessionAction, SessionInput, SessionSpec, SpawnFailure,
};
use super::phase::{CurrentPhase, Phase, PhaseChange};
use super::record::Ledger;
use super::rollback::Copies;
use std::collections::VecDeque;
use std::sync::Arc;
use vm_system_policy::{EffectivePolicy, SessionUsage};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::keeper::ProcessUsage;
use vm_system_protocol::model::{Session, SessionStatus};
use vm_system_protocol::reason::{CloseReason, WorkerExitStatus};
use vm_system_protocol::worker::{Start, ToWorker};
use vm_system_record::{Owner, PolicySnapshot, RecordedWorktree, RunningExecutionRow};

/// The session's deadlines (`mono_ms`). Deadlines of an execution are kept with it.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "a point in time is called `…_at` everywhere")]
pub(super) struct SessionTimers {
    /// End of the session's life.
    pub(super) ttl_at: Option<u64>,
    /// The idle timeout.
    pub(super) idle_at: Option<u64>,
    /// The suspension of an idle session.
    pub(super) suspend_at: Option<u64>,
    /// Set-up, exit after `Shutdown`, or exit after SIGKILL, depending on the phase.
    pub(super) phase_at: Option<u64>,
    /// The worker has closed its end of the channel, but has not exited.
    pub(super) hang_up_at: Option<u64>,
}

/// Longest life of a session (milliseconds); none = for ever.
#[derive(Debug)]
pub(super) struct Lifetime {
    /// In total.
    pub(super) ttl_ms: Option<u64>,
    /// Without an execution.
    pub(super) idle_ms: Option<u64>,
    /// The end of the total (`mono_ms`).
    pub(super) ends_at: Option<u64>,
}

/// The suspension of the session's worker, and when it is due.
#[derive(Debug, Default)]
pub(super) struct Suspension {
    pub(super) is_suspended: bool,
    /// Time without a request (milliseconds).
    pub(super) after_ms: Option<u64>,
}

/// The worker's side of the channel.
#[derive(Debug)]
pub(super) struct ChannelState {
    /// Number of the next message.
    pub(super) next_seq: u64,
    /// Number of the next host call; unknown right after an adoption.
    pub(super) next_call: Option<u64>,
    /// The worker has not reported the end of its set-up.
    pub(super) setting_up: bool,
    /// The open part of its adoption from the previous supervisor.
    pub(super) adoption: Adoption,
    /// The kernel's CPU limit (milliseconds since the worker's start).
    pub(super) cpu_allowed_ms: u64,
    /// JavaScript heap as last reported (bytes).
    pub(super) heap_bytes: u64,
    /// Forks ordered so far.
    pub(super) forks: u64,
}

impl ChannelState {
    /// A worker that was not set up yet.
    pub(super) const fn of_new_worker() -> Self {
        Self {
            next_seq: 1,
            next_call: Some(1),
            setting_up: true,
            adoption: Adoption::none(),
            cpu_allowed_ms: 0,
            heap_bytes: 0,
            forks: 0,
        }
    }
}

/// The parts from which a session is created, and the result for its creator.
#[derive(Debug)]
pub(super) struct Creation {
    /// The parts of the session's row besides its record, until the row is written.
    pub(super) row: Option<(Owner, Arc<PolicySnapshot>, Option<Arc<RecordedWorktree>>)>,
    pub(super) start: Option<Box<Start>>,
    pub(super) startup: VecDeque<super::ExecuteRequest>,
    pub(super) startup_policy: Arc<EffectivePolicy>,
    pub(super) creator: Option<Token<Session>>,
    /// Why no worker could be started.
    pub(super) spawn_failure: Option<SpawnFailure>,
    /// The library without which no worker was started.
    pub(super) library_failure: Option<LibraryFailure>,
}

/// Why a session ends, and the callers that wait for it.
#[derive(Debug, Default)]
pub(super) struct SessionEnd {
    pub(super) enders: Vec<Ender>,
    pub(super) closing: Option<CloseCause>,
    pub(super) verdict: Option<CloseReason>,
    pub(super) operator_signal: Option<i32>,
    pub(super) usage: Option<ProcessUsage>,
    /// The worker was stopped from outside when it was killed.
    pub(super) was_stopped: bool,
}

/// One session.
#[derive(Debug)]
pub struct SessionMachine {
    pub(super) record: Session,
    pub(super) phase: CurrentPhase,
    pub(super) creation: Creation,
    pub(super) current: Option<Current>,
    pub(super) ending: SessionEnd,
    pub(super) timers: SessionTimers,
    pub(super) lifetime: Lifetime,
    memory_mb: u32,
    pub(super) peer: ChannelState,
    pub(super) copies: Copies,
    pub(super) ledger: Ledger,
    /// Use of host modules by the session's executions, since this supervisor started or adopted it.
    pub(super) host_usage: SessionUsage,
    /// Inputs of another session are being repeated in it (`restoration`).
    pub(super) is_restoration: bool,
    pub(super) suspension: Suspension,
    /// By when its worker is replaced.
    pub(super) drain: Option<Drain>,
    adopted: bool,
}

/// The execution that was running when the previous supervisor exited, as stored.
#[derive(Debug, Clone)]
pub struct AdoptedExecution {
    pub row: RunningExecutionRow,
    /// The execution's rights.
    pub policy: Arc<EffectivePolicy>,
}

impl SessionMachine {
    /// A session to create; its first input is [`SessionInput::Create`].
    pub fn new(spec: SessionSpec) -> Self {
        let copies = Copies::new(spec.on_crash, &spec.start, &spec.record.runtime_meta);
        Self {
            memory_mb: spec.start.limits.mem_mb,
            record: spec.record,
            phase: CurrentPhase::new(),
            creation: Creation {
                row: Some((spec.owner, spec.snapshot, spec.worktree)),
                start: Some(Box::new(spec.start)),
                startup: spec.startup.into(),
                startup_policy: spec.startup_policy,
                creator: None,
                spawn_failure: None,
                library_failure: None,
            },
            current: None,
            ending: SessionEnd::default(),
            timers: SessionTimers::default(),
            lifetime: Lifetime {
                ttl_ms: (spec.ttl_s > 0).then(|| u64::from(spec.ttl_s) * 1_000),
                idle_ms: (spec.idle_timeout_s > 0).then(|| u64::from(spec.idle_timeout_s) * 1_000),
                ends_at: None,
            },
            peer: ChannelState::of_new_worker(),
            copies,
            ledger: Ledger::default(),
            host_usage: SessionUsage::default(),
            is_restoration: false,
            suspension: Suspension::default(),
            drain: None,
            adopted: false,
        }
    }

    /// A session in which the inputs of another one are repeated before it is ready.
    pub fn restoration(spec: SessionSpec) -> Self {
        Self { is_restoration: true, ..Self::new(spec) }
    }

    /// A ready session with a worker that outlived the previous supervisor. The worker gets a request to send its messages above
    /// `last_committed` again; everything before its `Adopted` with this nonce was meant for the previous supervisor and is discarded. Only
    /// ready sessions without pending startup files can be adopted. `guard` is the name of its guard copy, which outlived the supervisor,
    /// too.
    pub fn adopt(
        spec: SessionSpec,
        (last_committed, nonce): (u64, u64),
        running: Option<AdoptedExecution>,
        guard: Option<SessionId>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) -> Self {
        let mut machine = Self::without_creation(spec, now);
        if let Some(name) = guard {
            machine.keep_guard(name);
            machine.examine_guard(name, last_committed, running.is_some());
        }
        machine.adopted = true;
        machine.record.status = SessionStatus::Ready;
        machine.enter(Phase::Ready, PhaseChange::Adopted);
        machine.peer.next_call = None;
        machine.peer.setting_up = false;
        machine.peer.adoption =
            Adoption::begin(nonce, running.as_ref().map(|running| running.row.execution.id));
        // Different from the numbers that earlier supervisors gave: a report about their last fork may follow.
        machine.peer.forks = nonce;
        machine.peer.next_seq = last_committed.saturating_add(1);
        machine.ledger.resume(last_committed);
        let mut patience_ms = u64::from(machine.copies.start.limits.wall_ms);
        out.push(SessionAction::Send(ToWorker::Adopt { last_committed, nonce }));
        match running {
            Some(adopted) => {
                let running = Running::adopted(adopted, now);
                patience_ms = running.wall.left_ms();
                machine.current = Some(Current::Running(Box::new(running)));
            }
            None => machine.rest(now),
        }
        machine.begin_with_drain(now);
        let patience_ms = patience_ms + super::deadlines::ADOPTED_SLACK_MS;
        machine.timers.phase_at = Some(now.mono_ms + patience_ms);
        machine.forget_lost_copies(out);
        machine
    }

    /// A session of an earlier supervisor.
    pub(super) fn without_creation(spec: SessionSpec, now: Now) -> Self {
        let mut machine = Self::new(spec);
        machine.creation.row = None;
        machine.creation.start = None;
        machine.creation.startup.clear();
        let age_ms = now.unix_ms.saturating_sub(machine.record.created_at.0).max(0).unsigned_abs();
        machine.lifetime.ends_at =
            machine.lifetime.ttl_ms.map(|ttl| now.mono_ms + ttl.saturating_sub(age_ms));
        machine.timers.ttl_at = machine.lifetime.ends_at;
        machine
    }

    /// Handles one input and appends the actions, in order.
    pub fn step(&mut self, input: SessionInput, now: Now, out: &mut Vec<SessionAction>) {
        if input.needs_worker() {
            self.wake(now, out);
        }
        match input {
            SessionInput::Drain { token, at } => self.drain(token, at, now, out),
            SessionInput::Request { token, request } => self.request(token, request, now, out),
            SessionInput::SuspendIdle => self.suspend(None, now, out),
            SessionInput::Create { token } => self.create(token, now, out),
            SessionInput::Spawned => self.spawned(now, out),
            SessionInput::Respawned(respawned) => self.respawned(*respawned, now, out),
            SessionInput::SpawnFailed(failure) => self.spawn_failed(failure, now, out),
            SessionInput::LibraryFailed(failure) => self.library_failed(failure, now, out),
            SessionInput::Execute { token, request, policy } => {
                let job = ExecutionJob { token: Some(token), request, policy };
                self.execute(job, self.refuses_idle_request(), now, out);
            }
            SessionInput::Repeat { token, request, policy } => {
                let job = ExecutionJob { token: Some(token), request, policy };
                self.execute(job, self.refuses_repetition(), now, out);
            }
            SessionInput::Fork { token, count } => self.fork(token, count, now, out),
            SessionInput::Checkpoint { token, name } => self.checkpoint(token, name, now, out),
            SessionInput::DeleteCheckpoint { token, checkpoint } => {
                self.delete_checkpoint(token, &checkpoint, out);
            }
            SessionInput::CheckpointExited { number } => self.copy_exited(number, out),
            SessionInput::CopyForked(result) => self.copy_forked(result, now, out),
            SessionInput::ForkEnded { order, result } => self.fork_ended(order, result, now, out),
            SessionInput::SourceLoaded { execution, result } => {
                self.source_loaded(execution, result, now, out);
            }
            SessionInput::TypesChecked { execution, result } => {
                self.types_checked(execution, result, now, out);
            }
            SessionInput::Message { seq, bytes, message } => self.message((seq, bytes), message, now, out),
            SessionInput::ChannelFailed(fault) => self.channel_failed(fault, now, out),
            SessionInput::MemoryShort => self.condemn(CloseReason::MemoryShort, now, out),
            SessionInput::ForbiddenCall(call) => self.condemn(CloseReason::Seccomp(call), now, out),
            SessionInput::HttpEnded(record) => self.http_ended(record, now, out),
            SessionInput::HostReplied { call, reply } => self.host_replied(call, reply, now, out),
            SessionInput::Stored(write) => self.stored(write, now, out),
            SessionInput::StoreFailed { write, error, permanent } => {
                self.store_failed(write, &error, permanent, now, out);
            }
            SessionInput::Tick => self.tick(now, out),
            SessionInput::Submit { token, execution, task, answer, wait } => {
                self.submit((token, wait), execution, (task, &answer), now, out);
            }
            SessionInput::Cancel { token, execution, abandoned } => {
                let cause = if abandoned { StopCause::Abandoned } else { StopCause::Cancelled };
                self.cancel(token, (execution, cause), now, out);
            }
            SessionInput::Close { token, cause } => self.close(token, cause, now, out),
            SessionInput::Kill { token, signal } => self.kill_by_operator(token, signal, now, out),
            SessionInput::WorkerUsage(usage) => self.ending.usage = Some(usage),
            SessionInput::WorkerStopped => self.ending.was_stopped = !self.suspension.is_suspended,
            SessionInput::Exited(exit_status) => self.on_exit(exit_status, now, out),
        }
        self.end_if_refused(now, out);
        self.replace_idle(now, out);
        self.release_if_done(out);
    }

    pub fn id(&self) -> SessionId {
        self.record.id
    }

    /// The current record; the stored one may be a commit behind.
    pub fn record(&self) -> &Session {
        &self.record
    }

    pub fn running(&self) -> Option<ExecutionId> {
        match &self.current {
            Some(Current::Running(running)) => Some(running.id()),
            _ => None,
        }
    }

    /// Whether its worker was started by an earlier supervisor.
    pub fn is_adopted(&self) -> bool {
        self.adopted
    }

    /// The worker was started by this supervisor.
    pub(super) fn forget_adoption(&mut self) {
        self.adopted = false;
    }

    /// Whether an adopted worker has not sent everything again that it had sent to the previous supervisor.
    pub fn is_catching_up(&self) -> bool {
        self.channel_usable()
            && (self.peer.adoption.is_awaited() || self.peer.adoption.repeats(self.peer.next_seq))
    }

    /// JavaScript heap that the worker may have (MiB).
    pub fn memory_mb(&self) -> u32 {
        self.memory_mb
    }

    /// JavaScript heap as last reported by the worker (bytes); advisory.
    pub fn heap_bytes(&self) -> u64 {
        self.peer.heap_bytes
    }

    /// Whether a worker may exist.
    pub fn has_worker(&self) -> bool {
        matches!(
            self.phase(),
            Phase::SettingUp | Phase::Starting | Phase::Ready | Phase::Closing | Phase::Killed
        )
    }

    /// Replies to a caller.
    pub(super) fn reply<R: ReplyToCaller>(
        token: Token<R>,
        result: Result<R, Refusal>,
        out: &mut Vec<SessionAction>,
    ) {
        out.push(SessionAction::Reply(R::reply_to(token, result)));
    }

    /// Whether messages are still received from the worker and sent to it.
    pub(super) fn channel_usable(&self) -> bool {
        self.ending.verdict.is_none() && self.has_worker()
    }

    /// No execution runs: the idle time begins.
    pub(super) fn rest(&mut self, now: Now) {
        let is_idle = self.ending.closing.is_none() && !self.peer.adoption.has_unrecorded();
        self.timers.idle_at = self.lifetime.idle_ms.filter(|_| is_idle).map(|idle| now.mono_ms + idle);
        self.timers.suspend_at = if is_idle { self.suspends_at(now) } else { None };
    }

    pub(super) fn close_reason_of(&self, exit_status: WorkerExitStatus) -> CloseReason {
        super::exit::close_reason(
            self.ending.verdict.as_ref(),
            self.ending.closing.map(CloseCause::reason),
            self.ending.operator_signal,
            self.peer.adoption.has_unrecorded()
                || matches!(&self.current, Some(Current::Running(running)) if running.stopping.stop.is_some()),
            exit_status,
        )
    }
}

impl CloseCause {
    /// The closing reason for this cause.
    pub(super) const fn reason(self) -> CloseReason {
        match self {
            Self::Request | Self::Shutdown => CloseReason::Exited,
            Self::Idle => CloseReason::Idle,
            Self::Expired => CloseReason::Expired,
            Self::Replaced => CloseReason::Replaced,
        }
    }
}
