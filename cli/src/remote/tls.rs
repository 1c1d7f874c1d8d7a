//! Which certificates are trusted, and what is wrong with others.

use crate::error::{CliError, exit};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore};

/// TLS with the certificates of a file, or with the system's.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, CliError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca_file {
        add_file(&mut roots, file)?;
    } else {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "certificates of this system");
        }
        // Old ones that TLS no longer accepts are no reason to fail.
        roots.add_parsable_certificates(found.certs);
    }
    if roots.is_empty() {
        let message = "this system has no certificates of authorities, so that no server can be verified";
        return Err(CliError::unfit(message).with_hint(
            "install them (ca-certificates), or give the file of the server's authority with --ca-file",
        ));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| CliError::internal(format!("TLS: {error}")))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn add_file(roots: &mut RootCertStore, file: &Path) -> Result<(), CliError> {
    let shown = file.display();
    let bytes = std::fs::read(file).map_err(|error| CliError::file(&shown, &error))?;
    let unfit = |why: String| CliError::unfit(format!("the certificates in {shown}: {why}"));
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| unfit(error.to_string()))?;
        roots.add(certificate).map_err(|error| unfit(error.to_string()))?;
    }
    if roots.is_empty() { Err(unfit("there is none (PEM)".to_owned())) } else { Ok(()) }
}

/// The error of a handshake.
pub(super) fn explain(url: &str, error: &io::Error) -> CliError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    let untrusted = |why: String, hint: &str| {
        CliError::new(exit::NOT_PERMITTED, format!("the certificate of {url} cannot be verified: {why}"))
            .with_hint(hint)
    };
    match tls {
        // The second one: an authority with the name of a trusted one, and another key.
        Some(TlsError::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => untrusted(
            "its issuer is unknown".to_owned(),
            "for an authority of your own, give the file of its certificate with --ca-file",
        ),
        Some(TlsError::InvalidCertificate(
            why @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
        )) => untrusted(why.to_string(), "the URL must have a name for which the certificate is valid"),
        Some(TlsError::InvalidCertificate(why)) => {
            untrusted(why.to_string(), "the operator of the server must replace it")
        }
        Some(TlsError::InvalidMessage(_)) => {
            CliError::new(exit::NO_DAEMON, format!("{url} does not use TLS ({error})"))
                .with_hint("is the URL's scheme http?")
        }
        _ => CliError::new(exit::NO_DAEMON, format!("no TLS connection to {url}: {error}"))
            .with_hint("is it the address of a server with TLS?"),
    }
}
