//! The request that turns an HTTP connection into one of the control protocol (`docs/api-reference.md`), and what its refusals mean.

use crate::client::ByteStream;
use crate::error::{CliError, exit};
use crate::output::escape;
use http_body_util::{BodyExt as _, Collected, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::path::Path;
use vm_system_protocol::control::{UPGRADE_NAME, UPGRADE_PATH, UPGRADE_PROTOCOL};

/// Most of a refusal's body that is read (bytes).
const BODY_BYTES: usize = 64 << 10;

/// Most of what a server says that is shown (characters).
const SHOWN_CHARS: usize = 500;

/// Why a server did not upgrade. Texts of the server are shown by [`shown`].
#[derive(Debug)]
pub(super) enum UpgradeFailure {
    /// It does not speak HTTP, or closed the connection.
    Broken(String),
    /// A supervisor refused, with its code and its message.
    Refused { status: StatusCode, code: String, message: String },
    /// It is something else.
    OtherServer { status: StatusCode, location: Option<String> },
}

impl From<hyper::Error> for UpgradeFailure {
    fn from(error: hyper::Error) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Self::Broken(format!("{error}{}", cause.unwrap_or_default()))
    }
}

/// Sends the request; the connection after the response 101.
pub(super) async fn request(
    stream: Box<dyn ByteStream>,
    (authority, prefix): (&str, &str),
    token: Option<&HeaderValue>,
) -> Result<Box<dyn ByteStream>, UpgradeFailure> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the upgrade, or when the response is dropped.
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::get(format!("{prefix}{UPGRADE_PATH}"))
        .header(header::HOST, authority)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, UPGRADE_PROTOCOL)
        .header(header::USER_AGENT, concat!("vm-system/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, token);
    }
    let request =
        request.body(Empty::<Bytes>::new()).map_err(|error| UpgradeFailure::Broken(error.to_string()))?;
    let response = sender.send_request(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS && is_ours(response.headers()) {
        let upgraded = hyper::upgrade::on(response).await?;
        return Ok(Box::new(TokioIo::new(upgraded)));
    }
    Err(refusal(response).await)
}

/// Whether a response is of a server with this protocol, in whatever version.
fn is_ours(headers: &HeaderMap) -> bool {
    let protocol = headers.get(header::UPGRADE).and_then(|protocol| protocol.to_str().ok());
    protocol.is_some_and(|protocol| protocol.split('/').next() == Some(UPGRADE_NAME))
}

/// The envelope of every error of the REST API.
#[derive(Deserialize)]
struct Envelope {
    error: EnvelopeError,
}

#[derive(Deserialize)]
struct EnvelopeError {
    code: String,
    message: String,
}

async fn refusal(response: Response<Incoming>) -> UpgradeFailure {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, BODY_BYTES).collect().await.map(Collected::to_bytes);
    let envelope = body.ok().and_then(|body| serde_json::from_slice::<Envelope>(&body).ok());
    if let Some(Envelope { error: EnvelopeError { code, message } }) = envelope {
        return UpgradeFailure::Refused { status: parts.status, code, message };
    }
    let location = parts.headers.get(header::LOCATION).and_then(|to| to.to_str().ok());
    UpgradeFailure::OtherServer { status: parts.status, location: location.map(str::to_owned) }
}

impl UpgradeFailure {
    /// The error for people.
    pub(super) fn explain(self, url: &str, token: Option<&Path>, is_unix: bool) -> CliError {
        match self {
            Self::Broken(why) => {
                let message =
                    format!("{url} is no vm-system server: it does not speak HTTP ({})", shown(&why));
                let hint = if is_unix {
                    "is it the control socket? That one is given with --socket"
                } else {
                    "does it use TLS? Then the URL's scheme is https"
                };
                CliError::new(exit::NO_DAEMON, message).with_hint(hint)
            }
            Self::OtherServer { status, location: Some(to) } if status.is_redirection() => {
                CliError::new(exit::NO_DAEMON, format!("{url} redirects to {}", shown(&to)))
                    .with_hint("if you trust it, give that server as the URL")
            }
            Self::OtherServer { status, .. } => {
                let message = format!("{url} is no vm-system server: it responds with {status}");
                CliError::new(exit::NO_DAEMON, message)
                    .with_hint("behind a proxy, the proxy must pass upgrades on: `vm-system help remote`")
            }
            Self::Refused { status, code, message } => refused(url, status, &code, &message, token),
        }
    }
}

/// The text of a server on one line: it may be hostile, and look like lines of this program.
fn shown(text: &str) -> String {
    let mut kept: String = text.chars().take(SHOWN_CHARS).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    escape::for_cell(&kept).into_owned()
}

fn refused(url: &str, status: StatusCode, code: &str, message: &str, token: Option<&Path>) -> CliError {
    let whole = format!("{url} refuses: {} ({})", shown(message), shown(code));
    match status {
        StatusCode::UNAUTHORIZED => {
            let hint = match token {
                Some(file) => {
                    format!("the token in {} must be one of the daemon's file of tokens", file.display())
                }
                None => "give the file of your token with --token-file, or in $VM_SYSTEM_TOKEN_FILE".to_owned(),
            };
            CliError::new(exit::NOT_PERMITTED, whole).with_hint(hint)
        }
        StatusCode::FORBIDDEN => CliError::new(exit::NOT_PERMITTED, whole),
        StatusCode::UPGRADE_REQUIRED => {
            CliError::internal(whole).with_hint("use the client of the supervisor's version")
        }
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            CliError::new(exit::BUSY, whole).with_hint("try again later")
        }
        StatusCode::NOT_FOUND => CliError::new(exit::NO_DAEMON, whole).with_hint(
            "a supervisor from before the control protocol over HTTP? or is a path missing in the URL, or one too many?",
        ),
        _ => CliError::internal(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_line_without_control_characters_and_not_long() {
        let message = format!("no\nerror: trust me\n\x1b[2Jhint: run it as root{}", "x".repeat(100_000));
        let error = refused("http://h", StatusCode::FORBIDDEN, "CODE\r\nhint: x", &message, None);
        let text = error.to_string();
        assert!(!text.contains(char::is_control), "{text}");
        assert!(
            text.contains(r"no\nerror: trust me\n\x1b[2Jhint") && text.contains(r"(CODE\r\nhint: x)"),
            "{text}"
        );
        assert!(text.chars().count() < 2 * SHOWN_CHARS, "{}", text.len());
        let failure = UpgradeFailure::OtherServer {
            status: StatusCode::FOUND,
            location: Some("http://x/\u{202e}y".to_owned()),
        };
        assert!(
            failure.explain("http://h", None, false).to_string().contains(r"redirects to http://x/\u{202e}y")
        );
        assert_eq!(shown("plain: ä"), "plain: ä");
    }
}
