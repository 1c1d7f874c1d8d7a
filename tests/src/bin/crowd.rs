//! Many connections of one user, held until the standard input ends. Prints one line when it has them: how many, and why there is no
//! further one.
//!
//! - `crowd clients SOCKET COUNT`: at the control socket, after the handshake
//! - `crowd streams SOCKET PATH COUNT`: streams of events over HTTP
//! - `crowd passing SOCKET COUNT`: connections that are closed as soon as they are open; the line is printed after so many of them, and
//!   they go on

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
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
