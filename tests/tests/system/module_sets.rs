//! Modules that a session has loaded are compiled for the next sessions of the same owner, worktree and rights.

use vm_system_protocol::control::ZygoteInfo;
use vm_system_protocol::model::{CapabilityKind, Session};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::place::User;
use vm_system_tests::rights::Bench;
use vm_system_tests::{as_both, observe, watch};

as_both!(
    the_next_session_has_it_compiled_and_a_changed_file_is_as_it_is,
    sessions_that_may_change_files_share_none,
    other_rights_to_load_share_none,
    the_exit_of_its_zygote_harms_no_session,
);

/// More than what a zygote is started for.
fn large(value: &str) -> String {
    format!("module.exports = '{value}'; // {}", "x".repeat(100_000))
}

/// The zygotes with compiled modules.
fn zygotes(bench: &Bench) -> Vec<ZygoteInfo> {
    bench.daemon.info().zygotes.into_iter().filter(|zygote| zygote.modules > 0).collect()
}

/// Waits for the only one.
#[track_caller]
fn only(bench: &Bench) -> ZygoteInfo {
    watch::wait_until(|| !zygotes(bench).is_empty(), || "no modules are compiled".to_owned());
    let mut all = zygotes(bench);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

const LOAD: &str = "require('big')";

/// A session that loads the module.
fn load(bench: &mut Bench, expected: &str) -> Session {
    let session = bench.session();
    assert_eq!(bench.eval(&session, LOAD), format!("'{expected}'"));
    session
}

mod cases {
    use super::*;

    pub(super) fn the_next_session_has_it_compiled_and_a_changed_file_is_as_it_is(user: User) {
        let mut bench = Bench::new(user, &[]);
        bench.daemon.place.write("node_modules/big/index.js", large("first"));
        let small = bench.session();
        assert_eq!(bench.eval(&small, "1 + 1"), "2");
        load(&mut bench, "first");
        let zygote = only(&bench);
        assert_eq!((zygote.engine.as_str(), zygote.modules), ("quickjs", 1));
        let next = load(&mut bench, "first");
        assert!(only(&bench).forks > zygote.forks, "the session is not forked from it");
        bench.daemon.place.write("node_modules/big/index.js", large("second"));
        load(&mut bench, "second");
        assert_eq!(
            bench.eval(&next, &format!("delete require.cache['node_modules/big/index.js']; {LOAD}")),
            "'second'"
        );
        let shown = bench.daemon.cli(&["ops", "runtime"]).ok();
        let line = shown.lines().find(|line| line.contains(&zygote.pid.to_string()));
        let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            line.map(columns).and_then(|columns| columns.last().cloned()),
            Some("1".to_owned()),
            "{shown}"
        );
        bench.end();
    }

    pub(super) fn sessions_that_may_change_files_share_none(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        bench.daemon.place.write("node_modules/big/index.js", large("first"));
        let row = bench.row(CapabilityKind::Fs, "write", r#"{"paths":["out/**"]}"#);
        load(&mut bench, "first");
        load(&mut bench, "first");
        bench.remove_row(row);
        // The only zygote is the one for the sessions that may not.
        load(&mut bench, "first");
        let zygote = only(&bench);
        bench.row(CapabilityKind::Fs, "write", r#"{"paths":["out/**"]}"#);
        load(&mut bench, "first");
        assert_eq!(only(&bench).forks, zygote.forks);
        bench.end();
    }

    pub(super) fn other_rights_to_load_share_none(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        bench.daemon.place.write("node_modules/big/index.js", large("first"));
        load(&mut bench, "first");
        let zygote = only(&bench);
        bench.row(CapabilityKind::Fs, "read", r#"{"paths":["node_modules/**"]}"#);
        load(&mut bench, "first");
        assert_eq!(only(&bench).forks, zygote.forks);
        bench.end();
    }

    pub(super) fn the_exit_of_its_zygote_harms_no_session(user: User) {
        let mut bench = Bench::new(user, &[]);
        bench.daemon.place.write("node_modules/big/index.js", large("first"));
        load(&mut bench, "first");
        let process = PidFd::open(only(&bench).pid).expect("alive");
        let live = load(&mut bench, "first");
        process.kill().expect("kill");
        observe::all_end(&[process]);
        load(&mut bench, "first");
        assert_eq!(bench.eval(&live, LOAD), "'first'");
        bench.end();
    }
}
