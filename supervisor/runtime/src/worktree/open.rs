//! The handle of a worktree, and files opened beneath it.

use super::roots::{Roots, Walked, WorktreeClient};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use vm_system_sandbox::beneath::beneath_only;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::reader::as_user;

/// Times a path is looked up again when folders above it are moved in the same moment (`openat2` fails with EAGAIN).
pub(super) const RACES: u32 = 16;

/// Flags for opening the folder itself.
pub(super) const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// A worktree or one of its files cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeError {
    /// Absolute, `..`, NUL, blank, or a link that leaves the worktree.
    #[error("{0}")]
    InvalidPath(String),
    /// There is no regular file of this name.
    #[error("{0}")]
    NotFound(String),
    /// The file is larger than permitted.
    #[error("{path:?} has {size} bytes, the limit is {cap}")]
    TooLarge {
        /// Relative to the worktree.
        path: String,
        /// Its size, or the part that was read (bytes).
        size: u64,
        /// The cap (bytes).
        cap: u64,
    },
    /// The file cannot be read as text.
    #[error("{0}")]
    Unreadable(String),
    /// Nothing is wrong with it: the supervisor lacks descriptors, memory or threads.
    #[error("{0}")]
    Unavailable(String),
    /// The worktree itself: not absolute, missing, or not a folder.
    #[error("{0}")]
    Worktree(String),
    /// The worktree is outside the operator's roots, or not permitted to this client.
    #[error("{0}")]
    NotPermitted(String),
}

/// An open worktree. Clones share the handle.
#[derive(Debug, Clone)]
pub struct Worktree(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    handle: OwnedFd,
    /// The owner of the folder; files are opened with its rights. `None`: the supervisor's own rights.
    user: Option<Arc<Identity>>,
    cross_mounts: bool,
    /// Device and inode of the folder.
    folder: (u64, u64),
}

impl TryFrom<Walked> for Worktree {
    type Error = Errno;

    fn try_from(walked: Walked) -> Result<Self, Errno> {
        let Walked { handle, user, cross_mounts } = walked;
        let facts = nix::sys::stat::fstat(&handle)?;
        Ok(Self(Arc::new(Opened { handle, user, cross_mounts, folder: (facts.st_dev, facts.st_ino) })))
    }
}

impl AsFd for Worktree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.handle.as_fd()
    }
}

impl Worktree {
    /// Opens a folder that a client names. Blocks.
    pub fn open(path: &Path, roots: &Roots, client: &WorktreeClient) -> Result<Self, WorktreeError> {
        if !path.is_absolute() {
            return Err(WorktreeError::Worktree(format!(
                "the worktree path {} is not absolute",
                path.display()
            )));
        }
        let walked = roots.walk(path, client)?;
        walked.try_into().map_err(|errno: Errno| unusable(path, errno))
    }

    /// As [`Worktree::open`] for an administrator, from caches only; `None` where a disk, a server or the group database
    /// would have to be queried, or for any error. Does not block.
    pub fn open_cached(path: &Path, roots: &Roots, client: &WorktreeClient) -> Option<Self> {
        let cacheable = *client == WorktreeClient::Administrator && path.is_absolute();
        if cacheable { roots.walk_cached(path)?.try_into().ok() } else { None }
    }

    /// A folder of the operator, by any path, with our own rights. Blocks.
    pub fn of_operator(path: &Path) -> Result<Self, WorktreeError> {
        let opened = nix::fcntl::open(path, FOLDER, nix::sys::stat::Mode::empty());
        let handle = opened.map_err(|errno| unusable(path, errno))?;
        let walked = Walked { handle, user: None, cross_mounts: true };
        walked.try_into().map_err(|errno| unusable(path, errno))
    }

    /// The user as which a process uses the files; `None`: the supervisor's own.
    pub fn user(&self) -> Option<&Identity> {
        self.0.user.as_deref()
    }

    /// Whether files of other mounts beneath it may be used.
    pub fn cross_mounts(&self) -> bool {
        self.0.cross_mounts
    }

