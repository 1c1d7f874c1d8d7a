//! The server's side of the control socket: frames in, verbs to a [`VerbHandler`](vm_system_ops::VerbHandler), frames out.
//!
//! Knows nothing of what verbs do. Every peer is treated as clumsy or hostile: sizes, counts and times are bounded
//! by [`ControlLimits`], and a client that breaks the protocol is disconnected with a reason in the log.
//!
//! Reading order: [`frame`] (bytes), [`peer`] (a client's user), `server` (begins a client's task), `connection` (one client), `request`
//! (one verb with its stream of events), `upgraded` (clients that come over an HTTP connection).

mod connection;
pub mod frame;
pub mod peer;
mod request;
mod server;
mod upgraded;

pub use peer::{OwnUser, PeerPolicy, Transport};
pub use server::{ClientCount, CountedClient, STREAMS, ServerState, serve};
pub(crate) use upgraded::UpgradedClients;

use std::time::Duration;
use vm_system_protocol::limits;
use vm_system_runtime::shares::ShareLimits;

/// Name of this API in the audit log.
const API: &str = "control";

/// Clients at a time, unless the operator sets another number.
pub const CONNECTIONS: usize = 1_024;

/// Bounds of this API.
#[derive(Debug, Clone)]
pub struct ControlLimits {
    /// Clients at a time; above that idle ones are closed for new ones.
    pub connections: ShareLimits,
    /// Most requests of one client without a reply; further ones are refused with `CAPACITY_EXCEEDED`.
    pub requests: usize,
    /// Largest frame in either direction (bytes).
    pub frame_bytes: usize,
    /// Time for a client's hello.
    pub hello: Duration,
    /// Time for the rest of a frame after its first byte.
    pub frame: Duration,
    /// Time for a client to read each [`WRITE_CHUNK_BYTES`](vm_system_protocol::control::frame::WRITE_CHUNK_BYTES).
    pub write: Duration,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self {
            connections: ShareLimits::at_most(CONNECTIONS),
            requests: 32,
            frame_bytes: limits::CONTROL_FRAME_BYTES,
            hello: Duration::from_millis(limits::HELLO_MS),
            frame: Duration::from_millis(limits::MESSAGE_MS),
            write: Duration::from_millis(limits::WRITE_MS),
        }
    }
}
