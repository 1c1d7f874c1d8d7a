//! `on_crash: restart`: a new worker with an empty state replaces one that has exited, and says so.

use super::crashes::{ready_again, worker};
use super::{checkpoint, rollback};
use serde_json::{Value, json};
use vm_system_protocol::control::{
    ErrorCode, NewStartupFile, SessionAddCheckpoint, SessionEvents, SessionKill, TemplateAddStartup,
    TemplateRemoveModule,
};
use vm_system_protocol::limits::RECOVERIES;
use vm_system_protocol::model::{
    ConsoleLevel, EventPayload, Execution, OnCrash, Session, SessionEvent, SessionEventType, SessionStatus,
    Settings,
};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::mcp::Agent;
use vm_system_tests::place::User;
use vm_system_tests::{as_both, watch};

as_both!(
    a_crash_costs_the_state_and_the_next_execution_says_so,
    a_restart_is_reported_also_by_the_next_supervisor_and_by_forks,
    sessions_that_lose_their_jail_are_restarted_in_the_next_one,
    too_many_crashes_end_the_session_and_its_error_names_the_restarts,
    a_startup_file_that_fails_again_and_again_ends_the_session,
);

/// A session with `on_crash: restart` and a startup file.
pub(super) fn restarting(daemon: &Daemon, startup: &str) -> Session {
    let mut client = daemon.client();
    std::fs::write(daemon.place.worktree().join("begin.js"), startup).expect("worktree");
    let mut settings = Settings::default();
    settings.runtime.on_crash = OnCrash::Restart;
    let template = client.template(settings, &["fs"]);
    let file = NewStartupFile { path: "begin.js".to_owned(), order_index: 0, mode: "eval".to_owned() };
    client.op(TemplateAddStartup { template: template.clone(), file }).expect("added");
    client.session(&template, &daemon.place.worktree()).expect("session")
}

pub(super) fn events_of(client: &mut Client, session: &Session) -> Vec<SessionEvent> {
    let op = SessionEvents { session: session.id.to_string(), after_seq: 0, limit: 100, wait: false };
    let Ok(page) = client.op(op) else { panic!("no events") };
    page.events
}

pub(super) fn restarts_of(client: &mut Client, session: &Session) -> Vec<String> {
    let mut events = events_of(client, session);
    events.retain(|event| event.kind == SessionEventType::Restarted);
    events.into_iter().map(|event| event.detail.unwrap_or_default()).collect()
}

/// The warning of an execution about a restart.
pub(super) fn warning_of(client: &mut Client, execution: &Execution) -> Option<String> {
    client.events(&execution.id.to_string()).into_iter().find_map(|event| match event.payload {
        EventPayload::System { message, level: ConsoleLevel::Warn, .. } => Some(message),
        _ => None,
    })
}

fn restart_fact(client: &mut Client, session: &Session) -> Value {
    serde_json::to_value(&client.session_record(session).runtime_meta).expect("JSON")["restart"].clone()
}

mod cases {
    use super::*;

