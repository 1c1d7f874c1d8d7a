//! Gives up what a supervisor never needs: system calls, by seccomp. Its user, its files and its network stay.

use super::config::Config;
use super::error::DaemonError;
use super::socket::find_group;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use vm_system_api::rest::token_uids;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::process::SELF;
use vm_system_sandbox::seccomp::{self, table_supervisor};
use vm_system_sandbox::user_namespace;
use vm_system_spawn::SandboxMode;
use vm_system_spawn::helper::{AgentRules, SpawnHelper};

/// Gives up calls, for all threads and all children. To be called once the first jail is built: an error of this filter would have
/// precedence over the notification by which a worker's forbidden call is named.
pub(super) fn restrict_calls() -> Result<(), DaemonError> {
    seccomp::install_refusals_everywhere(table_supervisor::TABLE).map_err(DaemonError::Filter)
}

/// Starts the spawn helper of a root daemon that becomes this user. It makes user namespaces only if the host refuses them to the user.
pub(super) fn start_helper(config: &Config, user: &Identity) -> Result<SpawnHelper, DaemonError> {
    let refused = match config.sandbox {
        SandboxMode::Full => user_namespace::may_make(user).err(),
        SandboxMode::NoUserns => None,
    };
    if let Some(refusal) = &refused {
        tracing::info!(%refusal, "user namespaces are refused to users here: the spawn helper makes them");
    }
    let rules = AgentRules {
        min_uid: config.users.min_uid,
        max_uid: config.users.max_uid,
        root_files: config.users.root_files,
        group: config.socket_group.as_deref().map(find_group).transpose()?,
        service_uid: config.service_ids.uid,
        tokens: config.http.tokens.clone(),
        makes_namespaces: refused.map(|_| user.ids.gid),
    };
    SpawnHelper::start(Path::new(SELF), &rules).map_err(DaemonError::Helper)
}

/// Runs as the spawn helper if the arguments (program name included) name its mode; to be called before anything else starts.
pub fn dispatch(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    vm_system_spawn::helper::dispatch(arguments, token_uids)
}
