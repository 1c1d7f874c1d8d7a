//! Which executions have an owner task. Finding one and handing it something is one step, so that none can leave in
//! between.

use super::task::{Owner, Place};
use super::{Durables, found};
use crate::core::durable::{DurableMachine, Refused, Stand};
use crate::store::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::json::JsonText;

/// Commands that may wait for an owner task.
const COMMANDS: usize = 32;

/// What is asked of an owner task.
#[derive(Debug)]
pub(super) enum Ask {
    Start,
    Submit { task: Option<TaskId>, answer: String },
    Set { frame: u32, name: String, value: JsonText },
    Cancel { with: Vec<Write> },
    Wake,
}

/// Where an answer goes.
pub(super) type Answering = oneshot::Sender<Result<Stand, Refused>>;

/// A question with the one who asks.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) ask: Ask,
    pub(super) answer: Answering,
    /// Held until the execution stands still: bounds what goes on by itself at a time.
    pub(super) turn: Option<OwnedSemaphorePermit>,
}

impl Command {
    pub(super) fn asking(ask: Ask, answer: Answering) -> Self {
        Self { ask, answer, turn: None }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Durables {
    pub(super) async fn ask(self: &Arc<Self>, execution: ExecutionId, ask: Ask) -> Result<Stand, Refused> {
        let (answer, answered) = oneshot::channel();
        self.hand_over(execution, Command::asking(ask, answer))?;
        answered.await.unwrap_or(Err(Refused::Stopping))
    }

    /// An owner task for an execution that begins.
    pub(super) fn begin(
        self: &Arc<Self>,
        execution: ExecutionId,
        machine: DurableMachine,
        place: Place,
        command: Command,
    ) -> Result<(), Refused> {
        let mut live = lock(&self.live);
        if self.stop.is_cancelled() {
            return Err(Refused::Stopping);
        }
        let (commands, inbox) = mpsc::channel(COMMANDS);
        if commands.try_send(command).is_err() {
            return Err(Refused::Stopping);
        }
        live.insert(execution, commands);
        self.tasks.spawn(Owner::new(Arc::clone(self), execution, inbox).run(Some((machine, place))));
        Ok(())
    }

    pub(super) fn hand_over(
        self: &Arc<Self>,
        execution: ExecutionId,
        command: Command,
    ) -> Result<(), Refused> {
        let mut live = lock(&self.live);
        if self.stop.is_cancelled() {
            return Err(Refused::Stopping);
        }
        let commands = live.entry(execution).or_insert_with(|| {
            let (commands, inbox) = mpsc::channel(COMMANDS);
            self.tasks.spawn(Owner::new(Arc::clone(self), execution, inbox).run(None));
            commands
        });
        commands.try_send(command).map_err(|_| Refused::NotPending)
    }

    /// An owner task that has nothing left to do leaves; false if somebody asked it something meanwhile.
    pub(super) fn retire(&self, execution: ExecutionId, inbox: &mpsc::Receiver<Command>) -> bool {
        let mut live = lock(&self.live);
        inbox.is_empty() && live.remove(&execution).is_some()
    }

    /// An execution as its rows say.
    pub(super) async fn find(&self, execution: ExecutionId) -> Result<(DurableMachine, Place), Refused> {
        found::load(self, execution).await
    }
}
