//! A daemon that root starts becomes a user without rights; a helper that keeps three capabilities starts files agents for it.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use vm_system_sandbox::inspect;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::command::vm_system;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::{observe, skip, watch};

fn is_root() -> bool {
    if !User::can_be_switched() {
        skip("root", "only root has rights to give up");
    }
    User::can_be_switched()
}

fn owner(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").uid()
}

/// A session of root on a folder.
fn session(daemon: &Daemon, worktree: &Path, more: &[&str]) -> vm_system_tests::command::CommandOutput {
    let of = ["-q", "session", "create", "--template-id", "t", "--workspace-id", "w", "--base-commit", "c"];
    let folder = ["--worktree-path", worktree.to_str().expect("UTF-8")];
    daemon.cli(&[of.as_slice(), &folder, more].concat())
}

/// The processes of the daemon with this uid whose arguments begin with a mode.
fn processes(daemon: &Daemon, mode: &str, uid: u32) -> Vec<PidFd> {
    let of_mode = |process: &PidFd| {
        let pid = process.pid().ok()?;
        let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let status = inspect::status(pid).ok()?;
        (arguments.split('\0').nth(1) == Some(mode) && status.uid == uid).then_some(())
    };
    observe::descendants(daemon.pid()).into_iter().filter(|process| of_mode(process).is_some()).collect()
}

#[test]
fn the_daemon_has_no_rights_and_shows_it() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::start(User::AsStarted);
    let status = inspect::status(daemon.pid()).expect("it runs");
    assert_eq!((status.uid, status.capabilities, status.bounding), (UNPRIVILEGED_UID, 0, 0));
    assert!(status.no_new_privs && status.seccomp == 2);
    let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("threads");
    for thread in threads {
        let status =
            std::fs::read_to_string(thread.expect("an entry").path().join("status")).expect("it runs");
        let line = |name: &str| status.lines().find(|line| line.starts_with(name)).expect(name).to_owned();
        assert_eq!(line("Uid:"), "Uid:\t65534\t65534\t65534\t65534");
        assert_eq!(line("CapPrm:"), "CapPrm:\t0000000000000000");
    }
    let helpers = processes(&daemon, "spawn-helper", 0);
    assert_eq!(helpers.len(), 2, "the spawn helper and its standby keep root's id");
    let others = observe::descendants(daemon.pid());
    let of_root = others.iter().filter_map(|process| inspect::status(process.pid().ok()?).ok());
    assert_eq!(of_root.filter(|status| status.uid == 0).count(), 2);

    let report = daemon.cli(&["ops", "doctor"]).ok();
    let row =
        |name: &str| report.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{report}"));
    let (supervisor, helper_row) = (row("supervisor"), row("spawn helper"));
    assert!(supervisor.contains("uid 65534, capabilities 0 (bounding set 0), no_new_privs"), "{supervisor}");
    assert!(
        helper_row.contains("uid 0, capabilities kill, setgid, setuid: e0 (bounding set e0)"),
        "{helper_row}"
    );
    for path in ["state", "state/vm-system.db", "state/keepers", "run", "run/control.sock"] {
        assert_eq!(owner(&daemon.place.path(path)), UNPRIVILEGED_UID, "{path}");
    }
    daemon.cli(&["ops", "health"]).ok();
    daemon.cli(&["template", "create", "--name", "t"]).ok();
    let signal_all = |signal| helpers.iter().for_each(|helper| helper.signal(signal).expect("root may"));
    // Both, because the standby continues a helper that a signal has stopped.
    signal_all(nix::libc::SIGSTOP);
    let refused = session(&daemon, &daemon.place.worktree(), &[]).fails(75);
    assert!(refused.contains("spawn helper") && refused.contains("did not respond"), "{refused}");
    assert!(!refused.contains("memory may be short"), "{refused}");
    let silent = daemon.cli(&["ops", "health"]);
    assert!(silent.stderr.contains("the spawn helper does not respond"), "{silent:?}");
    let report = daemon.cli(&["ops", "doctor"]).ok();
    assert!(report.contains("it does not respond: no files agent can be started"), "{report}");
    signal_all(nix::libc::SIGCONT);
    let is_well = || daemon.cli(&["ops", "health"]).code == Some(0);
    watch::wait_until(is_well, || "health does not notice that it responds again".to_owned());
    // Both, because each replaces the other.
    signal_all(nix::libc::SIGSTOP);
    signal_all(nix::libc::SIGKILL);
    observe::all_end(&helpers);
    let refused = session(&daemon, &daemon.place.worktree(), &[]).fails(70);
    assert!(refused.contains("the spawn helper has exited; restart the daemon"), "{refused}");
    assert!(refused.contains("it and its standby were killed"), "{refused}");
    let lost = daemon.cli(&["ops", "health"]);
    assert!(lost.stderr.contains("the spawn helper has exited"), "{lost:?}");
    daemon.stop();
}

