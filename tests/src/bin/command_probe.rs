//! A command that tries to get out of its jail, in the current folder: one line per attempt, with `reached` or why not. The socket
//! files whose names the arguments are must be there, a datagram and a stream socket; outside of a jail every attempt succeeds.

use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, open, renameat2};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, bind, connect, sendmsg, sendto,
    socket, socketpair,
};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{mkfifo, unlink};
use std::fs;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

const DATAGRAM: SockType = SockType::Datagram;
const STREAM: SockType = SockType::Stream;

/// The argument, with a number, that makes the process keep this many descriptors in flight until its input ends.
const HOLD: &str = "hold";

fn hold(descriptors: usize) -> io::Result<()> {
    let mut pairs = Vec::new();
    for _ in 0..descriptors {
        let pair = socketpair(AddressFamily::Unix, STREAM, None, SockFlag::empty())?;
        let attached = [0];
        let attached = [ControlMessage::ScmRights(&attached)];
        sendmsg::<UnixAddr>(pair.0.as_raw_fd(), &[IoSlice::new(b"x")], &attached, MsgFlags::empty(), None)?;
        pairs.push(pair);
    }
    println!("held");
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

type Attempt = (&'static str, fn(&UnixAddr, &UnixAddr) -> io::Result<()>);

const ATTEMPTS: &[Attempt] = &[
    ("a descriptor to a socket file, from a pair", |datagram, _| {
        let (pair, _) = socketpair(AddressFamily::Unix, DATAGRAM, None, SockFlag::empty())?;
        let file = fs::File::open(".")?;
        let descriptors = [file.as_raw_fd()];
        let attached = [ControlMessage::ScmRights(&descriptors)];
        let text = [IoSlice::new(b"from the command")];
        sendmsg(pair.as_raw_fd(), &text, &attached, MsgFlags::MSG_DONTWAIT, Some(datagram))?;
        Ok(())
    }),
    ("a datagram to a socket file", |datagram, _| {
        let socket = socket(AddressFamily::Unix, DATAGRAM, SockFlag::empty(), None)?;
        sendto(socket.as_raw_fd(), b"from the command", datagram, MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }),
    ("a pair connects to a socket file", |datagram, _| {
        let (pair, _) = socketpair(AddressFamily::Unix, DATAGRAM, None, SockFlag::empty())?;
        Ok(connect(pair.as_raw_fd(), datagram)?)
    }),
    ("a connection to a socket file", |_, stream| {
        let socket = socket(AddressFamily::Unix, STREAM, SockFlag::empty(), None)?;
        Ok(connect(socket.as_raw_fd(), stream)?)
    }),
    ("a pair of streams makes a socket file", |_, _| {
        let (pair, _) = socketpair(AddressFamily::Unix, STREAM, None, SockFlag::empty())?;
        bind(pair.as_raw_fd(), &UnixAddr::new("made")?)?;
        Ok(unlink("made")?)
    }),
    ("a pair of datagrams makes a socket file", |_, _| {
        let (pair, _) = socketpair(AddressFamily::Unix, DATAGRAM, None, SockFlag::empty())?;
        bind(pair.as_raw_fd(), &UnixAddr::new("made")?)?;
        Ok(unlink("made")?)
    }),
    ("a socket file by mknod", |_, _| {
        mknod("made", SFlag::S_IFSOCK, Mode::S_IRWXU, 0)?;
        Ok(unlink("made")?)
    }),
    ("a device in place of a renamed file", |_, _| {
        fs::write("renamed", "")?;
        let renamed = renameat2(AT_FDCWD, "renamed", AT_FDCWD, "new name", RenameFlags::RENAME_WHITEOUT);
        let _ = (unlink("renamed"), unlink("new name"));
        Ok(renamed?)
    }),
    ("the name of the host", |_, _| {
        let host = fs::read_to_string("host").unwrap_or_default();
        let name = nix::sys::utsname::uname()?.nodename().to_owned();
        if name == host.as_str() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }),
    ("a named pipe in the worktree", |_, _| {
        mkfifo("made", Mode::S_IRWXU)?;
        Ok(unlink("made")?)
    }),
    ("a network socket", |_, _| {
        socket(AddressFamily::Inet, DATAGRAM, SockFlag::empty(), None)?;
        Ok(())
    }),
    ("a socket of the kernel", |_, _| {
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::empty(), None)?;
        Ok(())
    }),
    ("what is mounted where", |_, _| {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        if mounts.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }),
    ("what is mounted where, for its parent", |_, _| {
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", std::os::unix::process::parent_id()))?;
        if mounts.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }),
    ("users of the system", |_, _| fs::read("/etc/passwd").map(drop)),
    ("a list of the root", |_, _| fs::read_dir("/").map(drop)),
    ("a list of all devices", |_, _| fs::read_dir("/dev").map(drop)),
    ("a folder of the system to write in", |_, _| {
        // The folder's mode does not matter here.
        let folder = open("/usr", OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())?;
        match nix::unistd::faccessat(
            &folder,
            ".",
            nix::unistd::AccessFlags::F_OK,
            nix::fcntl::AtFlags::empty(),
        ) {
            Ok(())
                if nix::sys::statvfs::fstatvfs(&folder)?
                    .flags()
                    .contains(nix::sys::statvfs::FsFlags::ST_RDONLY) =>
            {
                Err(io::ErrorKind::ReadOnlyFilesystem.into())
            }
            other => Ok(other?),
        }
    }),
];

fn main() -> io::Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [datagram, stream] = names.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
    if datagram == HOLD {
        return hold(stream.parse().map_err(io::Error::other)?);
    }
    let (datagram, stream) = (UnixAddr::new(datagram.as_str())?, UnixAddr::new(stream.as_str())?);
    for (name, attempt) in ATTEMPTS {
        match attempt(&datagram, &stream) {
            Ok(()) => println!("{name}: reached"),
            Err(error) => println!("{name}: {error}"),
        }
    }
    // Ordinary programs use pairs like this.
    let (mut left, mut right) = UnixStream::pair()?;
    left.write_all(b"pair")?;
    drop(left);
    let mut text = String::new();
    right.read_to_string(&mut text)?;
    println!("streams: {text}");
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let outside = groups.lines().any(|line| !line.ends_with(":/"));
    println!("control groups: {}", if outside { "the host's" } else { "a root" });
    Ok(())
}
