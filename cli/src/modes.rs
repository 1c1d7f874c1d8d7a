//! The hidden modes: processes of the system that run this binary with another first argument.

use std::process::ExitCode;
use vm_system_worker::roles::{self, Modes};

/// Runs as a keeper, a broker, the egress process or a spawn helper if the first argument names one, and returns its exit code; `None` for a user's command.
pub fn dispatch() -> Option<ExitCode> {
    roles::dispatch(std::env::args_os(), Modes::production());
    vm_system_broker::dispatch(std::env::args_os())
        .or_else(|| vm_system_egress::dispatch(std::env::args_os()))
        .or_else(|| vm_system_daemon::dispatch(std::env::args_os()))
}
