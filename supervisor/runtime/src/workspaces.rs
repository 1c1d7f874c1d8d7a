//! The folders of workspaces' databases: `STATE_DIR/workspaces/owner-<name>/<name>`, one for each owner and workspace, and what they
//! may take: bytes of a workspace and of an owner, and workspaces of an owner. Counted from the file system, whatever the
//! brokers report, which alone open the files. Knows nothing of their content.

#[cfg(test)]
mod tests;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{Gid, Uid, fchown, geteuid, mkdir};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::namespaces::Ids;

/// More files of one workspace than brokers create; then its size is [`u64::MAX`].
const FILES: usize = 64;

/// The space that the databases of one owner may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// Workspaces of one owner that have databases.
    pub per_owner: usize,
    /// The databases of one workspace with their journals (bytes).
    pub workspace_bytes: u64,
    /// The databases of all workspaces of one owner (bytes).
    pub owner_bytes: u64,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self { per_owner: 256, workspace_bytes: 1 << 30, owner_bytes: 4 << 30 }
    }
}

/// The parent folder.
#[derive(Debug, Clone, Default)]
pub struct Workspaces(Option<Arc<Folders>>);

/// The name of a set of databases: owner and label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceKey {
    /// The session's owner.
    pub owner: String,
    /// The client's label.
    pub id: String,
}

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("{owner} has databases in {most} workspaces, the most that one owner may have")]
    TooMany { owner: String, most: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug)]
struct Folders {
    root: PathBuf,
    limits: WorkspaceLimits,
    /// Owners with brokers, by the name of their folder.
    owners: Mutex<HashMap<String, OwnerUse>>,
}

/// The space that the workspaces of one owner take, by the names of their folders.
#[derive(Debug, Default)]
struct OwnerUse {
    workspaces: HashMap<String, Size>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Size {
    /// As last counted.
    bytes: u64,
    /// Brokers that may change it.
    brokers: usize,
}

impl Workspaces {
    /// Folders beneath `root`, which is created on first use; `None`: no folders, only databases in memory.
    pub fn new(root: Option<PathBuf>, limits: WorkspaceLimits) -> Self {
        Self(root.map(|root| Arc::new(Folders { root, limits, owners: Mutex::default() })))
    }

    /// A workspace for one broker; its folder is created if missing, and a supervisor that is root gives it to `service_user`.
    /// Blocks: the first broker of an owner has all of the owner's files counted.
    pub fn open(
        &self,
        workspace: &WorkspaceKey,
        service_user: Ids,
    ) -> Result<Option<OpenWorkspace>, WorkspaceError> {
        let Some(folders) = &self.0 else { return Ok(None) };
        folders.open(workspace, service_user).map(Some)
    }
}

impl Folders {
    fn owners(&self) -> MutexGuard<'_, HashMap<String, OwnerUse>> {
        // No code panics while holding it.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(
        self: &Arc<Self>,
        workspace: &WorkspaceKey,
        service_user: Ids,
    ) -> Result<OpenWorkspace, WorkspaceError> {
        let owner = format!("owner-{}", digest(&workspace.owner));
        let name = name(workspace);
        make(&self.root)?;
        let parent = self.root.join(&owner);
        let counted = if self.owners().contains_key(&owner) { None } else { Some(OwnerUse::count(&parent)?) };
        // A folder is created, counted and removed under the lock, so that none is removed that was just opened.
        let mut owners = self.owners();
        let usage = owners.entry(owner.clone()).or_insert_with(|| counted.unwrap_or_default());
        let opened = self.open_folder(usage, workspace, &parent, &name, service_user);
        match opened {
            Ok(folder) => {
                usage.workspaces.entry(name.clone()).or_default().brokers += 1;
                drop(owners);
                let open = OpenWorkspace {
                    folders: Arc::clone(self),
                    folder: Arc::new(folder),
                    key: workspace.clone(),
                    owner,
                    name,
                };
                open.count();
                Ok(open)
            }
            Err(error) => {
                if usage.is_unused() {
                    owners.remove(&owner);
                }
                Err(error)
            }
        }
    }

