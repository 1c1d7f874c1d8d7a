//! The filter of the broker: files beneath the directories that Landlock left open, through descriptors it already
//! holds or opens, and its one socket. No network, no processes, no signals, no new privileges.

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

/// Rows by purpose.
pub const TABLE: &[Row] = &[
    // The channel.
    allow(libc::SYS_recvmsg, "recvmsg", &[], "takes requests"),
    allow(libc::SYS_sendmsg, "sendmsg", &[], "sends answers"),
    allow(libc::SYS_ppoll, "ppoll", &[], "waits for a request or a deadline"),
    // Files: Landlock decides which, the kernel's own rights as well.
    allow(
        libc::SYS_openat2,
        "openat2",
        &[],
        "opens beneath a directory handle, without symlinks that lead out",
    ),
    allow(libc::SYS_openat, "openat", &[], "SQLite and std open by path; Landlock refuses what is outside"),
    allow(libc::SYS_read, "read", &[], "file contents"),
    allow(libc::SYS_pread64, "pread64", &[], "SQLite pages"),
    allow(libc::SYS_write, "write", &[], "file contents"),
    allow(libc::SYS_pwrite64, "pwrite64", &[], "SQLite pages"),
    allow(libc::SYS_lseek, "lseek", &[], "positions"),
    allow(libc::SYS_ftruncate, "ftruncate", &[], "shortens files, SQLite's journal too"),
    allow(libc::SYS_fallocate, "fallocate", &[], "SQLite's write-ahead index"),
    allow(libc::SYS_fsync, "fsync", &[], "durable writes"),
    allow(libc::SYS_fdatasync, "fdatasync", &[], "durable writes"),
    allow(libc::SYS_fcntl, "fcntl", &[], "SQLite's byte-range locks and close-on-exec"),
    allow(libc::SYS_statx, "statx", &[], "stat"),
    allow(libc::SYS_fstat, "fstat", &[], "stat of an open file"),
    allow(libc::SYS_newfstatat, "newfstatat", &[], "stat by name, as libc does it"),
    allow(libc::SYS_faccessat, "faccessat", &[], "SQLite asks whether its journal exists"),
    allow(libc::SYS_faccessat2, "faccessat2", &[], "the same in newer libcs"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_access, "access", &[], "the same in older calls"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_stat, "stat", &[], "SQLite's bundled calls"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_lstat, "lstat", &[], "SQLite's bundled calls"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_open, "open", &[], "SQLite's bundled calls; Landlock refuses what is outside"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_unlink, "unlink", &[], "SQLite removes its journal"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_readlink, "readlink", &[], "SQLite resolves its path"),
    allow(libc::SYS_readlinkat, "readlinkat", &[], "names of links"),
    allow(libc::SYS_getcwd, "getcwd", &[], "SQLite resolves its path"),
    allow(libc::SYS_getdents64, "getdents64", &[], "directories"),
    allow(libc::SYS_mkdirat, "mkdirat", &[], "makes directories"),
    allow(libc::SYS_unlinkat, "unlinkat", &[], "removes files and directories"),
    allow(libc::SYS_renameat2, "renameat2", &[], "renames, never over a grant's border (Landlock refers)"),
    allow(libc::SYS_fchmod, "fchmod", &[], "SQLite gives its journal the database's mode"),
    allow(
        libc::SYS_fchown,
        "fchown",
        &[],
        "SQLite gives its journal the database's owner; a no-op for one user",
    ),
    allow(libc::SYS_geteuid, "geteuid", &[], "SQLite asks before it would change an owner"),
    allow(libc::SYS_getpid, "getpid", &[], "SQLite notices forks"),
    allow(libc::SYS_utimensat, "utimensat", &[], "SQLite touches its shared-memory file"),
    allow(libc::SYS_dup, "dup", &[], "directory handles are listed through a copy"),
    allow(libc::SYS_close, "close", &[], "everything opened"),
    // Memory and time.
    allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "memory and SQLite's shared index; never executable",
    ),
    allow(libc::SYS_munmap, "munmap", &[], "gives memory back"),
    allow(libc::SYS_mremap, "mremap", &[], "realloc of large blocks"),
    allow(
        libc::SYS_mprotect,
        "mprotect",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's arenas; never executable",
    ),
    allow(libc::SYS_madvise, "madvise", &[], "gives memory back"),
    allow(libc::SYS_clock_gettime, "clock_gettime", &[], "clocks without a vdso"),
    allow(libc::SYS_clock_nanosleep, "clock_nanosleep", &[], "SQLite waits for a lock"),
    allow(libc::SYS_gettimeofday, "gettimeofday", &[], "clocks without a vdso"),
    allow(libc::SYS_futex, "futex", &[], "locks in libc and std"),
    allow(libc::SYS_getrandom, "getrandom", &[], "hash seeds, SQLite's random numbers"),
    allow(libc::SYS_rt_sigreturn, "rt_sigreturn", &[], "returns from the interruption handler"),
    allow(libc::SYS_restart_syscall, "restart_syscall", &[], "a wait that a stop signal broke"),
    Row {
        number: libc::SYS_clone3,
        name: "clone3",
        when: &[],
        action: Action::Fail(libc::ENOSYS as u16),
        reason: "no threads: libc falls back to clone, which is killed",
    },
    allow(libc::SYS_exit_group, "exit_group", &[], "the end"),
];
