//! Sockets that a service manager passes to the daemon, and the reload that it requests.

use super::people::{self, ALICE};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::Arc;
use vm_system_tests::PATIENCE;
use vm_system_tests::command::CommandOutput;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch;

const TEMPLATES: &str = "/api/v1/templates";

fn passing(name: &'static str, socket: OwnedFd) -> DaemonOptions {
    DaemonOptions { passed: Some((name, Arc::new(socket))), ..DaemonOptions::default() }
}

#[test]
fn http_is_served_at_a_tcp_socket_of_the_service_manager() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &passing("http", listener.into()));
    assert_eq!(daemon.addresses(), [address]);
    assert_eq!(Http::tcp(address).get(TEMPLATES).status, 200, "the kernel names the user");
    assert_eq!(Http::tcp(address).bearer("unknown").get(TEMPLATES).status, 401);
    assert_eq!(daemon.http().get(TEMPLATES).status, 200, "its own socket is there, too");
    daemon.stop();
}

#[test]
fn control_socket_and_http_socket_of_the_service_manager_take_the_place_of_the_daemons_own() {
    for name in ["control", "http"] {
        let place = TestDir::new(User::AsStarted);
        let path = if name == "control" { place.socket() } else { place.http_socket() };
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let listener = UnixListener::bind(&path).expect("bound");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("ours");
        let daemon = Daemon::start_with(place, &passing(name, listener.into()));
        daemon.cli(&["ops", "health"]).ok();
        assert_eq!(daemon.http().get(TEMPLATES).status, 200, "{name}");
        let place = daemon.stop();
        assert!(path.exists(), "{name}: the service manager's socket is not removed");
        drop(place);
    }
}

#[test]
fn unknown_descriptors_and_public_addresses_without_tokens_are_refused_at_the_start() {
    let start = |options: &DaemonOptions| {
        Daemon::try_start(TestDir::new(User::AsStarted), options).expect_err("a daemon that does not start").1
    };
    let tcp = |address: &str| OwnedFd::from(TcpListener::bind(address).expect("a port"));
    let unknown = start(&passing("vm-system-http.socket", tcp("127.0.0.1:0")));
    assert!(unknown.contains("\"vm-system-http.socket\""), "{unknown}");
    assert!(unknown.contains("FileDescriptorName=http"), "{unknown}");
    let public = start(&passing("http", tcp("0.0.0.0:0")));
    assert!(public.contains("reachable from other machines") && public.contains("--tokens"), "{public}");
    let wrong = start(&passing("control", tcp("127.0.0.1:0")));
    assert!(wrong.contains("\"control\"") && wrong.contains("not a listening Unix stream socket"), "{wrong}");
}

fn session(daemon: &Daemon, folder: &str) -> CommandOutput {
    let folder = daemon.place.path(folder).display().to_string();
    let of = ["session", "create", "--template-id", "t", "--workspace-id", "w", "--base-commit", "c"];
    daemon.cli(&[&of[..], &["--worktree-path", &folder]].concat())
}

#[test]
fn reload_changes_worktree_roots_names_what_needs_a_restart_and_survives_mistakes() {
    let place = TestDir::new(User::AsStarted);
    for folder in ["first", "second"] {
        std::fs::create_dir(place.path(folder)).expect("ours");
        place.give(&place.path(folder));
    }
    people::write_book(&place, &people::book(&["alice"]));
    let tokens = place.path("tokens.toml").display().to_string();
    let file = place.path("configuration.toml");
    let of_root = if User::can_be_switched() { "min_uid = 1\nroot_files = true\n" } else { "" };
    let root = |name: &str| format!("{of_root}worktree_roots = [{:?}]\n", place.path(name));
    let write = |text: &str| {
        std::fs::write(&file, text).expect("ours");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("ours");
    };
    let (first, second) = (root("first"), root("second"));
    write(&first);
    let arguments =
        ["--config", &file.display().to_string(), "--tokens", &tokens].map(str::to_owned).to_vec();
    let daemon = Daemon::start_with(place, &DaemonOptions { arguments, ..DaemonOptions::default() });
    // The socket of the harness is gone; from now on this test is the service manager.
    let notify = daemon.place.path("notify");
    std::fs::remove_file(&notify).expect("the harness made it");
    let manager = UnixDatagram::bind(&notify).expect("the folder is ours");
    std::fs::set_permissions(&notify, std::fs::Permissions::from_mode(0o777)).expect("ours");
    manager.set_read_timeout(Some(PATIENCE)).expect("positive");
    let next = || {
        let mut message = [0; 2_048];
        let len = manager.recv(&mut message).expect("a notification");
        String::from_utf8_lossy(&message[..len]).into_owned()
    };
    let reload = |wanted: &str| {
        let before = daemon.log().len();
        daemon.hang_up();
        watch::wait_until(|| daemon.log()[before..].contains(wanted), || daemon.log());
        let begins = next();
        assert!(begins.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{begins}");
        let ends = next();
        assert!(ends.starts_with("READY=1\nSTATUS=serving"), "{ends}");
        ends
    };
    daemon.cli(&["template", "create", "--name", "t"]).ok();
    session(&daemon, "first").ok();
    let refused = session(&daemon, "second").stderr;
    assert!(refused.contains("worktree root"), "{refused}");

    write(&(second.clone() + "stop_s = 7\n[http]\nrequire_token = true\n"));
    let status = reload("were read again");
    assert!(status.contains("need a restart: http, stop_s"), "{status}");
    session(&daemon, "second").ok();
    let refused = session(&daemon, "first").stderr;
    assert!(refused.contains("worktree root"), "{refused}");

    for wrong in ["nonsense", "no_such_setting = 1\n", "worktree_roots = [\"/no/such/folder\"]\n"] {
        write(&(of_root.to_owned() + wrong));
        let status = reload("the previous tokens stay valid");
        assert!(status.contains("previous configuration"), "{status}");
        session(&daemon, "second").ok();
    }
    assert_eq!(daemon.http().bearer(ALICE).get(TEMPLATES).status, 200);
    daemon.stop();
}
