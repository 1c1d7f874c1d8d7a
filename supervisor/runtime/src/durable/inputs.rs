//! Events of an owner task as inputs of the state machine. Decides nothing.

use super::ProgramWorker;
use super::live::{QueuedRequest, lock};
use super::task::{ProgramContext, RunTask, RunWorker, Woken};
use super::worker::{LoadedWorker, WorkerStartError};
use crate::link::{LinkEvent, WorkerLink};
use crate::owner_memory::WorkOf;
use crate::task::fault;
use crate::writes::WriteOutcome;
use vm_system_core::WriteId;
use vm_system_core::durable::{DurableInput as Input, DurableRefusal, Unstored};
use vm_system_protocol::worker::FromWorker;
use vm_system_record::{Entity, Owner as Principal, Rejection, StoreError};
use vm_system_spawn::{Received, WorkerChannelError, WorkerExitStatus};

impl RunTask {
    /// None: no input for the machine.
    pub(super) fn input(&mut self, woken: Woken, context: &ProgramContext) -> Option<Input> {
        Some(match woken {
            Woken::QueuedRequest(None) | Woken::Stop => Input::Stop,
            Woken::QueuedRequest(Some(command))
                if self.writes.is_behind() && !matches!(command.input, Input::Cancel { .. }) =>
            {
                self.early = Some(command);
                return None;
            }
            // Before the answer is used up: without its files the program would fail.
            Woken::QueuedRequest(Some(command))
                if let Some(why) = &context.user_gone
                    && matches!(command.input, Input::Submit { .. } | Input::Emit { .. }) =>
            {
                command.refuse(DurableRefusal::OwnerGone(why.clone()));
                Input::Wake { token: None }
            }
            Woken::QueuedRequest(Some(command)) => self.command(command),
            Woken::Started(started) => self.started(started, &context.owner),
            Woken::Link(LinkEvent::Received(received)) => self.received(received),
            // The worker's exit follows.
            Woken::Link(LinkEvent::ReceiveFailed(WorkerChannelError::Closed)) => return None,
            Woken::Link(LinkEvent::ReceiveFailed(error)) => Input::Violation(format!("{:?}", fault(error))),
            Woken::Link(LinkEvent::SendFailed(error)) => {
                self.cannot_send(&error);
                return None;
            }
            Woken::Link(LinkEvent::Exited(exit)) => self.exited(exit),
            Woken::PagesReserved(held) => {
                self.pages.has(held);
                Input::Continues
            }
            Woken::Called(input) => {
                self.calls.under_way = None;
                *input
            }
            Woken::Written(outcome) => self.written(outcome),
            Woken::Tick => Input::Tick,
            // A warm worker is of use to those that wait only if they may have its slot.
            Woken::Pressure if !self.durables.slots.is_wanted_of(&self.holder) => return None,
            Woken::Pressure => Input::Pressure,
        })
    }

    fn command(&mut self, command: QueuedRequest) -> Input {
        let QueuedRequest { input, caller, permit, claim } = command;
        if let Some(claim) = claim {
            self.hold.adopt(claim);
        }
        if let Some(permit) = permit {
            self.permit = Some(permit);
        }
        if let Some((token, responder)) = caller {
            self.callers.add(token, responder);
        }
        input
    }

    fn started(&mut self, started: Result<LoadedWorker, WorkerStartError>, owner: &Principal) -> Input {
        let unwanted = self.starting.take().is_some_and(|starting| starting.unwanted);
        match started {
            Ok(LoadedWorker { session, handle, small, jail, slot, start_permit }) => {
                if unwanted {
                    let _ = handle.process.kill();
                }
                // From an earlier process with this pid.
                drop(self.durables.shared.registry.take_forbidden(handle.process.pid()));
                let owned = &self.durables.shared.pressure.owned;
                let memory = owned.add(owner, WorkOf::Program(self.execution), &handle.process);
                let link = WorkerLink::new(handle, self.calls.reservation.clone(), memory);
                let worker = ProgramWorker {
                    execution: self.execution,
                    process: link.process.clone(),
                    last_received: link.last_received().clone(),
                };
                lock(&self.durables.workers).insert(session, worker);
                self.worker = Some(RunWorker {
                    session,
                    link,
                    allowed_s: 0,
                    jail,
                    slot,
                    start_permit: Some(start_permit),
                });
                Input::Loaded { small }
            }
            Err(_) if unwanted => Input::Exited(WorkerExitStatus::Unknown),
            Err(error) => {
                let permanent = matches!(error, WorkerStartError::NoCode);
                Input::NotLoaded { why: error.to_string(), permanent }
            }
        }
    }

    fn received(&mut self, received: Received) -> Input {
        // The worker is loaded: others may be started. The slots bound the number of workers.
        self.permit = None;
        if let Some(worker) = &mut self.worker {
            worker.start_permit = None;
        }
        match received.message {
            FromWorker::Durable(message) => Input::Message(*message),
            _ => Input::Violation("a message of the other engine".to_owned()),
        }
    }

    fn exited(&mut self, exit: WorkerExitStatus) -> Input {
        self.calls.under_way = None;
        self.pages.acquiring = None;
        let (mut forbidden, mut released) = (None, false);
        if let Some(RunWorker { session, link, .. }) = self.worker.take() {
            self.forget_worker(session);
            forbidden = self.durables.shared.registry.take_forbidden(link.process.pid());
            link.process.forget();
            released = link.memory.is_released() && exit == WorkerExitStatus::Signaled(libc::SIGKILL);
        }
        match forbidden {
            Some(call) => Input::ForbiddenCall(call),
            None if released => Input::Exited(WorkerExitStatus::MemoryShort),
            None => Input::Exited(exit),
        }
    }

    pub(super) fn written(&mut self, outcome: WriteOutcome<super::follow::News>) -> Input {
        self.hold.written(outcome.result.is_ok());
        match outcome.result {
            Ok(_) => {
                self.durables.following.notify(self.execution, &outcome.note);
                Input::Stored(outcome.id)
            }
            Err(error) => not_stored(outcome.id, &error),
        }
    }

    /// A worker that cannot be sent to has exited, or will: its exit is an input.
    pub(super) fn cannot_send(&self, error: &WorkerChannelError) {
        if let Some(worker) = &self.worker {
            tracing::debug!(execution = %self.execution, %error, "cannot send to a worker");
            let _ = worker.link.process.kill();
        }
    }
}

fn not_stored(write: WriteId, error: &StoreError) -> Input {
    let why = match error {
        StoreError::Rejected(Rejection::Conflict(_)) => Unstored::Conflict,
        StoreError::Rejected(Rejection::TooLarge(_)) => Unstored::TooLarge,
        StoreError::Rejected(Rejection::Limit(limit)) => Unstored::Limit(*limit),
        _ => Unstored::Failed,
    };
    // A taken name of an execution is the caller's error; no other refusal should ever happen.
    let named = matches!(error, StoreError::Rejected(Rejection::Conflict(Entity::Execution)));
    if matches!(error, StoreError::Rejected(_))
        && !named
        && !matches!(why, Unstored::TooLarge | Unstored::Limit(_))
    {
        tracing::error!(%error, "the store refuses a step of a durable execution");
    }
    if matches!(error, StoreError::Fenced) {
        tracing::warn!(
            "an execution was taken over while a step of it was written; it goes on from its last checkpoint"
        );
    }
    Input::NotStored { write, why, error: error.to_string() }
}
