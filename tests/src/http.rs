//! HTTP, one request at a time over one connection: a minimal client, so that tests can also send invalid requests.

use crate::PATIENCE;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Any stream.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A keep-alive connection.
pub struct Http {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    /// Header fields of every request.
    pub fields: Vec<(String, String)>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("fields", &self.fields).finish_non_exhaustive()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
}

impl Response {
    /// A header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of an error; empty for other responses.
    pub fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Http {
    /// Over a Unix socket.
    pub fn unix(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("deadline");
        Self::over_stream(stream)
    }

    /// Over TCP.
    pub fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("deadline");
        stream.set_nodelay(true).expect("a TCP socket");
        let mut http = Self::over_stream(stream);
        http.fields = vec![("host".to_owned(), address.to_string())];
        http
    }

    fn over_stream(stream: impl Stream + 'static) -> Self {
        let fields = vec![("host".to_owned(), "localhost".to_owned())];
        Self { stream: Box::new(stream), buffer: Vec::new(), fields }
    }

    /// Sends this field with every request.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends this token with every request.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// One request without a body.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, &[], None)
    }

    /// One request with a JSON body.
    #[track_caller]
    pub fn post(&mut self, path: &str, body: &Value) -> Response {
        self.request("POST", path, &[], Some(&body.to_string()))
    }

    /// One request; a body is JSON unless `fields` say otherwise.
    #[track_caller]
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<&str>,
    ) -> Response {
        self.send(&self.request_bytes(method, path, fields, body));
        self.response(method == "HEAD").unwrap_or_else(|| panic!("{method} {path}: no response"))
    }

    /// The bytes of a request.
    pub fn request_bytes(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<&str>,
    ) -> Vec<u8> {
        use std::fmt::Write as _;
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let given = |name: &str| fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
        for (name, value) in self.fields.iter().filter(|(name, _)| !given(name)) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if let Some(body) = body {
            if !given("content-type") {
                head.push_str("content-type: application/json\r\n");
            }
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        head.push_str(body.unwrap_or_default());
        head.into_bytes()
    }

    /// Writes bytes; a closed connection is noticed when the response is read.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.send_all(bytes);
    }

    /// Writes bytes; fails if the server closes or resets the connection before it has received all of them.
    pub fn send_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next response; `None` if the connection ends before it.
    pub fn response(&mut self, head_only: bool) -> Option<Response> {
        let (status, fields) = self.head()?;
        let mut response = Response { status, fields, body: Vec::new() };
        if head_only || status == 204 || status == 304 {
            return Some(response);
        }
        if response.field("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                response.body.extend(chunk);
            }
        } else {
            let length =
                response.field("content-length").map_or(0, |length| length.parse().expect("a length"));
            while self.buffer.len() < length {
                self.more().then_some(())?;
            }
            response.body = self.buffer.drain(..length).collect();
        }
        Some(response)
    }

    /// The head of a response: status and header fields.
    pub fn head(&mut self) -> Option<(u16, Vec<(String, String)>)> {
        let head = self.read_until(b"\r\n\r\n")?;
        let head = String::from_utf8(head).expect("a head is text");
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields =
            fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        Some((status, fields))
    }

    /// The next chunk of a chunked body; `None` at its end, or the end of the connection.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = String::from_utf8(self.read_until(b"\r\n")?).expect("a length is text");
        let length = usize::from_str_radix(line.trim(), 16).expect("a length");
        while self.buffer.len() < length + 2 {
            self.more().then_some(())?;
        }
        let chunk: Vec<u8> = self.buffer.drain(..length).collect();
        self.buffer.drain(..2);
        (length > 0).then_some(chunk)
    }

    /// Whether the server closes the connection without another byte.
    pub fn ends(&mut self) -> bool {
        self.buffer.is_empty() && !self.more()
    }

    fn read_until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(place) = self.buffer.windows(mark.len()).position(|bytes| bytes == mark) {
                return Some(self.buffer.drain(..place + mark.len()).collect());
            }
            self.more().then_some(())?;
        }
    }

    /// Reads more bytes; false at the end. Fails at the deadline.
    fn more(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.buffer.extend_from_slice(&bytes[..count]);
                count > 0
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("the server sends nothing"),
            Err(_) => false,
        }
    }
}
