//! The jail of the egress process: its steps in order. Every step fails closed.

use nix::sys::stat::{Mode, umask};
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::landlock;
use vm_system_sandbox::namespaces::become_untraced;
use vm_system_sandbox::seccomp::{self, table_egress};
use vm_system_sandbox::step::{AtStep as _, JailStep, StepError};
use vm_system_sandbox::{privileges, process, rlimit};

/// Confines this process to its channel and to connections that it makes: no file, no process, no capability. `user`: the one that a
/// process of root becomes.
pub(crate) fn enter(user: Option<Identity>) -> Result<(), StepError> {
    process::settle().at_step(JailStep::Signals)?;
    umask(Mode::from_bits_truncate(0o077));
    process::die_first_of_memory_shortage().at_step(JailStep::OomScore)?;
    // It has secrets in its memory.
    become_untraced(user)?;
    rlimit::egress().at_step(JailStep::Rlimits)?;
    privileges::drop_all().at_step(JailStep::Privileges)?;
    privileges::deny_write_execute().at_step(JailStep::Mdwe)?;
    landlock::restrict_to_connections().at_step(JailStep::Landlock)?;
    seccomp::install(table_egress::TABLE).at_step(JailStep::Seccomp)
}
