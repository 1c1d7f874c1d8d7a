//! The time of a store in one process: the calendar clock of its machine. The only place that reads it for what is stored.

use std::time::{SystemTime, UNIX_EPOCH};
use vm_system_protocol::time::Timestamp;

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
