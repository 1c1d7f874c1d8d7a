//! Supervisor ⇄ broker, and the requests of host modules that both the worker and the broker speak of.
//!
//! Paths are relative to the worktree, with `/` between names; the broker opens them beneath a directory handle.

use crate::codec::{Decode, Encode};
use crate::worker::HostError;

/// What a supervisor tells a broker. Requests were checked against the effective policy before.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToBroker {
    /// Do this.
    Call {
        /// Echoed in the answer.
        call: u64,
        /// What.
        request: FsRequest,
    },
    /// End.
    Shutdown,
}

/// What a broker tells the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromBroker {
    /// The jail is up.
    Ready,
    /// The jail could not be built.
    Failed {
        /// Which step, why, and what to do.
        message: String,
    },
    /// The answer to a call.
    Reply {
        /// The call's number.
        call: u64,
        /// What came of it.
        reply: Result<FsReply, HostError>,
    },
}

/// A call of the `fs` module.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FsRequest {
    /// All bytes of a regular file, up to [`crate::limits::FS_READ_BYTES`].
    ReadFile {
        /// Which.
        path: String,
    },
    /// The entries of a folder, sorted by name.
    ReadDir {
        /// Which.
        path: String,
    },
    /// What a path is.
    Stat {
        /// Which.
        path: String,
        /// Describe a symbolic link itself (lstat).
        no_follow: bool,
    },
    /// Whether a path leads to something that may be seen.
    Exists {
        /// Which.
        path: String,
    },
}

/// What an `fs` call gives.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FsReply {
    /// Content of a file.
    Bytes(Vec<u8>),
    /// Entries of a folder.
    Entries(Vec<DirEntry>),
    /// What a path is.
    Stat(FileStat),
    /// A yes or no.
    Bool(bool),
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DirEntry {
    /// Its name; names that are not UTF-8 are shown with replacement characters.
    pub name: String,
    /// What it is, without following links.
    pub kind: FileKind,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Size (bytes).
    pub size: u64,
    /// Permission bits and file type as in `st_mode`.
    pub mode: u32,
    /// Last modification (milliseconds since the epoch).
    pub mtime_ms: i64,
    /// Last change of the inode (milliseconds since the epoch).
    pub ctime_ms: i64,
    /// Last access (milliseconds since the epoch).
    pub atime_ms: i64,
}
