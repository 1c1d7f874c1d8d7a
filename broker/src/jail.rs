//! The broker's jail: its steps in order. Every step fails closed: a broker that cannot confine itself reports the failed
//! step and exits before it reads a request.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
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
    pub(crate) served: Served,
    /// The user that a broker started by root becomes.
    pub(crate) user: Option<Identity>,
    /// The kernel kills this process when its parent exits.
    pub(crate) dies_with_parent: bool,
}

/// The calls that a broker serves.
#[derive(Debug)]
pub(crate) enum Served {
    /// The files of a worktree.
    Files {
        /// The folder.
        worktree: OwnedFd,
        /// The session may change files.
        write: bool,
        /// Folders of other mounts beneath the worktree may be entered.
        cross_mounts: bool,
    },
    /// The databases of a workspace.
    Databases {
        /// Their folder; without one there are only databases in memory.
        workspace: Option<WorkspaceFiles>,
    },
}

/// The database files of a workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceFiles {
    /// Their folder.
    pub(crate) folder: OwnedFd,
    /// All of them together (bytes).
    pub(crate) max_bytes: u64,
}

/// Confines this process to the files of the worktree or the workspace, and its channel. Landlock is in force if the kernel has it.
pub(crate) fn enter(needs: &Needs) -> Result<(), StepError> {
    process::settle().at_step(JailStep::Signals)?;
    // New files get the mode that the script requests, as far as this umask permits.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    process::die_first_of_memory_shortage().at_step(JailStep::OomScore)?;
    // Other sessions' brokers of the same user must not read this one's memory.
    become_untraced(needs.user.clone())?;
    if needs.dies_with_parent {
        // Last: a change of credentials clears the death signal. A parent that has exited already has closed the channel.
        set_pdeathsig(Signal::SIGKILL).at_step(JailStep::Signals)?;
    }
    let (open, write, database) = match &needs.served {
        Served::Files { worktree, write, .. } => (Some(worktree), *write, false),
        Served::Databases { workspace } => (workspace.as_ref().map(|files| &files.folder), true, true),
    };
    if let Served::Databases { workspace: Some(workspace) } = &needs.served {
        // SQLite opens files by name, relative to this folder (see `database`).
        nix::unistd::fchdir(&workspace.folder).at_step(JailStep::Descriptors)?;
    }
    // The order of the rest: Landlock needs `no_new_privs`, which `drop_all` sets; the filter is last, since it allows none of these
    // calls.
    rlimit::broker(largest_file(&needs.served)).at_step(JailStep::Rlimits)?;
    privileges::drop_all().at_step(JailStep::Privileges)?;
    privileges::deny_write_execute().at_step(JailStep::Mdwe)?;
    let access = if write { Access::ReadWrite } else { Access::Read };
    let open: Vec<_> = open.map(|folder| (folder.as_fd(), access)).into_iter().collect();
    landlock::restrict(&open).at_step(JailStep::Landlock)?;
    seccomp::install(&table_broker::rows(write, database)).at_step(JailStep::Seccomp)
}

/// Largest file, as a second limit besides those of each call (bytes).
fn largest_file(served: &Served) -> u64 {
    match served {
        // A journal has a page more for each header, and eight bytes for each page.
        Served::Databases { workspace: Some(files) } => {
            files.max_bytes.saturating_add(files.max_bytes / 64).saturating_add(1 << 20)
        }
        Served::Files { write: true, .. } => FS_READ_BYTES as u64,
        Served::Databases { workspace: None } | Served::Files { write: false, .. } => 0,
    }
}
