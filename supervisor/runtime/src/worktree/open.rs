//! An open worktree, and files read beneath it: with this process's rights, or by the files agent of a user.

use super::roots::{FileRights, RootPlace, Roots, WorktreeClient};
use crate::files_agents::{FilesAgentError, FilesAgents, FilesChild, OpenFolder};
use nix::errno::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use vm_system_protocol::files_agent::{FilesProcess, ReadTarget};
use vm_system_record::RecordedWorktree;
use vm_system_sandbox::beneath::{self, FOLDER, PathTarget};

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
        /// The file's size, or the part that was read (bytes).
        size: u64,
        /// The cap (bytes).
        cap: u64,
    },
    /// The file cannot be read as text.
    #[error("{0}")]
    Unreadable(String),
    /// Nothing is wrong with it: descriptors, memory or threads are short.
    #[error("{0}")]
    Short(String),
    /// Nothing is wrong with it: there is no files agent at the moment.
    #[error("{0}")]
    Unavailable(String),
    /// Nothing is wrong with it: no files agent can be started before the daemon is restarted.
    #[error("{0}")]
    HelperExited(String),
    /// The worktree itself: not absolute, missing, or not a folder.
    #[error("{0}")]
    Worktree(String),
    /// The worktree is outside the operator's roots, or not permitted to this client.
    #[error("{0}")]
    NotPermitted(String),
    /// It would be used with the rights of a user, which this daemon, or the client, may not; the text says why.
    #[error("{0}")]
    UserNotPermitted(String),
    /// The user whose rights were named does not exist.
    #[error("{0}")]
    NoSuchUser(String),
    /// The operator's root beneath which it was recorded is not configured any more.
    #[error("{0}")]
    RootRemoved(String),
    /// The user whose rights use it has no passwd entry, or the uid has another name than at its creation.
    #[error("{0}")]
    OwnerGone(String),
}

/// An open worktree. Clones share it.
#[derive(Debug, Clone)]
pub struct Worktree(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    files: Files,
    cross_mounts: bool,
    /// As it was found now; none for a folder of the operator.
    recorded: Option<Arc<RecordedWorktree>>,
}

#[derive(Debug)]
enum Files {
    /// Used with this process's rights.
    Own {
        handle: OwnedFd,
        /// Device and inode.
        folder: (u64, u64),
    },
    /// Used by the files agent of a user.
    Agent(AgentFiles),
    /// It could not be opened again for a session that is older than this supervisor; the reason.
    Unavailable(String),
}

/// A folder of a user; opened again if the user's agent was replaced.
#[derive(Debug)]
struct AgentFiles {
    agents: FilesAgents,
    uid: u32,
    /// The name of this user.
    user: String,
    place: RootPlace,
    /// As the client named it.
    path: PathBuf,
    folder: Mutex<Arc<OpenFolder>>,
}

impl AgentFiles {
    fn present(&self) -> Arc<OpenFolder> {
        Arc::clone(&self.folder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The folder in a live agent. Blocks.
    fn folder(&self) -> Result<Arc<OpenFolder>, WorktreeError> {
        let present = self.present();
        if present.is_usable() {
            return Ok(present);
        }
        let RootPlace { root, beneath } = &self.place;
        let user = (self.uid, Some(&*self.user));
        let opened = self.agents.open(user, root.as_fd(), beneath, root.cross_mounts());
        let opened = Arc::new(opened.map_err(|error| of_agent(&self.path, error))?);
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&opened);
        Ok(opened)
    }
}

impl Worktree {
    /// Opens a folder that a client names. Blocks; for files agents on a thread of the runtime's blocking pool.
    pub fn open(path: &Path, roots: &Roots, client: &WorktreeClient) -> Result<Self, WorktreeError> {
        if !path.is_absolute() {
            return Err(WorktreeError::Worktree(format!(
                "the worktree path {} is not absolute",
                path.display()
            )));
        }
        Self::open_at(path, roots.find(path, client)?, None)
    }

    /// Opens a folder again, by the same rule as when it was recorded. Blocks, as [`Worktree::open`].
    pub fn open_recorded(
        recorded: &RecordedWorktree,
        roots: &Roots,
        client: &WorktreeClient,
    ) -> Result<Self, WorktreeError> {
        let found = roots.find_recorded(recorded, client)?;
        Self::open_at(&Path::new(&recorded.root).join(&recorded.beneath), found, recorded.user.as_deref())
    }

