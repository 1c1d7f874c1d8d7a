//! One jail: a keeper, the zygote that forks and one in reserve, and the workers that they gave birth to.

use super::channel::{WorkerReceiver, WorkerSender, split};
use super::config::{SandboxMode, SpawnConfig, WorkerLimits};
use super::control::{Control, lock};
use super::error::SpawnError;
use super::fork::{self, ForkUnderWay};
use super::keeper::{self, check_hello, look_at};
use super::kind::WorkerKind;
use super::notify::{self, Orders};
use super::packets;
use super::process::WorkerProcess;
use super::ready::{Ready, Reserve};
use super::sets::{self, SetFacts, Sets, Taught};
use super::zygote::{self, DIED, Zygote};
use crate::libraries::Shelf;
use crate::reactor::watch;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{LayerReport, ToKeeper};
use vm_system_protocol::limits::{HELLO_MS, LIBRARY_HEAP_MB};
use vm_system_sandbox::pidfd::{PidFd, Pids};
use vm_system_sandbox::seccomp::notify::Listener;
use vm_system_sandbox::{inspect, rlimit, socket};

/// Events that wait for their reader; what is lost beyond it was reported before.
const EVENTS: usize = 64;
/// The zygote that the keeper started.
const FIRST_ZYGOTE: u32 = 0;
/// A reserve that died before it was needed is replaced after this pause.
const RESERVE_PAUSE: Duration = Duration::from_millis(200);

/// Something that concerns a whole jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnEvent {
    /// The keeper is dead and every worker with it. Start another jail.
    KeeperLost,
    /// No zygote is left; live workers go on. Start another jail beside this one for new workers.
    ZygotesLost,
    /// A jailed process made a call that its filter does not know. It waits in the call and is to be killed.
    ForbiddenCall {
        /// Its pid on the host.
        pid: u32,
        /// The call's name.
        call: String,
    },
    /// A worker tried to fork although nobody had ordered it; it was refused.
    UnorderedFork {
        /// Its pid on the host.
        pid: u32,
    },
}

/// A newborn worker.
#[derive(Debug)]
pub struct WorkerHandle {
    /// To it.
    pub sender: WorkerSender,
    /// From it.
    pub receiver: WorkerReceiver,
    /// Its process.
    pub process: WorkerProcess,
}

