//! One task per session and kind of broker: owns the process, serves one call after the other, replaces it when it failed.
//!
//! ```text
//! no process ──call──▶ starting ──ready──▶ idle ──call──▶ busy ──reply───▶ idle
//!      ▲                  │                 │               │
//!      └──────────────────┴── dead, late, wrong, unused ◀───┘      session ended: kill, reap, leave
//! ```

use super::databases;
use super::live::{BrokerFailure, ConnectedBroker};
use super::{AllowedCall, BrokerKind, BrokersState, CallFailure, broker_error};
use crate::recent_failures::RecentFailures;
use crate::shares::Share;
use crate::worktree::Worktree;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use vm_system_protocol::broker::{BrokerCall, BrokerReply};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::worker::HostError;

/// A killed process is waited for as long as this before its session goes on.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

type BrokerResult = Result<BrokerReply, CallFailure>;

/// A job for a session's broker.
#[derive(Debug)]
pub(super) enum BrokerJob {
    /// Carry out a call.
    Call(Box<Work>),
    /// Close what the execution left open.
    ExecutionEnded,
}

/// A call with its caller.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) call: AllowedCall,
    pub(super) responder: oneshot::Sender<BrokerResult>,
}

/// The task's state.
pub(super) struct BrokerTask {
    shared: Arc<BrokersState>,
    session: SessionId,
    kind: BrokerKind,
    stop: CancellationToken,
    broker: Option<ConnectedBroker>,
    /// The process of the running command.
    command: Option<ConnectedBroker>,
    /// The purpose of the running broker: the worktree, and whether its walls permit changing files. `None` for databases.
    files: Option<(Worktree, bool)>,
    failures: RecentFailures,
    /// The end of the last call.
    last_use: Instant,
    /// The slot of the call in progress; a process that does not end keeps it.
    slot: Option<Arc<Share>>,
}

impl BrokerTask {
    pub(super) fn new(
        shared: Arc<BrokersState>,
        (session, kind): (SessionId, BrokerKind),
        stop: CancellationToken,
    ) -> Self {
        Self {
            shared,
            session,
            kind,
            stop,
            broker: None,
            command: None,
            files: None,
            failures: RecentFailures::default(),
            last_use: Instant::now(),
            slot: None,
        }
    }