    fn open_at(
        path: &Path,
        (place, rights): (RootPlace, FileRights),
        user: Option<&str>,
    ) -> Result<Self, WorktreeError> {
        let RootPlace { root, beneath } = &place;
        let cross_mounts = root.cross_mounts();
        match rights {
            FileRights::Own => {
                let handle = beneath::open_folder(root.as_fd(), beneath, cross_mounts);
                Self::own(handle, &place).map_err(|errno| failed(path, errno))
            }
            FileRights::User(agents, uid) => {
                let opened = agents.open((uid, user), root.as_fd(), beneath, cross_mounts);
                let opened = opened.map_err(|error| of_agent(path, error))?;
                let user = opened.user().to_owned();
                let recorded = recorded(&place, (uid, Some(user.clone())), opened.handle());
                let folder = Mutex::new(Arc::new(opened));
                let files = AgentFiles { agents, uid, user, path: path.to_owned(), place, folder };
                Ok(Self(Arc::new(Opened {
                    files: Files::Agent(files),
                    cross_mounts,
                    recorded: Some(recorded),
                })))
            }
        }
    }

    /// A folder that is used with our own rights.
    fn own(handle: nix::Result<OwnedFd>, place: &RootPlace) -> nix::Result<Self> {
        let handle = handle?;
        let file_handle = beneath::file_handle(handle.as_fd());
        let recorded = recorded(place, (FileRights::Own.uid(), None), file_handle);
        let (files, cross_mounts) = (own(handle)?, place.root.cross_mounts());
        Ok(Self(Arc::new(Opened { files, cross_mounts, recorded: Some(recorded) })))
    }

    /// As [`Worktree::open`], or [`Worktree::open_recorded`], with this process's own rights, from caches only; `None` where a disk, a
    /// server or an agent would have to be queried, or for any error. Does not block.
    pub fn open_cached(
        path: &Path,
        recorded: Option<&RecordedWorktree>,
        roots: &Roots,
        client: &WorktreeClient,
    ) -> Option<Self> {
        if *client != WorktreeClient::Administrator || !path.is_absolute() {
            return None;
        }
        let found = match recorded {
            Some(recorded) => roots.find_recorded(recorded, client),
            None => roots.find(path, client),
        };
        let (place, FileRights::Own) = found.ok()? else { return None };
        let handle =
            beneath::open_cached_folder(place.root.as_fd(), &place.beneath, place.root.cross_mounts());
        Self::own(handle, &place).ok()
    }

    /// Where it is and whose rights use it, for its session's row; none for a folder of the operator.
    pub fn recorded(&self) -> Option<&Arc<RecordedWorktree>> {
        self.0.recorded.as_ref()
    }

    /// Checks that a client may still use it, by the rule by which it was opened. Does not block.
    pub fn permits(&self, roots: &Roots, client: &WorktreeClient) -> Result<(), WorktreeError> {
        match &self.0.recorded {
            Some(recorded) if *client != WorktreeClient::Administrator => {
                roots.find_recorded(recorded, client).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The worktree of a session that goes on without it: each use is an error.
    pub(crate) fn unavailable(why: String) -> Self {
        Self(Arc::new(Opened { files: Files::Unavailable(why), cross_mounts: false, recorded: None }))
    }

    /// A folder of the operator, by any path, with our own rights. Blocks.
    pub fn of_operator(path: &Path) -> Result<Self, WorktreeError> {
        let files = nix::fcntl::open(path, FOLDER, nix::sys::stat::Mode::empty()).and_then(own);
        let files = files.map_err(|errno| {
            WorktreeError::Worktree(format!("{} cannot be opened: {}", path.display(), errno.desc()))
        })?;
        Ok(Self(Arc::new(Opened { files, cross_mounts: true, recorded: None })))
    }

    /// The handle, if the files are used with this process's own rights.
    pub fn own_handle(&self) -> Option<BorrowedFd<'_>> {
        match &self.0.files {
            Files::Own { handle, .. } => Some(handle.as_fd()),
            Files::Agent(_) | Files::Unavailable(_) => None,
        }
    }

    /// Whether files of other mounts beneath it may be used.
    pub fn cross_mounts(&self) -> bool {
        self.0.cross_mounts
    }

    /// Whether both are the same folder with the same rights: a process that was started for one may serve the other.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = match (&self.0.files, &other.0.files) {
            (Files::Own { folder, .. }, Files::Own { folder: other, .. }) => folder == other,
            (Files::Agent(files), Files::Agent(other)) => files.present().is_same(&other.present()),
            _ => false,
        };
        same && self.0.cross_mounts == other.0.cross_mounts
    }

