//! The filter of the broker: reading files through descriptors that it holds or opens, and its one socket. No network, no
//! processes, no signals, no new privileges. Which files is Landlock's and `openat2`'s business.

use super::bpf::{Check, Row};

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;

/// Rows in the order of their frequency.
pub const TABLE: &[Row] = &[
    Row::allow(libc::SYS_read, "read", &[], "requests and file contents"),
    Row::allow(libc::SYS_write, "write", &[], "answers; no file is ever open for writing, and FSIZE is 0"),
    Row::allow(
        libc::SYS_openat2,
        "openat2",
        &[],
        "opens beneath the worktree's handle; what it could open elsewhere Landlock refuses",
    ),
    Row::allow(libc::SYS_close, "close", &[], "everything opened"),
    Row::allow(libc::SYS_newfstatat, "newfstatat", &[], "stat of an open file, as newer libcs do it"),
    Row::allow(libc::SYS_fstat, "fstat", &[], "the same in other libcs"),
    Row::allow(libc::SYS_getdents64, "getdents64", &[], "lists folders"),
    Row::allow(libc::SYS_lseek, "lseek", &[], "a listed folder's handle is wound back"),
    Row::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFL as u32)],
        "fdopendir asks whether the handle can be read",
    ),
    Row::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFD as u32)],
        "debug builds of std look whether a descriptor is open before they close it",
    ),
    Row::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_SETFD as u32), Check::IsInt(2, libc::FD_CLOEXEC as u32)],
        "fdopendir marks its handle close-on-exec",
    ),
    Row::allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    Row::allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's large blocks; never executable",
    ),
    Row::allow(libc::SYS_munmap, "munmap", &[], "malloc gives large blocks back"),
    Row::allow(libc::SYS_mremap, "mremap", &[], "buffers grow with what arrives"),
    Row::allow(libc::SYS_exit_group, "exit_group", &[], "the end"),
];
