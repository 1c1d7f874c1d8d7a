//! What a supervisor gives up because it never needs it: system calls, by seccomp. Its user, its files and its network stay.

use super::error::DaemonError;
use vm_system_sandbox::seccomp::{self, table_supervisor};

/// Gives up calls, for all threads and all children. To be called once the first jail is built: an error of this filter would have
/// precedence over the notification by which a worker's forbidden call is named.
pub(super) fn restrict_calls() -> Result<(), DaemonError> {
    seccomp::install_refusals_everywhere(table_supervisor::TABLE).map_err(DaemonError::Filter)
}
