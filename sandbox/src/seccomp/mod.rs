//! System-call filters: tables of rows with a reason each, compiled to BPF. A call that no row allows is never executed: it kills
//! the process, or, if a supervisor listens, blocks the process in the call until the supervisor has killed it. In programs that
//! are not ours it fails.
//!
//! - [`bpf`]: rows → instructions
//! - [`table_worker`]: zygote and worker; its one clone row is a notification
//! - [`table_keeper`]: pid 1 of the jail
//! - [`table_broker`]: the process that touches files on a session's behalf
//! - [`table_egress`]: the process that makes the HTTP requests of sessions
//! - [`table_command`]: ordinary programs, the operator's commands
//! - [`table_supervisor`]: the supervisor, as refusals; [`table_helper`]: more of them for the spawn helper
//! - [`notify`]: the supervisor's side of the clone row and of forbidden calls; [`names`]: names of system calls

pub mod bpf;
pub mod names;
pub mod notify;
pub mod table_broker;
pub mod table_command;
pub mod table_egress;
pub mod table_helper;
pub mod table_keeper;
pub mod table_supervisor;
pub mod table_worker;

use crate::sys;
use bpf::{FilterRow, Otherwise};
use std::io;
use std::os::fd::OwnedFd;

/// Installs a table for the calling process. Needs `no_new_privs`.
pub fn install(table: &[FilterRow]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Kill)?)
}

/// As [`install`], for programs that are not ours: a call that no row allows fails with ENOSYS, as one that the kernel does not have.
pub fn install_for_program(table: &[FilterRow]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Fail(libc::ENOSYS as u16))?)
}

/// Installs a table of refusals for the calling process: all calls without a row are allowed. Needs `no_new_privs`.
pub fn install_refusals(table: &[FilterRow]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Allow)?)
}

/// As [`install_refusals`], for all threads of the process. Sets `no_new_privs` for all of them.
pub fn install_refusals_everywhere(table: &[FilterRow]) -> io::Result<()> {
    sys::Call::NO_NEW_PRIVILEGES.make()?;
    sys::install_filter_everywhere(&bpf::compile(table, Otherwise::Allow)?)
}

/// As [`install`], for processes that a supervisor watches: a call that no row allows is reported to the returned listener and
/// blocks. Without a listener it fails with ENOSYS.
pub fn install_with_listener(table: &[FilterRow]) -> io::Result<OwnedFd> {
    sys::install_filter_with_listener(&bpf::compile(table, Otherwise::Report)?)
}

/// The program of [`install_with_listener`] without a listener, to test its refusals.
pub fn install_unattended(table: &[FilterRow]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Report)?)
}

/// The signal in the wait status of a process that its filter killed.
pub const KILLED_BY: i32 = libc::SIGSYS;
