//! A database that is deleted, replaced, damaged or locked under a running supervisor, and a log that is damaged while none runs: health
//! reports it, new work is refused by name, and no acknowledged record is lost without a report.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vm_system_protocol::control::{Doctor, ErrorCode, ExecGet, Health, HealthGet, OpError, TemplateCreate};
use vm_system_protocol::model::{Engine, Execution, Session, Settings};
use vm_system_tests::PATIENCE;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::database_lock::DatabaseLock;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::watch;

const PAGE_BYTES: u64 = 4_096;

fn database(place: &TestDir) -> PathBuf {
    place.path("state/vm-system.db")
}

/// The file beside the database with this ending.
fn path_beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn health(daemon: &Daemon) -> Result<Health, OpError> {
    daemon.client().op(HealthGet)
}

/// Health is not ok, and its message has this text.
#[track_caller]
fn is_sick(daemon: &Daemon, text: &str) {
    let error = health(daemon).expect_err("health must not be ok");
    assert_eq!(error.code, ErrorCode::StorageUnavailable, "{error:?}");
    assert!(error.message.contains(text) && error.hint.is_some(), "{error:?}");
    let doctor = match daemon.client().op(Doctor) {
        Ok(report) => report,
        other => panic!("{other:?}"),
    };
    assert!(
        !doctor.ok && doctor.problem.as_ref().is_some_and(|problem| problem.contains(text)),
        "{doctor:?}"
    );
    assert!(daemon.info().store_problem.is_some_and(|problem| problem.contains(text)));
}

/// New sessions, templates and executions are refused with this text.
#[track_caller]
fn refuses_work(scene: &mut Scene, session: &Session, text: &str) {
    let worktree = scene.daemon.place.worktree();
    let template = scene.template.clone();
    for refused in [
        scene.client.session(&template, &worktree).expect_err("no new session"),
        scene.client.eval(session, "1").expect_err("no new execution"),
    ] {
        assert_eq!(refused.code, ErrorCode::StorageUnavailable, "{refused:?}");
        assert!(refused.message.contains(text) && refused.hint.is_some(), "{refused:?}");
    }
}

fn template(name: &str) -> TemplateCreate {
    TemplateCreate {
        name: name.to_owned(),
        engine: Engine::Quickjs,
        settings: Settings::default(),
        modules: Vec::new(),
    }
}

fn executions(client: &mut Client, ids: &[String]) {
    for id in ids {
        client.execution_record(id);
    }
}

/// The ids of executions that were acknowledged.
fn acknowledged(scene: &mut Scene, session: &Session, count: usize) -> Vec<String> {
    let one = |number| {
        scene.client.eval(session, &format!("'{}' + {number}", "x".repeat(3_000))).expect("a response")
    };
    (0..count).map(one).map(|execution: Execution| execution.id.to_string()).collect()
}

#[test]
fn deleted_database_is_reported_and_its_content_is_saved() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let ids = acknowledged(&mut scene, &session, 5);
    let database = database(&scene.daemon.place);
    for ending in ["", "-wal", "-shm"] {
        std::fs::remove_file(path_beside(&database, ending)).expect("it is there");
    }
    is_sick(&scene.daemon, "deleted");
    refuses_work(&mut scene, &session, "deleted");
    executions(&mut scene.client, &ids);
    let copy = scene.daemon.place.path("copy.db");
    for command in [vec!["ops", "check"], vec!["ops", "backup", copy.to_str().expect("UTF-8")]] {
        let output = scene.daemon.cli(&command);
        let why = &output.stderr;
        assert!(
            output.code != Some(0) && why.contains("deleted") && why.contains("its log names a copy"),
            "{output:?}"
        );
        assert!(!why.contains("disk space"), "{output:?}");
    }
    let saved = path_beside(&database, ".saved");
    let is_saved = || saved.exists() && scene.daemon.log().contains("vm-system.db.saved");
    watch::wait_until(is_saved, || "the content was not saved, or the log does not name the copy".to_owned());
    let place = scene.daemon.stop();

    let (place, log) = Daemon::try_start(place, &DaemonOptions::default()).expect_err("it would be empty");
    assert!(log.contains("vm-system.db.saved"), "{log}");
    std::fs::rename(&saved, &database).expect("the copy is complete");
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    executions(&mut daemon.client(), &ids);
    health(&daemon).expect("the database is whole");
    daemon.stop();
}

