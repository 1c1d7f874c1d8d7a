//! Where the daemon of a command is: on a control socket of this machine, or behind a URL. Decides by flags and variables;
//! connects to nothing.

use crate::args::RemoteArgs;
use crate::error::CliError;
use crate::paths::Environment;
use crate::remote::Remote;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the daemon is.
#[derive(Debug, Clone)]
pub(crate) enum DaemonTarget {
    /// On the first of these control sockets where one responds.
    Sockets(Vec<PathBuf>),
    /// Behind the HTTP API of a URL.
    Url(Arc<Remote>),
    /// The flags contradict each other; for commands that need a daemon.
    Conflict(String),
}

impl DaemonTarget {
    /// Flags take precedence over variables; of the variables the URL does.
    pub(crate) fn new(
        socket: Option<&Path>,
        state_dir: Option<&Path>,
        remote: RemoteArgs,
        environment: &Environment,
    ) -> Self {
        let local = [("--socket", socket), ("--state-dir", state_dir)];
        let local = local.iter().find_map(|(flag, path)| path.map(|_| *flag));
        let url = match (&remote.server_url, local) {
            (Some(_), Some(flag)) => {
                return Self::Conflict(format!("--server-url and {flag} name two daemons: give one of them"));
            }
            (Some(url), None) => Some(url),
            (None, Some(_)) => None,
            (None, None) => environment.server_url.as_ref(),
        };
        if let Some(url) = url {
            let url = url.clone();
            let token_file = remote.token_file.clone().or_else(|| environment.token_file.clone());
            // The variable is for whichever URL needs it, the flag for this one.
            let of_variable =
                environment.server_user.clone().filter(|_| url.to_ascii_lowercase().starts_with("http:"));
            let server_user = remote.server_user.clone().or(of_variable);
            return Self::Url(Arc::new(Remote::new(url, RemoteArgs { token_file, server_user, ..remote })));
        }
        let needs_url = [
            ("--token-file", remote.token_file.is_some()),
            ("--ca-file", remote.ca_file.is_some()),
            ("--server-user", remote.server_user.is_some()),
            ("--insecure-http", remote.insecure_http),
        ];
        match needs_url.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => {
                Self::Conflict(format!("{flag} is for a daemon behind a URL: give --server-url"))
            }
            None => Self::Sockets(environment.sockets_to_try(socket, state_dir)),
        }
    }

    /// Checks that the flags name a daemon; it need not be there.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        match self {
            Self::Sockets(_) => Ok(()),
            Self::Url(remote) => remote.check(),
            Self::Conflict(why) => Err(CliError::usage(why.clone())),
        }
    }

    /// Whether the daemon is looked for on control sockets of this machine.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(self, Self::Sockets(_))
    }

    /// The URL of a daemon whose files may be those of another machine.
    pub(crate) fn other_machine(&self) -> Option<&str> {
        match self {
            Self::Url(remote) if !remote.is_unix() => Some(remote.url()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(
        socket: Option<&str>,
        url: Option<&str>,
        token: Option<&str>,
        env: &Environment,
    ) -> DaemonTarget {
        let remote = RemoteArgs {
            server_url: url.map(str::to_owned),
            token_file: token.map(PathBuf::from),
            ..RemoteArgs::default()
        };
        DaemonTarget::new(socket.map(Path::new), None, remote, env)
    }

    #[test]
    fn flags_come_before_variables_and_a_url_before_sockets() {
        let env = Environment {
            socket: Some("/v.sock".into()),
            server_url: Some("http://variable".into()),
            ..Environment::default()
        };
        let url = |target: DaemonTarget| match target {
            DaemonTarget::Url(remote) => remote.url().to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(url(target(None, Some("http://flag"), None, &env)), "http://flag");
        assert_eq!(url(target(None, None, None, &env)), "http://variable");
        assert!(target(Some("/f.sock"), None, None, &env).is_local());
        let none = Environment { server_url: None, ..env };
        assert!(target(None, None, None, &none).is_local());
        for (socket, url, token, flag) in [
            (Some("/f.sock"), Some("http://flag"), None, "--socket"),
            (Some("/f.sock"), None, Some("/token"), "--token-file"),
        ] {
            match target(socket, url, token, &none) {
                DaemonTarget::Conflict(message) => assert!(message.contains(flag), "{message}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn folders_of_a_unix_url_are_those_of_this_machine() {
        let env = Environment::default();
        assert_eq!(target(None, Some("unix:/run/http.sock"), None, &env).other_machine(), None);
        assert_eq!(target(None, Some("http://h"), None, &env).other_machine(), Some("http://h"));
    }
}
