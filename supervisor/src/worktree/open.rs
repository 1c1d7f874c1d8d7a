//! The handle of a worktree, and files opened beneath it.

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vm_system_sandbox::namespaces::Ids;
use vm_system_sandbox::reader::as_owner;

/// Times a path is looked up again when folders above it are moved in the same moment (`openat2` says EAGAIN).
const RACES: u32 = 16;

/// How the folder itself is opened.
const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// A worktree or one of its files cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeError {
    /// Absolute, `..`, NUL, blank, or a link that leaves the worktree.
    #[error("{0}")]
    InvalidPath(String),
    /// There is no regular file of this name.
    #[error("{0}")]
    NotFound(String),
    /// Larger than what may be read.
    #[error("{path:?} has {size} bytes, at most {cap} are read")]
    TooLarge {
        /// Relative to the worktree.
        path: String,
        /// Its size, or the part of it that was seen (bytes).
        size: u64,
        /// The cap (bytes).
        cap: u64,
    },
    /// It is there, but cannot be read as text.
    #[error("{0}")]
    Unreadable(String),
    /// The worktree itself: not absolute, not there, not a folder.
    #[error("{0}")]
    Worktree(String),
    /// The worktree is outside the operator's `worktree_roots`.
    #[error("{0}")]
    NotPermitted(String),
}

/// Folders beneath which the operator allows worktrees.
#[derive(Debug, Clone, Default)]
pub struct Roots(Vec<PathBuf>);

impl Roots {
    /// With links resolved; empty: anywhere. Fails if one of them is not there.
    pub fn new(roots: &[PathBuf]) -> Result<Self, WorktreeError> {
        let resolved = roots.iter().map(|root| {
            root.canonicalize().map_err(|error| {
                WorktreeError::Worktree(format!("worktree root {}: {error}", root.display()))
            })
        });
        resolved.collect::<Result<_, _>>().map(Self)
    }

    fn allow(&self, path: &Path) -> bool {
        self.0.is_empty() || self.0.iter().any(|root| path.starts_with(root))
    }

    /// Whether opening a path fails with this error beneath one of them already, so that the error says nothing of
    /// what is elsewhere: neither `..` nor a link on the way leaves the root.
    fn is_theirs(&self, path: &Path, errno: Errno) -> bool {
        let mode = nix::sys::stat::Mode::empty();
        let how = OpenHow::new()
            .flags(FOLDER)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        self.0.is_empty()
            || self.0.iter().any(|root| {
                let (Ok(inside), Ok(root)) =
                    (path.strip_prefix(root), nix::fcntl::open(root.as_path(), FOLDER, mode))
                else {
                    return false;
                };
                let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
                errno != Errno::EXDEV && openat2(root, inside, how).err() == Some(errno)
            })
    }
}

/// An open worktree. Clones share the handle.
#[derive(Debug, Clone)]
pub struct Worktree(Arc<OwnedFd>);

impl AsFd for Worktree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Worktree {
    /// Opens a folder. Blocks. Where it really is, is asked after it was opened, so that nothing can be swapped between.
    pub fn open(path: &Path, roots: &Roots) -> Result<Self, WorktreeError> {
        Self::check(path)?;
        Self::accept(path, roots, nix::fcntl::open(path, FOLDER, nix::sys::stat::Mode::empty()))
    }

    /// As [`Worktree::open`] with what the kernel knows of the path already; `None` where it would have to ask a disk or
    /// a server, or cannot tell.
    pub fn open_cached(path: &Path, roots: &Roots) -> Option<Result<Self, WorktreeError>> {
        if let Err(error) = Self::check(path) {
            return Some(Err(error));
        }
        let cached = ResolveFlag::from_bits_retain(libc::RESOLVE_CACHED);
        let opened =
            openat2(nix::fcntl::AT_FDCWD, path, OpenHow::new().flags(FOLDER).resolve(cached)).ok()?;
        Some(Self::accept(path, roots, Ok(opened)))
    }

    fn check(path: &Path) -> Result<(), WorktreeError> {
        if path.is_absolute() {
            return Ok(());
        }
        Err(WorktreeError::Worktree(format!("the worktree path {} is not absolute", path.display())))
    }

