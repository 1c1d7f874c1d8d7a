//! Takes jails over that outlived their supervisor: keepers are found by their addresses, prove by the kernel's word that they are
//! jailed, and hand over their workers. No worker is started in an adopted jail; it ends with its last one.
//!
//! ```text
//!  we                    keeper
//!  connect  ───────────▶
//!           ◀─────────── hello
//!  Token    ───────────▶
//!           ◀─────────── Peer: from here on the grace has no end
//!  (the store is opened, its schema migrated, the rows are read)
//!  List     ───────────▶ kills the zygotes
//!           ◀─────────── Listener, Records
//! ```

use super::address::KeeperAddress;
use super::build::JailBuild;
use super::channel;
use super::config::{SandboxMode, SpawnConfig};
use super::error::SpawnError;
use super::groups::JailGroups;
use super::keeper::{check_hello, inspect_process};
use super::notify::Orders;
use super::packets;
use super::process::{WorkerProcess, exit_status};
use super::spawner::{Jail, JailParts, RunningJail, SpawnEvent, Spawner, WorkerHandle};
use crate::reactor::WatchedFd;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::hello::{Hello, UnsupportedProtocol};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{FromKeeper, ToKeeper, WorkerRecord};
use vm_system_protocol::limits::{HELLO_MS, KEEPER_MESSAGE_BYTES, WRITE_MS};
use vm_system_protocol::reason::WorkerExitStatus;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::seccomp::notify::Listener;
use vm_system_sandbox::{inspect, interrupt, socket};

