//! The folders of workspaces' databases: `STATE_DIR/workspaces/<name>`, one for each owner, workspace and
//! user of the worktree. Knows nothing of the content; only brokers open the files.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{Gid, Uid, fchown, geteuid, mkdir};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use vm_system_sandbox::namespaces::Ids;

/// The parent folder.
#[derive(Debug, Clone, Default)]
pub struct Workspaces(Option<Arc<PathBuf>>);

/// The name of a set of databases: owner and label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceKey {
    /// The session's owner.
    pub owner: String,
    /// The client's label.
    pub id: String,
}

impl Workspaces {
    /// Folders beneath `root`, which is created on first use; `None`: no folders, only databases in memory.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self(root.map(Arc::new))
    }

    /// The folder of a workspace, created if missing; a supervisor that is root gives it to `service_user`.
    pub fn open(&self, workspace: &WorkspaceKey, service_user: Ids) -> io::Result<Option<OwnedFd>> {
        let Some(root) = &self.0 else { return Ok(None) };
        make(root)?;
        let path = root.join(name(workspace));
        make(&path)?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let folder = open(&path, flags, Mode::empty())?;
        if geteuid().is_root() && fstat(&folder)?.st_uid != service_user.uid {
            fchown(&folder, Some(Uid::from_raw(service_user.uid)), Some(Gid::from_raw(service_user.gid)))?;
        }
        Ok(Some(folder))
    }
}

fn make(path: &std::path::Path) -> Result<(), Errno> {
    match mkdir(path, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A name of fixed length for labels of any length; their lengths make it unambiguous.
fn name(workspace: &WorkspaceKey) -> String {
    let WorkspaceKey { owner, id } = workspace;
    let digest = Sha256::digest(format!("{}:{owner}{}:{id}", owner.len(), id.len()));
    digest.iter().take(16).fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_sandbox::identity::Identity;

    fn workspace(owner: &str, id: &str) -> WorkspaceKey {
        WorkspaceKey { owner: owner.to_owned(), id: id.to_owned() }
    }

    #[test]
    fn every_owner_and_workspace_has_a_folder_of_its_own() {
        let names = [
            name(&workspace("a", "b")),
            name(&workspace("ab", "")),
            name(&workspace("", "ab")),
            name(&workspace("a", "../b")),
        ];
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(
            names.iter().all(|name| name.len() == 32 && name.chars().all(|char| char.is_ascii_hexdigit()))
        );
    }

    #[test]
    fn folder_is_created_once_and_a_link_in_its_place_is_not_followed() {
        let place = tempfile::tempdir().expect("tempdir");
        let root = place.path().join("workspaces");
        let workspaces = Workspaces::new(Some(root.clone()));
        let own = Identity::of_this_process().expect("an identity").ids;
        let label = workspace("uid:1", "w");
        assert!(workspaces.open(&label, own).expect("made").is_some());
        assert!(workspaces.open(&label, own).expect("again").is_some());
        let folder = std::fs::read_dir(&root).expect("list").next().expect("one").expect("entry").path();
        std::fs::remove_dir(&folder).expect("remove");
        std::os::unix::fs::symlink("/", &folder).expect("link");
        assert!(workspaces.open(&label, own).is_err());
        assert!(Workspaces::default().open(&label, own).expect("none").is_none());
    }
}
