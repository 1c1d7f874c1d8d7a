//! Who is at the other end of a loopback connection: the kernel says which user holds that TCP socket.
//!
//! Asked once for a connection, and only if its client has no token. The kernel's socket diagnosis finds one socket among
//! any number; where it is not to be had, its table is read, by one reader at a time. Without an answer of the kernel there is no
//! user.
//!
//! Two sockets have the same four numbers one after the other: a client that sends a request and resets the connection leaves its
//! request readable, and the next client from the same port may be another user. So our own end is looked up after the client's,
//! by its inode: while it is connected, no other socket can have those four numbers.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::{Mutex, PoisonError};

/// Of each protocol family; a client may use either for an IPv4 address.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// `TCP_TIME_WAIT`: nobody's any more, and shown as root's.
const TIME_WAIT: &str = "06";

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
    match diagnose(local, remote) {
        Ok(holder) => holder,
        Err(error) => {
            tracing::debug!(%error, "no socket diagnosis; reading the table of sockets");
            in_tables(local, remote)
        }
    }
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

/// The same from the kernel's table.
fn in_tables(client: SocketAddr, server: SocketAddr) -> Option<Holder> {
    static ONE_READER: Mutex<()> = Mutex::new(());
    // Guards nothing but the processor.
    let _reader = ONE_READER.lock().unwrap_or_else(PoisonError::into_inner);
    let tables = TABLES.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    tables.into_iter().find_map(|table| table.lines().skip(1).find_map(|line| judge(line, client, server)))
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The holder of a line, if it is about this connection: `sl local remote state queues timer retransmits uid timeout inode`.
fn judge(line: &str, client: SocketAddr, server: SocketAddr) -> Option<Holder> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    let uid = fields.nth(3)?.parse().ok()?;
    let inode: u64 = fields.nth(1)?.parse().ok()?;
    // A socket without an inode is held by no process any more.
    let held = state != TIME_WAIT && inode != 0;
    let holder = Holder { uid, inode: inode as u32 };
    (held && address(local)? == client && address(remote)? == server).then_some(holder)
}

/// `0100007F:0C8A`: words of the address in the machine's byte order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for place in 0..4 {
                bytes[place * 4..place * 4 + 4].copy_from_slice(&word(place * 8)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
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
            let (remote, local) = (canonical(remote), canonical(local));
            for (one, other, inode) in [(local, remote, Some(inode)), (remote, local, None)] {
                let by_table = in_tables(one, other).expect("a line");
                assert_eq!(by_table.uid, us, "{listen}");
                assert!(inode.is_none_or(|inode| by_table.inode == inode as u32), "{listen}");
                if let Ok(answer) = diagnose(one, other) {
                    assert_eq!(answer, Some(by_table), "{listen}");
                } else {
                    vm_system_testkit::skip("socket-diagnosis", "this machine has no socket diagnosis");
                }
            }
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

    #[test]
    fn lines_of_dead_sockets_and_damaged_lines_are_nobodys() {
        let (client, server) =
            ("127.0.0.1:3210".parse().expect("an address"), "127.0.0.1:80".parse().expect("an address"));
        let word = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let line = |state: &str, inode: &str| {
            format!(
                "  1: {word}:0C8A {word}:0050 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1"
            )
        };
        assert_eq!(judge(&line("01", "77"), client, server), Some(Holder { uid: 1000, inode: 77 }));
        assert_eq!(judge(&line("01", "77"), server, client), None);
        assert_eq!(judge(&line(TIME_WAIT, "77"), client, server), None);
        assert_eq!(judge(&line("01", "0"), client, server), None);
        for broken in
            ["", "1: x", "1: 0100007F 0100007F:0050 01", "1: é00007F:0C8A 0100007F:0050 01 a b c 1 0 7 1"]
        {
            assert_eq!(judge(broken, client, server), None, "{broken}");
        }
    }
}
