//! One history: clients, clock, worker and store around one machine.

mod accidents;

use super::checks::Checks;
use super::database::{BatchOutcome, Database};
use super::requests::{request, spec};
use super::restarts::Restarts;
use super::worker::SimulatedWorker;
use super::{SimulatedCounts, SimulatedFaults};
use crate::durable::SubmittedAnswer;
use crate::durable::schema::Schema;
use crate::{
    ChannelFault, CheckedTypes, CloseCause, Executed, ForkFault, LoadFailure, LoadedSource, Now, Respawned,
    SessionAction, SessionInput, SessionMachine, SessionRequest, SessionSpec, SpawnFailure, Token,
    WorkerExitStatus,
};
use std::collections::VecDeque;
use std::sync::Arc;
use vm_system_policy::{EffectivePolicy, Operator, Snapshot, effective};
use vm_system_protocol::broker::FsReply;
use vm_system_protocol::codec::encode;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::limits::WORKER_MESSAGE_BYTES;
use vm_system_protocol::model::{ExecutionKind, TypeCheck};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{HostReply, SourceFormat, ToWorker};
use vm_system_testkit::SeededRandom;

/// Characters of a line of the transcript.
const LINE: usize = 300;
/// Steps before the history is ended.
const STEPS: u64 = 200;
/// Steps within which the history must then end.
const LAST_STEPS: u64 = 3_000;

#[derive(Clone, Copy)]
enum Fork {
    /// The fork message could not be sent.
    Unordered,
    Ordered,
    /// The worker has reported.
    Reported {
        made: bool,
    },
    Over,
}

pub(super) struct World {
    rng: SeededRandom,
    faults: SimulatedFaults,
    machine: SessionMachine,
    checks: Checks,
    worker: SimulatedWorker,
    /// Messages to the worker that are still in the supervisor, and are lost with it.
    outbox: VecDeque<ToWorker>,
    database: Database,
    /// Executions without a row at an exit of the supervisor.
    unrecorded: SimulatedCounts,
    now: Now,
    next_token: u64,
    known: Vec<ExecutionId>,
    spawning: bool,
    host_call: Option<u64>,
    loading: Option<ExecutionId>,
    /// The types of its file are being checked.
    checking: Option<ExecutionId>,
    /// A requested fork, and its progress.
    fork: Option<(u64, Fork)>,
    /// A frozen copy was ordered to fork.
    copy_forks: bool,
    restarts: Restarts,
    /// Rollbacks that were completed.
    restored: u64,
    exit_reported: bool,
    received: u64,
    adopted: bool,
    end_requested: bool,
    broken: Option<String>,
    transcript: Option<String>,
    policy: Arc<EffectivePolicy>,
    spec: SessionSpec,
}

impl World {
    pub(super) fn new(seed: u64, faults: SimulatedFaults, recorded: bool) -> Self {
        let mut rng = SeededRandom::new(seed);
        let mut snapshot = Snapshot::default();
        if rng.one_in(2) {
            snapshot.modules.push("fs".to_owned());
        }
        snapshot.settings.runtime.typecheck = match seed % 16 {
            3 => TypeCheck::Warn,
            7 => TypeCheck::Error,
            _ => TypeCheck::Off,
        };
        let policy = Arc::new(effective(&snapshot, None, &Operator::default()));
        let spec = spec(&mut rng, &policy);
        Self {
            machine: SessionMachine::new(spec.clone()),
            spec,
            rng,
            faults,
            checks: Checks::default(),
            worker: SimulatedWorker::new(),
            outbox: VecDeque::new(),
            database: Database::default(),
            unrecorded: SimulatedCounts::default(),
            now: Now { mono_ms: 1_000, unix_ms: 1_700_000_000_000, cpu_us: 0 },
            next_token: 0,
            known: Vec::new(),
            spawning: false,
            host_call: None,
            loading: None,
            checking: None,
            fork: None,
            copy_forks: false,
            restarts: Restarts::default(),
            restored: 0,
            exit_reported: false,
            received: 0,
            adopted: false,
            end_requested: false,
            broken: None,
            transcript: recorded.then(String::new),
            policy,
        }
    }

