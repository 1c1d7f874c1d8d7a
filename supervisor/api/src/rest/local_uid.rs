//! Who is at the other end of a loopback connection: the kernel says which user holds that TCP socket.
//!
//! Asked once for a connection, and only if its client has no token. The kernel's socket diagnosis (netlink) finds one socket among
//! any number. Without its answer there is no user: the table in `/proc` is no substitute, since it is read over a time in which
//! sockets come and go.
//!
//! Two sockets have the same four numbers one after the other: a client that sends a request and resets the connection leaves its
//! request readable, and the next client from the same port may be another user. So our own end is looked up after the client's,
//! by its inode: while it is connected, no other socket can have those four numbers.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

// linux/sock_diag.h, linux/inet_diag.h, linux/netlink.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const REQUEST_BYTES: usize = 72;
/// Where the answer has the socket's state, its addresses, its user and its inode.
const STATE: usize = 17;
const ADDRESSES: std::ops::Range<usize> = 20..56;
const UID: usize = 80;
const INODE: usize = 84;
/// Connected in both directions, or at least in one of them.
const HELD: [u8; 4] = [1, 4, 5, 8];

/// A connected socket that a process has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    uid: u32,
    inode: u32,
}

/// The user who holds the socket `client`, connected to our socket `server` with this inode. Blocks.
pub(super) fn find(client: SocketAddr, server: SocketAddr, own_inode: u64) -> Option<u32> {
    let (client, server) = (canonical(client), canonical(server));
    let uid = holder(client, server)?.uid;
    // After the client's, see above. Inodes of sockets have 32 bits.
    (holder(server, client)?.inode == own_inode as u32).then_some(uid)
}

/// The socket at `local` that is connected to `remote`.
fn holder(local: SocketAddr, remote: SocketAddr) -> Option<Holder> {
    diagnose(local, remote).unwrap_or_else(|error| {
        tracing::warn!(%error, "no socket diagnosis (netlink): users of this machine need a token over TCP");
        None
    })
}

/// One socket by its four numbers; an error if the kernel cannot be asked.
fn diagnose(client: SocketAddr, server: SocketAddr) -> nix::Result<Option<Holder>> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    let request = request(client, server);
    send(netlink.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut answer = [0; 1_024];
    // The kernel answers before `send` returns.
    let len = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
    let answer = &answer[..len];
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    if kind != Some(SOCK_DIAG_BY_FAMILY) {
        let errno = answer
            .get(16..20)
            .map_or(0, |errno| -i32::from_ne_bytes([errno[0], errno[1], errno[2], errno[3]]));
        return match nix::errno::Errno::from_raw(errno) {
            nix::errno::Errno::ENOENT => Ok(None),
            errno => Err(errno),
        };
    }
    Ok(judge_answer(answer, &request))
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

/// `nlmsghdr`, then `inet_diag_msg`. A listener that was found instead, and a socket that nobody holds, say nothing.
fn judge_answer(answer: &[u8], request: &[u8; REQUEST_BYTES]) -> Option<Holder> {
    let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let ports = answer.get(ADDRESSES.start..ADDRESSES.start + 4) == request.get(24..28);
    // A socket of IPv6 that is connected over IPv4 has mapped addresses in its answer.
    let same = ports
        && [(0, 28), (16, 44)].into_iter().all(|(answered, asked)| {
            let part = |bytes: &[u8], at: usize| {
                bytes.get(at..at + 16).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok())
            };
            let answered = part(answer, ADDRESSES.start + 4 + answered);
            part(request, asked).zip(answered).is_some_and(|(asked, answered)| {
                asked == answered || mapped(answered).is_some_and(|ip| ip[..] == asked[..4])
            })
        });
    let held = HELD.contains(answer.get(STATE)?) && number(INODE)? != 0;
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
        assert_eq!(judge_answer(&[], &request(address, address)), None);
        assert_eq!(judge_answer(&[0; 88], &request(address, address)), None);
    }
}
