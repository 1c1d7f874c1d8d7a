//! Why an exchange failed, with the codes that Node and undici give to such errors, and codes of our own for what the policy refuses.

use crate::resolve::ResolveError;
use std::error::Error;
use std::io;
use tokio_rustls::rustls::{CertificateError, Error as TlsError};
use vm_system_protocol::worker::HostError;

/// A failed exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExchangeFailure {
    code: &'static str,
    message: String,
}

impl ExchangeFailure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The policy refuses it.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new("ERR_NET_DENIED", message)
    }

    /// A limit of the policy is reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new("ERR_NET_LIMIT", message)
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn not_resolved(host: &str, error: ResolveError) -> Self {
        let code = match error {
            ResolveError::NotFound => "ENOTFOUND",
            ResolveError::Unavailable => "EAI_AGAIN",
        };
        Self::new(code, format!("getaddrinfo {code} {host}"))
    }

    /// No address of a server can be reached. `server` is as the request has it: the addresses of a name are not the script's to know.
    pub(crate) fn not_connected(server: &str, error: &io::Error) -> Self {
        let code = code_of(error);
        Self::new(code, format!("connect {code} {server}"))
    }

    /// A TLS handshake that failed.
    pub(crate) fn no_tls(host: &str, error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(own) = inner.and_then(|inner| inner.downcast_ref::<Self>()) {
            return own.clone();
        }
        let tls = inner.and_then(|inner| inner.downcast_ref::<TlsError>());
        let code = match tls {
            Some(TlsError::InvalidCertificate(why)) => match why {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "ERR_TLS_CERT_ALTNAME_INVALID"
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => "CERT_HAS_EXPIRED",
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "CERT_NOT_YET_VALID"
                }
                CertificateError::Revoked => "CERT_REVOKED",
                _ => "CERT_REJECTED",
            },
            Some(_) => "EPROTO",
            None => code_of(error),
        };
        let why = match tls {
            // The names in the certificate may have addresses among them.
            Some(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => "the certificate of the server is for other names".to_owned(),
            _ => error.to_string(),
        };
        Self::new(code, format!("TLS with {host}: {why}"))
    }

    /// The reason in an error of the HTTP library.
    pub(crate) fn of_http(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        let mut deepest = error;
        while let Some(error) = cause {
            if let Some(own) = error.downcast_ref::<Self>() {
                return own.clone();
            }
            if let Some(io) = error.downcast_ref::<io::Error>() {
                // An error of ours may be within one of a stream.
                if let Some(inner) = io.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
                    return inner.clone();
                }
                // The HTTP/2 library keeps the kind and the text of an error alone.
                if io.kind() == io::ErrorKind::QuotaExceeded {
                    return Self::limit(io.to_string());
                }
                if io.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<TlsError>) {
                    return Self::new("EPROTO", format!("TLS: {io}"));
                }
                if io.kind() == io::ErrorKind::InvalidData {
                    // Framing of the body: chunks, their extensions, trailers.
                    return Self::new("HPE_INVALID_CONSTANT", format!("the response is not valid: {io}"));
                }
                let code = code_of(io);
                return Self::new(code, format!("{code}: {io}"));
            }
            if let Some(http) = error.downcast_ref::<hyper::Error>() {
                if http.is_incomplete_message() || http.is_closed() || http.is_canceled() {
                    return Self::new("UND_ERR_SOCKET", "other side closed");
                }
                if http.is_parse_too_large() {
                    return Self::new("HPE_HEADER_OVERFLOW", "the head of the response is too large");
                }
                if http.is_parse() {
                    return Self::new("HPE_INVALID_CONSTANT", format!("the response is not valid: {http}"));
                }
            }
            deepest = error;
            cause = error.source();
        }
        Self::new("UND_ERR_SOCKET", format!("the connection failed: {deepest}"))
    }
}

impl From<ExchangeFailure> for HostError {
    fn from(failure: ExchangeFailure) -> Self {
        Self { code: failure.code.to_owned(), message: failure.message }
    }
}

fn code_of(error: &io::Error) -> &'static str {
    if [Some(nix::libc::EMFILE), Some(nix::libc::ENFILE)].contains(&error.raw_os_error()) {
        return "EMFILE";
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset => "ECONNRESET",
        io::ErrorKind::ConnectionAborted => "ECONNABORTED",
        io::ErrorKind::HostUnreachable => "EHOSTUNREACH",
        io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::AddrNotAvailable => "EADDRNOTAVAIL",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::BrokenPipe => "EPIPE",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::UnexpectedEof => "UND_ERR_SOCKET",
        _ => "EIO",
    }
}
