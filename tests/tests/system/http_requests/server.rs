//! An HTTP server on the loopback device, with one connection for each request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// `the same words again and again. ` 300 times.
const BROTLI: &[u8] = &[
    0x1b, 0x7f, 0x25, 0x60, 0xa4, 0x40, 0x5c, 0x7a, 0x90, 0x43, 0x16, 0xb9, 0x0c, 0x6c, 0xc0, 0x79, 0x60,
    0x65, 0xe3, 0x2e, 0x91, 0x2a, 0x3f, 0x42, 0x58, 0xa3, 0x03, 0x20, 0x01,
];

/// The server. Its connections end with the test's process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Requests so far.
    pub(crate) requests: Arc<AtomicUsize>,
    /// The path of each request to `/hold…`, which gets its response never, and to `/interim`, before interim responses without end.
    pub(crate) held: Receiver<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(AtomicUsize::new(0));
        let (holding, held) = channel();
        let (count, kept) = (Arc::clone(&requests), Arc::new(Mutex::new(Vec::new())));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, holding, kept) = (Arc::clone(&count), holding.clone(), Arc::clone(&kept));
                std::thread::spawn(move || respond(stream, &count, &holding, &kept));
            }
        });
        Self { address, requests, held }
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn respond(
    stream: TcpStream,
    count: &AtomicUsize,
    holding: &Sender<String>,
    kept: &Mutex<Vec<TcpStream>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        if field.trim().is_empty() {
            break;
        }
        if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        headers.push_str(&field);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    count.fetch_add(1, Ordering::SeqCst);
    let mut stream = stream;
    let mut send = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()
    };
    if path.starts_with("/hold") {
        let _ = holding.send(path);
        kept.lock().expect("nobody panics").push(stream);
        return Some(());
    }
    if path == "/interim" {
        let _ = holding.send(path);
        let interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n".repeat(500);
        loop {
            stream.write_all(&interim).ok()?;
        }
    }
    if let Some(target) = path.strip_prefix("/to?") {
        return send(&format!("302 Found\r\nlocation: {target}"), b"");
    }
    match path.split('?').next()? {
        "/loop" => send("302 Found\r\nlocation: /loop", b""),
        // Twice as long each time.
        "/grow" => send(&format!("302 Found\r\nlocation: {path}{}", &path["/grow".len()..]), b""),
        "/far" => send(&format!("302 Found\r\nlocation: /{}", "x".repeat(60_000)), b""),
        "/too-far" => send(&format!("302 Found\r\nlocation: /{}", "x".repeat(1 << 20)), b""),
        "/echo" => send("200 OK", &body),
        "/headers" => send("200 OK", headers.to_ascii_lowercase().as_bytes()),
        "/br" => send("200 OK\r\ncontent-encoding: br", BROTLI),
        "/br-cut" => send("200 OK\r\ncontent-encoding: br", &BROTLI[..20]),
        "/large" => send("200 OK", &vec![b'x'; 3 << 20]),
        "/endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").ok()?;
            loop {
                stream.write_all(&[b'x'; 8_192]).ok()?;
            }
        }
        "/half" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").ok(),
        _ => send("200 OK\r\nx-test: 1", b"hello"),
    }
}
