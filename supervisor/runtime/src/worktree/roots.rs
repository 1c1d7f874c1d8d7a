//! Which folders may be worktrees, and with whose rights: the operator's roots, the clients that may name a folder beneath them, and
//! the user whose files agent opens it.
//!
//! The kernel walks every path (`openat2`), from a handle that was opened when the supervisor started, and refuses each step
//! that leaves the root, follows a link, or crosses into another mount. So the path's text says which root decides, and the owner
//! of a folder cannot replace it by a link to somewhere else. No path is read back (`readlink` of a descriptor shows a path of
//! the attacker's choice for a mount in a foreign namespace). Opens no worktree. Knows no HTTP, no store.

use super::open::{WorktreeError, outside};
use crate::files_agents::FilesAgents;
use nix::fcntl::open;
use nix::sys::stat::Mode;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use vm_system_record::{Owner, RecordedWorktree};
use vm_system_sandbox::beneath::FOLDER;
use vm_system_sandbox::identity::{uid_of_name, user_named};

/// A folder beneath which the operator allows worktrees, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RootSettings {
    /// An absolute path of an existing folder.
    pub path: PathBuf,
    /// Clients that may name a folder beneath it, besides administrators: `uid:NUMBER` or `user:NAME` for a user of this
    /// machine, else the name of a token. `None`: every client whose files a process with its own rights uses, and no other.
    pub owners: Option<Vec<String>>,
    /// Folders of other mounts beneath it may be used, too. A user who can mount there can then block a broker, or its own files
    /// agent, for ever.
    pub cross_mounts: bool,
}

/// The client that names a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeClient {
    /// Names any folder beneath any root.
    Administrator,
    /// An administrator who acts as another user: a name, or a number.
    AdministratorAs(String),
    /// A user of this machine.
    User(u32),
    /// The bearer of a token.
    Token {
        name: String,
        /// The user whose rights the operator gave it.
        uid: Option<u32>,
    },
    /// The bearer of a revoked token: may name no folder.
    Revoked,
}

impl WorktreeClient {
    /// The client of an owner of rows that is no administrator: `uid:NUMBER` for a user of this machine, else the name of a token.
    pub fn of_owner(owner: &str) -> Self {
        match owner.strip_prefix(UID).and_then(|uid| uid.parse().ok()) {
            Some(uid) => Self::User(uid),
            None => Self::Token { name: owner.to_owned(), uid: None },
        }
    }
}

/// Prefix of an owner that is a user of this machine; names of tokens have no colon.
const UID: &str = "uid:";

/// The user as which a supervisor that was started as root uses files for itself: root, without capabilities.
const ROOT: u32 = 0;

/// The rights with which a worktree is used.
#[derive(Debug)]
pub(super) enum FileRights {
    /// The rights of this process.
    Own,
    /// The rights of a user, by its files agent.
    User(FilesAgents, u32),
}

impl FileRights {
    pub(super) fn uid(&self) -> u32 {
        match self {
            Self::Own => own_uid(),
            Self::User(_, uid) => *uid,
        }
    }
}

/// The operator's roots, which may be replaced, and whether there are files agents. Clones share them.
#[derive(Debug, Clone)]
pub struct Roots {
    roots: Arc<RwLock<OpenRoots>>,
    agents: Option<FilesAgents>,
}

/// Roots that have been opened.
pub type OpenRoots = Arc<[Arc<Root>]>;

/// A root that has been opened.
#[derive(Debug)]
pub struct Root {
    /// As configured; may contain links, which the operator chose.
    configured: PathBuf,
    /// The path with all links resolved. Paths are compared with this one, whichever a client uses.
    resolved: PathBuf,
    handle: OwnedFd,
    owners: Option<BTreeSet<String>>,
    cross_mounts: bool,
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// A folder by its root.
#[derive(Debug)]
pub(super) struct RootPlace {
    pub(super) root: Arc<Root>,
    /// Relative to the root.
    pub(super) beneath: PathBuf,
}

impl Roots {
    /// Opens each root. Fails if a root does not exist, or names a user that does not exist. Without any: one at `/`, with all
    /// mounts; for users only with files agents, where each walks with its own rights in its own process. Without `agents` all files
    /// are used with this process's rights.
    pub fn new(settings: &[RootSettings], agents: Option<FilesAgents>) -> Result<Self, WorktreeError> {
        let roots = open_all(settings, agents.is_some(), &[])?;
        Ok(Self { roots: Arc::new(RwLock::new(roots)), agents })
    }

