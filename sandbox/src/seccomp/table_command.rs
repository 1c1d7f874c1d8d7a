//! The filter of commands: what ordinary programs (shells, compilers, interpreters, version control) need, and nothing else. A call
//! without a row fails with ENOSYS, as on a kernel that does not have it: C libraries and programs have a second way for what they
//! try. Where a call is allowed for some arguments only, the others fail with an error that programs expect of the call.
//!
//! Sockets: only connected stream pairs. A socket of any other kind could connect to or send to a socket file of the worktree, on
//! which a process of the host may listen, and pass it descriptors; no filter can read a path, and Landlock does not mediate it. The
//! kernel refuses to connect a pair again, and to send from it to another address.

use super::bpf::{Check, FilterAction, FilterRow, Number};
use super::names::names;

const CREATES: u32 = libc::O_CREAT as u32 | UNNAMED;
/// The bit of `O_TMPFILE` that distinguishes it from `O_DIRECTORY`.
const UNNAMED: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
const SOCKET_FLAGS: u32 = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;

const fn fail(
    number: Number,
    name: &'static str,
    when: &'static [Check],
    errno: i32,
    reason: &'static str,
) -> FilterRow {
    FilterRow { number, name, when, action: FilterAction::Fail(errno as u16), reason }
}

/// A call with a mode as argument `$mode`, without set-user-id and set-group-id bits; with them it fails.
macro_rules! mode {
    ($number:ident, $name:literal, $mode:literal) => {
        FilterRow::allow(
            libc::$number,
            $name,
            &[Check::Masked($mode, SET_ID, 0)],
            "no program that runs as the worktree's owner for whoever starts it outside",
        )
    };
}

/// An `ioctl` request.
macro_rules! request {
    ($request:ident, $reason:literal) => {
        FilterRow::allow(libc::SYS_ioctl, "ioctl", &[Check::IsInt(1, libc::$request as u32)], $reason)
    };
}

/// An operation of `prctl`.
macro_rules! operation {
    ($operation:ident, $reason:literal) => {
        FilterRow::allow(libc::SYS_prctl, "prctl", &[Check::IsInt(0, libc::$operation as u32)], $reason)
    };
}

