//! Which folders may be worktrees: the operator's roots, the clients that may name a folder beneath them, and the walk from a
//! root's handle to that folder.
//!
//! The kernel walks every path (`openat2`), from a handle that was opened when the supervisor started, and refuses each step
//! that leaves the root, follows a link, or crosses into another mount. So the path's text says which root decides, and the owner
//! of a folder cannot replace it by a link to somewhere else. No path is read back (`readlink` of a descriptor shows a path of
//! the attacker's choice for a mount in a foreign namespace). Blocks. Knows no HTTP, no store.

use super::open::{FOLDER, RACES, WorktreeError, is_shortage, not_begun};
use nix::errno::Errno;
use nix::fcntl::{OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::{Mode, fstat};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vm_system_sandbox::beneath::beneath_only;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces::is_root;
use vm_system_sandbox::reader::{as_user, can_become, may_search};

/// How long the groups of a user are remembered: a change in the group database takes effect within this time.
const IDENTITY_AGE: Duration = Duration::from_secs(10);
/// Users whose groups are remembered at a time.
const IDENTITIES: usize = 1_024;

/// A folder beneath which the operator allows worktrees, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RootSettings {
    /// An absolute path of an existing folder.
    pub path: PathBuf,
    /// Clients that may name a folder beneath it, besides administrators: `uid:NUMBER` or `user:NAME` for a user of this
    /// machine, else the name of a token. `None`: each user the folders that it owns; no token.
    pub owners: Option<Vec<String>>,
    /// Folders of other mounts beneath it may be used, too. A user who can mount there can then block a broker for ever.
    pub cross_mounts: bool,
}

/// The client that names a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeClient {
    /// Names any folder beneath any root.
    Administrator,
    /// A user of this machine.
    User(u32),
    /// The bearer of a token; no user of this machine.
    Token(String),
    /// The bearer of a revoked token: may name no folder.
    Revoked,
}

impl WorktreeClient {
    /// The client of an owner of rows: `uid:NUMBER` for a user of this machine, else the name of a token.
    pub fn new(owner: &str, admin: bool) -> Self {
        if admin {
            return Self::Administrator;
        }
        match owner.strip_prefix(UID).and_then(|uid| uid.parse().ok()) {
            Some(uid) => Self::User(uid),
            None => Self::Token(owner.to_owned()),
        }
    }
}

/// Prefix of an owner that is a user of this machine; names of tokens have no colon.
const UID: &str = "uid:";

/// The operator's roots. Clones share them.
#[derive(Debug, Clone)]
pub struct Roots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    roots: Vec<Root>,
    identities: Mutex<HashMap<u32, (Instant, Arc<Identity>)>>,
}

#[derive(Debug)]
pub(super) struct Root {
    /// As configured; may contain links, which the operator chose.
    configured: PathBuf,
    /// With all links resolved. Paths are compared with this one, whichever a client uses.
    resolved: PathBuf,
    handle: OwnedFd,
    owners: Option<BTreeSet<String>>,
    cross_mounts: bool,
}

/// An opened folder, and the rights for its files.
pub(super) struct Walked {
    pub(super) handle: OwnedFd,
    /// The user as which its files are used; `None`: the supervisor's own rights.
    pub(super) user: Option<Arc<Identity>>,
    pub(super) cross_mounts: bool,
}