    fn accept(path: &Path, roots: &Roots, opened: nix::Result<OwnedFd>) -> Result<Self, WorktreeError> {
        let shown = path.display();
        // One text for everything outside: nobody learns from it what is there.
        let outside = || {
            WorktreeError::NotPermitted(format!(
                "the worktree {shown} is not a folder beneath any of the operator's worktree roots"
            ))
        };
        let handle = opened.map_err(|errno| {
            if !roots.is_theirs(path, errno) {
                return outside();
            }
            WorktreeError::Worktree(match errno {
                Errno::ENOENT => format!("the worktree {shown} does not exist"),
                Errno::ENOTDIR => format!("the worktree {shown} is not a folder"),
                errno => format!("the worktree {shown} cannot be opened: {}", errno.desc()),
            })
        })?;
        if !roots.0.is_empty() {
            let real = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
                .map_err(|error| WorktreeError::Worktree(format!("the worktree {shown}: {error}")))?;
            if !roots.allow(&real) {
                return Err(outside());
            }
        }
        Ok(Self(Arc::new(handle)))
    }

    /// The text of a regular file; a byte order mark is dropped. `path` is clean. Blocks.
    pub fn read_text(&self, path: &str, cap: u64) -> Result<String, WorktreeError> {
        self.as_owner(|| match self.look(path, true)? {
            Found::File(file, size) => read(file, path, size, cap),
            Found::Folder => Err(WorktreeError::NotFound(format!("{path:?} is a folder"))),
            Found::Nothing => {
                Err(WorktreeError::NotFound(format!("there is no file {path:?} in the worktree")))
            }
        })
    }

    /// Does work that opens files with the rights of whom the folder belongs to, as brokers do, if we are root.
    pub(super) fn as_owner<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, WorktreeError> + Send,
    ) -> Result<T, WorktreeError> {
        let failed = |error: std::io::Error| {
            WorktreeError::Unreadable(format!("the worktree cannot be read as its owner: {error}"))
        };
        let folder = nix::sys::stat::fstat(&*self.0).map_err(|errno| failed(errno.into()))?;
        let owner = Ids { uid: folder.st_uid, gid: folder.st_gid };
        as_owner(owner, work).unwrap_or_else(|error| Err(failed(error)))
    }

    /// The bytes of a regular file, and when it was changed (nanoseconds since the Unix epoch). `path` is clean. Blocks. With our
    /// own rights: for folders of the operator's.
    pub fn read_bytes(&self, path: &str, cap: u64) -> Result<(Vec<u8>, i128), WorktreeError> {
        match self.look(path, true)? {
            Found::File(file, size) => {
                let changed = file.metadata().map_or(0, |metadata| {
                    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
                });
                read_bytes(file, path, size, cap).map(|bytes| (bytes, changed))
            }
            Found::Folder | Found::Nothing => {
                Err(WorktreeError::NotFound(format!("there is no file {path:?}")))
            }
        }
    }

    /// What a path leads to; through links if they are to be followed, and never out of the worktree.
    pub(super) fn look(&self, path: &str, links: bool) -> Result<Found, WorktreeError> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let mut resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        resolve.set(ResolveFlag::RESOLVE_NO_SYMLINKS, !links);
        let how = OpenHow::new().flags(flags).resolve(resolve);
        let mut races = 0;
        let opened = loop {
            match openat2(self.0.as_fd(), path, how) {
                Err(Errno::EAGAIN) if races < RACES => races += 1,
                opened => break opened,
            }
        };
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG) => return Ok(Found::Nothing),
            Err(Errno::EXDEV) => {
                return Err(WorktreeError::InvalidPath(format!("{path:?} leads out of the worktree")));
            }
            Err(Errno::ELOOP) if !links => {
                let why = "is a link or behind one, which is not followed where path patterns are in force";
                return Err(WorktreeError::InvalidPath(format!("{path:?} {why}")));
            }
            Err(Errno::ELOOP) => {
                return Err(WorktreeError::InvalidPath(format!("{path:?} is a loop of links")));
            }
            // A socket, or a device without a driver.
            Err(Errno::ENXIO | Errno::ENODEV) => return Err(irregular(path)),
            Err(errno) => return Err(WorktreeError::Unreadable(format!("{path:?}: {}", errno.desc()))),
        };
        let metadata =
            file.metadata().map_err(|error| WorktreeError::Unreadable(format!("{path:?}: {error}")))?;
        if metadata.is_dir() {
            Ok(Found::Folder)
        } else if metadata.is_file() {
            Ok(Found::File(file, metadata.len()))
        } else {
            Err(irregular(path))
        }
    }
}

/// What a path leads to.
pub(super) enum Found {
    File(File, u64),
    Folder,
    Nothing,
}

fn irregular(path: &str) -> WorktreeError {
    WorktreeError::NotFound(format!("{path:?} is not a regular file"))
}

fn read_bytes(file: File, path: &str, size: u64, cap: u64) -> Result<Vec<u8>, WorktreeError> {
    let too_large = |size| WorktreeError::TooLarge { path: path.to_owned(), size, cap };
    if size > cap {
        return Err(too_large(size));
    }
    // The file may grow while it is read: one byte more than allowed tells.
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
