//! Messages of JSON-RPC over standard streams, one per line. A line that is not a message gets an error as its response, and the
//! connection stays open; an overlong line is dropped while it is read; requests above the limit of one client are refused.

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta as _, ProtocolVersion, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use vm_system_protocol::input::not_json;

/// Longest message (bytes): the largest answer to a task, escaped.
const LINE_BYTES: usize = 16 << 20;
/// Most concurrent requests of one client.
const REQUESTS: usize = 64;
/// JSON-RPC leaves these numbers to servers.
const BUSY: ErrorCode = ErrorCode(-32_000);

/// One client behind a pair of streams.
pub struct LineTransport<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The rest of an overlong line is being dropped.
    dropping: bool,
    /// A lifecycle has begun; before, everything but requests is ignored.
    open: bool,
    shared: Arc<Shared<W>>,
}

struct Shared<W> {
    write: tokio::sync::Mutex<Option<W>>,
    in_progress: Mutex<HashSet<RequestId>>,
}

impl<R, W> std::fmt::Debug for LineTransport<R, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineTransport").finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Send + 'static> LineTransport<R, W> {
    /// Reads messages from one stream and writes them to the other.
    pub fn new(read: R, write: W) -> Self {
        let shared = Shared { write: tokio::sync::Mutex::new(Some(write)), in_progress: Mutex::default() };
        Self {
            read: BufReader::with_capacity(64 * 1024, read),
            line: Vec::new(),
            dropping: false,
            open: false,
            shared: Arc::new(shared),
        }
    }

    /// Reads until a line is complete or too long; none at the end of the stream. Cancel safe: the part of a line that was
    /// read is kept.
    async fn next_line(&mut self) -> Option<Line> {
        loop {
            let available = match self.read.fill_buf().await {
                Ok([]) => return None,
                Ok(available) => available,
                Err(error) => {
                    tracing::debug!(%error, "the client's stream broke");
                    return None;
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let too_long = !self.dropping && self.line.len() + taken > LINE_BYTES;
            if self.dropping || too_long {
                self.line = Vec::new();
                self.dropping = end.is_none();
            } else {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.read.consume(taken);
            if too_long {
                return Some(Line::TooLong);
            }
            if end.is_some() && !self.line.is_empty() {
                return Some(Line::Whole);
            }
        }
    }

    /// Parses a complete line.
    fn message(&mut self) -> Result<Option<ClientJsonRpcMessage>, ErrorMessage> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| ErrorMessage::new(None, ErrorData::parse_error(not_json(&error), None)))?;
        let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        let invalid = |why: String| ErrorMessage::new(id.clone(), ErrorData::invalid_request(why, None));
        if value.is_array() {
            return Err(invalid("batches are not supported: send one message per line".to_owned()));
        }
        let is_notification = value.get("method").is_some_and(Value::is_string) && value.get("id").is_none();
        match serde_json::from_value::<ClientJsonRpcMessage>(value) {
            Ok(message) => self.admitted(message),
            // A notification has no response.
            Err(_) if is_notification => Ok(None),
            Err(error) => Err(invalid(format!("not a message of the protocol: {error}"))),
        }
    }

    fn admitted(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> Result<Option<ClientJsonRpcMessage>, ErrorMessage> {
        let ClientJsonRpcMessage::Request(request) = &message else {
            return Ok(Some(message).filter(|_| self.open));
        };
        let mut in_progress = self.shared.in_progress.lock().unwrap_or_else(PoisonError::into_inner);
        let id = request.id.clone();
        if in_progress.len() >= REQUESTS {
            let why = format!("{REQUESTS} requests of this client are in progress: wait for a response");
            return Err(ErrorMessage::new(Some(id), ErrorData::new(BUSY, why, None)));
        }
        if !in_progress.insert(id) {
            let why = "this id is in use by a request in progress";
            return Err(ErrorMessage::new(None, ErrorData::invalid_request(why, None)));
        }
        drop(in_progress);
        self.open = self.open || begins(&request.request);
        Ok(Some(message))
    }
}

/// Whether this request begins a lifecycle: the handshake of older generations, or a self-contained request.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}

enum Line {
    Whole,
    TooLong,
}

/// A JSON-RPC error that the transport itself sends; `id` is null if the message that caused it has no readable id.
#[derive(Debug, Serialize)]
pub(super) struct ErrorMessage {
    jsonrpc: &'static str,
    id: Option<RequestId>,
    error: ErrorData,
}

impl ErrorMessage {
    pub(super) fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { jsonrpc: "2.0", id, error }
    }
}

impl<W: AsyncWrite + Unpin> Shared<W> {
    async fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(message)?;
        bytes.push(b'\n');
        let mut write = self.write.lock().await;
        let stream = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        stream.write_all(&bytes).await?;
        stream.flush().await
    }

    /// A request was responded to or cancelled.
    fn ended(&self, id: Option<&RequestId>) {
        if let Some(id) = id {
            self.in_progress.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move {
            match &item {
                ServerJsonRpcMessage::Response(response) => shared.ended(Some(&response.id)),
                ServerJsonRpcMessage::Error(error) => shared.ended(error.id.as_ref()),
                _ => {}
            }
            shared.send(&item).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let refused = match self.next_line().await? {
                Line::Whole => match self.message() {
                    Ok(Some(message)) => {
                        if let ClientJsonRpcMessage::Notification(notification) = &message
                            && let rmcp::model::ClientNotification::CancelledNotification(cancelled) =
                                &notification.notification
                        {
                            // A cancelled request gets no response.
                            self.shared.ended(cancelled.params.request_id.as_ref());
                        }
                        return Some(message);
                    }
                    Ok(None) => continue,
                    Err(refused) => refused,
                },
                Line::TooLong => {
                    let why = format!("a message has at most {LINE_BYTES} bytes");
                    ErrorMessage::new(None, ErrorData::invalid_request(why, None))
                }
            };
            // The service's loop may drop this future in the middle of a write, which would leave half a line: a separate
            // task finishes it under the stream's lock.
            let shared = Arc::clone(&self.shared);
            let refused = tokio::spawn(async move { shared.send(&refused).await });
            if !matches!(refused.await, Ok(Ok(()))) {
                return None;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let stream = self.shared.write.lock().await.take();
        match stream {
            Some(mut stream) => stream.shutdown().await,
            None => Ok(()),
        }
    }
}