impl Roots {
    /// Opens each root. Fails if a root does not exist, or names a user that does not exist. Without any: one at `/`, for
    /// administrators only; a supervisor of root then crosses no mount, since it walks with rights that users do not have.
    pub fn new(settings: &[RootSettings]) -> Result<Self, WorktreeError> {
        let everywhere =
            [RootSettings { path: PathBuf::from("/"), owners: Some(Vec::new()), cross_mounts: !is_root() }];
        let settings = if settings.is_empty() { &everywhere } else { settings };
        let roots = settings.iter().map(Root::open).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Shared { roots, identities: Mutex::default() })))
    }

    /// Every folder that this process itself may use, for a command that works for the user who started it.
    pub fn of_this_process() -> Result<Self, WorktreeError> {
        Self::new(&[RootSettings { path: PathBuf::from("/"), owners: Some(Vec::new()), cross_mounts: true }])
    }

    /// Opens a folder for a client. `path` is absolute.
    pub(super) fn walk(&self, path: &Path, client: &WorktreeClient) -> Result<Walked, WorktreeError> {
        let outside = || outside(path);
        let resolved = self.resolve(path).ok_or_else(outside)?;
        let (root, beneath) = self.find(&resolved).ok_or_else(outside)?;
        // The rules of another root also apply to a folder above it.
        let holds_a_root = |other: &Root| other.resolved != resolved && other.resolved.starts_with(&resolved);
        if *client != WorktreeClient::Administrator && self.0.roots.iter().any(holds_a_root) {
            return Err(outside());
        }
        let own_rights = || root.walk(beneath, false).map_err(|errno| failed(path, errno));
        let listed = |owner: &str| root.owners.as_ref().map(|owners| owners.contains(owner));
        let handle = match client {
            WorktreeClient::Administrator => own_rights()?,
            WorktreeClient::Token(name) if listed(name) == Some(true) => own_rights()?,
            WorktreeClient::Token(_) | WorktreeClient::Revoked => return Err(outside()),
            WorktreeClient::User(uid) => match listed(&format!("{UID}{uid}")) {
                Some(false) => return Err(outside()),
                Some(true) if !can_become(*uid) => own_rights()?,
                _ => self.walk_of_user(root, path, beneath, *uid)?,
            },
        };
        let user = self.user_of(&handle).map_err(|error| unusable(path, &error))?;
        Ok(Walked { handle, user, cross_mounts: root.cross_mounts })
    }

    /// As [`Roots::walk`] for an administrator, from what the kernel and the supervisor have cached; `None` where a disk, a
    /// server or the group database would have to be queried, or for any error. Does not block.
    pub(super) fn walk_cached(&self, path: &Path) -> Option<Walked> {
        let resolved = self.resolve(path)?;
        let (root, beneath) = self.find(&resolved)?;
        let handle = root.walk(beneath, true).ok()?;
        let uid = fstat(&handle).ok()?.st_uid;
        let user = if is_root() { Some(self.remembered(uid)?) } else { None };
        let user = user.filter(|_| can_become(uid));
        Some(Walked { handle, user, cross_mounts: root.cross_mounts })
    }

    /// A path with the links of a root's configured path resolved. None for a path with `..`: its text does not determine its
    /// target.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        if path.components().any(|component| component == Component::ParentDir) {
            return None;
        }
        let by_root = |root: &Root| {
            let rest = path.strip_prefix(&root.configured).ok()?;
            Some((root.configured.components().count(), root.resolved.join(rest)))
        };
        let longest = self.0.roots.iter().filter_map(by_root).max_by_key(|(depth, _)| *depth);
        Some(longest.map_or_else(|| path.to_owned(), |(_, resolved)| resolved))
    }

    /// The root with the longest path above a resolved path, and the rest of the path.
    fn find<'a, 'p>(&'a self, path: &'p Path) -> Option<(&'a Root, &'p Path)> {
        let above = self.0.roots.iter().filter(|root| path.starts_with(&root.resolved));
        let root = above.max_by_key(|root| root.resolved.components().count())?;
        let rest = path.strip_prefix(&root.resolved).ok()?;
        Some((root, if rest.as_os_str().is_empty() { Path::new(".") } else { rest }))
    }

    /// A folder that the user owns, reached through folders that the user may search: with the user's own rights where we can
    /// take them on, else by the modes of the folders.
    fn walk_of_user(
        &self,
        root: &Root,
        path: &Path,
        beneath: &Path,
        uid: u32,
    ) -> Result<OwnedFd, WorktreeError> {
        let user = Identity::of_user(uid).map_err(|error| unusable(path, &error))?;
        let user = user.ok_or_else(|| outside(path))?;
        let opened = if can_become(uid) {
            as_user(&user, || root.walk(beneath, false)).map_err(|error| unusable(path, &error))?
        } else {
            root.walk_by_modes(beneath, &user)
        };
        let handle = opened.map_err(|errno| failed(path, errno))?;
        if fstat(&handle).map_err(|errno| failed(path, errno))?.st_uid != uid {
            return Err(WorktreeError::NotPermitted(format!(
                "the worktree {} belongs to another user",
                path.display()
            )));
        }
        self.remember(uid, Arc::new(user));
        Ok(handle)
    }

    /// The owner of a folder, if the folder's files must be used with its rights.
    fn user_of(&self, folder: &OwnedFd) -> io::Result<Option<Arc<Identity>>> {
        let uid = fstat(folder)?.st_uid;
        if !can_become(uid) {
            return Ok(None);
        }
        if let Some(user) = self.remembered(uid) {
            return Ok(Some(user));
        }
        let user = Arc::new(Identity::of_file_owner(uid)?);
        self.remember(uid, Arc::clone(&user));
        Ok(Some(user))
    }

    fn remembered(&self, uid: u32) -> Option<Arc<Identity>> {
        let identities = self.0.identities.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, identity) = identities.get(&uid)?;
        (since.elapsed() < IDENTITY_AGE).then(|| Arc::clone(identity))
    }

    fn remember(&self, uid: u32, identity: Arc<Identity>) {
        let mut identities = self.0.identities.lock().unwrap_or_else(PoisonError::into_inner);
        if identities.len() >= IDENTITIES {
            identities.clear();
        }
        identities.insert(uid, (Instant::now(), identity));
    }
}