    fn open_folder(
        &self,
        usage: &OwnerUse,
        workspace: &WorkspaceKey,
        parent: &Path,
        name: &str,
        service_user: Ids,
    ) -> Result<OwnedFd, WorkspaceError> {
        let most = self.limits.per_owner;
        if !usage.workspaces.contains_key(name) && usage.workspaces.len() >= most {
            return Err(WorkspaceError::TooMany { owner: workspace.owner.clone(), most });
        }
        make(parent)?;
        let path = parent.join(name);
        // Where earlier versions have it.
        let earlier = self.root.join(name);
        if !usage.workspaces.contains_key(name) && earlier.symlink_metadata().is_ok() {
            std::fs::rename(&earlier, &path)?;
        }
        make(&path)?;
        let folder = open(&path, FOLDER, Mode::empty()).map_err(io::Error::from)?;
        let owner = fstat(&folder).map_err(io::Error::from)?.st_uid;
        if geteuid().is_root() && owner != service_user.uid {
            let (uid, gid) = (Uid::from_raw(service_user.uid), Gid::from_raw(service_user.gid));
            fchown(&folder, Some(uid), Some(gid)).map_err(io::Error::from)?;
        }
        Ok(folder)
    }
}

const FOLDER: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_RDONLY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl OwnerUse {
    /// All workspaces in the folder of an owner; none if there is no folder.
    fn count(parent: &Path) -> io::Result<Self> {
        let mut usage = Self::default();
        let mut folder = match Dir::open(parent, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::ENOENT) => return Ok(usage),
            Err(error) => return Err(error.into()),
        };
        let names: Vec<_> =
            folder.iter().map(|entry| entry.map(|entry| entry.file_name().to_owned())).collect();
        for name in names {
            let name = name?;
            if name.to_bytes().starts_with(b".") {
                continue;
            }
            let bytes =
                nix::fcntl::openat(&folder, name.as_c_str(), FOLDER, Mode::empty()).and_then(bytes_in);
            let name = name.to_string_lossy().into_owned();
            // A folder that cannot be counted may not grow.
            usage.workspaces.insert(name, Size { bytes: bytes.unwrap_or(u64::MAX), brokers: 0 });
        }
        Ok(usage)
    }

    fn bytes(&self) -> u64 {
        self.workspaces.values().fold(0, |sum, size| sum.saturating_add(size.bytes))
    }

    fn is_unused(&self) -> bool {
        self.workspaces.values().all(|size| size.brokers == 0)
    }
}

/// A workspace that a broker uses. The folder is removed with the last one of them if nothing is in it.
#[derive(Debug)]
pub struct OpenWorkspace {
    folders: Arc<Folders>,
    folder: Arc<OwnedFd>,
    key: WorkspaceKey,
    owner: String,
    name: String,
}

/// The space that a workspace and its owner take, and may take (bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceUsage {
    workspace: u64,
    owner: u64,
    name: String,
    limits: WorkspaceLimits,
}

impl WorkspaceUsage {
    /// Bytes by which the databases may grow.
    pub fn growth(&self) -> u64 {
        let of_workspace = self.limits.workspace_bytes.saturating_sub(self.workspace);
        of_workspace.min(self.limits.owner_bytes.saturating_sub(self.owner))
    }

    /// Whether they take more than honest brokers can write: a call that may still grow the databases may also need a journal as
    /// large as they are, and other calls of the owner run beside it.
    pub fn is_excessive(&self) -> bool {
        let twice = |bytes: u64| bytes.saturating_mul(2).saturating_add(16 << 20);
        self.workspace > twice(self.limits.workspace_bytes) || self.owner > twice(self.limits.owner_bytes)
    }