    /// Starts a process by the files agent that has the folder open, with its end of a channel. Not for one that is used with this
    /// process's own rights.
    pub(crate) async fn start(&self, process: FilesProcess, channel: &OwnedFd) -> io::Result<FilesChild> {
        let opened = Arc::clone(&self.0);
        let folder = tokio::task::spawn_blocking(move || match &opened.files {
            Files::Agent(files) => files.folder().map_err(|error| io::Error::other(error.to_string())),
            Files::Own { .. } => Err(io::ErrorKind::Unsupported.into()),
            Files::Unavailable(why) => Err(io::Error::other(why.clone())),
        });
        let folder = folder.await.map_err(io::Error::other)??;
        folder.start(process, channel).await.map_err(|error| io::Error::other(error.to_string()))
    }

    /// The text of a regular file; a byte order mark is dropped. `path` is clean. Blocks, as all of the following.
    pub fn read_text(&self, path: &str, cap: u64) -> Result<String, WorktreeError> {
        match self.look(path, true, cap)? {
            Found::File(bytes) => text(bytes, path),
            Found::Folder => Err(WorktreeError::NotFound(format!("{path:?} is a folder"))),
            Found::Nothing => {
                Err(WorktreeError::NotFound(format!("there is no file {path:?} in the worktree")))
            }
        }
    }

    /// The bytes of a regular file, and when it was changed (nanoseconds since the Unix epoch). `path` is clean. For folders of the
    /// operator.
    pub fn read_bytes(&self, path: &str, cap: u64) -> Result<(Vec<u8>, i128), WorktreeError> {
        let nothing = || WorktreeError::NotFound(format!("there is no file {path:?}"));
        let handle = self.own_handle().ok_or_else(nothing)?;
        let opened = beneath::open_file(handle, path, true, self.0.cross_mounts);
        let PathTarget::File(file, metadata) = opened.map_err(|errno| unreadable(path, true, errno))? else {
            return Err(nothing());
        };
        let changed = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let read = beneath::read_capped(file, metadata.len(), cap);
        match read.map_err(|errno| unreadable(path, true, errno))? {
            Ok(bytes) => Ok((bytes, changed)),
            Err(size) => Err(WorktreeError::TooLarge { path: path.to_owned(), size, cap }),
        }
    }

    /// The target of a path; through links if they are to be followed, and never out of the worktree.
    pub(super) fn look(&self, path: &str, links: bool, cap: u64) -> Result<Found, WorktreeError> {
        let target = match &self.0.files {
            Files::Own { handle, .. } => read_target(handle, path, links, (cap, self.0.cross_mounts))
                .map_err(|errno| unreadable(path, links, errno))?,
            Files::Agent(files) => match files.folder()?.read(path, links, cap) {
                Ok(target) => target,
                Err(FilesAgentError::File(errno)) => return Err(unreadable(path, links, errno)),
                Err(error) => return Err(WorktreeError::Unavailable(format!("{path:?}: {error}"))),
            },
            Files::Unavailable(why) => return Err(WorktreeError::Worktree(why.clone())),
        };
        match target {
            ReadTarget::File(bytes) => Ok(Found::File(bytes)),
            ReadTarget::Folder => Ok(Found::Folder),
            ReadTarget::Nothing => Ok(Found::Nothing),
            ReadTarget::Irregular => Err(WorktreeError::NotFound(format!("{path:?} is not a regular file"))),
            ReadTarget::TooLarge(size) => Err(WorktreeError::TooLarge { path: path.to_owned(), size, cap }),
        }
    }
}

/// The record of a worktree.
fn recorded(
    place: &RootPlace,
    (uid, user): (u32, Option<String>),
    handle: Option<Vec<u8>>,
) -> Arc<RecordedWorktree> {
    // Roots and worktrees are named by texts.
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (root, beneath) = (text(place.root.configured()), text(&place.beneath));
    Arc::new(RecordedWorktree { uid, user, root, beneath, handle })
}

fn own(handle: OwnedFd) -> nix::Result<Files> {
    let facts = nix::sys::stat::fstat(&handle)?;
    Ok(Files::Own { handle, folder: (facts.st_dev, facts.st_ino) })
}

/// Reads as a files agent does, with our own rights.
fn read_target(
    folder: &OwnedFd,
    path: &str,
    links: bool,
    (cap, cross_mounts): (u64, bool),
) -> nix::Result<ReadTarget> {
    Ok(match beneath::open_file(folder.as_fd(), path, links, cross_mounts)? {
        PathTarget::Folder => ReadTarget::Folder,
        PathTarget::Nothing => ReadTarget::Nothing,
        PathTarget::Irregular => ReadTarget::Irregular,
        PathTarget::File(file, metadata) => match beneath::read_capped(file, metadata.len(), cap)? {
            Ok(bytes) => ReadTarget::File(bytes),
            Err(size) => ReadTarget::TooLarge(size),
        },
    })
}

/// The target of a path.
pub(super) enum Found {
    File(Vec<u8>),
    Folder,
    Nothing,
}

/// The text of a file's content, without a byte order mark.
pub(super) fn text(bytes: Vec<u8>, path: &str) -> Result<String, WorktreeError> {
    let mut text = String::from_utf8(bytes)
        .map_err(|_| WorktreeError::Unreadable(format!("{path:?} is not UTF-8 text")))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Errors that say nothing about a path: descriptors, memory or threads are short.
pub(crate) fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::EAGAIN)
}

