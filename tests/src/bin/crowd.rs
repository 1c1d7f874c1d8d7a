//! Many connections of one user, held until the standard input ends. Prints one line when it has them: how many, and why there is no
//! further one.
//!
//! - `crowd clients SOCKET COUNT`: at the control socket, after the handshake
//! - `crowd streams SOCKET PATH COUNT`: streams of events over HTTP

use std::io::Read as _;
use std::path::Path;
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
        _ => panic!("unknown arguments: {arguments:?}"),
    }
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
    let mut end = String::new();
    std::io::stdin().read_to_string(&mut end).expect("standard input");
}
