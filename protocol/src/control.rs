//! Client ⇄ supervisor over the local socket, and the verbs of the product: each is a [`Verb`] with its own type of reply, the same
//! for every API (control, REST, MCP); the handlers are in the supervisor. [`Op`] and [`Reply`] are any verb and any reply on the wire.
//!
//! A connection is a byte stream of frames: `length u32` (little endian, at most
//! [`CONTROL_FRAME_BYTES`](crate::limits::CONTROL_FRAME_BYTES)), then the value. First the client's [`ClientHello`], then the
//! server's [`ServerHello`]; then any number of requests; replies have the request's id and may be in any order.

mod archive;
mod database;
mod durable;
pub mod frame;
mod lists;
mod reply;
mod restoration;
mod verbs;

pub use archive::{ArchiveKind, ExportCursor, ExportPart, ExportPlace, PART_BYTES};
pub use database::{BackupInfo, CHECK_FINDINGS, CheckFinding, CheckReport, DatabaseSize};
pub use durable::{CompiledPlan, EmittedEvent, EventReceiver, PendingPrompt, ProgramCounts};
pub use lists::{ListCursor, ListPage, Listed, NoCursor, Period};
pub use reply::{
    AuditRecord, BuildUse, DoctorReport, ErrorCode, ExecutionState, Health, HostFinding, ImportedObject,
    LibraryCheck, LibraryInfo, MemoryOwner, ModuleInfo, OpError, RuntimeInfo, RuntimeSummary, SandboxLayer,
    SessionEventPage, StuckExecution, TemplateDeleted, TemplateName, UpgradeReport, ZygoteInfo,
};
pub use restoration::GivenInput;
pub use verbs::*;

use crate::codec::{Decode, Encode};
use crate::model::Event;

/// Version of this protocol; a server refuses others with a message.
pub const CONTROL_PROTOCOL: u32 = 1;

/// Name of this protocol in an HTTP upgrade.
pub const UPGRADE_NAME: &str = "vm-system-control";

/// Name and version ([`CONTROL_PROTOCOL`]) of this protocol, as the field `Upgrade` has them.
pub const UPGRADE_PROTOCOL: &str = "vm-system-control/1";

/// Path of the upgrade, beneath the server's address.
pub const UPGRADE_PATH: &str = "/api/v1/control";

/// First frame of a client.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ClientHello {
    /// [`CONTROL_PROTOCOL`] of the client.
    pub protocol: u32,
    /// Version of the client's binary, for the logs.
    pub version: String,
}

/// First frame of a server.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerHello {
    /// [`CONTROL_PROTOCOL`] of the server.
    pub protocol: u32,
    /// Version of the server's binary.
    pub version: String,
    /// Why the server refuses this client, if it does; it closes the connection after this frame.
    pub refusal: Option<String>,
}

/// A frame of a client.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ClientFrame {
    /// A request. The client chooses the id; two pending requests must not have the same id.
    Request {
        /// Echoed in every frame of the reply.
        id: u32,
        /// The same key from the same owner within 24 h returns the first reply again.
        idempotency_key: Option<String>,
        /// An execution in a session for which this request waits is cancelled if the client disconnects (also if it only closes its
        /// sending side) and nobody else waits for it.
        cancel_on_disconnect: bool,
        op: Op,
    },
    /// Stop streaming events of this request.
    Unfollow { id: u32 },
}

/// A frame of a server.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ServerFrame {
    /// Events of a followed execution, before its reply.
    Events {
        id: u32,
        /// In order, without a gap.
        events: Vec<Event>,
    },
    /// The reply to a request, its last frame.
    Reply { id: u32, result: Result<Reply, Box<OpError>> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_has_the_version_of_the_protocol() {
        assert_eq!(UPGRADE_PROTOCOL, format!("{UPGRADE_NAME}/{CONTROL_PROTOCOL}"));
    }
}
