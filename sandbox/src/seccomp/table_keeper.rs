//! The filter of the keeper: it waits, receives and sends descriptors, reaps. It never starts a process: zygotes fork
//! their successors.

use super::bpf::{Check, FilterRow};

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;
const ANY_CHILD: u32 = -1_i32 as u32;

/// Rows in the order of their frequency.
pub const TABLE: &[FilterRow] = &[
    FilterRow::allow(
        libc::SYS_ppoll,
        "ppoll",
        &[],
        "waits for the supervisor, a new connection, an exited child or the end of the grace",
    ),
    FilterRow::allow(libc::SYS_recvmsg, "recvmsg", &[], "orders, with the descriptors to keep"),
    FilterRow::allow(libc::SYS_sendmsg, "sendmsg", &[], "replies, with the descriptors to return"),
    FilterRow::allow(libc::SYS_read, "read", &[], "empties the signal descriptor"),
    FilterRow::allow(
        libc::SYS_wait4,
        "wait4",
        &[Check::IsInt(0, ANY_CHILD), Check::IsInt(2, libc::WNOHANG as u32)],
        "reaps an exited child, with its use of CPU time and memory",
    ),
    FilterRow::allow(libc::SYS_close, "close", &[], "releases processes on the supervisor's order"),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFD as u32)],
        "std checks that a descriptor is open before it closes it, in builds with checks",
    ),
    FilterRow::allow(libc::SYS_accept4, "accept4", &[], "a new connection on the adoption socket"),
    FilterRow::allow(
        libc::SYS_clock_gettime,
        "clock_gettime",
        &[],
        "the grace, where the clock source has no vdso",
    ),
    FilterRow::allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    FilterRow::allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's large blocks; never executable",
    ),
    FilterRow::allow(libc::SYS_munmap, "munmap", &[], "malloc returns large blocks"),
    FilterRow::allow(libc::SYS_mremap, "mremap", &[], "its tables grow with the sessions"),
    FilterRow::allow(
        libc::SYS_pidfd_send_signal,
        "pidfd_send_signal",
        &[Check::IsInt(1, libc::SIGKILL as u32)],
        "kills the kept workers; without a pid namespace they would outlive the keeper",
    ),
    FilterRow::allow(
        libc::SYS_exit_group,
        "exit_group",
        &[],
        "exits: the kernel then kills the whole pid namespace",
    ),
];