#[test]
fn replaced_database_is_reported_and_not_written_to() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let ids = acknowledged(&mut scene, &session, 2);
    let database = database(&scene.daemon.place);
    let other = path_beside(&database, ".other");
    std::fs::write(&other, "another file").expect("the folder is ours");
    std::fs::rename(&other, &database).expect("the folder is ours");
    is_sick(&scene.daemon, "replaced");
    refuses_work(&mut scene, &session, "replaced");
    executions(&mut scene.client, &ids);
    scene.daemon.stop();
    // The place is gone with its daemon: what matters was checked before.
}

#[test]
fn deleted_log_is_reported_and_nothing_is_lost_when_the_daemon_is_killed() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let ids = acknowledged(&mut scene, &session, 5);
    let database = database(&scene.daemon.place);
    let log = path_beside(&database, "-wal");
    std::fs::remove_file(&log).expect("it is there");
    is_sick(&scene.daemon, "-wal");
    refuses_work(&mut scene, &session, "-wal");
    // More readers than there are connections: none of them makes another log.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = scene.daemon.client();
                for id in &ids {
                    // They share the connections that are open.
                    client.op(ExecGet { execution: id.clone() }).expect("readable");
                }
            });
        }
    });
    assert!(!log.exists(), "a second log beside the one in use");
    let is_saved = || scene.daemon.log().contains("was copied into the database file");
    watch::wait_until(is_saved, || "the log was not copied into the database".to_owned());
    let (place, _) = scene.daemon.kill();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    health(&daemon).expect("the database is whole");
    executions(&mut daemon.client(), &ids);
    daemon.stop();
}

#[test]
fn database_that_is_moved_back_is_well_again() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let database = database(&scene.daemon.place);
    let moved = path_beside(&database, ".moved");
    std::fs::rename(&database, &moved).expect("the folder is ours");
    is_sick(&scene.daemon, "moved");
    refuses_work(&mut scene, &session, "moved");
    std::fs::rename(&moved, &database).expect("the folder is ours");
    health(&scene.daemon).expect("the file is back");
    scene.assert_usable(&session);
    scene.end(&[&session]);
}

#[test]
fn damage_that_a_query_meets_reaches_health() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let ids = acknowledged(&mut scene, &session, 2);
    scene.client.close(&session);
    // From now on the records are in the database file and not in its log.
    let daemon = Daemon::start_with(scene.daemon.stop(), &DaemonOptions::default());
    let database = database(&daemon.place);
    let pages = std::fs::metadata(&database).expect("there").len() / PAGE_BYTES;
    let file = OpenOptions::new().write(true).open(&database).expect("ours");
    for page in 1..pages {
        file.write_all_at(&[0xa5; PAGE_BYTES as usize], page * PAGE_BYTES).expect("ours");
    }
    let get = ExecGet { execution: ids[0].clone() };
    let error = daemon.client().op(get).expect_err("it cannot be read");
    // Until it has been looked at again, it may have been a read error.
    assert_eq!(error.code, ErrorCode::StorageUnavailable, "{error:?}");
    is_sick(&daemon, "damaged");
    let mut client = daemon.client();
    let refused = client.op(template("new")).expect_err("no new template");
    assert_eq!(refused.code, ErrorCode::StorageUnavailable, "{refused:?}");
}

