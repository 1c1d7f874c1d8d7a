//! Which user has an end of a TCP connection of this machine open: the kernel's socket diagnosis (netlink) finds one socket among any
//! number. The table in `/proc` is no substitute, because sockets open and close while it is read. Decides nothing.

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
const HELD: [u8; 4] = [ESTABLISHED, 4, 5, 8];
/// The TCP state that is connected in both directions.
const ESTABLISHED: u8 = 1;

/// A connected TCP socket that a process has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSocket {
    /// The user who made it: for a server's end, the one that accepted it.
    pub uid: u32,
    /// The socket's number; while it is open, no other socket has it.
    pub inode: u32,
    /// Connected in both directions.
    pub is_established: bool,
}

/// The socket that this network namespace has at an address for a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalEnd {
    /// Nothing: what is sent there is refused, or passed on to another machine.
    Absent,
    /// No process holds the connection: a server listens or has not accepted it yet, or it was closed.
    Unheld,
    Held(HeldSocket),
}

impl LocalEnd {
    /// The socket, if a process has it open.
    pub fn held(self) -> Option<HeldSocket> {
        match self {
            Self::Held(socket) => Some(socket),
            Self::Absent | Self::Unheld => None,
        }
    }
}

/// The end of this network namespace at `local` of a connection with `remote`, by both addresses and ports. An error if the kernel
/// cannot be queried. Does not wait.
pub fn find(local: SocketAddr, remote: SocketAddr) -> nix::Result<LocalEnd> {
    let (local, remote) = (canonical(local), canonical(remote));
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    let request = request(local, remote);
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
            nix::errno::Errno::ENOENT => Ok(LocalEnd::Absent),
            errno => Err(errno),
        };
    }
    Ok(parse_reply(reply, &request).map_or(LocalEnd::Unheld, LocalEnd::Held))
}

/// `nlmsghdr`, then `inet_diag_req_v2`.
fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let family = if local.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    request[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    request[16] = family as u8;
    request[17] = nix::libc::IPPROTO_TCP as u8;
    request[20..24].fill(0xff); // sockets in any state
    request[24..26].copy_from_slice(&local.port().to_be_bytes());
    request[26..28].copy_from_slice(&remote.port().to_be_bytes());
    let mut write = |at: usize, ip: IpAddr| match ip {
        IpAddr::V4(ip) => request[at..at + 4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => request[at..at + 16].copy_from_slice(&ip.octets()),
    };
    write(28, local.ip());
    write(44, remote.ip());
    request[64..72].fill(0xff); // no cookie
    request
}

/// `nlmsghdr`, then `inet_diag_msg`. None for a listener, and for a socket that no process holds.
fn parse_reply(reply: &[u8], request: &[u8; REQUEST_BYTES]) -> Option<HeldSocket> {
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
    let state = *reply.get(STATE)?;
    let held = HELD.contains(&state) && number(INODE)? != 0;
    let found = HeldSocket { uid: number(UID)?, inode: number(INODE)?, is_established: state == ESTABLISHED };
    (same && held).then_some(found)
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
    fn an_end_is_found_only_while_a_process_has_it_open() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (own, remote) = (client.local_addr().expect("connected"), client.peer_addr().expect("connected"));
        assert_eq!(
            find(remote, own),
            Ok(LocalEnd::Unheld),
            "it is not accepted: the kernel reports uid 0 without an inode"
        );
        let (server, _) = listener.accept().expect("accepted");
        let found = find(remote, own).expect("a reply").held().expect("it is open");
        assert_eq!((found.uid, found.is_established), (nix::unistd::geteuid().as_raw(), true));
        drop(server);
        assert_eq!(
            find(remote, own).expect("a reply").held().filter(|found| found.is_established),
            None,
            "it is closed"
        );
    }

    #[test]
    fn a_listener_and_other_replies_are_no_end_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        assert_eq!(find(address, address), Ok(LocalEnd::Unheld));
        drop(listener);
        assert_eq!(find(address, address), Ok(LocalEnd::Absent));
        assert_eq!(parse_reply(&[], &request(address, address)), None);
        assert_eq!(parse_reply(&[0; 88], &request(address, address)), None);
    }
}
