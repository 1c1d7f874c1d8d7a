//! Workers that abuse the order to fork when it is for a frozen copy, and copies that do it when the session is to continue from them.

use super::{checkpoint, rollback, rolling, session, stopped_processes};
use vm_system_protocol::model::{ExecutionStatus, Session, SessionStatus, Settings};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::{as_both, program, watch};

as_both!(
    a_worker_that_ignores_its_limits_costs_its_execution_alone,
    a_worker_that_abuses_the_fork_of_a_checkpoint_ends_its_session,
    a_copy_that_abuses_its_fork_ends_its_session
);

/// Abuses, and the beginning of the closing reason.
const WAYS: &[(&str, &str)] = &[
    ("introduces itself", "protocol_violation("),
    ("sends something else", "protocol_violation("),
    ("confirms another order", "protocol_violation("),
    ("denies its child", "protocol_violation("),
    ("the child repeats its hello", "protocol_violation("),
    ("does not", "protocol_violation("),
    ("sends nothing", "protocol_violation("),
];

mod cases {
    use super::*;

    pub(super) fn a_worker_that_ignores_its_limits_costs_its_execution_alone(user: User) {
        let daemon = hostile(user);
        let mut client = daemon.client();
        let session = session(&daemon, rolling(vm_system_tests::scene::small()));
        for (how, code) in [("neither reads nor sends", "CPU_LIMIT"), ("exits", "WORKER_DIED")] {
            let generation = generation(&client.session_record(&session));
            let ended = client.eval(&session, how).expect("a response");
            assert_eq!(ended.error.as_ref().map(|error| error.code.as_str()), Some(code), "{how}: {ended:?}");
            watch::wait_until(
                || client.eval(&session, "honest").is_ok_and(|ran| ran.status == ExecutionStatus::Ok),
                || format!("{how}: it is not ready again"),
            );
            assert_eq!(self::generation(&client.session_record(&session)), generation + 1, "{how}");
        }
        client.close(&session);
        daemon.stop();
    }

    pub(super) fn a_worker_that_abuses_the_fork_of_a_checkpoint_ends_its_session(user: User) {
        let daemon = hostile(user);
        let mut client = daemon.client();
        for (how, reason) in WAYS {
            let session = session(&daemon, Settings::default());
            client.eval(&session, &format!("when it forks: {how}")).expect("prepared");
            checkpoint(&mut client, &session, None).expect_err(how);
            let ended = client.wait_for(&session, SessionStatus::Crashed);
            assert!(
                ended.close_reason.as_deref().is_some_and(|why| why.starts_with(reason)),
                "{how}: {ended:?}"
            );
            watch::wait_until(|| stopped_processes(&daemon).is_empty(), || format!("{how}: a copy is left"));
        }
        daemon.stop();
    }

    /// The hostile worker's guard copy is made at once after the execution that prepares the abuse, and so is not abused itself: it
    /// is the copy that abuses its own fork.
    pub(super) fn a_copy_that_abuses_its_fork_ends_its_session(user: User) {
        let daemon = hostile(user);
        let mut client = daemon.client();
        let sibling = session(&daemon, rolling(Settings::default()));
        for (how, _) in WAYS {
            let session = session(&daemon, Settings::default());
            client.eval(&session, &format!("when its copy forks: {how}")).expect("prepared");
            checkpoint(&mut client, &session, None).expect("an honest fork");
            let refused = rollback(&mut client, &session, None).expect_err(how);
            assert!(refused.message.contains("rolled back"), "{how}: {refused:?}");
            let ended = client.wait_for(&session, SessionStatus::Crashed);
            let why = ended.close_reason.clone().unwrap_or_default();
            assert!(why.starts_with("protocol_violation(its frozen copy: "), "{how}: {ended:?}");
            assert_eq!(
                client.eval(&sibling, "honest").expect("sibling").status,
                ExecutionStatus::Ok,
                "{how}"
            );
        }
        client.close(&sibling);
        watch::wait_until(|| stopped_processes(&daemon).is_empty(), || "a copy is left".to_owned());
        daemon.stop();
    }
}

fn generation(session: &Session) -> u64 {
    session.runtime_meta.generation.unwrap_or(1)
}

fn hostile(user: User) -> Daemon {
    let options = DaemonOptions { program: program::HOSTILE_WORKER, ..DaemonOptions::default() };
    Daemon::start_with(TestDir::new(user), &options)
}