/// Calls of which only some are allowed, and what the others get. The first row that matches decides.
const WITH_ARGUMENTS: &[FilterRow] = &[
    FilterRow::allow(
        libc::SYS_openat,
        "openat",
        &[Check::Masked(2, CREATES, 0)],
        "opening what exists; the mode means nothing then",
    ),
    mode!(SYS_openat, "openat", 3),
    FilterRow::allow(
        libc::SYS_clone,
        "clone",
        &[Check::Masked(0, NAMESPACES, 0)],
        "processes and threads, in no new namespace; clone3 has no row: its flags are in memory, and libcs fall back to clone",
    ),
    fail(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_SETLEASE as u32)],
        libc::EPERM,
        "a process of the host that opens a leased file of the worktree waits for the holder",
    ),
    FilterRow::allow(libc::SYS_fcntl, "fcntl", &[], "flags, duplicates and record locks"),
    FilterRow::allow(
        libc::SYS_socketpair,
        "socketpair",
        &[Check::IsInt(0, libc::AF_UNIX as u32), Check::Masked(1, !SOCKET_FLAGS, libc::SOCK_STREAM as u32)],
        "event loops wake themselves with a pair, and node connects its child processes by pairs",
    ),
    FilterRow::allow(libc::SYS_sendto, "sendto", &[Check::Is(4, 0)], "send() on a pair; to an address never"),
    request!(TCGETS, "isatty()"),
    request!(TIOCGWINSZ, "the width of a terminal; there is none"),
    request!(TIOCGPGRP, "whether a shell is in the foreground of a terminal"),
    request!(FIONREAD, "how much can be read"),
    request!(FIONBIO, "not blocking"),
    request!(FIOCLEX, "close on exec"),
    request!(FIONCLEX, "not close on exec"),
    request!(FICLONE, "cp shares blocks where the file system can"),
    mode!(SYS_fchmod, "fchmod", 1),
    mode!(SYS_fchmodat, "fchmodat", 2),
    mode!(SYS_fchmodat2, "fchmodat2", 2),
    FilterRow::allow(
        libc::SYS_mknodat,
        "mknodat",
        &[Check::Masked(2, libc::S_IFMT | SET_ID, libc::S_IFIFO)],
        "named pipes, where Landlock permits them; no socket files and no devices",
    ),
    FilterRow::allow(
        libc::SYS_renameat2,
        "renameat2",
        &[Check::Masked(4, libc::RENAME_WHITEOUT, 0)],
        "mv and libcs rename with it, in place of nothing or in exchange; no RENAME_WHITEOUT: see below",
    ),
    operation!(PR_SET_NAME, "threads have names"),
    operation!(PR_GET_NAME, "the same"),
    operation!(PR_SET_VMA, "malloc names its memory"),
    operation!(PR_SET_PDEATHSIG, "a child ends with its parent"),
    operation!(PR_GET_PDEATHSIG, "the same"),
    operation!(PR_GET_DUMPABLE, "read before a core dump; there is none"),
    operation!(PR_SET_DUMPABLE, "a program hides its memory from its siblings"),
    operation!(PR_GET_NO_NEW_PRIVS, "it is set"),
    operation!(PR_SET_NO_NEW_PRIVS, "the same"),
    operation!(PR_GET_SECCOMP, "there is a filter"),
    operation!(PR_CAPBSET_READ, "which capabilities there are: none"),
    operation!(PR_SET_CHILD_SUBREAPER, "build tools and supervisors wait for grandchildren"),
    operation!(PR_SET_TIMERSLACK, "precision of timers"),
    fail(
        libc::SYS_madvise,
        "madvise",
        &[Check::IsInt(2, libc::MADV_MERGEABLE as u32)],
        libc::EINVAL,
        "pages merged with those of other processes would reveal their content",
    ),
    FilterRow::allow(libc::SYS_madvise, "madvise", &[], "malloc and garbage collectors give memory back"),
    FilterRow::allow(
        libc::SYS_personality,
        "personality",
        &[Check::IsInt(0, u32::MAX)],
        "reads only; a change weakens the randomisation of addresses",
    ),
    #[cfg(target_arch = "x86_64")]
    FilterRow::allow(libc::SYS_open, "open", &[Check::Masked(1, CREATES, 0)], "as openat"),
    #[cfg(target_arch = "x86_64")]
    mode!(SYS_open, "open", 2),
    #[cfg(target_arch = "x86_64")]
    mode!(SYS_creat, "creat", 1),
    #[cfg(target_arch = "x86_64")]
    mode!(SYS_chmod, "chmod", 1),
    #[cfg(target_arch = "x86_64")]
    FilterRow::allow(
        libc::SYS_mknod,
        "mknod",
        &[Check::Masked(1, libc::S_IFMT | SET_ID, libc::S_IFIFO)],
        "as mknodat",
    ),
    // These calls exist, so the arguments that no row above allows fail with an error of the call: "not implemented" would be
    // false.
    fail(libc::SYS_openat, "openat", &[], libc::EPERM, "a new file with a set-user-id or set-group-id bit"),
    fail(
        libc::SYS_clone,
        "clone",
        &[],
        libc::EPERM,
        "new namespaces open the least tested parts of the kernel",
    ),
    fail(libc::SYS_socket, "socket", &[], libc::EPERM, "no network, and no socket files: see above"),
    fail(libc::SYS_socketpair, "socketpair", &[], libc::EPERM, "datagrams have an address each"),
    fail(libc::SYS_sendto, "sendto", &[], libc::EPERM, "an address"),
    fail(libc::SYS_bind, "bind", &[], libc::EPERM, "makes socket files"),
    fail(libc::SYS_connect, "connect", &[], libc::EPERM, "reaches socket files"),
    fail(libc::SYS_ioctl, "ioctl", &[], libc::ENOTTY, "as a file that does not know the request"),
    fail(libc::SYS_fchmod, "fchmod", &[], libc::EPERM, "set-user-id and set-group-id bits"),
    fail(libc::SYS_fchmodat, "fchmodat", &[], libc::EPERM, "set-user-id and set-group-id bits"),
    fail(libc::SYS_fchmodat2, "fchmodat2", &[], libc::EPERM, "set-user-id and set-group-id bits"),
    fail(libc::SYS_mknodat, "mknodat", &[], libc::EPERM, "socket files and devices"),
    fail(
        libc::SYS_renameat2,
        "renameat2",
        &[],
        libc::EINVAL,
        "RENAME_WHITEOUT leaves a character device; the error is that of a file system without it",
    ),
    fail(libc::SYS_prctl, "prctl", &[], libc::EINVAL, "as a kernel that does not know the operation"),
    fail(libc::SYS_personality, "personality", &[], libc::EPERM, "a change"),
    #[cfg(target_arch = "x86_64")]
    fail(libc::SYS_open, "open", &[], libc::EPERM, "a new file with a set-user-id or set-group-id bit"),
    #[cfg(target_arch = "x86_64")]
    fail(libc::SYS_creat, "creat", &[], libc::EPERM, "a new file with a set-user-id or set-group-id bit"),
    #[cfg(target_arch = "x86_64")]
    fail(libc::SYS_chmod, "chmod", &[], libc::EPERM, "set-user-id and set-group-id bits"),
    #[cfg(target_arch = "x86_64")]
    fail(libc::SYS_mknod, "mknod", &[], libc::EPERM, "socket files and devices"),
];