    /// The error of a call that needs more than [`Self::growth`].
    pub fn refusal(&self) -> HostError {
        let Self { workspace, owner, name, limits } = self;
        let of_owner =
            limits.owner_bytes.saturating_sub(*owner) <= limits.workspace_bytes.saturating_sub(*workspace);
        let (whose, bytes, most, setting) = if of_owner {
            (format!("of {name}"), *owner, limits.owner_bytes, "owner_mb")
        } else {
            ("of this workspace".to_owned(), *workspace, limits.workspace_bytes, "workspace_mb")
        };
        HostError {
            code: "SQLITE_FULL".to_owned(),
            message: format!(
                "SQLITE_FULL: the databases {whose} have {} KiB of {} KiB; delete rows and run PRAGMA \
                 incremental_vacuum, or have the operator raise `{setting}` of [databases]",
                bytes / 1024,
                most / 1024
            ),
        }
    }
}

impl OpenWorkspace {
    /// Where its files are.
    pub fn folder(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.folder)
    }

    /// The limits of all workspaces.
    pub fn limits(&self) -> &WorkspaceLimits {
        &self.folders.limits
    }

    /// The space that it takes, as last counted.
    pub fn usage(&self) -> WorkspaceUsage {
        let owners = self.folders.owners();
        let usage = owners.get(&self.owner);
        let workspace = usage.and_then(|usage| usage.workspaces.get(&self.name));
        WorkspaceUsage {
            workspace: workspace.map_or(0, |size| size.bytes),
            owner: usage.map_or(0, OwnerUse::bytes),
            name: self.key.owner.clone(),
            limits: self.folders.limits,
        }
    }

    /// Counts its files again. Blocks.
    pub fn count(&self) -> WorkspaceUsage {
        // Opened again: the position of a handle is shared with its copies.
        let folder = nix::fcntl::openat(self.folder.as_fd(), ".", FOLDER, Mode::empty());
        let bytes = folder.and_then(bytes_in).unwrap_or(u64::MAX);
        if let Some(usage) = self.folders.owners().get_mut(&self.owner) {
            usage.workspaces.entry(self.name.clone()).or_default().bytes = bytes;
        }
        self.usage()
    }
}

impl Drop for OpenWorkspace {
    fn drop(&mut self) {
        let mut owners = self.folders.owners();
        let Some(usage) = owners.get_mut(&self.owner) else { return };
        let Some(size) = usage.workspaces.get_mut(&self.name) else { return };
        size.brokers -= 1;
        let parent = self.folders.root.join(&self.owner);
        // Fails if there are files.
        if size.brokers == 0 && std::fs::remove_dir(parent.join(&self.name)).is_ok() {
            usage.workspaces.remove(&self.name);
        }
        if usage.is_unused() {
            owners.remove(&self.owner);
            let _ = std::fs::remove_dir(parent);
        }
    }
}

/// The bytes of all files in a folder: those on the disk, or their length if that is more. [`u64::MAX`] if there is anything that
/// brokers do not create.
fn bytes_in(folder: OwnedFd) -> Result<u64, Errno> {
    let mut folder = Dir::from_fd(folder)?;
    let mut names = Vec::new();
    for entry in folder.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        if names.len() >= FILES {
            return Ok(u64::MAX);
        }
        names.push(name.to_owned());
    }
    let mut sum = 0_u64;
    for name in names {
        match fstatat(&folder, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) if is_regular(&stat) => sum = sum.saturating_add(bytes_of(&stat)),
            Ok(_) => return Ok(u64::MAX),
            // A journal that was removed meanwhile.
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}

fn is_regular(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
}

fn bytes_of(stat: &FileStat) -> u64 {
    let (blocks, length) = (u64::try_from(stat.st_blocks), u64::try_from(stat.st_size));
    blocks.unwrap_or(0).saturating_mul(512).max(length.unwrap_or(0))
}

fn make(path: &Path) -> io::Result<()> {
    match mkdir(path, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A name of fixed length for labels of any length; their lengths make it unambiguous.
fn name(workspace: &WorkspaceKey) -> String {
    let WorkspaceKey { owner, id } = workspace;
    digest(&format!("{}:{owner}{}:{id}", owner.len(), id.len()))
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(16).fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