    /// Runs until the session ends or the broker is unused.
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<BrokerJob>) {
        let stop = self.stop.clone();
        loop {
            let pause = self.pause();
            tokio::select! {
                () = stop.cancelled() => break,
                job = jobs.recv() => {
                    let Some(job) = job else { break };
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = self.serve(job) => self.last_use = Instant::now(),
                    }
                }
                why = exit_of(&mut self.broker) => {
                    self.shared.live.fetch_sub(1, Ordering::Relaxed);
                    self.broker = None;
                    self.note_failure(&why);
                }
                () = sleep(pause) => {
                    let is_unused = self.last_use.elapsed() >= self.shared.config.idle;
                    if is_unused && self.shared.retire((self.session, self.kind), &jobs) {
                        break;
                    }
                    self.count_files().await;
                }
            }
        }
        self.discard_command().await;
        self.discard().await;
    }

    async fn serve(&mut self, job: BrokerJob) {
        let work = match job {
            BrokerJob::Call(work) => work,
            BrokerJob::ExecutionEnded => return self.execution_ended().await,
        };
        let Work { call, mut responder } = *work;
        if responder.is_closed() {
            return;
        }
        let writes = databases::may_write(&call.request);
        let shared = Arc::clone(&self.shared);
        let slot = timeout(shared.config.call_deadline, shared.calls.wait(&call.holder, 1)).await;
        let result = if let Ok(Some(slot)) = slot {
            self.slot = Some(Arc::new(slot));
            match call.request {
                BrokerCall::Exec { .. } => tokio::select! {
                    result = self.run_command(call) => result,
                    // The execution is being ended, and its command with it.
                    () = responder.closed() => {
                        self.discard_command().await;
                        self.slot = None;
                        return;
                    }
                },
                _ => self.serve_call(call).await,
            }
        } else {
            let refusal = shared.calls.refusal(&call.holder);
            Err(CallFailure::Unanswered(HostError {
                code: "EAGAIN".to_owned(),
                message: format!("EAGAIN: {refusal}; {}", refusal.hint()),
            }))
        };
        self.slot = None;
        // The send fails if the execution has ended: no caller waits.
        let _ = responder.send(result);
        if writes {
            self.count_files().await;
        }
    }

    /// Until the broker is unused, or its files are to be counted.
    fn pause(&self) -> Duration {
        let rest = self.shared.config.idle.saturating_sub(self.last_use.elapsed());
        let has_files = self.broker.as_ref().is_some_and(|broker| broker.workspace().is_some());
        if has_files { rest.min(databases::IDLE) } else { rest }
    }

    /// Counts the files of a broker for databases, and ends it if it has written more than it may.
    async fn count_files(&mut self) {
        let Some(workspace) = self.broker.as_ref().and_then(ConnectedBroker::workspace) else { return };
        let usage = databases::count(&workspace).await;
        if usage.is_some_and(|usage| usage.is_excessive()) {
            self.note_failure(&BrokerFailure::Excessive.to_string());
            self.discard().await;
        }
    }

    async fn execution_ended(&mut self) {
        let Some(broker) = &mut self.broker else { return };
        if let Err(failure) = broker.execution_ended(&self.shared.config).await {
            self.note_failure(&failure.to_string());
            self.discard().await;
        }
    }

    async fn serve_call(&mut self, mut call: AllowedCall) -> BrokerResult {
        let shared = Arc::clone(&self.shared);
        let is_for_another = self
            .files
            .as_ref()
            .is_some_and(|(worktree, write)| *write != call.write || !worktree.is_same(&call.worktree));
        if self.broker.is_some() && is_for_another {
            // The policy, the folder or its owner's rights have changed: other walls need another process.
            self.discard().await;
        }
        if self.broker.is_none() {
            self.start(&call).await.map_err(CallFailure::Unanswered)?;
        }
        let Some(broker) = &mut self.broker else {
            return Err(CallFailure::Unanswered(broker_error("the broker has exited")));
        };
        let workspace = broker.workspace();
        let limited = workspace.as_ref().and_then(|open| databases::set_growth(&mut call.request, open));
        let exchange = broker.exchange(&shared.config, call.execution, call.request);
        let replied = match &workspace {
            Some(workspace) => tokio::select! {
                replied = exchange => replied,
                failure = databases::watch(workspace) => Err(failure),
            },
            None => exchange.await,
        };
        let failure = match replied {
            Ok(reply) => {
                let explain = |error| databases::explain(error, limited.as_ref());
                return reply.map_err(|error| CallFailure::Refused(explain(error)));
            }
            Err(failure) => failure,
        };
        self.note_failure(&failure.to_string());
        self.discard().await;
        Err(CallFailure::Unanswered(match failure {
            BrokerFailure::Late(_) => HostError {
                code: "ETIMEDOUT".to_owned(),
                message: format!("ETIMEDOUT: the broker was ended: {failure}"),
            },
            failure => broker_error(&format!("the broker was ended: {failure}")),
        }))
    }

    async fn start(&mut self, call: &AllowedCall) -> Result<(), HostError> {
        if self.failures.are_too_many() {
            return Err(broker_error("the broker failed 5 times within a minute; try again later"));
        }
        let shared = Arc::clone(&self.shared);
        let started = match self.kind {
            BrokerKind::Files => ConnectedBroker::start_for_files(&shared.config, call).await,
            BrokerKind::Databases => {
                let service_user = shared.config.service_ids;
                let workspace = databases::open(&call.workspaces, &call.workspace, service_user).await?;
                ConnectedBroker::start_for_databases(&shared.config, workspace)
            }
        };
        let started = match started {
            Ok(broker) => {
                self.files = match self.kind {
                    BrokerKind::Files => Some((call.worktree.clone(), call.write)),
                    BrokerKind::Databases => None,
                };
                shared.live.fetch_add(1, Ordering::Relaxed);
                // Stored before the next await: if the session ends meanwhile, the process is still reaped.
                let broker = self.broker.insert(broker);
                tracing::debug!(session = %self.session, kind = ?self.kind, pid = broker.pid(), "broker started");
                broker.ready(&shared.config, &call.holder).await
            }
            Err(failure) => Err(failure),
        };
        let Err(failure) = started else { return Ok(()) };
        self.note_failure(&failure.to_string());
        self.discard().await;
        Err(broker_error(&format!("the broker is not available: {failure}")))
    }

    /// A command has a process of its own, which exits with it.
    async fn run_command(&mut self, call: AllowedCall) -> BrokerResult {
        let shared = Arc::clone(&self.shared);
        let result = match ConnectedBroker::start_command(&shared.config, &call).await {
            Ok(started) => {
                shared.live.fetch_add(1, Ordering::Relaxed);
                // Stored before the next await: if the session ends meanwhile, the process is still reaped.
                let command = self.command.insert(started);
                match command.command_ready(&shared.config, &call.holder).await {
                    Ok(()) => command.exchange(&shared.config, call.execution, call.request).await,
                    Err(failure) => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        };
        let out_of_memory = self.command.as_ref().is_some_and(ConnectedBroker::ran_out_of_memory);
        self.discard_command().await;
        match result {
            _ if out_of_memory => Err(CallFailure::Unanswered(HostError {
                code: "ENOMEM".to_owned(),
                message: "ENOMEM: the command was ended: it, or its owner, used more memory than is allowed"
                    .to_owned(),
            })),
            Ok(reply) => reply.map_err(CallFailure::Refused),
            Err(failure) => {
                tracing::warn!(session = %self.session, %failure, "a command's process failed");
                let ended = broker_error(&format!("the command's process was ended: {failure}"));
                Err(CallFailure::Unanswered(ended))
            }
        }
    }

    async fn discard_command(&mut self) {
        if let Some(command) = self.command.take() {
            self.end(command).await;
        }
    }

    fn note_failure(&mut self, why: &str) {
        tracing::warn!(session = %self.session, why, "broker failed");
        self.failures.add(Instant::now());
    }

    /// Ends the process, if there is one.
    async fn discard(&mut self) {
        if let Some(broker) = self.broker.take() {
            self.end(broker).await;
        }
    }

    /// Ends a process and waits for that, but not for long: in a call that a file system never answers, SIGKILL has no effect. Such
    /// a process keeps the slot of its call, so that an owner has no more of them than it has calls at a time.
    async fn end(&mut self, process: ConnectedBroker) {
        let (shared, slot) = (Arc::clone(&self.shared), self.slot.clone());
        let ended = self.shared.tasks.spawn(async move {
            process.end().await;
            shared.live.fetch_sub(1, Ordering::Relaxed);
            drop(slot);
        });
        let _ = timeout(EXIT_PATIENCE, ended).await;
    }
}

/// How the broker exited by itself; pending for ever without a broker.
async fn exit_of(broker: &mut Option<ConnectedBroker>) -> String {
    let Some(broker) = broker else { return std::future::pending().await };
    match broker.ended().await {
        Ok(ending) => format!("it ended: {ending:?}"),
        Err(error) => format!("it cannot be watched: {error}"),
    }
}
