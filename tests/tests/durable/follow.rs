//! Following the output of a program while it runs.

use super::{SUM, cold_daemon};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use vm_system_protocol::control::Reply;
use vm_system_tests::PATIENCE;
use vm_system_tests::command;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::program::PRODUCT;

/// The lines that a command prints.
fn lines(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take().expect("a pipe");
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Fails once the test no longer reads.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Starts a command that follows an execution.
fn follow(daemon: &Daemon, execution: &str) -> Child {
    let mut follow = command::command(&daemon.place, PRODUCT);
    follow.args(["exec", "events", execution, "--follow"]).stdout(Stdio::piped());
    follow.spawn().expect("the command")
}

#[track_caller]
fn expect_line(lines: &mpsc::Receiver<String>, text: &str) {
    loop {
        let line =
            lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{text:?} never comes: {error}"));
        if line.contains(text) {
            return;
        }
    }
}

#[test]
fn follower_of_a_program_receives_each_step_at_once_and_the_end() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.begin(SUM, "followed");
    let mut follower = follow(&daemon, "followed");
    let printed = lines(&mut follower);
    expect_line(&printed, "begin");
    expect_line(&printed, "first?");
    client.submit("followed", "4").expect("taken");
    expect_line(&printed, "second?");
    client.submit("followed", "3").expect("taken");
    expect_line(&printed, "sum 34");
    assert_eq!(command::wait(&mut follower, PATIENCE), Some(Some(0)), "it ends with the program");
    // For an ended execution, the stored events are printed.
    let output = command::vm_system(&daemon.place, &["exec", "events", "followed", "--follow"]).ok();
    assert!(output.contains("begin") && output.contains("sum 34"), "{output}");
    daemon.stop();
}

#[test]
fn follower_is_notified_that_a_waiting_program_was_ended() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.begin(SUM, "ended");
    let mut follower = follow(&daemon, "ended");
    expect_line(&lines(&mut follower), "first?");
    let op = vm_system_protocol::control::Op::ExecCancel { execution: "ended".to_owned() };
    assert!(matches!(client.op(op), Ok(Reply::Done)));
    assert_eq!(command::wait(&mut follower, PATIENCE), Some(Some(0)));
    daemon.stop();
}
