//! Starts the egress process, or connects to the service manager that does. Knows nothing of messages.

use crate::child::ChildProcess;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces::is_root;
use vm_system_sandbox::socket;

/// The hidden mode of the egress process.
const MODE: &str = "egress";

/// Starts `program egress` with its end of the channel; returns ours. A supervisor that is root gives it the service user. Must be
/// called within a tokio runtime.
pub fn start_egress(program: &Path, service_user: &Identity) -> io::Result<(UnixStream, ChildProcess)> {
    let (ours, theirs) = UnixStream::pair()?;
    let user = is_root().then(|| OsString::from(format!("user={service_user}")));
    let arguments: Vec<&OsStr> = std::iter::once(OsStr::new(MODE)).chain(user.as_deref()).collect();
    let process = ChildProcess::start(program, &arguments, &[theirs.as_fd()])?;
    Ok((ours, process))
}

/// Connects to the socket at which a service manager starts egress processes, one for each connection. The socket must belong to root
/// or to our own user: it gets the requests of all sessions, and secrets.
pub fn connect_to_egress(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    let listener = socket::peer_uid(&stream)?;
    let own = nix::unistd::geteuid().as_raw();
    if listener != 0 && listener != own {
        let message =
            format!("{} is listened at by uid {listener}, not by root or uid {own}", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(OwnedFd::from(stream).into())
}
