//! A host that forbids `openat2`: the daemon, `run` and `ops doctor` name the call and what to change, and nothing is served.

use vm_system_tests::command::{Output, command, run};
use vm_system_tests::daemon::{Daemon, Options};
use vm_system_tests::place::{Place, User};
use vm_system_tests::program::{HOST_REFUSES, WITHOUT_OPENAT2};

/// EPERM is systemd 246 and 247 and old profiles of containers, ENOSYS systemd since 248 and kernels before 5.6.
const REFUSALS: [(i32, &str); 2] =
    [(libc::EPERM, "Operation not permitted"), (libc::ENOSYS, "Function not implemented")];

fn place(errno: i32) -> Place {
    let place = Place::new(User::AsStarted);
    place.write(HOST_REFUSES, errno.to_string());
    place
}

fn cli(place: &Place, arguments: &[&str]) -> Output {
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
    let options = Options { program: WITHOUT_OPENAT2, ..Options::default() };
    for (errno, error) in REFUSALS {
        let (place, log) = Daemon::try_start(place(errno), &options).expect_err("it cannot read files");
        names_the_settings(&log, error);
        assert!(!place.socket().exists(), "nothing is served");
    }
    // The same program where nothing is forbidden.
    Daemon::start_with(Place::new(User::AsStarted), &options).stop();
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
