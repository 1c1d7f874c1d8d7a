//! A host that refuses user namespaces to users: a daemon of root has them made by its helper, and its jails, workers and commands have
//! the same walls as elsewhere; a daemon of a user does not start and names the setting.

use vm_system_protocol::model::CapabilityKind;
use vm_system_sandbox::inspect;
use vm_system_tests::command::{command, run};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::program::{PRODUCT, WITHOUT_USER_NAMESPACES, path};
use vm_system_tests::rights::Bench;
use vm_system_tests::skip;

fn options() -> DaemonOptions {
    let arguments = ["--allow-exec", "sh=/bin/sh"].map(str::to_owned).to_vec();
    DaemonOptions { program: WITHOUT_USER_NAMESPACES, arguments, ..DaemonOptions::default() }
}

/// The rows about the jail: name, in force, detail.
fn walls(daemon: &Daemon) -> Vec<(String, bool, String)> {
    let rows = daemon.info().sandbox.into_iter();
    let rows = rows.filter(|row| row.name != "supervisor" && row.name != "spawn helper");
    rows.map(|row| (row.name, row.in_force, row.detail)).collect()
}

#[test]
fn the_helper_of_a_root_daemon_makes_the_user_namespaces() {
    if !User::can_be_switched() || !cfg!(target_arch = "x86_64") {
        skip("root", "a tracer that decides by capabilities needs root, and is written for x86_64");
        return;
    }
    let usual = Daemon::start(User::AsStarted);
    let expected = walls(&usual);
    let helper_row = |daemon: &Daemon| {
        let row = daemon.info().sandbox.into_iter().find(|row| row.name == "spawn helper").expect("a row");
        assert!(row.in_force, "{row:?}");
        row.detail
    };
    assert!(!helper_row(&usual).contains("sys_admin"), "never where users may make namespaces");
    usual.stop();

    let mut bench = Bench::with_modules(User::AsStarted, &["exec"], &options());
    bench.use_files_unprivileged();
    bench.row(CapabilityKind::Module, "exec", r#"{"commands": ["sh"]}"#);
    let row = helper_row(&bench.daemon);
    assert!(row.contains("sys_admin because this host refuses user namespaces to users: 2000e0"), "{row}");
    assert_eq!(walls(&bench.daemon), expected, "the same walls");

    let keeper = bench.daemon.info().keeper_pid.expect("a keeper");
    let status = inspect::status(keeper).expect("it runs");
    assert_eq!((status.uid, status.capabilities, status.bounding), (UNPRIVILEGED_UID, 0, 0));
    let map = std::fs::read_to_string(format!("/proc/{keeper}/uid_map")).expect("it runs");
    assert_eq!(map.split_ascii_whitespace().collect::<Vec<_>>(), ["0", "65534", "1"]);
    inspect::verify_namespaces(keeper).expect("namespaces of its own");

    let session = bench.session();
    assert_eq!(bench.eval(&session, "6 * 7"), "42");
    let run = "require('exec').run('sh', ['-c', 'id -u; cat /proc/self/uid_map'])";
    assert_eq!(
        bench.eval(&session, &format!("({run}).stdout.replace(/ +/g, ' ')")),
        "'0\\n 0 1 1\\n'",
        "the command runs in a namespace that belongs to its user"
    );
    let report = bench.daemon.cli(&["ops", "doctor"]).ok();
    assert!(report.contains("sys_admin"), "{report}");
    let Bench { daemon, client, .. } = bench;
    drop(client);
    daemon.stop();
}

#[test]
fn run_names_the_cause_and_every_way_out() {
    let user = if User::can_be_switched() { User::Unprivileged } else { User::AsStarted };
    // Beside each other, as the one executes the other.
    path(PRODUCT, user);
    let place = TestDir::new(user);
    let wrapped = |arguments: &[&str]| run(command(&place, WITHOUT_USER_NAMESPACES).args(arguments), "");
    let why = wrapped(&["run", "-e", "1 + 1"]).fails(70);
    for says in [
        "unprivileged user namespaces",
        "systemd/apparmor.d/vm-system",
        "sysctl kernel.unprivileged_userns_clone=1",
        "a daemon that root starts",
        "--sandbox no-userns",
    ] {
        assert!(why.contains(says), "{says}: {why}");
    }
    // One that it names, tried out.
    let less = wrapped(&["run", "--sandbox", "no-userns", "-e", "console.log(1 + 1)"]).ok();
    assert_eq!(less.trim(), "2");
}

#[test]
fn a_daemon_of_a_user_does_not_start_and_names_the_setting() {
    let user = if User::can_be_switched() { User::Unprivileged } else { User::AsStarted };
    // Beside each other, as the one executes the other.
    path(PRODUCT, user);
    let (_place, log) = Daemon::try_start(TestDir::new(user), &options()).expect_err("no jail can be built");
    assert!(log.contains("user namespace") && log.contains("allow unprivileged user namespaces"), "{log}");
}
