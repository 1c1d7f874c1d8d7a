//! The server's side of the control socket: frames in, verbs to a [`Handler`], frames out.
//!
//! Knows nothing of what a verb does. Every peer is treated as clumsy or hostile: sizes, counts and times are bounded
//! by [`ControlLimits`], and whoever breaks the protocol is disconnected with a reason in the log.
//!
//! Reading order: [`frame`] (bytes), [`peer`] (who is it), `server` (accepting), `connection` (one client), `request`
//! (one verb with its stream of events).

mod connection;
pub mod frame;
pub mod peer;
mod request;
mod server;

pub use peer::{PeerPolicy, Transport};
pub use request::follows;
pub use server::{Door, Presence, Present, serve};

use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;
use vm_system_protocol::control::{Op, OpError, Reply};
use vm_system_protocol::limits;
use vm_system_protocol::model::Event;

/// Who asks: rows belong to an owner, and other owners do not see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `uid:N` of the peer.
    pub owner: String,
    /// Sees and may do everything: root, and the user that the supervisor runs as.
    pub admin: bool,
}

/// One verb as it came through the door.
#[derive(Debug)]
pub struct Request {
    /// Who asks.
    pub caller: Caller,
    /// Through which door.
    pub door: &'static str,
    /// The same key from the same owner gives the first answer again.
    pub idempotency_key: Option<String>,
    /// What.
    pub op: Op,
    /// Where the events of a followed execution go. Closed when the client is gone or has lost interest: then
    /// following ends, the execution does not.
    pub events: Option<mpsc::Sender<Vec<Event>>>,
}

/// Something that a door refused before it was a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Who asked; absent if that is what was refused.
    pub caller: Option<Caller>,
    /// Through which door.
    pub door: &'static str,
    /// What was asked.
    pub what: String,
    /// From where, if nobody knows who.
    pub from: String,
    /// The error's code.
    pub code: &'static str,
}

/// Whoever answers verbs.
pub trait Handler: Send + Sync + 'static {
    /// Answers one verb. Never dropped half-way, also when the client disconnects.
    fn handle(&self, request: Request) -> impl Future<Output = Result<Reply, OpError>> + Send;

    /// Notes what was refused; how much of it is kept is its own decision.
    fn refused(&self, refusal: Refusal) -> impl Future<Output = ()> + Send {
        let _ = refusal;
        std::future::ready(())
    }
}

/// Bounds of the door.
#[derive(Debug, Clone)]
pub struct ControlLimits {
    /// Clients at a time; more are refused by name.
    pub connections: usize,
    /// Unanswered requests of one client; more are answered with `CAPACITY_EXCEEDED`.
    pub requests: usize,
    /// Largest frame in either direction (bytes).
    pub frame_bytes: usize,
    /// A client must say hello within.
    pub hello: Duration,
    /// A frame that has begun must be complete within.
    pub frame: Duration,
    /// A client must take each [`frame::WRITE_CHUNK_BYTES`] within.
    pub write: Duration,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            requests: 32,
            frame_bytes: limits::CONTROL_FRAME_BYTES,
            hello: Duration::from_millis(limits::HELLO_MS),
            frame: Duration::from_millis(limits::MESSAGE_MS),
            write: Duration::from_millis(limits::WRITE_MS),
        }
    }
}
