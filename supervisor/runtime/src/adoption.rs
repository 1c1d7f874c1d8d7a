//! Takes over the sessions of an earlier supervisor: those whose workers still run, and those whose workers were being replaced.

use super::command::Command;
use super::command::commands;
use super::facade::Runtime;
use super::jails::relay_rest;
use super::registry::{LiveSession, Registry};
use super::session_task::{AdoptedSession, SessionTask};
use super::specs::spec_of;
use crate::worktree::Worktree;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use vm_system_core::{AdoptedExecution, Continuation, SessionSpec, copies_of, last_before_guard, of_guard};
use vm_system_policy::EffectivePolicy;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::model::{OnCrash, SessionEventType, SessionFacts, SessionStatus};
use vm_system_record::{LiveSessionRow, PolicySnapshot, Scope, SessionRow, StoreError, Write};
use vm_system_spawn::{AdoptedJail, AdoptedWorker, KeptJail, SpawnConfig, Spawner, WorkerHandle};
use vm_system_store::StoreHandle;

/// Longest time for which the start waits until all adopted sessions accept executions. The session of a worker that replies later,
/// because it is in a native that never polls, is busy until then.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// Held by the owner task of an adopted session until the session accepts executions or has ended; nothing is ever sent.
pub(super) type TakingOver = mpsc::Sender<Infallible>;

/// The workers of an earlier supervisor, by their names in the keeper.
type KeptWorkers = HashMap<SessionId, (AdoptedWorker, Spawner)>;

/// A guard copy with its name in the keeper.
type GuardCopy = (SessionId, WorkerHandle, Spawner);

/// How a session of an earlier supervisor goes on.
enum Way {
    /// The session continues with its worker, which may have exited, and its guard copy.
    Worker(AdoptedWorker, Spawner, Option<GuardCopy>),
    /// The session continues with another worker, as the earlier supervisor had begun; from a frozen copy, or without state.
    Replacement(Continuation, Option<(WorkerHandle, Spawner)>),
}

/// The sessions of an earlier supervisor that go on.
pub(super) struct TakenOver(Vec<(LiveSessionRow, Way)>);

impl TakenOver {
    /// The sessions with their workers, and those that continue with others.
    pub(super) fn sessions(&self) -> [Vec<SessionId>; 2] {
        let (mut alive, mut continued) = (Vec::new(), Vec::new());
        for (row, way) in &self.0 {
            match way {
                Way::Worker(..) => alive.push(row.row.session.id),
                Way::Replacement(..) => continued.push(row.row.session.id),
            }
        }
        [alive, continued]
    }
}

/// The treatment of a session, as far as its row says.
enum Plan {
    /// The session's worker is adopted.
    Adopt,
    /// The session's worker was being replaced.
    Continue(Continuation),
}

impl Plan {
    /// None: the creation of the session was not finished.
    fn from_row(row: &LiveSessionRow) -> Option<Self> {
        match row.row.session.status {
            SessionStatus::Ready => Some(Self::Adopt),
            _ => Continuation::recorded(&row.row.session.runtime_meta).map(Self::Continue),
        }
    }

    /// The process that is needed for it, by its name in the keeper.
    fn process(&self, session: SessionId) -> Option<SessionId> {
        match self {
            Self::Adopt => Some(session),
            Self::Continue(continuation) => continuation.copy.map(|(_, name)| name),
        }
    }

    /// None: the process is gone.
    fn way(self, session: SessionId, workers: &mut KeptWorkers, guards: &mut Guards) -> Option<Way> {
        let process = self.process(session).map(|name| workers.remove(&name));
        match (self, process) {
            (Self::Adopt, Some(Some((worker, jail)))) => {
                Some(Way::Worker(worker, jail, guards.take(session, workers)))
            }
            (Self::Continue(continuation), None) => Some(Way::Replacement(continuation, None)),
            (Self::Continue(continuation), Some(Some((AdoptedWorker::Running(copy), jail)))) => {
                Some(Way::Replacement(continuation, Some((copy, jail))))
            }
            _ => None,
        }
    }
}

/// Takes over the workers of these sessions, and the frozen copies from which they were being rolled back; others are killed.
pub(super) async fn take_over(
    kept: Vec<KeptJail>,
    config: &SpawnConfig,
    rows: Vec<LiveSessionRow>,
    registry: &Arc<Registry>,
) -> TakenOver {
    let planned: Vec<_> = rows.into_iter().filter_map(|row| Some((Plan::from_row(&row)?, row))).collect();
    let process = |(plan, row): &(Plan, LiveSessionRow)| {
        Some((plan.process(row.row.session.id)?, row.row.owner.as_str().to_owned()))
    };
    let processes: HashMap<SessionId, String> = planned.iter().filter_map(process).collect();
    let mut guards = Guards::default();
    for (plan, row) in &planned {
        if matches!(plan, Plan::Adopt) && row.policy.settings.runtime.on_crash == OnCrash::Rollback {
            guards.expect(&row.row);
        }
    }
    let owner_of = |name| processes.get(&name).cloned().or_else(|| guards.owner_of(name));
    let mut workers = adopt_all(kept, config, &owner_of, registry).await;
    guards.found(&workers);
    let way = |(plan, row): (Plan, LiveSessionRow)| {
        let way = plan.way(row.row.session.id, &mut workers, &mut guards)?;
        Some((row, way))
    };
    let taken = TakenOver(planned.into_iter().filter_map(way).collect());
    for (worker, _) in workers.into_values() {
        if let AdoptedWorker::Running(unwanted) = worker {
            unwanted.process.end();
        }
    }
    taken
}