/// A jail that is up. Cheap to clone; dropping the last one closes the keeper's channel, and the grace begins.
#[derive(Debug, Clone)]
pub struct Spawner(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    jail: Arc<Jail>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// What the tasks of a jail share.
#[derive(Debug)]
pub(super) struct Jail {
    sandbox: SandboxMode,
    pub(super) pid: u32,
    pidfd: PidFd,
    layers: Vec<LayerReport>,
    pub(super) control: Arc<Control>,
    pub(super) orders: Orders,
    /// Forks of sessions that were ordered so far.
    pub(super) forks: AtomicU64,
    zygotes: Mutex<Zygotes>,
    next_zygote: AtomicU32,
    /// Zygotes with more in them.
    sets: Sets,
    /// Newborns without a job, if any are to be kept.
    ready: Option<Arc<Reserve>>,
    shelf: Shelf,
    pub(super) events: mpsc::Sender<SpawnEvent>,
}

#[derive(Debug)]
struct Zygotes {
    current: Option<Arc<Zygote>>,
    reserve: Option<Arc<Zygote>>,
    /// The adopted zygote's filter reports here; kept for the keeper.
    listener: Arc<Listener>,
}

impl Spawner {
    /// Starts a keeper and its first zygote, and looks at both from outside. Must be called within a tokio runtime.
    pub async fn start(config: SpawnConfig) -> Result<(Self, mpsc::Receiver<SpawnEvent>), SpawnError> {
        let started = keeper::start(&config).await?;
        let keeper = started.pidfd.try_clone().map_err(SpawnError::io("watch the keeper"))?;
        let jail = Self::assemble(&config, started).await;
        if jail.is_err() {
            // Half a jail must not wait for its grace to end.
            let _ = keeper.kill();
        }
        jail
    }

    async fn assemble(
        config: &SpawnConfig,
        started: keeper::Started,
    ) -> Result<(Self, mpsc::Receiver<SpawnEvent>), SpawnError> {
        if config.sandbox == SandboxMode::Full && !inspect::verify_namespaces(started.pid)? {
            tracing::warn!("the keeper's namespaces cannot be seen in /proc; its self-test stands in");
        }
        let orders = Orders::default();
        let (zygote, listener) =
            zygote::welcome(started.zygote, FIRST_ZYGOTE, config.sandbox, orders.clone()).await?;
        // Better now than at the first session.
        let pid = zygote.pids.here;
        rlimit::may_limit(pid).map_err(|error| SpawnError::Rlimit { pid, error })?;
        let listener = listener.ok_or(SpawnError::WorkerSilent("zygote brought no listener"))?;
        let forks = SpawnError::io("watch for forks");
        let own_listener =
            listener.try_clone().and_then(|own| Ok((own, watch(listener.try_clone()?.into(), READABLE)?)));
        let (own_listener, watched) = own_listener.map_err(forks)?;
        let (events, receiver) = mpsc::channel(EVENTS);
        let zygote = Arc::new(zygote);
        let zygotes =
            Zygotes { current: Some(Arc::clone(&zygote)), reserve: None, listener: Arc::new(listener) };
        let jail = Arc::new(Jail {
            sandbox: config.sandbox,
            pid: started.pid,
            pidfd: started.pidfd,
            layers: started.layers,
            control: Arc::new(Control::new(started.control)),
            orders: orders.clone(),
            zygotes: Mutex::new(zygotes),
            next_zygote: AtomicU32::new(FIRST_ZYGOTE + 1),
            sets: Sets::default(),
            ready: config.ready_workers.then(Arc::default),
            shelf: config.shelf.clone(),
            forks: AtomicU64::new(0),
            events: events.clone(),
        });
        let control = Arc::clone(&jail.control);
        let told = events.clone();
        let mut tasks = vec![
            tokio::spawn(async move { control.listen(told).await }).abort_handle(),
            tokio::spawn(notify::answer(own_listener, watched, orders, events)).abort_handle(),
            tokio::spawn(Arc::clone(&jail).look_after_zygotes(config.reserve_zygote)).abort_handle(),
            tokio::spawn(Arc::clone(&jail).look_after_sets()).abort_handle(),
        ];
        if let Some(ready) = &jail.ready {
            let making = Arc::clone(&jail).keep_ready(Arc::clone(ready));
            tasks.push(tokio::spawn(making).abort_handle());
        }
        Jail::keep_zygote(&jail, &zygote).await?;
        Ok((Self(Arc::new(Inner { jail, tasks })), receiver))
    }

    /// Gives birth to a worker: forked by the zygote, known by the kernel's word, looked at from outside, limited, and
    /// kept by the keeper. It has said hello and nothing else, and has in it what its kind is born with. Not cancel safe: a
    /// birth that is given up in the middle may leave a worker that nobody knows until the jail ends.
    pub async fn spawn_worker(
        &self,
        session: SessionId,
        limits: &WorkerLimits,
        kind: &WorkerKind,
    ) -> Result<WorkerHandle, SpawnError> {
        match self.0.jail.spawn_worker(session, limits, kind).await {
            // The zygote died at this moment; its successor takes over.
            Err(SpawnError::NoZygote | SpawnError::ZygoteFailed { what: DIED, .. }) => {
                self.0.jail.spawn_worker(session, limits, kind).await
            }
            result => result,
        }
    }

    /// Lets a worker fork once: the child is to be this session's worker.
    pub fn fork_worker(
        &self,
        parent: &WorkerProcess,
        child: SessionId,
    ) -> Result<(ForkUnderWay, OwnedFd), SpawnError> {
        fork::begin(&self.0.jail, parent, child)
    }

    /// The walls as the keeper found them.
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

    /// The zygotes that have more in them: libraries, or what programs share.
    pub fn further_zygotes(&self) -> Vec<SetFacts> {
        self.0.jail.sets.facts()
    }

    /// Pids on the host of newborns that wait for a job.
    pub fn ready_pids(&self) -> Vec<u32> {
        self.0.jail.ready.as_ref().map(|ready| ready.pids()).unwrap_or_default()
    }

    /// Ends the jail: tells the keeper, waits until the deadline, then kills. Returns when everything is dead.
    pub async fn shutdown(&self, deadline: Duration) {
        let jail = &self.0.jail;
        if let Some(ready) = &jail.ready {
            ready.close();
        }
        let told = jail.control.send(&ToKeeper::Shutdown, &[]).await;
        if told.is_err() || timeout(deadline, jail.is_dead()).await.is_err() {
            let _ = jail.pidfd.kill();
            jail.is_dead().await;
        }
    }
}

const READABLE: tokio::io::Interest = tokio::io::Interest::READABLE;

impl Jail {
    /// Resolves when the keeper is dead: with namespaces, only after everything in the jail is.
    async fn is_dead(&self) {
        let watched = self.pidfd.try_clone().and_then(|pidfd| watch(pidfd.into(), READABLE));
        match watched {
            Ok(pidfd) => drop(pidfd.readable().await.map(|_| ())),
            Err(error) => tracing::error!(%error, "cannot watch the keeper's end"),
        }
    }

    async fn spawn_worker(
        &self,
        session: SessionId,
        limits: &WorkerLimits,
        kind: &WorkerKind,
    ) -> Result<WorkerHandle, SpawnError> {
        let ready = match &self.ready {
            Some(ready) => ready.take(kind).await,
            None => None,
        };
        let (ours, newborn, looked) = if let Some(Ready { ours, newborn, mapped_bytes, .. }) = ready {
            (ours, newborn, Some(mapped_bytes))
        } else {
            let (ours, newborn) = self.bear(kind).await?;
            (ours, newborn, None)
        };
        self.sets.was_asked_for(kind);
        let mut result = self.settle(session, Some(limits), ours, &newborn, looked).await;
        if let Ok(handle) = &mut result {
            // Whoever comes next shall find one that is born already.
            let successor = self.ready.as_ref().map(|ready| ready.successor(kind));
            handle.receiver.succeeded_by(successor);
        } else {
            // It has no job and nobody knows it but the keeper: it must not stay.
            let _ = newborn.pidfd.kill();
            self.control.forget(session);
        }
        result
    }

    /// Has a zygote of this kind give birth to a worker.
    async fn bear(&self, kind: &WorkerKind) -> Result<(AsyncFd<OwnedFd>, Newborn), SpawnError> {
        if kind.is_plain() {
            return bear(self.current_zygote()?.as_ref()).await;
        }
        let zygote = self.sets.get(kind, || self.raise(kind)).await?;
        // That one is gone says nothing of the jail.
        bear(&zygote).await.map_err(|error| match error {
            SpawnError::NoZygote => SpawnError::ZygoteFailed { kind: kind.to_string(), what: DIED },
            error => error,
        })
    }

    /// Makes newborns without a job, one at a time, whenever one is due.
    async fn keep_ready(self: Arc<Self>, reserve: Arc<Reserve>) {
        loop {
            let kind = reserve.wanted().await;
            let made = self.make_ready(&kind).await;
            let made = made.inspect_err(|error| tracing::debug!(%error, "no worker of {kind} is kept ready"));
            reserve.put(&kind, made.ok());
        }
    }

    /// No zygote is made for it: that is for those who need a worker.
    async fn make_ready(&self, kind: &WorkerKind) -> Result<Ready, SpawnError> {
        let zygote = if kind.is_plain() {
            self.current_zygote()?
        } else {
            self.sets.present(kind).ok_or(SpawnError::NoZygote)?
        };
        let (ours, newborn) = bear(&zygote).await?;
        match self.look(&newborn) {
            Ok(mapped_bytes) => Ok(Ready { zygote: Arc::downgrade(&zygote), ours, newborn, mapped_bytes }),
            Err(error) => {
                let _ = newborn.pidfd.kill();
                Err(error)
            }
        }
    }

    /// Has the newborn kept, and meanwhile looks at it (unless somebody has, and found so much virtual memory) and limits
    /// it; without limits it has those that it was born with. Until all of that is done it gets no job.
    pub(super) async fn settle(
        &self,
        session: SessionId,
        limits: Option<&WorkerLimits>,
        ours: AsyncFd<OwnedFd>,
        newborn: &Newborn,
        looked: Option<u64>,
    ) -> Result<WorkerHandle, SpawnError> {
        let Pids { here: pid, inner: inner_pid } = newborn.pids;
        let lost = || SpawnError::KeeperLost;
        let death = self.control.watch(inner_pid, Arc::clone(&newborn.pidfd)).ok_or_else(lost)?;
        let kept = self.control.when_kept(session);
        let fds = [ours.as_fd(), newborn.pidfd.as_fd()];
        self.control.send(&ToKeeper::Keep { session, inner_pid }, &fds).await.map_err(|_| lost())?;
        let mapped = match looked {
            Some(mapped) => mapped,
            None => self.look(newborn)?,
        };
        if let Some(limits) = limits {
            let limited = rlimit::limit_memory(pid, limits.memory_bytes, mapped)
                .and_then(|()| limits.cpu.map_or(Ok(()), |cpu| rlimit::limit_cpu(pid, cpu)))
                // The limits were set by number: only now is it certain whose they are.
                .and_then(|()| newborn.pidfd.signal(0));
            limited.map_err(|error| SpawnError::Rlimit { pid, error })?;
        }
        let patience = Duration::from_millis(HELLO_MS);
        timeout(patience, kept).await.map_err(|_| lost())?.map_err(|_| lost())?;
        let process =
            WorkerProcess::new(session, pid, Arc::clone(&newborn.pidfd), death, Arc::clone(&self.control));
        let (sender, receiver) = split(ours);
        Ok(WorkerHandle { sender, receiver, process })
    }

    /// Looks at a newborn from outside; gives its virtual memory (bytes).
    fn look(&self, newborn: &Newborn) -> Result<u64, SpawnError> {
        let pid = newborn.pids.here;
        let Some(status) = look_at(pid, self.sandbox)? else { return Ok(0) };
        // A sender that is no fork of ours is not in the jail: its parent must be the keeper.
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

    /// Hands a zygote's descriptors to the keeper, for whoever comes after us.
    async fn keep_zygote(&self, zygote: &Zygote) -> Result<(), SpawnError> {
        let listener = Arc::clone(&lock(&self.zygotes).listener);
        let fds = [zygote.socket().as_fd(), zygote.pidfd.as_fd(), listener.as_fd()];
        let keep = ToKeeper::KeepZygote { zygote: zygote.number, inner_pid: zygote.pids.inner };
        self.control.send(&keep, &fds).await.map_err(|_| SpawnError::KeeperLost)
    }

    /// Keeps a reserve beside the zygote that forks, and follows the one whose turn it is until none is left.
    async fn look_after_zygotes(self: Arc<Self>, wants_reserve: bool) {
        while let Ok(current) = self.current_zygote() {
            let mut reserve = lock(&self.zygotes).reserve.clone();
            if wants_reserve && reserve.is_none() {
                match self.raise_reserve(&current).await {
                    Ok(raised) => reserve = Some(raised),
                    // The jail has ended meanwhile, which its end says by itself.
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
                    // Something keeps killing it, perhaps: no hurry.
                    let _ = timeout(RESERVE_PAUSE, current.listen()).await;
                }
            }
        }
        if !self.control.is_lost() {
            let _ = self.events.send(SpawnEvent::ZygotesLost).await;
        }
    }

    async fn look_after_sets(self: Arc<Self>) {
        loop {
            tokio::time::sleep(sets::SWEEP).await;
            self.sets.sweep(Instant::now());
            if let Some(ready) = &self.ready {
                ready.sweep(Instant::now());
            }
        }
    }

    /// Makes a zygote that has in it what workers of this kind are born with.
    async fn raise(&self, kind: &WorkerKind) -> Result<Taught, SpawnError> {
        let sources = match kind {
            WorkerKind::Session(libraries) => libraries.sources(&self.shelf).await?,
            WorkerKind::Program => Vec::new(),
        };
        let died = || SpawnError::ZygoteFailed { kind: kind.to_string(), what: DIED };
        let zygote = match self.fork_zygote(self.current_zygote()?.as_ref()).await {
            Err(SpawnError::WorkerSilent(_)) => return Err(died()),
            forked => forked?,
        };
        let prepared = async {
            let pid = zygote.pids.here;
            let mapped = look_at(pid, self.sandbox)?.map_or(0, |status| status.mapped_bytes);
            rlimit::limit_memory(pid, u64::from(LIBRARY_HEAP_MB) << 20, mapped)
                .map_err(|error| SpawnError::Rlimit { pid, error })?;
            match kind {
                WorkerKind::Session(_) => zygote.teach(&sources).await,
                WorkerKind::Program => zygote.prepare_programs().await,
            }
        };
        if let Err(error) = prepared.await {
            let is_dead = matches!(error, SpawnError::NoZygote) || !zygote.pidfd.is_alive();
            // It may be in a loop that nothing ends.
            let _ = zygote.pidfd.kill();
            return Err(match error {
                SpawnError::Library(_) => error,
                _ if is_dead => died(),
                _ => error,
            });
        }
        tracing::info!(pid = zygote.pids.here, "a zygote of {kind}");
        Ok(Taught::new(Arc::new(zygote)))
    }

    /// Has a zygote make another one of itself.
    async fn fork_zygote(&self, parent: &Zygote) -> Result<Zygote, SpawnError> {
        let (ours, newborns) = channel()?;
        let ordered = parent.order(newborns, true).await?;
        let number = self.next_zygote.fetch_add(1, Ordering::Relaxed);
        match zygote::welcome(ours, number, self.sandbox, self.orders.clone()).await {
            Err(silent @ SpawnError::WorkerSilent(_)) => match ordered.why_not().await {
                SpawnError::WorkerSilent(_) => Err(silent),
                known => Err(known),
            },
            welcomed => welcomed.map(|(zygote, _)| zygote),
        }
    }

    async fn raise_reserve(&self, parent: &Arc<Zygote>) -> Result<Arc<Zygote>, SpawnError> {
        let zygote = self.fork_zygote(parent).await?;
        self.keep_zygote(&zygote).await?;
        let zygote = Arc::new(zygote);
        lock(&self.zygotes).reserve = Some(Arc::clone(&zygote));
        Ok(zygote)
    }
}

/// A channel for a newborn: ours is registered and hears only what the kernel vouches for.
pub(super) fn channel() -> Result<(AsyncFd<OwnedFd>, OwnedFd), SpawnError> {
    let make = || -> std::io::Result<_> {
        let (ours, newborns) = socket::pair()?;
        socket::attest_senders(&ours)?;
        socket::refuse_descriptors(&ours)?;
        Ok((packets::register(ours)?, newborns))
    };
    make().map_err(SpawnError::io("make a worker's channel"))
}

/// A process that has said hello on its own channel.
pub(super) struct Newborn {
    pub(super) pidfd: Arc<PidFd>,
    pub(super) pids: Pids,
}

/// No newborn.
pub(super) enum Silence {
    /// Its end of the channel was closed.
    Closed,
    Other(SpawnError),
}

/// Has a zygote give birth to a worker.
async fn bear(zygote: &Zygote) -> Result<(AsyncFd<OwnedFd>, Newborn), SpawnError> {
    let (ours, newborns) = channel()?;
    let ordered = zygote.order(newborns, false).await?;
    match newborn(&ours).await {
        Ok(newborn) => Ok((ours, newborn)),
        Err(Silence::Closed) => Err(ordered.why_not().await),
        Err(Silence::Other(error)) => Err(error),
    }
}

pub(super) async fn newborn(ours: &AsyncFd<OwnedFd>) -> Result<Newborn, Silence> {
    let deadline = Instant::now() + Duration::from_millis(HELLO_MS);
    let hello = packets::receive(ours, |got, bytes| {
        if got.len == 0 {
            return Err(Silence::Closed);
        }
        let clean = !got.truncated && got.fds.is_empty();
        check_hello("the worker", if clean { bytes } else { b"?" }).map_err(Silence::Other)?;
        got.sender.ok_or(Silence::Other(SpawnError::WorkerSilent("was not attested")))
    });
    let hello = timeout_at(deadline, hello).await;
    let hello = hello.map_err(|_| Silence::Other(SpawnError::WorkerSilent("said nothing")))?;
    let pidfd = match hello {
        Ok(hello) => hello?,
        Err(error) => return Err(Silence::Other(SpawnError::Io { what: "read a worker's hello", error })),
    };
    let setup = || -> std::io::Result<_> {
        socket::trust_senders(ours)?;
        pidfd.pids()
    };
    let pids = setup().map_err(|_| Silence::Other(SpawnError::WorkerSilent("died")))?;
    Ok(Newborn { pidfd: Arc::new(pidfd), pids })
}
