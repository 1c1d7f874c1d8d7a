//! Idempotency keys over the exit of a daemon at any moment: a repeated request runs nothing twice, and a session that never was
//! ready is created again.

use std::path::PathBuf;
use vm_system_protocol::control::{
    ErrorCode, ExecList, ExecStart, ExecutionState, GivenAnswer, ListPage, NewStartupFile, OpError,
    SessionCreate, TaskSubmit, TemplateAddStartup, Verb,
};
use vm_system_protocol::model::{
    CapabilityKind, Execution, ExecutionStatus, Session, SessionStatus, Settings,
};
use vm_system_tests::client::{Client, record, repl};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::database_lock::DatabaseLock;
use vm_system_tests::place::User;
use vm_system_tests::rights::Bench;
use vm_system_tests::scene::Scene;
use vm_system_tests::{as_both, watch};

as_both!(
    an_execution_runs_once_although_the_daemon_is_killed_before_its_row_is_stored,
    an_execution_whose_start_cannot_be_stored_does_not_run,
    an_execution_whose_end_could_not_be_stored_is_answered_from_its_record,
    an_answer_is_given_to_one_task_although_the_daemon_is_killed_before_its_response,
    a_session_that_was_killed_in_its_startup_file_is_created_again,
);

mod cases {
    use super::*;

    /// Keys that are tried until the lock is taken between the commit of a key and the commit of its execution.
    const ATTEMPTS: u64 = 60;
    /// Looks at a daemon that cannot commit before it is clear that it has not begun with the execution.
    const LOOKS: u32 = 400;

    fn database(daemon: &Daemon) -> PathBuf {
        daemon.place.path("state/vm-system.db")
    }

    fn restart(daemon: Daemon) -> Daemon {
        let (place, _) = daemon.kill();
        Daemon::start_with(place, &DaemonOptions::default())
    }

    fn keyed<V: Verb>(client: &mut Client, verb: V, key: &str) -> Result<V::Reply, OpError> {
        let id = client.send_with_key(verb, Some(key));
        client.reply::<V>(id)
    }

