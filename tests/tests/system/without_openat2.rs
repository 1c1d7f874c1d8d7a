//! A host that forbids `openat2`: the daemon, `run` and `ops doctor` name the call and what to change, and nothing is served.
//! A refusal that only a broker gets is an error in the program that called it, and never a value.

use vm_system_protocol::control::ProgramStart;
use vm_system_tests::command::{CommandOutput, command, run};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::program::{BROKER_REFUSES, HOST_REFUSES, WITHOUT_OPENAT2};
use vm_system_tests::programs::{NAME, result};

/// EPERM: systemd 246 and 247 and old profiles of containers. ENOSYS: systemd since 248 and kernels before 5.6.
const REFUSALS: [(i32, &str); 2] =
    [(libc::EPERM, "Operation not permitted"), (libc::ENOSYS, "Function not implemented")];

fn place(errno: i32) -> TestDir {
    let place = TestDir::new(User::AsStarted);
    place.write(HOST_REFUSES, errno.to_string());
    place
}

fn cli(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    run(command(place, WITHOUT_OPENAT2).args(arguments), "")
}

#[track_caller]
fn names_the_settings(text: &str, error: &str) {
    for part in ["openat2", error, "RestrictSUIDSGID=yes", "DynamicUser=yes", "seccomp profile", "5.6"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn the_daemon_does_not_start_and_names_the_settings() {
    let options = DaemonOptions { program: WITHOUT_OPENAT2, ..DaemonOptions::default() };
    for (errno, error) in REFUSALS {
        let (place, log) = Daemon::try_start(place(errno), &options).expect_err("it cannot read files");
        names_the_settings(&log, error);
        assert!(!place.socket().exists(), "nothing is served");
    }
    // The same program where nothing is forbidden.
    Daemon::start_with(TestDir::new(User::AsStarted), &options).stop();
}

#[test]
fn run_and_doctor_name_the_settings() {
    for (errno, error) in REFUSALS {
        let place = place(errno);
        names_the_settings(&cli(&place, &["run", "-e", "1"]).fails(77), error);
        let report = cli(&place, &["-q", "ops", "doctor", "--output", "json"]);
        assert_eq!(report.code, Some(1), "{report:?}");
        let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
        let row = report["host"].as_array().into_iter().flatten().find(|row| row["name"] == "openat2");
        let row = row.unwrap_or_else(|| panic!("no row: {report}"));
        assert_eq!((&row["works"], &row["required"]), (&false.into(), &true.into()));
        names_the_settings(row["detail"].as_str().unwrap_or_default(), error);
    }
}

/// Makes each call and returns its result or error.
const CALLS: &str = "
    function attempt(call) {
        try { return JSON.stringify(call()); } catch (error) { return error.name + ' ' + error.message; }
    }
    function main() {
        return [
            attempt(() => fs.readFile('data.txt')), attempt(() => fs.listFiles()),
            attempt(() => fs.writeFile('new.txt', 'x')), attempt(() => fs.writeFile('new/new.txt', 'x')),
        ];
    }
";

#[test]
fn a_call_of_a_program_that_was_not_carried_out_is_an_error() {
    let options = DaemonOptions { program: WITHOUT_OPENAT2, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let mut client = daemon.client();
    client.load(CALLS);
    let mut calls = |refusal: Option<i32>| -> Vec<String> {
        if let Some(errno) = refusal {
            daemon.place.write(BROKER_REFUSES, errno.to_string());
        }
        let new = ProgramStart {
            program: NAME.to_owned(),
            worktree_path: Some(daemon.place.worktree().to_string_lossy().into_owned()),
            ..ProgramStart::default()
        };
        let ended = client.op(new).expect("started");
        serde_json::from_str(result(&ended)).expect("a list of texts")
    };
    let not_there = calls(None);
    assert_eq!(not_there[..2], ["null", "[]"], "an empty folder");
    assert_eq!(not_there[2..], ["true", "true"]);
    daemon.place.write("data.txt", "text");
    for (errno, code) in [
        (libc::EPERM, "EPERM"),
        (libc::ENOSYS, "EIO"),
        (libc::EIO, "EIO"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::ENOSPC, "ENOSPC"),
    ] {
        for (call, text) in calls(Some(errno)).iter().enumerate() {
            assert!(text.starts_with(&format!("Error {code}: ")), "call {call} with {errno}: {text}");
        }
    }
    // Errors about the file are values.
    for errno in [libc::ENOENT, libc::EACCES, libc::EXDEV, libc::ENOTDIR, libc::ELOOP, libc::EROFS] {
        assert_eq!(calls(Some(errno)), ["null", "[]", "false", "false"], "{errno}");
    }
    drop(client);
    daemon.stop();
}
