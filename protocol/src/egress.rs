//! HTTP: the requests of sessions, which worker and supervisor share, and Supervisor ⇄ egress process.
//!
//! An exchange is one HTTP request with its response. A worker numbers its exchanges, and its request is not trusted: the supervisor
//! checks it and sends it to the egress process under a number of its own, with the limits within which it may be made. Bodies
//! are sent piece by piece; neither side sends a piece before the other one may receive it.

use crate::codec::{Decode, Encode};
use crate::worker::HostError;
use std::fmt;

/// A call about HTTP by a running script.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HttpCall {
    /// Begins an exchange. The reply is [`HttpReply::Done`]; the response arrives as progress.
    Open {
        /// Never used before in this execution.
        exchange: u64,
        request: HttpRequest,
    },
    /// The next piece of the request's body; only after [`HttpProgress::Sent`].
    Send {
        exchange: u64,
        /// At most [`HTTP_PIECE_BYTES`](crate::limits::HTTP_PIECE_BYTES).
        data: Vec<u8>,
        /// It is the last one.
        end: bool,
    },
    /// Waits until any exchange has made progress. The reply is [`HttpReply::Progress`].
    Wait {
        /// All exchanges that the script has not finished.
        open: Vec<u64>,
        /// The exchanges among them that may receive a piece of their response.
        pull: Vec<u64>,
        /// The reply may be empty after this time (milliseconds).
        timeout_ms: u32,
    },
    /// Gives an exchange up. The reply is [`HttpReply::Done`].
    Close { exchange: u64 },
}

/// A request as a script makes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HttpRequest {
    pub method: String,
    /// Absolute.
    pub url: String,
    pub headers: Vec<HttpHeader>,
    /// The beginning of the body.
    pub data: Vec<u8>,
    /// The piece is the last one.
    pub end: bool,
}

/// A header field.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HttpHeader {
    pub name: String,
    pub value: Vec<u8>,
}

/// The reply to a call about HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HttpReply {
    Done,
    Progress(Vec<ExchangeProgress>),
}

/// The progress of one exchange.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExchangeProgress {
    pub exchange: u64,
    pub progress: HttpProgress,
}

/// The progress of an exchange.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HttpProgress {
    /// The next piece of the request's body may be sent.
    Sent,
    /// The response without its body.
    Head {
        status: u16,
        /// The text of the status, which HTTP/2 does not have.
        reason: String,
        headers: Vec<HttpHeader>,
        /// HTTP/2, not HTTP/1.1.
        http2: bool,
    },
    /// A piece of the response's body.
    Data(Vec<u8>),
    /// The response is complete; the last progress.
    End,
    /// The exchange failed; the last progress.
    Failed(HostError),
}

/// Messages of a supervisor to the egress process. Requests were checked against the effective policy.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToEgress {
    Open {
        /// Never used before on this channel.
        exchange: u64,
        request: Box<EgressRequest>,
    },
    /// The next piece of the request's body.
    Send { exchange: u64, data: Vec<u8>, end: bool },
    /// One more piece of the response may be sent.
    Pull { exchange: u64 },
    /// Nobody wants the rest.
    Close { exchange: u64 },
    /// Replied to with [`FromEgress::Pong`].
    Ping,
}

/// Messages of the egress process to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromEgress {
    /// The jail is up.
    Ready,
    /// The jail could not be built.
    Failed {
        /// The failed step, the reason, and what to do.
        message: String,
    },
    /// The files of the system's configuration have changed: another process should make the requests that follow.
    Outdated,
    Progress {
        exchange: u64,
        progress: HttpProgress,
    },
    Pong,
}

/// An allowed request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct EgressRequest {
    pub method: String,
    /// `https`, not `http`.
    pub tls: bool,
    /// A name in ASCII, or an address without brackets.
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub target: String,
    pub headers: Vec<HttpHeader>,
    pub data: Vec<u8>,
    pub end: bool,
    pub terms: EgressTerms,
}

/// The limits of a request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct EgressTerms {
    /// Connections are shared by requests with the same number only.
    pub owner: u64,
    pub reach: AddressReach,
    /// The daemon's own ports: no request reaches them over loopback, where the daemon would take it for one of its own user.
    pub own_ports: Vec<u16>,
    /// Until the head of the response (milliseconds).
    pub head_ms: u32,
    /// Until the end of the response (milliseconds).
    pub timeout_ms: u32,
    /// Largest body of the request (bytes).
    pub max_request_bytes: u64,
    /// Largest body of the response, as it is transferred (bytes).
    pub max_response_bytes: u64,
    /// The values of the secrets that the header fields name.
    pub secrets: Vec<SecretValue>,
}

/// The addresses to which a request may connect. Unspecified, broadcast and multicast addresses are never among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum AddressReach {
    /// Public unicast addresses.
    Public,
    /// Also private and loopback addresses, but no link-local ones and none of the metadata of a cloud.
    Private,
    /// Any: the host is an address that a row names.
    Named,
}

/// A secret with its value, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct SecretValue {
    pub name: String,
    pub value: String,
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretValue").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The names of the secrets in the value of a header field: `{secret:NAME}`.
pub fn secrets_in(value: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    text.split(SECRET).skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// A header field of requests of scripts to servers that may be on this machine. A daemon refuses requests that have it: over loopback it
/// would take a script for the script's user.
pub const FROM_SCRIPT: &str = "x-vm-system-egress";

/// How a header field begins to name a secret.
pub const SECRET: &str = "{secret:";
