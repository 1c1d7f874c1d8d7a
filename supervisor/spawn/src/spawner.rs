//! One jail: a keeper, the zygote that forks, the reserve zygote, and their workers.

mod assemble;
mod assignment;

pub(super) use assemble::JailParts;

use super::address::KeeperAddress;
use super::build::JailBuild;
use super::channel::{WorkerReceiver, WorkerSender};
use super::config::{SandboxMode, SpawnConfig, WorkerLimits};
use super::control::{Control, lock};
use super::error::SpawnError;
use super::fork::{self, ForkUnderWay};
use super::groups::{JailGroups, OwnerGroup};
use super::keeper::{self, inspect_process};
use super::kind::{Library, LibrarySet, WorkerKind};
use super::kind_zygotes::{self, KindZygoteInfo, KindZygotes, PreparedZygote};
use super::notify::Orders;
use super::process::WorkerProcess;
use super::unassigned::{UnassignedWorker, channel, fork_from};
use super::worker_pool::{PoolKey, PrestartedWorker, WorkerPool};
use super::zygote::{self, EXITED, Zygote};
use crate::libraries::LibraryStore;
use crate::reactor::WatchedFd;
use crate::reactor::watch;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{LayerReport, ToKeeper};
use vm_system_protocol::limits::LIBRARY_HEAP_MB;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::seccomp::notify::Listener;
use vm_system_sandbox::{inspect, rlimit};

/// Capacity of the event channel; events beyond it are logged only.
const EVENTS: usize = 64;
/// Number of the zygote that the keeper started.
const FIRST_ZYGOTE: u32 = 0;
/// A keeper that was ordered to end is killed after this time.
pub const KEEPER_END: Duration = Duration::from_secs(2);
/// Zygotes that one start of a worker tries: that of its kind, the current one, the reserve.
const ATTEMPTS: u32 = 3;
/// A reserve zygote that exits before it is needed is replaced after this pause.
const RESERVE_PAUSE: Duration = Duration::from_millis(200);

/// An event that concerns a whole jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnEvent {
    /// The keeper exited, and every worker with it. Start another jail.
    KeeperLost,
    /// No zygote is left; running workers continue. Start another jail for new workers.
    ZygotesLost,
    /// A jailed process made a forbidden call. It waits in the call and is to be killed.
    ForbiddenCall {
        /// The process's pid on the host.
        pid: u32,
        /// The call's name.
        call: String,
    },
    /// A worker tried to fork without an order; it was refused.
    UnorderedFork {
        /// The process's pid on the host.
        pid: u32,
    },
}

/// A started worker that is kept by the keeper.
#[derive(Debug)]
pub struct WorkerHandle {
    pub sender: WorkerSender,
    pub receiver: WorkerReceiver,
    pub process: WorkerProcess,
}

/// A running jail. Cheap to clone; a task ends it when the last clone is dropped, unless it was left to another supervisor.
#[derive(Debug, Clone)]
pub struct Spawner(pub(super) Arc<RunningJail>);

#[derive(Debug)]
pub(super) struct RunningJail {
    pub(super) jail: Arc<Jail>,
    /// Dropped with the last clone, for which [`end_unused`] waits.
    _used: oneshot::Sender<()>,
}

impl RunningJail {
    pub(super) fn new(jail: Arc<Jail>, tasks: Vec<AbortHandle>) -> Self {
        let (used, unused) = oneshot::channel();
        tokio::spawn(end_unused(Arc::clone(&jail), unused, tasks));
        Self { jail, _used: used }
    }
}

/// Ends a jail that nobody uses any more. When the runtime ends before, nothing is killed: the keeper waits for the next supervisor.
async fn end_unused(jail: Arc<Jail>, unused: oneshot::Receiver<()>, tasks: Vec<AbortHandle>) {
    // Nothing is ever sent.
    let _ = unused.await;
    if !jail.left.load(Ordering::SeqCst) {
        // A stuck keeper would not see the order.
        let ordered = !jail.stuck.load(Ordering::Relaxed) && jail.control.order_shutdown();
        if !ordered {
            let _ = jail.pidfd.kill();
        }
        if let Some(address) = &jail.address {
            address.remove();
        }
    }
    for task in &tasks {
        task.abort();
    }
}