/// Pause between two attempts to store the ends of sessions.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// Stores the ends of the sessions that do not go on. A start does not fail because the disk is full, which would end all others, too:
/// the ends are stored as soon as there is space.
pub(super) async fn store_ends(
    store: &StoreHandle,
    (alive, continued): (Vec<SessionId>, Vec<SessionId>),
    earlier: Vec<SessionId>,
    why: Option<String>,
) -> Result<(), StoreError> {
    let at = store.now();
    let ends = |earlier| Write::HostRestart {
        at,
        alive: alive.clone(),
        continued: continued.clone(),
        earlier,
        why: why.clone(),
    };
    match store.apply(ends(None)).await {
        Err(StoreError::Unavailable(error)) => {
            tracing::error!(
                error,
                "the ends of sessions cannot be stored yet; the sessions that go on can be used"
            );
        }
        stored => return stored.map(drop),
    }
    let (store, ends) = (store.clone(), ends(Some(earlier)));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(STORE_AGAIN).await;
            match store.apply(ends.clone()).await {
                Err(StoreError::Unavailable(_)) => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::error!(%error, "the ends of sessions are not stored");
                    return;
                }
            }
        }
    });
    Ok(())
}

/// The stored facts of a session that may have a guard copy.
struct ExpectedGuard {
    owner: String,
    facts: SessionFacts,
    /// The number of the last message.
    stored: u64,
}

impl ExpectedGuard {
    /// The number of the last message before the copy; none if the copy has more than what is stored.
    fn last_before(&self, name: SessionId) -> Option<u64> {
        last_before_guard(name, &self.facts).filter(|last| *last <= self.stored)
    }
}

/// The guard copies of sessions whose workers are adopted.
#[derive(Default)]
struct Guards {
    /// By how the names of the copies begin.
    expected: HashMap<[u8; 8], ExpectedGuard>,
    /// The copies that the keepers have.
    names: HashMap<[u8; 8], SessionId>,
}

impl Guards {
    fn expect(&mut self, row: &SessionRow) {
        let (owner, facts) = (row.owner.as_str().to_owned(), row.session.runtime_meta.clone());
        let expected = ExpectedGuard { owner, facts, stored: row.worker_seq };
        self.expected.insert(copies_of(row.session.id), expected);
    }

    /// The owner of a guard copy whose state has only what is stored.
    fn owner_of(&self, name: SessionId) -> Option<String> {
        let expected = self.expected.get(&of_guard(name)?)?;
        expected.last_before(name).map(|_| expected.owner.clone())
    }

    /// Of two, one of which is being given up, the newer one has the later number.
    fn found(&mut self, workers: &KeptWorkers) {
        let is_running = |worker: &AdoptedWorker| matches!(worker, AdoptedWorker::Running(_));
        let running = workers.iter().filter(|(_, (worker, _))| is_running(worker)).map(|(name, _)| *name);
        for name in running {
            let Some(of_session) = of_guard(name) else { continue };
            let Some(expected) = self.expected.get(&of_session) else { continue };
            let newest = self.names.entry(of_session).or_insert(name);
            if expected.last_before(name) > expected.last_before(*newest) {
                *newest = name;
            }
        }
    }

    fn take(&mut self, session: SessionId, workers: &mut KeptWorkers) -> Option<GuardCopy> {
        let name = self.names.remove(&copies_of(session))?;
        match workers.remove(&name)? {
            (AdoptedWorker::Running(copy), jail) => Some((name, copy, jail)),
            (AdoptedWorker::Exited(_), _) => None,
        }
    }
}

async fn adopt_all(
    kept: Vec<KeptJail>,
    config: &SpawnConfig,
    owner_of: &(dyn Fn(SessionId) -> Option<String> + Sync),
    registry: &Arc<Registry>,
) -> KeptWorkers {
    let mut all = KeptWorkers::new();
    for jail in kept {
        match jail.adopt(config, owner_of).await {
            Ok(AdoptedJail { spawner, events, workers }) => {
                tokio::spawn(relay_rest(Arc::clone(registry), events));
                for (session, worker) in workers {
                    add_kept(&mut all, session, (worker, spawner.clone()));
                }
            }
            Err(error) => {
                tracing::error!(%error, "a jail of an earlier supervisor cannot be adopted; it is ended");
            }
        }
    }
    all
}

