//! The paths of the state directory and the control socket, for the daemon and for clients.

use crate::error::CliError;
use crate::target::DaemonTarget;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The relevant environment variables, read once, so that tests can replace them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) uid: u32,
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) server_url: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) server_user: Option<String>,
}

impl Environment {
    pub(crate) fn detect() -> Self {
        Self {
            uid: nix::unistd::geteuid().as_raw(),
            home: path("HOME"),
            state_home: path("XDG_STATE_HOME"),
            runtime_dir: path("XDG_RUNTIME_DIR"),
            socket: path("VM_SYSTEM_SOCKET"),
            server_url: path("VM_SYSTEM_URL").map(|url| url.to_string_lossy().into_owned()),
            token_file: path("VM_SYSTEM_TOKEN_FILE"),
            server_user: path("VM_SYSTEM_SERVER_USER").map(|user| user.to_string_lossy().into_owned()),
        }
    }

    /// The daemon's default state directory; `None` where there is no home.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        if self.is_root() {
            return Some(PathBuf::from("/var/lib/vm-system"));
        }
        let base = self.state_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/state")))?;
        Some(base.join("vm-system"))
    }

    /// Where a daemon listens: `--socket`, in an explicit `--state-dir`, `$VM_SYSTEM_SOCKET`, the system's or the user's
    /// runtime directory, the state directory.
    pub(crate) fn socket_to_serve(
        &self,
        flag: Option<&Path>,
        state_dir_flag: Option<&Path>,
    ) -> Option<PathBuf> {
        if let Some(explicit) = self.explicit(flag, state_dir_flag) {
            return Some(explicit);
        }
        if self.is_root() {
            return Some(system_socket());
        }
        self.user_socket().or_else(|| Some(self.state_dir()?.join(SOCKET_NAME)))
    }

    /// Where clients look, in order. Every place where a daemon of this user may listen, whether or not the same variables are
    /// set where it was started: a daemon also records its socket in its state directory.
    pub(crate) fn sockets_to_try(&self, flag: Option<&Path>, state_dir_flag: Option<&Path>) -> Vec<PathBuf> {
        let mut places = match (self.explicit(flag, state_dir_flag), state_dir_flag) {
            (Some(explicit), Some(dir)) if flag.is_none() => {
                vec![explicit].into_iter().chain(recorded_socket(dir)).collect()
            }
            (Some(explicit), _) => vec![explicit],
            (None, _) => {
                let mut places = vec![system_socket()];
                places.extend(self.user_socket());
                if !self.is_root() {
                    places.push(in_runtime_dir(Path::new(&format!("/run/user/{}", self.uid))));
                    places.extend(self.state_dir().map(|dir| dir.join(SOCKET_NAME)));
                }
                places.extend(self.state_dir().and_then(|dir| recorded_socket(&dir)));
                places
            }
        };
        let mut known = HashSet::new();
        places.retain(|place| known.insert(place.clone()));
        places
    }

    fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// A flag takes precedence over the environment: a state directory selects the daemon of that directory.
    fn explicit(&self, flag: Option<&Path>, state_dir_flag: Option<&Path>) -> Option<PathBuf> {
        flag.map(Path::to_owned)
            .or_else(|| state_dir_flag.map(|dir| dir.join(SOCKET_NAME)))
            .or_else(|| self.socket.clone())
    }

    /// Whether a flag or `$VM_SYSTEM_SOCKET` names the socket.
    pub(crate) fn names_socket(&self, flag: Option<&Path>) -> bool {
        flag.is_some() || self.socket.is_some()
    }

    fn user_socket(&self) -> Option<PathBuf> {
        self.runtime_dir.as_deref().map(in_runtime_dir)
    }

    /// File with the history of the interactive shell.
    pub(crate) fn history_file(&self) -> Option<PathBuf> {
        let base = self.state_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/state")))?;
        Some(base.join("vm-system").join("repl_history"))
    }
}

/// The socket's name in its directory.
const SOCKET_NAME: &str = "control.sock";

/// The database in a state directory.
pub(crate) const DATABASE: &str = "vm-system.db";

fn in_runtime_dir(dir: &Path) -> PathBuf {
    dir.join("vm-system").join(SOCKET_NAME)
}

/// The socket of the supervisor that uses a state directory, or used it last: the second line of the lock file.
fn recorded_socket(state_dir: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    // Without waiting for a writer, where a pipe has the name.
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(state_dir.join("lock"));
    file.ok()?.take(LOCK_BYTES).read_to_end(&mut text).ok()?;
    let line = text.split(|byte| *byte == b'\n').nth(1).filter(|line| line.starts_with(b"/"))?;
    Some(PathBuf::from(OsStr::from_bytes(line)))
}

