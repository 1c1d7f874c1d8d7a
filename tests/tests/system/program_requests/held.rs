//! An HTTP server that gives each request to the test, which responds when it likes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use vm_system_tests::PATIENCE;

/// The server. Its connections end with the test's process.
pub(crate) struct HeldServer {
    pub(crate) address: SocketAddr,
    arrived: Receiver<HeldRequest>,
}

/// A request without a response.
pub(crate) struct HeldRequest {
    /// `POST /path`.
    pub(crate) line: String,
    /// In lower case.
    fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    stream: TcpStream,
}

impl HeldServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (arrives, arrived) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let arrives = arrives.clone();
                std::thread::spawn(move || receive(stream, &arrives));
            }
        });
        Self { address, arrived }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next request.
    #[track_caller]
    pub(crate) fn next(&self) -> HeldRequest {
        self.arrived.recv_timeout(PATIENCE).expect("a request")
    }

    /// No request has arrived that the test did not take.
    pub(crate) fn is_quiet(&self) -> bool {
        self.arrived.try_recv().is_err()
    }
}

fn receive(stream: TcpStream, arrives: &Sender<HeldRequest>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    let mut fields = Vec::new();
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let Some((name, value)) = field.split_once(':') else { break };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = fields.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap_or(0))];
    reader.read_exact(&mut body).ok()?;
    arrives.send(HeldRequest { line, fields, body, stream }).ok()
}

impl HeldRequest {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Responds with 200 and this body.
    pub(crate) fn respond(mut self, body: &str) {
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        // A client that was killed meanwhile is not the server's problem.
        let _ = self.stream.write_all(head.as_bytes()).and_then(|()| self.stream.write_all(body.as_bytes()));
    }
}
