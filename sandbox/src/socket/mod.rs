//! `SOCK_SEQPACKET` sockets: record boundaries, descriptors, and senders attested by the kernel. Knows nothing of messages.

mod sys;

use crate::pidfd::PidFd;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket, socketpair,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Most descriptors in one message (the kernel's SCM_MAX_FD).
pub const MOST_FDS: usize = 253;

const SO_PASSPIDFD: i32 = 76;
const SO_PASSRIGHTS: i32 = 83;

/// The behaviour of a call that cannot complete at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Blocks until the call can complete.
    Yes,
    /// Fails with `WouldBlock` instead.
    No,
}

impl Wait {
    fn flags(self) -> i32 {
        match self {
            Self::Yes => 0,
            Self::No => libc::MSG_DONTWAIT,
        }
    }
}

/// The result of one receive.
#[derive(Debug)]
pub struct ReceivedPacket {
    /// Bytes of the packet in the buffer; 0 = the other end is closed (empty packets are never sent).
    pub len: usize,
    /// The packet or its descriptors did not fit: a protocol violation.
    pub truncated: bool,
    /// Descriptors that were received with the packet.
    pub fds: Vec<OwnedFd>,
    /// The sender, if the socket attests senders.
    pub sender: Option<PidFd>,
}

/// Creates a connected pair, both ends close-on-exec and blocking.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Receives one packet; interrupted calls are repeated.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8], wait: Wait) -> io::Result<ReceivedPacket> {
    loop {
        match sys::receive(socket.as_fd(), buffer, wait.flags()) {
            Ok(raw) => {
                let by_pid = || raw.credentials.and_then(|(pid, _)| living_peer(socket, pid).ok());
                let sender = raw.pidfd.map(PidFd::from).or_else(by_pid);
                return Ok(ReceivedPacket { len: raw.len, truncated: raw.truncated, fds: raw.fds, sender });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The user who sent the next packet, as the kernel reports it, and leaves the packet in the socket. For a connection to a socket that
/// another process listens on for its peer (`SO_PEERCRED` shows the listener). The socket must [`receive_credentials`] since before
/// it was connected. `None`: there is no packet, or the other end is closed. Descriptors of the packet are discarded.
pub fn next_sender(socket: &impl AsFd, wait: Wait) -> io::Result<Option<u32>> {
    let raw = uninterrupted(|| sys::receive(socket.as_fd(), &mut [0; 1], wait.flags() | libc::MSG_PEEK))?;
    Ok(raw.credentials.filter(|_| raw.len > 0).map(|(_, uid)| uid))
}

/// The kernel attaches the sender's credentials to every packet that arrives from now on.
pub fn receive_credentials(socket: &impl AsFd, on: bool) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::SO_PASSCRED, i32::from(on))
}

/// Receives one packet and never a descriptor: the number of bytes, and whether the packet was longer or has descriptors. For a peer
/// that may have descriptors whose last close blocks (a connection with `SO_LINGER`). Unless the peer `cannot_send_descriptors`
/// ([`refuse_descriptors`]), the packet is looked at first, and one with descriptors stays in the socket.
pub fn receive_bytes(
    socket: &impl AsFd,
    buffer: &mut [u8],
    wait: Wait,
    cannot_send_descriptors: bool,
) -> io::Result<(usize, bool)> {
    let mut receive =
        |flags| uninterrupted(|| sys::receive_bytes(socket.as_fd(), buffer, wait.flags() | flags));
    if !cannot_send_descriptors {
        let (len, truncated) = receive(libc::MSG_PEEK)?;
        if len == 0 || truncated {
            return Ok((len, truncated));
        }
    }
    receive(0)
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Sends up to four pieces as one packet; interrupted calls are repeated. A packet is sent whole or not at all.
pub fn send(socket: &impl AsFd, parts: &[&[u8]], fds: &[BorrowedFd<'_>], wait: Wait) -> io::Result<()> {
    loop {
        match sys::send(socket.as_fd(), parts, fds, wait.flags()) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Every packet received on this end has its sender, as the kernel attests: by a pidfd, before kernel 6.5 by its pid (the sender is
/// missing then if the other end is closed, because another process may have that pid).
pub fn attest_senders(socket: &impl AsFd) -> io::Result<()> {
    pass_senders(socket, true)
}

/// Disables [`attest_senders`].
pub fn trust_senders(socket: &impl AsFd) -> io::Result<()> {
    pass_senders(socket, false)
}

fn pass_senders(socket: &impl AsFd, on: bool) -> io::Result<()> {
    if set_if_known(socket, SO_PASSPIDFD, i32::from(on))? { Ok(()) } else { receive_credentials(socket, on) }
}

/// Whether [`attest_senders`] attests by pidfd.
pub fn has_pidfds_of_senders() -> io::Result<bool> {
    let (socket, _other) = pair()?;
    set_if_known(&socket, SO_PASSPIDFD, 1)
}

/// `false`: the kernel is older than the option.
fn set_if_known(socket: &impl AsFd, option: i32, value: i32) -> io::Result<bool> {
    match sys::set_option(socket.as_fd(), option, value) {
        Err(error) if is_unknown_option(&error) => Ok(false),
        result => result.map(|()| true),
    }
}

/// The kernel is older than the option.
fn is_unknown_option(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOPROTOOPT)
}

/// The process at the other end of a connection, by a pid that the kernel has reported for it. No other process can have got that pid
/// while the other end is open, which the process holds: an error if it is closed.
fn living_peer(socket: &impl AsFd, pid: u32) -> io::Result<PidFd> {
    let peer = PidFd::open(pid)?;
    let mut end = [libc::pollfd { fd: socket.as_fd().as_raw_fd(), events: 0, revents: 0 }];
    uninterrupted(|| sys::wait_ready(&mut end, 0))?;
    if end[0].revents == 0 { Ok(peer) } else { Err(io::ErrorKind::ConnectionReset.into()) }
}

/// A peer that sends descriptors to this end gets EPERM. `false`: not supported (kernel < 6.16); they arrive and must be closed.
pub fn refuse_descriptors(socket: &impl AsFd) -> io::Result<bool> {
    set_if_known(socket, SO_PASSRIGHTS, 0)
}

/// Calls on this end never block (a property of the open file: the other end is not affected).
pub fn set_nonblocking(socket: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(socket.as_fd(), FcntlArg::F_GETFL)?);
    fcntl(socket.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Ends a connection for both ends, whoever else has descriptors of it.
pub fn shut_down(socket: &impl AsFd) {
    // Fails only if it has ended.
    let _ = nix::sys::socket::shutdown(socket.as_fd().as_raw_fd(), nix::sys::socket::Shutdown::Both);
}

/// The user of the process at the other end of a connected Unix socket, when it began to listen or connected.
pub fn peer_uid(socket: &impl AsFd) -> io::Result<u32> {
    let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials)?;
    Ok(credentials.uid())
}

/// The process that called `listen` (for a connecting end) or created the pair; see [`attest_senders`] for kernels before 6.5.
pub fn peer(socket: &impl AsFd) -> io::Result<PidFd> {
    match sys::peer_pidfd(socket.as_fd()) {
        Err(error) if is_unknown_option(&error) => {
            let credentials =
                nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials)?;
            living_peer(socket, credentials.pid().cast_unsigned())
        }
        peer => peer.map(PidFd::from),
    }
}

/// Binds at `path` without listening: the process that calls [`start_listening`] is the peer that connecting processes see.
pub fn bind_at(path: &Path) -> io::Result<OwnedFd> {
    let socket = unconnected()?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket)
}

/// An unbound socket, in place of a bound one to which no process shall ever connect.
pub fn unconnected() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?)
}

/// Accepts connections from now on.
pub fn start_listening(socket: &impl AsFd) -> io::Result<()> {
    Ok(listen(&socket.as_fd(), Backlog::new(8).map_err(io::Error::from)?)?)
}

/// Takes one waiting connection (close-on-exec).
pub fn accept(socket: &impl AsFd) -> io::Result<OwnedFd> {
    sys::accept(socket.as_fd())
}

/// Connects to a bound path.
pub fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    connect_from(unconnected()?, path)
}