#[test]
fn state_of_a_daemon_that_was_root_is_given_and_nothing_behind_its_links() {
    if !is_root() {
        return;
    }
    let place = TestDir::new(User::AsStarted);
    let outside = place.path("outside");
    std::fs::write(&outside, "of root").expect("a file");
    std::fs::write(place.path("state/lock"), "").expect("a file");
    std::fs::create_dir(place.path("state/libraries")).expect("a folder");
    symlink(&outside, place.path("state/link")).expect("a link");
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    assert_eq!(owner(&daemon.place.path("state/libraries")), UNPRIVILEGED_UID);
    let place = daemon.stop();
    // Once: what the user has made since then is not given.
    symlink(&outside, place.path("state/other")).expect("a link");
    std::os::unix::fs::chown(place.path("state"), Some(1), Some(1)).expect("root may");
    let Err((place, log)) = Daemon::try_start(place, &DaemonOptions::default()) else { panic!("it started") };
    assert!(log.contains("belongs to uid 1, and the daemon becomes uid 65534"), "{log}");
    assert!(log.contains("hint: give it to the daemon's user (chown -R)"), "{log}");
    assert_eq!(owner(&outside), 0);
    drop(place);
}

#[test]
fn descriptors_of_the_starter_are_closed() {
    use nix::fcntl::{FcntlArg, fcntl};
    if !is_root() {
        return;
    }
    let secret = tempfile::NamedTempFile::new().expect("a file of root");
    let leaked = [50, 150].map(|number| {
        // Not closed by an exec.
        let number = fcntl(secret.as_file(), FcntlArg::F_DUPFD(number)).expect("a copy");
        std::fs::read_link(format!("/proc/self/fd/{number}")).expect("it is open")
    });
    assert_eq!(leaked[0], secret.path());
    let has_secret = |process: &PidFd| {
        let folder = format!("/proc/{}/fd", process.pid().expect("it runs"));
        let entries = std::fs::read_dir(folder).expect("root may").flatten();
        entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path == secret.path())
    };
    let mut child = std::process::Command::new("/bin/cat");
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().expect("a program");
    assert!(has_secret(&PidFd::open(child.id()).expect("it runs")), "programs of this process have it");
    drop(child.stdin.take());
    child.wait().expect("it ends");

    let daemon = Daemon::start(User::AsStarted);
    let mut processes = daemon.family();
    processes.push(PidFd::open(daemon.pid()).expect("it runs"));
    assert!(processes.len() > 2, "the daemon, its helper, its jail");
    for process in &processes {
        assert!(!has_secret(process), "{:?}", process.pid());
    }
    daemon.stop();
}

#[test]
fn without_a_user_the_daemon_does_not_start() {
    if !is_root() {
        return;
    }
    for (user, part) in [("no-such-user", "there is no such user"), ("root", "it has the rights of root")] {
        let place = TestDir::new(User::AsStarted);
        let state = place.path("state");
        let refused =
            vm_system(&place, &["serve", "--user", user, "--state-dir", state.to_str().expect("UTF-8")]);
        let error = refused.fails(2);
        assert!(error.contains(part) && error.contains(user) && error.contains("hint: "), "{error}");
        assert_eq!((owner(&state), state.read_dir().expect("a folder").count()), (0, 0));
    }
}

#[test]
fn a_folder_that_is_no_state_directory_is_not_given() {
    if !is_root() {
        return;
    }
    let place = TestDir::new(User::AsStarted);
    std::fs::write(place.path("state/passwd"), "").expect("a file");
    let Err((place, log)) = Daemon::try_start(place, &DaemonOptions::default()) else { panic!("it started") };
    assert!(log.contains("is not a state directory: it has \"passwd\""), "{log}");
    drop(place);
}

#[test]
fn files_of_root_are_used_only_if_the_operator_has_allowed_it() {
    if !is_root() {
        return;
    }
    let place = TestDir::new(User::AsStarted);
    let config = place.path("own.toml");
    std::fs::write(&config, "min_uid = 2\n").expect("a file");
    let arguments = vec!["--config".to_owned(), config.to_string_lossy().into_owned()];
    let daemon = Daemon::start_with(place, &DaemonOptions { arguments, ..DaemonOptions::default() });
    daemon.cli(&["template", "create", "--name", "t"]).ok();
    let worktree = daemon.place.worktree();
    let refused = session(&daemon, &worktree, &[]).fails(77);
    assert!(refused.contains("does not use files as root") && refused.contains("--as-user"), "{refused}");
    let refused = session(&daemon, &worktree, &["--as-user", "1"]).fails(77);
    assert!(refused.contains("below `min_uid`"), "{refused}");
    // The daemon's own user is no person.
    session(&daemon, &worktree, &["--as-user", "65534"]).fails(77);
    session(&daemon, &worktree, &["--as-user", "2"]).ok();
    daemon.stop();
}

#[test]
fn a_stopped_agent_does_not_outlive_a_daemon_that_is_killed() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::start(User::AsStarted);
    daemon.cli(&["template", "create", "--name", "t"]).ok();
    let worktree = daemon.place.worktree();
    std::fs::set_permissions(&worktree, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    session(&daemon, &worktree, &["--as-user", "1"]).ok();
    let mut left = processes(&daemon, "files-agent", 1);
    assert_eq!(left.len(), 1);
    left[0].signal(nix::libc::SIGSTOP).expect("root may");
    left.extend(processes(&daemon, "spawn-helper", 0));
    let (_place, family) = daemon.kill();
    observe::all_end(&left);
    for process in family {
        let _ = process.kill();
    }
}
