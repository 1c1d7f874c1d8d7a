//! Calls of the `fs` module.

use crate::codec::{Decode, Encode};

/// A call of the `fs` module.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FsRequest {
    /// All bytes of a regular file, up to [`crate::limits::FS_READ_BYTES`].
    ReadFile { path: String },
    /// The entries of a folder, sorted by name.
    ReadDir { path: String },
    /// Metadata of a path.
    Stat {
        path: String,
        /// Describe a symbolic link itself (lstat).
        no_follow: bool,
    },
    /// Finds out whether a path exists and may be accessed.
    Exists { path: String },
    /// Checks that a path may be accessed with this mode.
    Access {
        path: String,
        /// As in `access(2)`: 4 read, 2 write, 1 execute, 0 exists.
        mode: u32,
    },
    /// The path with all symbolic links resolved.
    RealPath { path: String },
    /// Writes bytes to a regular file.
    Write {
        path: String,
        data: Vec<u8>,
        /// How existing content is treated.
        how: WriteMode,
        /// Permission bits of a new file; the lowest nine count.
        mode: u32,
    },
    /// Creates a folder.
    MakeDir {
        path: String,
        /// Create missing parents too; no error if the folder exists.
        recursive: bool,
        /// Permission bits of new folders; the lowest nine count.
        mode: u32,
    },
    /// Removes anything but a folder.
    RemoveFile { path: String },
    /// Removes an empty folder.
    RemoveDir { path: String },
    /// Removes a file or a folder.
    Remove {
        path: String,
        /// Remove a folder with its content.
        recursive: bool,
        /// No error if the path does not exist.
        force: bool,
    },
    /// Renames a file or a folder; an existing target is replaced.
    Rename {
        from: String,
        /// The new path.
        to: String,
    },
    /// Copies the bytes of a regular file.
    Copy {
        from: String,
        to: String,
        /// Fail if the target exists.
        exclusive: bool,
    },
}

impl FsRequest {
    /// Whether it changes files or folders if it succeeds.
    pub fn changes_files(&self) -> bool {
        match self {
            Self::ReadFile { .. }
            | Self::ReadDir { .. }
            | Self::Stat { .. }
            | Self::Exists { .. }
            | Self::Access { .. }
            | Self::RealPath { .. } => false,
            Self::Write { .. }
            | Self::MakeDir { .. }
            | Self::RemoveFile { .. }
            | Self::RemoveDir { .. }
            | Self::Remove { .. }
            | Self::Rename { .. }
            | Self::Copy { .. } => true,
        }
    }
}

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WriteMode {
    /// Create the file if it does not exist.
    pub create: bool,
    /// Fail if it exists.
    pub exclusive: bool,
    /// Truncate the file first.
    pub truncate: bool,
    /// Write at the end of the file; else at the beginning.
    pub append: bool,
}

/// The terms of an allowed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FsTerms {
    /// Symbolic links in the path are followed. False if path patterns are in force: a pattern applies to names, and a link is
    /// another name of a file.
    pub links: bool,
    /// The rights also apply to everything beneath the path: a folder may be moved or removed with its content.
    pub tree: bool,
    /// Folders down to this level must exist when a folder is created recursively.
    pub existing_levels: u32,
    /// Largest file that may be read or result from writing (bytes).
    pub max_file_bytes: u64,
    /// Most entries that are listed or removed in one call.
    pub max_entries: u32,
}

/// The reply to an `fs` call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FsReply {
    /// Content of a file.
    Bytes(Vec<u8>),
    /// Entries of a folder.
    Entries(Vec<DirEntry>),
    /// Metadata of a path.
    Stat(FileStat),
    Bool(bool),
    /// Success without data.
    Done,
    /// A path: the resolved one, or the first folder that was created (`None`: all existed).
    Path(Option<String>),
    /// Bytes that were written.
    Written(u64),
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DirEntry {
    /// Names that are not UTF-8 have replacement characters.
    pub name: String,
    /// Without following links.
    pub kind: FileKind,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum FileKind {
    /// A regular file.
    File,
    Directory,
    Symlink,
    /// Anything else.
    Other,
}

/// Metadata of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FileStat {
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