    pub(super) fn play(&mut self) {
        let token = Token::new(self.next_caller());
        self.input(SessionInput::Create { token });
        for _ in 0..STEPS {
            self.happen();
        }
        let token = Token::new(self.next_caller());
        self.end_requested = true;
        self.faults = SimulatedFaults { store: false, adoption: false, ..self.faults };
        self.input(SessionInput::Close { token, cause: CloseCause::Request });
        for _ in 0..LAST_STEPS {
            if self.machine.is_released() && self.database.queue.is_empty() {
                break;
            }
            self.happen();
        }
    }

    pub(super) fn verdict(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if self.machine.deadline().is_some() {
            return Err("a deadline is left behind".to_owned());
        }
        self.checks.at_the_end(&self.database)?;
        let blameless = !self.faults.hostile && !self.faults.exits;
        if blameless
            && self.machine.record().close_reason.as_deref().is_some_and(|why| why.starts_with("protocol"))
        {
            return Err(format!("a violation of an honest worker: {:?}", self.machine.record().close_reason));
        }
        if self.machine.record().close_reason.is_none() || self.machine.record().closed_at.is_none() {
            return Err("an end without a reason".to_owned());
        }
        Ok(())
    }

    /// Whether the session ended in a way that requires a fault: limits, operators, deadlines and startup files end
    /// sessions in every kind of history.
    pub(super) fn crashed(&self) -> bool {
        let reason = self.machine.record().close_reason.as_deref().unwrap_or_default();
        ["protocol", "signal", "seccomp", "exited(", "keeper"].iter().any(|fault| reason.starts_with(fault))
    }

    /// Rollbacks whose worker existed.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// Workers that replaced others.
    pub(super) fn restarted(&self) -> u64 {
        self.restarts.count
    }

    pub(super) fn executions(&self) -> u64 {
        self.database.executions.len() as u64
    }

    pub(super) fn unrecorded(&self) -> SimulatedCounts {
        self.unrecorded
    }

    pub(super) fn transcript(&self) -> &str {
        self.transcript.as_deref().unwrap_or_default()
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(transcript) = &mut self.transcript {
            transcript.extend(line().chars().take(LINE));
            transcript.push('\n');
        }
    }

    fn next_caller(&mut self) -> u64 {
        self.next_token += 1;
        self.checks.requested(self.next_token);
        self.next_token
    }

