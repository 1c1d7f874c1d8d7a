//! The user at the other end of a loopback connection: the kernel reports which user holds the client's TCP socket.
//!
//! Looked up once per connection, and only if the client has no token. The kernel's socket diagnosis (netlink) finds one socket
//! among any number. Without its reply there is no user: the table in `/proc` is no substitute, because sockets open and close
//! while it is read.
//!
//! A later socket can have the same address and port pair: a client that sends a request and resets the connection leaves its
//! request readable, and the next client from the same port may be another user. So the server's end is looked up after the
//! client's and compared by inode: while it is connected, no other socket can have this pair.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

// linux/sock_diag.h, linux/inet_diag.h, linux/netlink.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const REQUEST_BYTES: usize = 72;
/// Offsets in the reply: state, addresses, uid and inode of the socket.
const STATE: usize = 17;
const ADDRESSES: std::ops::Range<usize> = 20..56;
const UID: usize = 80;
const INODE: usize = 84;
/// TCP states that are connected in at least one direction.
const HELD: [u8; 4] = [1, 4, 5, 8];

/// The uid and inode of a connected socket that a process has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    uid: u32,
    inode: u32,
}

/// The user who holds the socket `client`, connected to the server's socket with inode `own_inode`. Blocks.
pub(super) fn find(client: SocketAddr, server: SocketAddr, own_inode: u64) -> Option<u32> {
    let (client, server) = (canonical(client), canonical(server));
    let uid = holder(client, server)?.uid;
    // After the client's, see the module header. Inodes of sockets have 32 bits.
    (holder(server, client)?.inode == own_inode as u32).then_some(uid)
}

/// The socket at `local` that is connected to `remote`.
fn holder(local: SocketAddr, remote: SocketAddr) -> Option<Holder> {
    diagnose(local, remote).unwrap_or_else(|error| {
        tracing::warn!(%error, "no socket diagnosis (netlink): local users need a token over TCP");
        None
    })
}

/// Looks a socket up by both addresses and ports; an error if the kernel cannot be queried.
fn diagnose(client: SocketAddr, server: SocketAddr) -> nix::Result<Option<Holder>> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    let request = request(client, server);
    send(netlink.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut reply = [0; 1_024];
    // The kernel replies before `send` returns.
    let len = recv(netlink.as_raw_fd(), &mut reply, MsgFlags::MSG_DONTWAIT)?;
    let reply = &reply[..len];
    let kind = reply.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    if kind != Some(SOCK_DIAG_BY_FAMILY) {
        let errno = reply
            .get(16..20)
            .map_or(0, |errno| -i32::from_ne_bytes([errno[0], errno[1], errno[2], errno[3]]));
        return match nix::errno::Errno::from_raw(errno) {
            nix::errno::Errno::ENOENT => Ok(None),
            errno => Err(errno),
        };
    }
    Ok(parse_reply(reply, &request))
}

/// `nlmsghdr`, then `inet_diag_req_v2`.
fn request(client: SocketAddr, server: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let family = if client.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    request[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    request[16] = family as u8;
    request[17] = nix::libc::IPPROTO_TCP as u8;
    request[20..24].fill(0xff); // sockets in any state
    request[24..26].copy_from_slice(&client.port().to_be_bytes());
    request[26..28].copy_from_slice(&server.port().to_be_bytes());
    let mut write = |at: usize, ip: IpAddr| match ip {
        IpAddr::V4(ip) => request[at..at + 4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => request[at..at + 16].copy_from_slice(&ip.octets()),
    };
    write(28, client.ip());
    write(44, server.ip());
    request[64..72].fill(0xff); // no cookie
    request
}

/// `nlmsghdr`, then `inet_diag_msg`. None for a listener, and for a socket that no process holds.
fn parse_reply(reply: &[u8], request: &[u8; REQUEST_BYTES]) -> Option<Holder> {
    let number = |at: usize| Some(u32::from_ne_bytes(reply.get(at..at + 4)?.try_into().ok()?));
    let ports = reply.get(ADDRESSES.start..ADDRESSES.start + 4) == request.get(24..28);
    // The reply has mapped addresses for an IPv6 socket that is connected over IPv4.
    let same = ports
        && [(0, 28), (16, 44)].into_iter().all(|(found, requested)| {
            let part = |bytes: &[u8], at: usize| {
                bytes.get(at..at + 16).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok())
            };
            let found = part(reply, ADDRESSES.start + 4 + found);
            part(request, requested).zip(found).is_some_and(|(requested, found)| {
                requested == found || mapped(found).is_some_and(|ip| ip[..] == requested[..4])
            })
        });
    let held = HELD.contains(reply.get(STATE)?) && number(INODE)? != 0;
    if same && held { Some(Holder { uid: number(UID)?, inode: number(INODE)? }) } else { None }
}

/// The IPv4 address in a mapped IPv6 one.
fn mapped(address: [u8; 16]) -> Option<[u8; 4]> {
    Ipv6Addr::from(address).to_ipv4_mapped().map(|ip| ip.octets())
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_names_the_user_of_a_connection() {
        for (listen, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(listen) else {
                vm_system_testkit::skip("loopback", &format!("this machine has no address {listen}"));
                continue;
            };
            let ip: IpAddr = connect.parse().expect("an address");
            let port = listener.local_addr().expect("bound").port();
            let client = TcpStream::connect((ip, port)).expect("connected");
            let (server, remote) = listener.accept().expect("accepted");
            let local = server.local_addr().expect("connected");
            let us = nix::unistd::geteuid().as_raw();
            let inode = inode(&server);
            assert_eq!(find(remote, local, inode), Some(us), "{listen}");
            assert_eq!(find(remote, local, inode + 1), None, "{listen}: another connection's end");
            drop(client);
            assert_eq!(find(local, remote, inode).filter(|uid| *uid != us), None, "{listen}");
        }
        let nowhere: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        assert_eq!(find(nowhere, nowhere, 1), None);
    }

    fn inode(socket: &TcpStream) -> u64 {
        nix::sys::stat::fstat(socket).expect("facts").st_ino
    }

    #[test]
    fn a_listener_is_not_the_client() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        assert_eq!(find(address, address, 1), None);
        assert_eq!(parse_reply(&[], &request(address, address)), None);
        assert_eq!(parse_reply(&[0; 88], &request(address, address)), None);
    }
}
