//! Workers that abuse the order to fork: each session ends with a reason, no process and no descriptor is left, and siblings
//! are not affected.

use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::model::{ExecutionStatus, Session, SessionStatus, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::{as_both, observe, program, watch};

as_both!(
    every_abuse_ends_that_session_only,
    a_child_that_exits_costs_the_fork_alone,
    message_about_a_fork_without_an_order_is_a_violation,
);

/// Abuses, and the beginning of the session's closing reason.
const WAYS: &[(&str, &str)] = &[
    ("introduces itself", "protocol_violation(it sent the hello of its child"),
    ("sends something else", "protocol_violation(Started twice"),
    ("confirms another order", "protocol_violation(a report about a fork"),
    ("exits", "exited(0)"),
    ("closes the socket before it exits", "exited(0)"),
    ("twice", "protocol_violation("),
    ("denies its child", "protocol_violation(a child of a fork that it reported as failed"),
    ("hides its child", "protocol_violation("),
    ("the child repeats its hello", "protocol_violation("),
    ("takes the channel", "protocol_violation("),
    ("copies the channel", "seccomp(recvmsg)"),
    ("does not", "protocol_violation(it closed the child's socket and did not fork"),
    // These end at a deadline.
    ("sends nothing", "protocol_violation("),
    ("hides it and sends nothing", "protocol_violation("),
    ("takes the channel and sends nothing", "protocol_violation("),
];

mod cases {
    use super::*;

    pub(super) fn every_abuse_ends_that_session_only(user: User) {
        let options = DaemonOptions { program: program::HOSTILE_WORKER, ..DaemonOptions::default() };
        let daemon = Daemon::start_with(TestDir::new(user), &options);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let worktree = daemon.place.worktree();
        let sibling = client.session(&template, &worktree).expect("sibling");
        // An honest worker first: one-time allocations are made before the count.
        let honest = client.session(&template, &worktree).expect("session");
        let forks = client.fork(&honest, 2).expect("honestly");
        assert_eq!(client.eval(&forks[0], "honest").expect("a copy").status, ExecutionStatus::Ok);
        for session in forks.iter().chain([&honest]) {
            client.close(session);
        }
        let processes = settled(&daemon, usize::MAX);
        let fds = observe::descriptors(daemon.pid());
        for (how, reason) in WAYS {
            let session = client.session(&template, &worktree).expect("session");
            client.eval(&session, &format!("when it forks: {how}")).expect("the fork is prepared");
            let forked = client.fork(&session, 1);
            let ended = client.wait_for(&session, SessionStatus::Crashed);
            let why = ended.close_reason.unwrap_or_default();
            assert!(why.starts_with(reason), "{how}: {why}");
            // A second fork is refused and detected later; the first one was correct.
            for fork in forked.unwrap_or_default() {
                assert!(["twice", "hides its child"].contains(how), "{how}: a fork was created");
                assert_eq!(client.eval(&fork, "honest").expect("a copy").status, ExecutionStatus::Ok);
                client.close(&fork);
            }
            settled(&daemon, processes);
            assert_eq!(
                client.eval(&sibling, "honest").expect("sibling").status,
                ExecutionStatus::Ok,
                "{how}"
            );
            assert_eq!(fork_and_close(&mut client, &sibling), 1, "after {how}");
        }
        settled(&daemon, processes);
        watch::wait_until(
            || observe::descriptors(daemon.pid()) <= fds + 2,
            || format!("{} descriptors, {fds} before", observe::descriptors(daemon.pid())),
        );
        daemon.stop();
    }

    /// As one that the kernel or an operator kills.
    pub(super) fn a_child_that_exits_costs_the_fork_alone(user: User) {
        let options = DaemonOptions { program: program::HOSTILE_WORKER, ..DaemonOptions::default() };
        let daemon = Daemon::start_with(TestDir::new(user), &options);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let session = client.session(&template, &daemon.place.worktree()).expect("session");
        let processes = settled(&daemon, usize::MAX);
        client.eval(&session, "when it forks: the child exits").expect("the fork is prepared");
        let error = client.fork(&session, 1).expect_err("its child exits");
        assert_eq!(error.code, ErrorCode::CapacityExceeded, "{error:?}");
        settled(&daemon, processes);
        assert_eq!(client.eval(&session, "honest").expect("intact").status, ExecutionStatus::Ok);
        assert_eq!(fork_and_close(&mut client, &session), 1);
        daemon.stop();
    }

    pub(super) fn message_about_a_fork_without_an_order_is_a_violation(user: User) {
        let options = DaemonOptions { program: program::HOSTILE_WORKER, ..DaemonOptions::default() };
        let daemon = Daemon::start_with(TestDir::new(user), &options);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        for how in ["reports a fork", "reports a failed fork"] {
            let session = client.session(&template, &daemon.place.worktree()).expect("session");
            let _ = client.eval(&session, how);
            let ended = client.wait_for(&session, SessionStatus::Crashed);
            assert!(
                ended
                    .close_reason
                    .as_deref()
                    .is_some_and(|reason| reason.contains("about a fork that was not ordered")),
                "{how}: {:?}",
                ended.close_reason
            );
        }
        daemon.stop();
    }
}

fn fork_and_close(client: &mut Client, session: &Session) -> usize {
    let forks = client.fork(session, 1).expect("an honest one");
    for fork in &forks {
        client.close(fork);
    }
    forks.len()
}

/// Waits until the daemon has at most this many descendants; their number.
#[track_caller]
fn settled(daemon: &Daemon, most: usize) -> usize {
    let count = || daemon.family().len();
    let names = || {
        let pids = daemon.family().into_iter().filter_map(|process| process.pid().ok());
        pids.map(observe::description).collect::<Vec<_>>().join("\n")
    };
    watch::wait_until(|| count() <= most, || format!("{} processes, {most} before:\n{}", count(), names()));
    count()
}