    fn input(&mut self, input: SessionInput) {
        if self.broken.is_some() {
            return;
        }
        let at = self.now.mono_ms;
        self.note(|| format!("{at:>7} {input:?}"));
        let mut out = Vec::new();
        self.machine.step(input, self.now, &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, actions: Vec<SessionAction>) {
        for action in actions {
            self.note(|| format!("          → {action:?}"));
            if let Err(broken) = self.checks.action(&action, &self.database) {
                let _ = self.broken.get_or_insert(broken);
                return;
            }
            match action {
                SessionAction::Spawn => self.spawning = true,
                SessionAction::Respawn => {
                    if let Err(broken) = self.restarts.ordered(self.now.mono_ms, self.machine.is_replacing())
                    {
                        self.broken.get_or_insert(broken);
                    }
                }
                SessionAction::Send(message) => {
                    let is_slow =
                        self.faults.adoption && matches!(message, ToWorker::Execute(_)) && self.rng.one_in(8);
                    self.outbox.push_back(message);
                    if !is_slow && self.outbox.len() == 1 {
                        self.send_all();
                    }
                }
                SessionAction::Interrupt => self.worker.interrupt(),
                SessionAction::Kill | SessionAction::Signal(9) => {
                    self.worker.exit(WorkerExitStatus::Signaled(9));
                }
                SessionAction::Signal(15) => self.worker.exit(WorkerExitStatus::Signaled(15)),
                SessionAction::LoadSource { execution, .. } => self.loading = Some(execution),
                SessionAction::CheckTypes { execution, .. } => self.checking = Some(execution),
                SessionAction::Fork { order } => {
                    let ordered = !self.faults.exits || self.rng.below(10) > 0;
                    self.fork = Some((order, if ordered { Fork::Ordered } else { Fork::Unordered }));
                    if ordered && let Err(broken) = self.worker.order_fork(order) {
                        self.broken.get_or_insert(broken);
                    }
                }
                SessionAction::ForksOver => self.fork = None,
                SessionAction::ForkCopy { .. } => self.copy_forks = true,
                SessionAction::HostCall { call, .. } => self.host_call = Some(call),
                // Sometimes a reply is under way already.
                SessionAction::DropHostWork if self.rng.one_in(2) => {
                    (self.host_call, self.loading, self.checking) = (None, None, None);
                }
                SessionAction::Write { id, batch, .. } => self.database.queue.push_back((id, batch)),
                _ => {}
            }
        }
    }

    fn send_all(&mut self) {
        while let Some(message) = self.outbox.pop_front() {
            if let Err(broken) = self.worker.on_message(message, &mut self.rng) {
                self.broken.get_or_insert(broken);
            }
        }
    }

    /// One random event.
    fn happen(&mut self) {
        if !self.outbox.is_empty() && self.rng.one_in(2) {
            self.send_all();
        }
        if self.fork.is_some() && self.rng.one_in(2) {
            // A fork takes practically no time.
            self.fork_continues();
        }
        match self.rng.below(20) {
            0..=3 => self.store_turns(),
            4 if self.fork.is_some() => self.fork_continues(),
            5 if self.copy_forks => self.copy_is_forked(),
            4..=7 if self.machine.has_worker() => self.worker.run(self.faults.hostile, &mut self.rng),
            8..=11 => self.deliver_worker_message(),
            12 | 13 if self.checking.is_some() => self.types_are_checked(),
            12 => self.host_answers(),
            13 => self.file_is_read(),
            14 => self.time_passes(),
            15 => self.finish_worker_start(),
            16 if !self.end_requested => self.accident(),
            _ if !self.end_requested => self.client_wants(),
            _ => self.time_passes(),
        }
    }

    fn store_turns(&mut self) {
        let fail = self.faults.store && self.rng.one_in(4);
        match self.database.turn(fail) {
            Some(BatchOutcome::Committed(write)) => self.input(SessionInput::Stored(write)),
            Some(BatchOutcome::Lost(write)) => {
                self.input(SessionInput::StoreFailed {
                    write,
                    error: "disk full".to_owned(),
                    permanent: false,
                });
            }
            Some(BatchOutcome::Rejected(write, error)) => {
                if self.database.holes.is_empty()
                    && !self.database.end_lost
                    && self.database.session.is_some()
                {
                    self.broken.get_or_insert(format!("the store refused: {error}"));
                }
                self.input(SessionInput::StoreFailed { write, error, permanent: true });
            }
            None => {}
        }
    }

    fn finish_worker_restart(&mut self) {
        self.restarts.is_under_way = false;
        if self.faults.exits && self.rng.one_in(8) {
            self.restarts.exited_at = self.now.mono_ms;
            return self.input(SessionInput::SpawnFailed(SpawnFailure::late("no memory".to_owned())));
        }
        self.begin_worker();
        self.restarts.count += u64::from(self.machine.is_restarting());
        let startup =
            (0..self.rng.below(2)).map(|_| request(&mut self.rng, ExecutionKind::Startup)).collect();
        let policy = Arc::clone(&self.policy);
        let respawned = Respawned { random_seed: [2; 32], startup, policy };
        self.input(SessionInput::Respawned(Box::new(respawned)));
    }

    fn finish_worker_start(&mut self) {
        if self.restarts.is_under_way {
            return self.finish_worker_restart();
        }
        if !std::mem::take(&mut self.spawning) {
            return;
        }
        if self.faults.exits && self.rng.one_in(10) {
            self.input(SessionInput::SpawnFailed(SpawnFailure::late("no memory".to_owned())));
        } else {
            self.input(SessionInput::Spawned);
        }
    }

    /// The worker's messages are delivered before its exit.
    fn deliver_worker_message(&mut self) {
        if let Some((seq, message)) = self.worker.sent.pop_front() {
            let bytes = encode(&message, WORKER_MESSAGE_BYTES).expect("it fits").len() as u64;
            self.input(SessionInput::Message { seq, bytes, message });
            // Sequence 0 is the answer to an adoption, and what comes before it is discarded.
            if seq > self.received + 1 && !self.adopted {
                self.check(self.checks.out_of_order());
            }
            self.received = seq;
            return;
        }
        if let Some(exit_status) = self.worker.exited.filter(|_| !self.exit_reported) {
            if self.rng.one_in(2) {
                return self.input(SessionInput::ChannelFailed(ChannelFault::Closed));
            }
            (self.exit_reported, self.restarts.exited_at) = (true, self.now.mono_ms);
            self.input(SessionInput::Exited(exit_status));
        }
    }

    /// The worker reports its clone, and the owner task reports the child; in either order.
    fn fork_continues(&mut self) {
        let Some((order, stage)) = self.fork else { return };
        let (next, result) = match stage {
            Fork::Unordered => {
                let why = SpawnFailure::late("no descriptors".to_owned());
                (Fork::Over, Some(Err(ForkFault::NotOrdered(why))))
            }
            Fork::Ordered => match self.worker.fork(&mut self.rng) {
                Some(made) => {
                    let lies = self.faults.hostile && self.rng.one_in(8);
                    (Fork::Reported { made: made != lies }, None)
                }
                None => (Fork::Over, None),
            },
            Fork::Reported { made: true } => (Fork::Over, Some(Ok(()))),
            Fork::Reported { made: false } if self.faults.hostile && self.rng.one_in(4) => {
                (Fork::Over, Some(Err(ForkFault::Violation("two children".to_owned()))))
            }
            Fork::Reported { made: false } => {
                let why = SpawnFailure::late("it exited".to_owned());
                (Fork::Over, Some(Err(ForkFault::Failed(why))))
            }
            Fork::Over => return,
        };
        self.fork = Some((order, next));
        if let Some(result) = result {
            self.input(SessionInput::ForkEnded { order, result });
        }
    }

    /// The last worker has exited: its successor begins anew.
    fn copy_is_forked(&mut self) {
        self.copy_forks = false;
        if self.faults.exits && self.rng.one_in(8) {
            let fault = if self.rng.one_in(2) {
                ForkFault::Failed(SpawnFailure::late("no memory".to_owned()))
            } else {
                ForkFault::Violation("it exited".to_owned())
            };
            return self.input(SessionInput::CopyForked(Err(fault)));
        }
        self.begin_worker();
        self.restored += u64::from(self.machine.awaits_fork_of_copy());
        self.input(SessionInput::CopyForked(Ok([1; 32])));
    }

    /// The next worker.
    fn begin_worker(&mut self) {
        self.worker = SimulatedWorker::new();
        self.outbox.clear();
        (self.exit_reported, self.received, self.adopted, self.now.cpu_us) = (false, 0, false, 0);
        (self.host_call, self.loading, self.checking) = (None, None, None);
    }

    fn host_answers(&mut self) {
        if let Some(call) = self.host_call.take() {
            self.input(SessionInput::HostReplied { call, reply: HostReply::Fs(FsReply::Bool(true)) });
        }
    }

    fn file_is_read(&mut self) {
        let Some(execution) = self.loading.take() else { return };
        let result = match self.rng.below(8) {
            0 => Err(LoadFailure::NotFound("no such file".to_owned())),
            _ => Ok(LoadedSource { text: "1".to_owned(), format: SourceFormat::Script }),
        };
        self.input(SessionInput::SourceLoaded { execution, result });
    }

    fn types_are_checked(&mut self) {
        let Some(execution) = self.checking.take() else { return };
        self.checks.checking.remove(&execution);
        let result = match self.rng.below(4) {
            0 => CheckedTypes::Failed { why: "no compiler".to_owned(), hint: None },
            1 => CheckedTypes::Done { lines: vec!["a.js:1:1: error TS1: x".to_owned()], errors: 1 },
            _ => CheckedTypes::Done { lines: Vec::new(), errors: 0 },
        };
        self.input(SessionInput::TypesChecked { execution, result });
    }

    fn time_passes(&mut self) {
        self.send_all();
        if self.worker.exited.is_some() && !self.exit_reported && !self.faults.exits {
            // The kernel reports exits at once; only a faulty world reports them late.
            return self.deliver_worker_message();
        }
        let blameless = !self.faults.hostile && !self.faults.exits;
        if self.machine.is_catching_up() && blameless {
            // A correct worker replies at once.
            return self.deliver_worker_message();
        }
        if self.fork.is_some() && blameless {
            // A fork takes practically no time.
            self.fork_continues();
            return self.deliver_worker_message();
        }
        if self.copy_forks && blameless {
            return self.copy_is_forked();
        }
        if self.restarts.is_under_way && blameless {
            return self.finish_worker_restart();
        }
        let step = match self.machine.deadline() {
            Some(deadline) if self.rng.one_in(2) => deadline.saturating_sub(self.now.mono_ms),
            _ => self.rng.below(50),
        };
        self.now.mono_ms += step;
        // The calendar is set back now and then.
        self.now.unix_ms += if self.rng.one_in(20) { -5_000 } else { step as i64 };
        if self.worker.is_busy() {
            self.now.cpu_us += self.rng.below(step * 1_000 + 1);
        }
        self.input(SessionInput::Tick);
    }

    fn client_wants(&mut self) {
        if self.machine.is_making_guard() && self.fork.is_some() && self.rng.below(8) > 0 {
            // Requests wait for the guard copy.
            self.fork_continues();
            return self.deliver_worker_message();
        }
        if self.rng.one_in(60) {
            // An administrator has workers of other builds replaced, or changes the mind.
            let in_ms = self.rng.below(400) as i64;
            let at = self.rng.one_in(2).then_some(Timestamp(self.now.unix_ms + in_ms));
            let token = Some(Token::new(self.next_caller()));
            return self.input(SessionInput::Drain { token, at });
        }
        let caller = self.next_caller();
        let input = match self.rng.below(74) {
            0 => SessionInput::Close { token: Token::new(caller), cause: CloseCause::Request },
            1 => SessionInput::Kill {
                token: Token::new(caller),
                signal: if self.rng.one_in(2) { 9 } else { 15 },
            },
            2..=7 => {
                let at = self.rng.below(self.known.len() as u64 + 1) as usize;
                let execution = self.known.get(at).copied().or(self.known.last().copied());
                SessionInput::Cancel {
                    token: Token::new(caller),
                    execution: execution.unwrap_or(ExecutionId::from_bytes([0; 16])),
                    abandoned: at % 4 == 3,
                }
            }
            8..=25 => self.submit_answer(Token::new(caller)),
            60..=64 => SessionInput::Checkpoint {
                token: Token::new(caller),
                name: self.rng.one_in(3).then(|| "a".to_owned()),
            },
            65 => SessionInput::DeleteCheckpoint {
                token: Token::new(caller),
                checkpoint: self.rng.below(6).to_string(),
            },
            66..=69 => {
                let checkpoint = self.rng.one_in(4).then(|| self.rng.below(6).to_string());
                SessionInput::Request {
                    token: Token::new(caller),
                    request: SessionRequest::Rollback { checkpoint },
                }
            }
            70..=72 => SessionInput::Request { token: Token::new(caller), request: SessionRequest::Suspend },
            73 => SessionInput::Request { token: Token::new(caller), request: SessionRequest::Resume },
            26..=30 => SessionInput::Fork { token: Token::new(caller), count: self.rng.below(3) as u32 + 1 },
            _ => {
                let kind = if self.rng.one_in(3) { ExecutionKind::RunFile } else { ExecutionKind::Repl };
                let request = Box::new(request(&mut self.rng, kind));
                self.known.push(request.id);
                if request.stored_first {
                    self.checks.stored_first.insert(request.id);
                }
                SessionInput::Execute { token: Token::new(caller), request, policy: Arc::clone(&self.policy) }
            }
        };
        let cancelled = match &input {
            SessionInput::Cancel { execution, .. } if self.machine.running() == Some(*execution) => {
                Some(*execution)
            }
            _ => None,
        };
        self.input(input);
        if let Some(execution) = cancelled {
            let verdict = self.checks.cancelled(execution);
            self.check(verdict);
        }
    }

    /// Mostly the pending task; sometimes one that is not.
    fn submit_answer(&mut self, token: Token<Executed>) -> SessionInput {
        let answer = ["1", "so", "true", "null"][self.rng.below(4) as usize].to_owned();
        let (given, wait) = (GivenAnswer::Typed(answer), self.rng.below(4) > 0);
        let pending = self.database.pending().map(|row| {
            let schema = row.schema.as_deref().map(|schema| Schema::new(schema).expect("it was checked"));
            (row.execution, row.id, SubmittedAnswer::check(row.id, schema.as_ref(), &given))
        });
        match pending {
            Some((execution, task, answer)) if self.rng.below(8) > 0 => SessionInput::Submit {
                token,
                execution,
                task: self.rng.one_in(2).then_some(task),
                answer,
                wait,
            },
            _ => {
                let execution = self.known.last().copied().unwrap_or(ExecutionId::from_bytes([0; 16]));
                let task = self.rng.one_in(2).then_some(TaskId::from_bytes([9; 16]));
                let answer = SubmittedAnswer::Unchecked(given);
                SessionInput::Submit { token, execution, task, answer, wait }
            }
        }
    }

    fn check(&mut self, verdict: Result<(), String>) {
        if let Err(broken) = verdict {
            self.broken.get_or_insert(broken);
        }
    }
}
