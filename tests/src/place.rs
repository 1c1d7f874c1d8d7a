//! A folder for each test: state, socket, worktree, home. Nothing of the host's environment is used.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The uid of a user without any right or home.
pub const UNPRIVILEGED_UID: u32 = 65_534;

/// The user that commands and daemons of a test run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who started the tests.
    AsStarted,
    /// uid 65534; needs root.
    Unprivileged,
}

impl User {
    /// Whether tests may switch to another user.
    pub fn can_be_switched() -> bool {
        nix::unistd::geteuid().is_root()
    }

    /// The numeric uid.
    pub fn uid(self) -> u32 {
        match self {
            Self::AsStarted => nix::unistd::geteuid().as_raw(),
            Self::Unprivileged => UNPRIVILEGED_UID,
        }
    }
}

/// Writes the file of the secret `KEY`, `hunter2`, of which `host` is the only host, for the user of a daemon.
pub fn write_secret(file: &Path, user: User, host: impl std::fmt::Display) {
    let text = format!("[[secret]]\nname = \"KEY\"\nhosts = [\"http://{host}\"]\nvalue = \"hunter2\"\n");
    std::fs::write(file, text).expect("written");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("mode");
    if user == User::Unprivileged {
        chown(file, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).expect("chown");
    }
}

/// The folder; deleted when dropped.
#[derive(Debug)]
pub struct TestDir {
    root: TempDir,
    /// The user who owns it.
    pub user: User,
}

impl TestDir {
    /// An empty worktree, an empty home, an empty state directory.
    pub fn new(user: User) -> Self {
        Self::new_in(&std::env::temp_dir(), user)
    }

    /// As [`TestDir::new`], beneath `folder` instead of the system's folder for temporary files.
    pub fn new_in(folder: &Path, user: User) -> Self {
        let root =
            tempfile::Builder::new().prefix("vm-system-").tempdir_in(folder).expect("temporary folder");
        let place = Self { root, user };
        for folder in ["worktree", "home", "state", "run"] {
            std::fs::create_dir(place.path(folder)).expect("folder");
        }
        for folder in ["", "worktree", "home", "state", "run"] {
            place.give(&place.path(folder));
        }
        place
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The worktree.
    pub fn worktree(&self) -> PathBuf {
        self.path("worktree")
    }

    /// The control socket of the daemon.
    pub fn socket(&self) -> PathBuf {
        self.path("run/control.sock")
    }

    /// The HTTP socket of the daemon.
    pub fn http_socket(&self) -> PathBuf {
        self.path("run/http.sock")
    }

    /// Writes a file of the worktree.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.worktree().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("folders");
            self.give(folder);
        }
        std::fs::write(&path, content).expect("file");
        self.give(&path);
    }

    /// Lets the daemon alone read a file: as root the user that the daemon becomes owns it then.
    pub fn give_to_daemon(&self, path: &Path) {
        if User::can_be_switched() {
            chown(path, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).expect("chown");
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    }

    /// Makes the test's user the owner.
    pub fn give(&self, path: &Path) {
        if self.user == User::Unprivileged {
            chown(path, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).expect("chown");
        }
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
}
