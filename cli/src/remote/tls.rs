//! Which certificates are trusted, and what is wrong with others.

use crate::error::{CliError, exit};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

/// TLS with the certificates of a file, or with the system's.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, CliError> {
    let mut roots = RootCertStore::empty();
    let mut listed = Vec::new();
    if let Some(file) = ca_file {
        listed = add_file(&mut roots, file)?;
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
    let failed = |error: &dyn std::fmt::Display| CliError::internal(format!("TLS: {error}"));
    let provider = Arc::new(ring::default_provider());
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let verifier = Arc::new(Verifier { usual: usual.map_err(|error| failed(&error))?, listed });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let mut config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Adds the certificates of a file, and returns them.
fn add_file(roots: &mut RootCertStore, file: &Path) -> Result<Vec<CertificateDer<'static>>, CliError> {
    let shown = file.display();
    let bytes = std::fs::read(file).map_err(|error| CliError::file(&shown, &error))?;
    let unfit = |why: String| CliError::unfit(format!("the certificates in {shown}: {why}"));
    let mut listed = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| unfit(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| unfit(error.to_string()))?;
        listed.push(certificate);
    }
    if listed.is_empty() { Err(unfit("there is none (PEM)".to_owned())) } else { Ok(listed) }
}

/// Verifies as rustls does, with one difference: a server may have a certificate of an authority if the file has just this one. Such
/// is what `openssl req -x509` makes, and rustls accepts no authority as a server.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    /// The certificates of the file.
    listed: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match self.usual.verify_server_cert(own, chain, name, ocsp, now) {
            // The dates are verified before that error; the handshake proves that the server has the key.
            Err(error) if is_authority(&error) && self.listed.contains(own) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.usual.verify_tls12_signature(message, own, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.usual.verify_tls13_signature(message, own, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether a server's certificate is refused because it is an authority's.
fn is_authority(error: &TlsError) -> bool {
    let TlsError::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
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
        Some(error) if is_authority(error) => untrusted(
            "it is the certificate of an authority, and not listed itself".to_owned(),
            "for a certificate that the server has made for itself, give its file with --ca-file",
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
