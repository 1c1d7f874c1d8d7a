//! The owner task of one session: all of its events are handled here, one at a time. Decides nothing about
//! sessions and carries out no action: [`super::carry_out`] does that, and never waits.

use super::adoption::TakingOver;
use super::callers::SessionCallers;
use super::clock::Clock;
use super::command::{CallPart, Command, SessionCall};
use super::copies::{AdoptedCopy, Restored, SessionCopies};
use super::early::EarlyCalls;
use super::followers::{self, Followers};
use super::fork::{self, Forks};
use super::host::HostCallFuture;
use super::inspect::Facts;
use super::libraries::Libraries;
use super::link::{LinkEvent, WorkerLink, maybe, next_event};
use super::memory::Reservation;
use super::module_sets::{ModuleScope, SessionModules};
use super::owner_memory::{OwnedMemory, WorkOf};
use super::registry::LiveSession;
use super::restart::{RespawnResult, Respawning};
use super::task::{RuntimeContext, fault, no_worker};
use super::writes::{WriteOutcome, Writes};
use crate::egress::HttpClient;
use crate::worktree::Worktree;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;
use vm_system_core::pressure::PressureLevel;
use vm_system_core::{
    AdoptedExecution, Continuation, CopyId, SessionAction as Action, SessionInput as Input, SessionMachine,
    SessionReply, SessionSpec,
};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::worker::HostReply;
use vm_system_record::StoreError;
use vm_system_spawn::{
    ForkError, LibrarySet, ModuleSet, Received, SpawnError, Spawner, WorkerExitStatus, WorkerHandle,
    WorkerProcess,
};

/// Longest time to read the messages that a worker sent before its exit.
const FINAL_MESSAGES: Duration = Duration::from_secs(1);

type Spawning = Pin<Box<dyn Future<Output = Result<SpawnedWorker, SpawnError>> + Send>>;

/// A new worker.
pub(super) struct SpawnedWorker {
    pub(super) handle: WorkerHandle,
    pub(super) jail: Spawner,
    /// The modules that the zygote of its worker has compiled.
    pub(super) modules: Option<ModuleSet>,
}

/// A session of an earlier supervisor, by its rows.
pub(super) struct AdoptedSession {
    pub(super) spec: SessionSpec,
    /// The last of the worker's messages that is stored.
    pub(super) worker_seq: u64,
    pub(super) running: Option<AdoptedExecution>,
}

/// The owner task.
pub(super) struct SessionTask {
    pub(super) machine: SessionMachine,
    pub(super) shared: Arc<RuntimeContext>,
    pub(super) live: Arc<LiveSession>,
    pub(super) callers: SessionCallers,
    pub(super) followers: Followers,
    pub(super) writes: Writes<()>,
    pub(super) worker: SessionWorker,
    pub(super) forks: ForkRequests,
    pub(super) host: HostCalls,
    pub(super) modules: SessionModules,
    pub(super) copies: SessionCopies,
    /// Inputs that result from actions.
    pub(super) next: Vec<Input>,
    pub(super) released: bool,
    inbox: mpsc::Receiver<Command>,
    /// Requests that the machine cannot take yet.
    early: EarlyCalls<Box<SessionCall>>,
    taking_over: Option<TakingOver>,
    clock: Clock,
}

/// The session's worker, from its start to its exit.
pub(super) struct SessionWorker {
    pub(super) libraries: Libraries,
    pub(super) spawning: Option<Spawning>,
    /// A worker that replaces one that has exited.
    pub(super) respawning: Option<Respawning>,
    /// The worker of a forked session with its jail, until the machine requests a worker.
    pub(super) unassigned: Option<(WorkerHandle, Spawner)>,
    pub(super) link: Option<WorkerLink>,
    /// The last process; kept after its exit.
    pub(super) process: Option<WorkerProcess>,
    /// The jail of the worker; it must not end before the worker.
    pub(super) jail: Option<Spawner>,
}

/// Requests to fork the session.
#[derive(Default)]
pub(super) struct ForkRequests {
    /// A request that the machine has not accepted or refused yet.
    pub(super) requested: Option<Forks>,
    pub(super) current: Option<Forks>,
}

