//! Forks of sessions: what a fork inherits from its parent and what it does not, permissions and limits; and workers that
//! abuse the order to fork.

mod abuse;
mod apis;

use std::sync::atomic::{AtomicBool, Ordering};
use vm_system_protocol::control::{ErrorCode, ExecCancel, NewStartupFile, SessionKill, TemplateAddStartup};
use vm_system_protocol::model::{Session, SessionStatus, Settings};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;
use vm_system_tests::{as_both, watch};

as_both!(
    forks_have_the_parents_state_and_diverge,
    copies_of_copies_have_their_own_random_numbers,
    large_states_are_copied,
    parent_and_copy_exit_independently,
    startup_files_are_not_run_again_and_host_modules_are_available,
    copies_live_in_the_same_jail_under_the_same_limits,
    signals_during_a_fork_cost_nothing,
);

mod cases {
    use super::*;

    /// A clone that a signal interrupts is made again, by the kernel.
    pub(super) fn signals_during_a_fork_cost_nothing(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let parent = session(&daemon, Settings::default());
        let worker = PidFd::open(client.inspect(&parent).expect("live").pid).expect("alive");
        let (done, is_done) = (AtomicBool::new(false), Ordering::Acquire);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(is_done) {
                    worker.signal(libc::SIGSTOP).expect("alive");
                    worker.signal(libc::SIGCONT).expect("alive");
                    watch::moment();
                }
            });
            for _ in 0..100 {
                let forks = client.fork(&parent, 1).expect("forked");
                for fork in &forks {
                    client.close(fork);
                }
            }
            done.store(true, Ordering::Release);
        });
        assert_eq!(client.preview_of(&parent, "1"), "1");
        daemon.stop();
    }

    pub(super) fn forks_have_the_parents_state_and_diverge(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let parent = session(&daemon, Settings::default());
        client.preview_of(
            &parent,
            "var n = 1; const list = [1, 2]; let later = new Promise(done => { globalThis.go = done })",
        );
        let forks = client.fork(&parent, 3).expect("forked");
        assert_eq!(forks.len(), 3);
        for (number, fork) in forks.iter().enumerate() {
            assert_ne!(fork.id, parent.id);
            assert_eq!((fork.status, &fork.name, fork.closed_at), (SessionStatus::Ready, &None, None));
            assert_eq!((fork.template_id, &fork.worktree_path), (parent.template_id, &parent.worktree_path));
            assert_eq!(fork.workspace_id, parent.workspace_id);
            let meta = serde_json::to_value(&fork.runtime_meta).expect("JSON");
            assert_eq!(meta["forked_from"], parent.id.to_string());
            assert_eq!(client.session_record(fork), *fork, "the response is what is stored");
            client.preview_of(fork, &format!("n += {number}; list.push('fork'); n"));
        }
        client.preview_of(&parent, "n = 100; list.push(3)");
        for (number, fork) in forks.iter().enumerate() {
            let expected = format!("{} 1,2,fork", number + 1);
            assert_eq!(client.preview_of(fork, "`${n} ${list}`"), format!("'{expected}'"));
        }
        assert_eq!(client.preview_of(&parent, "`${n} ${list}`"), "'100 1,2,3'");
        // A promise that was pending is pending in each fork, and each settles its own.
        client.preview_of(&forks[0], "go('mine')");
        assert_eq!(client.preview_of(&forks[0], "await later"), "'mine'");
        let never = client.eval(&forks[1], "await later").expect("a response");
        assert!(never.error.is_some_and(|error| error.message.contains("never settled")));
        daemon.stop();
    }

    pub(super) fn copies_of_copies_have_their_own_random_numbers(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let mut generation = vec![session(&daemon, Settings::default())];
        client.preview_of(&generation[0], "var depth = 0; Math.random()");
        for depth in 1..=4 {
            let last = generation[depth - 1].clone();
            client.preview_of(&last, &format!("depth = {depth}"));
            generation.extend(client.fork(&last, 1).expect("forked"));
        }
        let rolls: std::collections::BTreeSet<String> =
            generation.iter().map(|session| client.preview_of(session, "Math.random()")).collect();
        assert_eq!(rolls.len(), generation.len(), "{rolls:?}");
        for (depth, session) in generation.iter().enumerate() {
            let own = if depth == 4 { 4 } else { depth + 1 };
            assert_eq!(client.preview_of(session, "depth"), own.to_string());
        }
        // A fork draws other random numbers than its parent draws next.
        let parent = &generation[0];
        let fork = client.fork(parent, 1).expect("forked").remove(0);
        assert_ne!(client.preview_of(parent, "Math.random()"), client.preview_of(&fork, "Math.random()"));
        daemon.stop();
    }

    pub(super) fn large_states_are_copied(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        for mib in [1, 50] {
            let parent = session(&daemon, Settings::default());
            let fill = format!(
                "var all = []; for (let i = 0; i < {mib} * 1024; i++) all.push({{ i, text: String(i).padEnd(900, 'x') }}); all.length"
            );
            assert_eq!(client.preview_of(&parent, &fill), (mib * 1024).to_string());
            let fork = client.fork(&parent, 1).expect("forked").remove(0);
            let sum = "all.reduce((sum, { i, text }) => sum + i + text.length, 0)";
            assert_eq!(client.preview_of(&fork, sum), client.preview_of(&parent, sum), "{mib} MiB");
            // Writes in the fork do not change the parent.
            client.preview_of(&fork, "for (const one of all) one.i = -1; all.at(-1).i");
            assert_eq!(client.preview_of(&parent, "all[0].i + all[1].i"), "1");
            client.close(&fork);
            client.close(&parent);
        }
        daemon.stop();
    }

    pub(super) fn startup_files_are_not_run_again_and_host_modules_are_available(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        daemon
            .place
            .write("begin.js", "var begun = (globalThis.begun ?? 0) + 1; var since = performance.now()");
        daemon.place.write("data.txt", "from the worktree");
        let template = client.template(Settings::default(), &["fs"]);
        let file = NewStartupFile { path: "begin.js".to_owned(), order_index: 1, mode: "eval".to_owned() };
        client.op(TemplateAddStartup { template: template.clone(), file }).expect("added");
        let parent = client.session(&template, &daemon.place.worktree()).expect("session");
        let read = "require('fs').readFileSync('data.txt', 'utf8')";
        assert_eq!(client.preview_of(&parent, read), "'from the worktree'");
        client.preview_of(
            &parent,
            "setTimeout(() => { globalThis.rang = true }, 1); setInterval(() => {}, 1000).unref(); 1",
        );
        let fork = client.fork(&parent, 1).expect("forked").remove(0);
        assert_eq!(client.preview_of(&fork, "begun"), "1");
        assert_eq!(
            client.preview_of(&fork, "performance.now() > since"),
            "true",
            "time never runs backwards"
        );
        assert_eq!(client.preview_of(&fork, "rang"), "true");
        // The fork has its own broker, which the end of the parent does not affect.
        assert_eq!(client.preview_of(&fork, read), "'from the worktree'");
        client.close(&parent);
        assert_eq!(client.preview_of(&fork, read), "'from the worktree'");
        // Message and call numbers of a fork start at 1.
        let ended = client
            .eval(&fork, "for (let i = 0; i < 500; i++) console.log('x'.repeat(200)); 1")
            .expect("a response");
        assert_eq!(ended.error, None);
        daemon.stop();
    }

    pub(super) fn parent_and_copy_exit_independently(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let parent = session(&daemon, Settings::default());
        client.preview_of(&parent, "var x = 7");
        let forks = client.fork(&parent, 2).expect("forked");
        kill(&mut client, &forks[0]);
        assert_eq!(client.session_record(&forks[0]).status, SessionStatus::Crashed);
        assert_eq!(client.preview_of(&parent, "x"), "7");
        kill(&mut client, &parent);
        assert_eq!(client.preview_of(&forks[1], "x"), "7");
        let grandchild = client.fork(&forks[1], 1).expect("its parent's end is not its own").remove(0);
        client.close(&forks[1]);
        assert_eq!(client.preview_of(&grandchild, "x + 1"), "8");
        assert_eq!(client.session_record(&forks[1]).status, SessionStatus::Closed);
        daemon.stop();
    }

    pub(super) fn copies_live_in_the_same_jail_under_the_same_limits(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let mut settings = Settings::default();
        settings.limits.mem_mb = 32;
        let parent = session(&daemon, settings);
        client.preview_of(&parent, "let busy = 0; for (let i = 0; i < 3e6; i++) busy += i; 1");
        let fork = client.fork(&parent, 1).expect("forked").remove(0);
        let (one, other) = (client.inspect(&parent).expect("live"), client.inspect(&fork).expect("live"));
        assert_ne!(one.pid, other.pid);
        assert_eq!((other.seccomp_mode, other.no_new_privs, other.cap_eff), (Some(2), Some(true), Some(0)));
        assert_eq!(
            (&one.namespaces, one.fds),
            (&other.namespaces, other.fds),
            "nothing of the parent's is open"
        );
        let memory = |limits: &[String]| -> Vec<String> {
            limits.iter().filter(|limit| !limit.starts_with("cpu")).cloned().collect()
        };
        assert_eq!(memory(&one.rlimits), memory(&other.rlimits));
        assert!(other.cpu_ms < one.cpu_ms, "{} of {} ms", other.cpu_ms, one.cpu_ms);
        let flooded =
            client.eval(&fork, "const a = []; for (;;) a.push(new Array(1000).fill(1))").expect("a response");
        assert!(flooded.error.is_some(), "the heap of a copy is limited");
        assert_eq!(client.preview_of(&parent, "busy > 0"), "true");
        daemon.stop();
    }
}

