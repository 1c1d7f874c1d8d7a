//! The owner task of one execution: all its events are handled here, one at a time. Its loop waits for
//! all of them at once and nowhere else: [`super::carry_out`] never waits, so a deadline is never missed because the store or a
//! worker is slow.

use super::Durables;
use super::files::Used;
use super::follow::News;
use super::hold::RunHold;
use super::live::{QueuedRequest, SharedActivity, lock};
use super::pages::{PageReservation, Reserved};
use super::stored::{self, FoundRun, StoredState};
use super::worker::{LoadedWorker, WorkerStartError};
use crate::callers::Callers;
use crate::clock::Clock;
use crate::link::{LinkEvent, WorkerLink, maybe, next_event};
use crate::memory::Reservation;
use crate::shares::{Holder, Share};
use crate::writes::{WriteOutcome, Writes};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use vm_system_core::durable::{DurableInput as Input, DurableMachine, DurableRefusal, RunStatus, Unstored};
use vm_system_policy::EffectivePolicy;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::model::ExecutionStatus;
use vm_system_record::{LetGo, Owner as Principal, RecordedWorktree};
use vm_system_spawn::Spawner;

/// Program and files of an execution.
#[derive(Debug, Clone)]
pub(super) struct ProgramContext {
    pub(super) program: (ProgramId, u32),
    pub(super) worktree: String,
    /// Where it is and whose rights use it; absent for a folder of the operator, which is opened by its path with the rights that the
    /// owner has now.
    pub(super) recorded: Option<Arc<RecordedWorktree>>,
    /// Why the user whose rights use it does not exist any more.
    pub(super) user_gone: Option<String>,
    /// A changed folder was reported.
    pub(super) reported: Arc<AtomicBool>,
    pub(super) owner: Principal,
    pub(super) policy: Arc<EffectivePolicy>,
}

/// A worker that is being started and loaded.
pub(super) struct Starting {
    pub(super) worker: Pin<Box<dyn Future<Output = Result<LoadedWorker, WorkerStartError>> + Send>>,
    /// To be killed as soon as it is started.
    pub(super) unwanted: bool,
}

/// The running worker.
pub(super) struct RunWorker {
    pub(super) session: SessionId,
    pub(super) link: WorkerLink,
    /// The hard stop of its CPU time (seconds).
    pub(super) allowed_s: u64,
    pub(super) jail: Spawner,
    pub(super) slot: Share,
    pub(super) start_permit: Option<Share>,
}

/// A call of the host, and the input that reports its result.
type HostWork = Pin<Box<dyn Future<Output = Input> + Send>>;

/// The calls of `fs`, and HTTP requests.
#[derive(Default)]
pub(super) struct ProgramCalls {
    pub(super) under_way: Option<HostWork>,
    pub(super) used: Used,
    /// Waiting time that has restored limits of calls already (milliseconds).
    pub(super) refilled_ms: u64,
    /// Memory of a result that is not sent to the worker yet.
    pub(super) reservation: Reservation,
}

/// The owner task.
pub(super) struct RunTask {
    pub(super) durables: Arc<Durables>,
    pub(super) execution: ExecutionId,
    /// Has the shares of its workers and pages; known once the execution is found.
    pub(super) holder: Holder,
    pub(super) callers: Callers<RunStatus, DurableRefusal>,
    pub(super) writes: Writes<News>,
    pub(super) clock: Clock,
    pub(super) starting: Option<Starting>,
    pub(super) worker: Option<RunWorker>,
    pub(super) calls: ProgramCalls,
    pub(super) pages: PageReservation,
    pub(super) hold: RunHold,
    /// The state, if it was read together with the rows, for the first worker.
    pub(super) whole: Option<StoredState>,
    /// Held until a worker is loaded, or nothing is to be done: bounds the executions that are woken at a time.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    inbox: mpsc::Receiver<QueuedRequest>,
    activity: SharedActivity,
    /// A request that came while the store took no batch.
    pub(super) early: Option<QueuedRequest>,
}

/// The event that woke the task.
pub(super) enum Woken {
    QueuedRequest(Option<QueuedRequest>),
    Started(Result<LoadedWorker, WorkerStartError>),
    Link(LinkEvent),
    Called(Box<Input>),
    PagesReserved(Option<Reserved>),
    Written(WriteOutcome<News>),
    Tick,
    Pressure,
    Stop,
}

impl RunTask {
    pub(super) fn new(
        durables: Arc<Durables>,
        execution: ExecutionId,
        inbox: mpsc::Receiver<QueuedRequest>,
        activity: SharedActivity,
    ) -> Self {
        Self {
            execution,
            holder: Holder::UNKNOWN,
            callers: Callers::default(),
            writes: Writes::new(durables.shared.store.clone()),
            clock: Clock::new(durables.shared.started, durables.shared.store.clone()),
            starting: None,
            worker: None,
            calls: ProgramCalls::default(),
            pages: PageReservation::default(),
            hold: RunHold::new(
                durables.shared.store.clone(),
                execution,
                durables.shared.store.first_fence(),
                0,
            ),
            whole: None,
            permit: None,
            inbox,
            activity,
            early: None,
            durables,
        }
    }