/// Files and host calls for the worker.
pub(super) struct HostCalls {
    pub(super) worktree: Worktree,
    pub(super) work: Option<HostCallFuture>,
    pub(super) reservation: Reservation,
    pub(super) http: HttpClient,
}

/// The event that woke the task.
enum Woken {
    Input(Input),
    Command(Option<Command>),
    HostReplied(Input),
    Spawned(Result<SpawnedWorker, SpawnError>),
    Respawned(Box<RespawnResult>),
    Forked(Result<WorkerHandle, ForkError>),
    Link(LinkEvent),
    Restored(Box<Restored>),
    /// The supervisor leaves its sessions to the next one.
    Left,
}

impl SessionTask {
    pub(super) fn new(
        machine: SessionMachine,
        (shared, live): (&Arc<RuntimeContext>, &Arc<LiveSession>),
        inbox: mpsc::Receiver<Command>,
        worktree: Worktree,
        libraries: Libraries,
    ) -> Self {
        let clock = Clock::new(shared.started, shared.store.clone());
        let mut machine = machine;
        let suspend_after =
            shared.suspend_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        machine.suspend_after(suspend_after, clock.now());
        let worker = SessionWorker {
            libraries,
            spawning: None,
            respawning: None,
            unassigned: None,
            link: None,
            process: None,
            jail: None,
        };
        Self {
            machine,
            shared: Arc::clone(shared),
            live: Arc::clone(live),
            callers: SessionCallers::default(),
            followers: Followers::default(),
            writes: Writes::new(shared.store.for_owner(&live.owner)),
            worker,
            forks: ForkRequests::default(),
            host: HostCalls {
                worktree,
                work: None,
                reservation: Reservation::default(),
                http: HttpClient::default(),
            },
            modules: SessionModules::default(),
            copies: SessionCopies::default(),
            next: Vec::new(),
            released: false,
            inbox,
            early: EarlyCalls::default(),
            taking_over: None,
            clock,
        }
    }

    /// The task of a session whose worker was started by an earlier supervisor.
    pub(super) fn adopt(
        adopted: AdoptedSession,
        guard: Option<(SessionId, AdoptedCopy)>,
        (shared, live): (&Arc<RuntimeContext>, &Arc<LiveSession>),
        inbox: mpsc::Receiver<Command>,
        worktree: Worktree,
        (handle, jail): (Option<WorkerHandle>, Spawner),
    ) -> Self {
        let AdoptedSession { spec, worker_seq, running } = adopted;
        let mut clock = Clock::new(shared.started, shared.store.clone());
        if let Some(handle) = &handle {
            // CPU time before this moment does not count for what the worker runs from now on.
            clock.sample_cpu(&handle.process);
        }
        let mut actions = Vec::new();
        let nonce = Uuid::new_v4().as_u64_pair().0;
        let name = guard.as_ref().map(|(name, _)| *name);
        let machine =
            SessionMachine::adopt(spec, (worker_seq, nonce), running, name, clock.now(), &mut actions);
        let mut task =
            Self::new(machine, (shared, live), inbox, worktree, Libraries::Installed(LibrarySet::default()));
        task.clock = clock;
        if let Some((_, copy)) = guard {
            task.keep_adopted(CopyId::Guard, copy);
        }
        task.worker.jail = Some(jail);
        if let Some(handle) = handle {
            // The earlier supervisor may have suspended it. It fails if it has exited.
            let _ = handle.process.signal(libc::SIGCONT);
            task.connect(handle);
        }
        for action in actions {
            task.carry_out(action);
        }
        task.withdraw_own_drain();
        task
    }

    /// The task of a session whose worker an earlier supervisor was replacing.
    pub(super) fn continue_replacement(
        (spec, continuation): (SessionSpec, Continuation),
        (shared, live): (&Arc<RuntimeContext>, &Arc<LiveSession>),
        inbox: mpsc::Receiver<Command>,
        worktree: Worktree,
        adopted: Option<AdoptedCopy>,
    ) -> Self {
        let clock = Clock::new(shared.started, shared.store.clone());
        let (mut actions, copy) = (Vec::new(), continuation.copy);
        let machine = SessionMachine::continue_replacement(spec, continuation, clock.now(), &mut actions);
        let libraries = Libraries::Installed(LibrarySet::default());
        let mut task = Self::new(machine, (shared, live), inbox, worktree, libraries);
        if let (Some((copy, _)), Some(adopted)) = (copy, adopted) {
            task.keep_adopted(copy, adopted);
        }
        for action in actions {
            task.carry_out(action);
        }
        task.withdraw_own_drain();
        task
    }