type Group = (&'static str, &'static [(Number, &'static str)]);

/// Calls that are allowed whatever their arguments are, in groups with one reason each.
#[rustfmt::skip]
const ALLOWED: &[Group] = &[
    ("reads and writes open files and pipes", names![
        SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
        SYS_preadv2, SYS_pwritev2, SYS_lseek, SYS_sendfile, SYS_copy_file_range, SYS_fadvise64, SYS_readahead,
        SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_flock,
    ]),
    ("descriptors, and waiting for them", names![
        SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_pipe2, SYS_ppoll, SYS_pselect6, SYS_epoll_create1,
        SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2, SYS_signalfd4, SYS_timerfd_create,
        SYS_timerfd_gettime, SYS_timerfd_settime, SYS_inotify_init1, SYS_inotify_add_watch,
        SYS_inotify_rm_watch,
    ]),
    ("files by name: the mounts and Landlock decide which; openat2 has no row, because its mode is in memory", names![
        SYS_newfstatat, SYS_fstat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_faccessat2,
        SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_mkdirat, SYS_unlinkat,
        SYS_renameat, SYS_linkat, SYS_symlinkat, SYS_truncate, SYS_utimensat, SYS_umask,
    ]),
    ("owners and attributes: the kernel refuses what the worktree's owner may not do", names![
        SYS_fchown, SYS_fchownat, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr,
        SYS_flistxattr, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr,
        SYS_fremovexattr,
    ]),
    ("memory of the process, within its limits", names![
        SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_brk, SYS_msync, SYS_mlock, SYS_mlock2, SYS_munlock,
        SYS_mlockall, SYS_munlockall, SYS_pkey_alloc, SYS_pkey_free, SYS_pkey_mprotect, SYS_membarrier,
    ]),
    ("programs, and their end", names![
        SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid,
    ]),
    ("threads and locks", names![
        SYS_futex, SYS_set_robust_list, SYS_set_tid_address, SYS_rseq, SYS_gettid, SYS_getcpu, SYS_sched_yield,
        SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
        SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_getpriority, SYS_setpriority,
    ]),
    ("signals: no process outside of the command has a number in its namespace", names![
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigsuspend,
        SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_sigaltstack, SYS_kill, SYS_tkill,
        SYS_tgkill, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_restart_syscall,
    ]),
    ("clocks and timers", names![
        SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_times,
        SYS_getitimer, SYS_setitimer, SYS_timer_create, SYS_timer_delete, SYS_timer_getoverrun,
        SYS_timer_gettime, SYS_timer_settime,
    ]),
    ("who it is; it has one user, one group and no capability, and can get no other", names![
        SYS_getpid, SYS_getppid, SYS_getpgid, SYS_setpgid, SYS_getsid, SYS_setsid, SYS_getuid, SYS_geteuid,
        SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_setuid, SYS_setgid,
        SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_setgroups,
        SYS_capget,
    ]),
    ("limits, which it may only lower, and what it has used", names![
        SYS_prlimit64, SYS_getrusage, SYS_sysinfo, SYS_uname,
    ]),
    ("random numbers", names![SYS_getrandom]),
    ("the two ends of a pair, the only sockets that there are", names![
        SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_shutdown, SYS_getsockname,
        SYS_getpeername, SYS_getsockopt,
    ]),
];

/// As [`ALLOWED`], calls that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const ALLOWED_HERE: &[Group] = &[
    ("older forms of the calls above", names![
        SYS_access, SYS_alarm, SYS_chown, SYS_dup2, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_fork,
        SYS_futimesat, SYS_getdents, SYS_getpgrp, SYS_getrlimit, SYS_inotify_init, SYS_lchown, SYS_link,
        SYS_lstat, SYS_mkdir, SYS_pause, SYS_pipe, SYS_poll, SYS_readlink, SYS_rename, SYS_rmdir, SYS_select,
        SYS_setrlimit, SYS_signalfd, SYS_stat, SYS_symlink, SYS_sync_file_range, SYS_time, SYS_unlink,
        SYS_utime, SYS_utimes, SYS_vfork,
    ]),
    ("a thread's own storage: every program sets it first", names![SYS_arch_prctl]),
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[Group] = &[];

/// The rows.
pub fn rows() -> Vec<FilterRow> {
    let allowed = ALLOWED.iter().chain(ALLOWED_HERE).flat_map(|(reason, calls)| {
        let row = |(number, name): &(Number, &'static str)| {
            FilterRow::allow(*number, name.strip_prefix("SYS_").unwrap_or(name), &[], reason)
        };
        calls.iter().map(row)
    });
    WITH_ARGUMENTS.iter().copied().chain(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bpf::{Otherwise, compile, interpreter::verdict};
    use super::*;

    const ABSENT: Otherwise = Otherwise::Fail(libc::ENOSYS as u16);

    /// Arguments that satisfy the row: all other bits are zeros, then ones.
    fn satisfying(row: &FilterRow) -> [[u64; 6]; 2] {
        [0, u64::MAX].map(|rest| {
            let mut arguments = [rest; 6];
            for check in row.when {
                match *check {
                    Check::Is(at, value) => arguments[usize::from(at)] = value,
                    Check::IsInt(at, value) => arguments[usize::from(at)] = u64::from(value),
                    Check::Masked(at, mask, value) => {
                        let argument = &mut arguments[usize::from(at)];
                        *argument = *argument & !u64::from(mask) | u64::from(value);
                    }
                }
            }
            arguments
        })
    }

    #[test]
    fn every_row_decides_a_call_that_the_other_rows_decide_in_another_way() {
        let rows = rows();
        let program = compile(&rows, ABSENT).expect("compiles");
        for (at, row) in rows.iter().enumerate() {
            assert!(!row.reason.is_empty(), "{} has no reason", row.name);
            let mut others = rows.clone();
            others.remove(at);
            let others = compile(&others, ABSENT).expect("compiles");
            let expected = match row.action {
                FilterAction::Allow => libc::SECCOMP_RET_ALLOW,
                FilterAction::Fail(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
                FilterAction::Notify => panic!("{row:?}: nobody listens"),
            };
            let decides = |arguments: &[u64; 6]| {
                verdict(&program, row.number, *arguments) == expected
                    && verdict(&others, row.number, *arguments) != expected
            };
            assert!(satisfying(row).iter().any(decides), "{row:?} is not needed");
        }
    }

    #[test]
    fn the_filter_is_not_too_long() {
        // BPF_MAXINSNS of the kernel.
        assert!(compile(&rows(), ABSENT).expect("compiles").len() < 4096);
    }
}
