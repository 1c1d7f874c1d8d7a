//! Another process of the same user has descriptors in flight (sent over a socket and not received): the kernel counts them for the user,
//! and refuses to send more than the sender's own limit of descriptors.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use vm_system_protocol::model::Settings;
use vm_system_tests::as_both;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::{UNPRIVILEGED_UID, User};
use vm_system_tests::program;

as_both!(a_jail_is_built_while_its_user_has_descriptors_in_flight);

mod cases {
    use super::*;

    pub(super) fn a_jail_is_built_while_its_user_has_descriptors_in_flight(user: User) {
        let mut holder = Command::new(program::path(program::COMMAND_PROBE, user));
        // The user that a daemon of root becomes.
        if User::can_be_switched() {
            holder.uid(UNPRIVILEGED_UID).gid(UNPRIVILEGED_UID);
        }
        let mut holder = holder
            .args(["hold", "200"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        assert_eq!(line, "held\n");
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let session = client.session(&template, &daemon.place.worktree()).expect("session");
        let limits =
            std::fs::read_to_string(format!("/proc/{}/limits", client.inspect(&session).expect("alive").pid));
        let limits = limits.expect("limits");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
        let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
        assert_eq!(numbers, ["16", "16"], "soft and hard limit of a worker");
        assert!(holder.try_wait().expect("its status").is_none(), "it holds them");
        drop(holder.stdin.take());
        holder.wait().expect("it ends");
        daemon.stop();
    }
}
