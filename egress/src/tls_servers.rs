//! The TLS of the servers in tests: a certificate for some names, and who trusts it.

use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Accepts connections for these names with these protocols; the roots trust its certificate.
pub(crate) fn tls_acceptor(names: &[&str], protocols: &[&[u8]]) -> (TlsAcceptor, RootCertStore) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a key");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    (TlsAcceptor::from(Arc::new(config)), roots)
}
