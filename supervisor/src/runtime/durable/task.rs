//! The owner task of one execution: everything that happens to it comes through here, one thing at a time.

use super::Durables;
use super::files::{self, Used};
use super::follow::News;
use super::found::Whole;
use super::live::{Answering, Ask, Command, lock};
use super::pages::{FREE_BYTES, PageRoom};
use super::worker::{BirthError, Newborn, Order, order};
use crate::core::durable::{
    DurableAction as Action, DurableInput as Input, DurableMachine, LoadFrom, Refused, Stand, Unstored,
};
use crate::core::{Now, Token, WriteId};
use crate::policy::EffectivePolicy;
use crate::runtime::room::Room;
use crate::runtime::task::fault;
use crate::spawn::{ChannelError, Received, Spawner, WorkerDeath, WorkerHandle};
use crate::store::{Applied, Batch, Entity, Owner as Principal, Rejection, StoreError, Ticket};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use vm_system_protocol::durable::FromDurable;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::ExecutionStatus;
use vm_system_protocol::worker::FromWorker;

/// What an execution runs, and on which files.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) program: (ProgramId, u32),
    pub(super) worktree: String,
    /// The owner of the execution, with whose rights the worktree is opened.
    pub(super) owner: Principal,
    pub(super) policy: Arc<EffectivePolicy>,
}

type Birth = Pin<Box<dyn Future<Output = Result<Newborn, BirthError>> + Send>>;
type Dying = Pin<Box<dyn Future<Output = WorkerDeath> + Send>>;
type Calling = Pin<Box<dyn Future<Output = Result<JsonText, String>> + Send>>;

/// The living worker.
struct Worker {
    session: SessionId,
    handle: WorkerHandle,
    exited: Dying,
    /// Its end of the channel is closed: only its death is still to come.
    deaf: bool,
    /// The hard stop of its CPU time (seconds).
    allowed_s: u64,
    jail: Spawner,
    slot: OwnedSemaphorePermit,
    birth: Option<OwnedSemaphorePermit>,
}

/// The owner task.
pub(super) struct Owner {
    durables: Arc<Durables>,
    execution: ExecutionId,
    inbox: mpsc::Receiver<Command>,
    asking: Vec<(Token, Answering)>,
    last_token: u64,
    worker: Option<Worker>,
    birth: Option<Birth>,
    /// Killed before it was born.
    unwanted: bool,
    calling: Option<Calling>,
    tickets: VecDeque<(WriteId, News, Ticket)>,
    turn: Option<OwnedSemaphorePermit>,
    /// What was read of the state with everything else, for the first worker.
    whole: Option<Whole>,
    cpu_us: u64,
    used: Used,
    /// Waiting that has given limits of files back already (milliseconds).
    refilled_ms: u64,
    room: Room,
    pages: PageRoom,
}

enum Woken {
    Command(Option<Command>),
    Born(Result<Newborn, BirthError>),
    Heard(Result<Received, ChannelError>),
    Dead(WorkerDeath),
    Called(Result<JsonText, String>),
    Room(Option<OwnedSemaphorePermit>),
    Stored(WriteId, News, Result<Applied, StoreError>),
    Tick,
    Pressure,
    Stop,
}

