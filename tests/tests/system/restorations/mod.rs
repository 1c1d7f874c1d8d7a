//! Ended sessions are restored: their inputs are repeated in new ones. Real processes.

mod apis;
mod refusals;

use vm_system_protocol::control::{
    ErrorCode, ExecutionState, GivenInput, NewCapability, OpError, RestorationGet, RuntimeSummaryGet,
    SessionAddCheckpoint, SessionEvents, SessionRestore, SessionRollback, TemplateAddCapability,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    CapabilityKind, RestorationStatus, Session, SessionEventType, SessionRestoration, SessionStatus, Settings,
};
use vm_system_tests::as_both;
use vm_system_tests::client::{Client, repl};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::programs::id;
use vm_system_tests::watch;

as_both!(
    the_state_is_there_again_after_a_power_loss,
    only_what_counts_is_repeated,
    tasks_get_their_recorded_answers,
    a_task_that_is_not_in_the_record_ends_the_restoration,
    a_restoration_is_shown_and_cancelled,
    a_supervisor_that_is_killed_leaves_no_half_of_it,
);

/// The request to restore a session.
fn request(session: &Session) -> SessionRestore {
    SessionRestore { session: session.id.to_string(), repeat_effects: false, inputs: Vec::new(), wait: true }
}

fn restore(client: &mut Client, new: SessionRestore) -> Result<SessionRestoration, OpError> {
    client.op(new)
}

fn progress(client: &mut Client, session: &Session, wait_after: Option<u64>) -> SessionRestoration {
    let op = RestorationGet { session: session.id.to_string(), wait_after };
    client.op(op).expect("it is known")
}

fn new_session(client: &mut Client, daemon: &Daemon, settings: Settings, modules: &[&str]) -> Session {
    let template = client.template(settings, modules);
    if modules.contains(&"fs") {
        let row = NewCapability {
            kind: CapabilityKind::Fs,
            name: "write".to_owned(),
            enabled: true,
            config: JsonText::empty_object(),
        };
        let op = TemplateAddCapability { template: template.clone(), capability: row };
        client.op(op).expect("a right");
    }
    client.session(&template, &daemon.place.worktree()).expect("a session")
}

/// Fails unless everything was repeated with the same results.
fn assert_same(restoration: &SessionRestoration, inputs: u64) {
    assert_eq!(restoration.status, RestorationStatus::Done, "{restoration:?}");
    assert_eq!((restoration.inputs, restoration.repeated), (inputs, inputs), "{restoration:?}");
    assert_eq!((restoration.different, restoration.differences.len()), (0, 0), "{restoration:?}");
    assert_eq!(restoration.session.status, SessionStatus::Ready);
}

mod cases {
    use super::*;