    pub(super) fn a_crash_costs_the_state_and_the_next_execution_says_so(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = restarting(&daemon, "globalThis.ready = 'yes'");
        assert_eq!(client.preview_of(&session, "globalThis.n = 1; ready"), "'yes'");
        checkpoint(&mut client, &session, Some("kept")).expect("made");
        let execution = client.start(&session, "ready = 'lost'; for (;;) {}");
        worker(&mut client, &session).signal(11).expect("alive");
        let ended = client.until_final(&execution);
        let error = ended.error.expect("an error");
        assert_eq!((error.code.as_str(), error.reason.as_deref()), ("WORKER_DIED", Some("signal(SIGSEGV)")));
        let next = ready_again(&mut client, &session, "`${ready} ${typeof n}`");
        assert_eq!(next.result.as_ref().expect("a value").preview, "'yes undefined'");
        let warning = warning_of(&mut client, &next).expect("it says so");
        assert!(warning.contains("restarted, because its worker ended (signal(SIGSEGV))"), "{warning}");
        let later = client.eval(&session, "1").expect("ready");
        assert_eq!(warning_of(&mut client, &later), None, "it is said once");
        let fact = restart_fact(&mut client, &session);
        assert_eq!(
            (fact["reason"].as_str(), fact["reported"].as_bool()),
            (Some("signal(SIGSEGV)"), Some(true))
        );
        let kinds: Vec<_> = events_of(&mut client, &session).iter().map(|event| event.kind).collect();
        let restart = kinds.iter().position(|kind| *kind == SessionEventType::Restarted).expect("an event");
        assert_eq!(kinds[restart - 1], SessionEventType::ExecutionEnded);
        assert_eq!(
            kinds[restart + 1..restart + 4],
            [SessionEventType::ExecutionStarted, SessionEventType::ExecutionEnded, SessionEventType::Ready],
            "the startup file ran: {kinds:?}"
        );
        // Checkpoints are other processes: the state of before is there.
        rollback(&mut client, &session, Some("kept")).expect("it is there");
        assert_eq!(client.preview_of(&session, "n"), "1");
        // An idle worker, too.
        worker(&mut client, &session).kill().expect("alive");
        assert_eq!(
            ready_again(&mut client, &session, "typeof n").result.expect("a value").preview,
            "'undefined'"
        );
        assert_eq!(restarts_of(&mut client, &session), ["signal(SIGSEGV)", "signal(SIGKILL)"]);
        client.close(&session);
        daemon.stop();
    }

    pub(super) fn a_restart_is_reported_also_by_the_next_supervisor_and_by_forks(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = restarting(&daemon, "");
        client.preview_of(&session, "var n = 1");
        worker(&mut client, &session).kill().expect("alive");
        watch::wait_until(
            || {
                !restarts_of(&mut client, &session).is_empty()
                    && client.session_record(&session).status == SessionStatus::Ready
            },
            || "it is not ready again".to_owned(),
        );
        drop(client);
        let (place, _) = daemon.kill();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        let fork = client.fork(&session, 1).expect("forked").remove(0);
        for one in [&session, &fork] {
            let next = client.eval(one, "typeof n").expect("ready");
            let warning = warning_of(&mut client, &next).expect("it says so");
            assert!(warning.contains("signal(SIGKILL)"), "{warning}");
            assert_eq!(restart_fact(&mut client, one)["reported"], true);
        }
        let fork = client.fork(&session, 1).expect("forked").remove(0);
        let next = client.eval(&fork, "1").expect("ready");
        assert_eq!(warning_of(&mut client, &next), None, "its parent has said it");
        // The adopted session is restarted as one of this supervisor's own.
        worker(&mut client, &session).kill().expect("alive");
        ready_again(&mut client, &session, "1");
        assert_eq!(
            serde_json::to_value(&client.session_record(&session).runtime_meta).expect("JSON")["generation"],
            3
        );
        drop(client);
        daemon.stop();
    }

    pub(super) fn sessions_that_lose_their_jail_are_restarted_in_the_next_one(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let sessions: Vec<Session> = (0..3).map(|_| restarting(&daemon, "var begun = true")).collect();
        for session in &sessions {
            client.preview_of(session, "var n = 1");
        }
        let keeper = daemon.info().keeper_pid.expect("a jail");
        PidFd::open(keeper).expect("alive").kill().expect("alive");
        for session in &sessions {
            // The kernel ends the processes of the jail one after the other.
            let is_noticed = || !restarts_of(&mut client, session).is_empty();
            watch::wait_until(is_noticed, || "its jail has not ended".to_owned());
            let next = ready_again(&mut client, session, "`${begun} ${typeof n}`");
            assert_eq!(next.result.as_ref().expect("a value").preview, "'true undefined'");
            // The attempt to start its worker waits for the next jail.
            assert_eq!(restarts_of(&mut client, session), ["keeper_lost"]);
        }
        daemon.stop();
    }

    pub(super) fn too_many_crashes_end_the_session_and_its_error_names_the_restarts(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = restarting(&daemon, "");
        for _ in 0..=RECOVERIES {
            ready_again(&mut client, &session, "1");
            worker(&mut client, &session).kill().expect("alive");
        }
        let record = client.wait_for(&session, SessionStatus::Crashed);
        assert_eq!(record.close_reason.as_deref(), Some("signal(SIGKILL)"));
        let error = record.last_error.expect("an error");
        assert!(error.contains(&format!("restarted {RECOVERIES} times within 60 s")), "{error}");
        assert_eq!(restarts_of(&mut client, &session).len(), RECOVERIES);
        daemon.stop();
    }

