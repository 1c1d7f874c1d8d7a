//! System-call filters: tables of rows with a reason each, compiled to BPF. What no row allows never happens: it kills
//! the process, or, where a supervisor listens, freezes it in the call until the supervisor has killed it.
//!
//! - [`bpf`]: rows → instructions
//! - [`table_worker`]: zygote and worker; its one clone row is a notification
//! - [`table_keeper`]: pid 1 of the jail
//! - [`table_broker`]: the process that touches files on a session's behalf
//! - [`table_command`]: commands of the operator: what they are refused
//! - [`notify`]: the supervisor's side of the clone row and of forbidden calls; [`names`]: what they are called

pub mod bpf;
pub mod names;
pub mod notify;
pub mod table_broker;
pub mod table_command;
pub mod table_keeper;
pub mod table_worker;

use crate::sys;
use bpf::{Otherwise, Row};
use std::io;
use std::os::fd::OwnedFd;

/// Puts the calling process under a table. Needs `no_new_privs`.
pub fn install(table: &[Row]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Kill)?)
}

/// Puts the calling process under a table of refusals: what no row names goes through. Needs `no_new_privs`.
pub fn install_refusals(table: &[Row]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Allow)?)
}

/// As [`install`], for processes that a supervisor watches: what no row allows is reported to the listener that this
/// gives, and does not return. With nobody left who listens, it fails with ENOSYS.
pub fn install_with_listener(table: &[Row]) -> io::Result<OwnedFd> {
    sys::install_filter_with_listener(&bpf::compile(table, Otherwise::Report)?)
}

/// The program of [`install_with_listener`] without a listener, to see what it refuses.
pub fn install_unattended(table: &[Row]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table, Otherwise::Report)?)
}

/// The wait status of a process killed by its filter is this signal.
pub const KILLED_BY: i32 = libc::SIGSYS;