    /// Whether both are the same folder with the same rights: a process that was started for one may serve the other.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.folder == other.0.folder
            && self.0.user == other.0.user
            && self.0.cross_mounts == other.0.cross_mounts
    }

    /// The text of a regular file; a byte order mark is dropped. `path` is clean. Blocks.
    pub fn read_text(&self, path: &str, cap: u64) -> Result<String, WorktreeError> {
        self.as_owner(|| match self.look(path, true)? {
            PathTarget::File(file, size) => read(file, path, size, cap),
            PathTarget::Folder => Err(WorktreeError::NotFound(format!("{path:?} is a folder"))),
            PathTarget::Nothing => {
                Err(WorktreeError::NotFound(format!("there is no file {path:?} in the worktree")))
            }
        })
    }

    /// Runs `work` with the rights of the folder's owner, like a broker, if we are root.
    pub(super) fn as_owner<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, WorktreeError> + Send,
    ) -> Result<T, WorktreeError> {
        let Some(user) = self.user() else { return work() };
        as_user(user, work).unwrap_or_else(|error| {
            Err(not_begun(format!("the worktree cannot be read as its owner: {error}"), &error))
        })
    }

    /// The bytes of a regular file, and when it was changed (nanoseconds since the Unix epoch). `path` is clean. Blocks. With our
    /// own rights: for folders of the operator.
    pub fn read_bytes(&self, path: &str, cap: u64) -> Result<(Vec<u8>, i128), WorktreeError> {
        match self.look(path, true)? {
            PathTarget::File(file, size) => {
                let changed = file.metadata().map_or(0, |metadata| {
                    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
                });
                read_bytes(file, path, size, cap).map(|bytes| (bytes, changed))
            }
            PathTarget::Folder | PathTarget::Nothing => {
                Err(WorktreeError::NotFound(format!("there is no file {path:?}")))
            }
        }
    }

    /// The target of a path; through links if they are to be followed, and never out of the worktree.
    pub(super) fn look(&self, path: &str, links: bool) -> Result<PathTarget, WorktreeError> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let mut resolve = beneath_only(self.0.cross_mounts);
        resolve.set(ResolveFlag::RESOLVE_NO_SYMLINKS, !links);
        let how = OpenHow::new().flags(flags).resolve(resolve);
        let mut races = 0;
        let opened = loop {
            match openat2(self.as_fd(), path, how) {
                Err(Errno::EAGAIN) if races < RACES => races += 1,
                opened => break opened,
            }
        };
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG) => return Ok(PathTarget::Nothing),
            Err(Errno::EXDEV) => {
                let why = "leads out of the worktree, or onto another file system";
                return Err(WorktreeError::InvalidPath(format!("{path:?} {why}")));
            }
            Err(Errno::ELOOP) if !links => {
                let why = "is a link or below one; links are not followed where path patterns are in force";
                return Err(WorktreeError::InvalidPath(format!("{path:?} {why}")));
            }
            Err(Errno::ELOOP) => {
                return Err(WorktreeError::InvalidPath(format!("{path:?} is a loop of links")));
            }
            // A socket, or a device without a driver.
            Err(Errno::ENXIO | Errno::ENODEV) => return Err(irregular(path)),
            Err(errno) if is_shortage(errno) => {
                return Err(WorktreeError::Unavailable(format!("{path:?}: {}", errno.desc())));
            }
            Err(errno) => return Err(WorktreeError::Unreadable(format!("{path:?}: {}", errno.desc()))),
        };
        let metadata =
            file.metadata().map_err(|error| WorktreeError::Unreadable(format!("{path:?}: {error}")))?;
        if metadata.is_dir() {
            Ok(PathTarget::Folder)
        } else if metadata.is_file() {
            Ok(PathTarget::File(file, metadata.len()))
        } else {
            Err(irregular(path))
        }
    }
}

/// The target of a path.
pub(super) enum PathTarget {
    File(File, u64),
    Folder,
    Nothing,
}

fn unusable(path: &Path, errno: Errno) -> WorktreeError {
    let why = format!("the worktree {}: {}", path.display(), errno.desc());
    if is_shortage(errno) { WorktreeError::Unavailable(why) } else { WorktreeError::Worktree(why) }
}

/// Errors that say nothing about a path: descriptors, memory or threads are short.
pub(super) fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM)
}

/// The error of work as another user that did not begin.
pub(super) fn not_begun(why: String, error: &io::Error) -> WorktreeError {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    if is_shortage(errno) || errno == Errno::EAGAIN {
        WorktreeError::Unavailable(why)
    } else {
        WorktreeError::Worktree(why)
    }
}

fn irregular(path: &str) -> WorktreeError {
    WorktreeError::NotFound(format!("{path:?} is not a regular file"))
}

fn read_bytes(file: File, path: &str, size: u64, cap: u64) -> Result<Vec<u8>, WorktreeError> {
    let too_large = |size| WorktreeError::TooLarge { path: path.to_owned(), size, cap };
    if size > cap {
        return Err(too_large(size));
    }
    // The file may grow while it is read: one byte above the limit detects that.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(cap + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| WorktreeError::Unreadable(format!("{path:?}: {error}")))?;
    if bytes.len() as u64 > cap {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

pub(super) fn read(file: File, path: &str, size: u64, cap: u64) -> Result<String, WorktreeError> {
    let bytes = read_bytes(file, path, size, cap)?;
    let mut text = String::from_utf8(bytes)
        .map_err(|_| WorktreeError::Unreadable(format!("{path:?} is not UTF-8 text")))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}