    /// Runs until nothing is under way that is not in the store.
    pub(super) async fn run(mut self, begun: Option<(DurableMachine, ProgramContext)>) {
        let (mut machine, context) = match begun {
            Some(begun) => begun,
            None => match stored::find(&self.durables, self.execution).await {
                Ok(found) => self.begin_with(found),
                Err(why) => return self.refuse_all(&why),
            },
        };
        self.writes = Writes::new(self.durables.shared.store.for_owner(&context.owner));
        self.holder = self.durables.shared.holder(&context.owner);
        let mut stopping = false;
        loop {
            self.activity.set(machine.activity());
            let woken = self.wait(&machine, stopping).await;
            stopping |= matches!(woken, Woken::Stop);
            let Some(input) = self.input(woken, &context) else { continue };
            let is_tick = matches!(input, Input::Tick);
            if is_tick && machine.waits_for_store() && self.durables.shared.store.status().is_down() {
                self.step(&mut machine, &context, Input::StoreFails);
            }
            let ends =
                matches!(input, Input::Cancel { .. }) || is_tick && machine.is_overdue(self.clock.now());
            if ends
                && let Some(write) = machine.withdrawable()
                && self.writes.withdraw(write)
            {
                // Nobody waits until a state is stored from which nothing continues.
                let (why, error) = (Unstored::Withdrawn, String::new());
                self.step(&mut machine, &context, Input::NotStored { write, why, error });
            }
            self.step(&mut machine, &context, input);
            let still = machine.record().status != ExecutionStatus::Running;
            if still || machine.is_released() {
                self.permit = None;
            }
            if machine.is_released() && self.is_idle() {
                if stopping {
                    return self.refuse_all(&DurableRefusal::Stopping);
                }
                self.hold.leaves(match machine.record().status {
                    ExecutionStatus::Running => LetGo::Failed,
                    _ => LetGo::Rests(machine.wakes_at()),
                });
                if self.early.is_none() && self.durables.retire(self.execution, &self.inbox) {
                    self.durables.shared.brokers.end(machine.record().session_id);
                    return;
                }
                // There is another request: a new machine from the stored rows handles it.
                match stored::find(&self.durables, self.execution).await {
                    Ok(found) => (machine, _) = self.begin_with(found),
                    Err(why) => return self.refuse_all(&why),
                }
            }
        }
    }

    /// Begins, or begins again, with what the store has.
    fn begin_with(&mut self, found: FoundRun) -> (DurableMachine, ProgramContext) {
        let FoundRun { machine, context, whole, used, hold } = found;
        (self.whole, self.hold) = (whole, hold);
        (self.calls.used, self.calls.refilled_ms) = (used, 0);
        (machine, context)
    }

    fn is_idle(&self) -> bool {
        self.worker.is_none() && self.starting.is_none() && self.writes.is_empty()
    }

    fn refuse_all(mut self, why: &DurableRefusal) {
        if *why == DurableRefusal::Ended {
            self.hold.leaves(LetGo::Rests(None));
        }
        loop {
            let early = self.early.take();
            for mut command in early.into_iter().chain(std::iter::from_fn(|| self.inbox.try_recv().ok())) {
                // An execution that was claimed for this task is let go with it.
                if let Some(claim) = command.claim.take() {
                    self.hold.adopt(claim);
                }
                command.refuse(why.clone());
            }
            if self.durables.retire(self.execution, &self.inbox) {
                return;
            }
        }
    }

    async fn wait(&mut self, machine: &DurableMachine, stopping: bool) -> Woken {
        self.clock.set_alarm(machine.deadline(self.clock.now()));
        let Self { inbox, early, worker, starting, calls, writes, clock, durables, pages, .. } = self;
        let behind = writes.is_behind();
        if !behind
            && !stopping
            && !machine.is_leaving()
            && let Some(command) = early.take()
        {
            return Woken::QueuedRequest(Some(command));
        }
        let receive = !behind && !pages.is_waiting();
        // A leaving machine accepts no requests: they are for the machine from the stored rows. And while the store
        // accepts no batch, requests wait in the bounded queue: the machine would only defer them.
        // Only whether the execution is to be ended is looked for: then its state need not be stored.
        let looks = !behind || (early.is_none() && machine.withdrawable().is_some());
        let accepts_commands = !stopping && looks && !machine.is_leaving();
        tokio::select! {
            biased;
            outcome = writes.next() => Woken::Written(outcome),
            () = durables.stop.cancelled(), if !stopping => Woken::Stop,
            command = inbox.recv(), if accepts_commands => Woken::QueuedRequest(command),
            started = maybe(starting.as_mut().map(|starting| &mut starting.worker)) => Woken::Started(started),
            called = maybe(calls.under_way.as_mut()) => Woken::Called(Box::new(called)),
            reserved = maybe(pages.acquiring.as_mut()) => Woken::PagesReserved(reserved),
            // Before the worker's messages: a worker must not be able to delay a deadline.
            () = clock.alarm() => Woken::Tick,
            event = next_event(worker.as_mut().map(|worker| &mut worker.link), receive) => Woken::Link(event),
            () = durables.pressure.notified() => Woken::Pressure,
        }
    }

    /// Removes the worker of this execution from the table for inspection.
    pub(super) fn forget_worker(&self, session: SessionId) {
        lock(&self.durables.workers).remove(&session);
    }
}
