//! Permitted clients and their principals: tokens, local users, host names, origins.

use super::people::{self, ALICE, BOB, ROOT};
use serde_json::json;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::skip;
use vm_system_tests::watch;

/// Opens a connection.
type Connect<'a> = Box<dyn Fn() -> Http + 'a>;

const TEMPLATES: &str = "/api/v1/templates";

#[test]
fn tokens_and_local_users_are_the_same_principals_on_both_transports() {
    let daemon = people::daemon(&[]);
    let address = daemon.addresses()[0];
    let transports: [(&str, Connect<'_>); 2] =
        [("unix", Box::new(|| daemon.http())), ("tcp", Box::new(|| Http::tcp(address)))];
    for (transport, connect) in &transports {
        for (token, name) in [(ALICE, "alice"), (BOB, "bob"), (ROOT, "root")] {
            let name = format!("{name}-{transport}");
            let created = connect().bearer(token).post(TEMPLATES, &json!({ "name": name }));
            assert_eq!(created.status, 201, "{transport} {name}: {}", created.text());
        }
        let seen = |http: Http| {
            let mut http = http;
            http.get(TEMPLATES).json().as_array().expect("a list").len()
        };
        let already = if *transport == "unix" { 1 } else { 2 };
        assert_eq!(seen(connect().bearer(ALICE)), already, "{transport}");
        assert_eq!(seen(connect().bearer(ROOT)), 3 * already, "{transport}");
        // Without a token, the caller is the daemon's own user, an administrator.
        assert_eq!(seen(connect()), 3 * already, "{transport}");
        for wrong in ["Bearer", "Bearer ", "Bearer nonsense", "Basic YTpi", "Bearer alice-token x", "bearer"]
        {
            let response = connect().with("authorization", wrong).get(TEMPLATES);
            assert_eq!(
                (response.status, response.code().as_str()),
                (401, "UNAUTHORIZED"),
                "{transport} {wrong}"
            );
            assert_eq!(response.field("www-authenticate"), Some("Bearer"));
        }
        let twice = connect().bearer(ALICE).bearer(ROOT).get(TEMPLATES);
        assert_eq!(twice.status, 401, "{transport}: two tokens");
        assert_eq!(connect().with("authorization", &format!("bEaReR {ALICE}")).get(TEMPLATES).status, 200);
        let huge = connect().bearer(&"x".repeat(5_000)).get(TEMPLATES);
        assert_eq!(huge.status, 401, "{transport}");
    }
    drop(transports);
    daemon.stop();
}

#[test]
fn tokens_are_read_again_on_sighup_and_a_mistake_changes_nothing() {
    let daemon = people::daemon(&[]);
    let status = |token: &str| daemon.http().bearer(token).get(TEMPLATES).status;
    let until = |token: &str, wanted: u16| {
        let otherwise = || format!("{token} is still not {wanted}:\n{}", daemon.log());
        watch::wait_until(|| status(token) == wanted, otherwise);
    };
    assert_eq!(status(BOB), 200);
    people::write_book(&daemon.place, &people::book(&["alice"]));
    daemon.hang_up();
    until(BOB, 401);
    assert_eq!(status(ALICE), 200);
    people::write_book(&daemon.place, "nonsense");
    daemon.hang_up();
    watch::wait_until(|| daemon.log().contains("the previous tokens stay valid"), || daemon.log());
    assert_eq!((status(ALICE), status(BOB)), (200, 401));
    daemon.stop();
}

fn refused(arguments: &[String], config: &str) -> String {
    let place = TestDir::new(User::AsStarted);
    people::write_book(&place, &people::book(&["alice"]));
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.replace("PLACE", &place.path("").to_string_lossy()))
        .collect();
    let options = DaemonOptions { arguments, config: config.to_owned(), ..DaemonOptions::default() };
    Daemon::try_start(place, &options).expect_err("a daemon that does not start").1
}

fn texts(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

#[test]
fn public_listener_without_tokens_and_readable_token_file_are_refused_at_the_start() {
    let log = refused(&texts(&["--listen", "0.0.0.0:0"]), "");
    assert!(log.contains("--tokens"), "{log}");
    let log = refused(&texts(&["--tokens", "PLACE/worktree"]), "");
    assert!(log.contains("not a regular file"), "{log}");
    let log = refused(&texts(&["--tokens", "PLACE/nothing"]), "");
    assert!(log.contains("cannot read the tokens"), "{log}");
    let log = refused(&texts(&["--ui-dir", "PLACE/nothing"]), "");
    assert!(log.contains("the folder of --ui-dir"), "{log}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let log = refused(&texts(&["--listen", &address]), "");
    assert!(log.contains(&address), "{log}");
}

#[test]
fn beyond_loopback_and_by_the_operators_choice_every_client_needs_a_token() {
    let daemon = people::daemon(&["--listen", "0.0.0.0:0"]);
    let port = daemon.addresses()[1].port();
    // A client of this machine over loopback: still its own uid.
    let local = Http::tcp(([127, 0, 0, 1], port).into()).get(TEMPLATES);
    assert_eq!(local.status, 200, "{}", local.text());
    match own_address() {
        Some(ip) => {
            let address = std::net::SocketAddr::new(ip, port);
            assert_eq!(Http::tcp(address).get(TEMPLATES).code(), "UNAUTHORIZED");
            assert_eq!(Http::tcp(address).bearer(ALICE).get(TEMPLATES).status, 200);
        }
        None => skip("address", "this machine has no address beyond loopback"),
    }
    daemon.stop();
    let place = TestDir::new(User::AsStarted);
    people::write_book(&place, &people::book(&["alice"]));
    let tokens = place.path("tokens.toml");
    let config = format!(
        "[http]\nlisten = [\"127.0.0.1:0\"]\nrequire_token = true\ntokens = \"{}\"",
        tokens.display()
    );
    let daemon = Daemon::start_with(place, &DaemonOptions { config, ..DaemonOptions::default() });
    let address = daemon.addresses()[0];
    assert_eq!(Http::tcp(address).get(TEMPLATES).code(), "UNAUTHORIZED");
    assert_eq!(Http::tcp(address).get("/api/v1/health").code(), "UNAUTHORIZED");
    assert_eq!(Http::tcp(address).bearer(ALICE).get(TEMPLATES).status, 200);
    assert_eq!(daemon.http().get(TEMPLATES).status, 200, "the Unix socket authenticates users by uid");
    daemon.stop();
}

/// An address of this machine other than loopback; no packet is sent to find it.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

#[test]
fn foreign_host_names_and_origins_are_refused() {
    let place = TestDir::new(User::AsStarted);
    let config = "[http]\nlisten = [\"127.0.0.1:0\"]\nallowed_hosts = [\"vm.example\", \"192.0.2.7\"]\n\
         allowed_origins = [\"http://localhost:5173\"]"
        .to_owned();
    let daemon = Daemon::start_with(place, &DaemonOptions { config, ..DaemonOptions::default() });
    let address = daemon.addresses()[0];
    let status =
        |fields: &[(&str, &str)]| Http::tcp(address).request("GET", "/api/v1/health", fields, None).status;
    for host in
        ["localhost", "localhost:1", "127.0.0.1", "[::1]:80", "vm.example", "VM.example:443", "192.0.2.7"]
    {
        assert_eq!(status(&[("host", host)]), 200, "{host}");
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "vm.example.evil",
        // Addresses that are not this listener's, and that the operator has not listed.
        "192.0.2.8",
        "0.0.0.0:80",
        "[2001:db8::1]",
        // A user name before the host.
        "localhost:1@evil.example",
        "localhost:1@evil",
        "localhost@evil.example",
    ] {
        assert_eq!(status(&[("host", host)]), 403, "{host}");
    }
    assert_eq!(status(&[("host", "")]), 400, "no Host");
    assert_eq!(status(&[("host", "localhost"), ("host", "evil.example")]), 400, "two of them");
    let absolute = Http::tcp(address).request("GET", "http://evil.example/api/v1/health", &[], None);
    assert_eq!(absolute.status, 403, "the target goes before Host");
    let host = address.to_string();
    assert_eq!(status(&[("origin", &format!("http://{host}"))]), 200);
    assert_eq!(status(&[("origin", "http://localhost:5173")]), 200, "a page of an allowed origin");
    for origin in ["http://evil.example", "null", "http://localhost:1", "https://localhost:5173"] {
        assert_eq!(status(&[("origin", origin)]), 403, "{origin}");
    }
    // Without an origin: links, pictures and forms of a page with GET.
    for site in ["same-origin", "none"] {
        assert_eq!(status(&[("sec-fetch-site", site)]), 200, "{site}");
    }
    for site in ["cross-site", "same-site", "new-kind"] {
        assert_eq!(status(&[("sec-fetch-site", site)]), 403, "{site}");
    }
    assert_eq!(status(&[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")]), 403);
    let ours = format!("http://{host}");
    assert_eq!(status(&[("origin", &ours), ("sec-fetch-site", "cross-site")]), 200, "the origin is known");
    let preflight = Http::tcp(address).request(
        "OPTIONS",
        TEMPLATES,
        &[("origin", "http://evil.example"), ("access-control-request-method", "POST")],
        None,
    );
    assert_eq!(preflight.status, 403);
    assert!(preflight.fields.iter().all(|(name, _)| !name.starts_with("access-control")));
    daemon.stop();
}
