//! A daemon on loopback and on its HTTP socket, with tokens; and commands that reach it through a URL.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::Command;
use vm_system_tests::command::{CommandOutput, command, run};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::program;

/// Names of tokens, each with its role and its SHA-256. The token of `x` is `x-token`.
const TOKENS: &[(&str, &str, &str)] = &[
    ("alice", "user", "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc"),
    ("bob", "user", "97dd3707015dcf069cf73022ed7173b1165db6eff24b441cb57fd069a8c4e525"),
];

/// A daemon with the tokens of alice and bob, and more lines of its configuration.
pub(super) fn daemon(user: User, config: &str) -> Daemon {
    let place = TestDir::new(user);
    place.write("app.js", "console.log('from the file'); 6 * 7");
    write_tokens(&place, &["alice", "bob"]);
    for token in ["alice-token", "bob-token", "mallory-token"] {
        secret(&place, token, &format!("{token}\n"));
    }
    let tokens = place.path("tokens.toml").display().to_string();
    let arguments = ["--listen", "127.0.0.1:0", "--tokens", &tokens].map(str::to_owned).to_vec();
    let root = place.path("").display().to_string();
    let config = format!("{config}\n[[worktree_root]]\npath = \"{root}\"\nowners = [\"alice\", \"bob\"]\n");
    Daemon::start_with(place, &DaemonOptions { arguments, config, ..DaemonOptions::default() })
}

/// Writes the daemon's file of tokens.
pub(super) fn write_tokens(place: &TestDir, names: &[&str]) {
    let entry = |(name, role, sha256): &(&str, &str, &str)| {
        format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{sha256}\"\n")
    };
    let book: String = TOKENS.iter().filter(|(name, ..)| names.contains(name)).map(entry).collect();
    secret(place, "tokens.toml", &book);
    place.give_to_daemon(&place.path("tokens.toml"));
}

/// A file that only the test's user can read.
fn secret(place: &TestDir, name: &str, text: &str) {
    let path = place.path(name);
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("chmod");
    if place.user == User::Unprivileged {
        chown(&path, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).expect("chown");
    }
}

/// The URL of the daemon's HTTP socket.
pub(super) fn unix_url(daemon: &Daemon) -> String {
    format!("unix:{}", daemon.place.http_socket().display())
}

/// The URL of the daemon's TCP listener.
pub(super) fn http_url(daemon: &Daemon) -> String {
    format!("http://{}", daemon.addresses()[0])
}

/// Names a user whose server is trusted, besides root and the caller.
pub(super) const SERVER_USER: &str = "VM_SYSTEM_SERVER_USER";

/// The user of the daemon: a daemon that root starts becomes another one.
pub(super) fn server_user(daemon: &Daemon) -> String {
    daemon.place.http_socket().metadata().expect("its socket").uid().to_string()
}

/// The file of a token.
pub(super) fn token_file(daemon: &Daemon, owner: &str) -> PathBuf {
    daemon.place.path(&format!("{owner}-token"))
}

/// A command for the daemon at `url`, with the token of `owner` unless that is empty.
pub(super) fn command_at(daemon: &Daemon, url: &str, owner: &str, arguments: &[&str]) -> Command {
    let mut command = command(&daemon.place, program::PRODUCT);
    command.arg("--server-url").arg(url).env(SERVER_USER, server_user(daemon));
    if !owner.is_empty() {
        command.arg("--token-file").arg(token_file(daemon, owner));
    }
    command.args(arguments);
    command
}

/// Runs such a command.
pub(super) fn run_at(daemon: &Daemon, url: &str, owner: &str, arguments: &[&str]) -> CommandOutput {
    run(&mut command_at(daemon, url, owner, arguments), "")
}

/// Creates a template and a session on the worktree; the session's id.
pub(super) fn session(daemon: &Daemon, url: &str, owner: &str, template: &str) -> String {
    run_at(daemon, url, owner, &["template", "create", "--name", template]).ok();
    let worktree = daemon.place.worktree().display().to_string();
    let of =
        ["-q", "session", "create", "--template-id", template, "--workspace-id", "w", "--base-commit", "c"];
    let session = [&of[..], &["--worktree-path", &worktree]].concat();
    run_at(daemon, url, owner, &session).ok().trim().to_owned()
}