    #[track_caller]
    fn execution(reply: Result<ExecutionState, OpError>) -> Execution {
        match reply {
            Ok(state) => record(state),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// The newest one first.
    fn executions(client: &mut Client, session: &Session) -> Vec<Execution> {
        let list = ExecList::all(session.id.to_string(), ListPage::first(1_000));
        match client.op(list) {
            Ok(all) => all,
            other => panic!("{other:?}"),
        }
    }

    /// Whether the session has begun with an execution that has no row, while nothing can be committed.
    fn is_begun_without_a_row(client: &mut Client, session: &Session, rows: usize) -> bool {
        let runs = (0..LOOKS).any(|_| client.inspect(session).expect("live").running_execution.is_some());
        runs && executions(client, session).len() == rows
    }

    pub(super) fn an_execution_runs_once_although_the_daemon_is_killed_before_its_row_is_stored(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        scene.client.eval(&session, "globalThis.n = 0").expect("runs");
        drop(scene.client);
        let mut daemon = scene.daemon;
        let count = || repl(&session, "globalThis.n += 1", true);
        let mut killed = 0;
        for attempt in 1..=ATTEMPTS {
            let (mut sender, mut observer) = (daemon.client(), daemon.client());
            let (key, rows) = (format!("key {attempt}"), executions(&mut observer, &session).len());
            let send = || sender.send_with_key(count(), Some(&key));
            let (lock, sent) = DatabaseLock::take_after_commit(&database(&daemon), send);
            if is_begun_without_a_row(&mut observer, &session, rows) {
                killed += 1;
                let (place, _) = daemon.kill();
                drop(lock);
                daemon = Daemon::start_with(place, &DaemonOptions::default());
                let mut client = daemon.client();
                let ran = execution(keyed(&mut client, count(), &key));
                assert_eq!(ran.error, None);
            } else {
                drop(lock);
                execution(sender.reply::<ExecStart>(sent));
            }
            let mut client = daemon.client();
            assert_eq!(client.preview_of(&session, "n"), attempt.to_string(), "one execution of each key");
            if killed == 3 {
                drop(client);
                daemon.stop();
                return;
            }
        }
        panic!("{killed} of {ATTEMPTS} executions were begun while nothing could be committed");
    }

    /// As on a full disk: the commit of the start fails, and so does the release of the key.
    pub(super) fn an_execution_whose_start_cannot_be_stored_does_not_run(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        scene.client.eval(&session, "globalThis.n = 0").expect("runs");
        let count = || repl(&session, "globalThis.n += 1", true);
        let mut sender = scene.daemon.client();
        for attempt in 1..=ATTEMPTS {
            let key = format!("key {attempt}");
            let rows = executions(&mut scene.client, &session).len();
            let send = || sender.send_with_key(count(), Some(&key));
            let (lock, sent) = DatabaseLock::take_after_commit(&database(&scene.daemon), send);
            if !is_begun_without_a_row(&mut scene.client, &session, rows) {
                drop(lock);
                execution(sender.reply::<ExecStart>(sent));
                continue;
            }
            let error = sender.response(sent).1.expect_err("its start cannot be stored");
            assert!(error.code == ErrorCode::StorageUnavailable && !error.has_run(), "{error:?}");
            drop(lock);
            let ran = execution(keyed(&mut sender, count(), &key));
            assert_eq!(ran.error, None);
            let again = execution(keyed(&mut sender, count(), &key));
            assert_eq!(again.id, ran.id);
            assert_eq!(scene.client.preview_of(&session, "n"), attempt.to_string());
            drop((sender, scene.client));
            scene.daemon.stop();
            return;
        }
        panic!("no execution was begun while nothing could be committed");
    }

    /// The next task is pending when the answer to the one before is submitted again.
    pub(super) fn an_answer_is_given_to_one_task_although_the_daemon_is_killed_before_its_response(
        user: User,
    ) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let code = "const first = CC('first');
            while (!require('fs').existsSync('go'));
            [first, CC('second')].join()";
        let started = scene.client.start(&session, code);
        let id = started.id.to_string();
        let status = |client: &mut Client| client.execution_record(&id).status;
        watch::wait_until(
            || status(&mut scene.client) == ExecutionStatus::Waiting,
            || "it does not wait".to_owned(),
        );
        let answer = |text: &str| {
            let result = GivenAnswer::Typed(text.to_owned());
            TaskSubmit { execution: id.clone(), task: None, result, wait: true }
        };
        let mut sender = scene.daemon.client();
        sender.send_with_key(answer("one"), Some("k"));
        watch::wait_until(
            || status(&mut scene.client) == ExecutionStatus::Running,
            || "not answered".to_owned(),
        );
        drop((sender, scene.client));
        let daemon = restart(scene.daemon);
        daemon.place.write("go", "");
        let mut client = daemon.client();
        watch::wait_until(
            || status(&mut client) == ExecutionStatus::Waiting,
            || "it does not go on".to_owned(),
        );
        let again = keyed(&mut client, answer("one"), "k");
        let Ok(run) = again else { panic!("{again:?}") };
        assert_eq!(run.execution.status, ExecutionStatus::Waiting, "{run:?}");
        assert_eq!(run.task.map(|task| task.prompt).as_deref(), Some("second"));
        let error = keyed(&mut client, answer("another"), "k").expect_err("another request");
        assert_eq!(error.code, ErrorCode::IdempotencyMismatch, "{error:?}");
        keyed(&mut client, answer("two"), "l").expect("it is pending");
        let ended = client.until_final(&started);
        assert_eq!(ended.result_json(), Some("\"one,two\""), "{ended:?}");
        drop(client);
        daemon.stop();
    }

    /// As on a full disk: the commit of the end fails, and the commit of the response, too.
    pub(super) fn an_execution_whose_end_could_not_be_stored_is_answered_from_its_record(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        scene.client.eval(&session, "globalThis.n = 0").expect("runs");
        let op = || repl(&session, "while (!require('fs').existsSync('go')); globalThis.n += 1", true);
        let mut sender = scene.daemon.client();
        let sent = sender.send_with_key(op(), Some("key"));
        let client = &mut scene.client;
        watch::wait_until(|| executions(client, &session).len() == 2, || "it has no row".to_owned());
        let lock = DatabaseLock::take(&database(&scene.daemon));
        scene.daemon.place.write("go", "");
        let error = sender.response(sent).1.expect_err("its end cannot be stored");
        assert!(error.code == ErrorCode::StorageUnavailable && error.has_run(), "{error:?}");
        drop(lock);
        let id = executions(&mut scene.client, &session)[0].id;
        let again = execution(keyed(&mut sender, op(), "key"));
        assert_eq!((again.id, again.status), (id, ExecutionStatus::Ok), "{again:?}");
        drop((sender, scene.client));
        let daemon = restart(scene.daemon);
        let mut client = daemon.client();
        let after = execution(keyed(&mut client, op(), "key"));
        assert_eq!((after.id, after.status), (again.id, ExecutionStatus::Ok));
        assert_eq!(client.preview_of(&session, "n"), "1");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_session_that_was_killed_in_its_startup_file_is_created_again(user: User) {
        let mut bench = Bench::with_modules(user, &["fs"], &DaemonOptions::default());
        bench.row(CapabilityKind::Fs, "write", "{}");
        bench.daemon.place.write(
            "begin.js",
            "require('fs').writeFileSync('begun', ''); while (!require('fs').existsSync('go')); globalThis.n = 7",
        );
        let file = NewStartupFile { path: "begin.js".to_owned(), order_index: 0, mode: "eval".to_owned() };
        let added = TemplateAddStartup { template: bench.template.clone(), file };
        bench.client.op(added).expect("added");
        let worktree = bench.daemon.place.worktree();
        let create = || SessionCreate {
            template: bench.template.clone(),
            workspace_id: "tests".to_owned(),
            base_commit_oid: "none".to_owned(),
            worktree_path: worktree.to_string_lossy().into_owned(),
            as_user: None,
            name: Some("named".to_owned()),
            ttl_s: None,
            idle_timeout_s: None,
        };
        bench.client.send_with_key(create(), Some("key"));
        watch::wait_until(|| worktree.join("begun").exists(), || "no startup file runs".to_owned());
        drop(bench.client);
        let daemon = restart(bench.daemon);
        daemon.place.write("go", "");
        let mut client = daemon.client();
        let made = keyed(&mut client, create(), "key");
        let Ok(session) = &made else { panic!("{made:?}") };
        assert_eq!(session.status, SessionStatus::Ready, "{session:?}");
        assert_eq!(client.preview_of(session, "n"), "7");
        assert_eq!(keyed(&mut client, create(), "key"), made, "each time");
        drop(client);
        daemon.stop();
    }
}
