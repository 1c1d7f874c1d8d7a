//! The owner task of one session: everything that happens to it comes through here, one thing at a time.

use super::api::{Administrators, Libraries, RuntimeError};
use super::carry_out::Waiting;
use super::followers::{self, Batches, Followers};
use super::fork::{Forks, Offspring};
use super::host::HostWork;
use super::inspect::Facts;
use super::jails::Jails;
use super::outbox::Outbox;
use super::registry::{Live, Registry};
use super::room::{Room, Rooms};
use super::writes::Writes;
use crate::brokers::Brokers;
use crate::core::{
    Action, Answer, ChannelFault, CloseCause, Death, ExecuteRequest, Input, LibraryFailure, LibraryProblem,
    Now, Refusal, SessionMachine, SpawnFailure, SpawnFault,
};
use crate::policy::Operator;
use crate::spawn::{
    ChannelError, ForkError, LibraryError, SpawnError, Spawner, WorkerDeath, WorkerHandle, WorkerProcess,
    WorkerReceiver,
};
use crate::store::StoreHandle;
use crate::workspaces::Workspaces;
use crate::worktree::{Roots, Worktree, WorktreeClient};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, Sleep};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::Event;

/// What a worker said before its death is read within this time.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Files of all sessions that are looked up or read at a time.
pub(super) const FILES: usize = 64;

/// What all sessions share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: StoreHandle,
    pub(super) brokers: Brokers,
    pub(super) jails: Arc<Jails>,
    pub(super) registry: Arc<Registry>,
    pub(super) roots: Roots,
    pub(super) administrators: Administrators,
    pub(super) workspaces: Workspaces,
    pub(super) operator: Operator,
    pub(super) started: Instant,
    pub(super) files: Semaphore,
    pub(super) rooms: Rooms,
}

impl Shared {
    /// Does blocking work on files, when it is its turn. `None`: the runtime is ending.
    pub(super) async fn files<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _turn = self.files.acquire().await.ok()?;
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Opens a worktree, if it is one that the operator lets the client use.
    pub(super) async fn open_worktree(
        &self,
        path: PathBuf,
        client: WorktreeClient,
    ) -> Result<Worktree, RuntimeError> {
        if let Some(opened) = Worktree::open_cached(&path, &self.roots, &client) {
            return Ok(opened);
        }
        let roots = self.roots.clone();
        let opened = self.files(move || Worktree::open(&path, &roots, &client)).await;
        Ok(opened.ok_or(RuntimeError::ShuttingDown)??)
    }
}

/// What callers ask of an owner task.
#[derive(Debug)]
pub(super) enum Command {
    Create { answer: Answering },
    Fork { children: Vec<SessionId>, made: mpsc::Sender<Offspring>, answer: Answering },
    Execute { request: Box<ExecuteRequest>, follower: Option<mpsc::Sender<Arc<[Event]>>>, answer: Answering },
    Submit { execution: ExecutionId, task: Option<TaskId>, given: GivenAnswer, wait: bool, answer: Answering },
    Cancel { execution: ExecutionId, answer: Answering },
    Close { cause: CloseCause, answer: Answering },
    Kill { signal: i32, answer: Answering },
    Follow { execution: ExecutionId, answer: oneshot::Sender<Option<Batches>> },
    Inspect { answer: oneshot::Sender<Facts> },
    Violation(String),
    Forbidden(String),
}

/// Where an answer goes.
pub(super) type Answering = oneshot::Sender<Result<Answer, Refusal>>;

type Spawning = Pin<Box<dyn Future<Output = Result<WorkerHandle, SpawnError>> + Send>>;
type Dying = Pin<Box<dyn Future<Output = WorkerDeath> + Send>>;

/// The living worker.
pub(super) struct Worker {
    receiver: WorkerReceiver,
    pub(super) outbox: Outbox,
    pub(super) process: WorkerProcess,
    exited: Dying,
    /// Its end of the channel is closed: only its death is still to come.
    deaf: bool,
}