impl Owner {
    pub(super) fn new(
        durables: Arc<Durables>,
        execution: ExecutionId,
        inbox: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            durables,
            execution,
            inbox,
            asking: Vec::new(),
            last_token: 0,
            worker: None,
            birth: None,
            unwanted: false,
            calling: None,
            tickets: VecDeque::new(),
            turn: None,
            whole: None,
            cpu_us: 0,
            used: Used::default(),
            refilled_ms: 0,
            room: Room::default(),
            pages: PageRoom::default(),
        }
    }

    /// Lives until nothing is under way that is not in the store.
    pub(super) async fn run(mut self, begun: Option<(DurableMachine, Place)>) {
        let (mut machine, place) = match begun {
            Some(begun) => begun,
            None => match self.durables.find(self.execution).await {
                Ok((machine, place, whole, used)) => {
                    (self.whole, self.used) = (whole, used);
                    (machine, place)
                }
                Err(why) => return self.refuse_everybody(&why),
            },
        };
        let mut stopping = false;
        loop {
            let woken = self.wait(&machine, stopping).await;
            stopping |= matches!(woken, Woken::Stop);
            let Some(input) = self.input(woken) else { continue };
            self.step(&mut machine, &place, input).await;
            let still = machine.record().status != ExecutionStatus::Running;
            if still || machine.is_released() {
                self.turn = None;
            }
            if machine.is_released() && self.is_idle() {
                if stopping {
                    return self.refuse_everybody(&Refused::Stopping);
                }
                if machine.task().is_some_and(|task| task.deadline.is_some()) {
                    self.durables.alarm.notify_one();
                }
                self.durables.remember(self.execution, &machine, &self.used);
                if self.durables.retire(self.execution, &self.inbox) {
                    self.durables.shared.brokers.end(machine.record().session_id);
                    return;
                }
                // Somebody asks for more: from what is stored, whatever this machine thought.
                match self.durables.find(self.execution).await {
                    Ok((found, _, whole, used)) => {
                        (machine, self.whole, self.used, self.refilled_ms) = (found, whole, used, 0);
                    }
                    Err(why) => return self.refuse_everybody(&why),
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.worker.is_none() && self.birth.is_none() && self.tickets.is_empty()
    }

    fn refuse_everybody(mut self, why: &Refused) {
        loop {
            while let Ok(command) = self.inbox.try_recv() {
                let _ = command.answer.send(Err(why.clone()));
            }
            if self.durables.retire(self.execution, &self.inbox) {
                return;
            }
        }
    }

    async fn wait(&mut self, machine: &DurableMachine, stopping: bool) -> Woken {
        let now = self.now();
        let deadline =
            machine.deadline(now).map(|at| self.durables.shared.started + Duration::from_millis(at));
        let Self { inbox, worker, birth, calling, tickets, durables, pages, .. } = self;
        let waits_for_room = pages.is_waiting();
        let (receiver, exited) = match worker {
            Some(Worker { handle, exited, deaf, .. }) => {
                ((!*deaf && !waits_for_room).then_some(&mut handle.receiver), Some(exited))
            }
            None => (None, None),
        };
        tokio::select! {
            biased;
            (id, news, result) = stored(tickets) => Woken::Stored(id, news, result),
            () = durables.stop.cancelled(), if !stopping => Woken::Stop,
            // One that lets go takes nothing more: what is asked meanwhile is asked of what is stored.
            command = inbox.recv(), if !stopping && !machine.is_leaving() => Woken::Command(command),
            born = maybe(birth.as_mut()) => Woken::Born(born),
            called = maybe(calling.as_mut()) => Woken::Called(called),
            room = maybe(pages.asking.as_mut()) => Woken::Room(room),
            // Before what a worker says: it must not be able to talk a deadline away.
            () = until(deadline) => Woken::Tick,
            heard = async { match receiver {
                Some(receiver) => receiver.recv().await,
                None => std::future::pending().await,
            } } => Woken::Heard(heard),
            dead = maybe(exited) => Woken::Dead(dead),
            () = durables.pressure.notified() => Woken::Pressure,
        }
    }

    fn input(&mut self, woken: Woken) -> Option<Input> {
        Some(match woken {
            Woken::Command(None) | Woken::Stop => Input::Stop,
            Woken::Command(Some(command)) => self.command(command),
            Woken::Born(born) => {
                self.birth = None;
                self.born(born)
            }
            Woken::Heard(Ok(received)) => {
                // It stands: others may be born. How many live at a time is the slots' affair.
                self.turn = None;
                if let Some(worker) = &mut self.worker {
                    worker.birth = None;
                }
                match received.message {
                    FromWorker::Durable(message) => Input::Message(*message),
                    _ => Input::Violation("a message of the other engine".to_owned()),
                }
            }
            Woken::Heard(Err(error)) => {
                if let Some(worker) = &mut self.worker {
                    worker.deaf = true;
                }
                match error {
                    ChannelError::Closed => return None,
                    error => Input::Violation(format!("{:?}", fault(error))),
                }
            }
            Woken::Room(held) => {
                self.pages.has(held);
                Input::GoesOn
            }
            Woken::Dead(death) => {
                self.calling = None;
                self.pages.asking = None;
                let mut forbidden = None;
                if let Some(worker) = self.worker.take() {
                    let process = &worker.handle.process;
                    lock(&self.durables.workers).remove(&worker.session);
                    forbidden = self.durables.shared.registry.take_forbidden(process.pid());
                    process.forget();
                }
                match forbidden {
                    Some(call) => Input::DiedOfCall(call),
                    None => Input::Died(death.into()),
                }
            }
            Woken::Called(result) => {
                self.calling = None;
                let written = lock(&self.used).1.written_bytes;
                Input::Called { result, written }
            }
            Woken::Stored(id, news, Ok(_)) => {
                self.durables.following.tell(self.execution, &news);
                Input::Stored(id)
            }
            Woken::Stored(id, _, Err(error)) => not_stored(id, &error),
            Woken::Tick => Input::Tick,
            Woken::Pressure => Input::Pressure,
        })
    }

    fn command(&mut self, command: Command) -> Input {
        let Command { ask, answer, turn } = command;
        if let Some(turn) = turn {
            self.turn = Some(turn);
        }
        if matches!(ask, Ask::Wake) {
            return Input::Wake;
        }
        self.last_token += 1;
        let token = Token(self.last_token);
        self.asking.push((token, answer));
        match ask {
            Ask::Start { wait } => Input::Start { token, wait },
            Ask::Submit { task, answer, with, wait } => Input::Submit { token, task, answer, with, wait },
            Ask::Set { frame, name, value } => Input::Set { token, frame, name, value },
            Ask::Cancel { with } => Input::Cancel { token, with },
            Ask::Wake => Input::Wake,
        }
    }

    fn born(&mut self, born: Result<Newborn, BirthError>) -> Input {
        match born {
            Ok(Newborn { session, handle, small, jail, slot, birth }) => {
                let watched = handle.process.clone();
                let exited = Box::pin(async move { watched.exited().await });
                if std::mem::take(&mut self.unwanted) {
                    let _ = handle.process.kill();
                }
                // Of an earlier process with this number.
                drop(self.durables.shared.registry.take_forbidden(handle.process.pid()));
                let known = (self.execution, handle.process.clone());
                lock(&self.durables.workers).insert(session, known);
                let birth = Some(birth);
                let worker = Worker { session, handle, exited, deaf: false, allowed_s: 0, jail, slot, birth };
                self.worker = Some(worker);
                Input::Loaded { small }
            }
            Err(error) => {
                if std::mem::take(&mut self.unwanted) {
                    return Input::Died(crate::core::Death::Unknown);
                }
                let permanent = matches!(error, BirthError::NoCode);
                Input::NotLoaded { why: error.to_string(), permanent }
            }
        }
    }

    async fn step(&mut self, machine: &mut DurableMachine, place: &Place, input: Input) {
        let mut actions = Vec::new();
        // Asking costs two system calls; what is only gathered ends no segment and begins none.
        if !matches!(&input, Input::Message(FromDurable::Pages(_) | FromDurable::Events(_))) {
            self.look_at_cpu();
        }
        let mut next = Some(input);
        while let Some(input) = next.take() {
            machine.step(input, self.now(), &mut actions);
            let refilled = machine.refilled_ms().saturating_sub(self.refilled_ms);
            if refilled > 0 {
                self.refilled_ms += refilled;
                files::give_back(&self.used, &place.policy, refilled);
            }
            for action in actions.drain(..) {
                let let_go = matches!(action, Action::LetGo);
                self.carry_out(machine, place, action).await;
                // To this execution it is dead: the next one may be born while it ends.
                if let_go && self.worker.is_none() && self.birth.is_none() {
                    next = Some(Input::Died(crate::core::Death::Unknown));
                }
            }
        }
        self.make_room(machine);
    }

    /// What the worker has told takes room until it is stored.
    fn make_room(&mut self, machine: &mut DurableMachine) {
        if machine.gathered_bytes() > FREE_BYTES {
            if self.pages.needs(&self.durables.page_rooms, machine.gathered_most()) {
                machine.step(Input::Stalled, self.now(), &mut Vec::new());
            }
        } else if self.tickets.is_empty() {
            self.pages.give_back();
        }
    }

    async fn carry_out(&mut self, machine: &DurableMachine, place: &Place, action: Action) {
        match action {
            Action::Spawn(from) => {
                let (durables, record) = (Arc::clone(&self.durables), machine.record());
                let whole = self.whole.take().filter(|(seq, _)| from == LoadFrom::Checkpoint(*seq));
                let order = Order {
                    pages: whole.map(|(_, pages)| pages),
                    execution: self.execution,
                    session: record.session_id,
                    program: place.program,
                    from,
                    limits: machine.spec().limits.clone(),
                    life: machine.spec().life(),
                };
                self.unwanted = false;
                self.birth = Some(Box::pin(async move { durables.bear(order).await }));
            }
            Action::Tell(what) => {
                let Some(worker) = &mut self.worker else { return };
                // One that cannot be told is dead or dying, or will be killed for not answering.
                if let Err(error) = worker.handle.sender.send_away(order(*what)).await {
                    tracing::debug!(execution = %self.execution, %error, "a worker cannot be told");
                    let _ = worker.handle.process.kill();
                }
                self.room.give_back();
            }
            Action::AllowCpu(total_ms) => {
                // The kernel counts whole seconds: most steps change nothing.
                let seconds = total_ms.div_ceil(1_000);
                if let Some(worker) = self.worker.as_mut().filter(|worker| worker.allowed_s != seconds) {
                    worker.allowed_s = seconds;
                    // A dead one needs no limit.
                    let _ = worker.handle.process.allow_cpu(Duration::from_secs(seconds));
                }
            }
            Action::Kill => {
                if let Some(worker) = &self.worker {
                    let _ = worker.handle.process.kill();
                } else {
                    self.unwanted = self.birth.is_some();
                }
            }
            Action::LetGo => {
                self.unwanted = self.birth.is_some();
                self.calling = None;
                self.pages.asking = None;
                if let Some(Worker { session, handle, jail, slot, .. }) = self.worker.take() {
                    lock(&self.durables.workers).remove(&session);
                    self.durables.end(handle, (jail, slot));
                }
            }
            Action::Write { id, batch } => {
                let news = News::of(&batch);
                let queued = self.durables.shared.store.submit(Batch(batch)).await;
                self.tickets.push_back((id, news, queued.unwrap_or_else(Ticket::failed)));
            }
            Action::Host(work) => {
                let shared = Arc::clone(&self.durables.shared);
                let session = machine.record().session_id;
                let files = (place.clone(), Arc::clone(&self.used), self.room.clone());
                self.calling = Some(Box::pin(files::call(shared, (self.execution, session), files, work)));
            }
            Action::Reply { token, result } => self.reply(token, result),
        }
    }

    fn reply(&mut self, token: Token, result: Result<Box<Stand>, Refused>) {
        if let Some(at) = self.asking.iter().position(|(asking, _)| *asking == token) {
            // A caller that has gone away does not matter.
            let _ = self.asking.swap_remove(at).1.send(result.map(|stand| *stand));
        }
    }

    fn look_at_cpu(&mut self) {
        if let Some(worker) = &self.worker
            && let Ok(cpu) = worker.handle.process.cpu_time()
        {
            self.cpu_us = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        }
    }

    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since: Duration = Instant::now().duration_since(self.durables.shared.started);
        Now {
            mono_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            unix_ms: i64::try_from(unix.as_millis()).unwrap_or(i64::MAX),
            cpu_us: self.cpu_us,
        }
    }
}

fn not_stored(write: WriteId, error: &StoreError) -> Input {
    let why = match error {
        StoreError::Rejected(Rejection::Conflict(_)) => Unstored::Conflict,
        StoreError::Rejected(Rejection::TooLarge(_)) => Unstored::TooLarge,
        _ => Unstored::Failed,
    };
    // That the name of an execution is taken is its caller's affair; no other refusal should ever happen.
    let named = matches!(error, StoreError::Rejected(Rejection::Conflict(Entity::Execution)));
    if matches!(error, StoreError::Rejected(_)) && !named && why != Unstored::TooLarge {
        tracing::error!(%error, "the store refuses a step of a durable execution");
    }
    Input::NotStored { write, why, error: error.to_string() }
}

/// The oldest batch's fate.
async fn stored(
    tickets: &mut VecDeque<(WriteId, News, Ticket)>,
) -> (WriteId, News, Result<Applied, StoreError>) {
    let Some((id, news, ticket)) = tickets.front_mut() else { return std::future::pending().await };
    let id = *id;
    let result = ticket.await;
    let news = std::mem::take(news);
    tickets.pop_front();
    (id, news, result)
}

async fn maybe<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
