//! https: certificates of an authority that the test makes, and a proxy that ends TLS in front of the daemon.

use super::scene::{command_at, daemon, http_url, run_at};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use vm_system_tests::command::run;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;

/// An authority, and a proxy whose certificate it has signed.
struct Proxy {
    url: String,
    ca_file: PathBuf,
    _runtime: Runtime,
}

impl Proxy {
    /// In front of a daemon, with a certificate for this name.
    fn start(daemon: &Daemon, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("authority of {name}"));
        let authority = params.self_signed(&key).expect("an authority");
        let issuer = Issuer::new(params, key);
        let own_key = KeyPair::generate().expect("a key");
        let own = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        let own = own.signed_by(&own_key, &issuer).expect("a certificate");
        let ca_file = daemon.place.path(&format!("{name}.pem"));
        std::fs::write(&ca_file, authority.pem()).expect("a file");
        Self::with_certificate(daemon, own.der(), &own_key, ca_file)
    }

    /// A proxy with a certificate for `localhost` that it has made for itself and that is in the file.
    fn self_signed(daemon: &Daemon, file: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        change(&mut params);
        let own = params.self_signed(&key).expect("a certificate");
        let ca_file = daemon.place.path(&format!("{file}.pem"));
        std::fs::write(&ca_file, own.pem()).expect("a file");
        Self::with_certificate(daemon, own.der(), &key, ca_file)
    }

    fn with_certificate(daemon: &Daemon, own: &[u8], own_key: &KeyPair, ca_file: PathBuf) -> Self {
        let chain = vec![CertificateDer::from(own.to_vec())];
        let own_key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, own_key)
            .expect("a certificate and its key");
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        runtime.spawn(pass_on(listener, TlsAcceptor::from(Arc::new(config)), daemon.addresses()[0]));
        Self { url: format!("https://localhost:{port}"), ca_file, _runtime: runtime }
    }

    fn ca_file(&self) -> &str {
        self.ca_file.to_str().expect("UTF-8")
    }
}

#[test]
fn a_certificate_that_the_server_has_made_for_itself_is_accepted_if_the_file_has_it() {
    let daemon = daemon(User::AsStarted, "[http]\nrequire_token = true");
    let authority = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let list = |proxy: &Proxy, ca_file: &str| {
        run_at(&daemon, &proxy.url, "alice", &["--ca-file", ca_file, "session", "list"])
    };
    let server = Proxy::self_signed(&daemon, "server", |_| {});
    list(&server, server.ca_file()).ok();
    // As `openssl req -x509` makes it.
    let both = Proxy::self_signed(&daemon, "both", authority);
    list(&both, both.ca_file()).ok();
    // Another one of the same name and kind is not this one; dates and names are verified.
    let other = Proxy::self_signed(&daemon, "other", authority);
    let refused = list(&other, both.ca_file()).fails(77);
    assert!(refused.contains("cannot be verified") && refused.contains("--ca-file"), "{refused}");
    let named = Proxy::self_signed(&daemon, "named", |params| {
        authority(params);
        params.subject_alt_names.clear();
    });
    let refused = list(&named, named.ca_file()).fails(77);
    assert!(refused.contains("name"), "{refused}");
    let expired = Proxy::self_signed(&daemon, "expired", |params| {
        authority(params);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    });
    let refused = list(&expired, expired.ca_file()).fails(77);
    assert!(refused.contains("expired"), "{refused}");
    daemon.stop();
}

async fn pass_on(listener: TcpListener, acceptor: TlsAcceptor, daemon: SocketAddr) {
    while let Ok((client, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(mut client) = acceptor.accept(client).await else { return };
            let mut daemon = TcpStream::connect(daemon).await.expect("the daemon");
            let _ = tokio::io::copy_bidirectional(&mut client, &mut daemon).await;
        });
    }
}

#[test]
fn a_daemon_behind_tls_is_verified() {
    let daemon = daemon(User::AsStarted, "[http]\nrequire_token = true");
    let proxy = Proxy::start(&daemon, "localhost");
    let (url, ca_file) = (proxy.url.as_str(), proxy.ca_file());
    let trusted =
        |arguments: &[&str]| run_at(&daemon, url, "alice", &[&["--ca-file", ca_file], arguments].concat());
    trusted(&["template", "create", "--name", "hers"]).ok();
    let worktree = daemon.place.worktree().display().to_string();
    let session =
        ["-q", "session", "create", "--template-id", "hers", "--workspace-id", "w", "--base-commit", "c"];
    let session = trusted(&[&session[..], &["--worktree-path", &worktree]].concat()).ok().trim().to_owned();
    // A request and a reply of many TLS records.
    let code = format!("console.log('{}'.length); console.log('y'.repeat(300000))", "x".repeat(200_000));
    let run_stdin = ["--ca-file", ca_file, "run", "--session", &session, "-"];
    let output = run(&mut command_at(&daemon, url, "alice", &run_stdin), &code).ok();
    assert!(output.starts_with("200000\n") && output.len() == 7 + 300_001, "{}", output.len());
    // The system's certificates, of which OpenSSL's variable names the file.
    let mut command = command_at(&daemon, url, "alice", &["session", "list"]);
    run(command.env("SSL_CERT_FILE", ca_file), "").ok();

    // Only certificates that are trusted, for their own names, in time.
    let refused = run_at(&daemon, url, "alice", &["session", "list"]).stderr;
    assert!(refused.contains(url) || refused.contains("no certificates of authorities"), "{refused}");
    let other = Proxy::start(&daemon, "other.example");
    let refused = run_at(&daemon, &other.url, "alice", &["--ca-file", ca_file, "session", "list"]).fails(77);
    assert!(refused.contains(&other.url) && refused.contains("its issuer is unknown"), "{refused}");
    assert!(refused.contains("--ca-file"), "{refused}");
    let refused =
        run_at(&daemon, &other.url, "alice", &["--ca-file", other.ca_file(), "session", "list"]).fails(77);
    assert!(refused.contains("cannot be verified") && refused.contains("name"), "{refused}");

    // One end with TLS, the other without.
    let plain = http_url(&daemon).replace("http:", "https:");
    let refused = run_at(&daemon, &plain, "alice", &["--ca-file", ca_file, "session", "list"]).fails(69);
    assert!(refused.contains("does not use TLS") && refused.contains("http?"), "{refused}");
    let plain = url.replace("https:", "http:");
    let refused = run_at(&daemon, &plain, "alice", &["session", "list"]).fails(69);
    assert!(refused.contains("does not speak HTTP") && refused.contains("https"), "{refused}");
    let refused = run_at(&daemon, url, "alice", &["--ca-file", "/dev/null", "session", "list"]).fails(1);
    assert!(refused.contains("/dev/null") && refused.contains("there is none"), "{refused}");
    daemon.stop();
}