/// Why a jail could not be adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The keeper's channel failed.
    #[error("its channel: {0}")]
    Io(#[from] io::Error),
    /// It sent something else, or nothing in time.
    #[error("it {0}")]
    Keeper(&'static str),
    /// It has another supervisor.
    #[error("it has another supervisor")]
    Busy,
    /// It speaks another protocol version, or is not behind its walls.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// How long a keeper may not know that its supervisor has exited (milliseconds).
const BUSY_MS: u64 = 1_000;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

enum Attempt {
    Connected(KeptJail),
    Busy,
    Failed,
    Unsupported(UnsupportedKeeper),
}

/// A keeper of a build that this one does not adopt.
struct UnsupportedKeeper {
    address: KeeperAddress,
    pidfd: PidFd,
    pid: u32,
    protocol: UnsupportedProtocol,
}

/// The jails of an earlier supervisor.
#[derive(Debug, Default)]
pub struct KeptJails {
    /// They wait.
    pub jails: Vec<KeptJail>,
    /// Keepers of too old a build, which were killed with their workers: why.
    pub ended: Vec<String>,
}

/// Why the jails of an earlier supervisor cannot be taken over now. No keeper of this build, or of the one before, was ended.
#[derive(Debug, thiserror::Error)]
pub enum KeptJailsError {
    /// This process, or the folder.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Their sessions would end.
    #[error("sessions of a newer build are waiting for it (keeper: process {pid}): {protocol}")]
    Newer { pid: u32, protocol: UnsupportedProtocol },
}

/// A keeper that accepted this supervisor. Dropping it closes the channel, and its grace begins again.
#[derive(Debug)]
pub struct KeptJail {
    address: KeeperAddress,
    control: WatchedFd,
    pid: u32,
    pidfd: PidFd,
    hello: Hello,
}

/// A jail that was taken over.
pub struct AdoptedJail {
    pub spawner: Spawner,
    pub events: mpsc::Receiver<SpawnEvent>,
    pub workers: Vec<(SessionId, AdoptedWorker)>,
}

/// A worker that its keeper kept.
pub enum AdoptedWorker {
    /// It runs.
    Running(WorkerHandle),
    /// It exited while no supervisor was connected.
    Exited(WorkerExitStatus),
}

/// Connects to all keepers of a folder, which then wait. A keeper that cannot be adopted is killed, with its workers; one that has
/// another supervisor is left alone; an address without a keeper is removed. An error of this process concerns no keeper: all wait on.
/// A keeper of a newer build is an error, too: its sessions are lost with it, and that build can still adopt them.
pub async fn kept_jails(folder: &Path, sandbox: SandboxMode) -> Result<KeptJails, KeptJailsError> {
    let (mut jails, mut unsupported) = (Vec::new(), Vec::new());
    let mut connecting = tokio::task::JoinSet::new();
    for address in KeeperAddress::all(folder)? {
        connecting.spawn(KeptJail::connect(address, sandbox));
    }
    while let Some(connected) = connecting.join_next().await {
        match connected.map_err(io::Error::other)?? {
            Some(Ok(jail)) => jails.push(jail),
            Some(Err(keeper)) => unsupported.push(keeper),
            None => {}
        }
    }
    if let Some(UnsupportedKeeper { pid, protocol, .. }) =
        unsupported.iter().find(|keeper| keeper.protocol.is_newer())
    {
        return Err(KeptJailsError::Newer { pid: *pid, protocol: *protocol });
    }
    let ended = unsupported.iter().map(UnsupportedKeeper::end).collect();
    Ok(KeptJails { jails, ended })
}

impl UnsupportedKeeper {
    /// Kills it with its workers; returns why.
    fn end(&self) -> String {
        let why = format!("a keeper was ended, because {}", self.protocol);
        tracing::error!(pid = self.pid, "{why}; its sessions end with it");
        let _ = self.pidfd.kill();
        self.address.remove();
        why
    }
}

/// A keeper that waits for this supervisor, or that cannot be adopted.
type Found = Result<KeptJail, UnsupportedKeeper>;

impl KeptJail {
    async fn connect(address: KeeperAddress, sandbox: SandboxMode) -> io::Result<Option<Found>> {
        let until = Instant::now() + Duration::from_millis(BUSY_MS);
        loop {
            match Self::try_connect(&address, sandbox).await? {
                // Perhaps it has not noticed the exit of its supervisor yet.
                Attempt::Busy if Instant::now() < until => tokio::time::sleep(BUSY_PAUSE).await,
                Attempt::Busy => {
                    tracing::debug!("a keeper has another supervisor and is left alone");
                    return Ok(None);
                }
                Attempt::Failed => return Ok(None),
                Attempt::Connected(jail) => return Ok(Some(Ok(jail))),
                Attempt::Unsupported(keeper) => return Ok(Some(Err(keeper))),
            }
        }
    }

    async fn try_connect(address: &KeeperAddress, sandbox: SandboxMode) -> io::Result<Attempt> {
        let connected =
            address.connect().and_then(|socket| Ok((socket::peer(&socket)?, packets::register(socket)?)));
        let (pidfd, control) = match connected {
            Ok(connected) => connected,
            Err(error) if is_shortage(&error) => return Err(error),
            Err(error) => {
                // Usual: the jail has ended.
                tracing::debug!(%error, "no keeper is at an address");
                address.remove();
                return Ok(Attempt::Failed);
            }
        };
        Ok(match Self::authenticate(address, &control, &pidfd, sandbox).await {
            Ok((pid, hello)) => {
                Attempt::Connected(Self { address: address.clone(), control, pid, pidfd, hello })
            }
            Err(AdoptError::Spawn(SpawnError::Unsupported { unsupported: protocol, .. })) => {
                let pid = pidfd.pid()?;
                Attempt::Unsupported(UnsupportedKeeper { address: address.clone(), pidfd, pid, protocol })
            }
            Err(AdoptError::Busy) => Attempt::Busy,
            Err(AdoptError::Io(error)) if is_shortage(&error) => return Err(error),
            Err(error) => {
                tracing::error!(%error, "a keeper cannot be adopted; it is killed with its workers");
                let _ = pidfd.kill();
                address.remove();
                Attempt::Failed
            }
        })
    }

    /// Returns the keeper's pid and its hello.
    async fn authenticate(
        address: &KeeperAddress,
        control: &WatchedFd,
        pidfd: &PidFd,
        sandbox: SandboxMode,
    ) -> Result<(u32, Hello), AdoptError> {
        let pid = pidfd.pid()?;
        inspect_process(pid, sandbox)?;
        if sandbox == SandboxMode::Full {
            inspect::verify_namespaces(pid).map_err(SpawnError::from)?;
        }
        let deadline = Instant::now() + Duration::from_millis(HELLO_MS);
        let late = |_| AdoptError::Keeper("did not answer in time");
        let hello = packets::receive(control, |got, bytes| match got.len {
            0 => Err(AdoptError::Busy),
            _ => Ok(check_hello("the keeper", bytes)?),
        });
        let hello = timeout_at(deadline, hello).await.map_err(late)???;
        send(control, &ToKeeper::Token { token: address.token()? }).await?;
        match timeout_at(deadline, receive(control)).await.map_err(late)?? {
            (FromKeeper::Peer { accepted: true }, _) => Ok((pid, hello)),
            _ => Err(AdoptError::Keeper("refused the token")),
        }
    }

    /// Takes the workers over whose names have an owner; the others are killed. After an error the whole jail is.
    pub async fn adopt(
        self,
        config: &SpawnConfig,
        owner_of: &(dyn Fn(SessionId) -> Option<String> + Sync),
    ) -> Result<AdoptedJail, AdoptError> {
        // Kept apart, because `take_over` consumes the jail: a half adopted one must not go on without a supervisor.
        let (pidfd, address) = (self.pidfd.try_clone()?, self.address.clone());
        let adopted = self.take_over(config, owner_of).await;
        if adopted.is_err() {
            let _ = pidfd.kill();
            address.remove();
        }
        adopted
    }

    async fn take_over(
        self,
        config: &SpawnConfig,
        owner_of: &(dyn Fn(SessionId) -> Option<String> + Sync),
    ) -> Result<AdoptedJail, AdoptError> {
        let Self { address, control, pid, pidfd, hello } = self;
        let kept = timeout_at(Instant::now() + Duration::from_millis(HELLO_MS), list(&control)).await;
        let (listener, records) =
            kept.map_err(|_| AdoptError::Keeper("did not list its workers in time"))??;
        // The keeper of one owner's jail is in that owner's group, and so is everything in it.
        let groups = JailGroups::open(&config.cgroups, None).await.map_err(SpawnError::Cgroup)?;
        let parts = JailParts {
            pid,
            pidfd,
            layers: Vec::new(),
            build: JailBuild::of_keeper(pid, hello),
            address: Some(address),
            control,
            listener,
            zygote: None,
            groups,
        };
        let config = SpawnConfig { prestart_workers: false, ..config.clone() };
        let (jail, events) = Jail::assemble(&config, parts, Orders::default());
        let mut workers = Vec::new();
        // Their exits are watched before the keeper's next messages are read.
        for kept in records {
            let session = kept.record.session;
            match owner_of(session) {
                Some(owner) => workers.push((session, kept.adopt(&jail, &owner).await?)),
                None => kept.end(&jail),
            }
        }
        // Last: an exit that is reported before its worker is watched would be lost.
        let tasks = jail.listen()?;
        Ok(AdoptedJail { spawner: Spawner(Arc::new(RunningJail::new(jail, tasks))), events, workers })
    }
}

/// Whether this process, or the machine, has no descriptor left: says nothing about a keeper.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(nix::libc::EMFILE | nix::libc::ENFILE))
}

/// A worker with its descriptors; none if it has exited.
struct KeptWorker {
    record: WorkerRecord,
    fds: Option<(OwnedFd, PidFd)>,
}

impl KeptWorker {
    async fn adopt(self, jail: &Jail, owner: &str) -> Result<AdoptedWorker, AdoptError> {
        let Self { record, fds } = self;
        let (channel, pidfd) = match (record.wait_status, fds) {
            (Some(status), _) => {
                return Ok(AdoptedWorker::Exited(exit_status(ExitStatus::from_wait_status(status))));
            }
            (None, Some(fds)) => fds,
            (None, None) => return Err(AdoptError::Keeper("kept descriptors back")),
        };
        // Exited, but not reaped yet: its exit follows.
        let Ok(pids) = pidfd.pids() else { return Ok(AdoptedWorker::Exited(WorkerExitStatus::Unknown)) };
        if pids.inner != record.inner_pid {
            return Err(AdoptError::Keeper("listed a worker with the descriptors of another process"));
        }
        jail.inspect_child(pids.here)?;
        let group = jail.groups.of_owner(owner).await.map_err(SpawnError::Cgroup)?;
        let pidfd = Arc::new(pidfd);
        let exit = jail
            .control
            .watch(record.inner_pid, Arc::clone(&pidfd), group.as_deref())
            .ok_or(SpawnError::KeeperLost)?;
        jail.orders.excuse(pids.here);
        // A notification that the previous supervisor had received and not answered is never reported again by itself.
        let _ = pidfd.signal(interrupt::REISSUE);
        let control = Arc::clone(&jail.control);
        let process = WorkerProcess::new(record.session, pids.here, pidfd, exit, control, group);
        // All processes of a jail are of one build.
        let protocol = jail.control.protocol;
        let (sender, receiver) = channel::split_adopted(packets::register(channel)?, protocol);
        Ok(AdoptedWorker::Running(WorkerHandle { sender, receiver, process }))
    }

    /// Nobody knows it any more.
    fn end(self, jail: &Jail) {
        if let Some((_, pidfd)) = &self.fds {
            let _ = pidfd.kill();
        }
        jail.control.forget(self.record.session);
    }
}

async fn list(control: &WatchedFd) -> Result<(Listener, Vec<KeptWorker>), AdoptError> {
    send(control, &ToKeeper::List).await?;
    let mut listener = None;
    let mut kept = Vec::new();
    loop {
        match receive(control).await? {
            (FromKeeper::Listener, mut fds) => listener = fds.pop().map(Listener::from),
            (FromKeeper::Records { records, last }, fds) => {
                let mut fds = fds.into_iter();
                for record in records {
                    let mut both = || Some((fds.next()?, PidFd::from(fds.next()?)));
                    let fds = if record.wait_status.is_none() { both() } else { None };
                    kept.push(KeptWorker { record, fds });
                }
                if last {
                    let listener = listener.ok_or(AdoptError::Keeper("has no listener"))?;
                    return Ok((listener, kept));
                }
            }
            // It is in the records that follow.
            (FromKeeper::Exited { .. } | FromKeeper::Kept { .. }, _) => {}
            _ => return Err(AdoptError::Keeper("sent another message than its list")),
        }
    }
}

async fn send(control: &WatchedFd, message: &ToKeeper) -> io::Result<()> {
    let bytes = encode(message, KEEPER_MESSAGE_BYTES).map_err(io::Error::other)?;
    packets::send(control, &[&bytes], &[], Instant::now() + Duration::from_millis(WRITE_MS)).await
}

async fn receive(control: &WatchedFd) -> Result<(FromKeeper, Vec<OwnedFd>), AdoptError> {
    let received = packets::receive(control, |got, bytes| {
        if got.len == 0 || got.truncated {
            return Err(AdoptError::Keeper("closed its channel"));
        }
        let message =
            decode::<FromKeeper>(bytes).map_err(|_| AdoptError::Keeper("sent an invalid message"))?;
        Ok((message, got.fds))
    });
    received.await?
}
