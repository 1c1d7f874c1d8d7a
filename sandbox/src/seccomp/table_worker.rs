//! The filter of zygotes and workers: computing, one socket, and a fork that the supervisor must have ordered. No call opens a
//! file, uses a path or sends a signal. Installed once in the zygote and inherited, so that it adds no cost to a fork.

use super::bpf::{Check, FilterAction, FilterRow};

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;
/// Kind of mapping (low four bits), `MAP_ANONYMOUS`, and flags that use resources of the host: huge pages, locked ones.
const MAP_KIND: u32 = 0x0f | (libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_LOCKED) as u32;
const MAP_OWN_MEMORY: u32 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u32;

/// Flags of a receive.
const RECEIVE: u32 = (libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) as u32;

/// Flag bits of a futex operation: private to this process, and the clock.
const FUTEX_FLAG_BITS: u32 = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32;

/// The clone of a sibling, the only allowed one.
pub const FORK_FLAGS: u64 = (libc::CLONE_PARENT | libc::SIGCHLD) as u64;

/// The fork of a sibling: the only call that needs the supervisor's confirmation.
pub const FORK: FilterRow = FilterRow {
    number: libc::SYS_clone,
    name: "clone",
    when: &[Check::Is(0, FORK_FLAGS), Check::Is(1, 0)],
    action: FilterAction::Notify,
    reason: "forks a sibling; the supervisor lets the call continue only if it ordered the fork",
};

/// Rows in the order of their frequency.
pub const TABLE: &[FilterRow] = &[
    FilterRow::allow(
        libc::SYS_recvmsg,
        "recvmsg",
        &[Check::Masked(2, !RECEIVE, 0)],
        "receives messages, with and without waiting; a peek would copy another process's descriptor",
    ),
    FilterRow::allow(
        libc::SYS_sendmsg,
        "sendmsg",
        &[],
        "sends messages on the channel; the peer refuses descriptors",
    ),
    FilterRow::allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    FilterRow::allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0), Check::Masked(3, MAP_KIND, MAP_OWN_MEMORY)],
        "malloc's large blocks; never executable, shared, a file, huge or locked",
    ),
    FilterRow::allow(libc::SYS_munmap, "munmap", &[], "malloc returns large blocks"),
    FilterRow::allow(libc::SYS_mremap, "mremap", &[], "realloc of large blocks"),
    FilterRow::allow(
        libc::SYS_mprotect,
        "mprotect",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's arenas; never executable",
    ),
    FilterRow::allow(
        libc::SYS_madvise,
        "madvise",
        &[Check::IsInt(2, libc::MADV_DONTNEED as u32)],
        "malloc returns memory; merging pages with those of other processes would reveal their content",
    ),
    FilterRow::allow(
        libc::SYS_clock_gettime,
        "clock_gettime",
        &[Check::Masked(0, !7, 0)],
        "CPU clocks of this process have no vdso; clocks of other processes (negative numbers) are refused",
    ),
    FilterRow::allow(
        libc::SYS_gettimeofday,
        "gettimeofday",
        &[],
        "Date.now where the clock source has no vdso",
    ),
    FilterRow::allow(
        libc::SYS_ppoll,
        "ppoll",
        &[Check::Is(1, 1)],
        "sleeps until a timer of the script is due or a message arrives, whichever is first",
    ),
    FilterRow::allow(
        libc::SYS_futex,
        "futex",
        &[Check::Masked(1, !(FUTEX_FLAG_BITS | libc::FUTEX_WAKE as u32), libc::FUTEX_WAIT as u32)],
        "locks in libc when they are contended after a signal: FUTEX_WAIT and FUTEX_WAKE only",
    ),
    FilterRow::allow(
        libc::SYS_futex,
        "futex",
        &[Check::Masked(1, !FUTEX_FLAG_BITS, libc::FUTEX_WAIT_BITSET as u32)],
        "std's waits, and libc's with a timeout; no requeue, no priority inheritance, no second address",
    ),
    FilterRow::allow(libc::SYS_getrandom, "getrandom", &[], "hash seeds"),
    FilterRow::allow(libc::SYS_rt_sigreturn, "rt_sigreturn", &[], "returns from the interruption handler"),
    FilterRow::allow(libc::SYS_close, "close", &[], "the zygote's copy of a new worker's channel"),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFD as u32)],
        "std checks that a descriptor is open before it closes it, in builds with checks; no other command",
    ),
    FilterRow::allow(
        libc::SYS_dup3,
        "dup3",
        &[Check::IsInt(1, 3), Check::IsInt(2, libc::O_CLOEXEC as u32)],
        "a new worker's channel replaces its parent's, and nothing else",
    ),
    FORK,
    FilterRow {
        number: libc::SYS_clone3,
        name: "clone3",
        when: &[],
        action: FilterAction::Fail(libc::ENOSYS as u16),
        reason: "its flags cannot be filtered; libc falls back to clone",
    },
    FilterRow::allow(libc::SYS_exit_group, "exit_group", &[], "exits"),
];
