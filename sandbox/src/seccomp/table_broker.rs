//! The filters of the broker: files through descriptors that it holds or opens, and its one socket. No network, no
//! processes, no signals, no new privileges. Landlock and `openat2` restrict the files.
//!
//! [`TABLE`] is for reading. [`WRITING`] is added if the session may change files, [`DATABASE`] in addition to both for
//! databases. No table allows creating links, devices, pipes or sockets.

use super::bpf::{Check, FilterRow};

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;

/// Reading. Rows in the order of their frequency.
pub const TABLE: &[FilterRow] = &[
    FilterRow::allow(libc::SYS_read, "read", &[], "requests and file contents"),
    FilterRow::allow(
        libc::SYS_write,
        "write",
        &[],
        "replies; without WRITING no file is ever open for writing, and FSIZE is 0",
    ),
    FilterRow::allow(
        libc::SYS_openat2,
        "openat2",
        &[],
        "opens beneath the worktree's handle; Landlock refuses every other file",
    ),
    FilterRow::allow(libc::SYS_close, "close", &[], "everything opened"),
    FilterRow::allow(libc::SYS_newfstatat, "newfstatat", &[], "stat of an open file, as newer libcs do it"),
    FilterRow::allow(libc::SYS_fstat, "fstat", &[], "the same in other libcs"),
    FilterRow::allow(
        libc::SYS_fstatfs,
        "fstatfs",
        &[],
        "whether an open file is one of the kernel, as in /proc",
    ),
    FilterRow::allow(libc::SYS_getdents64, "getdents64", &[], "lists folders"),
    FilterRow::allow(libc::SYS_faccessat2, "faccessat2", &[], "access() of a file opened as a path"),
    FilterRow::allow(
        libc::SYS_readlinkat,
        "readlinkat",
        &[],
        "realpath() follows links itself, step by step",
    ),
    FilterRow::allow(libc::SYS_lseek, "lseek", &[], "rewinds the handle of a listed folder"),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFL as u32)],
        "fdopendir checks whether the handle can be read",
    ),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFD as u32)],
        "debug builds of std check that a descriptor is open before they close it",
    ),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_SETFD as u32), Check::IsInt(2, libc::FD_CLOEXEC as u32)],
        "fdopendir marks its handle close-on-exec",
    ),
    FilterRow::allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    FilterRow::allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's large blocks; never executable",
    ),
    FilterRow::allow(libc::SYS_munmap, "munmap", &[], "malloc returns large blocks"),
    FilterRow::allow(libc::SYS_mremap, "mremap", &[], "receive buffers grow"),
    FilterRow::allow(libc::SYS_exit_group, "exit_group", &[], "exits"),
];

/// Changing files, in addition to [`TABLE`].
pub const WRITING: &[FilterRow] = &[
    FilterRow::allow(
        libc::SYS_ftruncate,
        "ftruncate",
        &[],
        "truncates a file after checking that it is regular",
    ),
    FilterRow::allow(libc::SYS_mkdirat, "mkdirat", &[], "creates folders"),
    FilterRow::allow(libc::SYS_unlinkat, "unlinkat", &[], "removes files and folders"),
    FilterRow::allow(libc::SYS_renameat, "renameat", &[], "renames"),
    FilterRow::allow(
        libc::SYS_renameat2,
        "renameat2",
        &[Check::IsInt(4, libc::RENAME_NOREPLACE)],
        "moves up folders that are being removed with their content",
    ),
];

/// Databases, in addition to [`TABLE`] and [`WRITING`].
pub const DATABASE: &[FilterRow] = &[
    FilterRow::allow(
        libc::SYS_openat,
        "openat",
        &[],
        "SQLite opens by name, relative to the workspace's folder; Landlock refuses every other file",
    ),
    #[cfg(target_arch = "x86_64")]
    FilterRow::allow(libc::SYS_access, "access", &[], "SQLite checks whether a journal was left behind"),
    #[cfg(target_arch = "x86_64")]
    FilterRow::allow(libc::SYS_unlink, "unlink", &[], "SQLite removes a journal that was left behind"),
    #[cfg(not(target_arch = "x86_64"))]
    FilterRow::allow(
        libc::SYS_faccessat,
        "faccessat",
        &[],
        "SQLite checks whether a journal was left behind",
    ),
    FilterRow::allow(
        libc::SYS_fchown,
        "fchown",
        &[],
        "if the broker is root's, SQLite sets a journal's owner to its database's: root, without capabilities",
    ),
    FilterRow::allow(libc::SYS_pread64, "pread64", &[], "SQLite reads pages"),
    FilterRow::allow(libc::SYS_pwrite64, "pwrite64", &[], "SQLite writes pages"),
    FilterRow::allow(libc::SYS_fdatasync, "fdatasync", &[], "a commit becomes durable"),
    FilterRow::allow(
        libc::SYS_fsync,
        "fsync",
        &[],
        "the same of an SQLite that was compiled without HAVE_FDATASYNC",
    ),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_SETLK as u32)],
        "sessions of one workspace share its files by locks that never wait",
    ),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETLK as u32)],
        "SQLite checks for the holder of a lock",
    ),
    FilterRow::allow(
        libc::SYS_geteuid,
        "geteuid",
        &[],
        "SQLite checks whether a new journal needs another owner",
    ),
    FilterRow::allow(libc::SYS_getpid, "getpid", &[], "SQLite notes that it was not forked"),
    FilterRow::allow(libc::SYS_clock_nanosleep, "clock_nanosleep", &[], "waits for another session's lock"),
    FilterRow::allow(
        libc::SYS_clock_gettime,
        "clock_gettime",
        &[Check::Masked(0, !(libc::CLOCK_MONOTONIC as u32), 0)],
        "the time and the deadline of a statement, on machines whose clock source has no vdso",
    ),
    FilterRow::allow(libc::SYS_gettimeofday, "gettimeofday", &[], "SQLite's time, on the same machines"),
];

/// The rows for a session's rights.
pub fn rows(write: bool, database: bool) -> Vec<FilterRow> {
    let mut rows = TABLE.to_vec();
    if write || database {
        rows.extend_from_slice(WRITING);
    }
    if database {
        rows.extend_from_slice(DATABASE);
    }
    rows
}