    /// Opens other roots in their place, for [`Roots::replace`]; fails as [`Roots::new`] does. A root that this process may not open
    /// any more, because it has given up rights since, stays the folder that it is. Blocks.
    pub fn open_again(&self, settings: &[RootSettings]) -> Result<OpenRoots, WorktreeError> {
        open_all(settings, self.has_agents(), &self.current())
    }

    /// From now on these roots decide, for all clones. Worktrees that are open stay open.
    pub fn replace(&self, roots: OpenRoots) {
        *self.roots.write().unwrap_or_else(PoisonError::into_inner) = roots;
    }

    /// The paths of the roots, as configured.
    pub fn configured(&self) -> Vec<PathBuf> {
        self.current().iter().map(|root| root.configured.clone()).collect()
    }

    fn current(&self) -> OpenRoots {
        Arc::clone(&self.roots.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Every folder that this process itself may use, for a command that works for the user who started it.
    pub fn of_this_process() -> Result<Self, WorktreeError> {
        let path = PathBuf::from("/");
        Self::new(&[RootSettings { path, owners: Some(Vec::new()), cross_mounts: true }], None)
    }

    /// Whether users have files agents.
    pub fn has_agents(&self) -> bool {
        self.agents.is_some()
    }

    /// The files agents, if there are any.
    pub fn agents(&self) -> Option<&FilesAgents> {
        self.agents.as_ref()
    }

    /// The place of a recorded worktree, if the client may use it as it was recorded: beneath the same root, which the operator still
    /// has, and with the rights of the same user. Does not block.
    pub(super) fn find_recorded(
        &self,
        recorded: &RecordedWorktree,
        client: &WorktreeClient,
    ) -> Result<(RootPlace, FileRights), WorktreeError> {
        let RecordedWorktree { uid, root, beneath, .. } = recorded;
        let root = Path::new(root);
        let path = root.join(beneath);
        if !self.current().iter().any(|known| known.configured == root) {
            return Err(WorktreeError::RootRemoved(format!(
                "the worktree {} was named beneath the root {}, which the daemon's configuration does not have any more",
                path.display(),
                root.display()
            )));
        }
        let of_admin = WorktreeClient::AdministratorAs(uid.to_string());
        let client = if *client == WorktreeClient::Administrator { &of_admin } else { client };
        let (place, rights) = self.find(&path, client)?;
        if rights.uid() != *uid {
            return Err(WorktreeError::UserNotPermitted(format!(
                "the worktree {} is used with the rights of uid {uid}, which its owner does not have any more",
                path.display()
            )));
        }
        Ok((place, rights))
    }

    /// The place of a folder, and the rights with which a client may use it. `path` is absolute. Looks up the user of
    /// [`WorktreeClient::AdministratorAs`], which blocks unless it is a number.
    pub(super) fn find(
        &self,
        path: &Path,
        client: &WorktreeClient,
    ) -> Result<(RootPlace, FileRights), WorktreeError> {
        let outside = || outside(path);
        let roots = self.current();
        let resolved = resolve(&roots, path).ok_or_else(outside)?;
        let place = place(&roots, &resolved).ok_or_else(outside)?;
        // The rules of another root also apply to a folder above it.
        let holds_a_root =
            |other: &Arc<Root>| other.resolved != resolved && other.resolved.starts_with(&resolved);
        let is_admin = matches!(client, WorktreeClient::Administrator | WorktreeClient::AdministratorAs(_));
        if !is_admin && roots.iter().any(holds_a_root) {
            return Err(outside());
        }
        let uid = match client {
            WorktreeClient::Administrator => None,
            WorktreeClient::AdministratorAs(user) => Some(uid_of(user)?),
            WorktreeClient::User(uid) => Some(*uid),
            WorktreeClient::Token { uid, .. } => *uid,
            WorktreeClient::Revoked => return Err(outside()),
        };
        if !is_admin && !self.permits(&place.root, client, uid) {
            return Err(outside());
        }
        let rights = match (&self.agents, uid) {
            (Some(agents), uid) => FileRights::User(agents.clone(), uid.unwrap_or(ROOT)),
            (None, Some(uid)) if matches!(client, WorktreeClient::AdministratorAs(_)) && !is_own(uid) => {
                let why = "only a daemon that was started as root uses files as another user";
                return Err(WorktreeError::UserNotPermitted(format!("{why} (uid {uid})")));
            }
            (None, _) => FileRights::Own,
        };
        Ok((place, rights))
    }

    /// Whether a client that is no administrator may name folders beneath a root. One whose rights a process has needs to be listed
    /// only if the root has a list.
    fn permits(&self, root: &Root, client: &WorktreeClient, uid: Option<u32>) -> bool {
        let has_process = uid.is_some_and(|uid| self.agents.is_some() || is_own(uid));
        let Some(owners) = &root.owners else { return has_process };
        let listed_token = match client {
            WorktreeClient::Token { name, .. } => owners.contains(name),
            _ => false,
        };
        let listed_user = uid.is_some_and(|uid| owners.contains(Owner::of_uid(uid).as_str()));
        listed_token || listed_user
    }
}

/// Without settings: one root at `/`.
fn open_all(
    settings: &[RootSettings],
    has_agents: bool,
    known: &[Arc<Root>],
) -> Result<OpenRoots, WorktreeError> {
    let everywhere = [RootSettings {
        path: PathBuf::from("/"),
        owners: if has_agents { None } else { Some(Vec::new()) },
        cross_mounts: true,
    }];
    let settings = if settings.is_empty() { &everywhere } else { settings };
    settings.iter().map(|root| Root::open(root, known).map(Arc::new)).collect()
}

/// A path with the links of a root's configured path resolved. None for a path with `..`: its text does not determine its
/// target.
fn resolve(roots: &[Arc<Root>], path: &Path) -> Option<PathBuf> {
    if path.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let by_root = |root: &Arc<Root>| {
        let rest = path.strip_prefix(&root.configured).ok()?;
        Some((root.configured.components().count(), root.resolved.join(rest)))
    };
    let longest = roots.iter().filter_map(by_root).max_by_key(|(depth, _)| *depth);
    Some(longest.map_or_else(|| path.to_owned(), |(_, resolved)| resolved))
}

/// The root with the longest path above a resolved path, and the rest of the path.
fn place(roots: &[Arc<Root>], path: &Path) -> Option<RootPlace> {
    let above = roots.iter().filter(|root| path.starts_with(&root.resolved));
    let root = above.max_by_key(|root| root.resolved.components().count())?;
    let rest = path.strip_prefix(&root.resolved).ok()?;
    let beneath = if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest.to_owned() };
    Some(RootPlace { root: Arc::clone(root), beneath })
}

fn is_own(uid: u32) -> bool {
    own_uid() == uid
}

fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The uid of a user's name or number. Blocks.
fn uid_of(user: &str) -> Result<u32, WorktreeError> {
    // As `id -u` prints it: `+2` and `02` are names.
    if let Ok(uid) = user.parse::<u32>()
        && uid.to_string() == user
    {
        return Ok(uid);
    }
    match user_named(user) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err(WorktreeError::NoSuchUser(format!("there is no user `{user}`"))),
        Err(errno) => Err(WorktreeError::Short(format!("user `{user}`: {}", errno.desc()))),
    }
}

impl Root {
    pub(super) fn cross_mounts(&self) -> bool {
        self.cross_mounts
    }

