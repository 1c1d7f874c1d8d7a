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

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use vm_system_protocol::control::Op;
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
        ["passing", socket, count] => pass(count, Path::new(socket)),
        _ => panic!("unknown arguments: {arguments:?}"),
    }
}

fn pass(count: &str, socket: &Path) {
    let count: usize = count.parse().expect("a number");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut passed = 0;
            while !ended.load(Ordering::Relaxed) {
                passed += 1;
                // A refusal is as good.
                drop(UnixStream::connect(socket));
                if passed == count {
                    println!("{passed} none");
                }
            }
        });
        wait_for_the_end();
        ended.store(true, Ordering::Relaxed);
    });
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

fn events(execution: &str) -> Op {
    Op::ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: false }
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
