//! Why an execution is ended by this machine, and not by its own end.

use super::input::CloseCause;
use vm_system_protocol::reason::LimitKind;

/// Why this machine ends an execution. The first reason is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// Requested by a client.
    Cancelled,
    /// The last client that waited for it has gone, and had requested this.
    Abandoned,
    /// The session closes.
    Closing(CloseCause),
    /// A limit that this side measured.
    Limit(LimitKind),
}

impl StopCause {
    /// Whether a client has ended the execution, by a request or by its absence.
    pub(super) const fn is_of_client(self) -> bool {
        matches!(self, Self::Cancelled | Self::Abandoned)
    }
}