    /// As [`Self::run`], after the exit that was recorded while no supervisor was connected.
    pub(super) async fn run_adopted(mut self, exited: Option<WorkerExitStatus>, taking_over: TakingOver) {
        self.taking_over = Some(taking_over);
        if let Some(exited) = exited {
            self.step(Input::Exited(exited), &mut Vec::new());
        }
        self.run().await;
    }

    /// Runs until the session has ended.
    pub(super) async fn run(mut self) {
        let mut actions = Vec::new();
        while !self.released {
            self.report_taken_over();
            self.submit_early_answers(&mut actions);
            self.make_early_requests(&mut actions);
            let deadline = self.machine.deadline();
            if deadline.is_some_and(|at| at <= self.clock.now().mono_ms) {
                self.step(Input::Tick, &mut actions);
                continue;
            }
            self.clock.set_alarm(deadline);
            match self.wait().await {
                Woken::Input(input) => self.step(input, &mut actions),
                Woken::Command(Some(command)) => self.command(command, &mut actions),
                // Only if the runtime was dropped.
                Woken::Command(None) => break,
                // Worker and copies go on, and the next supervisor finds them: nothing is killed, recorded or acknowledged any more.
                Woken::Left => return,
                Woken::HostReplied(input) => {
                    self.host.work = None;
                    self.note_module(&input);
                    let records = self.host.http.records();
                    self.audit_http(records.clone());
                    for record in records {
                        self.step(Input::HttpEnded(record), &mut actions);
                    }
                    self.step(input, &mut actions);
                }
                Woken::Spawned(spawned) => self.spawned(spawned, &mut actions),
                Woken::Respawned(result) => self.respawned(*result, &mut actions),
                Woken::Forked(result) => self.forked(result, &mut actions),
                Woken::Restored(restored) => self.restored(restored, &mut actions),
                Woken::Link(LinkEvent::Exited(exit)) => self.exited(exit, &mut actions).await,
                Woken::Link(event) => self.step(link_input(event), &mut actions),
            }
        }
        self.release();
    }

    async fn wait(&mut self) -> Woken {
        let Self { shared, inbox, writes, worker, forks, copies, host, clock, .. } = self;
        let receive = !writes.is_behind();
        tokio::select! {
            biased;
            // First: what comes now is the next supervisor's.
            () = shared.left.cancelled() => Woken::Left,
            outcome = writes.next() => Woken::Input(store_input(outcome)),
            command = inbox.recv() => Woken::Command(command),
            () = clock.alarm() => Woken::Input(Input::Tick),
            input = maybe(host.work.as_mut()) => Woken::HostReplied(input),
            spawned = maybe(worker.spawning.as_mut()) => Woken::Spawned(spawned),
            result = maybe(worker.respawning.as_mut()) => Woken::Respawned(Box::new(result)),
            result = fork::next(forks.current.as_mut()) => Woken::Forked(result),
            restored = maybe(copies.restoring.as_mut().map(|restoring| &mut restoring.result)) => Woken::Restored(restored),
            event = next_event(worker.link.as_mut(), receive) => Woken::Link(event),
        }
    }

    /// Has a new session use modules that are compiled already, and record what it compiles itself. Not where nothing outlives a session.
    pub(super) fn share_modules(&mut self) {
        let Self { shared, live, host, worker, .. } = self;
        if shared.jails.common().config().prestart_workers {
            let policy = live.policy(None, &shared.operator);
            let scope = ModuleScope::of_session(&live.owner, &host.worktree, &policy, &worker.libraries);
            self.modules.scope = scope.map(Arc::new);
        }
    }

    fn note_module(&mut self, input: &Input) {
        if let Input::HostReplied { reply: HostReply::Module { path, source, format, .. }, .. } = input
            && self.shared.pressure.level() == PressureLevel::Normal
        {
            self.modules.loaded(&self.shared.module_sets, path, source, *format);
        }
    }

