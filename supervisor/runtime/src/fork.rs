//! Forks of a live session: the owner task has its worker fork, and
//! [`RuntimeApi::fork_session`](crate::RuntimeApi::fork_session) creates sessions with the children.

use super::api::RuntimeError;
use super::command::{CallPart, Command, SessionResponse, commands};
use super::facade::Runtime;
use super::libraries::Libraries;
use super::registry::LiveSession;
use super::session_task::SessionTask;
use super::task::{RuntimeContext, fault, spawn_failure};
use crate::worktree::Worktree;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use vm_system_core::{ForkFault, SessionAction as Action, SessionInput as Input, SessionMachine, copy_name};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{Session, SessionFacts};
use vm_system_protocol::worker::ToWorker;
use vm_system_spawn::{ForkError, ForkUnderWay, Spawner, WorkerHandle};

/// A worker that was forked for a new session, with the facts that it inherits from its parent.
#[derive(Debug)]
pub(super) struct ForkedWorker {
    pub(super) handle: WorkerHandle,
    /// The jail of its parent.
    pub(super) jail: Spawner,
    parent: Session,
    worktree: Worktree,
}

impl ForkedWorker {
    /// Kills the unneeded worker.
    fn end(self) {
        self.handle.process.end();
    }
}

/// A request to fork, in the owner task.
#[derive(Debug)]
pub(super) struct Forks {
    children: VecDeque<SessionId>,
    /// Gets the children; none if they become copies.
    made: Option<mpsc::Sender<ForkedWorker>>,
    under_way: Option<ForkUnderWay>,
    /// The result of the current fork was received.
    finished: bool,
    started: Option<WorkerHandle>,
    order: u64,
}

impl Forks {
    pub(super) fn new(children: Vec<SessionId>, made: mpsc::Sender<ForkedWorker>) -> Self {
        Self {
            children: children.into(),
            made: Some(made),
            under_way: None,
            finished: false,
            started: None,
            order: 0,
        }
    }