/// Longest lock file that is read (bytes): a pid and a path.
const LOCK_BYTES: u64 = 8_192;

fn system_socket() -> PathBuf {
    Path::new(vm_system_daemon::SYSTEM_RUNTIME).join(SOCKET_NAME)
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from)
}

/// A worktree's path in the form that the supervisor accepts: absolute, and without links, which the supervisor does not
/// follow out of the operator's roots. Links are resolved here, with the rights of the user; a path that cannot be resolved
/// here is passed on, and the supervisor reports the error. A folder of another machine is passed on as it is.
pub(crate) fn worktree(folder: &Path, target: &DaemonTarget) -> Result<String, CliError> {
    let path = if let Some(url) = target.other_machine() {
        if folder.is_relative() {
            let folder = folder.display();
            let message = format!("the worktree {folder} is a folder of the machine of {url}");
            return Err(
                CliError::usage(message).with_hint("give its absolute path there with --worktree-path")
            );
        }
        Ok(folder.to_owned())
    } else {
        std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder))
    };
    let path =
        path.map_err(|error| CliError::usage(format!("the worktree {}: {error}", folder.display())))?;
    path.into_os_string().into_string().map_err(|path| {
        CliError::usage(format!("the path of a worktree must be UTF-8: {}", path.to_string_lossy()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Environment {
        Environment {
            uid: 1000,
            home: Some("/nowhere/u".into()),
            runtime_dir: Some("/run/of-u".into()),
            ..Environment::default()
        }
    }

    #[test]
    fn flag_then_state_dir_then_variable_then_the_usual_places() {
        let mut env = user();
        let usual = [
            "/run/vm-system/control.sock",
            "/run/of-u/vm-system/control.sock",
            "/run/user/1000/vm-system/control.sock",
            "/nowhere/u/.local/state/vm-system/control.sock",
        ];
        let usual = usual.map(PathBuf::from).to_vec();
        assert_eq!(env.sockets_to_try(None, None), usual);
        assert_eq!(env.sockets_to_try(None, Some(Path::new("/s"))), [PathBuf::from("/s/control.sock")]);
        env.socket = Some("/v.sock".into());
        assert_eq!(env.sockets_to_try(None, None), [PathBuf::from("/v.sock")]);
        assert_eq!(env.sockets_to_try(None, Some(Path::new("/s"))), [PathBuf::from("/s/control.sock")]);
        assert_eq!(env.socket_to_serve(None, Some(Path::new("/s"))), Some("/s/control.sock".into()));
        assert_eq!(env.sockets_to_try(Some(Path::new("/f.sock")), None), [PathBuf::from("/f.sock")]);
    }

    #[test]
    fn a_client_looks_where_a_daemon_listens_also_if_only_one_has_the_runtime_directory() {
        let usual = Environment { runtime_dir: Some("/run/user/1000".into()), ..user() };
        let bare = Environment { runtime_dir: None, ..user() };
        let root = Environment { uid: 0, ..user() };
        let root_bare = Environment { runtime_dir: None, ..root.clone() };
        for (daemon, client) in
            [(&usual, &usual), (&usual, &bare), (&bare, &usual), (&bare, &bare), (&root, &root_bare)]
        {
            let served = daemon.socket_to_serve(None, None).unwrap();
            assert!(client.sockets_to_try(None, None).contains(&served), "{served:?}");
        }
    }

    #[test]
    fn the_socket_in_a_lock_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("vm-system");
        std::fs::create_dir(&state).unwrap();
        let env = Environment { state_home: Some(dir.path().into()), ..user() };
        let elsewhere = PathBuf::from("/run/elsewhere.sock");
        for (text, found) in
            [("12\n/run/elsewhere.sock\n", true), ("12\n", false), ("12\nrelative\n", false), ("", false)]
        {
            std::fs::write(state.join("lock"), text).unwrap();
            assert_eq!(env.sockets_to_try(None, None).contains(&elsewhere), found, "{text:?}");
            assert_eq!(env.sockets_to_try(None, Some(&state)).contains(&elsewhere), found, "{text:?}");
            assert!(!env.sockets_to_try(Some(Path::new("/f.sock")), Some(&state)).contains(&elsewhere));
        }
    }

    #[test]
    fn state_is_the_systems_for_root_and_xdg_for_users() {
        assert_eq!(user().state_dir(), Some("/nowhere/u/.local/state/vm-system".into()));
        assert_eq!(Environment { home: None, ..user() }.state_dir(), None);
        let root = Environment { uid: 0, ..user() };
        assert_eq!(root.state_dir(), Some("/var/lib/vm-system".into()));
    }
}