    /// Reports when an adopted session accepts executions.
    fn report_taken_over(&mut self) {
        if self.taking_over.is_none() || self.machine.is_taking_over() {
            return;
        }
        self.taking_over = None;
        let checkpoints = self.machine.lost_checkpoints();
        if checkpoints > 0 {
            tracing::warn!(
                session = %self.live.id, checkpoints,
                "the checkpoints of a session ended with the earlier daemon; the session continues"
            );
        }
        let executions = self.machine.unrecorded_executions();
        if executions > 0 {
            tracing::warn!(
                session = %self.live.id, executions,
                "discarded executions that the earlier daemon had begun and not recorded; the session continues"
            );
        }
    }

    /// The answers that waited for an adopted worker.
    fn submit_early_answers(&mut self, actions: &mut Vec<Action>) {
        if !self.machine.is_catching_up() {
            for answer in self.early.take_answers() {
                self.request(answer, actions);
            }
        }
    }

    /// The requests that waited, one after the other.
    fn make_early_requests(&mut self, actions: &mut Vec<Action>) {
        while !self.machine.is_busy_briefly()
            && let Some(request) = self.early.next_request()
        {
            self.request(request, actions);
        }
    }

    /// Drives the machine with an input, and with the results of its actions.
    pub(super) fn step(&mut self, input: Input, actions: &mut Vec<Action>) {
        self.next.push(input);
        while !self.next.is_empty() {
            for input in std::mem::take(&mut self.next) {
                // Only where an execution may end or exceed its limit: a sample queries the kernel. The next execution begins
                // where the last one ended; the little CPU time between them counts for it.
                if matches!(input, Input::Message { .. } | Input::Tick)
                    && let Some(link) = &self.worker.link
                {
                    self.clock.sample_cpu(&link.process);
                }
                self.machine.step(input, self.clock.now(), actions);
                self.live.suspended.store(self.machine.is_suspended(), Ordering::Relaxed);
                if self.machine.is_released() {
                    // Before the replies: a caller that gets the end of a session must not find it live.
                    self.shared.registry.remove(self.live.id);
                }
                for action in actions.drain(..) {
                    self.carry_out(action);
                }
            }
        }
    }

    fn command(&mut self, command: Command, actions: &mut Vec<Action>) {
        match command {
            Command::Request(call) => self.request(call, actions),
            Command::Notice(input) => self.step(input, actions),
            // No error if a caller has left.
            Command::Checkpoints { responder } => drop(responder.send(self.machine.checkpoints().to_vec())),
            Command::Follow { execution, responder } => {
                // Until the end is published: before that, the last events may not be in the store.
                let runs = self.shared.registry.session_of(execution).is_some();
                let _ = responder.send(runs.then(|| {
                    let (follower, batches) = followers::channel();
                    self.followers.add(execution, follower);
                    batches
                }));
            }
            Command::Build { responder } => drop(responder.send(self.build())),
            Command::Inspect { responder } => drop(responder.send(self.facts())),
        }
    }

    fn request(&mut self, call: Box<SessionCall>, actions: &mut Vec<Action>) {
        let kept = match call.input {
            Input::Submit { .. } if self.machine.is_catching_up() => self.early.keep_answer(call),
            _ if call.input.needs_idle_session() && self.machine.is_busy_briefly() => {
                self.early.keep_request(call)
            }
            _ => Err(call),
        };
        // One that is not kept is the machine's: it refuses what it cannot do now.
        let Err(call) = kept else { return };
        let SessionCall { input, caller, part } = *call;
        self.callers.add(caller);
        if let Input::Drain { token: Some(token), at: Some(_) } = input
            && !self.is_of_other_build()
        {
            return self.callers.reply(SessionReply::Done(token, Ok(())));
        }
        match part {
            None => self.step(input, actions),
            Some(CallPart::Follower(execution, follower)) => {
                // First: the step may publish events.
                self.followers.add(execution, follower);
                self.step(input, actions);
            }
            Some(CallPart::Forks(forks)) => {
                self.forks.requested = Some(*forks);
                self.step(input, actions);
                // A refused request has its reply by now.
                self.forks.requested = None;
            }
            Some(CallPart::Copy(share)) => {
                let busy = self.copies.share.replace(share);
                self.step(input, actions);
                if !self.machine.is_making_checkpoint() {
                    // Refused: the share of the one that is being made stays.
                    self.copies.share = busy;
                }
            }
        }
    }

