//! The steps before the daemon has a second thread: started as root, it starts the spawn helper, opens the operator's roots, gives
//! folders and cgroup to its user, and becomes this user for good. From then on nothing distinguishes it from a daemon that this user
//! has started, except that the helper starts files agents for it.

use super::cgroups;
use super::config::Config;
use super::error::DaemonError;
use super::give;
use super::notify;
use super::rights;
use super::socket::find_group;
use std::path::Path;
use vm_system_runtime::files_agents::{FilesAgentConfig, FilesAgents};
use vm_system_runtime::worktree::Roots;
use vm_system_sandbox::cgroup::CgroupSubtree;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::{namespaces, privileges, rlimit};
use vm_system_spawn::SandboxMode;
use vm_system_spawn::files_agent::AgentStarter;

/// A daemon that has the rights with which it will serve.
#[derive(Debug)]
pub struct PreparedDaemon {
    pub(super) config: Config,
    /// `Err`: why there is none.
    pub(super) subtree: Result<CgroupSubtree, String>,
    pub(super) roots: Roots,
}

impl PreparedDaemon {
    /// Must be called while the process has one thread. After it a process that was started as root is the user of the settings.
    pub fn new(mut config: Config) -> Result<Self, DaemonError> {
        // A connection takes one, a session two or three; what runs commands of users has limits of its own.
        if let Err(error) = rlimit::many_descriptors() {
            tracing::warn!(%error, "the limit of descriptors is not raised");
        }
        let user = namespaces::may_become_others().then(|| config.users.service_user()).transpose()?;
        // Before any other process is started.
        let subtree = cgroups::claim(&config.cgroups)?;
        let Some(user) = user else {
            let sockets = config.users.agent_sockets.clone().map(AgentStarter::Sockets);
            let agents = sockets.map(|starter| FilesAgents::new(starter, FilesAgentConfig::default()));
            let roots = Roots::new(&config.worktree_roots, agents).map_err(DaemonError::Roots)?;
            return Ok(Self { config, subtree, roots });
        };
        if config.sandbox == SandboxMode::NoUserns {
            tracing::warn!("without user namespaces, workers have the daemon's own uid");
        }
        config.service_ids = user.ids;
        // Whoever else is this user is no administrator.
        config.service = Some(true);
        let helper = AgentStarter::Helper(rights::start_helper(&config, &user)?);
        let agents = FilesAgents::new(helper, FilesAgentConfig::default());
        let roots = Roots::new(&config.worktree_roots, Some(agents)).map_err(DaemonError::Roots)?;
        give_up_root(&config, user, subtree.as_ref().ok())?;
        Ok(Self { config, subtree, roots })
    }
}

fn give_up_root(
    config: &Config,
    mut user: Identity,
    subtree: Option<&CgroupSubtree>,
) -> Result<(), DaemonError> {
    let group = config.socket_group.as_deref().map(find_group).transpose()?;
    give::state_folder(&config.state_dir, user.ids).map_err(DaemonError::Give)?;
    for socket in [&config.socket, &config.http.socket_beside(&config.socket)] {
        if let Some(folder) =
            socket.parent().filter(|folder| *folder != config.state_dir && *folder != Path::new(""))
        {
            give::socket_folder(folder, user.ids, group).map_err(DaemonError::Give)?;
        }
    }
    if let Some(subtree) = subtree {
        subtree.hand_over(user.ids).map_err(DaemonError::HandOver)?;
    }
    // Workers inherit the groups: a process in a user namespace of its own cannot drop them.
    user.groups.retain(|group| *group != user.ids.gid);
    // Sockets are given to this group by their owner.
    user.groups.extend(group.filter(|group| !user.is_member(*group)));
    notify::connect();
    privileges::become_user_for_good(&user).map_err(DaemonError::BecomeUser)?;
    tracing::info!(uid = user.ids.uid, gid = user.ids.gid, "root's rights are given up");
    Ok(())
}