    pub(super) fn the_state_is_there_again_after_a_power_loss(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &[]);
        client.preview_of(&session, "var n = 20; const list = [1, 2]");
        client.preview_of(&session, "list.push(3); n += 1");
        client.preview_of(&session, "const twice = x => x * 2; twice(n)");
        drop(client);
        let place = daemon.kill_everything();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        let record = client.session_record(&session);
        assert_eq!(record.status, SessionStatus::Crashed);
        let facts = serde_json::to_value(&record.runtime_meta).expect("JSON");
        assert_eq!(facts["restore"]["possible"], true, "{facts}");
        let command = format!("vm-system session restore {}", session.id);
        assert_eq!(facts["restore"]["command"], command.as_str());
        let refused = client.eval(&session, "n").expect_err("it has ended");
        assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("restored")), "{refused:?}");
        let restored = restore(&mut client, request(&session)).expect("it can be restored");
        assert_same(&restored, 3);
        assert_eq!(restored.restored_from, session.id);
        assert_ne!(restored.session.id, session.id);
        assert_eq!(client.preview_of(&restored.session, "`${n} ${list} ${twice(2)}`"), "'21 1,2,3 4'");
        // A restored session can be restored.
        client.close(&restored.session);
        let again = restore(&mut client, request(&restored.session)).expect("it can be restored");
        assert_same(&again, 4);
        assert_eq!(client.preview_of(&again.session, "n"), "21");
        daemon.stop();
    }

    pub(super) fn only_what_counts_is_repeated(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &[]);
        client.preview_of(&session, "var list = ['a']");
        client.eval(&session, "throw new Error('no')").expect("it ran");
        let checkpoint = SessionAddCheckpoint { session: session.id.to_string(), name: None };
        client.op(checkpoint).expect("made");
        client.preview_of(&session, "list.push('rolled back')");
        let back = SessionRollback { session: session.id.to_string(), checkpoint: None };
        client.op(back).expect("rolled back");
        client.preview_of(&session, "list.push('b')");
        let child = client.fork(&session, 1).expect("forked").remove(0);
        client.preview_of(&session, "list.push('of the parent')");
        client.preview_of(&child, "list.push('of the child')");
        client.preview_of(&session, "Math.random()");
        client.close(&session);
        client.close(&child);
        let restored = restore(&mut client, request(&session)).expect("it can be restored");
        assert_eq!((restored.inputs, restored.not_repeated, restored.different), (4, 1, 1), "{restored:?}");
        let difference = &restored.differences[0];
        assert!(difference.input == 4 && difference.before.starts_with("0."), "{difference:?}");
        assert!(difference.now.starts_with("0.") && difference.now != difference.before, "{difference:?}");
        assert_eq!(client.preview_of(&restored.session, "list.join()"), "'a,b,of the parent'");
        let restored = restore(&mut client, request(&child)).expect("it can be restored");
        assert_same(&restored, 3);
        assert_eq!(client.preview_of(&restored.session, "list.join()"), "'a,b,of the child'");
        daemon.stop();
    }

    pub(super) fn tasks_get_their_recorded_answers(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &[]);
        let run = match client.op(repl(&session, "var got = CC('first?') + CC('second?'); got", true)) {
            Ok(ExecutionState::Run(run)) => run,
            other => panic!("no task: {other:?}"),
        };
        client.submit(&id(&run), "a").expect("taken");
        client.submit(&id(&run), "b").expect("taken");
        let late = "try { CC('late?', { timeout_ms: 50 }) } catch (error) { var late = error.name; late }";
        let run = match client.op(repl(&session, late, true)) {
            Ok(ExecutionState::Run(run)) => run,
            other => panic!("no task: {other:?}"),
        };
        client.until_final(&run.execution);
        client.close(&session);
        let restored = restore(&mut client, request(&session)).expect("it can be restored");
        assert_same(&restored, 2);
        assert_eq!(client.preview_of(&restored.session, "got"), "'ab'");
        assert!(client.tasks().is_empty());
        // The tasks of the restored session are in its own record, too.
        client.close(&restored.session);
        assert_same(&restore(&mut client, request(&restored.session)).expect("restored"), 3);
        daemon.stop();
    }

    pub(super) fn a_task_that_is_not_in_the_record_ends_the_restoration(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &[]);
        let random = "CC('number ' + Math.random())";
        let run = match client.op(repl(&session, random, true)) {
            Ok(ExecutionState::Run(run)) => run,
            other => panic!("no task: {other:?}"),
        };
        client.submit(&id(&run), "a").expect("taken");
        client.close(&session);
        let failed = restore(&mut client, request(&session)).expect_err("another task");
        assert_eq!(failed.code, ErrorCode::Conflict, "{failed:?}");
        assert!(failed.message.contains("the record has no answer to its task \"number 0."), "{failed:?}");
        assert!(client.tasks().is_empty());
        let live = client.op(RuntimeSummaryGet).expect("a summary");
        assert!(matches!(live, summary if summary.active_sessions == 0));
        daemon.stop();
    }

    pub(super) fn a_restoration_is_shown_and_cancelled(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &[]);
        client.preview_of(&session, "var n = 1");
        daemon.place.write("wait.js", "1");
        client.run_file(&session, "wait.js").expect("it runs");
        client.close(&session);
        // It now runs until its session is closed.
        daemon.place.write("wait.js", "await new Promise(() => setTimeout(() => {}, 1e9))");
        let begun = restore(&mut client, SessionRestore { wait: false, ..request(&session) }).expect("begun");
        assert_eq!((begun.inputs, begun.session.status), (2, SessionStatus::Starting), "{begun:?}");
        let new = begun.session;
        let now = progress(&mut client, &new, Some(0));
        assert_eq!((now.status, now.repeated), (RestorationStatus::Running, 1), "{now:?}");
        assert_eq!(client.session_record(&new).status, SessionStatus::Starting);
        for refused in [
            client.eval(&new, "n").map(drop),
            client.fork(&new, 1).map(drop),
            client.op(SessionAddCheckpoint { session: new.id.to_string(), name: None }).map(drop),
        ] {
            let refused = refused.expect_err("it is not ready");
            assert_eq!(refused.code, ErrorCode::SessionNotReady, "{refused:?}");
        }
        let live = restore(&mut client, request(&new)).expect_err("it has not ended");
        assert_eq!(live.code, ErrorCode::Conflict, "{live:?}");
        client.close(&new);
        watch::wait_until(
            || progress(&mut daemon.client(), &new, None).status == RestorationStatus::Cancelled,
            || "it is not cancelled".to_owned(),
        );
        daemon.stop();
    }

    pub(super) fn a_supervisor_that_is_killed_leaves_no_half_of_it(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let named = ["session", "create", "--template-id", &template, "--name", "work"];
        let worktree = daemon.place.worktree();
        let worktree = worktree.to_string_lossy();
        let created = daemon
            .cli(
                &[
                    &named[..],
                    &[
                        "--worktree-path",
                        &worktree,
                        "--workspace-id",
                        "w",
                        "--base-commit",
                        "c",
                        "--output",
                        "json",
                    ],
                ]
                .concat(),
            )
            .ok();
        let created: serde_json::Value = serde_json::from_str(&created).expect("JSON");
        let session = created["id"].as_str().expect("an id").to_owned();
        daemon.cli(&["exec", "repl", &session, "var n = 1"]).ok();
        daemon.place.write("wait.js", "2");
        daemon.cli(&["exec", "run-file", &session, "wait.js"]).ok();
        daemon.cli(&["session", "close", &session]).ok();
        daemon.place.write("wait.js", "await new Promise(() => setTimeout(() => {}, 1e9))");
        let new = SessionRestore {
            session: session.clone(),
            repeat_effects: false,
            inputs: Vec::new(),
            wait: false,
        };
        let begun = restore(&mut client, new.clone()).expect("begun").session;
        assert_eq!(progress(&mut client, &begun, Some(0)).repeated, 1);
        drop(client);
        let (place, _) = daemon.kill();
        place.write("wait.js", "2");
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        let half = client.session_record(&begun);
        assert_eq!((half.status, half.name.as_deref()), (SessionStatus::Crashed, None), "{half:?}");
        assert_eq!(half.close_reason.as_deref(), Some("host_restart"));
        let cut = progress(&mut client, &begun, None);
        assert_eq!((cut.status, cut.repeated, cut.inputs), (RestorationStatus::Failed, 1, 2), "{cut:?}");
        let restored = restore(&mut client, SessionRestore { wait: true, ..new }).expect("restored");
        assert_same(&restored, 2);
        assert_eq!(restored.session.name.as_deref(), Some("work"));
        let events = SessionEvents {
            session: restored.session.id.to_string(),
            after_seq: 0,
            limit: 1_000,
            wait: false,
        };
        let events = {
            let page = client.op(events).expect("events");
            page.events
        };
        let last = events.last().expect("events");
        assert_eq!(last.kind, SessionEventType::Ready, "nobody saw it ready before: {events:?}");
        daemon.stop();
    }
}
