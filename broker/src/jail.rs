//! The broker's walls, in the order in which they are put up. Every step fails closed: a broker that could not confine
//! itself says which step failed and ends before it has seen a request.

use nix::sys::stat::{Mode, umask};
use std::os::fd::{AsFd, OwnedFd};
use vm_system_protocol::limits::FS_READ_BYTES;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::landlock::{self, Access};
use vm_system_sandbox::namespaces::become_untraced;
use vm_system_sandbox::seccomp::{self, table_broker};
use vm_system_sandbox::step::{AtStep as _, Step, StepError};
use vm_system_sandbox::{privileges, process, rlimit};

/// What the walls must leave open.
#[derive(Debug)]
pub(crate) struct Needs {
    /// The session may change files of the worktree.
    pub(crate) write: bool,
    /// The session has databases.
    pub(crate) database: bool,
    /// The worktree's folder.
    pub(crate) worktree: OwnedFd,
    /// Folders of other mounts beneath it may be entered.
    pub(crate) cross_mounts: bool,
    /// The user that a broker of root becomes.
    pub(crate) user: Identity,
    /// The folder of the workspace's databases; without it there are only databases in memory.
    pub(crate) workspace: Option<OwnedFd>,
}

/// Confines this process to the files beneath `worktree`, those of its workspace, and its channel.
///
/// A broker that root starts becomes the worktree's owner with its groups, so that a session reads and changes what the owner
/// may and nothing else; the owner may be root, but then without any capability. Landlock is in force where the kernel has it.
pub(crate) fn enter(needs: &Needs) -> Result<(), StepError> {
    process::settle().at(Step::Signals)?;
    // New files are like those that the owner makes; which bits a script asks for is its business.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    process::die_first_of_memory_shortage().at(Step::OomScore)?;
    // It holds the workspace's databases, which are not the owner's to look into.
    become_untraced(needs.user.clone())?;
    if let Some(workspace) = &needs.workspace {
        // SQLite opens by names; they are relative to this folder (see `database`).
        nix::unistd::fchdir(workspace).at(Step::Descriptors)?;
    }
    rlimit::broker(largest_file(needs)).at(Step::Rlimits)?;
    privileges::drop_all().at(Step::Privileges)?;
    privileges::deny_write_execute().at(Step::Mdwe)?;
    let access = if needs.write { Access::ReadWrite } else { Access::Read };
    let mut open = vec![(needs.worktree.as_fd(), access)];
    open.extend(needs.workspace.as_ref().map(|workspace| (workspace.as_fd(), Access::ReadWrite)));
    landlock::restrict(&open).at(Step::Landlock)?;
    seccomp::install(&table_broker::rows(needs.write, needs.database)).at(Step::Seccomp)
}

/// Behind the limits of each call (bytes).
fn largest_file(needs: &Needs) -> u64 {
    match (needs.database, needs.write) {
        (true, _) => u64::MAX,
        (false, true) => FS_READ_BYTES as u64,
        (false, false) => 0,
    }
}
