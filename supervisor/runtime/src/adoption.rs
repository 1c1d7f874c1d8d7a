//! Takes over the sessions of an earlier supervisor whose workers still run.

use super::facade::{Runtime, commands};
use super::jails::relay_rest;
use super::registry::{LiveSession, Registry};
use super::session_task::SessionTask;
use super::specs::{spec_of, timestamp};
use super::task::{Command, exit_status};
use crate::worktree::Worktree;
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use vm_system_core::AdoptedExecution;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::SessionEventType;
use vm_system_record::{PolicySnapshot, ReadySessionRow, Scope, Write};
use vm_system_spawn::{AdoptedJail, AdoptedWorker, KeptJail, SpawnConfig, Spawner};

/// Longest time for which the start waits until all adopted sessions accept executions. The session of a worker that replies later,
/// because it is in a native that never polls, is busy until then.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// Held by the owner task of an adopted session until the session accepts executions or has ended; nothing is ever sent.
pub(super) type TakingOver = mpsc::Sender<Infallible>;

/// The workers of an earlier supervisor, by session.
pub(super) type KeptWorkers = HashMap<SessionId, (AdoptedWorker, Spawner)>;

/// Takes over the workers of these sessions; others are killed.
pub(super) async fn take_over(
    kept: Vec<KeptJail>,
    config: &SpawnConfig,
    rows: &[ReadySessionRow],
    registry: &Arc<Registry>,
) -> KeptWorkers {
    let owners = rows.iter().map(|ready| (ready.row.session.id, ready.row.owner.as_str().to_owned()));
    let owners = owners.collect();
    let mut all = KeptWorkers::new();
    for jail in kept {
        match jail.adopt(config, &owners).await {
            Ok(AdoptedJail { spawner, events, workers }) => {
                tokio::spawn(relay_rest(Arc::clone(registry), events));
                all.extend(workers.into_iter().map(|(session, worker)| (session, (worker, spawner.clone()))));
            }
            Err(error) => {
                tracing::error!(%error, "a jail of an earlier supervisor cannot be adopted; it is ended");
            }
        }
    }
    all
}

impl Runtime {
    /// Continues the sessions with their workers, and waits until they accept executions.
    pub(super) async fn continue_sessions(&self, rows: Vec<ReadySessionRow>, mut workers: KeptWorkers) {
        let (taking_over, mut taken_over) = mpsc::channel(1);
        for ready in rows {
            let Some((worker, jail)) = workers.remove(&ready.row.session.id) else { continue };
            let (sender, inbox) = commands();
            let row = &ready.row;
            let (policy, policies) = (Arc::clone(&ready.policy), &self.shared().registry.policies);
            let live = LiveSession::new(row.session.id, row.owner.clone(), sender, policy, policies);
            let live = Arc::new(live);
            if self.readmit(&live) {
                if let Some(running) = &ready.running {
                    self.shared().registry.execution_began(running.execution.id, &live);
                }
                let task = (inbox, taking_over.clone());
                self.tasks().spawn(continue_session(self.clone(), ready, live, task, (worker, jail)));
            }
        }
        drop(taking_over);
        if tokio::time::timeout(TAKE_OVER, taken_over.recv()).await.is_err() {
            tracing::warn!("adopted sessions whose workers have not replied yet are busy until then");
        }
    }
}

async fn continue_session(
    runtime: Runtime,
    ready: ReadySessionRow,
    live: Arc<LiveSession>,
    (inbox, taking_over): (mpsc::Receiver<Command>, TakingOver),
    (worker, jail): (AdoptedWorker, Spawner),
) {
    let shared = runtime.shared();
    let ReadySessionRow { row, policy, running } = ready;
    let (session, owner) = (row.session, row.owner);
    let opened = match &row.worktree {
        Some(recorded) => shared.reopen_worktree(recorded, &owner).await,
        None => shared.open_worktree(PathBuf::from(&session.worktree_path), &owner, None).await,
    };
    let worktree = match opened {
        Ok(worktree) => worktree,
        Err(error) => {
            tracing::warn!(session = %session.id, %error, "the worktree of an adopted session cannot be opened");
            Worktree::unavailable(error.to_string())
        }
    };
    // A row that cannot be read changes nothing: the session's own copy is never exceeded.
    let template = shared.store.template(&Scope::All, session.template_id).await.ok().flatten();
    let template = template.map(|row| Arc::new(PolicySnapshot::from(&row.detail)));
    let rights = live.policy(template.as_ref(), &shared.operator);
    let spec = spec_of(session, (&owner, &policy), &worktree, &rights);
    let kind = SessionEventType::Adopted;
    let adopted = Write::SessionEvent { session: live.id, kind, at: timestamp(), detail: None };
    if let Err(error) = shared.store.of(&owner).submit_lazy(adopted).await {
        tracing::warn!(session = %live.id, %error, "the adoption is not among the events of the session");
    }
    let running = running.map(|row| AdoptedExecution { row, policy: rights });
    let (handle, exited) = match worker {
        AdoptedWorker::Running(handle) => (Some(handle), None),
        AdoptedWorker::Exited(exit) => (None, Some(exit_status(exit))),
    };
    let adopted = (spec, row.worker_seq, running);
    let task = SessionTask::adopt(adopted, (shared, &live), inbox, worktree, (handle, jail));
    task.run_adopted(exited, taking_over).await;
}