/// Shared state of a jail's tasks.
#[derive(Debug)]
pub(super) struct Jail {
    sandbox: SandboxMode,
    pub(super) pid: u32,
    pidfd: PidFd,
    layers: Vec<LayerReport>,
    /// The build that the jail's processes run.
    build: JailBuild,
    /// Where the keeper waits for another supervisor, if it does.
    address: Option<KeeperAddress>,
    /// The keeper waits for another supervisor instead of ending.
    left: Arc<AtomicBool>,
    /// The keeper did not acknowledge an order in time.
    pub(super) stuck: AtomicBool,
    pub(super) control: Arc<Control>,
    pub(super) orders: Orders,
    /// Forks of sessions that were ordered so far.
    pub(super) forks: AtomicU64,
    pub(super) zygotes: Mutex<Zygotes>,
    next_zygote: AtomicU32,
    /// Zygotes of further kinds.
    kind_zygotes: KindZygotes,
    /// Prestarted workers, if configured.
    pool: Option<Arc<WorkerPool>>,
    library_store: LibraryStore,
    pub(super) groups: JailGroups,
    pub(super) events: mpsc::Sender<SpawnEvent>,
}

#[derive(Debug)]
pub(super) struct Zygotes {
    pub(super) current: Option<Arc<Zygote>>,
    pub(super) reserve: Option<Arc<Zygote>>,
    /// The filter of all processes of the jail reports here; kept for the keeper.
    listener: Arc<Listener>,
}

impl Spawner {
    /// Starts a keeper and its first zygote, and inspects both from outside. Must be called within a tokio runtime.
    pub async fn start(config: SpawnConfig) -> Result<(Self, mpsc::Receiver<SpawnEvent>), SpawnError> {
        let groups = JailGroups::open(&config.cgroups, config.owner.as_deref()).await;
        let groups = groups.map_err(SpawnError::Cgroup)?;
        let started = keeper::start(&config, groups.of_keeper()).await?;
        let keeper = started.pidfd.try_clone().map_err(SpawnError::io("watch the keeper"))?;
        let jail = Self::assemble(&config, started, groups).await;
        if jail.is_err() {
            // An incomplete jail must not run until its grace ends.
            let _ = keeper.kill();
        }
        jail
    }

    async fn assemble(
        config: &SpawnConfig,
        started: keeper::Started,
        groups: JailGroups,
    ) -> Result<(Self, mpsc::Receiver<SpawnEvent>), SpawnError> {
        if config.sandbox == SandboxMode::Full && !inspect::verify_namespaces(started.pid)? {
            tracing::warn!("the keeper's namespaces cannot be seen in /proc; relying on its self-test");
        }
        let orders = Orders::default();
        let (zygote, listener) =
            zygote::take_in(started.zygote, FIRST_ZYGOTE, config.sandbox, orders.clone()).await?;
        // Checked here, not only at the first session.
        let pid = zygote.pids.here;
        rlimit::may_limit(pid).map_err(|error| SpawnError::Rlimit { pid, error })?;
        let listener = listener.ok_or(SpawnError::WorkerSilent("zygote sent no listener"))?;
        let zygote = Arc::new(zygote);
        let parts = JailParts {
            pid: started.pid,
            pidfd: started.pidfd,
            layers: started.layers,
            build: JailBuild { protocol: started.protocol, ..JailBuild::ours().clone() },
            address: started.address,
            control: started.control,
            listener,
            zygote: Some(Arc::clone(&zygote)),
            groups,
        };
        let (jail, events) = Jail::assemble(config, parts, orders);
        let mut tasks = jail.listen()?;
        tasks.push(tokio::spawn(Arc::clone(&jail).maintain_zygotes(config.reserve_zygote)).abort_handle());
        tasks.push(tokio::spawn(Arc::clone(&jail).maintain_kind_zygotes()).abort_handle());
        if let Some(pool) = &jail.pool {
            let making = Arc::clone(&jail).run_worker_pool(Arc::clone(pool));
            tasks.push(tokio::spawn(making).abort_handle());
        }
        // After the tasks that read the keeper's reports: from here on it reports this zygote's exit.
        Jail::keep_zygote(&jail, &zygote).await?;
        Ok((Self(Arc::new(RunningJail::new(jail, tasks))), events))
    }