/// The owner task.
pub(super) struct Task {
    pub(super) machine: SessionMachine,
    pub(super) shared: Arc<Shared>,
    pub(super) live: Arc<Live>,
    pub(super) worktree: Worktree,
    pub(super) libraries: Libraries,
    pub(super) writes: Writes,
    pub(super) followers: Followers,
    pub(super) waiting: Waiting,
    pub(super) worker: Option<Worker>,
    pub(super) process: Option<WorkerProcess>,
    pub(super) spawning: Option<Spawning>,
    /// The worker of a fork, until the machine asks for one, and its jail.
    pub(super) unborn: Option<(WorkerHandle, Spawner)>,
    /// What the machine has not decided on.
    pub(super) asked_forks: Option<Forks>,
    pub(super) forks: Option<Forks>,
    /// The jail of the worker; it must not end before it.
    pub(super) jail: Option<Spawner>,
    pub(super) host: Option<HostWork>,
    pub(super) room: Room,
    /// Inputs that came out of carrying out an action.
    pub(super) next: Vec<Input>,
    pub(super) released: bool,
    commands: mpsc::Receiver<Command>,
    alarm: Option<(Instant, Pin<Box<Sleep>>)>,
    cpu_us: u64,
    last_heard: Instant,
}

/// What woke the task up.
enum Woken {
    Input(Input),
    Command(Command),
    Born(Result<WorkerHandle, SpawnError>),
    Forked(Result<WorkerHandle, ForkError>),
    Heard(Result<crate::spawn::Received, ChannelError>),
    Dead(WorkerDeath),
    NobodyLeft,
}

/// What is waited for beside callers, store and worker.
struct Side<'a> {
    outbox: Option<&'a mut Outbox>,
    exited: Option<&'a mut Dying>,
    spawning: &'a mut Option<Spawning>,
    forks: &'a mut Option<Forks>,
    host: &'a mut Option<HostWork>,
    alarm: &'a mut Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Side<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Woken> {
        if let Some((_, sleep)) = self.alarm
            && sleep.as_mut().poll(context).is_ready()
        {
            *self.alarm = None;
            return Poll::Ready(Woken::Input(Input::Tick));
        }
        if let Some(outbox) = &mut self.outbox
            && let Poll::Ready(error) = outbox.drive(context)
        {
            return Poll::Ready(Woken::Input(Input::ChannelFailed(fault(error))));
        }
        if let Some(work) = self.host
            && let Poll::Ready(input) = work.as_mut().poll(context)
        {
            *self.host = None;
            return Poll::Ready(Woken::Input(input));
        }
        if let Some(birth) = self.spawning
            && let Poll::Ready(born) = birth.as_mut().poll(context)
        {
            *self.spawning = None;
            return Poll::Ready(Woken::Born(born));
        }
        if let Some(forks) = self.forks
            && let Poll::Ready(result) = forks.poll(context)
        {
            return Poll::Ready(Woken::Forked(result));
        }
        Poll::Pending
    }
}