    pub(super) fn configured(&self) -> &Path {
        &self.configured
    }

    /// `known` roots are those from which a folder is taken that this process may not open.
    fn open(settings: &RootSettings, known: &[Arc<Self>]) -> Result<Self, WorktreeError> {
        let shown = settings.path.display();
        let wrong =
            |why: &dyn std::fmt::Display| WorktreeError::Worktree(format!("worktree root {shown}: {why}"));
        let opened = settings.path.canonicalize().and_then(|resolved| {
            let handle = open(&resolved, FOLDER, Mode::empty())?;
            Ok((resolved, handle))
        });
        let known = known.iter().find(|known| known.configured == settings.path);
        let (resolved, handle) = match (opened, known) {
            (Err(error), Some(known)) if error.kind() == io::ErrorKind::PermissionDenied => {
                (known.resolved.clone(), known.handle.try_clone().map_err(|error| wrong(&error))?)
            }
            (opened, _) => opened.map_err(|error| wrong(&error))?,
        };
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
}

impl RootSettings {
    /// Checks that the folder can be a root, as far as this process may look at it, and that the owners exist.
    pub fn check(&self) -> Result<(), WorktreeError> {
        match self.path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            _ => Root::open(self, &[]).map(drop),
        }
    }
}

/// An entry of `owners` in the form of the rows' owner.
fn owner_name(entry: &str) -> Result<String, String> {
    if let Some(name) = entry.strip_prefix("user:") {
        let uid = uid_of_name(name).map_err(|why| format!("owners: {why}"))?;
        return Ok(Owner::of_uid(uid).as_str().to_owned());
    }
    match entry.strip_prefix(UID) {
        Some(uid) if uid.parse::<u32>().is_err() => Err(format!("owners: {entry:?} is not uid:NUMBER")),
        None if entry.is_empty() || entry.contains(':') => {
            Err(format!("owners: {entry:?} is not uid:NUMBER, user:NAME or the name of a token"))
        }
        _ => Ok(entry.to_owned()),
    }
}
