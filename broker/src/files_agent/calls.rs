//! The orders of the supervisor, one after the other in each thread.

use super::{FilesAgentProcess, OpenWorktree, lock};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::sync::Arc;
use vm_system_protocol::files_agent::{FilesProcess, FromFilesAgent, ReadTarget, ToFilesAgent};
use vm_system_protocol::limits::FILES_AGENT_PIECE_BYTES;
use vm_system_sandbox::beneath::{self, PathTarget, errno_of};
use vm_system_sandbox::process;

impl FilesAgentProcess {
    /// Carries out an order. Without `may_wait` no other thread receives orders meanwhile: then nothing that could block is done.
    pub(super) fn handle(&self, order: ToFilesAgent, descriptor: Option<OwnedFd>, may_wait: bool) {
        let busy = if may_wait { Ok(()) } else { Err(Errno::EAGAIN) };
        let (call, result) = match order {
            ToFilesAgent::Open { call, path, cross_mounts } => {
                (call, busy.and_then(|()| self.open(call, path, cross_mounts, descriptor)))
            }
            ToFilesAgent::Read { call, worktree, path, links, cap } => {
                (call, busy.and_then(|()| self.read(call, worktree, &path, links, cap)))
            }
            ToFilesAgent::Start { call, worktree, process } => {
                (call, busy.and_then(|()| self.start(call, worktree, process, descriptor)))
            }
            ToFilesAgent::Kill { process } => return self.kill(process),
            ToFilesAgent::Close { worktree } => {
                let closed = lock(&self.worktrees).remove(&worktree);
                return drop(closed);
            }
            ToFilesAgent::Ping { call } => return self.send(&FromFilesAgent::Pong { call }),
        };
        if let Err(errno) = result {
            self.send(&FromFilesAgent::Failed { call, errno: errno as i32 });
        }
    }

    fn open(&self, call: u64, path: Vec<u8>, cross_mounts: bool, root: Option<OwnedFd>) -> Result<(), Errno> {
        let root = root.ok_or(Errno::EBADF)?;
        let root = if self.has_own_mounts { own_view(&root).unwrap_or(root) } else { root };
        let path = OsString::from_vec(path);
        let folder = beneath::open_folder(root.as_fd(), Path::new(&path), cross_mounts)?;
        let facts = nix::sys::stat::fstat(&folder)?;
        let handle = beneath::file_handle(folder.as_fd());
        lock(&self.worktrees).insert(call, Arc::new(OpenWorktree { folder, cross_mounts }));
        self.send(&FromFilesAgent::Opened { call, device: facts.st_dev, inode: facts.st_ino, handle });
        Ok(())
    }

    fn worktree(&self, worktree: u64) -> Result<Arc<OpenWorktree>, Errno> {
        lock(&self.worktrees).get(&worktree).cloned().ok_or(Errno::EBADF)
    }

    fn read(&self, call: u64, worktree: u64, path: &str, links: bool, cap: u64) -> Result<(), Errno> {
        let worktree = self.worktree(worktree)?;
        let target = match beneath::open_file(worktree.folder.as_fd(), path, links, worktree.cross_mounts)? {
            PathTarget::Folder => ReadTarget::Folder,
            PathTarget::Nothing => ReadTarget::Nothing,
            PathTarget::Irregular => ReadTarget::Irregular,
            PathTarget::File(file, metadata) => match beneath::read_capped(file, metadata.len(), cap)? {
                Ok(bytes) => ReadTarget::File(self.send_pieces(call, bytes)),
                Err(size) => ReadTarget::TooLarge(size),
            },
        };
        self.send(&FromFilesAgent::Read { call, target });
        Ok(())
    }

    /// Sends all but the last part of a file's content, which it returns.
    fn send_pieces(&self, call: u64, bytes: Vec<u8>) -> Vec<u8> {
        if bytes.len() <= FILES_AGENT_PIECE_BYTES {
            return bytes;
        }
        let mut pieces = bytes.chunks(FILES_AGENT_PIECE_BYTES);
        let last = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            self.send(&FromFilesAgent::Piece { call, bytes: piece.to_vec() });
        }
        last.to_vec()
    }

    fn start(
        &self,
        call: u64,
        worktree: u64,
        process: FilesProcess,
        channel: Option<OwnedFd>,
    ) -> Result<(), Errno> {
        let channel = channel.ok_or(Errno::EBADF)?;
        let worktree = self.worktree(worktree)?;
        let mut arguments = match process {
            FilesProcess::Command => vec![crate::exec::MODE],
            FilesProcess::Broker { .. } => vec![crate::MODE, crate::role::DIES_WITH_PARENT],
        };
        if process == (FilesProcess::Broker { write: true }) {
            arguments.push(crate::role::WRITE);
        }
        if worktree.cross_mounts {
            arguments.push(crate::role::CROSS_MOUNTS);
        }
        let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
        // Held until the process is in the table: otherwise its end could be reaped before.
        let mut processes = lock(&self.processes);
        let program = Path::new(process::SELF);
        let namespace = self.user_namespace.iter().filter(|_| process == FilesProcess::Command);
        let fds: Vec<_> =
            [&channel, &worktree.folder].into_iter().chain(namespace).map(|fd| fd.as_fd()).collect();
        let pid = process::spawn(program, &arguments, &fds).map_err(|error| errno_of(&error))?;
        processes.insert(pid, call);
        self.send(&FromFilesAgent::Started { call });
        Ok(())
    }

    fn kill(&self, process: u64) {
        // A process in the table has not been reaped: its pid means no other one.
        let processes = lock(&self.processes);
        if let Some((pid, _)) = processes.iter().find(|(_, started_by)| **started_by == process) {
            let _ = kill(Pid::from_raw(*pid as i32), Signal::SIGKILL);
        }
    }
}

/// The same folder among the mounts that this process sees: commands can only be given folders of these. `None`: it is not there.
fn own_view(folder: &OwnedFd) -> Option<OwnedFd> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok()?;
    let own = nix::fcntl::open(&path, beneath::FOLDER, nix::sys::stat::Mode::empty()).ok()?;
    let (found, wanted) = (nix::sys::stat::fstat(&own).ok()?, nix::sys::stat::fstat(folder).ok()?);
    ((found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)).then_some(own)
}