/// An earlier worker of the session, in another jail, does not count beside one that runs.
fn add_kept(all: &mut KeptWorkers, session: SessionId, found: (AdoptedWorker, Spawner)) {
    let unneeded = match all.entry(session) {
        Entry::Vacant(place) => {
            place.insert(found);
            return;
        }
        Entry::Occupied(mut known) => match known.get().0 {
            AdoptedWorker::Running(_) => found,
            AdoptedWorker::Exited(_) => known.insert(found),
        },
    };
    match unneeded {
        (AdoptedWorker::Running(worker), _) => worker.process.end(),
        (AdoptedWorker::Exited(_), jail) => jail.forget(session),
    }
}

impl Runtime {
    /// Continues the sessions, and waits until those with their workers accept executions.
    pub(super) async fn continue_sessions(&self, taken: TakenOver) {
        let (taking_over, mut taken_over) = mpsc::channel(1);
        for (live_row, way) in taken.0 {
            let (sender, inbox) = commands();
            let row = &live_row.row;
            let (policy, policies) = (Arc::clone(&live_row.policy), &self.shared().registry.policies);
            let live = LiveSession::new(row.session.id, row.owner.clone(), sender, policy, policies);
            let live = Arc::new(live);
            if !self.readmit(&live) {
                continue;
            }
            let runtime = self.clone();
            match way {
                Way::Worker(worker, jail, guard) => {
                    if let Some(running) = &live_row.running {
                        self.shared().registry.execution_began(running.execution.id, &live);
                    }
                    let task = (inbox, taking_over.clone());
                    self.tasks().spawn(continue_session(runtime, live_row, live, task, worker, jail, guard));
                }
                Way::Replacement(continuation, copy) => {
                    self.tasks().spawn(replace_worker(runtime, live_row, live, inbox, (continuation, copy)));
                }
            }
        }
        drop(taking_over);
        if tokio::time::timeout(TAKE_OVER, taken_over.recv()).await.is_err() {
            tracing::warn!("adopted sessions whose workers have not replied yet are busy until then");
        }
    }

    /// The parameters of a session of an earlier supervisor, with its worktree and its rights of now.
    async fn spec_of_row(
        &self,
        ready: LiveSessionRow,
        live: &LiveSession,
    ) -> (SessionSpec, Worktree, Arc<EffectivePolicy>) {
        let shared = self.shared();
        let LiveSessionRow { row, policy, .. } = ready;
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
        (spec, worktree, rights)
    }

    async fn note_adoption(&self, live: &LiveSession) {
        let kind = SessionEventType::Adopted;
        let at = self.shared().store.now();
        let adopted = Write::SessionEvent { session: live.id, kind, at, detail: None };
        if let Err(error) = self.shared().store.for_owner(&live.owner).submit_lazy(adopted).await {
            tracing::warn!(session = %live.id, %error, "the adoption is not among the events of the session");
        }
    }
}

async fn continue_session(
    runtime: Runtime,
    mut ready: LiveSessionRow,
    live: Arc<LiveSession>,
    (inbox, taking_over): (mpsc::Receiver<Command>, TakingOver),
    worker: AdoptedWorker,
    jail: Spawner,
    guard: Option<GuardCopy>,
) {
    let (running, worker_seq) = (ready.running.take(), ready.row.worker_seq);
    let (spec, worktree, rights) = runtime.spec_of_row(ready, &live).await;
    runtime.note_adoption(&live).await;
    let running = running.map(|row| AdoptedExecution { row, policy: rights });
    let (handle, exited) = match worker {
        AdoptedWorker::Running(handle) => (Some(handle), None),
        AdoptedWorker::Exited(exit) => (None, Some(exit)),
    };
    let adopted = AdoptedSession { spec, worker_seq, running };
    let guard = guard.map(|(name, copy, jail)| (name, (copy, jail, runtime.share_of_adopted(&live))));
    let shared = (runtime.shared(), &live);
    let task = SessionTask::adopt(adopted, guard, shared, inbox, worktree, (handle, jail));
    task.run_adopted(exited, taking_over).await;
}

/// Continues a session whose worker was being replaced.
async fn replace_worker(
    runtime: Runtime,
    row: LiveSessionRow,
    live: Arc<LiveSession>,
    inbox: mpsc::Receiver<Command>,
    (continuation, copy): (Continuation, Option<(WorkerHandle, Spawner)>),
) {
    let (spec, worktree, _) = runtime.spec_of_row(row, &live).await;
    tracing::warn!(session = %live.id, "a session is restarted or rolled back, as the earlier daemon had begun");
    let shared = (runtime.shared(), &live);
    let copy = copy.map(|(handle, jail)| (handle, jail, runtime.share_of_adopted(&live)));
    let task = SessionTask::continue_replacement((spec, continuation), shared, inbox, worktree, copy);
    task.run().await;
}