#[test]
fn commit_that_hangs_reaches_health() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let lock = DatabaseLock::take(&database(&scene.daemon.place));
    let has_seen = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A commit waits for the lock for some seconds, then it fails, and the next one waits.
        let mut client = scene.daemon.client();
        let seen = &has_seen;
        scope.spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let _ = client.op(template("waits"));
            }
        });
        let stalled = || health(&scene.daemon).is_err_and(|error| error.message.contains("stalled since"));
        watch::wait_until(stalled, || format!("health is {:?}", health(&scene.daemon)));
        has_seen.store(true, Ordering::Relaxed);
    });
    drop(lock);
    watch::wait_until(|| health(&scene.daemon).is_ok(), || format!("health is {:?}", health(&scene.daemon)));
    scene.assert_usable(&session);
    scene.end(&[&session]);
}

#[test]
fn watchdog_is_notified_as_long_as_the_store_responds() {
    let timeout = ("WATCHDOG_USEC", "400000".to_owned());
    let options = DaemonOptions { environment: vec![timeout], ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    // The socket of the harness is gone; from now on this test is the service manager.
    let notify = daemon.place.path("notify");
    std::fs::remove_file(&notify).expect("the harness made it");
    let manager = UnixDatagram::bind(&notify).expect("the folder is ours");
    std::fs::set_permissions(&notify, std::fs::Permissions::from_mode(0o777)).expect("ours");
    let next = |patience| {
        manager.set_read_timeout(Some(patience)).expect("positive");
        let mut message = [0; 64];
        manager.recv(&mut message).ok().map(|bytes| message[..bytes].to_vec())
    };
    for _ in 0..3 {
        assert_eq!(next(PATIENCE).as_deref(), Some(&b"WATCHDOG=1"[..]));
    }
    let lock = DatabaseLock::take(&database(&daemon.place));
    // One may be on its way; then the store waits for several seconds.
    let is_quiet = (0..3).any(|_| next(Duration::from_secs(1)).is_none());
    assert!(is_quiet, "the store does not respond");
    drop(lock);
    assert_eq!(next(PATIENCE).as_deref(), Some(&b"WATCHDOG=1"[..]));
    daemon.stop();
}

#[test]
fn flipped_byte_in_the_log_is_refused_until_the_damage_is_accepted() {
    let mut scene = Scene::new(User::AsStarted);
    let session = scene.session();
    let ids = acknowledged(&mut scene, &session, 80);
    let (place, _) = scene.daemon.kill();
    let database = database(&place);
    let log = path_beside(&database, "-wal");
    let file = OpenOptions::new().read(true).write(true).open(&log).expect("it survives a SIGKILL");
    let mut byte = [0];
    let frames = 32 + 40 * (24 + PAGE_BYTES);
    file.read_exact_at(&mut byte, frames + 100).expect("so long");
    file.write_all_at(&[byte[0] ^ 1], frames + 100).expect("ours");
    let damaged = std::fs::read(&log).expect("ours");

    let (place, refusal) =
        Daemon::try_start(place, &DaemonOptions::default()).expect_err("80 executions would be lost");
    assert!(refusal.contains("--accept-damage"), "{refusal}");
    assert_eq!(std::fs::read(&log).expect("ours"), damaged, "nothing was changed");

    let accepted =
        DaemonOptions { arguments: vec!["--accept-damage".to_owned()], ..DaemonOptions::default() };
    let daemon = Daemon::start_with(place, &accepted);
    assert!(daemon.log().contains("ERROR"), "{}", daemon.log());
    health(&daemon).expect("it works with the rest");
    let lost =
        ids.iter().filter(|id| daemon.client().op(ExecGet { execution: (*id).clone() }).is_err()).count();
    assert!(lost > 0, "the test has damaged nothing");
    assert_eq!(std::fs::read(path_beside(&database, "-wal.damaged")).expect("a copy is kept"), damaged);
    let place = daemon.stop();
    Daemon::start_with(place, &DaemonOptions::default()).stop();
}
