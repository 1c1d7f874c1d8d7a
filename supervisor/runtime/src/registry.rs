//! The live sessions and their running executions. Locks are held for a look-up only, never across an await.

use super::command::Command;
use crate::shares::Share;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
    /// The session's worker is stopped until a request needs it.
    pub(super) suspended: AtomicBool,
    /// The number of the last caller.
    callers: AtomicU64,
    snapshot: Arc<PolicySnapshot>,
    cached: Mutex<Option<Cached>>,
    policies: Arc<SharedPolicies>,
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
        policies: &Arc<SharedPolicies>,
    ) -> Self {
        let (pid, suspended, callers) = (AtomicU32::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let (cached, policies) = (Mutex::new(None), Arc::clone(policies));
        Self { id, owner, commands, pid, suspended, callers, snapshot, cached, policies }
    }

    /// The entry of a session that is forked from this one: the same owner, the same rights.
    pub(super) fn for_fork(&self, id: SessionId, commands: mpsc::Sender<Command>) -> Self {
        Self::new(id, self.owner.clone(), commands, Arc::clone(&self.snapshot), &self.policies)
    }

    /// A number that no other caller of the session has.
    pub(super) fn next_caller(&self) -> u64 {
        self.callers.fetch_add(1, Ordering::Relaxed)
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
        let policy = self.policies.policy_of(&self.snapshot, template, operator);
        *cached = Some(Cached { template: template.cloned(), policy: Arc::clone(&policy) });
        policy
    }
}

/// The rights of all sessions: those with the same snapshot and the same template have one copy, however many they are. A template
/// may be large, and its sessions many.
#[derive(Debug, Default)]
pub(super) struct SharedPolicies(Mutex<Known>);

/// The identity of a policy's parts: the addresses of a snapshot and of a template's.
type Made = (usize, usize);

#[derive(Debug, Default)]
struct Known {
    policies: HashMap<Made, SharedPolicy>,
    /// How many were in use when the others were last removed.
    used: usize,
}

/// An address is used again once its value is gone: the entry is valid as long as its values are there.
#[derive(Debug)]
struct SharedPolicy {
    snapshot: Weak<PolicySnapshot>,
    template: Option<Weak<PolicySnapshot>>,
    policy: Weak<EffectivePolicy>,
}

impl SharedPolicy {
    fn policy_of(
        &self,
        wanted: &Arc<PolicySnapshot>,
        template: Option<&Arc<PolicySnapshot>>,
    ) -> Option<Arc<EffectivePolicy>> {
        let is = |known: &Weak<PolicySnapshot>, wanted: &Arc<PolicySnapshot>| {
            known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, wanted))
        };
        let same_template = match (&self.template, template) {
            (Some(known), Some(wanted)) => is(known, wanted),
            (None, None) => true,
            _ => false,
        };
        if is(&self.snapshot, wanted) && same_template { self.policy.upgrade() } else { None }
    }
}

impl SharedPolicies {
    fn policy_of(
        &self,
        of_session: &Arc<PolicySnapshot>,
        template: Option<&Arc<PolicySnapshot>>,
        operator: &Operator,
    ) -> Arc<EffectivePolicy> {
        let address = |snapshot: &Arc<PolicySnapshot>| Arc::as_ptr(snapshot) as usize;
        let made = (address(of_session), template.map_or(0, address));
        if let Some(policy) =
            lock(&self.0).policies.get(&made).and_then(|known| known.policy_of(of_session, template))
        {
            return policy;
        }
        let now = template.map(|template| snapshot(template));
        let policy = Arc::new(effective(&snapshot(of_session), now.as_ref(), operator));
        let mut known = lock(&self.0);
        if known.policies.len() > 2 * known.used + 16 {
            known.policies.retain(|_, policy| policy.policy.strong_count() > 0);
            known.used = known.policies.len();
        }
        let shared = SharedPolicy {
            snapshot: Arc::downgrade(of_session),
            template: template.map(Arc::downgrade),
            policy: Arc::downgrade(&policy),
        };
        known.policies.insert(made, shared);
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
    pub(super) policies: Arc<SharedPolicies>,
    stopping: AtomicBool,
    changed: watch::Sender<()>,
    counts: Mutex<Counts>,
}

/// The numbers of what was begun since the start, of all owners and of each.
#[derive(Debug, Default)]
struct Counts {
    all: OwnerCounts,
    owners: HashMap<Owner, OwnerCounts>,
}

/// The numbers of what was begun since the start, without that of programs.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OwnerCounts {
    pub(super) sessions_created: u64,
    pub(super) executions_started: u64,
}

/// Owners that are counted one by one; those after them have no figures of their own.
const COUNTED_OWNERS: usize = 10_000;

impl Counts {
    fn add(&mut self, owner: &Owner, begun: impl Fn(&mut OwnerCounts)) {
        begun(&mut self.all);
        if self.owners.len() < COUNTED_OWNERS || self.owners.contains_key(owner) {
            begun(self.owners.entry(owner.clone()).or_default());
        }
    }
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

    pub(super) fn live(&self) -> Vec<Arc<LiveSession>> {
        lock(&self.sessions).values().map(|(live, _)| Arc::clone(live)).collect()
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
        if lock(&self.executions).insert(id, Arc::clone(live)).is_none() {
            lock(&self.counts).add(&live.owner, |counts| counts.executions_started += 1);
        }
    }

    pub(super) fn session_created(&self, owner: &Owner) {
        lock(&self.counts).add(owner, |counts| counts.sessions_created += 1);
    }

    /// The counts of one owner, or of all.
    pub(super) fn counts_of(&self, owner: Option<&Owner>) -> OwnerCounts {
        let counts = lock(&self.counts);
        owner.map_or(counts.all, |owner| counts.owners.get(owner).copied().unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::SharedPolicies;
    use std::sync::Arc;
    use vm_system_policy::Operator;
    use vm_system_protocol::model::{Engine, Settings};
    use vm_system_record::PolicySnapshot;

    fn template() -> Arc<PolicySnapshot> {
        Arc::new(PolicySnapshot {
            engine: Engine::Quickjs,
            settings: Settings::default(),
            modules: Vec::new(),
            libraries: Vec::new(),
            capabilities: Vec::new(),
            startup_files: Vec::new(),
        })
    }

    #[test]
    fn sessions_of_a_template_share_one_policy_and_those_of_others_do_not() {
        let (policies, operator) = (SharedPolicies::default(), Operator::default());
        let (of_session, now, later) = (template(), template(), template());
        let first = policies.policy_of(&of_session, Some(&now), &operator);
        assert!(Arc::ptr_eq(&first, &policies.policy_of(&of_session, Some(&now), &operator)));
        for other in [
            policies.policy_of(&of_session, None, &operator),
            policies.policy_of(&of_session, Some(&later), &operator),
            policies.policy_of(&later, Some(&now), &operator),
        ] {
            assert!(!Arc::ptr_eq(&first, &other));
        }
        drop(first);
        // Nothing is kept that nobody uses.
        let used: Vec<_> =
            (0..100).map(|_| Arc::downgrade(&policies.policy_of(&template(), None, &operator))).collect();
        assert!(used.iter().all(|policy| policy.strong_count() == 0));
        assert!(super::lock(&policies.0).policies.len() < 100);
    }
}
