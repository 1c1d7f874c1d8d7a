//! The broker's jail: its steps in order. Every step fails closed: a broker that cannot confine itself reports the failed
//! step and exits before it reads a request.

use nix::sys::stat::{Mode, umask};
use std::os::fd::{AsFd, OwnedFd};
use vm_system_protocol::limits::FS_READ_BYTES;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::landlock::{self, Access};
use vm_system_sandbox::namespaces::become_untraced;
use vm_system_sandbox::seccomp::{self, table_broker};
use vm_system_sandbox::step::{AtStep as _, JailStep, StepError};
use vm_system_sandbox::{privileges, process, rlimit};

/// The rights that the jail must leave.
#[derive(Debug)]
pub(crate) struct Needs {
    /// The session may change files of the worktree.
    pub(crate) write: bool,
    /// The session has databases.
    pub(crate) database: bool,
    /// The worktree's folder.
    pub(crate) worktree: OwnedFd,
    /// Folders of other mounts beneath the worktree may be entered.
    pub(crate) cross_mounts: bool,
    /// The user that a broker started by root becomes.
    pub(crate) user: Identity,
    /// The folder of the workspace's databases; without one there are only databases in memory.
    pub(crate) workspace: Option<OwnedFd>,
}

/// Confines this process to the files of the worktree and the workspace, and its channel.
///
/// A broker that root starts takes the uid, gid and groups of the worktree's owner, so that a session has exactly the owner's
/// access; the owner may be root, but then without any capability. Landlock is in force if the kernel has it.
pub(crate) fn enter(needs: &Needs) -> Result<(), StepError> {
    process::settle().at(JailStep::Signals)?;
    // New files get the mode that the script requests, as far as this umask permits.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    process::die_first_of_memory_shortage().at(JailStep::OomScore)?;
    // This process has the workspace's databases open, which the worktree's owner must not read.
    become_untraced(needs.user.clone())?;
    if let Some(workspace) = &needs.workspace {
        // SQLite opens files by name, relative to this folder (see `database`).
        nix::unistd::fchdir(workspace).at(JailStep::Descriptors)?;
    }
    rlimit::broker(largest_file(needs)).at(JailStep::Rlimits)?;
    privileges::drop_all().at(JailStep::Privileges)?;
    privileges::deny_write_execute().at(JailStep::Mdwe)?;
    let access = if needs.write { Access::ReadWrite } else { Access::Read };
    let mut open = vec![(needs.worktree.as_fd(), access)];
    open.extend(needs.workspace.as_ref().map(|workspace| (workspace.as_fd(), Access::ReadWrite)));
    landlock::restrict(&open).at(JailStep::Landlock)?;
    seccomp::install(&table_broker::rows(needs.write, needs.database)).at(JailStep::Seccomp)
}

/// Largest file, as a second limit besides those of each call (bytes).
fn largest_file(needs: &Needs) -> u64 {
    match (needs.database, needs.write) {
        (true, _) => u64::MAX,
        (false, true) => FS_READ_BYTES as u64,
        (false, false) => 0,
    }
}