    /// For a frozen copy, which has a name of its own in the keeper.
    fn of_copy(session: SessionId, order: u64) -> Self {
        Self {
            children: [copy_name(session, order)].into(),
            made: None,
            under_way: None,
            finished: false,
            started: None,
            order: 0,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WorkerHandle, ForkError>> {
        match &mut self.under_way {
            Some(under_way) if !self.finished => {
                let result = Pin::new(under_way).poll(context);
                self.finished = result.is_ready();
                result
            }
            _ => Poll::Pending,
        }
    }
}

/// The result of the current fork, if there is one. Cancel safe.
pub(super) async fn next(forks: Option<&mut Forks>) -> Result<WorkerHandle, ForkError> {
    match forks {
        Some(forks) => poll_fn(|context| forks.poll(context)).await,
        None => std::future::pending().await,
    }
}

impl SessionTask {
    /// Permits the worker one fork, and orders it.
    pub(super) fn fork(&mut self, order: u64) {
        if let Some(requested) = self.forks.requested.take() {
            self.forks.current = Some(requested);
        } else if self.forks.current.is_none() {
            self.forks.current = Some(Forks::of_copy(self.live.id, order));
        }
        let (Some(forks), Some(worker), Some(jail)) =
            (&mut self.forks.current, &mut self.worker.link, &self.worker.jail)
        else {
            return;
        };
        let Some(child) = forks.children.pop_front() else { return };
        match jail.fork_worker(&worker.process, child) {
            Ok((under_way, way)) => {
                (forks.under_way, forks.finished, forks.order) = (Some(under_way), false, order);
                let failed = worker.outbox.push_with(ToWorker::Fork { order }, Some(way));
                if let Some(error) = failed.and_then(|error| worker.send_failed(error)) {
                    self.next.push(Input::ChannelFailed(fault(error)));
                }
            }
            Err(error) => {
                let result = Err(ForkFault::NotOrdered(spawn_failure(&error)));
                self.next.push(Input::ForkEnded { order, result });
            }
        }
    }

    /// Handles the result of a fork.
    pub(super) fn forked(&mut self, result: Result<WorkerHandle, ForkError>, actions: &mut Vec<Action>) {
        let Some(forks) = &mut self.forks.current else {
            return drop(result.map(|unwanted| unwanted.process.end()));
        };
        let order = forks.order;
        let result = match result {
            Ok(handle) => {
                forks.started = Some(handle);
                Ok(())
            }
            Err(ForkError::Failed(error)) => Err(ForkFault::Failed(spawn_failure(&error))),
            Err(ForkError::Violation(what)) => Err(ForkFault::Violation(what)),
        };
        self.step(Input::ForkEnded { order, result }, actions);
    }

    /// Gives the child to the caller.
    pub(super) fn fork_taken(&mut self) {
        let (Some(forks), Some(jail)) = (&mut self.forks.current, &self.worker.jail) else { return };
        forks.under_way = None;
        let (Some(handle), Some(made)) = (forks.started.take(), &forks.made) else { return };
        let parent = self.machine.record().clone();
        let forked =
            ForkedWorker { handle, jail: jail.clone(), parent, worktree: self.host.worktree.clone() };
        if let Err(refused) = made.try_send(forked) {
            match refused {
                mpsc::error::TrySendError::Full(unwanted) | mpsc::error::TrySendError::Closed(unwanted) => {
                    unwanted.end();
                }
            }
        }
    }

    /// Takes the child of the current fork.
    pub(super) fn take_forked(&mut self) -> Option<WorkerHandle> {
        let forks = self.forks.current.as_mut()?;
        forks.under_way = None;
        forks.started.take()
    }

    /// Kills a child that was not taken.
    pub(super) fn forks_over(&mut self) {
        self.copies.share = None;
        if let Some(forks) = self.forks.current.take()
            && let Some(unwanted) = forks.started
        {
            unwanted.process.end();
        }
    }
}

/// A request to fork a live session.
#[derive(Debug, Clone)]
pub struct ForkSession {
    /// The live session.
    pub parent: SessionId,
    /// The ids of the new sessions, chosen by the caller; at least one.
    pub children: Vec<SessionId>,
}

impl Runtime {
    /// The implementation of [`super::RuntimeApi::fork_session`].
    pub(super) async fn fork(&self, request: ForkSession) -> Result<Vec<Session>, RuntimeError> {
        let parent = self.live(request.parent)?;
        let runtime = self.clone();
        // The caller may drop the future; the workers must not be left without an owner.
        let forks = self.tasks().spawn(async move { runtime.fork_all(&parent, request.children).await });
        forks.await.map_err(|error| RuntimeError::Internal(error.to_string()))?
    }

    async fn fork_all(
        &self,
        parent: &Arc<LiveSession>,
        ids: Vec<SessionId>,
    ) -> Result<Vec<Session>, RuntimeError> {
        self.shared().pressure.admit(&parent.owner)?;
        let reserved = self.reserve(parent, &ids)?;
        let (made, mut workers) = mpsc::channel(ids.len().max(1));
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let part = Some(CallPart::Forks(Box::new(Forks::new(ids, made))));
        let forked = parent.call_with(|token| Input::Fork { token, count }, part).await;
        let mut started = Vec::with_capacity(reserved.len());
        // Later ones are ended by their sender.
        workers.close();
        while let Ok(child) = workers.try_recv() {
            started.push(child);
        }
        let refused = match forked {
            Ok(()) if started.len() == reserved.len() => {
                return self.begin_all(parent, reserved, started).await;
            }
            Ok(()) => {
                let counts = (started.len(), reserved.len());
                RuntimeError::Internal(format!("{} workers for {} forks", counts.0, counts.1))
            }
            Err(error) => error,
        };
        started.into_iter().for_each(ForkedWorker::end);
        for (live, _) in reserved {
            self.shared().registry.remove(live.id);
        }
        Err(refused)
    }

    /// Admits all new sessions before the first is created.
    fn reserve(&self, parent: &LiveSession, ids: &[SessionId]) -> Result<Vec<Reserved>, RuntimeError> {
        let mut reserved: Vec<Reserved> = Vec::with_capacity(ids.len());
        for id in ids {
            let (commands, inbox) = commands();
            let live = Arc::new(parent.for_fork(*id, commands));
            if let Err(refused) = self.admit(&live) {
                let available = reserved.len();
                for (live, _) in reserved {
                    self.shared().registry.remove(live.id);
                }
                return Err(match refused {
                    RuntimeError::Full(refusal) => {
                        RuntimeError::Full(refusal.of_several(ids.len(), available))
                    }
                    refused => refused,
                });
            }
            reserved.push((live, inbox));
        }
        Ok(reserved)
    }

    async fn begin_all(
        &self,
        parent: &LiveSession,
        reserved: Vec<Reserved>,
        started: Vec<ForkedWorker>,
    ) -> Result<Vec<Session>, RuntimeError> {
        let mut responses = Vec::with_capacity(reserved.len());
        for ((live, inbox), child) in reserved.into_iter().zip(started) {
            let task = forked_task(self.shared(), parent, &live, inbox, child);
            self.tasks().spawn(task.run());
            let (create, response) = live.request(|token| Input::Create { token }, None);
            let sent = live.commands.send(create).await;
            responses.push((live, sent.is_ok().then_some(response)));
        }
        let (mut sessions, mut failure) = (Vec::with_capacity(responses.len()), None);
        for (live, response) in &mut responses {
            match self.created(response.take(), live).await {
                Ok(session) => sessions.push(session),
                Err(error) => {
                    tracing::warn!(session = %live.id, %error, "a fork did not become ready");
                    failure.get_or_insert(error);
                }
            }
        }
        let Some(failure) = failure else { return Ok(sessions) };
        for (live, _) in responses {
            // No error if it has ended by itself.
            let _ = live.call(|token| Input::Kill { token, signal: libc::SIGKILL }).await;
        }
        Err(failure)
    }

    async fn created(
        &self,
        response: Option<SessionResponse<Session>>,
        live: &LiveSession,
    ) -> Result<Session, RuntimeError> {
        let response = response.ok_or(RuntimeError::NotLive)?;
        let session = response.await.map_err(|_| RuntimeError::NotLive)??;
        self.shared().registry.session_created(&live.owner);
        Ok(session)
    }
}

type Reserved = (Arc<LiveSession>, mpsc::Receiver<Command>);

fn forked_task(
    shared: &Arc<RuntimeContext>,
    parent: &LiveSession,
    live: &Arc<LiveSession>,
    inbox: mpsc::Receiver<Command>,
    forked: ForkedWorker,
) -> SessionTask {
    let ForkedWorker { handle, jail, parent: record, worktree } = forked;
    let policy = live.policy(None, &shared.operator);
    let facts = facts_of_fork(parent.id, &record.runtime_meta);
    let spec = super::specs::spec_of_fork(live, (&record, &worktree), &policy, (facts, shared.store.now()));
    // The child's memory contains the parent's libraries already.
    let libraries = Libraries::Installed(vm_system_spawn::LibrarySet::default());
    let machine = SessionMachine::new(spec);
    let mut task = SessionTask::new(machine, (shared, live), inbox, worktree, libraries);
    task.worker.unassigned = Some((handle, jail));
    task
}

/// A fork lacks what its parent has lost: it says so, too, unless an execution of the parent has said it.
fn facts_of_fork(parent: SessionId, facts: &SessionFacts) -> SessionFacts {
    SessionFacts {
        forked_from: Some(parent),
        restart: facts.restart.clone().filter(|restart| !restart.reported),
        // The child's worker is of the same build.
        drain_at: facts.drain_at,
        ..SessionFacts::default()
    }
}
