//! The broker's walls, in the order in which they are put up. Every step fails closed: a broker that could not confine
//! itself says which step failed and ends before it has seen a request.

use nix::sys::stat::fstat;
use std::os::fd::{AsFd, OwnedFd};
use vm_system_sandbox::landlock::{self, Access};
use vm_system_sandbox::namespaces::{Ids, become_service_user};
use vm_system_sandbox::seccomp::{self, table_broker};
use vm_system_sandbox::step::{AtStep as _, Step, StepError};
use vm_system_sandbox::{privileges, process, rlimit};

/// Confines this process to reading beneath `worktree` and talking on its channel.
///
/// A broker that root starts becomes the worktree's owner, so that a session reads what the owner may read and nothing
/// else; the owner may be root, but then without any capability. Landlock is in force where the kernel has it.
pub(crate) fn enter(worktree: &OwnedFd) -> Result<(), StepError> {
    process::settle().at(Step::Signals)?;
    process::die_first_of_memory_shortage().at(Step::OomScore)?;
    let owner = fstat(worktree).at(Step::Descriptors)?;
    become_service_user(Ids { uid: owner.st_uid, gid: owner.st_gid })?;
    rlimit::broker().at(Step::Rlimits)?;
    privileges::drop_all().at(Step::Privileges)?;
    privileges::deny_write_execute().at(Step::Mdwe)?;
    landlock::restrict(&[(worktree.as_fd(), Access::Read)]).at(Step::Landlock)?;
    seccomp::install(table_broker::TABLE).at(Step::Seccomp)
}
