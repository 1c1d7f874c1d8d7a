//! Backups and checks of the control database from outside: a copy that is made under load is whole and starts a daemon, nobody but an
//! administrator gets one, and damage is reported with what it cost.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_protocol::control::{CheckReport, DatabaseCheck};
use vm_system_protocol::model::ExecutionStatus;
use vm_system_tests::command::vm_system;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::scene::small;

const PAGE_BYTES: u64 = 4_096;

fn report(json: &str) -> serde_json::Value {
    serde_json::from_str(json).expect("a report")
}

/// Checks a file that no daemon has open: the exit code and the report.
fn check_file(place: &TestDir, database: &Path) -> (Option<i32>, serde_json::Value) {
    let database = database.display().to_string();
    let output = vm_system(place, &["ops", "check", "--db", &database, "--output", "json"]);
    assert!(output.stderr.is_empty(), "{}", output.stderr);
    (output.code, report(&output.stdout))
}

fn online(daemon: &Daemon) -> CheckReport {
    daemon.client().op(DatabaseCheck).expect("a report")
}

#[test]
fn backup_under_load_is_whole_and_starts_a_daemon() {
    let daemon = Daemon::start(User::AsStarted);
    let template = daemon.client().template(small(), &[]);
    let worktree = daemon.place.worktree();
    let sessions: Vec<_> =
        (0..3).map(|_| daemon.client().session(&template, &worktree).expect("a session")).collect();
    let (acknowledged, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let backup = daemon.place.path("run/backup.db");
    let name = backup.display().to_string();
    let (before, after) = std::thread::scope(|scope| {
        for session in &sessions {
            scope.spawn(|| {
                let mut client = daemon.client();
                while !is_over.load(Ordering::Relaxed) {
                    let execution =
                        client.eval(session, "console.log('x'.repeat(2000)); 1").expect("a response");
                    acknowledged.lock().expect("no panic").push(execution.id.to_string());
                }
            });
        }
        let so_far = || acknowledged.lock().expect("no panic").clone();
        vm_system_tests::watch::wait_until(|| so_far().len() > 50, || "no load".to_owned());
        let before = so_far();
        let output = daemon.cli(&["ops", "backup", &name, "--output", "json"]).ok();
        assert_eq!(report(&output)["bytes"], std::fs::metadata(&backup).expect("a file").len());
        let second = daemon.cli(&["ops", "backup", &name]).fails(1);
        assert!(second.contains("exists already") && second.contains("--force"), "{second}");
        daemon.cli(&["ops", "backup", &name, "--force"]).ok();
        // While it is written to.
        let findings = online(&daemon);
        assert!(findings.ok, "{findings:?}");
        is_over.store(true, Ordering::Relaxed);
        (before, so_far())
    });
    assert!(after.len() > before.len(), "the load went on meanwhile");
    assert_eq!(std::fs::metadata(&backup).expect("a file").permissions().mode() & 0o777, 0o600);
    let rest = std::fs::read_dir(daemon.place.path("state")).expect("readable");
    let rest: Vec<_> = rest.flatten().map(|entry| entry.file_name()).collect();
    assert!(!rest.iter().any(|name| name.to_string_lossy().contains("backup")), "{rest:?}");
    let audit = daemon.cli(&["ops", "audit", "--output", "json"]).ok();
    assert_eq!(audit.matches("\"ops backup\"").count(), 2, "{audit}");
    let (code, found) = check_file(&daemon.place, &backup);
    assert_eq!((code, &found["ok"]), (Some(0), &true.into()), "{found}");
    let old = daemon.stop();

    let place = TestDir::new(User::AsStarted);
    let database = place.path("state/vm-system.db");
    std::fs::copy(old.path("run/backup.db"), &database).expect("a new place");
    place.give_to_daemon(&database);
    if User::can_be_switched() {
        // As the manual says: root makes the folder for the user that the daemon becomes.
        let state = place.path("state");
        std::os::unix::fs::chown(state, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).expect("root may");
    }
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    for id in &before {
        let execution = client.execution_record(id);
        assert_eq!(execution.status, ExecutionStatus::Ok, "{id}");
        assert_eq!(client.events(id).len() as u64, execution.metrics.events, "{id}");
    }
    // Sessions of the copied database have no worker here.
    let crashed = client.session_record(&sessions[0]);
    assert_eq!(crashed.close_reason.as_deref(), Some("host_restart"));
    let session = client.session(&template, &daemon.place.worktree()).expect("its templates are there");
    assert_eq!(client.preview_of(&session, "6 * 7"), "42");
    assert!(online(&daemon).ok);
    daemon.stop();
}

/// A database with some executions and an empty log, of a daemon that was stopped. Each source text repeats one letter.
fn stopped() -> (TestDir, Vec<(String, u8)>) {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let template = client.template(small(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("a session");
    let one = |letter: u8| {
        let code = format!("'{}'.length", char::from(letter).to_string().repeat(9_000));
        (client.eval(&session, &code).expect("a response").id.to_string(), letter)
    };
    let executions = (b'a'..b'u').map(one).collect();
    (daemon.stop(), executions)
}

#[test]
fn damaged_page_is_reported_with_the_executions_that_it_cost() {
    let (place, executions) = stopped();
    let database = place.path("state/vm-system.db");
    let (code, whole) = check_file(&place, &database);
    assert_eq!((code, &whole["findings"]), (Some(0), &serde_json::json!([])), "{whole}");
    // The page on which the source text of the execution with the greatest key continues: searches for other keys seldom compare
    // with it. A comparison reads the whole row, so a damaged row in the middle of the tree makes its neighbours unreadable, too.
    let (damaged_id, letter) = executions.iter().max().expect("twenty");
    let content = std::fs::read(&database).expect("readable");
    let size = usize::try_from(PAGE_BYTES).expect("small");
    let page = content.chunks(size).position(|page| page[4..].iter().all(|byte| byte == letter));
    let page = page.expect("a text of 9000 bytes has a page of its own") as u64;
    let file = OpenOptions::new().write(true).open(&database).expect("ours");
    // The number of its next page.
    file.write_all_at(&[0x7f; 4], page * PAGE_BYTES).expect("ours");
    let before = std::fs::read(&database).expect("readable");
    let (code, damaged) = check_file(&place, &database);
    assert_eq!((code, &damaged["ok"]), (Some(1), &false.into()), "{damaged}");
    let findings = damaged["findings"].as_array().expect("a list");
    let lost: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["object"] == "execution" && finding["check"] == "reading")
        .filter_map(|finding| finding["id"].as_str())
        .collect();
    assert!(lost.contains(&damaged_id.as_str()) && lost.len() <= 3, "{damaged}");
    assert!(lost.iter().all(|lost| executions.iter().any(|(id, _)| id == lost)), "{damaged}");
    assert_eq!(std::fs::read(&database).expect("readable"), before, "nothing was changed");
    let names: Vec<_> = std::fs::read_dir(place.path("state")).expect("readable").flatten().collect();
    assert!(!names.iter().any(|file| file.file_name() == "vm-system.db-shm"), "{names:?}");

    let (_, log) = Daemon::try_start(place, &DaemonOptions::default()).expect_err("it is damaged");
    assert!(log.contains("ops check"), "{log}");
}

#[test]
fn damaged_log_is_reported_and_not_changed_and_a_database_in_use_is_not_read() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let template = client.template(small(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("a session");
    for number in 0..60 {
        client.eval(&session, &format!("'{}' + {number}", "x".repeat(3_000))).expect("a response");
    }
    let database = daemon.place.path("state/vm-system.db").display().to_string();
    let refused = daemon.cli(&["ops", "check", "--db", &database]).fails(1);
    assert!(refused.contains(&daemon.pid().to_string()) && refused.contains("without --db"), "{refused}");
    let place = daemon.kill_everything();

    let (log, index) = (place.path("state/vm-system.db-wal"), place.path("state/vm-system.db-shm"));
    let (_, whole) = check_file(&place, Path::new(&database));
    assert!(
        whole["findings"].as_array().is_some_and(|found| found.iter().all(|one| one["check"] != "log")),
        "{whole}"
    );
    let file = OpenOptions::new().read(true).write(true).open(&log).expect("it survives");
    let (mut byte, at) = ([0], 32 + 40 * (24 + PAGE_BYTES) + 100);
    file.read_exact_at(&mut byte, at).expect("so long");
    file.write_all_at(&[byte[0] ^ 1], at).expect("ours");
    let before = (std::fs::read(&log).expect("ours"), std::fs::read(&index).expect("ours"));
    let (code, found) = check_file(&place, Path::new(&database));
    assert_eq!(code, Some(1), "{found}");
    let text = found["findings"][0]["detail"].as_str().unwrap_or_default();
    assert!(found["findings"][0]["check"] == "log" && text.contains("commits"), "{found}");
    assert!(found["newest_record"].is_string(), "{found}");
    let after = (std::fs::read(&log).expect("ours"), std::fs::read(&index).expect("ours"));
    assert!(before == after, "the evidence was changed");
}
