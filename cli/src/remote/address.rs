//! The URL of a daemon.

use crate::error::CliError;
use std::path::PathBuf;
use url::Url;

/// Begin of the URL of a Unix socket.
pub(super) const UNIX: &str = "unix:";

/// A parsed URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The HTTP socket of a daemon of this machine.
    Unix(PathBuf),
    Tcp {
        tls: bool,
        host: RemoteHost,
        /// `HOST[:PORT]`, for the field Host.
        authority: String,
        /// Path in front of the API's, without a slash at its end; for daemons behind a proxy.
        prefix: String,
    },
}

/// A host and its port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoteHost {
    /// A name or an address, without brackets.
    pub(super) name: String,
    pub(super) port: u16,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, CliError> {
        if let Some(path) = text.strip_prefix(UNIX) {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err(invalid(text, "the path of the socket is missing"))
            } else {
                Ok(Self::Unix(PathBuf::from(path)))
            };
        }
        let url = Url::parse(text).map_err(|error| invalid(text, &error.to_string()))?;
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(invalid(text, &format!("{other}: is not supported"))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(text, "it has a user name: a token is given with --token-file"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid(text, "it has a query or a fragment"));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(invalid(text, "the host is missing"));
        };
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let prefix = url.path().trim_end_matches('/').to_owned();
        Ok(Self::Tcp { tls, host: RemoteHost { name, port }, authority, prefix })
    }
}

fn invalid(url: &str, why: &str) -> CliError {
    CliError::usage(format!("{url:?} is not the URL of a daemon: {why}"))
        .with_hint("write it as http://HOST:PORT, https://HOST:PORT or unix:/PATH/http.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_a_port_and_a_prefix_or_the_path_of_a_socket() {
        for (text, tls, name, port, authority, prefix) in [
            ("http://127.0.0.1:3210", false, "127.0.0.1", 3210, "127.0.0.1:3210", ""),
            ("https://vm.example", true, "vm.example", 443, "vm.example", ""),
            ("https://vm.example:443/", true, "vm.example", 443, "vm.example", ""),
            ("HTTP://VM.example/a/b/", false, "vm.example", 80, "vm.example", "/a/b"),
            ("http://[::1]:7", false, "::1", 7, "[::1]:7", ""),
        ] {
            let host = RemoteHost { name: name.to_owned(), port };
            let (authority, prefix) = (authority.to_owned(), prefix.to_owned());
            assert_eq!(
                Address::parse(text).unwrap(),
                Address::Tcp { tls, host, authority, prefix },
                "{text}"
            );
        }
        for (text, path) in
            [("unix:/run/http.sock", "/run/http.sock"), ("unix:///a", "/a"), ("unix:a b", "a b")]
        {
            assert_eq!(Address::parse(text).unwrap(), Address::Unix(path.into()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_forms() {
        for text in [
            "",
            "localhost:3210",
            "ftp://h",
            "http://",
            "http://a:b@h",
            "http://h/?x",
            "http://h/#x",
            "unix:",
            "/run/http.sock",
            "http://h:99999",
        ] {
            let error = Address::parse(text).expect_err(text);
            assert!(error.hint().is_some_and(|hint| hint.contains("https://HOST:PORT")), "{text}");
        }
    }
}
