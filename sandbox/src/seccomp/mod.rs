//! System-call filters: tables of rows with a reason each, compiled to BPF. What no row allows kills the process.
//!
//! - [`bpf`]: rows → instructions
//! - [`table_worker`]: zygote and worker; its one clone row is a notification
//! - [`table_keeper`]: pid 1 of the jail
//! - [`table_broker`]: the process that touches files on a session's behalf
//! - [`notify`]: the supervisor's side of the clone row

pub mod bpf;
pub mod notify;
pub mod table_broker;
pub mod table_keeper;
pub mod table_worker;

use crate::sys;
use bpf::Row;
use std::io;
use std::os::fd::OwnedFd;

/// Puts the calling process under a table. Needs `no_new_privs`.
pub fn install(table: &[Row]) -> io::Result<()> {
    sys::install_filter(&bpf::compile(table)?)
}

/// As [`install`], for a table with a row that notifies; gives the listener.
pub fn install_with_listener(table: &[Row]) -> io::Result<OwnedFd> {
    sys::install_filter_with_listener(&bpf::compile(table)?)
}

/// The wait status of a process killed by its filter is this signal.
pub const KILLED_BY: i32 = libc::SIGSYS;