#[test]
fn only_idle_sessions_are_forked() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let parent = session(&daemon, Settings::default());
    let code = |result: Result<Vec<Session>, vm_system_protocol::control::OpError>| {
        result.expect_err("refused").code
    };
    let running = client.start(&parent, "for (;;) {}");
    assert_eq!(code(client.fork(&parent, 1)), ErrorCode::SessionBusy);
    client.op(ExecCancel { execution: running.id.to_string() }).expect("cancelled");
    client.until_final(&running);
    let waiting = client.start(&parent, "CC('what next?')");
    let mut follower = daemon.client();
    vm_system_tests::watch::wait_until(
        || follower.execution_record(&waiting.id.to_string()).status.to_string() == "waiting",
        || "no task".to_owned(),
    );
    assert_eq!(code(client.fork(&parent, 1)), ErrorCode::SessionBusy);
    client.op(ExecCancel { execution: waiting.id.to_string() }).expect("cancelled");
    client.until_final(&waiting);
    for count in [0, 65] {
        assert_eq!(code(client.fork(&parent, count)), ErrorCode::ValidationError, "{count}");
    }
    client.fork(&parent, 1).expect("idle again");
    client.close(&parent);
    assert_eq!(code(client.fork(&parent, 1)), ErrorCode::SessionNotReady);
    daemon.stop();
}

