//! The refusals of the spawn helper, besides those of [`super::table_supervisor`]: what neither it needs nor the files agents, brokers
//! and commands that inherit them. A list of the allowed calls is not possible: commands build jails.

use super::bpf::{Check, FilterAction, FilterRow, Number};

const fn refuse(
    number: Number,
    name: &'static str,
    when: &'static [Check],
    reason: &'static str,
) -> FilterRow {
    FilterRow { number, name, when, action: FilterAction::Fail(libc::EPERM as u16), reason }
}

const NETWORK: &str = "the user database is reached over Unix sockets; nothing here has a network";

/// The refused calls.
pub const TABLE: &[FilterRow] = &[
    refuse(libc::SYS_socket, "socket", &[Check::IsInt(0, libc::AF_INET as u32)], NETWORK),
    refuse(libc::SYS_socket, "socket", &[Check::IsInt(0, libc::AF_INET6 as u32)], NETWORK),
    refuse(libc::SYS_socket, "socket", &[Check::IsInt(0, libc::AF_PACKET as u32)], NETWORK),
    refuse(libc::SYS_socket, "socket", &[Check::IsInt(0, libc::AF_VSOCK as u32)], NETWORK),
    refuse(libc::SYS_socket, "socket", &[Check::IsInt(0, libc::AF_ALG as u32)], NETWORK),
    refuse(libc::SYS_listen, "listen", &[], "nothing here accepts connections"),
    refuse(libc::SYS_accept, "accept", &[], "nothing here accepts connections"),
    refuse(libc::SYS_accept4, "accept4", &[], "nothing here accepts connections"),
    refuse(libc::SYS_setfsuid, "setfsuid", &[], "identities are taken on for good"),
    refuse(libc::SYS_setfsgid, "setfsgid", &[], "identities are taken on for good"),
    refuse(libc::SYS_vhangup, "vhangup", &[], "the machine's terminals"),
];
