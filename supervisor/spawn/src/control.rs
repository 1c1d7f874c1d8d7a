//! The keeper's channel after the handshake: sends orders, receives acknowledgements and exits, and notifies the tasks that
//! wait for them.

use super::groups::OwnerGroup;
use super::oom::OomWatch;
use super::packets;
use super::process::{ReportedExit, exit_status};
use super::spawner::SpawnEvent;
use crate::reactor::WatchedFd;
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{FromKeeper, ToKeeper};
use vm_system_protocol::limits::{KEEPER_MESSAGE_BYTES, WRITE_MS};
use vm_system_protocol::reason::WorkerExitStatus;
use vm_system_protocol::since;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::socket::{self, Wait};

const SIGKILL: i32 = 9;

/// Locks a table; no code panics while holding one.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Our end of the keeper's channel.
#[derive(Debug)]
pub(super) struct Control {
    socket: WatchedFd,
    /// The protocol version that the keeper speaks.
    pub(super) protocol: u32,
    waiting: Mutex<Waiting>,
    /// Of workers without a group of their owner.
    oom: Arc<OomWatch>,
}

#[derive(Debug, Default)]
struct Waiting {
    kept: HashMap<SessionId, oneshot::Sender<()>>,
    /// Running workers by their pid in the jail.
    alive: HashMap<u32, Alive>,
    lost: bool,
}

#[derive(Debug)]
struct Alive {
    exit: watch::Sender<Option<ReportedExit>>,
    pidfd: Arc<PidFd>,
    oom: Arc<OomWatch>,
}

impl Control {
    pub(super) fn new(socket: WatchedFd, protocol: u32) -> Self {
        Self { socket, protocol, waiting: Mutex::default(), oom: Arc::new(OomWatch::begin()) }
    }

    pub(super) async fn send(&self, message: &ToKeeper, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = self.encoded(message)?;
        packets::send(&self.socket, &[&bytes], fds, Instant::now() + Duration::from_millis(WRITE_MS)).await
    }

    /// Encodes a message. One that an older keeper does not know is not sent to it.
    fn encoded(&self, message: &ToKeeper) -> io::Result<Vec<u8>> {
        since::check(message, self.protocol).map_err(io::Error::other)?;
        encode(message, KEEPER_MESSAGE_BYTES).map_err(io::Error::other)
    }

    /// Watches for a worker's exit from now on. `None`: the keeper is lost.
    pub(super) fn watch(
        &self,
        inner_pid: u32,
        pidfd: Arc<PidFd>,
        group: Option<&OwnerGroup>,
    ) -> Option<watch::Receiver<Option<ReportedExit>>> {
        // The call notes the counter of this moment, so that earlier kills are not this worker's; its result is of no interest.
        let oom = Arc::clone(group.and_then(OwnerGroup::oom).unwrap_or(&self.oom));
        let _ = oom.has_just_killed();
        let (exit, watcher) = watch::channel(None);
        let mut waiting = lock(&self.waiting);
        if waiting.lost {
            return None;
        }
        waiting.alive.insert(inner_pid, Alive { exit, pidfd, oom });
        Some(watcher)
    }

    /// Whether a running worker has this pid in the jail.
    pub(super) fn knows(&self, inner_pid: u32) -> bool {
        lock(&self.waiting).alive.contains_key(&inner_pid)
    }

    /// Resolves when the keeper has registered this session's worker; an error if the keeper is lost before.
    pub(super) fn when_kept(&self, session: SessionId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if !waiting.lost {
            waiting.kept.insert(session, sender);
        }
        receiver
    }

    pub(super) fn is_lost(&self) -> bool {
        lock(&self.waiting).lost
    }

    pub(super) fn forget(&self, session: SessionId) {
        let Ok(bytes) = self.encoded(&ToKeeper::Forget { session }) else { return };
        // A keeper with a full queue keeps the entry; the cost is two descriptors until it exits.
        let _ = socket::send(self.socket.get_ref(), &[&bytes], &[], Wait::No);
    }

    /// Orders the end of the jail; `false`: the keeper does not take the order.
    pub(super) fn order_shutdown(&self) -> bool {
        let Ok(bytes) = self.encoded(&ToKeeper::Shutdown) else { return false };
        match socket::send(self.socket.get_ref(), &[&bytes], &[], Wait::No) {
            Ok(()) => true,
            // It has exited.
            Err(error) => matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset),
        }
    }

    /// Reads until the keeper has exited; then notifies all waiting tasks.
    pub(super) async fn listen(&self, events: mpsc::Sender<SpawnEvent>) {
        loop {
            let message = packets::receive(&self.socket, |got, bytes| {
                (got.len > 0 && !got.truncated).then(|| decode::<FromKeeper>(bytes).ok()).flatten()
            });
            match message.await {
                Ok(Some(message)) => self.on_message(&message),
                // End of the channel or an invalid message: the keeper cannot be used any more.
                Ok(None) | Err(_) => break,
            }
        }
        self.lose();
        let _ = events.send(SpawnEvent::KeeperLost).await;
    }

    fn on_message(&self, message: &FromKeeper) {
        let mut waiting = lock(&self.waiting);
        match *message {
            FromKeeper::Kept { session } => {
                if let Some(kept) = waiting.kept.remove(&session) {
                    let _ = kept.send(());
                }
            }
            FromKeeper::Exited { inner_pid, wait_status, usage, .. } => {
                if let Some(alive) = waiting.alive.remove(&inner_pid) {
                    let exit = match exit_status(ExitStatus::from_wait_status(wait_status)) {
                        WorkerExitStatus::Signaled(SIGKILL) if alive.oom.has_just_killed() => {
                            WorkerExitStatus::OutOfMemory
                        }
                        exit => exit,
                    };
                    alive.exit.send_replace(Some(ReportedExit { exit, usage }));
                }
            }
            _ => {}
        }
    }

    fn lose(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.lost = true;
        waiting.kept.clear();
        for (_, alive) in waiting.alive.drain() {
            // In a pid namespace the kernel has killed the worker already.
            let _ = alive.pidfd.kill();
            alive.exit.send_replace(Some(ReportedExit { exit: WorkerExitStatus::KeeperLost, usage: None }));
        }
    }
}
