//! Calls of the `fs` module.

use crate::codec::{Decode, Encode};

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
    /// Whether a path may be used in a way.
    Access {
        /// Which.
        path: String,
        /// As in `access(2)`: 4 read, 2 write, 1 execute, 0 is there.
        mode: u32,
    },
    /// Where a path leads once all symbolic links are followed.
    RealPath {
        /// Which.
        path: String,
    },
    /// Puts bytes into a regular file.
    Write {
        /// Which.
        path: String,
        /// What.
        data: Vec<u8>,
        /// What becomes of what is there.
        how: WriteMode,
        /// Permission bits of a new file; the lowest nine count.
        mode: u32,
    },
    /// Makes a folder.
    MakeDir {
        /// Which.
        path: String,
        /// Make what is missing on the way too; one that is there is fine.
        recursive: bool,
        /// Permission bits of new folders; the lowest nine count.
        mode: u32,
    },
    /// Removes what is no folder.
    RemoveFile {
        /// Which.
        path: String,
    },
    /// Removes an empty folder.
    RemoveDir {
        /// Which.
        path: String,
    },
    /// Removes whatever is there.
    Remove {
        /// Which.
        path: String,
        /// A folder with everything in it.
        recursive: bool,
        /// That nothing is there is fine.
        force: bool,
    },
    /// Gives something another name; what has that name is replaced.
    Rename {
        /// Which.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Copies the bytes of a regular file.
    Copy {
        /// Which.
        from: String,
        /// The copy.
        to: String,
        /// Fail if there is something of that name.
        exclusive: bool,
    },
}

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WriteMode {
    /// Make it if it is not there.
    pub create: bool,
    /// Fail if it is there.
    pub exclusive: bool,
    /// Empty it first.
    pub truncate: bool,
    /// Write behind what is there; else from the beginning.
    pub append: bool,
}

/// What a call may do beyond its being allowed at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FsTerms {
    /// Symbolic links on the way are followed. Not so where path patterns are in force: a pattern speaks of names, and
    /// a link gives a file another one.
    pub links: bool,
    /// Everything beneath the path is in the rights too: a folder may be moved or removed with its content.
    pub tree: bool,
    /// Folders down to this level must be there already when a folder is made recursively.
    pub existing_levels: u32,
    /// Largest file that is read or may come of writing (bytes).
    pub max_file_bytes: u64,
    /// Most entries that are listed or removed in one call.
    pub max_entries: u32,
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
    /// It is done.
    Done,
    /// A path: where another one leads, or the first folder that was made (none: all were there).
    Path(Option<String>),
    /// Bytes that were written.
    Written(u64),
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
