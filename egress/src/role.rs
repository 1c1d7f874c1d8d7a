//! The egress process: takes its channel, reads the system's names and certificates, enters the jail, then makes requests until the
//! channel is closed. One thread; no logging, no environment.

use crate::channel;
use crate::client::Clients;
use crate::exchange::{self, BodyPiece, ExchangeInput, Reports};
use crate::jail;
use crate::resolve::Resolver;
use futures_util::future::{AbortHandle, abortable};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::sleep_until;
use tokio_rustls::rustls::RootCertStore;
use vm_system_protocol::egress::{FromEgress, ToEgress};
use vm_system_protocol::limits::{EGRESS_IDLE_MS, HTTP_EXCHANGES_OF_ALL};
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::{inspect, process};

/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;
const HOSTS: &str = "/etc/hosts";
const SERVERS: &str = "/etc/resolv.conf";
/// How often the files are checked for changes, while there are requests.
const CHECK: Duration = Duration::from_secs(1);
/// The size of a read from the channel (bytes).
const READ_BYTES: usize = 128 * 1024;
/// Pieces of a body that wait: one that was sent with the request, and one after it was reported as sent.
const PIECES: usize = 2;
/// Messages to the supervisor that wait to be written. Of each exchange: that a piece was sent (two at most), its head, one piece of the
/// response, for which it has credit, and its end. Twice that, because an exchange that the supervisor has closed may be followed by
/// another one before its messages are written. A supervisor that leaves more unread has stopped.
const REPORTS: usize = 2 * 5 * HTTP_EXCHANGES_OF_ALL;
/// Exchanges that have ended and are still in the table; their tasks wait for a place.
const ENDINGS: usize = 64;
/// Turns after which connections that have become ready get theirs; a turn of an owner may take its whole time.
const EVENT_INTERVAL: u32 = 1;
const EXIT_CHANNEL: i32 = 70;
const EXIT_PROTOCOL: i32 = 74;

/// Runs the process to its end. `arguments`: the user to become (`user=UID:GID:GROUPS`, if root started it).
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok((channel, user)) = descriptors(arguments) else {
        // Not started by a supervisor or a service manager: there is no channel.
        return ExitCode::from(2);
    };
    let mut socket = BlockingStream::from(channel);
    // Files, certificates and the event loop come before the jail, which refuses what they need.
    let resolver = Arc::new(Resolver::read(Path::new(HOSTS), Path::new(SERVERS)));
    let prepared = prepare(&resolver).and_then(|prepared| {
        jail::enter(user).map_err(|failure| failure.to_string())?;
        Ok(prepared)
    });
    let (runtime, clients) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            let mut bytes = Vec::new();
            if channel::frame(&FromEgress::Failed { message }, &mut bytes).is_ok() {
                let _ = socket.write_all(&bytes);
            }
            process::exit_now(1);
        }
    };
    let served = runtime.block_on(serve(socket, clients, &resolver));
    // The filter does not allow the system calls of the runtime's tear-down.
    process::exit_now(served.map_or_else(|_| EXIT_CHANNEL, |()| 0));
}

fn descriptors(arguments: impl Iterator<Item = OsString>) -> io::Result<(OwnedFd, Option<Identity>)> {
    let channel = process::inherited(CHANNEL)?;
    process::close_inherited();
    let mut arguments = arguments;
    let user = arguments.find_map(|argument| argument.to_str()?.strip_prefix("user=").map(str::to_owned));
    let user = user.map(|user| user.parse()).transpose()?;
    if user.is_none() && inspect::status(std::process::id()).is_ok_and(|status| status.capabilities != 0) {
        // It would keep the rights of root.
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok((channel, user))
}

fn prepare(resolver: &Arc<Resolver>) -> Result<(tokio::runtime::Runtime, Clients), String> {
    let mut roots = RootCertStore::empty();
    // Without any, requests over TLS fail with the reason.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let clients = Clients::new(Arc::clone(resolver), roots)?;
    Ok((event_loop().map_err(|error| format!("event loop: {error}"))?, clients))
}

pub(crate) fn event_loop() -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().event_interval(EVENT_INTERVAL).build()
}

/// The queue of messages to the supervisor.
pub(crate) fn reports() -> (mpsc::Sender<FromEgress>, mpsc::Receiver<FromEgress>) {
    mpsc::channel(REPORTS)
}

/// Hands a message to the task that writes.
pub(crate) fn report(out: &mpsc::Sender<FromEgress>, message: FromEgress) {
    if !queue_report(out, message) {
        process::exit_now(EXIT_CHANNEL);
    }
}

