//! The verb of events for programs.

use crate::codec::{Decode, Encode};
use crate::json::JsonText;

/// Give executions of programs an event, for which they wait with `waitFor`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct EventEmit {
    /// 1 to `EVENT_NAME_BYTES` bytes.
    pub name: String,
    /// Valid JSON, at most `EVENT_BYTES`.
    pub event: JsonText,
    /// The execution that gets it now or, if it does not wait for it, when it does; none = all executions of the caller that wait for it
    /// now.
    pub execution: Option<String>,
}