    /// Starts a worker: forked by the zygote of its kind, identified by the kernel, inspected from outside, limited, and
    /// registered with the keeper. It has sent its hello and nothing else. Not cancel safe: a start that is dropped may
    /// leave an unknown worker until the jail ends.
    pub async fn spawn_worker(
        &self,
        session: SessionId,
        owner: &str,
        limits: &WorkerLimits,
        kind: &WorkerKind,
    ) -> Result<WorkerHandle, SpawnError> {
        let jail = &self.0.jail;
        let mut attempts = 1;
        loop {
            let spawned = jail.spawn_worker(session, owner, limits, kind).await;
            // The zygote exited or was stuck; its successor takes over.
            let may_succeed = match &spawned {
                Err(SpawnError::ZygoteFailed { what: EXITED, .. }) => attempts == 1,
                Err(SpawnError::NoZygote) => attempts < ATTEMPTS && jail.current_zygote().is_ok(),
                _ => false,
            };
            if !may_succeed {
                return spawned;
            }
            attempts += 1;
        }
    }

    /// Evaluates a library by itself, in a zygote that ends at once.
    pub async fn check_library(&self, library: Library) -> Result<(), SpawnError> {
        let kind = WorkerKind::session(LibrarySet::new(vec![library]));
        self.0.jail.start_kind_zygote(&kind).await.map(drop)
    }

    /// Whether the zygote of a kind runs.
    pub fn has_zygote(&self, kind: &WorkerKind) -> bool {
        kind.is_plain() || self.0.jail.kind_zygotes.present(kind).is_some()
    }

    /// Starts the zygote of a kind before the first worker is requested.
    pub async fn prepare_kind(&self, kind: &WorkerKind) -> Result<(), SpawnError> {
        self.0.jail.kind_zygotes.get(kind, || self.0.jail.start_kind_zygote(kind)).await.map(drop)
    }

    /// Permits a worker one fork: the child becomes this session's worker.
    pub fn fork_worker(
        &self,
        parent: &WorkerProcess,
        child: SessionId,
    ) -> Result<(ForkUnderWay, OwnedFd), SpawnError> {
        fork::begin(&self.0.jail, parent, child)
    }

    /// Has the keeper forget a worker that had exited when this jail was adopted.
    pub fn forget(&self, session: SessionId) {
        self.0.jail.control.forget(session);
    }

    /// Why no worker can be started at this moment, as far as it is known.
    pub fn problem(&self) -> Option<String> {
        self.0.jail.problem()
    }

    /// The build that the jail's processes run.
    pub fn build(&self) -> &JailBuild {
        &self.0.jail.build
    }

    /// The walls as reported by the keeper.
    pub fn layers(&self) -> &[LayerReport] {
        &self.0.jail.layers
    }

    /// The keeper's pid on the host.
    pub fn keeper_pid(&self) -> u32 {
        self.0.jail.pid
    }

    /// The zygotes' pids on the host, the one that forks first.
    pub fn zygote_pids(&self) -> Vec<u32> {
        let zygotes = lock(&self.0.jail.zygotes);
        [&zygotes.current, &zygotes.reserve].into_iter().flatten().map(|zygote| zygote.pids.here).collect()
    }

    /// All zygotes: the permanent ones, then those of further kinds, with libraries or with the durable engine.
    pub fn zygotes(&self) -> Vec<KindZygoteInfo> {
        let zygotes = lock(&self.0.jail.zygotes);
        let permanent = [&zygotes.current, &zygotes.reserve].into_iter().flatten();
        let info = |zygote: &Arc<Zygote>| KindZygoteInfo {
            kind: WorkerKind::plain(),
            pid: zygote.pids.here,
            forks: zygote.orders_given(),
        };
        permanent.map(info).chain(self.0.jail.kind_zygotes.infos()).collect()
    }

    /// Pids on the host of prestarted workers.
    pub fn prestarted_pids(&self) -> Vec<u32> {
        self.0.jail.pool.as_ref().map(|pool| pool.pids()).unwrap_or_default()
    }

    /// Closes the keeper's channel without ending the jail: its workers run on until another supervisor adopts them, or until the
    /// grace is over. Takes effect when the last clone is dropped.
    pub fn leave(&self) {
        self.0.jail.left.store(true, Ordering::SeqCst);
    }