    fn facts(&self) -> Facts {
        let link = self.worker.link.as_ref();
        Facts {
            status: self.machine.shown_record().status,
            process: link.map(|link| link.process.clone()),
            running: self.machine.running(),
            heap_bytes: self.machine.heap_bytes(),
            silent_for: link.map(|link| link.last_received().elapsed()).unwrap_or_default(),
            adopted: self.machine.is_adopted(),
            generation: self.machine.generation(),
            next_cull_at: self.machine.next_cull_at(self.clock.now()),
        }
    }

    fn spawned(&mut self, spawned: Result<SpawnedWorker, SpawnError>, actions: &mut Vec<Action>) {
        self.worker.spawning = None;
        let input = match spawned {
            Ok(SpawnedWorker { handle, jail, modules }) => {
                self.worker.jail = Some(jail);
                self.modules.set = modules;
                self.connect(handle);
                Input::Spawned
            }
            Err(error) => no_worker(error),
        };
        self.step(input, actions);
    }

    fn connect(&mut self, handle: WorkerHandle) {
        self.live.pid.store(handle.process.pid(), Ordering::Relaxed);
        self.worker.process = Some(handle.process.clone());
        let memory = self.owned(&handle.process);
        self.worker.link = Some(WorkerLink::new(handle, self.host.reservation.clone(), memory));
        #[cfg(feature = "next-protocol")]
        self.announce();
    }

    /// Has what a process of this session holds count for its owner.
    pub(super) fn owned(&self, process: &WorkerProcess) -> OwnedMemory {
        let Self { shared, live, .. } = self;
        shared.pressure.owned.add(&live.owner, WorkOf::Session(live.id), process)
    }

    /// Connects a worker that replaces another one: its CPU time begins at zero.
    pub(super) fn connect_next(&mut self, handle: WorkerHandle) {
        self.clock.restart_cpu(&handle.process);
        self.connect(handle);
    }

    /// The worker has exited: its final messages come first.
    async fn exited(&mut self, exit: WorkerExitStatus, actions: &mut Vec<Action>) {
        let until = Instant::now() + FINAL_MESSAGES;
        while let Some(link) = &mut self.worker.link
            && let Some(received) = link.final_message(until).await
        {
            self.step(link_input(LinkEvent::Received(received)), actions);
        }
        if let Some(usage) = self.worker.process.as_ref().and_then(WorkerProcess::usage) {
            self.step(Input::WorkerUsage(usage), actions);
        }
        self.worker.link = None;
        self.live.pid.store(0, Ordering::Relaxed);
        self.step(Input::Exited(exit), actions);
    }

    /// Removes this session from shared tables.
    fn release(&mut self) {
        self.shared.brokers.end(self.live.id);
        self.end_http();
        self.forks_over();
        self.copies.end_all();
        if let Some((handle, _)) = self.worker.unassigned.take() {
            handle.process.end();
        }
        if let Some(process) = &self.worker.process {
            if self.worker.link.is_some() {
                // Only if the runtime was dropped: the worker has no owner task any more.
                let _ = process.kill();
            }
            process.forget();
        }
        self.shared.registry.remove(self.live.id);
    }
}

pub(super) fn store_input(outcome: WriteOutcome<()>) -> Input {
    let WriteOutcome { id: write, result, .. } = outcome;
    match result {
        Ok(_) => Input::Stored(write),
        Err(error) => {
            let permanent = matches!(error, StoreError::Rejected(_) | StoreError::Closed);
            Input::StoreFailed { write, error: error.to_string(), permanent }
        }
    }
}

fn link_input(event: LinkEvent) -> Input {
    match event {
        LinkEvent::Received(Received { seq, bytes, message }) => Input::Message { seq, bytes, message },
        LinkEvent::ReceiveFailed(error) | LinkEvent::SendFailed(error) => Input::ChannelFailed(fault(error)),
        LinkEvent::Exited(exit) => Input::Exited(exit),
    }
}