#[test]
fn all_forks_are_created_or_none() {
    let place = vm_system_tests::place::TestDir::new(User::AsStarted);
    let options = vm_system_tests::daemon::DaemonOptions {
        config: "max_sessions = 4\n".to_owned(),
        ..vm_system_tests::daemon::DaemonOptions::default()
    };
    let daemon = Daemon::start_with(place, &options);
    let mut client = daemon.client();
    let parent = session(&daemon, Settings::default());
    client.fork(&parent, 1).expect("the limit is not reached");
    let processes = daemon.family().len();
    let refused = client.fork(&parent, 3).expect_err("the limit allows two more");
    assert_eq!(refused.code, ErrorCode::CapacityExceeded);
    assert_eq!(daemon.family().len(), processes);
    assert_eq!(ready(&mut client), 2);
    assert_eq!(client.fork(&parent, 2).expect("two").len(), 2);
    assert_eq!(ready(&mut client), 4);
    daemon.stop();
}

/// Sessions that accept executions.
fn ready(client: &mut vm_system_tests::client::Client) -> usize {
    let filter = vm_system_protocol::control::SessionList {
        status: Some(SessionStatus::Ready),
        ..vm_system_protocol::control::SessionList::default()
    };
    let sessions = client.op(filter).expect("list");
    sessions.len()
}

fn session(daemon: &Daemon, settings: Settings) -> Session {
    let mut client = daemon.client();
    let template = client.template(settings, &[]);
    client.session(&template, &daemon.place.worktree()).expect("session")
}

fn kill(client: &mut vm_system_tests::client::Client, session: &Session) {
    client.op(SessionKill { session: session.id.to_string(), signal: 9 }).expect("killed");
}
