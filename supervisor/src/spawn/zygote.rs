//! A zygote as the supervisor sees it: it takes orders and has nothing to say but that one failed.

use super::config::SandboxMode;
use super::control::lock;
use super::error::SpawnError;
use super::keeper::{check_hello, look_at};
use super::notify::Orders;
use super::packets;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::limits::{HELLO_MS, WRITE_MS};
use vm_system_protocol::zygote::{FromZygote, ToZygote};
use vm_system_sandbox::pidfd::{PidFd, Pids};
use vm_system_sandbox::seccomp::notify::Listener;
use vm_system_sandbox::socket;

/// After the newborn's channel closed, the zygote says why within this time, or never.
const REASON_PATIENCE: Duration = Duration::from_millis(200);
/// An order fits easily (bytes).
const ORDER_BYTES: usize = 64;

/// A zygote that has said it is ready.
#[derive(Debug)]
pub(super) struct Zygote {
    pub(super) number: u32,
    pub(super) pids: Pids,
    pub(super) pidfd: PidFd,
    socket: AsyncFd<OwnedFd>,
    orders: Orders,
    next_order: AtomicU64,
    failures: Mutex<HashMap<u64, oneshot::Sender<i32>>>,
    lost: AtomicBool,
}

/// Takes a new zygote's hello and ready; the first one brings the listener.
pub(super) async fn welcome(
    socket: AsyncFd<OwnedFd>,
    number: u32,
    sandbox: SandboxMode,
    orders: Orders,
) -> Result<(Zygote, Option<Listener>), SpawnError> {
    let deadline = Instant::now() + Duration::from_millis(HELLO_MS);
    let silent = || SpawnError::WorkerSilent("zygote said nothing");
    let greeting = timeout_at(deadline, greet(&socket)).await.map_err(|_| silent())??;
    // From now on nobody else can speak here, and no descriptor is expected any more.
    socket::trust_senders(&socket).map_err(SpawnError::io("set up the zygote's channel"))?;
    socket::refuse_descriptors(&socket).map_err(SpawnError::io("set up the zygote's channel"))?;
    let pids = greeting.pidfd.pids().map_err(|_| SpawnError::WorkerSilent("zygote died"))?;
    look_at(pids.here, sandbox)?;
    let zygote = Zygote {
        number,
        pids,
        pidfd: greeting.pidfd,
        socket,
        orders,
        next_order: AtomicU64::new(1),
        failures: Mutex::default(),
        lost: AtomicBool::new(false),
    };
    Ok((zygote, greeting.listener))
}

struct Greeting {
    pidfd: PidFd,
    listener: Option<Listener>,
}

async fn greet(socket: &AsyncFd<OwnedFd>) -> Result<Greeting, SpawnError> {
    let read = || SpawnError::io("read the zygote's channel");
    packets::receive(socket, |_, bytes| check_hello("the zygote", bytes)).await.map_err(read())??;
    let ready = packets::receive(socket, |mut got, bytes| {
        let ready = decode::<FromZygote>(bytes) == Ok(FromZygote::Ready);
        (ready, got.sender.take(), got.fds.pop())
    });
    match ready.await.map_err(read())? {
        (true, Some(pidfd), listener) => Ok(Greeting { pidfd, listener: listener.map(Listener::from) }),
        _ => Err(SpawnError::WorkerSilent("zygote died or said something else than ready")),
    }
}

/// A fork that was ordered.
pub(super) struct Ordered<'a> {
    zygote: &'a Zygote,
    order: u64,
    failure: oneshot::Receiver<i32>,
}

impl Zygote {
    pub(super) fn socket(&self) -> &OwnedFd {
        self.socket.get_ref()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Notes that no order will ever be taken again; the next attempt finds the successor.
    fn is_no_more(&self) -> SpawnError {
        self.lost.store(true, Ordering::Release);
        SpawnError::NoZygote
    }

    /// Orders a fork; the newborn's end of its channel goes along.
    pub(super) async fn order(&self, newborns: OwnedFd, as_zygote: bool) -> Result<Ordered<'_>, SpawnError> {
        let order = self.next_order.fetch_add(1, Ordering::Relaxed);
        let (sender, failure) = oneshot::channel();
        lock(&self.failures).insert(order, sender);
        // From here on dropping `ordered` cleans up.
        let ordered = Ordered { zygote: self, order, failure };
        let bytes = encode(&ToZygote::Fork { order, as_zygote }, ORDER_BYTES)
            .map_err(|error| SpawnError::Fork(io::Error::other(error)))?;
        self.orders.add(self.pids.here);
        let deadline = Instant::now() + Duration::from_millis(WRITE_MS);
        let sent = packets::send(&self.socket, &[&bytes], &[newborns.as_fd()], deadline).await;
        if sent.is_err() {
            self.orders.take(self.pids.here);
        }
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => self.is_no_more(),
            _ => SpawnError::Fork(error),
        })?;
        Ok(ordered)
    }

    /// Reads until the zygote is gone.
    pub(super) async fn listen(&self) {
        loop {
            let message = packets::receive(&self.socket, |got, bytes| {
                (got.len > 0).then(|| decode::<FromZygote>(bytes))
            });
            match message.await {
                Ok(Some(Ok(FromZygote::ForkFailed { order, errno }))) => {
                    if let Some(failure) = lock(&self.failures).remove(&order) {
                        let _ = failure.send(errno);
                    }
                }
                // It is as hostile as a worker: whoever talks nonsense is not used any more.
                _ => break,
            }
        }
        self.lost.store(true, Ordering::Release);
        self.orders.forget(self.pids.here);
        // If it only talked nonsense it must not live on.
        let _ = self.pidfd.kill();
        lock(&self.failures).clear();
    }
}

impl Ordered<'_> {
    /// Why the newborn's channel closed without a hello.
    pub(super) async fn why_not(mut self) -> SpawnError {
        match timeout(REASON_PATIENCE, &mut self.failure).await {
            Ok(Ok(errno)) => SpawnError::Fork(io::Error::from_raw_os_error(errno)),
            Ok(Err(_)) => self.zygote.is_no_more(),
            Err(_) if !self.zygote.pidfd.is_alive() => self.zygote.is_no_more(),
            Err(_) => SpawnError::WorkerSilent("died"),
        }
    }
}

impl Drop for Ordered<'_> {
    fn drop(&mut self) {
        lock(&self.zygote.failures).remove(&self.order);
    }
}
