//! The filter of the broker: reading files through descriptors that it holds or opens, and its one socket. No network, no
//! processes, no signals, no new privileges. Which files is Landlock's and `openat2`'s business.

use super::bpf::{Action, Check, Row};

const fn allow(
    number: libc::c_long,
    name: &'static str,
    when: &'static [Check],
    reason: &'static str,
) -> Row {
    Row { number, name, when, action: Action::Allow, reason }
}

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;

/// Rows in the order of their frequency.
pub const TABLE: &[Row] = &[
    allow(libc::SYS_read, "read", &[], "requests and file contents"),
    allow(libc::SYS_write, "write", &[], "answers; no file is ever open for writing, and FSIZE is 0"),
    allow(
        libc::SYS_openat2,
        "openat2",
        &[],
        "opens beneath the worktree's handle; what it could open elsewhere Landlock refuses",
    ),
    allow(libc::SYS_close, "close", &[], "everything opened"),
    allow(libc::SYS_newfstatat, "newfstatat", &[], "stat of an open file, as newer libcs do it"),
    allow(libc::SYS_fstat, "fstat", &[], "the same in other libcs"),
    allow(libc::SYS_getdents64, "getdents64", &[], "lists folders"),
    allow(libc::SYS_lseek, "lseek", &[], "a listed folder's handle is wound back"),
    allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFL as u32)],
        "fdopendir asks whether the handle can be read",
    ),
    allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFD as u32)],
        "debug builds of std look whether a descriptor is open before they close it",
    ),
    allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_SETFD as u32), Check::IsInt(2, libc::FD_CLOEXEC as u32)],
        "fdopendir marks its handle close-on-exec",
    ),
    allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's large blocks; never executable",
    ),
    allow(libc::SYS_munmap, "munmap", &[], "malloc gives large blocks back"),
    allow(libc::SYS_mremap, "mremap", &[], "buffers grow with what arrives"),
    allow(libc::SYS_exit_group, "exit_group", &[], "the end"),
];