    /// Ends the jail: sends the keeper a shutdown, waits until the deadline, then kills. Returns when all processes have exited.
    pub async fn shutdown(&self, deadline: Duration) {
        let jail = &self.0.jail;
        if let Some(pool) = &jail.pool {
            pool.close();
        }
        // Prestarted workers were ended above: the keeper does not know them, so its shutdown would leave them.
        let sent = jail.control.send(&ToKeeper::Shutdown, &[]).await;
        if sent.is_err() || timeout(deadline.min(KEEPER_END), jail.wait_for_exit()).await.is_err() {
            let _ = jail.pidfd.kill();
            jail.wait_for_exit().await;
        }
        if let Some(address) = &jail.address {
            address.remove();
        }
    }
}

const READABLE: tokio::io::Interest = tokio::io::Interest::READABLE;

/// Sets the limits of a worker that was inspected.
fn limit(worker: &UnassignedWorker, limits: &WorkerLimits, mapped_bytes: u64) -> Result<(), SpawnError> {
    let pid = worker.pids.here;
    let limited = rlimit::limit_memory(pid, limits.memory_bytes, mapped_bytes)
        .and_then(|()| limits.cpu.map_or(Ok(()), |cpu| rlimit::limit_cpu(pid, cpu)))
        // The limits were set by pid: this check makes sure that the process is still the same.
        .and_then(|()| worker.pidfd.signal(0));
    limited.map_err(|error| SpawnError::Rlimit { pid, error })
}

impl Jail {
    /// Resolves when the keeper has exited: with namespaces, only after every process of the jail.
    async fn wait_for_exit(&self) {
        let watched = self.pidfd.try_clone().and_then(|pidfd| watch(pidfd.into(), READABLE));
        match watched {
            Ok(pidfd) => drop(pidfd.readable().await.map(|_| ())),
            Err(error) => tracing::error!(%error, "cannot watch the keeper's end"),
        }
    }

    async fn spawn_worker(
        &self,
        session: SessionId,
        owner: &str,
        limits: &WorkerLimits,
        kind: &WorkerKind,
    ) -> Result<WorkerHandle, SpawnError> {
        let owner_of_group = self.groups.are_of_owners().then(|| owner.to_owned());
        let key = PoolKey { kind: kind.clone(), owner: owner_of_group };
        let prestarted = match &self.pool {
            Some(pool) => pool.take(&key).await,
            None => None,
        };
        // One that exits in this moment cannot be limited any more: then the session gets another one.
        let limited = prestarted.filter(|PrestartedWorker { worker, mapped_bytes, .. }| {
            limit(worker, limits, *mapped_bytes).inspect_err(|_| drop(worker.pidfd.kill())).is_ok()
        });
        let (ours, worker, group, is_inspected) =
            if let Some(PrestartedWorker { ours, worker, group, .. }) = limited {
                (ours, worker, group, true)
            } else {
                let (ours, worker) = self.fork_worker_of(kind).await?;
                let group = self.add_to_group(owner, &worker).await?;
                (ours, worker, group, false)
            };
        self.kind_zygotes.note_use(kind);
        let assignment = self.assign(session, &ours, &worker, group).await?;
        // While the keeper does its part.
        if !is_inspected {
            let limited = self.inspect_worker(&worker).and_then(|mapped| limit(&worker, limits, mapped));
            if let Err(error) = limited {
                assignment.give_up();
                return Err(error);
            }
        }
        let mut handle = assignment.finish(ours).await?;
        // So that the next request gets a prestarted worker.
        let successor = self.pool.as_ref().map(|pool| pool.successor(&key));
        handle.receiver.succeeded_by(successor);
        Ok(handle)
    }

    /// Has a new worker be in its owner's group; otherwise it is killed.
    async fn add_to_group(
        &self,
        owner: &str,
        worker: &UnassignedWorker,
    ) -> Result<Option<Arc<OwnerGroup>>, SpawnError> {
        self.groups.add(owner, &worker.pidfd).await.map_err(|error| {
            let _ = worker.pidfd.kill();
            SpawnError::Cgroup(error)
        })
    }