impl Root {
    pub(super) fn open(settings: &RootSettings) -> Result<Self, WorktreeError> {
        let shown = settings.path.display();
        let wrong =
            |why: &dyn std::fmt::Display| WorktreeError::Worktree(format!("worktree root {shown}: {why}"));
        let resolved = settings.path.canonicalize().map_err(|error| wrong(&error))?;
        let handle = open(&resolved, FOLDER, Mode::empty()).map_err(|errno| wrong(&errno.desc()))?;
        let owners = settings.owners.as_ref().map(|owners| {
            let known = owners.iter().map(|owner| owner_name(owner));
            known.collect::<Result<_, _>>().map_err(|why| wrong(&why))
        });
        Ok(Self {
            configured: settings.path.clone(),
            resolved,
            handle,
            owners: owners.transpose()?,
            cross_mounts: settings.cross_mounts,
        })
    }

    /// With the rights of the calling thread. `cached`: fails where it would have to wait.
    fn walk(&self, beneath: &Path, cached: bool) -> nix::Result<OwnedFd> {
        let mut resolve = beneath_only(self.cross_mounts) | ResolveFlag::RESOLVE_NO_SYMLINKS;
        resolve.set(ResolveFlag::from_bits_retain(libc::RESOLVE_CACHED), cached);
        let how = OpenHow::new().flags(FOLDER).resolve(resolve);
        if cached {
            return openat2(&self.handle, beneath, how);
        }
        let mut races = 0;
        loop {
            match openat2(&self.handle, beneath, how) {
                Err(Errno::EAGAIN) if races < RACES => races += 1,
                opened => return opened,
            }
        }
    }

    /// One folder after the other, each only if the mode of the one above lets `user` search: the walk reveals nothing that the
    /// user could not see. Follows no link.
    pub(super) fn walk_by_modes(&self, beneath: &Path, user: &Identity) -> nix::Result<OwnedFd> {
        let mut folder = self.handle.try_clone().map_err(|_| Errno::EMFILE)?;
        for component in beneath.components() {
            let name = match component {
                Component::CurDir => continue,
                Component::Normal(name) => name,
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => return Err(Errno::EXDEV),
            };
            match may_search(user, folder.as_fd()) {
                Ok(true) => {}
                Ok(false) => return Err(Errno::EACCES),
                // Access control lists are not evaluated here.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(Errno::EOPNOTSUPP),
                Err(error) => return Err(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))),
            }
            let resolve = beneath_only(self.cross_mounts) | ResolveFlag::RESOLVE_NO_SYMLINKS;
            folder = openat2(&folder, name, OpenHow::new().flags(FOLDER).resolve(resolve))?;
        }
        Ok(folder)
    }
}

/// An entry of `owners` in the form of the rows' owner.
fn owner_name(entry: &str) -> Result<String, String> {
    if let Some(name) = entry.strip_prefix("user:") {
        return match nix::unistd::User::from_name(name) {
            Ok(Some(user)) => Ok(format!("{UID}{}", user.uid)),
            Ok(None) => Err(format!("owners: there is no user `{name}`")),
            Err(errno) => Err(format!("owners: user `{name}`: {}", errno.desc())),
        };
    }
    match entry.strip_prefix(UID) {
        Some(uid) if uid.parse::<u32>().is_err() => Err(format!("owners: {entry:?} is not uid:NUMBER")),
        None if entry.is_empty() || entry.contains(':') => {
            Err(format!("owners: {entry:?} is not uid:NUMBER, user:NAME or the name of a token"))
        }
        _ => Ok(entry.to_owned()),
    }
}

/// One text for all paths outside and for all users without access: it does not reveal what exists.
fn outside(path: &Path) -> WorktreeError {
    WorktreeError::NotPermitted(format!(
        "the worktree {} is not a folder beneath any worktree root that you may use",
        path.display()
    ))
}

fn failed(path: &Path, errno: Errno) -> WorktreeError {
    let shown = path.display();
    WorktreeError::Worktree(match errno {
        // A link, or a mount that leads out of the root: the same as a path outside.
        Errno::EXDEV | Errno::ELOOP => return outside(path),
        Errno::ENOENT => format!("the worktree {shown} does not exist"),
        Errno::ENOTDIR => format!("the worktree {shown} is not a folder"),
        Errno::EOPNOTSUPP => {
            let why =
                "a folder on the way has an access control list, which is not evaluated for other users";
            format!("the worktree {shown} cannot be opened: {why} (list the user in `owners` of the root)")
        }
        Errno::EACCES => {
            return WorktreeError::NotPermitted(format!(
                "the worktree {shown} cannot be opened: permission denied"
            ));
        }
        errno if is_shortage(errno) => {
            return WorktreeError::Unavailable(format!(
                "the worktree {shown} cannot be opened: {}",
                errno.desc()
            ));
        }
        errno => format!("the worktree {shown} cannot be opened: {}", errno.desc()),
    })
}

fn unusable(path: &Path, error: &io::Error) -> WorktreeError {
    not_begun(format!("the worktree {} cannot be opened: {error}", path.display()), error)
}
