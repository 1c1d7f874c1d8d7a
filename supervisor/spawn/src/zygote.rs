//! The supervisor's side of a zygote: sends it fork orders, and receives only reports of failures.

use super::config::SandboxMode;
use super::control::lock;
use super::error::{LibraryError, SpawnError};
use super::keeper::{check_hello, inspect_process};
use super::kind::{Library, ModuleSet, WorkerKind};
use super::notify::Orders;
use super::packets;
use crate::reactor::WatchedFd;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::limits::{
    FORK_ORDER_MS, HELLO_MS, LIBRARY_SET_MS, MODULE_SET_MS, PACKET_BYTES, WRITE_MS, ZYGOTE_MESSAGE_BYTES,
};
use vm_system_protocol::zygote::{FromZygote, ToZygote};
use vm_system_sandbox::pidfd::{PidFd, Pids};
use vm_system_sandbox::seccomp::notify::Listener;
use vm_system_sandbox::{rlimit, socket};

/// The text for a zygote that exited; the next request starts another one.
pub(super) const EXITED: &str = "exited";
/// Longest wait for the zygote's report after the worker's channel closed.
const REASON_TIMEOUT: Duration = Duration::from_millis(200);

/// A zygote that has reported that it is ready.
#[derive(Debug)]
pub(super) struct Zygote {
    pub(super) number: u32,
    pub(super) pids: Pids,
    pub(super) pidfd: PidFd,
    socket: WatchedFd,
    orders: Orders,
    next_order: AtomicU64,
    /// Orders under way, with the time at which each was given.
    failures: Mutex<HashMap<u64, (Instant, oneshot::Sender<i32>)>>,
    lost: AtomicBool,
}

/// Receives a new zygote's hello and ready; the first zygote sends the listener.
pub(super) async fn take_in(
    socket: WatchedFd,
    number: u32,
    sandbox: SandboxMode,
    orders: Orders,
) -> Result<(Zygote, Option<Listener>), SpawnError> {
    let deadline = Instant::now() + Duration::from_millis(HELLO_MS);
    let silent = || SpawnError::WorkerSilent("zygote sent nothing");
    let handshake = timeout_at(deadline, receive_handshake(&socket)).await.map_err(|_| silent())??;
    // From now on only this process can send here, and no descriptor is expected any more.
    socket::trust_senders(&socket).map_err(SpawnError::io("set up the zygote's channel"))?;
    socket::refuse_descriptors(&socket).map_err(SpawnError::io("set up the zygote's channel"))?;
    let pids = handshake.pidfd.pids().map_err(|_| SpawnError::WorkerSilent("zygote exited"))?;
    inspect_process(pids.here, sandbox)?;
    if handshake.listener.is_some() {
        // Further zygotes are forked from this one.
        rlimit::worker_descriptors(pids.here)
            // The limit was set by pid: this check makes sure that the process is still the same.
            .and_then(|()| handshake.pidfd.signal(0))
            .map_err(|error| SpawnError::Rlimit { pid: pids.here, error })?;
    }
    let zygote = Zygote {
        number,
        pids,
        pidfd: handshake.pidfd,
        socket,
        orders,
        next_order: AtomicU64::new(1),
        failures: Mutex::default(),
        lost: AtomicBool::new(false),
    };
    Ok((zygote, handshake.listener))
}

struct Handshake {
    pidfd: PidFd,
    listener: Option<Listener>,
}

async fn receive_handshake(socket: &WatchedFd) -> Result<Handshake, SpawnError> {
    let read = || SpawnError::io("read the zygote's channel");
    let hello =
        packets::receive(socket, |got, bytes| (got.len > 0).then(|| check_hello("the zygote", bytes)));
    hello.await.map_err(read())?.ok_or(SpawnError::WorkerSilent("zygote exited"))??;
    let ready = packets::receive(socket, |mut got, bytes| {
        let ready = decode::<FromZygote>(bytes) == Ok(FromZygote::Ready);
        (ready, got.sender.take(), got.fds.pop())
    });
    match ready.await.map_err(read())? {
        (true, Some(pidfd), listener) => Ok(Handshake { pidfd, listener: listener.map(Listener::from) }),
        _ => Err(SpawnError::WorkerSilent("zygote exited or sent another message than ready")),
    }
}

/// An ordered fork.
pub(super) struct Ordered<'a> {
    zygote: &'a Zygote,
    order: u64,
    failure: oneshot::Receiver<i32>,
}

