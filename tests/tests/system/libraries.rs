//! Libraries from installation to the end of a session, through the daemon and its jail.

use std::path::Path;
use vm_system_protocol::control::{
    ErrorCode, LibraryInfo, LibraryInstall, LibraryRemove, LibraryVerify, OpError, SessionGet,
    TemplateAddLibrary,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Session, SessionStatus, Settings};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::as_both;
use vm_system_tests::client::{Client, value};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;

as_both!(
    a_library_is_available_in_every_session_of_its_template_and_in_no_other,
    a_library_is_evaluated_once_for_all_its_sessions,
    one_that_is_not_installed_leaves_a_crashed_session_and_the_command,
    a_changed_file_is_refused_and_harms_no_live_session,
    a_removed_library_stays_with_its_sessions,
    a_library_that_fails_harms_its_own_set_alone,
    libraries_outlive_the_daemon,
    seventeenth_set_evicts_the_least_recently_used_zygote,
);

const COUNTER: &str = "(function (root, factory) {
    if (typeof module === 'object' && module.exports) module.exports = factory(); else root.counter = factory();
})(this, () => { let count = 0; return { next: () => ++count, seed: Math.random() }; });";

fn install(client: &mut Client, id: &str, source: &str) -> LibraryInfo {
    let library = LibraryInstall {
        id: id.to_owned(),
        version: "1.0.0".to_owned(),
        global: Some(id.replace('-', "_")),
        source: source.to_owned(),
        unchecked: true,
    };
    client.op(library).expect("installed")
}

fn with_libraries(client: &mut Client, names: &[&str]) -> String {
    let template = client.template(Settings::default(), &[]);
    for name in names {
        let add = TemplateAddLibrary { template: template.clone(), name: (*name).to_owned() };
        client.op(add).expect("added");
    }
    template
}

fn eval(client: &mut Client, session: &Session, code: &str) -> String {
    let execution = client.eval(session, code).expect("it runs");
    let events = execution.events.expect("events");
    value(&events).unwrap_or_else(|| panic!("{code}: {events:?}")).to_owned()
}

fn zygotes(daemon: &Daemon) -> Vec<(Vec<String>, u32, u64)> {
    let zygotes = daemon.info().zygotes.into_iter().filter(|zygote| !zygote.libraries.is_empty());
    zygotes.map(|zygote| (zygote.libraries, zygote.pid, zygote.forks)).collect()
}

/// The record of the session of a failed request.
fn left_behind(client: &mut Client, error: &OpError) -> Session {
    let details = error.details.as_ref().and_then(JsonText::to_value).expect("details");
    let session = details["session_id"].as_str().expect("the session's id").to_owned();
    client.op(SessionGet { session }).expect("its row")
}

fn source_file(state: &Path, library: &LibraryInfo) -> std::path::PathBuf {
    state.join("libraries").join(format!("{}.js", library.sha256.as_deref().expect("installed")))
}

/// A native that never checks the interrupt flag: only the supervisor's timer and SIGKILL end it.
#[test]
fn a_library_that_nothing_interrupts_is_killed() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    install(&mut client, "joiner", "exports.x = new Array(2 ** 32 - 1).join('')");
    let template = with_libraries(&mut client, &["joiner"]);
    let error = client.session(&template, &daemon.place.worktree()).expect_err("killed");
    assert_eq!(error.code, ErrorCode::StartupFailed, "{error:?}");
    assert!(error.message.contains("joiner-1.0.0"), "{}", error.message);
    assert!(zygotes(&daemon).is_empty());
    daemon.stop();
}

mod cases {
    use super::*;

