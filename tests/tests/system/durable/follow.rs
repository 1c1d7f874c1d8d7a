//! Following the output of a program while it runs.

use super::{SUM, cold_daemon};
use std::process::{Child, Stdio};
use vm_system_tests::PATIENCE;
use vm_system_tests::command::{self, command, line_with, lines};
use vm_system_tests::daemon::Daemon;
use vm_system_tests::program::PRODUCT;

/// Starts a command that follows an execution.
fn follow(daemon: &Daemon, execution: &str) -> Child {
    let mut follow = command(&daemon.place, PRODUCT);
    follow.args(["exec", "events", execution, "--follow"]).stdout(Stdio::piped());
    follow.spawn().expect("the command")
}

#[test]
fn follower_of_a_program_receives_each_step_at_once_and_the_end() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.begin(SUM, "followed");
    let mut follower = follow(&daemon, "followed");
    let printed = lines(follower.stdout.take().expect("a pipe"));
    line_with(&printed, "begin");
    line_with(&printed, "first?");
    client.submit("followed", "4").expect("taken");
    line_with(&printed, "second?");
    client.submit("followed", "3").expect("taken");
    line_with(&printed, "sum 34");
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
    line_with(&lines(follower.stdout.take().expect("a pipe")), "first?");
    let op = vm_system_protocol::control::ExecCancel { execution: "ended".to_owned() };
    assert_eq!(client.op(op), Ok(()));
    assert_eq!(command::wait(&mut follower, PATIENCE), Some(Some(0)));
    daemon.stop();
}