    /// Has a zygote of this kind fork a worker.
    async fn fork_worker_of(&self, kind: &WorkerKind) -> Result<(WatchedFd, UnassignedWorker), SpawnError> {
        if kind.is_plain() {
            return fork_from(self.current_zygote()?.as_ref()).await;
        }
        let zygote = self.kind_zygotes.get(kind, || self.start_kind_zygote(kind)).await?;
        // The exit of this zygote does not affect the jail.
        fork_from(&zygote).await.map_err(|error| match error {
            SpawnError::NoZygote => SpawnError::ZygoteFailed { kind: kind.to_string(), what: EXITED },
            error => error,
        })
    }

    /// Prestarts workers, one at a time, whenever one is due.
    async fn run_worker_pool(self: Arc<Self>, pool: Arc<WorkerPool>) {
        loop {
            let key = pool.due().await;
            let made = self.prestart_worker(&key).await;
            let made =
                made.inspect_err(|error| tracing::debug!(%error, "no worker of {} was prestarted", key.kind));
            pool.put(&key, made.ok());
        }
    }

    /// Does not start a zygote: only a request for a worker does.
    async fn prestart_worker(&self, key: &PoolKey) -> Result<PrestartedWorker, SpawnError> {
        let PoolKey { kind, owner } = key;
        let zygote = if kind.is_plain() {
            self.current_zygote()?
        } else {
            self.kind_zygotes.present(kind).ok_or(SpawnError::NoZygote)?
        };
        let (ours, worker) = fork_from(&zygote).await?;
        // Where the owner is not known yet, all workers of the jail are in one group.
        let group = self.add_to_group(owner.as_deref().unwrap_or_default(), &worker).await?;
        match self.inspect_worker(&worker) {
            Ok(mapped_bytes) => {
                Ok(PrestartedWorker { zygote: Arc::downgrade(&zygote), ours, worker, mapped_bytes, group })
            }
            Err(error) => {
                let _ = worker.pidfd.kill();
                Err(error)
            }
        }
    }

    /// Inspects a worker from outside; returns its virtual memory (bytes).
    pub(super) fn inspect_worker(&self, worker: &UnassignedWorker) -> Result<u64, SpawnError> {
        self.inspect_child(worker.pids.here)
    }

    /// Inspects a child of the keeper; returns its virtual memory (bytes).
    pub(super) fn inspect_child(&self, pid: u32) -> Result<u64, SpawnError> {
        let Some(status) = inspect_process(pid, self.sandbox)? else { return Ok(0) };
        // The parent of a process of the jail is the keeper.
        if status.ppid != self.pid {
            let what = format!("its parent is {}, the keeper is {}", status.ppid, self.pid);
            return Err(inspect::InspectError::NotJailed { pid, what }.into());
        }
        Ok(status.mapped_bytes)
    }

    fn current_zygote(&self) -> Result<Arc<Zygote>, SpawnError> {
        if self.control.is_lost() {
            return Err(SpawnError::KeeperLost);
        }
        let mut zygotes = lock(&self.zygotes);
        if zygotes.current.as_ref().is_none_or(|zygote| zygote.is_lost()) {
            zygotes.current = zygotes.reserve.take().filter(|zygote| !zygote.is_lost());
        }
        zygotes.current.clone().ok_or(SpawnError::NoZygote)
    }

    /// Has the keeper kill the zygote, and keep the listener, when another supervisor takes over.
    async fn keep_zygote(&self, zygote: &Zygote) -> Result<(), SpawnError> {
        let listener = Arc::clone(&lock(&self.zygotes).listener);
        let fds = [zygote.pidfd.as_fd(), listener.as_fd()];
        let keep = ToKeeper::KeepZygote { zygote: zygote.number, inner_pid: zygote.pids.inner };
        self.control.send(&keep, &fds).await.map_err(|_| SpawnError::KeeperLost)
    }

