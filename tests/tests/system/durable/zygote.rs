//! The zygote of workers of programs: started when it is needed, without an effect on sessions.

use super::{SUM, cold_daemon, prompt};
use std::thread;
use vm_system_protocol::control::{ProgramStart, ZygoteInfo};
use vm_system_protocol::model::{ExecutionStatus, Settings};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::observe;
use vm_system_tests::programs::result;

/// Zygotes of programs.
fn zygotes(daemon: &Daemon) -> Vec<ZygoteInfo> {
    daemon.info().zygotes.into_iter().filter(|zygote| zygote.engine == "cvm").collect()
}

#[track_caller]
fn only(daemon: &Daemon) -> ZygoteInfo {
    let mut all = zygotes(daemon);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn programs_have_one_zygote_and_a_daemon_without_programs_has_none() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("ready");
    client.eval(&session, "1 + 2").expect("it runs");
    assert_eq!(zygotes(&daemon), []);
    assert!(daemon.info().zygotes.iter().all(|zygote| zygote.engine == "quickjs"));

    client.begin(SUM, "one");
    let zygote = only(&daemon);
    client.begin(SUM, "two");
    client.submit("one", "4").expect("taken");
    let later = only(&daemon);
    assert_eq!(later.pid, zygote.pid, "it is kept");
    assert!(later.forks > zygote.forks, "no worker came from it: {zygote:?}, {later:?}");
    let shown = daemon.cli(&["ops", "runtime"]).ok();
    let line = |pid: u32| shown.lines().find(|line| line.contains(&pid.to_string())).map(str::to_owned);
    assert!(line(zygote.pid).is_some_and(|line| line.contains("cvm")), "{shown}");
    // Sessions use another zygote.
    client.session(&template, &daemon.place.worktree()).expect("ready");
    assert_eq!(only(&daemon).forks, later.forks);
    daemon.stop();
}

#[test]
fn exit_of_their_zygote_harms_no_program_and_the_next_start_creates_another() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.begin(SUM, "held");
    let mut seen = Vec::new();
    for round in 0..3 {
        let zygote = only(&daemon);
        let process = PidFd::open(zygote.pid).expect("alive");
        process.kill().expect("kill");
        observe::all_end(&[process]);
        let name = format!("round-{round}");
        let run = client
            .start_program(ProgramStart { name: Some(name), ..ProgramStart::default() })
            .expect("started");
        assert_eq!(prompt(&run), "first?");
        seen.push(zygote.pid);
        assert!(!seen.contains(&only(&daemon).pid));
    }
    let process = PidFd::open(only(&daemon).pid).expect("alive");
    process.kill().expect("kill");
    assert_eq!(prompt(&client.submit("held", "4").expect("taken")), "second?");
    assert_eq!(result(&client.submit("held", "3").expect("taken")), "{\"total\":34}");
    daemon.stop();
}

#[test]
fn programs_that_start_together_wait_for_one_zygote() {
    let daemon = cold_daemon();
    daemon.client().load(SUM);
    // Compiling has started a zygote.
    let process = PidFd::open(only(&daemon).pid).expect("alive");
    process.kill().expect("kill");
    observe::all_end(&[process]);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let run = daemon.client().start_program(ProgramStart::default()).expect("started");
                assert_eq!(run.execution.status, ExecutionStatus::Waiting);
            });
        }
    });
    assert_eq!(only(&daemon).forks, 8);
    daemon.stop();
}

#[test]
fn a_killed_daemon_leaves_no_zygote_and_its_programs_continue_with_another() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.begin(SUM, "held");
    let zygote = PidFd::open(only(&daemon).pid).expect("alive");
    drop(client);
    let (place, family) = daemon.kill();
    observe::all_end(&[zygote]);
    let daemon = Daemon::start_with(place, &super::cold());
    observe::all_end(&family);
    assert_eq!(zygotes(&daemon), [], "it is not needed yet");
    let mut client = daemon.client();
    assert_eq!(prompt(&client.submit("held", "4").expect("taken")), "second?");
    only(&daemon);
    daemon.stop();
}
