//! Requests to a session whose reply is its record. Decides nothing.

use vm_system_protocol::model::RestoredInputs;

/// A request to a session whose reply is its record.
#[derive(Debug, Clone)]
pub enum SessionRequest {
    /// Stop the worker of an idle session until a request needs it.
    Suspend,
    /// Let the worker run again.
    Resume,
    /// Continue from a checkpoint (its number or name; the newest if absent).
    Rollback { checkpoint: Option<String> },
    /// Another name, which no other session of the owner has.
    Rename { name: String },
    /// All inputs of the session that this one restores were repeated.
    FinishRestoration {
        /// The session's name from now on.
        name: Option<String>,
        /// The record of the restoration.
        restored: RestoredInputs,
    },
}

impl SessionRequest {
    /// Whether it needs an idle session: it waits while the session is busy briefly.
    pub const fn needs_idle_session(&self) -> bool {
        matches!(self, Self::Suspend | Self::Rollback { .. })
    }
}
