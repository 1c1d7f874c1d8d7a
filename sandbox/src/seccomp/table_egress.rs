//! The egress process: connections that it makes, over IPv4 and IPv6, and its channel. No file is opened, no port listened at, no
//! process or thread started.

use super::bpf::{Check, FilterRow};

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;
/// The type of a socket without its flags.
const SOCKET_TYPE: u32 = 0xf;

const fn socket(family: i32, kind: i32) -> [Check; 2] {
    [Check::IsInt(0, family as u32), Check::Masked(1, SOCKET_TYPE, kind as u32)]
}

const TCP4: &[Check] = &socket(libc::AF_INET, libc::SOCK_STREAM);
const TCP6: &[Check] = &socket(libc::AF_INET6, libc::SOCK_STREAM);
const UDP4: &[Check] = &socket(libc::AF_INET, libc::SOCK_DGRAM);
const UDP6: &[Check] = &socket(libc::AF_INET6, libc::SOCK_DGRAM);

/// The calls.
pub const TABLE: &[FilterRow] = &[
    #[cfg(target_arch = "x86_64")]
    FilterRow::allow(libc::SYS_epoll_wait, "epoll_wait", &[], "waits for its connections"),
    #[cfg(not(target_arch = "x86_64"))]
    FilterRow::allow(libc::SYS_epoll_pwait, "epoll_pwait", &[], "waits for its connections"),
    FilterRow::allow(libc::SYS_epoll_ctl, "epoll_ctl", &[], "registers its connections"),
    FilterRow::allow(libc::SYS_read, "read", &[], "reads its channel and the wake-ups of its event loop"),
    FilterRow::allow(
        libc::SYS_write,
        "write",
        &[],
        "writes to its channel; no file is ever open for writing",
    ),
    FilterRow::allow(libc::SYS_recvfrom, "recvfrom", &[], "reads connections, and answers of DNS"),
    FilterRow::allow(libc::SYS_sendto, "sendto", &[], "writes to connections, and queries of DNS"),
    FilterRow::allow(libc::SYS_writev, "writev", &[], "writes head and body of a request together"),
    FilterRow::allow(libc::SYS_sendmsg, "sendmsg", &[], "the same in newer versions of the library"),
    FilterRow::allow(libc::SYS_socket, "socket", TCP4, "connections over IPv4"),
    FilterRow::allow(libc::SYS_socket, "socket", TCP6, "connections over IPv6"),
    FilterRow::allow(libc::SYS_socket, "socket", UDP4, "queries of DNS over IPv4"),
    FilterRow::allow(libc::SYS_socket, "socket", UDP6, "queries of DNS over IPv6"),
    FilterRow::allow(libc::SYS_connect, "connect", &[], "to servers; each address was checked"),
    FilterRow::allow(libc::SYS_bind, "bind", &[], "a port of its own for each query of DNS; no call listens"),
    FilterRow::allow(libc::SYS_getsockopt, "getsockopt", &[], "whether a connection was made"),
    FilterRow::allow(libc::SYS_setsockopt, "setsockopt", &[], "small pieces are sent at once"),
    FilterRow::allow(libc::SYS_getpeername, "getpeername", &[], "whether a connection was made"),
    FilterRow::allow(libc::SYS_shutdown, "shutdown", &[], "ends a connection"),
    FilterRow::allow(libc::SYS_close, "close", &[], "ends a connection"),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFD as u32)],
        "debug builds of std check that a descriptor is open before they close it",
    ),
    FilterRow::allow(
        libc::SYS_fcntl,
        "fcntl",
        &[Check::IsInt(1, libc::F_GETFL as u32)],
        "the event loop checks that its channel does not block",
    ),
    FilterRow::allow(
        libc::SYS_ioctl,
        "ioctl",
        &[Check::IsInt(1, libc::FIONBIO as u32)],
        "makes its channel and connections non-blocking",
    ),
    FilterRow::allow(
        libc::SYS_statx,
        "statx",
        &[],
        "whether the system's names have changed; reads no content",
    ),
    FilterRow::allow(
        libc::SYS_getrandom,
        "getrandom",
        &[],
        "keys of TLS, numbers of DNS queries, hash seeds",
    ),
    FilterRow::allow(
        libc::SYS_clock_gettime,
        "clock_gettime",
        &[],
        "deadlines and the validity of certificates, on machines whose clock source has no vdso",
    ),
    FilterRow::allow(libc::SYS_futex, "futex", &[], "locks of the event loop"),
    FilterRow::allow(libc::SYS_brk, "brk", &[], "malloc grows; refusing it makes glibc crash"),
    FilterRow::allow(
        libc::SYS_mmap,
        "mmap",
        &[Check::Masked(2, PROT_EXEC, 0)],
        "malloc's large blocks; never executable",
    ),
    FilterRow::allow(libc::SYS_munmap, "munmap", &[], "malloc returns large blocks"),
    FilterRow::allow(libc::SYS_mremap, "mremap", &[], "buffers grow"),
    FilterRow::allow(libc::SYS_madvise, "madvise", &[], "malloc returns pages"),
    FilterRow::allow(libc::SYS_exit_group, "exit_group", &[], "exits"),
];