impl Zygote {
    /// Forks that were ordered so far.
    pub(super) fn orders_given(&self) -> u64 {
        self.next_order.load(Ordering::Relaxed) - 1
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Marks the zygote as lost: it gets no more orders; the next attempt uses its successor.
    fn mark_lost(&self) -> SpawnError {
        self.lost.store(true, Ordering::Release);
        SpawnError::NoZygote
    }

    /// How long the oldest order has been waiting, if the zygote has not begun with it.
    pub(super) fn overdue(&self) -> Option<Duration> {
        let oldest = lock(&self.failures).values().map(|(since, _)| *since).min()?;
        self.has_open_orders().then(|| oldest.elapsed())
    }

    /// Whether a fork was ordered that its filter has not reported yet.
    fn has_open_orders(&self) -> bool {
        self.orders.are_open(self.pids.here)
    }

    /// It is alive and does nothing: as good as exited.
    fn end_stuck(&self) -> SpawnError {
        tracing::warn!(pid = self.pids.here, "a zygote did not begin with a fork in time and is killed");
        let _ = self.pidfd.kill();
        self.mark_lost()
    }

    /// The error for a packet that could not be sent.
    fn unless_exited(&self, error: io::Error, otherwise: impl FnOnce(io::Error) -> SpawnError) -> SpawnError {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => self.mark_lost(),
            _ => otherwise(error),
        }
    }

