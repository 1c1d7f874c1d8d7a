//! Has files agents started, by the spawn helper ([`crate::helper`]) or by a service manager, and carries the packets of their
//! channels. Knows nothing of messages.
//!
//! An agent is a process of its user, which may send anything: no descriptor is received from it.

use crate::helper::{SpawnHelper, StartedAgent, is_replaced};
use crate::packets;
use crate::reactor::WatchedFd;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;
use vm_system_protocol::limits::FILES_AGENT_START_MS;
use vm_system_sandbox::socket::{self, PollSet, Wait};

/// Starts the agents of users.
#[derive(Debug, Clone)]
pub enum AgentStarter {
    /// The helper of a daemon that root has started.
    Helper(SpawnHelper),
    /// A service manager, which listens at a socket in this folder for each user that may have an agent; the socket's name is the uid.
    Sockets(PathBuf),
}

impl AgentStarter {
    /// Starts an agent. `NotFound`: the user has no passwd entry; EPERM: the operator's rules do not allow the user. Blocks; must be
    /// called on a thread of the runtime's blocking pool.
    pub fn start(&self, uid: u32) -> io::Result<(FilesAgentChannel, FilesAgentProcess)> {
        match self {
            Self::Helper(helper) => {
                let start = || {
                    let (ours, theirs) = socket::pair()?;
                    let channel = FilesAgentChannel::new(ours)?;
                    Ok((channel, FilesAgentProcess::OfHelper(helper.start_agent(uid, theirs)?)))
                };
                // The helper was killed during the request.
                start().or_else(|error| if is_replaced(&error) { start() } else { Err(error) })
            }
            Self::Sockets(folder) => {
                let channel = FilesAgentChannel::new(connect(&folder.join(uid.to_string()), uid)?)?;
                Ok((channel, FilesAgentProcess::OfServiceManager))
            }
        }
    }

    /// The helper, if there is one.
    pub const fn helper(&self) -> Option<&SpawnHelper> {
        match self {
            Self::Helper(helper) => Some(helper),
            Self::Sockets(_) => None,
        }
    }
}

/// Connects to the socket of a user's agent and waits for its first message, by which the kernel says whose process it is: the socket
/// itself belongs to the service manager.
fn connect(path: &Path, uid: u32) -> io::Result<OwnedFd> {
    let socket = socket::unconnected()?;
    socket::receive_credentials(&socket, true)?;
    let socket = match socket::connect_from(socket, path) {
        // No socket is enabled for this user.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        connected => connected?,
    };
    let mut polled = PollSet::with_capacity(1);
    polled.add(&socket);
    if !polled.wait(Some(Duration::from_millis(FILES_AGENT_START_MS)))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match socket::next_sender(&socket, Wait::No)? {
        Some(sender) if sender == uid => {}
        Some(sender) => {
            return Err(io::Error::other(format!("{} is served by uid {sender}, not {uid}", path.display())));
        }
        None => return Err(io::Error::other(format!("the service behind {} exited", path.display()))),
    }
    socket::receive_credentials(&socket, false)?;
    Ok(socket)
}

/// An agent that has not ended.
#[derive(Debug)]
pub enum FilesAgentProcess {
    OfHelper(StartedAgent),
    /// It ends when its channel is closed; the service manager reaps it.
    OfServiceManager,
}

impl FilesAgentProcess {
    /// `None`: the service manager knows.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::OfHelper(agent) => Some(agent.pid()),
            Self::OfServiceManager => None,
        }
    }

    /// Kills it and waits for its exit, where this is the daemon's task.
    pub async fn end(self) -> io::Result<()> {
        match self {
            Self::OfHelper(mut agent) => {
                agent.kill();
                agent.ended().await.map(drop)
            }
            Self::OfServiceManager => Ok(()),
        }
    }
}

/// The supervisor's end of an agent's channel.
#[derive(Debug)]
pub struct FilesAgentChannel {
    /// `None` only while it is dropped.
    socket: Option<WatchedFd>,
    /// The kernel refuses descriptors at the sender.
    refuses_descriptors: bool,
}

impl FilesAgentChannel {
    /// The channel over this end of a socket pair. Must be called within a runtime.
    pub fn new(ours: OwnedFd) -> io::Result<Self> {
        let refuses_descriptors = socket::refuse_descriptors(&ours)?;
        Ok(Self { socket: Some(packets::register(ours)?), refuses_descriptors })
    }

    fn socket(&self) -> io::Result<&WatchedFd> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Waits for one packet and shows it to `take`; `None`: the agent has closed its end. `InvalidData`: a packet that is too long or
    /// has descriptors. Cancel safe.
    pub async fn receive<T>(&self, mut take: impl FnMut(&[u8]) -> T) -> io::Result<Option<T>> {
        let socket = self.socket()?;
        loop {
            let mut guard = socket.readable().await?;
            let result = guard.try_io(|socket| {
                packets::with_buffer(|buffer| {
                    let (len, truncated) =
                        socket::receive_bytes(socket.get_ref(), buffer, Wait::No, self.refuses_descriptors)?;
                    match (len, truncated) {
                        (_, true) => Err(io::ErrorKind::InvalidData.into()),
                        (0, false) => Ok(None),
                        (len, false) => Ok(Some(take(&buffer[..len]))),
                    }
                })
            });
            match result {
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Ok(result) => return result,
                // Not ready after all.
                Err(_) => {}
            }
        }
    }

    /// Ends the connection for both ends: neither receives any more.
    pub fn close(&self) {
        if let Ok(socket) = self.socket() {
            socket::shut_down(socket.get_ref());
        }
    }

    /// Sends one packet now, with at most one descriptor; `WouldBlock`: the agent does not read fast enough.
    pub fn try_send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        socket::send(self.socket()?.get_ref(), &[bytes], descriptor.as_slice(), Wait::No)
    }

    /// Sends one packet before the deadline. Not sent at all if cancelled or too late.
    pub async fn send(
        &self,
        bytes: &[u8],
        descriptor: Option<&OwnedFd>,
        deadline: Instant,
    ) -> io::Result<()> {
        let descriptor = descriptor.map(|descriptor| descriptor.as_fd());
        packets::send(self.socket()?, &[bytes], descriptor.as_slice(), deadline).await
    }
}

impl Drop for FilesAgentChannel {
    /// Descriptors that were not received are closed with the socket, which can take as long as the agent's user likes (`SO_LINGER`).
    fn drop(&mut self) {
        let socket = self.socket.take();
        if !self.refuses_descriptors {
            std::thread::spawn(move || drop(socket));
        }
    }
}
