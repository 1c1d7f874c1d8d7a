//! The owner tasks of executions. Finding one and sending it a request is one step, so that a task cannot end in
//! between.

use super::Durables;
use super::hold::RunClaim;
use super::task::{ProgramContext, RunTask};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use vm_system_core::durable::{
    DurableInput as Input, DurableMachine, DurableRefusal, RunActivity, RunStatus, RunToken,
};
use vm_system_protocol::ids::{ExecutionId, ProgramId};
use vm_system_record::Owner as Principal;

/// Commands that may wait for an owner task.
const COMMANDS: usize = 32;

/// Receives the result of a request.
pub(super) type RunResponder = oneshot::Sender<Result<RunStatus, DurableRefusal>>;

/// A request to an owner task: the machine's own input.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) input: Input,
    /// The caller that gets the reply, if one waits for it.
    pub(super) caller: Option<(RunToken, RunResponder)>,
    /// Held until the worker is loaded, or nothing is to be done: bounds the executions that are woken at a time.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// The execution was claimed for it.
    pub(super) claim: Option<RunClaim>,
}

/// Owner, name and program of an execution: what its record does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIdentity {
    pub owner: Principal,
    /// Chosen by the client.
    pub name: Option<String>,
    /// The program that it runs.
    pub program: ProgramId,
    /// Version of the program, from 1.
    pub version: u32,
    /// The program's name; none once it was deleted.
    pub program_name: Option<String>,
}

/// An execution with an owner task.
#[derive(Debug)]
pub(super) struct LiveRun {
    commands: mpsc::Sender<QueuedRequest>,
    /// The execution's identity, if a caller has supplied it.
    identity: Option<Arc<RunIdentity>>,
    activity: SharedActivity,
}

/// The present act of an owner task, for those who look at it.
#[derive(Debug, Clone)]
pub(super) struct SharedActivity(Arc<Mutex<RunActivity>>);

impl SharedActivity {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(RunActivity::Starts)))
    }

    pub(super) fn set(&self, activity: RunActivity) {
        *lock(&self.0) = activity;
    }
}

impl LiveRun {
    pub(super) fn activity(&self) -> RunActivity {
        *lock(&self.activity.0)
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.commands.is_closed()
    }
}

impl QueuedRequest {
    /// Has an execution continue; nobody waits for it.
    pub(super) fn wake(claimed: Option<(OwnedSemaphorePermit, RunClaim)>) -> Self {
        let (permit, claim) = claimed.unzip();
        Self { input: Input::Wake { token: None }, caller: None, permit, claim }
    }

    /// Replies to the caller, if there is one, that the request is not made.
    pub(super) fn refuse(self, why: DurableRefusal) {
        if let Some((_, responder)) = self.caller {
            // No error if the caller has left.
            let _ = responder.send(Err(why));
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Durables {
    pub(super) async fn request(
        self: &Arc<Self>,
        execution: ExecutionId,
        identity: Option<Arc<RunIdentity>>,
        input: impl FnOnce(RunToken) -> Input,
    ) -> Result<RunStatus, DurableRefusal> {
        let (request, response) = self.queued(input);
        self.hand_over(execution, identity, request)?;
        response.await.unwrap_or(Err(DurableRefusal::Stopping))
    }

    /// A request, and the receiver of its reply.
    pub(super) fn queued(
        &self,
        input: impl FnOnce(RunToken) -> Input,
    ) -> (QueuedRequest, oneshot::Receiver<Result<RunStatus, DurableRefusal>>) {
        let token = RunToken::new(self.callers.fetch_add(1, Ordering::Relaxed));
        let (responder, response) = oneshot::channel();
        (
            QueuedRequest {
                input: input(token),
                caller: Some((token, responder)),
                permit: None,
                claim: None,
            },
            response,
        )
    }

    /// Starts an owner task for a new execution.
    pub(super) fn begin(
        self: &Arc<Self>,
        execution: ExecutionId,
        (machine, context): (DurableMachine, ProgramContext),
        identity: Arc<RunIdentity>,
        command: QueuedRequest,
    ) -> Result<(), DurableRefusal> {
        let mut live = lock(&self.live);
        if self.stop.is_cancelled() {
            return Err(DurableRefusal::Stopping);
        }
        let (commands, inbox) = mpsc::channel(COMMANDS);
        if commands.try_send(command).is_err() {
            return Err(DurableRefusal::Stopping);
        }
        let activity = SharedActivity::new();
        live.insert(execution, LiveRun { commands, identity: Some(identity), activity: activity.clone() });
        let task = RunTask::new(Arc::clone(self), execution, inbox, activity);
        self.tasks.spawn(task.run(Some((machine, context))));
        Ok(())
    }

    pub(super) fn hand_over(
        self: &Arc<Self>,
        execution: ExecutionId,
        identity: Option<Arc<RunIdentity>>,
        command: QueuedRequest,
    ) -> Result<(), DurableRefusal> {
        let mut live = lock(&self.live);
        if self.stop.is_cancelled() {
            return Err(DurableRefusal::Stopping);
        }
        let begin = || {
            let (commands, inbox) = mpsc::channel(COMMANDS);
            let activity = SharedActivity::new();
            self.tasks.spawn(RunTask::new(Arc::clone(self), execution, inbox, activity.clone()).run(None));
            LiveRun { commands, identity: None, activity }
        };
        let live = live.entry(execution).or_insert_with(begin);
        // A task removes itself before it ends: an entry without a running task has failed.
        if !live.is_alive() {
            *live = begin();
        }
        if identity.is_some() {
            live.identity = identity;
        }
        live.commands
            .try_send(command)
            .map_err(|_| DurableRefusal::NoWorker("it is busy; try again".to_owned()))
    }

    /// Removes an owner task without work; false if there is a new request.
    pub(super) fn retire(&self, execution: ExecutionId, inbox: &mpsc::Receiver<QueuedRequest>) -> bool {
        let mut live = lock(&self.live);
        inbox.is_empty() && live.remove(&execution).is_some()
    }

    /// Identity of an execution, if it has an owner task and a caller has supplied it.
    pub fn identity(&self, execution: ExecutionId) -> Option<Arc<RunIdentity>> {
        lock(&self.live).get(&execution).and_then(|live| live.identity.clone())
    }

    /// A program was deleted: its executions no longer show its name.
    pub fn program_deleted(&self, program: ProgramId) {
        for live in lock(&self.live).values_mut() {
            live.identity.take_if(|identity| identity.program == program);
        }
    }
}