impl Task {
    pub(super) fn new(
        machine: SessionMachine,
        shared: Arc<Shared>,
        live: Arc<Live>,
        worktree: Worktree,
        libraries: Libraries,
        writes: Writes,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            machine,
            shared,
            live,
            worktree,
            libraries,
            writes,
            commands,
            followers: Followers::default(),
            waiting: Waiting::default(),
            worker: None,
            process: None,
            spawning: None,
            unborn: None,
            asked_forks: None,
            forks: None,
            jail: None,
            host: None,
            room: Room::default(),
            next: Vec::new(),
            released: false,
            alarm: None,
            cpu_us: 0,
            last_heard: Instant::now(),
        }
    }

    /// Lives as long as the session.
    pub(super) async fn run(mut self) {
        let mut actions = Vec::new();
        while !self.released {
            let deadline = self.machine.deadline();
            if deadline.is_some_and(|at| at <= self.now().mono_ms) {
                self.step(Input::Tick, &mut actions);
                continue;
            }
            self.set_alarm(deadline);
            match self.wait().await {
                Woken::Input(input) => self.step(input, &mut actions),
                Woken::Command(command) => self.command(command, &mut actions),
                Woken::Born(born) => self.born(born, &mut actions),
                Woken::Forked(result) => self.forked(result, &mut actions),
                Woken::Heard(heard) => self.heard(heard, &mut actions),
                Woken::Dead(death) => self.buried(death, &mut actions).await,
                Woken::NobodyLeft => break,
            }
        }
        self.let_go();
    }

    /// Drives the machine, and itself with what comes of that.
    pub(super) fn step(&mut self, input: Input, actions: &mut Vec<Action>) {
        self.next.push(input);
        while !self.next.is_empty() {
            for input in std::mem::take(&mut self.next) {
                // Only where an execution may end or be over its limit: the kernel is asked for it. The next one begins
                // where the last one ended; the little that a worker does between them counts for it.
                if matches!(input, Input::Message { .. } | Input::Tick) {
                    self.look_at_cpu();
                }
                let now = self.now();
                self.machine.step(input, now, actions);
                if self.machine.is_released() {
                    // Before the answers: whoever hears that a session has ended no longer finds it alive.
                    self.shared.registry.remove(self.live.id);
                }
                for action in actions.drain(..) {
                    self.carry_out(action);
                }
            }
        }
    }

    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now {
            mono_ms: u64::try_from(self.shared.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_ms: i64::try_from(unix.as_millis()).unwrap_or(i64::MAX),
            cpu_us: self.cpu_us,
        }
    }

    fn look_at_cpu(&mut self) {
        if let Some(worker) = &self.worker
            && let Ok(cpu) = worker.process.cpu_time()
        {
            self.cpu_us = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        }
    }

    /// One alarm for the session. One that rings too early does no harm, so it is only ever moved forward in time.
    fn set_alarm(&mut self, deadline_ms: Option<u64>) {
        let Some(deadline_ms) = deadline_ms else { return };
        let at = self.shared.started + Duration::from_millis(deadline_ms);
        match &mut self.alarm {
            Some((set, _)) if *set <= at => {}
            Some((set, alarm)) => {
                *set = at;
                alarm.as_mut().reset(at);
            }
            None => self.alarm = Some((at, Box::pin(tokio::time::sleep_until(at)))),
        }
    }

    async fn wait(&mut self) -> Woken {
        let Self { commands, writes, worker, spawning, forks, host, alarm, .. } = self;
        let behind = writes.is_behind();
        let (receiver, outbox, exited) = match worker {
            Some(Worker { receiver, outbox, exited, deaf, .. }) => {
                ((!*deaf && !behind).then_some(receiver), Some(outbox), Some(exited))
            }
            None => (None, None, None),
        };
        // Made once for the whole wait: what it registers with the reactor lives as long as it does.
        let mut hearing = std::pin::pin!(async move {
            match receiver {
                Some(receiver) => receiver.recv().await,
                None => std::future::pending().await,
            }
        });
        let mut side = Side { outbox, exited, spawning, forks, host, alarm };
        std::future::poll_fn(move |context| {
            if let Poll::Ready(input) = writes.poll(context) {
                return Poll::Ready(Woken::Input(input));
            }
            if let Poll::Ready(command) = commands.poll_recv(context) {
                return Poll::Ready(command.map_or(Woken::NobodyLeft, Woken::Command));
            }
            if let Poll::Ready(woken) = side.poll(context) {
                return Poll::Ready(woken);
            }
            let behind = side.outbox.as_ref().is_some_and(|outbox| outbox.is_behind());
            if !behind && let Poll::Ready(heard) = hearing.as_mut().poll(context) {
                return Poll::Ready(Woken::Heard(heard));
            }
            // Last: what it said comes before its death.
            match &mut side.exited {
                Some(exited) => exited.as_mut().poll(context).map(Woken::Dead),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn command(&mut self, command: Command, actions: &mut Vec<Action>) {
        let input = match command {
            Command::Create { answer } => Input::Create { token: self.waiting.add(answer) },
            Command::Fork { children, made, answer } => {
                let count = u32::try_from(children.len()).unwrap_or(u32::MAX);
                self.asked_forks = Some(Forks::new(children, made));
                let token = self.waiting.add(answer);
                self.step(Input::Fork { token, count }, actions);
                // If it was refused, the caller knows by now.
                self.asked_forks = None;
                return;
            }
            Command::Execute { request, follower, answer } => {
                if let Some(follower) = follower {
                    self.followers.add(request.id, follower);
                }
                Input::Execute { token: self.waiting.add(answer), request }
            }
            Command::Submit { execution, task, given, wait, answer } => {
                Input::Submit { token: self.waiting.add(answer), execution, task, answer: given, wait }
            }
            Command::Cancel { execution, answer } => {
                Input::Cancel { token: self.waiting.add(answer), execution }
            }
            Command::Close { cause, answer } => Input::Close { token: self.waiting.add(answer), cause },
            Command::Kill { signal, answer } => Input::Kill { token: self.waiting.add(answer), signal },
            Command::Forbidden(call) => Input::ForbiddenCall(call),
            Command::Violation(what) => Input::ChannelFailed(ChannelFault::Violation(what)),
            Command::Follow { execution, answer } => {
                // Until its end is published: before, the last events may not be in the store yet.
                let runs = self.shared.registry.session_of(execution).is_some();
                let _ = answer.send(runs.then(|| {
                    let (follower, batches) = followers::channel();
                    self.followers.add(execution, follower);
                    batches
                }));
                return;
            }
            Command::Inspect { answer } => {
                let _ = answer.send(self.facts());
                return;
            }
        };
        self.step(input, actions);
    }

    fn facts(&self) -> Facts {
        Facts {
            status: self.machine.record().status,
            process: self.worker.as_ref().map(|worker| worker.process.clone()),
            running: self.machine.running(),
            heap_bytes: self.machine.heap_bytes(),
            silent_for: self.last_heard.elapsed(),
        }
    }

    fn born(&mut self, born: Result<WorkerHandle, SpawnError>, actions: &mut Vec<Action>) {
        match born {
            Ok(WorkerHandle { sender, receiver, process }) => {
                self.live.pid.store(process.pid(), Ordering::Relaxed);
                self.process = Some(process.clone());
                let watched = process.clone();
                let exited = Box::pin(async move { watched.exited().await });
                self.worker = Some(Worker {
                    receiver,
                    outbox: Outbox::new(sender, self.room.clone()),
                    process,
                    exited,
                    deaf: false,
                });
                self.last_heard = Instant::now();
                self.step(Input::Spawned, actions);
            }
            Err(error) => {
                self.jail = None;
                self.step(no_worker(error), actions);
            }
        }
    }

    fn heard(&mut self, heard: Result<crate::spawn::Received, ChannelError>, actions: &mut Vec<Action>) {
        self.last_heard = Instant::now();
        let input = match heard {
            Ok(received) => Input::Message { seq: received.seq, message: received.message },
            Err(error) => {
                if let Some(worker) = &mut self.worker {
                    worker.deaf = true;
                }
                Input::ChannelFailed(fault(error))
            }
        };
        self.step(input, actions);
    }

    /// The worker is dead: what it had said before is heard first.
    async fn buried(&mut self, death: WorkerDeath, actions: &mut Vec<Action>) {
        let until = Instant::now() + LAST_WORDS;
        while let Some(worker) = &mut self.worker {
            if worker.deaf {
                break;
            }
            match tokio::time::timeout_at(until, worker.receiver.recv()).await {
                Ok(Ok(received)) => self.heard(Ok(received), actions),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.worker = None;
        self.live.pid.store(0, Ordering::Relaxed);
        self.step(Input::Died(death.into()), actions);
    }

    /// Everything of this session that is elsewhere.
    fn let_go(&mut self) {
        self.shared.brokers.end(self.live.id);
        self.forks_over();
        if let Some((handle, _)) = self.unborn.take() {
            super::fork::end(&handle);
        }
        if let Some(process) = &self.process {
            if self.worker.is_some() {
                // Only if the runtime was dropped: nobody is left to own the worker.
                let _ = process.kill();
            }
            process.forget();
        }
        self.shared.registry.remove(self.live.id);
    }
}

/// What the machine is told when no worker was made.
pub(super) fn no_worker(error: SpawnError) -> Input {
    match error {
        SpawnError::Library(error) => Input::LibraryFailed(error.into()),
        error => Input::SpawnFailed(unborn(&error)),
    }
}

pub(super) fn unborn(error: &SpawnError) -> SpawnFailure {
    let fault = match error {
        SpawnError::WrongHello { .. } | SpawnError::NotJailed(_) => SpawnFault::Wrong,
        _ if error.is_temporary() => SpawnFault::Busy,
        _ => SpawnFault::Host,
    };
    SpawnFailure { why: error.to_string(), fault, hint: error.hint() }
}

pub(super) fn fault(error: ChannelError) -> ChannelFault {
    match error {
        ChannelError::Closed => ChannelFault::Closed,
        ChannelError::WriteTimeout => ChannelFault::Stuck,
        ChannelError::MessageTimeout => ChannelFault::Violation("did not complete a message".to_owned()),
        ChannelError::Violation(what) => ChannelFault::Violation(what),
        ChannelError::TooLarge(what) => ChannelFault::Violation(format!("cannot be told: {what}")),
        ChannelError::Io(error) => ChannelFault::Violation(format!("channel: {error}")),
    }
}

impl From<LibraryError> for LibraryFailure {
    fn from(error: LibraryError) -> Self {
        let problem = match &error {
            LibraryError::NotInstalled(_) => LibraryProblem::NotInstalled,
            LibraryError::Corrupt { .. } => LibraryProblem::Corrupt,
            LibraryError::Failed { .. } => LibraryProblem::Failed,
        };
        Self { library: error.library().to_owned(), problem, text: error.to_string() }
    }
}

impl From<WorkerDeath> for Death {
    fn from(death: WorkerDeath) -> Self {
        match death {
            WorkerDeath::Exited(code) => Self::Exited(code),
            WorkerDeath::Signaled(signal) => Self::Signaled(signal),
            WorkerDeath::KeeperLost => Self::KeeperLost,
            WorkerDeath::Unknown => Self::Unknown,
        }
    }
}
