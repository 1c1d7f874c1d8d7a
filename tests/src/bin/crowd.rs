//! Many connections of one user, held until the standard input ends. Prints one line when it has them: how many, and why there is no
//! further one.
//!
//! - `crowd clients SOCKET COUNT`: at the control socket, after the handshake
//! - `crowd streams SOCKET PATH COUNT`: streams of events over HTTP
//! - `crowd halves SOCKET COUNT MIB`: frames of so many MiB at the control socket without their last byte; the number is that of the
//!   MiB that the daemon has taken when it takes no more for a while
//! - `crowd unread SOCKET COUNT EXECUTION`: 30 requests for the events of an execution on each of so many connections, whose
//!   replies nobody reads
//! - `crowd passing SOCKET COUNT`: connections that are closed as soon as they are open; the line is printed after so many of them, and
//!   they go on
//! - `crowd heads TARGET COUNT`: half requests to an HTTP listener (a path or an address), of which the last 900 stay open; the line is
//!   printed after so many of them, and they go on
//! - `crowd queries TARGET COUNT`: requests to an HTTP listener, one after the other; prints how many had a response 200, and what became
//!   of the last other one
//! - `crowd reaches SOCKET COUNT`: connections that are closed at once; the same for those that found a place in the listener's queue

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use vm_system_protocol::control::ExecEvents;
use vm_system_tests::PATIENCE;
use vm_system_tests::client::Client;
use vm_system_tests::http::Http;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["clients", socket, count] => hold(count, || Client::try_connect(Path::new(socket))),
        ["streams", socket, path, count] => hold(count, || {
            let mut http = Http::unix(Path::new(socket));
            http.send(&http.request_bytes("GET", path, &[("accept", "text/event-stream")], None));
            match http.head() {
                Some((200, _)) => Ok(http),
                other => Err(format!("{:?}", other.map(|(status, _)| status))),
            }
        }),
        ["halves", socket, count, mib] => halves(Path::new(socket), count, mib),
        ["unread", socket, count, execution] => hold(count, || {
            let mut client = Client::try_connect(Path::new(socket))?;
            for _ in 0..30 {
                client.send(events(execution));
            }
            Ok(client)
        }),
        ["passing", socket, count] => go_on(count, || {
            // A refusal is as good.
            drop(UnixStream::connect(socket));
        }),
        ["heads", target, count] => {
            let mut open = VecDeque::new();
            go_on(count, || {
                if let Ok(mut stream) = connect_now(target)
                    && stream.write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: x").is_ok()
                {
                    open.push_back(stream);
                }
                if open.len() > 900 {
                    open.pop_front();
                }
                // More than a listener served of all, and less than a build without optimisation accepts.
                std::thread::park_timeout(HEADS_PAUSE);
            });
        }
        ["queries", target, count] => ask(count, || response(target)),
        ["reaches", socket, count] => ask(count, || connect_now(socket).map(|_| ())),
        _ => panic!("unknown arguments: {arguments:?}"),
    }
}

/// Between two half requests.
const HEADS_PAUSE: Duration = Duration::from_micros(100);

/// Repeats something until the standard input ends.
fn go_on(count: &str, mut action: impl FnMut() + Send) {
    let count: usize = count.parse().expect("a number");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut done = 0;
            while !ended.load(Ordering::Relaxed) {
                done += 1;
                action();
                if done == count {
                    println!("{done} none");
                }
            }
        });
        wait_for_the_end();
        ended.store(true, Ordering::Relaxed);
    });
}

fn ask(count: &str, mut question: impl FnMut() -> Result<(), String>) {
    let results: Vec<_> = (0..count.parse().expect("a number")).map(|_: usize| question()).collect();
    let failed = results.iter().filter_map(|result| result.as_ref().err()).next_back();
    let why = failed.map_or("none", String::as_str);
    println!("{} {why}", results.iter().filter(|result| result.is_ok()).count());
}

/// Bytes in both directions.
trait Stream: std::io::Read + std::io::Write + Send {}
impl<T: std::io::Read + std::io::Write + Send> Stream for T {}

/// Connects to a path without waiting for a place in the listener's queue, or to an address.
fn connect_now(target: &str) -> Result<Box<dyn Stream>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    if let Ok(address) = target.parse() {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| text(&error))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| text(&error))?;
        return Ok(Box::new(stream));
    }
    let (kind, flags) = (SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC);
    let made = socket(AddressFamily::Unix, kind, flags, None).map_err(|error| text(&error))?;
    let address = UnixAddr::new(target).map_err(|error| text(&error))?;
    connect(made.as_raw_fd(), &address).map_err(|error| text(&error))?;
    let stream = UnixStream::from(made);
    stream.set_nonblocking(false).map_err(|error| text(&error))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| text(&error))?;
    Ok(Box::new(stream))
}

/// A request on a connection of its own; an error if its response is not 200.
fn response(target: &str) -> Result<(), String> {
    let mut stream = connect_now(target)?;
    let request = b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).map_err(|error| error.to_string())?;
    let mut response = String::new();
    stream.read_to_string(&mut response).map_err(|error| format!("{error} after {response:?}"))?;
    if response.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(format!("{response:?}")) }
}

/// Whoever takes nothing for this long takes no more.
const QUIET: Duration = Duration::from_secs(2);

fn halves(socket: &Path, count: &str, mib: &str) {
    let (count, mib): (usize, usize) = (count.parse().expect("a number"), mib.parse().expect("a number"));
    let taken = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let mut stream = Client::try_connect(socket).expect("a connection").stream;
                let bytes = mib << 20;
                let length = u32::try_from(bytes).expect("a frame").to_le_bytes();
                let mut left = bytes - 1;
                let piece = vec![0; 64 << 10];
                stream.write_all(&length).expect("written");
                stream.set_write_timeout(Some(QUIET)).expect("a timeout");
                while left > 0 && !ended.load(Ordering::Relaxed) {
                    match stream.write(&piece[..left.min(piece.len())]) {
                        Ok(written) => {
                            left -= written;
                            taken.fetch_add(written, Ordering::Relaxed);
                        }
                        // Full for now, or closed.
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(_) => return,
                    }
                }
                while !ended.load(Ordering::Relaxed) {
                    std::thread::park_timeout(QUIET);
                }
            });
        }
        let mut before = usize::MAX;
        loop {
            let now = taken.load(Ordering::Relaxed);
            if now == before {
                break;
            }
            before = now;
            std::thread::park_timeout(QUIET);
        }
        println!("{} none", before >> 20);
        wait_for_the_end();
        ended.store(true, Ordering::Relaxed);
    });
}

fn events(execution: &str) -> ExecEvents {
    ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: false }
}

fn hold<T>(count: &str, mut connect: impl FnMut() -> Result<T, String>) {
    let count: usize = count.parse().expect("a number");
    let (mut held, mut refusal) = (Vec::with_capacity(count), "none".to_owned());
    while held.len() < count {
        match connect() {
            Ok(connection) => held.push(connection),
            Err(why) => {
                refusal = why;
                break;
            }
        }
    }
    println!("{} {refusal}", held.len());
    wait_for_the_end();
}

fn wait_for_the_end() {
    let mut end = String::new();
    std::io::stdin().read_to_string(&mut end).expect("standard input");
}