    /// Orders a fork; the worker's end of its channel is sent along.
    pub(super) async fn order(
        &self,
        worker_end: OwnedFd,
        as_zygote: bool,
    ) -> Result<Ordered<'_>, SpawnError> {
        let order = self.next_order.fetch_add(1, Ordering::Relaxed);
        let (sender, failure) = oneshot::channel();
        lock(&self.failures).insert(order, (Instant::now(), sender));
        // From here on dropping `ordered` removes the order.
        let ordered = Ordered { zygote: self, order, failure };
        let bytes = encode(&ToZygote::Fork { order, as_zygote }, ZYGOTE_MESSAGE_BYTES)
            .map_err(|error| SpawnError::Fork(io::Error::other(error)))?;
        // Before the order is sent: the zygote's clone may be reported before `send` returns.
        self.orders.add(self.pids.here);
        let deadline = Instant::now() + Duration::from_millis(WRITE_MS);
        let sent = packets::send(&self.socket, &[&bytes], &[worker_end.as_fd()], deadline).await;
        if sent.is_err() {
            self.orders.take(self.pids.here);
        }
        sent.map_err(|error| self.unless_exited(error, SpawnError::Fork))?;
        Ok(ordered)
    }

    /// Sends a new zygote its libraries and waits until they are evaluated. To be called before [`listen`](Self::listen).
    pub(super) async fn load_libraries(&self, libraries: &[(Library, String)]) -> Result<(), SpawnError> {
        let write = Instant::now() + Duration::from_millis(WRITE_MS);
        for (library, source) in libraries {
            let Library { name, id, global, .. } = library.clone();
            let source_bytes = source.len() as u64;
            self.send_order(&ToZygote::Library { name, id, global, source_bytes }, write).await?;
            self.send_source(source, write).await?;
        }
        self.send_order(&ToZygote::Evaluate, write).await?;
        let failed = |message: &str| {
            let names: Vec<&str> = libraries.iter().map(|(library, _)| library.name.as_str()).collect();
            LibraryError::Failed { name: names.join(", "), message: message.to_owned() }
        };
        match self.reply(LIBRARY_SET_MS).await {
            Ok(Some(FromZygote::Loaded)) => Ok(()),
            Ok(Some(FromZygote::LibraryFailed { name, message })) => {
                // As untrusted as a worker: name and length of its message are arbitrary.
                let known = libraries.iter().find(|(library, _)| library.name == name);
                let name = known
                    .map_or_else(|| failed("").library().to_owned(), |(library, _)| library.name.clone());
                Err(LibraryError::Failed { name, message }.into())
            }
            Ok(_) => Err(failed("its process exited while it was evaluated").into()),
            Err(_) => Err(failed("it did not end by itself and was killed").into()),
        }
    }

    /// Sends a new zygote its modules and waits until they are compiled. To be called before [`listen`](Self::listen).
    pub(super) async fn compile(
        &self,
        modules: &ModuleSet,
        failed: impl Fn() -> SpawnError,
    ) -> Result<(), SpawnError> {
        let write = Instant::now() + Duration::from_millis(WRITE_MS);
        for (path, source) in modules.texts() {
            let source_bytes = source.len() as u64;
            self.send_order(&ToZygote::Module { path: path.clone(), source_bytes }, write).await?;
            self.send_source(source, write).await?;
        }
        self.send_order(&ToZygote::Compile, write).await?;
        match self.reply(MODULE_SET_MS).await {
            Ok(Some(FromZygote::Loaded)) => Ok(()),
            _ => Err(failed()),
        }
    }

    async fn send_source(&self, source: &str, deadline: Instant) -> Result<(), SpawnError> {
        let failed = |error| SpawnError::Io { what: "send a zygote its sources", error };
        for piece in source.as_bytes().chunks(PACKET_BYTES) {
            let sent = packets::send(&self.socket, &[piece], &[], deadline).await;
            sent.map_err(|error| self.unless_exited(error, failed))?;
        }
        Ok(())
    }

    /// Has a new zygote build the realm that all durable programs share, and waits for it. To be called before
    /// [`listen`](Self::listen).
    pub(super) async fn prepare_programs(&self) -> Result<(), SpawnError> {
        let write = Instant::now() + Duration::from_millis(WRITE_MS);
        self.send_order(&ToZygote::PreparePrograms, write).await?;
        let failed = |what| SpawnError::ZygoteFailed { kind: WorkerKind::Program.to_string(), what };
        match self.reply(HELLO_MS).await {
            Ok(Some(FromZygote::Loaded)) => Ok(()),
            Ok(_) => Err(failed(EXITED)),
            Err(_) => Err(failed("was not prepared in time and was killed")),
        }
    }

    /// The zygote's message within this time (milliseconds); `None`: an invalid message, or it has exited.
    async fn reply(&self, timeout_ms: u64) -> Result<Option<FromZygote>, Elapsed> {
        let reply = packets::receive(&self.socket, |got, bytes| {
            (got.len > 0 && !got.truncated).then(|| decode::<FromZygote>(bytes).ok()).flatten()
        });
        timeout(Duration::from_millis(timeout_ms), reply).await.map(|reply| reply.ok().flatten())
    }

    async fn send_order(&self, order: &ToZygote, deadline: Instant) -> Result<(), SpawnError> {
        let failed = |error| SpawnError::Io { what: "prepare a zygote", error };
        let bytes = encode(order, ZYGOTE_MESSAGE_BYTES).map_err(|error| failed(io::Error::other(error)))?;
        let sent = packets::send(&self.socket, &[&bytes], &[], deadline).await;
        sent.map_err(|error| self.unless_exited(error, failed))
    }

    /// Reads until the zygote has exited.
    pub(super) async fn listen(&self) {
        loop {
            let message = packets::receive(&self.socket, |got, bytes| {
                (got.len > 0).then(|| decode::<FromZygote>(bytes))
            });
            match message.await {
                Ok(Some(Ok(FromZygote::ForkFailed { order, errno }))) => {
                    if let Some((_, failure)) = lock(&self.failures).remove(&order) {
                        let _ = failure.send(errno);
                    }
                }
                // As untrusted as a worker: after an invalid message it is not used any more.
                _ => break,
            }
        }
        self.lost.store(true, Ordering::Release);
        // No clone of it is allowed any more; then it may be killed.
        self.orders.forget(self.pids.here);
        // After an invalid message it must not continue to run.
        let _ = self.pidfd.kill();
        lock(&self.failures).clear();
    }
}

impl Ordered<'_> {
    /// The result of a fork; an error if the zygote does not begin with it in time. Once it has begun, the child's own deadlines
    /// decide.
    pub(super) async fn unless_stuck<T>(&self, result: impl Future<Output = T>) -> Result<T, SpawnError> {
        let mut result = pin!(result);
        if let Ok(result) = timeout(Duration::from_millis(FORK_ORDER_MS), result.as_mut()).await {
            return Ok(result);
        }
        if self.zygote.has_open_orders() { Err(self.zygote.end_stuck()) } else { Ok(result.await) }
    }

    /// Why the worker's channel closed without a hello.
    pub(super) async fn why_not(mut self) -> SpawnError {
        match timeout(REASON_TIMEOUT, &mut self.failure).await {
            Ok(Ok(errno)) => SpawnError::Fork(io::Error::from_raw_os_error(errno)),
            Ok(Err(_)) => self.zygote.mark_lost(),
            Err(_) if !self.zygote.pidfd.is_alive() => self.zygote.mark_lost(),
            Err(_) => SpawnError::WorkerSilent("exited"),
        }
    }
}

impl Drop for Ordered<'_> {
    fn drop(&mut self) {
        lock(&self.zygote.failures).remove(&self.order);
    }
}
