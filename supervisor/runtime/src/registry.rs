//! The live sessions and their running executions. Locks are held for a look-up only, never across an await.

use super::task::Command;
use crate::shares::Share;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use vm_system_policy::{EffectivePolicy, Operator, Snapshot, effective};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{Execution, OnCrash};
use vm_system_record::{Owner, PolicySnapshot};

/// Most records that are returned instead of the stored ones. A store that fails for longer stops executions anyway.
const DEGRADED: usize = 10_000;

/// Forbidden calls that wait for the exit of their process.
const FORBIDDEN: usize = 64;

/// Facts about a live session that need no request to its owner task.
#[derive(Debug)]
pub(super) struct LiveSession {
    pub(super) id: SessionId,
    pub(super) owner: Owner,
    pub(super) commands: mpsc::Sender<Command>,
    /// The worker's pid on the host; 0 while there is none.
    pub(super) pid: AtomicU32,
    snapshot: Arc<PolicySnapshot>,
    cached: Mutex<Option<Cached>>,
}

/// The policy for one state of the template. The same `Arc` means the same state.
#[derive(Debug)]
struct Cached {
    template: Option<Arc<PolicySnapshot>>,
    policy: Arc<EffectivePolicy>,
}

impl LiveSession {
    pub(super) fn new(
        id: SessionId,
        owner: Owner,
        commands: mpsc::Sender<Command>,
        snapshot: Arc<PolicySnapshot>,
    ) -> Self {
        Self { id, owner, commands, pid: AtomicU32::new(0), snapshot, cached: Mutex::new(None) }
    }

    /// The entry of a session that is forked from this one: the same owner, the same rights.
    pub(super) fn for_fork(&self, id: SessionId, commands: mpsc::Sender<Command>) -> Self {
        Self::new(id, self.owner.clone(), commands, Arc::clone(&self.snapshot))
    }

    /// The processes that it has: with `on_crash: rollback` its guard copy is one.
    pub(super) fn processes(&self) -> usize {
        if self.snapshot.settings.runtime.on_crash == OnCrash::Rollback { 2 } else { 1 }
    }

    /// The session's copy of its template.
    pub(super) fn snapshot(&self) -> &Arc<PolicySnapshot> {
        &self.snapshot
    }

    /// The rights of the session's next execution.
    pub(super) fn policy(
        &self,
        template: Option<&Arc<PolicySnapshot>>,
        operator: &Operator,
    ) -> Arc<EffectivePolicy> {
        let mut cached = lock(&self.cached);
        if let Some(cached) = &*cached
            && same(cached.template.as_ref(), template)
        {
            return Arc::clone(&cached.policy);
        }
        let now = template.map(|template| snapshot(template));
        let policy = Arc::new(effective(&snapshot(&self.snapshot), now.as_ref(), operator));
        *cached = Some(Cached { template: template.cloned(), policy: Arc::clone(&policy) });
        policy
    }
}

fn same(a: Option<&Arc<PolicySnapshot>>, b: Option<&Arc<PolicySnapshot>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn snapshot(stored: &PolicySnapshot) -> Snapshot {
    Snapshot {
        settings: stored.settings.clone(),
        modules: stored.modules.clone(),
        capabilities: stored.capabilities.clone(),
    }
}

/// A live session with its shares of all sessions.
type Admitted = (Arc<LiveSession>, Vec<Share>);

/// All live sessions.
#[derive(Debug, Default)]
pub(super) struct Registry {
    /// Each with its shares of all sessions.
    sessions: Mutex<HashMap<SessionId, Admitted>>,
    executions: Mutex<HashMap<ExecutionId, Arc<LiveSession>>>,
    degraded: Mutex<HashMap<ExecutionId, Arc<Execution>>>,
    /// Forbidden calls of processes without a session, by pid, until their exit is reported.
    forbidden: Mutex<VecDeque<(u32, String)>>,
    stopping: AtomicBool,
    changed: watch::Sender<()>,
    pub(super) sessions_created: AtomicU64,
    pub(super) executions_started: AtomicU64,
}

/// Why a session was not admitted.
pub(super) enum AdmissionError {
    Duplicate,
    Stopping,
}

impl Registry {
    pub(super) fn insert(&self, live: Arc<LiveSession>, shares: Vec<Share>) -> Result<(), AdmissionError> {
        let mut sessions = lock(&self.sessions);
        // Under the lock, so that the stop of the runtime sees every admitted session.
        if self.stopping.load(Ordering::Acquire) {
            return Err(AdmissionError::Stopping);
        }
        if sessions.contains_key(&live.id) {
            return Err(AdmissionError::Duplicate);
        }
        sessions.insert(live.id, (live, shares));
        Ok(())
    }

    pub(super) fn remove(&self, id: SessionId) {
        if lock(&self.sessions).remove(&id).is_some() {
            self.has_changed();
        }
    }

    /// Changes when a session ends, a record is degraded or restored, or a jail is replaced.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Notifies the receivers of [`Self::changes`].
    pub(super) fn has_changed(&self) {
        self.changed.send_replace(());
    }

    pub(super) fn get(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        lock(&self.sessions).get(&id).map(|(live, _)| Arc::clone(live))
    }

    /// Sorted.
    pub(super) fn ids(&self) -> Vec<SessionId> {
        let mut ids: Vec<SessionId> = lock(&self.sessions).keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn by_pid(&self, pid: u32) -> Option<Arc<LiveSession>> {
        let sessions = lock(&self.sessions);
        let live = sessions.values().map(|(live, _)| live);
        live.into_iter().find(|live| live.pid.load(Ordering::Relaxed) == pid).cloned()
    }

    pub(super) fn stop(&self) -> Vec<Arc<LiveSession>> {
        let sessions = lock(&self.sessions);
        self.stopping.store(true, Ordering::Release);
        sessions.values().map(|(live, _)| Arc::clone(live)).collect()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn execution_began(&self, id: ExecutionId, live: &Arc<LiveSession>) {
        self.executions_started.fetch_add(1, Ordering::Relaxed);
        lock(&self.executions).insert(id, Arc::clone(live));
    }

    pub(super) fn execution_ended(&self, id: ExecutionId) {
        lock(&self.executions).remove(&id);
    }

    pub(super) fn session_of(&self, id: ExecutionId) -> Option<Arc<LiveSession>> {
        lock(&self.executions).get(&id).cloned()
    }

    pub(super) fn degraded(&self, id: ExecutionId) -> Option<Arc<Execution>> {
        lock(&self.degraded).get(&id).cloned()
    }

    pub(super) fn degrade(&self, record: Arc<Execution>) {
        let mut degraded = lock(&self.degraded);
        if degraded.len() < DEGRADED {
            degraded.insert(record.id, record);
        }
        drop(degraded);
        self.has_changed();
    }

    /// A process without a session made a forbidden call, and is to be killed.
    pub(super) fn note_forbidden(&self, pid: u32, call: String) {
        let mut forbidden = lock(&self.forbidden);
        if forbidden.len() >= FORBIDDEN {
            forbidden.pop_front();
        }
        forbidden.push_back((pid, call));
    }

    /// Takes the forbidden call that such a process made.
    pub(super) fn take_forbidden(&self, pid: u32) -> Option<String> {
        let mut forbidden = lock(&self.forbidden);
        let at = forbidden.iter().rposition(|(of, _)| *of == pid)?;
        forbidden.remove(at).map(|(_, call)| call)
    }

    pub(super) fn restore(&self, id: ExecutionId) {
        if lock(&self.degraded).remove(&id).is_some() {
            self.has_changed();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
