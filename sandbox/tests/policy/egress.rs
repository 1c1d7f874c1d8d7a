//! The table of the egress process: sockets of TCP and UDP, and no others; no file, no process, nothing that listens.

use super::{KILLED, ending_under};
use vm_system_sandbox::seccomp::table_egress;

pub(super) fn connects_only() {
    let socket = |family: i32, kind: i32| [family as u64, kind as u64, 0, 0, 0, 0];
    for (what, arguments) in [
        ("a raw socket", socket(libc::AF_INET, libc::SOCK_RAW)),
        ("a raw socket, version 6", socket(libc::AF_INET6, libc::SOCK_RAW)),
        ("a Unix socket", socket(libc::AF_UNIX, libc::SOCK_STREAM)),
        ("a netlink socket", socket(libc::AF_NETLINK, libc::SOCK_DGRAM)),
        ("a packet socket", socket(libc::AF_PACKET, libc::SOCK_DGRAM)),
        ("a vsock socket", socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
    ] {
        assert_eq!(ending_under(table_egress::TABLE, libc::SYS_socket, arguments), KILLED, "egress: {what}");
    }
    for (name, number) in [
        ("openat", libc::SYS_openat),
        ("openat2", libc::SYS_openat2),
        ("listen", libc::SYS_listen),
        ("accept4", libc::SYS_accept4),
        ("clone", libc::SYS_clone),
        ("clone3", libc::SYS_clone3),
        ("recvmsg", libc::SYS_recvmsg),
        ("wait4", libc::SYS_wait4),
    ] {
        assert_eq!(ending_under(table_egress::TABLE, number, [0; 6]), KILLED, "egress: {name}");
    }
}
