//! The paths of the state directory and the control socket, for the daemon and for clients.

use crate::error::CliError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The relevant environment variables, read once, so that tests can replace them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) root: bool,
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) socket: Option<PathBuf>,
}

impl Environment {
    pub(crate) fn detect() -> Self {
        Self {
            root: nix::unistd::geteuid().is_root(),
            home: path("HOME"),
            state_home: path("XDG_STATE_HOME"),
            runtime_dir: path("XDG_RUNTIME_DIR"),
            socket: path("VM_SYSTEM_SOCKET"),
        }
    }

    /// The daemon's default state directory; `None` where there is no home.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        if self.root {
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
        if self.root {
            return Some(system_socket());
        }
        self.user_socket().or_else(|| Some(self.state_dir()?.join(SOCKET_NAME)))
    }

    /// Where clients look, in order.
    pub(crate) fn sockets_to_try(&self, flag: Option<&Path>, state_dir_flag: Option<&Path>) -> Vec<PathBuf> {
        if let Some(explicit) = self.explicit(flag, state_dir_flag) {
            return vec![explicit];
        }
        let mut places = vec![system_socket()];
        places.extend(self.user_socket());
        if self.runtime_dir.is_none() && !self.root {
            places.extend(self.state_dir().map(|dir| dir.join(SOCKET_NAME)));
        }
        places
    }

    /// A flag takes precedence over the environment: a state directory selects the daemon of that directory.
    fn explicit(&self, flag: Option<&Path>, state_dir_flag: Option<&Path>) -> Option<PathBuf> {
        flag.map(Path::to_owned)
            .or_else(|| state_dir_flag.map(|dir| dir.join(SOCKET_NAME)))
            .or_else(|| self.socket.clone())
    }

    fn user_socket(&self) -> Option<PathBuf> {
        self.runtime_dir.as_ref().map(|dir| dir.join("vm-system").join(SOCKET_NAME))
    }

    /// File with the history of the interactive shell.
    pub(crate) fn history_file(&self) -> Option<PathBuf> {
        let base = self.state_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/state")))?;
        Some(base.join("vm-system").join("repl_history"))
    }
}

/// The socket's name in its directory.
const SOCKET_NAME: &str = "control.sock";

fn system_socket() -> PathBuf {
    Path::new("/run/vm-system").join(SOCKET_NAME)
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from)
}

/// A worktree's path in the form that the supervisor accepts: absolute, and without links, which the supervisor does not
/// follow out of the operator's roots. Links are resolved here, with the rights of the user; a path that cannot be resolved
/// here is passed on, and the supervisor reports the error.
pub(crate) fn worktree(folder: &Path) -> Result<String, CliError> {
    let path = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
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
            home: Some("/home/u".into()),
            runtime_dir: Some("/run/user/1000".into()),
            ..Environment::default()
        }
    }

    #[test]
    fn flag_then_state_dir_then_variable_then_the_usual_places() {
        let mut env = user();
        let usual: Vec<PathBuf> =
            vec!["/run/vm-system/control.sock".into(), "/run/user/1000/vm-system/control.sock".into()];
        assert_eq!(env.sockets_to_try(None, None), usual);
        assert_eq!(env.sockets_to_try(None, Some(Path::new("/s"))), [PathBuf::from("/s/control.sock")]);
        env.socket = Some("/v.sock".into());
        assert_eq!(env.sockets_to_try(None, None), [PathBuf::from("/v.sock")]);
        assert_eq!(env.sockets_to_try(None, Some(Path::new("/s"))), [PathBuf::from("/s/control.sock")]);
        assert_eq!(env.socket_to_serve(None, Some(Path::new("/s"))), Some("/s/control.sock".into()));
        assert_eq!(env.sockets_to_try(Some(Path::new("/f.sock")), None), [PathBuf::from("/f.sock")]);
    }

    #[test]
    fn a_client_always_looks_where_a_daemon_of_the_same_environment_listens() {
        let bare = Environment { runtime_dir: None, ..user() };
        let root = Environment { root: true, ..user() };
        for env in [user(), bare, root] {
            let served = env.socket_to_serve(None, None).unwrap();
            assert!(env.sockets_to_try(None, None).contains(&served), "{served:?}");
        }
    }

    #[test]
    fn state_is_the_systems_for_root_and_xdg_for_users() {
        assert_eq!(user().state_dir(), Some("/home/u/.local/state/vm-system".into()));
        assert_eq!(Environment::default().state_dir(), None);
        let root = Environment { root: true, ..user() };
        assert_eq!(root.state_dir(), Some("/var/lib/vm-system".into()));
    }
}