    pub(super) fn seventeenth_set_evicts_the_least_recently_used_zygote(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let worktree = daemon.place.worktree();
        let mut first = None;
        for n in 0..17 {
            let id = format!("counter{n}");
            install(&mut client, &id, COUNTER);
            let template = with_libraries(&mut client, &[&id]);
            let session = client.session(&template, &worktree).expect("ready");
            first.get_or_insert((template, session));
        }
        let (template, session) = first.expect("seventeen");
        let names = |daemon: &Daemon| -> Vec<String> {
            zygotes(daemon).into_iter().flat_map(|(libraries, ..)| libraries).collect()
        };
        let left = names(&daemon);
        assert_eq!((left.len(), left.contains(&"counter0-1.0.0".to_owned())), (16, false), "{left:?}");
        // Sessions that run do not need the zygote; the next session gets a new one.
        assert_eq!(eval(&mut client, &session, "counter0.next()"), "1");
        let again = client.session(&template, &worktree).expect("ready");
        assert_eq!(eval(&mut client, &again, "counter0.next()"), "1");
        let left = names(&daemon);
        assert_eq!((left.len(), left.contains(&"counter1-1.0.0".to_owned())), (16, false), "{left:?}");
        daemon.stop();
    }

    pub(super) fn a_library_is_available_in_every_session_of_its_template_and_in_no_other(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        install(&mut client, "counter", COUNTER);
        install(&mut client, "shape-maker", "export default (x) => ({ x }); export const two = 2;");
        let template = with_libraries(&mut client, &["counter", "shape-maker-1.0.0"]);
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &session, "counter.next() + counter.next()"), "3");
        assert_eq!(eval(&mut client, &session, "require('counter').next()"), "3");
        assert_eq!(eval(&mut client, &session, "shape_maker(1)"), "{ x: 1 }");
        let fork = client.fork(&session, 1).expect("forked").remove(0);
        assert_eq!(eval(&mut client, &fork, "require('counter').next() + shape_maker(1).x"), "5");
        client.close(&fork);
        daemon.place.write("main.mjs", "import make, { two } from 'shape-maker'; console.log(make(two).x);");
        let ran = client.run_file(&session, "main.mjs").expect("it runs");
        assert_eq!((ran.status.as_str(), ran.metrics.events), ("ok", 2), "{ran:?}");
        // Each session has its own copy of the library's state.
        let other = client.session(&template, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &other, "counter.next()"), "1");
        let plain = client.template(Settings::default(), &[]);
        let plain = client.session(&plain, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &plain, "typeof counter"), "'undefined'");
        assert_eq!(
            eval(&mut client, &plain, "try { require('counter') } catch (e) { e.code }"),
            "'MODULE_NOT_FOUND'"
        );
        daemon.stop();
    }

    pub(super) fn a_library_is_evaluated_once_for_all_its_sessions(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        install(&mut client, "counter", COUNTER);
        let template = with_libraries(&mut client, &["counter"]);
        let mut seeds = std::collections::BTreeSet::new();
        let mut own = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let session = client.session(&template, &daemon.place.worktree()).expect("ready");
            seeds.insert(eval(&mut client, &session, "counter.seed"));
            own.insert(eval(&mut client, &session, "Math.random()"));
        }
        // Random numbers of the library's evaluation are the same in all sessions; those of a session are its own.
        assert_eq!((seeds.len(), own.len()), (1, 3));
        let all = zygotes(&daemon);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].0.as_slice(), all[0].2), (&["counter-1.0.0".to_owned()][..], 3));
        // Another set has its own zygote; its exit costs only the speed of the next start.
        install(&mut client, "other", "exports.x = 1");
        let both = with_libraries(&mut client, &["other", "counter"]);
        let session = client.session(&both, &daemon.place.worktree()).expect("ready");
        assert_eq!(zygotes(&daemon).len(), 2);
        for (_, pid, _) in zygotes(&daemon) {
            PidFd::open(pid).and_then(|zygote| zygote.kill()).expect("killed");
        }
        assert_eq!(eval(&mut client, &session, "other.x"), "1");
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &session, "counter.next()"), "1");
        daemon.stop();
    }

    pub(super) fn one_that_is_not_installed_leaves_a_crashed_session_and_the_command(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let template = with_libraries(&mut client, &["lodash"]);
        let error = client.session(&template, &daemon.place.worktree()).expect_err("not installed");
        assert_eq!(error.code, ErrorCode::LibraryNotInstalled);
        let details = error.details.as_ref().and_then(JsonText::to_value).expect("details");
        assert_eq!(details["command"], "vm-system libs download lodash");
        let session = left_behind(&mut client, &error);
        assert_eq!(session.status, SessionStatus::Crashed);
        assert!(session.last_error.expect("why").contains("lodash-4.17.21 is not installed"));
        daemon.stop();
    }

    pub(super) fn a_changed_file_is_refused_and_harms_no_live_session(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let library = install(&mut client, "counter", COUNTER);
        let template = with_libraries(&mut client, &["counter"]);
        let file = source_file(&daemon.place.path("state"), &library);
        let before = std::fs::read(&file).expect("its source");
        std::fs::write(&file, "exports.next = () => 'evil'").expect("changed");
        let error = client.session(&template, &daemon.place.worktree()).expect_err("changed");
        assert_eq!(error.code, ErrorCode::LibraryCorrupt, "{error:?}");
        assert!(error.message.contains("counter-1.0.0"), "{}", error.message);
        assert_eq!(left_behind(&mut client, &error).status, SessionStatus::Crashed);
        let checks = client.op(LibraryVerify { name: None }).expect("verified");
        assert!(matches!(&checks, checks if !checks[0].ok), "{checks:?}");
        std::fs::write(&file, before).expect("as it was");
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        std::fs::remove_file(&file).expect("gone");
        assert_eq!(eval(&mut client, &session, "counter.next()"), "1");
        daemon.stop();
    }

    pub(super) fn a_removed_library_stays_with_its_sessions(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let library = install(&mut client, "counter", COUNTER);
        let template = with_libraries(&mut client, &["counter"]);
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        client.op(LibraryRemove { name: "counter".to_owned() }).expect("removed");
        assert!(!source_file(&daemon.place.path("state"), &library).exists());
        assert_eq!(eval(&mut client, &session, "require('counter').next()"), "1");
        let error = client.session(&template, &daemon.place.worktree()).expect_err("not installed");
        assert_eq!(error.code, ErrorCode::LibraryNotInstalled);
        // Another source under the same name is another set.
        install(&mut client, "counter", "exports.next = () => 'new'");
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &session, "counter.next()"), "'new'");
        daemon.stop();
    }

    pub(super) fn a_library_that_fails_harms_its_own_set_alone(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        install(&mut client, "counter", COUNTER);
        let good = with_libraries(&mut client, &["counter"]);
        let session = client.session(&good, &daemon.place.worktree()).expect("ready");
        for (id, source, expected) in [
            ("thrower", "\n\nthrow new Error('not today')", "Error: not today (at thrower-1.0.0:3:"),
            ("looper", "for (;;) {}", "limit"),
            ("hoarder", "const all = []; for (;;) all.push(new Array(1e5).fill(1.5))", "MiB"),
        ] {
            install(&mut client, id, source);
            let template = with_libraries(&mut client, &[id, "counter"]);
            let error = client.session(&template, &daemon.place.worktree()).expect_err(id);
            assert_eq!(error.code, ErrorCode::StartupFailed, "{id}: {error:?}");
            assert!(error.message.contains(expected), "{id}: {}", error.message);
            let left = left_behind(&mut client, &error);
            assert_eq!(left.status, SessionStatus::Crashed, "{id}");
            assert!(left.last_error.expect("why").contains(id), "{id}");
            assert_eq!(eval(&mut client, &session, "typeof counter.next()"), "'number'");
            let other = client.session(&good, &daemon.place.worktree()).expect("its set is well");
            client.close(&other);
        }
        daemon.stop();
    }

    pub(super) fn libraries_outlive_the_daemon(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        install(&mut client, "counter", COUNTER);
        let template = with_libraries(&mut client, &["counter"]);
        let place = daemon.stop();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &session, "counter.next()"), "1");
        daemon.stop();
    }
}
