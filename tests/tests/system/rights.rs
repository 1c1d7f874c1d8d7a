//! The rights that a supervisor gives up, as the kernel reports them.

use std::process::Stdio;
use vm_system_sandbox::inspect;
use vm_system_tests::command::command;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch::wait_until;
use vm_system_tests::{as_both, program};

as_both!(every_thread_of_a_daemon_is_restricted, a_command_with_a_supervisor_of_its_own_is_restricted);

mod cases {
    use super::*;

    pub(super) fn every_thread_of_a_daemon_is_restricted(user: User) {
        let daemon = Daemon::start(user);
        every_thread_is_restricted(daemon.pid());
        daemon.cli(&["ops", "doctor"]).ok();
        daemon.stop();
    }

    pub(super) fn a_command_with_a_supervisor_of_its_own_is_restricted(user: User) {
        let place = TestDir::new(user);
        let mut run = command(&place, program::PRODUCT);
        let mut child = run.args(["run", "-e", "for (;;);"]).stdout(Stdio::null()).spawn().expect("start");
        let pid = child.id();
        wait_until(
            || inspect::status(pid).expect("it runs").seccomp == 2,
            || "the command has no filter".to_owned(),
        );
        every_thread_is_restricted(pid);
        child.kill().expect("our child");
        child.wait().expect("our child");
    }
}

/// Every thread has a filter and cannot get privileges.
fn every_thread_is_restricted(pid: u32) {
    let mut threads = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads") {
        let path = task.expect("entry").path().join("status");
        // A thread of the pool may end meanwhile.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.expect("a field").trim().to_owned()
        };
        assert_eq!((field("Seccomp").as_str(), field("NoNewPrivs").as_str()), ("2", "1"), "{text}");
        threads += 1;
    }
    assert!(threads > 1, "a runtime has threads");
}