    /// Keeps a reserve zygote besides the one that forks, and waits for the exit of either, until none is left.
    async fn maintain_zygotes(self: Arc<Self>, with_reserve: bool) {
        while let Ok(current) = self.current_zygote() {
            let mut reserve = lock(&self.zygotes).reserve.clone();
            if with_reserve && reserve.is_none() {
                match self.start_reserve_zygote(&current).await {
                    Ok(raised) => reserve = Some(raised),
                    // The jail has ended meanwhile, which is reported elsewhere.
                    Err(SpawnError::NoZygote | SpawnError::KeeperLost) => {}
                    Err(error) => tracing::warn!(%error, "no zygote in reserve"),
                }
            }
            let Some(reserve) = reserve else {
                current.listen().await;
                continue;
            };
            tokio::select! {
                () = current.listen() => {}
                () = reserve.listen() => {
                    lock(&self.zygotes).reserve.take_if(|zygote| zygote.number == reserve.number);
                    // Avoids a busy loop if the reserve is killed repeatedly.
                    let _ = timeout(RESERVE_PAUSE, current.listen()).await;
                }
            }
        }
        if !self.control.is_lost() {
            let _ = self.events.send(SpawnEvent::ZygotesLost).await;
        }
    }

    async fn maintain_kind_zygotes(self: Arc<Self>) {
        loop {
            tokio::time::sleep(kind_zygotes::SWEEP).await;
            self.kind_zygotes.sweep(Instant::now());
            if let Some(pool) = &self.pool {
                pool.sweep(Instant::now());
            }
        }
    }

    /// Starts a zygote for workers of this kind.
    async fn start_kind_zygote(&self, kind: &WorkerKind) -> Result<PreparedZygote, SpawnError> {
        let sources = match kind {
            WorkerKind::Session(libraries, _) => libraries.sources(&self.library_store).await?,
            WorkerKind::Program => Vec::new(),
        };
        let died = || SpawnError::ZygoteFailed { kind: kind.to_string(), what: EXITED };
        let zygote = match self.fork_zygote(self.current_zygote()?.as_ref()).await {
            Err(SpawnError::WorkerSilent(_)) => return Err(died()),
            forked => forked?,
        };
        let prepared = async {
            // A library may never end; another supervisor could not.
            self.keep_zygote(&zygote).await?;
            let pid = zygote.pids.here;
            let mapped = inspect_process(pid, self.sandbox)?.map_or(0, |status| status.mapped_bytes);
            rlimit::limit_memory(pid, u64::from(LIBRARY_HEAP_MB) << 20, mapped)
                .map_err(|error| SpawnError::Rlimit { pid, error })?;
            match kind {
                WorkerKind::Session(libraries, modules) => {
                    if !libraries.is_empty() {
                        zygote.load_libraries(&sources).await?;
                    }
                    match modules {
                        Some(modules) => zygote.compile(modules, &died).await,
                        None => Ok(()),
                    }
                }
                WorkerKind::Program => zygote.prepare_programs().await,
            }
        };
        if let Err(error) = prepared.await {
            let has_exited = matches!(error, SpawnError::NoZygote) || !zygote.pidfd.is_alive();
            // The zygote may be in an endless loop.
            let _ = zygote.pidfd.kill();
            return Err(match error {
                SpawnError::Library(_) => error,
                _ if has_exited => died(),
                _ => error,
            });
        }
        tracing::info!(pid = zygote.pids.here, "a zygote of {kind}");
        Ok(PreparedZygote::new(Arc::new(zygote)))
    }

    /// Has a zygote fork another zygote.
    async fn fork_zygote(&self, parent: &Zygote) -> Result<Zygote, SpawnError> {
        let (ours, worker_end) = channel()?;
        let ordered = parent.order(worker_end, true).await?;
        let number = self.next_zygote.fetch_add(1, Ordering::Relaxed);
        let started = zygote::take_in(ours, number, self.sandbox, self.orders.clone());
        match ordered.unless_stuck(started).await? {
            Err(silent @ SpawnError::WorkerSilent(_)) => match ordered.why_not().await {
                SpawnError::WorkerSilent(_) => Err(silent),
                known => Err(known),
            },
            started => started.map(|(zygote, _)| zygote),
        }
    }

    async fn start_reserve_zygote(&self, parent: &Arc<Zygote>) -> Result<Arc<Zygote>, SpawnError> {
        let zygote = self.fork_zygote(parent).await?;
        self.keep_zygote(&zygote).await?;
        let zygote = Arc::new(zygote);
        lock(&self.zygotes).reserve = Some(Arc::clone(&zygote));
        Ok(zygote)
    }
}
