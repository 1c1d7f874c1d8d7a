//! `CC` in sessions through the real daemon: the live pause, answers, and everything that ends the pause.

use vm_system_protocol::control::{
    ErrorCode, ExecCancel, ExecutionState, GivenAnswer, SessionKill, TaskSubmit,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ExecutionStatus, ResultValue, Run, Session, SessionStatus, Settings, TaskStatus,
};
use vm_system_tests::client::{Client, repl};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::programs::{code, id, result};
use vm_system_tests::watch::Watch;

/// Limits below the time that the tests wait.
fn impatient() -> Settings {
    let mut settings = Settings::default();
    settings.limits.wall_ms = 150;
    settings
}

fn bench(settings: Settings) -> (Daemon, Client, Session) {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let template = client.template(settings, &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("a session");
    (daemon, client, session)
}

/// Runs code to its first task.
fn run_to_task(client: &mut Client, session: &Session, code: &str) -> Run {
    match client.op(repl(session, code, true)).expect("it runs") {
        ExecutionState::Run(run) => run,
        ExecutionState::Execution(ended) => panic!("it does not wait: {ended:?}"),
    }
}

fn prompt(run: &Run) -> &str {
    assert_eq!(run.execution.status, ExecutionStatus::Waiting);
    run.task.as_ref().map_or("", |task| task.prompt.as_str())
}

/// Waits until an execution has ended.
fn ended(client: &mut Client, execution: &str) -> TaskStatus {
    let mut watch = Watch::begin();
    loop {
        let status = client.task(execution);
        if status.status.is_final() {
            return status;
        }
        watch.pause(|| format!("it still runs: {status:?}"));
    }
}

#[test]
fn session_pauses_in_the_middle_of_an_expression_and_keeps_its_state() {
    let (daemon, mut client, session) = bench(impatient());
    let run = run_to_task(&mut client, &session, "let got = CC('first?') + '-' + CC('second?'); got");
    assert_eq!(prompt(&run), "first?");
    assert!(
        run.program_id.is_none() && run.execution.events.as_ref().is_some_and(|events| events.len() == 2)
    );
    let id = id(&run);
    assert_eq!(client.task(&id).task.map(|task| task.prompt).as_deref(), Some("first?"));
    assert_eq!(client.tasks().len(), 1);
    assert_eq!(client.execution_record(&id).status, ExecutionStatus::Waiting);
    assert_eq!(code(client.eval(&session, "1")), ErrorCode::SessionBusy);
    // Ends at the same limit, after the question began to wait.
    let sibling =
        client.session(&session.template_id.to_string(), &daemon.place.worktree()).expect("a second session");
    let at_its_limit = client.eval(&sibling, "for (;;);").expect("it ends");
    assert_eq!(at_its_limit.status, ExecutionStatus::Timeout, "{at_its_limit:?}");
    assert_eq!(client.task(&id).status, ExecutionStatus::Waiting, "independent of wall_ms");
    let run = client.submit(&id, "a").expect("taken although more than wall_ms has passed");
    assert_eq!(prompt(&run), "second?");
    let other_task = TaskSubmit {
        execution: id.clone(),
        task: client.task(&id).task.map(|_| "00000000-0000-8000-8000-000000000000".to_owned()),
        result: GivenAnswer::Typed("b".to_owned()),
        wait: true,
    };
    assert_eq!(code(client.op(other_task)), ErrorCode::TaskNotPending);
    let run = client.submit(&id, "b").expect("taken");
    assert_eq!(result(&run), "\"a-b\"");
    assert_eq!(code(client.submit(&id, "c")), ErrorCode::TaskNotPending);
    assert!(client.tasks().is_empty());
    assert_eq!(client.eval(&session, "got").expect("free again").status, ExecutionStatus::Ok);
    daemon.stop();
}

#[test]
fn unfit_answers_defaults_and_timeouts_are_as_in_programs() {
    let (daemon, mut client, session) = bench(impatient());
    let code_of = |options: &str| format!("try {{ CC('?', {options}) }} catch (e) {{ e.name }}");
    let run = run_to_task(&mut client, &session, &code_of("{ schema: { type: 'number' }, retries: 1 }"));
    let refused = client.submit(&id(&run), "many").expect_err("unfit");
    assert_eq!(refused.code, ErrorCode::AnswerInvalid);
    assert_eq!(client.task(&id(&run)).task.map(|task| task.attempts), Some(1));
    assert_eq!(code(client.submit(&id(&run), "more")), ErrorCode::AnswerInvalid);
    assert_eq!(
        ended(&mut client, &id(&run)).result.as_ref().and_then(ResultValue::json_text),
        Some("\"CCError\"")
    );
    let run = run_to_task(&mut client, &session, &code_of("{ timeout_ms: 30, default: { n: 1 } }"));
    assert_eq!(
        ended(&mut client, &id(&run)).result.as_ref().and_then(ResultValue::json_text),
        Some("{\"n\":1}")
    );
    let run = run_to_task(&mut client, &session, &code_of("{ timeout_ms: 30 }"));
    let timed_out = ended(&mut client, &id(&run));
    assert_eq!(timed_out.result.as_ref().and_then(ResultValue::json_text), Some("\"CCTimeoutError\""));
    daemon.stop();
}

#[test]
fn task_may_be_named_by_its_id_and_the_answer_need_not_wait() {
    let (daemon, mut client, session) = bench(Settings::default());
    let run = run_to_task(&mut client, &session, "CC('first?') + CC('second?')");
    let task = run.task.as_ref().expect("a task").id.to_string();
    assert_eq!(client.task(&task).execution_id, run.execution.id);
    let submit = TaskSubmit {
        execution: task.clone(),
        task: None,
        result: GivenAnswer::Json(JsonText::from_untrusted("\"a\"".to_owned())),
        wait: false,
    };
    let taken = client.op(submit.clone()).expect("stored");
    assert_eq!((taken.execution.id, taken.execution.status), (run.execution.id, ExecutionStatus::Running));
    assert_eq!(code(client.op(submit)), ErrorCode::TaskNotPending);
    let mut watch = Watch::begin();
    while client.task(&id(&run)).task.is_none_or(|task| task.prompt != "second?") {
        watch.pause(|| "the second task does not appear".to_owned());
    }
    assert_eq!(result(&client.submit(&id(&run), "b").expect("taken")), "\"ab\"");
    daemon.stop();
}

#[test]
fn one_of_two_simultaneous_answers_is_accepted() {
    let (daemon, mut client, session) = bench(Settings::default());
    let run = run_to_task(&mut client, &session, "CC('?')");
    let submit = |client: &mut Client, answer: &str| {
        client.send(TaskSubmit {
            execution: id(&run),
            task: None,
            result: GivenAnswer::Typed(answer.to_owned()),
            wait: true,
        })
    };
    let mut other = daemon.client();
    let (first, second) = (submit(&mut client, "1"), submit(&mut other, "2"));
    let answers = [client.response(first).1, other.response(second).1];
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    let refused = answers.into_iter().find_map(Result::err).expect("one is refused");
    assert_eq!(refused.code, ErrorCode::TaskNotPending);
    daemon.stop();
}

#[test]
fn cancel_close_and_kill_end_a_session_that_waits() {
    let (daemon, mut client, session) = bench(Settings::default());
    let run = run_to_task(&mut client, &session, "CC('?')");
    client.op(ExecCancel { execution: id(&run) }).expect("cancelled");
    assert_eq!(ended(&mut client, &id(&run)).status, ExecutionStatus::Cancelled);
    assert!(client.tasks().is_empty());
    let run = run_to_task(&mut client, &session, "CC('?')");
    client.close(&session);
    assert_eq!(client.execution_record(&id(&run)).status, ExecutionStatus::Cancelled);
    assert!(client.tasks().is_empty());
    let template = client.template(Settings::default(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("a session");
    let run = run_to_task(&mut client, &session, "CC('?')");
    let kill = SessionKill { session: session.id.to_string(), signal: 9 };
    client.op(kill).expect("killed");
    let record = client.execution_record(&id(&run));
    assert_eq!(record.error.map(|error| error.code).as_deref(), Some("WORKER_DIED"));
    assert!(client.tasks().is_empty());
    daemon.stop();
}

#[test]
fn live_pause_that_was_lost_with_its_worker_ends_with_a_reason() {
    let (daemon, mut client, session) = bench(Settings::default());
    let run = run_to_task(&mut client, &session, "CC('?')");
    drop(client);
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let record = client.execution_record(&id(&run));
    let reason = record.error.and_then(|error| error.reason);
    assert_eq!((record.status, reason.as_deref()), (ExecutionStatus::Error, Some("host_restart")));
    assert_eq!(client.session_record(&session).status, SessionStatus::Crashed);
    assert!(client.tasks().is_empty());
    assert_eq!(code(client.submit(&id(&run), "late")), ErrorCode::TaskNotPending);
    daemon.stop();
}
