//! Other users of the machine at the daemon's sockets: what they execute runs with a real uid of its own. Needs root.

use crate::command::{CommandOutput, command, run};
use crate::daemon::{Daemon, DaemonOptions};
use crate::place::{TestDir, User};
use crate::program;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The group that may connect.
pub const GROUP: &str = "daemon";

/// A user with a passwd entry, in the group that may connect.
#[derive(Debug, Clone, Copy)]
pub struct OtherUser {
    pub uid: u32,
    pub gid: u32,
}

impl OtherUser {
    /// A system user that every Linux has.
    pub fn named(name: &str) -> Self {
        let group = nix::unistd::Group::from_name(GROUP).expect("NSS answers").expect("a system group");
        let user = nix::unistd::User::from_name(name).expect("NSS answers").expect("a system user");
        Self { uid: user.uid.as_raw(), gid: group.gid.as_raw() }
    }

    /// A command of the product, by a binary that all users can execute.
    pub fn cli(self, daemon: &Daemon, arguments: &[&str]) -> CommandOutput {
        let like = command(&daemon.place, program::PRODUCT);
        let mut command = self.command(&program::path(program::PRODUCT, User::Unprivileged));
        command.args(arguments);
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        run(&mut command, "")
    }

    /// A program as this user, with an empty environment.
    pub fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir("/").uid(self.uid).gid(self.gid);
        command
    }

    /// Creates a session on a folder from its own template `theirs`.
    pub fn session(self, daemon: &Daemon, worktree: &Path) -> CommandOutput {
        let worktree = worktree.to_string_lossy();
        let of = ["--template-id", "theirs", "--workspace-id", "w", "--base-commit", "c", "--worktree-path"];
        let arguments = [&["-q", "session", "create"], of.as_slice(), &[&worktree]].concat();
        self.cli(daemon, &arguments)
    }

    /// A request over TCP; the whole response.
    pub fn http(self, daemon: &Daemon, method: &str, path: &str, body: &str) -> String {
        let script = "exec 3<>/dev/tcp/127.0.0.1/$0; printf '%s /api/v1%s HTTP/1.1\\r\\nHost: localhost\\r\\n\
                      Content-Type: application/json\\r\\nContent-Length: %s\\r\\nConnection: close\\r\\n\\r\\n%s' \
                      \"$1\" \"$2\" \"${#3}\" \"$3\" >&3; cat <&3";
        let port = daemon.addresses()[0].port().to_string();
        let mut bash = self.command(Path::new("/bin/bash"));
        bash.env("PATH", "/usr/bin:/bin");
        let output = bash.args(["-c", script, &port, method, path, body]).output().expect("bash");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Creates a folder of this user.
    pub fn folder(self, path: PathBuf) -> PathBuf {
        std::fs::create_dir(&path).expect("a folder");
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("chmod");
        chown(&path, Some(self.uid), Some(self.gid)).expect("root may");
        path
    }
}

/// A daemon of root that the group may use, with a root for worktrees.
pub fn shared_daemon(more: &str, arguments: &[&str]) -> (Daemon, tempfile::TempDir) {
    shared_daemon_with(more, arguments, DaemonOptions::default())
}

/// The same, with more options.
pub fn shared_daemon_with(
    more: &str,
    arguments: &[&str],
    options: DaemonOptions,
) -> (Daemon, tempfile::TempDir) {
    let worktrees = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(worktrees.path(), Permissions::from_mode(0o755)).expect("chmod");
    let root = worktrees.path().display();
    let config = format!("socket_group = \"{GROUP}\"\nworktree_roots = [\"{root}\"]\n{more}");
    let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let options = DaemonOptions { arguments, config, ..options };
    (Daemon::start_with(TestDir::new(User::AsStarted), &options), worktrees)
}
