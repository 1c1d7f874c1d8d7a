//! What a supervisor gives up because it never needs it: system calls, by seccomp. Its user, its files and its network stay.

use super::config::Config;
use super::error::DaemonError;
use super::socket::find_group;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use vm_system_api::rest::token_uids;
use vm_system_sandbox::process::SELF;
use vm_system_sandbox::seccomp::{self, table_supervisor};
use vm_system_spawn::helper::{AgentRules, SpawnHelper};

/// Gives up calls, for all threads and all children. To be called once the first jail is built: an error of this filter would have
/// precedence over the notification by which a worker's forbidden call is named.
pub(super) fn restrict_calls() -> Result<(), DaemonError> {
    seccomp::install_refusals_everywhere(table_supervisor::TABLE).map_err(DaemonError::Filter)
}

/// Starts the spawn helper of a root daemon.
pub(super) fn start_helper(config: &Config) -> Result<SpawnHelper, DaemonError> {
    let rules = AgentRules {
        min_uid: config.users.min_uid,
        root_files: config.users.root_files,
        group: config.socket_group.as_deref().map(find_group).transpose()?,
        service_uid: config.service_ids.uid,
        tokens: config.http.tokens.clone(),
    };
    SpawnHelper::start(Path::new(SELF), &rules).map_err(DaemonError::Helper)
}

/// Runs as the spawn helper if the arguments (program name included) name its mode; to be called before anything else starts.
pub fn dispatch(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    vm_system_spawn::helper::dispatch(arguments, token_uids)
}
