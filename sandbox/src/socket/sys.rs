//! `recvmsg`, `sendmsg` and socket options with ancillary data that the libraries do not support (pidfds).

use crate::sys::own;
use libc::{c_int, c_uint, c_void};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A buffer for 253 descriptors (SCM_MAX_FD), one pidfd and their headers, aligned for `cmsghdr`.
type Control = [u64; 144];

const SCM_PIDFD: c_int = 4;

/// The result of one `recvmsg`.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) len: usize,
    pub(super) truncated: bool,
    pub(super) fds: Vec<OwnedFd>,
    pub(super) pidfd: Option<OwnedFd>,
    /// The sender's pid and effective user, if the socket receives credentials.
    pub(super) credentials: Option<(u32, u32)>,
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: c_int) -> io::Result<Raw> {
    let mut control: Control = [0; 144];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid `msghdr`.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast::<c_void>();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: buffer, part and control outlive the call, with their true sizes.
    let len =
        check(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags | libc::MSG_CMSG_CLOEXEC) })?;
    let mut raw = Raw {
        len,
        truncated: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
        fds: Vec::new(),
        pidfd: None,
        credentials: None,
    };
    // SAFETY: the kernel filled `control` and set `msg_controllen`; the CMSG macros stay within it, and every
    // descriptor found there is fresh and ours alone.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(head) = message.as_ref() {
            if head.cmsg_level == libc::SOL_SOCKET {
                // musl has a smaller type here.
                #[allow(clippy::unnecessary_cast)]
                let bytes = head.cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = std::slice::from_raw_parts(libc::CMSG_DATA(message), bytes);
                if head.cmsg_type == libc::SCM_CREDENTIALS {
                    // `struct ucred`: pid, uid, gid.
                    let number = |at: usize| data.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
                    raw.credentials = number(0).zip(number(4));
                    message = libc::CMSG_NXTHDR(&raw const header, message);
                    continue;
                }
                for fd in data.chunks_exact(size_of::<RawFd>()) {
                    let fd = fd.try_into().map_or(-1, RawFd::from_ne_bytes);
                    match head.cmsg_type {
                        libc::SCM_RIGHTS if fd >= 0 => raw.fds.push(own(fd.into())),
                        SCM_PIDFD if fd >= 0 => raw.pidfd = Some(own(fd.into())),
                        _ => {}
                    }
                }
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok(raw)
}

/// Without a buffer for descriptors, which the kernel then discards or, with `MSG_PEEK`, leaves in the socket. The number of bytes, and
/// whether the packet was longer or had descriptors.
pub(super) fn receive_bytes(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: c_int,
) -> io::Result<(usize, bool)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid `msghdr`.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    // SAFETY: buffer and part outlive the call, with their true sizes; there is no control buffer.
    let len = check(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) })?;
    Ok((len, header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0))
}

pub(super) fn send(
    socket: BorrowedFd<'_>,
    parts: &[&[u8]],
    fds: &[BorrowedFd<'_>],
    flags: c_int,
) -> io::Result<usize> {
    const MOST_PARTS: usize = 4;
    if fds.len() > super::MOST_FDS || parts.len() > MOST_PARTS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control: Control = [0; 144];
    let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut vectors = [empty; MOST_PARTS];
    for (vector, part) in vectors.iter_mut().zip(parts) {
        *vector = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
    }
    // SAFETY: all-zero is a valid `msghdr`.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = vectors.as_mut_ptr();
    header.msg_iovlen = parts.len() as _;
    if !fds.is_empty() {
        let bytes = std::mem::size_of_val(fds) as c_uint;
        header.msg_control = control.as_mut_ptr().cast::<c_void>();
        // SAFETY: `control` holds SCM_MAX_FD descriptors and `fds` is not longer (checked above), so that header
        // and data stay within it.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(bytes) as _;
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(bytes) as _;
            let data = std::slice::from_raw_parts_mut(libc::CMSG_DATA(message), bytes as usize);
            for (place, fd) in data.chunks_exact_mut(size_of::<RawFd>()).zip(fds) {
                place.copy_from_slice(&fd.as_raw_fd().to_ne_bytes());
            }
        }
    }
    // SAFETY: vectors, parts and control outlive the call, with their true sizes.
    check(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, flags | libc::MSG_NOSIGNAL) })
}

pub(super) fn set_option(socket: BorrowedFd<'_>, option: c_int, value: c_int) -> io::Result<()> {
    let size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `value` outlives the call and has the given size.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), size)
    };
    check(result as isize).map(drop)
}

/// A pidfd of the socket's peer (`SO_PEERPIDFD`).
pub(super) fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: c_int = 77;
    let mut fd: c_int = -1;
    let mut size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `fd` and `size` outlive the call, with their true sizes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut size,
        )
    };
    check(result as isize)?;
    // SAFETY: this option's value is a descriptor that the call has just created.
    Ok(unsafe { own(fd.into()) })
}

/// Takes one waiting connection (close-on-exec).
pub(super) fn accept(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let (address, size) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: both pointers may be null; then the address is not returned.
    let fd = unsafe { libc::accept4(socket.as_raw_fd(), address, size, libc::SOCK_CLOEXEC) };
    check(fd as isize)?;
    // SAFETY: the call has just created the descriptor.
    Ok(unsafe { own(fd.into()) })
}

/// Waits until one of `fds` has one of its events (−1: without a timeout); sets `revents`. Returns the number of ready ones.
pub(super) fn wait_ready(fds: &mut [libc::pollfd], timeout_ms: i64) -> io::Result<usize> {
    let limit = libc::timespec {
        tv_sec: (timeout_ms / 1000) as libc::time_t,
        tv_nsec: ((timeout_ms % 1000) * 1_000_000) as _,
    };
    let limit = if timeout_ms < 0 { std::ptr::null() } else { &raw const limit };
    // SAFETY: `fds` and `limit` outlive the call; a null mask leaves the signal mask alone.
    check(
        unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit, std::ptr::null()) } as isize
    )
}
