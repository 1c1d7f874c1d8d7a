//! Other users and slow readers at the control socket, and the command that needs no daemon as a user without rights.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use vm_system_protocol::control::{ListPage, Op, ServerFrame};
use vm_system_protocol::model::{ExecutionKind, Limits, Settings};
use vm_system_tests::client::repl;
use vm_system_tests::command::{Output, command, run, vm_system};
use vm_system_tests::daemon::{Daemon, Options};
use vm_system_tests::place::{NOBODY, Place, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::watch::Watch;
use vm_system_tests::{as_both, observe, program};

as_both!(a_script_needs_no_daemon_and_no_rights, a_reader_that_is_slow_gets_everything_and_costs_nothing,);

/// A user and a group that are neither the daemon's nor the workers'.
const STRANGER: u32 = 1_001;
const GROUP: &str = "daemon";

/// A command as another user, who can reach the binary.
fn as_user(daemon: &Daemon, uid: u32, gid: u32, arguments: &[&str]) -> Output {
    let like = command(&daemon.place, program::PRODUCT);
    let mut stranger = std::process::Command::new(program::path(program::PRODUCT, User::Nobody));
    stranger.args(arguments).env_clear().current_dir("/").uid(uid).gid(gid);
    stranger.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(&mut stranger, "")
}

#[test]
fn the_sockets_mode_decides_who_connects_and_the_kernel_who_it_is() {
    if !User::nobody_is_possible() {
        println!("SKIPPED: other users need root");
        return;
    }
    let Ok(Some(group)) = nix::unistd::Group::from_name(GROUP) else {
        println!("SKIPPED: there is no group `{GROUP}` here");
        return;
    };
    let gid = group.gid.as_raw();
    let worktrees = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(worktrees.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let root = worktrees.path().to_string_lossy().into_owned();
    let config = format!("socket_group = \"{GROUP}\"\nworktree_roots = [{root:?}]\n");
    let daemon = Daemon::start_with(Place::new(User::AsStarted), &Options { config, ..Options::default() });
    let mode = std::fs::metadata(daemon.place.socket()).expect("socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);

    // Neither owner nor group: the kernel does not let it connect.
    let outsider = as_user(&daemon, STRANGER, STRANGER, &["session", "list"]);
    assert!(outsider.fails(77).contains("no permission to connect"));
    // The group, but the user that workers run as: whoever got out of a jail finds no open door.
    let worker = as_user(&daemon, NOBODY, gid, &["session", "list"]);
    assert!(worker.fails(77).contains("uid 65534 may not use this socket"));

    // The group: taken as who it is. It has its own things, sees no others' and administers nothing.
    daemon.cli(&["template", "create", "--name", "ours"]).ok();
    let stranger = |arguments: &[&str]| as_user(&daemon, STRANGER, gid, arguments);
    assert!(!stranger(&["template", "list"]).ok().contains("ours"));
    stranger(&["template", "create", "--name", "theirs"]).ok();
    let session = stranger(&[
        "-q",
        "session",
        "create",
        "--template-id",
        "theirs",
        "--workspace-id",
        "w",
        "--base-commit",
        "c",
        "--worktree-path",
        &root,
    ]);
    let session = session.ok().trim().to_owned();
    assert_eq!(stranger(&["exec", "repl", &session, "6 * 7"]).ok(), "42\n");
    let ours = as_user(&daemon, STRANGER + 1, gid, &["session", "get", &session]);
    assert!(ours.fails(1).contains("SESSION_NOT_FOUND"), "another user's session does not exist");
    assert!(stranger(&["ops", "shutdown"]).fails(77).contains("NOT_PERMITTED"));
    let audit = daemon.cli(&["ops", "audit", "--output", "csv"]).ok();
    for line in [
        "(nobody),control,connect,uid:65534,NOT_PERMITTED".to_owned(),
        format!("uid:{},control,session get,{session},SESSION_NOT_FOUND", STRANGER + 1),
        format!("uid:{STRANGER},control,shutdown,,NOT_PERMITTED"),
    ] {
        assert!(audit.contains(&line), "{line}: {audit}");
    }
    daemon.cli(&["session", "get", &session]).ok();
    daemon.stop();
}

mod cases {
    use super::*;

    pub(super) fn a_script_needs_no_daemon_and_no_rights(user: User) {
        let place = Place::new(user);
        place.write("data.txt", "from the worktree");
        place.write("main.js", "console.log(require('fs').readFileSync('data.txt', 'utf8'))");
        assert_eq!(vm_system(&place, &["run", "-e", "[1,2,3].map(x => x * 2)"]).ok(), "[ 2, 4, 6 ]\n");
        assert_eq!(vm_system(&place, &["run", "main.js"]).ok(), "from the worktree\n");
        assert!(!place.socket().exists() && place.path("state").read_dir().expect("state").next().is_none());
    }

    /// More than fits all buffers on the way.
    const EVENTS: u64 = 8_000;

    pub(super) fn a_reader_that_is_slow_gets_everything_and_costs_nothing(user: User) {
        let limits = Limits {
            cpu_ms: 60_000,
            wall_ms: 60_000,
            max_events: 10_000,
            max_output_kb: 8 * 1_024,
            ..Limits::default()
        };
        let mut scene = Scene::with(user, Settings { limits, ..Settings::default() });
        let session = scene.session();
        let before_kib = observe::anonymous_kib(scene.daemon.pid());
        let code = format!("for (let i = 0; i < {EVENTS}; i++) console.log('x'.repeat(500))");
        let Op::ExecStart(mut new) = repl(&session, &code, true) else { unreachable!("it starts something") };
        assert_eq!(new.kind, ExecutionKind::Repl);
        new.follow = true;
        let mut slow = scene.daemon.client();
        let id = slow.send(Op::ExecStart(new));
        // It reads nothing until all is over; others are answered, and the supervisor keeps no second copy for it.
        let list = Op::ExecList { session: session.id.to_string(), page: ListPage::first(1) };
        let mut watch = Watch::begin();
        loop {
            let reply = scene.client.op(list.clone()).expect("answered");
            if let vm_system_protocol::control::Reply::Executions(executions) = reply
                && executions.first().is_some_and(|execution| execution.status.is_final())
            {
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
