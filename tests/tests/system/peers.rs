//! Other users and slow readers at the control socket, and the command that needs no daemon as a user without rights.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use vm_system_protocol::control::{ExecList, ListPage, ServerFrame};
use vm_system_protocol::model::{ExecutionKind, Limits, Settings};
use vm_system_tests::client::repl;
use vm_system_tests::command::{run, vm_system};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::other_user::{GROUP, OtherUser, shared_daemon};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::program;
use vm_system_tests::scene::Scene;
use vm_system_tests::skip;
use vm_system_tests::watch::Watch;
use vm_system_tests::{as_both, observe};

as_both!(a_script_needs_no_daemon_and_no_rights, a_slow_reader_gets_everything_and_costs_no_memory,);

#[test]
fn mode_of_the_socket_decides_about_connections_and_the_kernel_names_the_user() {
    if !User::can_be_switched() {
        skip("root", "other users need root");
        return;
    }
    let (daemon, worktrees) = shared_daemon("", &[]);
    let mode = std::fs::metadata(daemon.place.socket()).expect("socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let (alice, bob) = (OtherUser::named("bin"), OtherUser::named("sys"));

    // Neither owner nor in the group: the kernel refuses the connection.
    let outsider = OtherUser { gid: alice.uid, ..alice }.cli(&daemon, &["session", "list"]);
    assert!(outsider.fails(77).contains("no permission to connect"));
    // In the group, but the user that workers run as: a process that escaped from a jail reaches no API.
    let worker = OtherUser { uid: UNPRIVILEGED_UID, ..alice }.cli(&daemon, &["session", "list"]);
    assert!(worker.fails(77).contains("uid 65534 may not use this socket"));
    // In the group, but a uid without a passwd entry, as subordinate ids are.
    let subordinate = OtherUser { uid: 3_999_999_999, ..alice }.cli(&daemon, &["session", "list"]);
    assert!(subordinate.fails(77).contains("uid 3999999999 has no passwd entry"));

    // In the group: the principal is the user's uid, which has its own rows, sees no others' and administers nothing.
    daemon.cli(&["template", "create", "--name", "ours"]).ok();
    assert!(!alice.cli(&daemon, &["template", "list"]).ok().contains("ours"));
    alice.cli(&daemon, &["template", "create", "--name", "theirs"]).ok();
    let worktree = alice.folder(worktrees.path().join("alice"));
    let session = alice.session(&daemon, &worktree).ok().trim().to_owned();
    assert_eq!(alice.cli(&daemon, &["exec", "repl", &session, "6 * 7"]).ok(), "42\n");
    let others = bob.cli(&daemon, &["session", "get", &session]);
    assert!(others.fails(1).contains("SESSION_NOT_FOUND"), "another user's session does not exist");
    assert!(alice.cli(&daemon, &["ops", "shutdown"]).fails(77).contains("NOT_PERMITTED"));
    let audit = daemon.cli(&["ops", "audit", "--output", "csv"]).ok();
    for line in [
        "(nobody),control,connect,uid:65534,NOT_PERMITTED".to_owned(),
        format!("uid:{},control,session get,{session},SESSION_NOT_FOUND", bob.uid),
        format!("uid:{},control,shutdown,,NOT_PERMITTED", alice.uid),
    ] {
        assert!(audit.contains(&line), "{line}: {audit}");
    }
    daemon.cli(&["session", "get", &session]).ok();
    daemon.stop();
}

/// Only what the system's folder says is different: nobody outside of its group may enter it, and no daemon runs there.
const CLOSED_FOLDER: &str = "mount -t tmpfs none /run && mkdir -m 0750 /run/vm-system && \
                             exec setpriv --reuid \"$0\" --regid \"$0\" --clear-groups -- \"$@\"";

#[test]
fn a_closed_folder_of_the_system_keeps_no_user_from_an_own_daemon() {
    if !User::can_be_switched() {
        skip("root", "mounts and other users need root");
        return;
    }
    let place = TestDir::new(User::Unprivileged);
    let command = |arguments: &[&str]| {
        let mut command = Command::new("/usr/bin/unshare");
        command.args(["-m", "sh", "-c", CLOSED_FOLDER, &UNPRIVILEGED_UID.to_string()]);
        command.arg(program::path(program::PRODUCT, User::Unprivileged)).args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", place.path("home"));
        command
    };
    let without = run(&mut command(&["session", "list"]), "").fails(69);
    let own = place.path("home/.local/state/vm-system/control.sock");
    for reason in [
        "/run/vm-system/control.sock (the folder /run/vm-system does not let you in)".to_owned(),
        format!("{} (there is none)", own.display()),
    ] {
        assert!(without.contains(&reason), "{reason}: {without}");
    }
    // A place that the user names is the only one.
    let named =
        run(&mut command(&["--socket", "/run/vm-system/control.sock", "session", "list"]), "").fails(77);
    assert!(named.contains("no permission to connect to /run/vm-system/control.sock"), "{named}");

    let mut agent = command(&["mcp", "--idle-exit", "1"]);
    let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare");
    let mut stdin = agent.stdin.take().expect("piped");
    let about =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}"#;
    for (id, method, params) in
        [(1, "initialize", about), (2, "tools/call", r#"{"name":"server_info","arguments":{}}"#)]
    {
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
            .expect("read");
    }
    let lines = BufReader::new(agent.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let answer = lines.into_iter().find(|line| line.contains(r#""id":2"#)).unwrap_or_default();
    drop(stdin);
    assert!(answer.contains("result") && !answer.contains("\"isError\":true"), "{answer}");
    assert!(agent.wait().expect("reaped").success());
    let lock = place.path("home/.local/state/vm-system/lock");
    assert!(
        std::fs::read_to_string(lock).is_ok_and(|text| text.contains("control.sock")),
        "the user's own daemon"
    );
}

#[test]
fn a_user_reaches_no_folder_of_another_user_through_a_daemon_of_root() {
    if !User::can_be_switched() {
        skip("root", "other users need root");
        return;
    }
    let (daemon, worktrees) = shared_daemon("", &["--listen", "127.0.0.1:0"]);
    let (alice, bob) = (OtherUser::named(GROUP), OtherUser::named("sys"));
    let template = alice.cli(&daemon, &["-q", "template", "create", "--name", "theirs", "--module", "fs"]);
    let template = template.ok().trim().to_owned();
    let own = alice.folder(worktrees.path().join("alice"));
    let bobs = bob.folder(worktrees.path().join("bob"));
    std::fs::write(bobs.join("secret.js"), "console.log('of bob')").expect("a file");
    std::fs::set_permissions(&bobs, Permissions::from_mode(0o700)).expect("chmod");
    // A folder of hers below one of root's that others cannot search.
    let closed = worktrees.path().join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    let unreachable = alice.folder(closed.join("alice"));
    std::fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("chmod");
    // Links that she may create in her own folder.
    for (name, target) in [("up", "../bob"), ("absolute", bobs.to_str().expect("UTF-8"))] {
        std::os::unix::fs::symlink(target, own.join(name)).expect("a link");
    }
    let source = own.join("p.js");
    std::fs::write(&source, "function main() { return fs.readFile('shadow') }").expect("a program");
    let program =
        alice.cli(&daemon, &["-q", "program", "load", source.to_str().expect("UTF-8"), "--name", "p"]);
    let program = program.ok().trim().to_owned();
    // A process of hers in its own namespaces, where root's folder is mounted below a path of her choice.
    let mut holder = alice.command(Path::new("/usr/bin/unshare"));
    holder.args(["-Urm", "sh", "-c", "mount --rbind /etc \"$0\" && echo mounted && exec cat"]).arg(&own);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare");
    let mut line = [0; 8];
    let mounted = std::io::Read::read_exact(holder.stdout.as_mut().expect("piped"), &mut line).is_ok();
    if !mounted {
        skip("namespaces", "users may not make user namespaces here");
    }
    let foreign = format!("/proc/{}/root{}", holder.id(), own.display());
    let by_proc = format!("/proc/{}/root{}", holder.id(), bobs.display());
    for path in [
        bobs.as_path(),
        &unreachable,
        &own.join("up"),
        &own.join("absolute"),
        Path::new("/etc"),
        Path::new(&foreign),
        Path::new(&by_proc),
    ] {
        // Over HTTP: the command line resolves links itself, with the rights of the caller.
        let body = format!(
            r#"{{"template_id":"{template}","workspace_id":"w","base_commit_oid":"c","worktree_path":{path:?}}}"#
        );
        let response = alice.http(&daemon, "POST", "/sessions", &body);
        let refused = response.starts_with("HTTP/1.1 403 ") && response.contains("NOT_PERMITTED");
        assert!(refused, "{path:?}: {response}");
        let body = format!(r#"{{"program_id":"{program}","worktree_path":{path:?}}}"#);
        let response = alice.http(&daemon, "POST", "/executions/program", &body);
        let refused = response.starts_with("HTTP/1.1 403 ") && response.contains("NOT_PERMITTED");
        assert!(refused, "{path:?}: {response}");
    }
    drop(holder.stdin.take());
    holder.wait().expect("it ends with its input");
    let session = alice.session(&daemon, &own).ok().trim().to_owned();
    let read = "try { require('fs').readFileSync('up/secret.js', 'utf8') } catch (error) { error.code }";
    assert_eq!(alice.cli(&daemon, &["exec", "repl", &session, read]).ok(), "'EACCES'\n");
    // Root acts without capabilities, or as another user.
    let of = ["--template-id", "theirs", "--workspace-id", "w", "--base-commit", "c", "--worktree-path"];
    daemon.cli(&["template", "create", "--name", "theirs"]).ok();
    let session = [&["-q", "session", "create"], of.as_slice(), &[bobs.to_str().expect("UTF-8")]].concat();
    assert!(daemon.cli(&session).fails(77).contains("NOT_PERMITTED"));
    let session = [session.as_slice(), &["--as-user", "sys"]].concat();
    let session = daemon.cli(&session).ok().trim().to_owned();
    assert_eq!(daemon.cli(&["exec", "run-file", &session, "secret.js"]).ok(), "of bob\n");
    let own_session = alice.session(&daemon, &own).ok().trim().to_owned();
    let refused =
        [&["-q", "session", "create"], of.as_slice(), &[own.to_str().expect("UTF-8"), "--as-user", "sys"]];
    assert!(
        alice
            .cli(&daemon, &refused.concat())
            .fails(77)
            .contains("only an administrator acts as another user")
    );
    alice.cli(&daemon, &["session", "close", &own_session]).ok();
    daemon.stop();
}

#[test]
fn user_of_a_service_reaches_no_api_and_root_administers_it() {
    if !User::can_be_switched() {
        skip("root", "other users need root");
        return;
    }
    let arguments = vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()];
    let options =
        DaemonOptions { config: "service = true".to_owned(), arguments, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::Unprivileged), &options);
    // As brokers and commands of the service do.
    let refused = daemon.cli(&["session", "list"]).fails(77);
    assert!(refused.contains("uid 65534 may not use this socket"), "{refused}");
    let own = OtherUser { uid: UNPRIVILEGED_UID, gid: UNPRIVILEGED_UID };
    let refused = own.http(&daemon, "GET", "/sessions", "");
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let root = OtherUser { uid: 0, gid: 0 };
    let audit = root.cli(&daemon, &["ops", "audit", "--output", "csv"]).ok();
    assert!(audit.contains("(nobody),control,connect,uid:65534,NOT_PERMITTED"), "{audit}");
    let place = daemon.stop();
    // The same daemon of a person: its user is the administrator.
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    daemon.cli(&["ops", "audit"]).ok();
    daemon.stop();
}

#[test]
fn over_tcp_users_are_authenticated_as_over_the_unix_socket() {
    if !User::can_be_switched() {
        skip("root", "other users need root");
        return;
    }
    let (daemon, _worktrees) = shared_daemon("", &["--listen", "127.0.0.1:0"]);
    daemon.cli(&["template", "create", "--name", "ours"]).ok();
    let member = OtherUser::named(GROUP);
    let primary = nix::unistd::User::from_name(GROUP).expect("NSS answers").expect("a system user").gid;
    assert_eq!(primary.as_raw(), member.gid, "its primary group is the one that may connect");
    let root = OtherUser { uid: 0, gid: 0 };
    assert!(root.http(&daemon, "GET", "/templates", "").ends_with("}]"), "an administrator sees all");
    let seen = member.http(&daemon, "GET", "/templates", "");
    assert!(seen.starts_with("HTTP/1.1 200 ") && seen.ends_with("\r\n\r\n[]"), "{seen}");
    // The group database decides: a TCP socket does not carry the groups of its process.
    let outsider = OtherUser::named("bin");
    for refused in [outsider, OtherUser { uid: 3_999_999_999, ..outsider }] {
        let seen = refused.http(&daemon, "GET", "/templates", "");
        assert!(seen.starts_with("HTTP/1.1 401 "), "{seen}");
    }
    daemon.stop();
}

mod cases {
    use super::*;

    pub(super) fn a_script_needs_no_daemon_and_no_rights(user: User) {
        let place = TestDir::new(user);
        place.write("data.txt", "from the worktree");
        place.write("main.js", "console.log(require('fs').readFileSync('data.txt', 'utf8'))");
        assert_eq!(vm_system(&place, &["run", "-e", "[1,2,3].map(x => x * 2)"]).ok(), "[ 2, 4, 6 ]\n");
        assert_eq!(vm_system(&place, &["run", "main.js"]).ok(), "from the worktree\n");
        assert!(!place.socket().exists() && place.path("state").read_dir().expect("state").next().is_none());
    }

    /// More than fits into all buffers between worker and reader.
    const EVENTS: u64 = 8_000;

    pub(super) fn a_slow_reader_gets_everything_and_costs_no_memory(user: User) {
        let limits = Limits {
            cpu_ms: 60_000,
            wall_ms: 60_000,
            max_events: 10_000,
            max_output_kb: 8 * 1_024,
            ..Limits::default()
        };
        let mut scene = Scene::with_settings(user, Settings { limits, ..Settings::default() });
        let session = scene.session();
        let before_kib = observe::anonymous_kib(scene.daemon.pid());
        let code = format!("for (let i = 0; i < {EVENTS}; i++) console.log('x'.repeat(500))");
        let mut new = repl(&session, &code, true);
        assert_eq!(new.kind, ExecutionKind::Repl);
        new.follow = true;
        let mut slow = scene.daemon.client();
        let id = slow.send(new);
        // The slow client reads nothing until the execution has ended; others are served, and the supervisor keeps no copy for it.
        let list = ExecList::all(session.id.to_string(), ListPage::first(1));
        let mut watch = Watch::begin();
        loop {
            let reply = scene.client.op(list.clone()).expect("a response");
            if reply.first().is_some_and(|execution| execution.status.is_final()) {
                break;
            }
            watch.pause(|| "a slow reader holds up the execution".to_owned());
        }
        let grown_kib = observe::anonymous_kib(scene.daemon.pid()).saturating_sub(before_kib);
        assert!(grown_kib < 24 * 1_024, "the supervisor grew by {grown_kib} KiB");
        let mut last = 0;
        let reply = loop {
            match slow.frame() {
                ServerFrame::Events { id: of, events } => {
                    assert_eq!(of, id);
                    for event in events {
                        assert_eq!(event.seq, last + 1, "a gap or a double");
                        last = event.seq;
                    }
                }
                ServerFrame::Reply { id: of, result } => {
                    assert_eq!(of, id);
                    break result;
                }
            }
        };
        reply.expect("it ended well");
        // The echo of the input, the lines, and the value of the last one.
        assert!((EVENTS..=EVENTS + 2).contains(&last), "{last} events");
        drop(slow);
        scene.end(&[&session]);
    }
}