    pub(super) fn a_startup_file_that_fails_again_and_again_ends_the_session(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = restarting(&daemon, "");
        std::fs::write(daemon.place.worktree().join("begin.js"), "throw new Error('no database')")
            .expect("worktree");
        worker(&mut client, &session).kill().expect("alive");
        let record = client.wait_for(&session, SessionStatus::Crashed);
        let reason = record.close_reason.expect("a reason");
        assert!(
            reason.starts_with("startup_failed(begin.js:1") && reason.contains("no database"),
            "{reason}"
        );
        assert_eq!(restarts_of(&mut client, &session).len(), RECOVERIES);
        daemon.stop();
    }
}

#[test]
fn a_session_is_restarted_with_the_libraries_and_the_narrowed_rights_of_its_template() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let session = restarting(&daemon, "globalThis.modules = require('fs').existsSync('begin.js')");
    assert_eq!(client.preview_of(&session, "modules"), "true");
    // Narrowing takes effect at once: the startup file of the next worker has the rights of now.
    let template = session.template_id.to_string();
    client.op(TemplateRemoveModule { template, name: "fs".to_owned() }).expect("removed");
    worker(&mut client, &session).kill().expect("alive");
    let record = client.wait_for(&session, SessionStatus::Crashed);
    assert!(record.close_reason.expect("a reason").starts_with("startup_failed(begin.js"));
    daemon.stop();
}

#[test]
fn users_and_agents_see_a_restart() {
    let daemon = Daemon::start(User::AsStarted);
    let template = ["template", "create", "--name", "again", "--on-crash", "restart"];
    assert!(daemon.cli(&template).ok().contains("again"));
    let mut agent = Agent::start(&daemon.place, &[]);
    let created = json!({ "worktree": daemon.place.worktree(), "templateId": "again" });
    let session = agent.data("session_create", created);
    let id = session["sessionId"].as_str().expect("an id").to_owned();
    let mut client = daemon.client();
    let mut http = daemon.http();
    let path = format!("/api/v1/sessions/{id}");
    for (through_agent, generation) in [(false, 2), (true, 3)] {
        let pid = http.get(&format!("{path}/inspect")).json()["pid"].as_u64().expect("a worker");
        PidFd::open(u32::try_from(pid).expect("a pid")).expect("alive").kill().expect("alive");
        let again = || http.get(&path).json()["runtime_meta"]["generation"] == generation;
        watch::wait_until(again, || "it is not restarted".to_owned());
        watch::wait_until(|| http.get(&path).json()["status"] == "ready", || "it is not ready".to_owned());
        let said = if through_agent {
            agent.text("session_eval", json!({ "sessionId": id, "code": "1 + 1" }))
        } else {
            let ran = daemon.cli(&["exec", "repl", &id, "1 + 1"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stderr
        };
        assert!(
            said.contains("the session was restarted, because its worker ended (signal(SIGKILL))"),
            "{said}"
        );
    }
    let events = daemon.cli(&["session", "events", &id]).ok();
    assert_eq!(events.matches("restarted").count(), 2, "{events}");
    let list = http.get(&format!("{path}/events")).json();
    let restarts = list.as_array().into_iter().flatten().filter(|event| event["type"] == "restarted");
    assert_eq!(restarts.count(), 2);
    let shown = daemon.cli(&["session", "get", &id]).ok();
    assert!(shown.contains("restart") && shown.contains("signal(SIGKILL)"), "{shown}");
    // An operator's kill is final.
    client.op(SessionKill { session: id.clone(), signal: 9 }).expect("killed");
    let refused =
        client.op(SessionAddCheckpoint { session: id, name: None }).expect_err("the session has ended");
    assert_eq!(refused.code, ErrorCode::SessionNotReady, "{refused:?}");
    drop(agent);
    daemon.stop();
}