/// Queues a message; `false`: as many wait as may.
fn queue_report(out: &mpsc::Sender<FromEgress>, message: FromEgress) -> bool {
    // Closed only when the process exits.
    !matches!(out.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
}

/// An exchange under way.
struct Running {
    task: AbortHandle,
    pieces: mpsc::Sender<BodyPiece>,
    credit: Arc<Semaphore>,
}

async fn serve(socket: BlockingStream, mut clients: Clients, resolver: &Resolver) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let (reader, writer) = UnixStream::from_std(socket)?.into_split();
    let mut reader = BufReader::with_capacity(READ_BYTES, reader);
    let (out, outgoing) = reports();
    tokio::spawn(async move {
        if channel::write_all(writer, outgoing).await.is_err() {
            process::exit_now(EXIT_CHANNEL);
        }
    });
    // A full queue stops reading, so that the supervisor waits and this process holds no more.
    let (orders, mut incoming) = mpsc::channel(64);
    tokio::spawn(async move {
        loop {
            match channel::receive(&mut reader).await {
                Ok(Some(order)) => {
                    if orders.send(order).await.is_err() {
                        return;
                    }
                }
                // The supervisor has exited, or wants nothing more.
                Ok(None) => process::exit_now(0),
                Err(_) => process::exit_now(EXIT_PROTOCOL),
            }
        }
    });
    report(&out, FromEgress::Ready);
    let (ended, mut endings) = mpsc::channel(ENDINGS);
    let mut running: HashMap<u64, Running> = HashMap::new();
    let (mut checked, mut is_outdated) = (Instant::now(), false);
    let mut idle_since = tokio::time::Instant::now();
    loop {
        let idle_until = idle_since + Duration::from_millis(EGRESS_IDLE_MS);
        let order = tokio::select! {
            order = incoming.recv() => order,
            exchange = endings.recv() => {
                if let Some(exchange) = exchange {
                    running.remove(&exchange);
                }
                idle_since = tokio::time::Instant::now();
                continue;
            }
            () = sleep_until(idle_until), if running.is_empty() => return Ok(()),
        };
        let Some(order) = order else { return Ok(()) };
        match order {
            ToEgress::Open { exchange, request } => {
                if !is_outdated && checked.elapsed() >= CHECK {
                    checked = Instant::now();
                    is_outdated = resolver.is_outdated();
                    if is_outdated {
                        report(&out, FromEgress::Outdated);
                    }
                }
                let client = clients.client_for(&request.terms);
                let (pieces, receiver) = mpsc::channel(PIECES);
                let credit = Arc::new(Semaphore::new(1));
                let input = ExchangeInput { pieces: receiver, credit: Arc::clone(&credit) };
                let reports = Reports { exchange, out: out.clone() };
                let ended = ended.clone();
                let lane = client.lane.clone();
                let (work, task) = abortable(async move {
                    exchange::run(client, *request, input, reports).await;
                    // Fails only with the whole process.
                    let _ = ended.send(exchange).await;
                });
                // This loop reads the end of the exchange, so it cannot come before the entry below.
                lane.spawn(work);
                running.insert(exchange, Running { task, pieces, credit });
            }
            // An exchange that has ended meanwhile is no error.
            ToEgress::Send { exchange, data, end } => {
                if let Some(running) = running.get(&exchange)
                    && let Err(mpsc::error::TrySendError::Full(_)) = running.pieces.try_send((data, end))
                {
                    process::exit_now(EXIT_PROTOCOL);
                }
            }
            ToEgress::Pull { exchange } => {
                if let Some(running) = running.get(&exchange) {
                    running.credit.add_permits(1);
                }
            }
            ToEgress::Close { exchange } => {
                if let Some(running) = running.remove(&exchange) {
                    running.task.abort();
                }
                idle_since = tokio::time::Instant::now();
            }
            ToEgress::Ping => {
                report(&out, FromEgress::Pong);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supervisor_that_reads_nothing_is_left_a_bounded_number_of_reports() {
        let (out, mut outgoing) = reports();
        for number in 0..REPORTS {
            assert!(queue_report(&out, FromEgress::Pong), "report {number} of {REPORTS}");
        }
        assert!(!queue_report(&out, FromEgress::Pong), "more than {REPORTS} reports wait");
        assert_eq!(outgoing.try_recv().ok(), Some(FromEgress::Pong));
        assert!(queue_report(&out, FromEgress::Pong), "one was written");
    }
}