/// Why a file cannot be read.
fn unreadable(path: &str, links: bool, errno: Errno) -> WorktreeError {
    match errno {
        Errno::EXDEV => {
            let why = "leads out of the worktree, or onto another file system";
            WorktreeError::InvalidPath(format!("{path:?} {why}"))
        }
        Errno::ELOOP if !links => {
            let why = "is a link or below one; links are not followed where path patterns are in force";
            WorktreeError::InvalidPath(format!("{path:?} {why}"))
        }
        Errno::ELOOP => WorktreeError::InvalidPath(format!("{path:?} is a loop of links")),
        errno if is_shortage(errno) => WorktreeError::Short(format!("{path:?}: {}", errno.desc())),
        errno => WorktreeError::Unreadable(format!("{path:?}: {}", errno.desc())),
    }
}

/// One text for all paths outside and for all users without access: it does not reveal what exists.
pub(super) fn outside(path: &Path) -> WorktreeError {
    WorktreeError::NotPermitted(format!(
        "the worktree {} is not a folder beneath any worktree root that you may use",
        path.display()
    ))
}

/// Why a folder cannot be opened.
fn failed(path: &Path, errno: Errno) -> WorktreeError {
    let shown = path.display();
    match errno {
        // A link: the same as a path outside. Nothing else that the kernel refuses so can be in such a path but a mount.
        Errno::ELOOP => outside(path),
        Errno::EXDEV => WorktreeError::NotPermitted(format!(
            "the worktree {shown} is on another mount than the worktree root above it: the operator permits that with \
             `cross_mounts` of the root, or makes the mount itself a root"
        )),
        Errno::ENOENT => WorktreeError::Worktree(format!("the worktree {shown} does not exist")),
        Errno::ENOTDIR => WorktreeError::Worktree(format!("the worktree {shown} is not a folder")),
        beneath::OF_KERNEL => WorktreeError::NotPermitted(format!(
            "the worktree {shown} is a folder of the kernel (as in /proc, /sys and /dev), not of files: name another one"
        )),
        Errno::EACCES => {
            WorktreeError::NotPermitted(format!("the worktree {shown} cannot be opened: permission denied"))
        }
        errno => {
            let why = format!("the worktree {shown} cannot be opened: {}", errno.desc());
            if is_shortage(errno) { WorktreeError::Short(why) } else { WorktreeError::Worktree(why) }
        }
    }
}

fn of_agent(path: &Path, error: FilesAgentError) -> WorktreeError {
    let shown = path.display();
    match error {
        FilesAgentError::File(errno) => failed(path, errno),
        FilesAgentError::NoUser { .. } => {
            WorktreeError::OwnerGone(format!("the worktree {shown} cannot be used: {error}"))
        }
        FilesAgentError::Refused(_) => {
            WorktreeError::UserNotPermitted(format!("the worktree {shown} cannot be opened: {error}"))
        }
        error @ FilesAgentError::Lost { .. } => {
            WorktreeError::Unavailable(format!("the worktree {shown} cannot be opened: {error}"))
        }
        error @ FilesAgentError::HelperExited { .. } => {
            WorktreeError::HelperExited(format!("the worktree {shown} cannot be opened: {error}"))
        }
    }
}