/// As [`connect_to`], from a socket that was set up before.
pub fn connect_from(socket: OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket)
}

/// A set of descriptors to wait for: each is ready when it can be read or its peer has closed it.
#[derive(Debug)]
pub struct PollSet(Vec<libc::pollfd>);

impl PollSet {
    /// An empty set with a capacity; it is filled again before each wait.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a descriptor; returns its index.
    pub fn add(&mut self, fd: &impl AsFd) -> usize {
        self.0.push(libc::pollfd { fd: fd.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 });
        self.0.len() - 1
    }

    /// Waits until a descriptor is ready or the timeout has passed (`None`: no timeout); `false`: timeout or interrupted.
    pub fn wait(&mut self, timeout: Option<std::time::Duration>) -> io::Result<bool> {
        // Rounded up: waking slightly early would make the caller spin.
        let timeout = timeout.map_or(-1, |time| time.as_micros().div_ceil(1000).min(1 << 40) as i64);
        match sys::wait_ready(&mut self.0, timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                for entry in &mut self.0 {
                    entry.revents = 0;
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the descriptor with this index has nothing to read and was closed by the peer.
    pub fn is_closed(&self, index: usize) -> bool {
        let closed = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        self.0
            .get(index)
            .is_some_and(|entry| entry.revents & closed != 0 && entry.revents & libc::POLLIN == 0)
    }

    /// Whether the descriptor with this index is ready.
    pub fn is_ready(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|entry| entry.revents != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_bounds_and_truncation_is_reported() {
        let (left, right) = pair().expect("pair");
        send(&left, &[b"ab", b"c"], &[], Wait::Yes).expect("send");
        send(&left, &[b"longer than the buffer"], &[], Wait::Yes).expect("send");
        let mut buffer = [0; 8];
        let first = receive(&right, &mut buffer, Wait::Yes).expect("receive");
        assert_eq!((&buffer[..first.len], first.truncated), (&b"abc"[..], false));
        assert!(receive(&right, &mut buffer, Wait::Yes).expect("receive").truncated);
        assert_eq!(
            receive(&right, &mut buffer, Wait::No).expect_err("empty").kind(),
            io::ErrorKind::WouldBlock
        );
        drop(left);
        assert_eq!(receive(&right, &mut buffer, Wait::Yes).expect("end").len, 0);
    }

    #[test]
    fn the_kernel_attests_the_sender() {
        let (left, right) = pair().expect("pair");
        attest_senders(&right).expect("setsockopt");
        let pid_of_sender = || {
            send(&left, &[b"x"], &[], Wait::Yes).expect("send");
            let got = receive(&right, &mut [0; 8], Wait::Yes).expect("receive");
            got.sender.map(|sender| sender.pid().expect("pid"))
        };
        assert_eq!(pid_of_sender(), Some(std::process::id()));
        trust_senders(&right).expect("setsockopt");
        assert_eq!(pid_of_sender(), None);
        assert_eq!(peer(&right).expect("the creator").pid().expect("pid"), std::process::id());
    }

    /// As [`attest_senders`] before kernel 6.5.
    #[test]
    fn a_sender_is_known_by_its_pid_as_long_as_the_other_end_is_open() {
        let (left, right) = pair().expect("pair");
        receive_credentials(&right, true).expect("setsockopt");
        for _ in 0..2 {
            send(&left, &[b"x"], &[], Wait::Yes).expect("send");
        }
        let sender = || receive(&right, &mut [0; 8], Wait::Yes).expect("receive").sender;
        assert_eq!(sender().expect("attested").pid().expect("pid"), std::process::id());
        drop(left);
        assert!(sender().is_none(), "another process may have its pid");
    }

    #[test]
    fn the_user_of_the_next_packet_is_known_before_it_is_received() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sock");
        let listener = bind_at(&path).expect("bind");
        start_listening(&listener).expect("listen");
        let ours = unconnected().expect("socket");
        receive_credentials(&ours, true).expect("setsockopt");
        let ours = connect_from(ours, &path).expect("connect");
        let theirs = accept(&listener).expect("accept");
        send(&theirs, &[b"abc"], &[], Wait::Yes).expect("send");
        let us = nix::unistd::geteuid().as_raw();
        for _ in 0..2 {
            assert_eq!(next_sender(&ours, Wait::Yes).expect("a packet"), Some(us));
        }
        receive_credentials(&ours, false).expect("setsockopt");
        assert_eq!(receive_bytes(&ours, &mut [0; 8], Wait::No, false).expect("receive"), (3, false));
        drop(theirs);
        assert_eq!(next_sender(&ours, Wait::Yes).expect("closed"), None);
    }

    #[test]
    fn most_descriptors_fit_and_one_more_is_refused() {
        let (left, right) = pair().expect("pair");
        let fds = vec![left.as_fd(); MOST_FDS];
        send(&left, &[b"x"], &fds, Wait::Yes).expect("send");
        let got = receive(&right, &mut [0; 8], Wait::Yes).expect("receive");
        assert_eq!((got.fds.len(), got.truncated), (MOST_FDS, false));
        assert!(send(&left, &[b"x"], &vec![left.as_fd(); MOST_FDS + 1], Wait::Yes).is_err());
    }

    #[test]
    fn a_packet_with_descriptors_stays_in_the_socket_of_a_receiver_of_bytes() {
        let (left, right) = pair().expect("pair");
        let mut buffer = [0; 8];
        send(&left, &[b"abc"], &[], Wait::Yes).expect("send");
        assert_eq!(receive_bytes(&right, &mut buffer, Wait::No, false).expect("receive"), (3, false));
        send(&left, &[b"longer than the buffer"], &[], Wait::Yes).expect("send");
        assert!(receive_bytes(&right, &mut buffer, Wait::No, true).expect("receive").1);
        send(&left, &[b"x"], &[left.as_fd()], Wait::Yes).expect("send");
        for _ in 0..2 {
            assert_eq!(receive_bytes(&right, &mut buffer, Wait::No, false).expect("receive"), (1, true));
        }
        assert_eq!(receive(&right, &mut buffer, Wait::No).expect("it is still there").fds.len(), 1);
    }

    #[test]
    fn sending_descriptors_fails_at_the_sender() {
        let (left, right) = pair().expect("pair");
        if !refuse_descriptors(&right).expect("setsockopt") {
            vm_system_testkit::skip("passrights", "SO_PASSRIGHTS needs kernel >= 6.16");
            return;
        }
        let refused = send(&left, &[b"x"], &[left.as_fd()], Wait::Yes).expect_err("refused");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        send(&left, &[b"x"], &[], Wait::Yes).expect("without descriptors");
    }
}
