//! Supervisor ⇄ files agent, over a `SOCK_SEQPACKET` socket: one message per packet. Only the supervisor sends descriptors.
//!
//! Calls are numbered by the supervisor, in one sequence. The number of the call that opened a worktree or started a process also
//! identifies that worktree or process. Replies come in any order: a call that a file system delays delays no other one.

use crate::codec::{Decode, Encode};

/// Messages of a supervisor to a files agent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToFilesAgent {
    /// Opens a folder. With one descriptor: the root from which the path is resolved.
    Open {
        call: u64,
        /// Relative to the root, as bytes.
        path: Vec<u8>,
        /// Folders of other mounts may be entered, by this path and by every path beneath the folder.
        cross_mounts: bool,
    },
    /// Reads a file of an open worktree.
    Read {
        call: u64,
        worktree: u64,
        /// Relative to the worktree.
        path: String,
        /// Links within the worktree are followed.
        links: bool,
        /// Largest file (bytes).
        cap: u64,
    },
    /// Starts a process for an open worktree. With one descriptor: the process's channel.
    Start { call: u64, worktree: u64, process: FilesProcess },
    /// Kills a process. No reply besides [`FromFilesAgent::Ended`].
    Kill { process: u64 },
    /// Closes a worktree. No reply.
    Close { worktree: u64 },
    /// Checks that the agent responds, whatever its file systems do.
    Ping { call: u64 },
}

/// A process that uses a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum FilesProcess {
    /// A file broker.
    Broker {
        /// It may change files.
        write: bool,
    },
    /// The process of one command.
    Command,
}

/// Messages of a files agent to the supervisor; the agent's user may have made them up.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromFilesAgent {
    /// The agent has taken on its user's identity. The first message.
    Ready,
    /// It could not; the agent exits.
    NotReady { message: String },
    /// The reply to `Open`: device, inode and file handle of the folder.
    Opened { call: u64, device: u64, inode: u64, handle: Option<Vec<u8>> },
    /// A part of a file's content, in order; not the last one.
    Piece { call: u64, bytes: Vec<u8> },
    /// The reply to `Read`.
    Read { call: u64, target: ReadTarget },
    /// The reply to `Start`.
    Started { call: u64 },
    /// The reply to `Open`, `Read` or `Start`: the kernel's error number.
    Failed { call: u64, errno: i32 },
    /// A started process has exited: its wait status.
    Ended { process: u64, wait_status: i32 },
    /// The reply to `Ping`.
    Pong { call: u64 },
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ReadTarget {
    /// A regular file: its content, or the last part of it.
    File(Vec<u8>),
    Folder,
    Nothing,
    /// A device, a pipe or a socket.
    Irregular,
    /// A file above the cap: its size, or the part that was read (bytes).
    TooLarge(u64),
}
