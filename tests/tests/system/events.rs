//! Events for programs through the real daemon: who gets them, what is kept, what is refused, and repeated requests.

use serde_json::json;
use vm_system_protocol::control::{EmittedEvent, ErrorCode, EventEmit, OpError, ProgramStart};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionStatus, Run, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::mcp::{Agent, text};
use vm_system_tests::place::User;
use vm_system_tests::programs::{code, ended, id, result};
use vm_system_tests::watch::Watch;

/// Waits for events of the name `paid` until it has as many as its first argument says.
const PAID: &str = "async function main() {
    const all = [];
    while (all.length < Number(args[0] ?? 1)) all.push(await waitFor('paid'));
    return all;
}";

fn event(name: &str, event: &str, execution: Option<&str>) -> EventEmit {
    let event = JsonText::from_untrusted(event.to_owned());
    EventEmit { name: name.to_owned(), event, execution: execution.map(str::to_owned) }
}

/// Sends an event to one execution; whether that waited for it.
#[track_caller]
fn emit(client: &mut Client, execution: &str, name: &str, content: &str) -> bool {
    let emitted = client.op(event(name, content, Some(execution))).expect("it is there");
    assert_eq!(emitted.received, 1);
    emitted.receivers[0].awaited
}

/// Starts the loaded program; it waits when this returns.
fn start(client: &mut Client, name: &str, count: &str) -> Run {
    let (name, args) = (Some(name.to_owned()), vec![count.to_owned()]);
    let run = client
        .start_program(ProgramStart { name, args, wait: true, ..ProgramStart::default() })
        .expect("started");
    assert_eq!(run.waiting_for.map(|waiting| waiting.events), Some(1), "{run:?}");
    run
}

/// Waits until an execution waits for an event.
fn until_it_waits(client: &mut Client, execution: &str) {
    let mut watch = Watch::begin();
    loop {
        let run = client.get_run(execution);
        let waits = run.waiting_for.is_some_and(|waiting| waiting.events == 1);
        if run.execution.status == ExecutionStatus::Waiting && waits {
            return;
        }
        watch.pause(|| format!("it does not wait: {run:?}"));
    }
}

fn names(emitted: &EmittedEvent) -> Vec<&str> {
    let mut names: Vec<&str> = emitted.receivers.iter().filter_map(|one| one.name.as_deref()).collect();
    names.sort_unstable();
    names
}

fn keyed(client: &mut Client, verb: EventEmit, key: &str) -> Result<EmittedEvent, OpError> {
    let sent = client.send_with_key(verb, Some(key));
    client.reply::<EventEmit>(sent)
}

#[test]
fn an_event_is_used_at_once_or_kept_in_its_order_also_over_kills() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        const first = await waitFor('paid');
        CC('hold');
        return [first, await waitFor('paid'), await waitFor('other'), await waitFor('paid')];
    }";
    let run = client.begin(source, "run");
    assert_eq!(run.waiting_for.map(|waiting| waiting.events), Some(1));
    assert!(emit(&mut client, "run", "paid", "{\"n\": 1}"), "it waits for it");
    let mut watch = Watch::begin();
    while client.task("run").task.is_none() {
        watch.pause(|| "it does not pause".to_owned());
    }
    for (name, content) in [("paid", "2"), ("paid", "\"three\""), ("never", "0"), ("other", "null")] {
        assert!(!emit(&mut client, "run", name, content), "it keeps {name}");
    }
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let run = client.submit("run", "go").expect("it is pending");
    assert_eq!(result(&run), r#"[{"n":1},2,null,"three"]"#);
    let late = client.op(event("paid", "4", Some("run"))).expect_err("it has ended");
    assert_eq!(late.code, ErrorCode::Conflict);
    assert!(late.message.contains("has ended"), "{late:?}");
    let audit = daemon.cli(&["ops", "audit", "--output", "json"]).ok();
    assert_eq!(audit.matches("\"event emit\"").count(), 6, "each event and the refusal: {audit}");
    daemon.stop();
}

#[test]
fn events_that_no_program_can_have_are_refused_by_name() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.begin("function main() { CC('hold') }", "run");
    let long = "x".repeat(257);
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    for (name, content, why) in [
        ("", "1", "1 to 256 bytes"),
        (&long, "1", "1 to 256 bytes"),
        ("e", &large, "more than 1048576 bytes"),
        ("e", "one", "not JSON"),
        ("e", "1e400", "out of range"),
        ("e", "9007199254740993", "send it as a string"),
    ] {
        let refused = client.op(event(name, content, Some("run"))).expect_err("refused");
        assert_eq!(refused.code, ErrorCode::ValidationError);
        assert!(refused.message.contains(why), "{refused:?}");
    }
    let unknown = client.op(event("e", "1", Some("nobody")));
    assert_eq!(code(unknown), ErrorCode::ExecutionNotFound);
    let template = client.template(Settings::default(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("a session");
    let execution = client.eval(&session, "1").expect("runs").id.to_string();
    assert_eq!(code(client.op(event("e", "1", Some(&execution)))), ErrorCode::EngineUnsupported);

    // A mailbox has bounds of its own.
    for _ in 0..1_000 {
        assert!(!emit(&mut client, "run", "e", "1"));
    }
    let full = client.op(event("e", "1", Some("run"))).expect_err("full");
    assert_eq!(full.code, ErrorCode::MailboxFull);
    assert!(full.hint.is_some_and(|hint| hint.contains("waitFor")), "it says what to do");
    assert_eq!(client.op(event("e", "1", None)).map(|emitted| emitted.received), Ok(0), "it does not wait");
    daemon.stop();
}

#[test]
fn an_event_for_all_reaches_those_that_wait_and_no_mailbox() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.begin("async function main() { CC('hold'); return await waitFor('paid') }", "later");
    client.load(PAID);
    for name in ["a", "b", "c"] {
        start(&mut client, name, "2");
    }
    let emitted = client.op(event("paid", "1", None)).expect("some wait");
    assert_eq!((emitted.received, names(&emitted)), (3, vec!["a", "b", "c"]));
    assert!(emitted.receivers.iter().all(|receiver| receiver.awaited));
    let none = client.op(event("paids", "1", None)).expect("no error");
    assert_eq!((none.received, none.receivers.len()), (0, 0), "another name");
    let run = client.submit("later", "go").expect("it is pending");
    assert_eq!(run.waiting_for.map(|waiting| waiting.events), Some(1), "nothing was kept for it: {run:?}");
    for name in ["a", "b", "c"] {
        until_it_waits(&mut client, name);
    }
    let emitted = client.op(event("paid", "2", None)).expect("some wait");
    assert_eq!(names(&emitted), ["a", "b", "c", "later"]);
    for name in ["a", "b", "c"] {
        assert_eq!(result(&ended(&mut client, name)), "[1,2]");
    }
    daemon.stop();
}

#[test]
fn a_repeated_request_gives_no_execution_its_event_twice() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(PAID);
    start(&mut client, "one", "3");
    let first = keyed(&mut client, event("paid", "1", Some("one")), "k").expect("it waits");
    assert!(first.receivers[0].awaited);
    until_it_waits(&mut client, "one");
    // The response is in the commit of the event: also a daemon that was killed has it.
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    assert_eq!(keyed(&mut client, event("paid", "1", Some("one")), "k"), Ok(first));
    let other = keyed(&mut client, event("paid", "2", Some("one")), "k");
    assert_eq!(code(other), ErrorCode::IdempotencyMismatch);

    start(&mut client, "two", "3");
    let all = keyed(&mut client, event("paid", "2", None), "all").expect("both wait");
    assert_eq!(names(&all), ["one", "two"]);
    for name in ["one", "two"] {
        until_it_waits(&mut client, name);
    }
    assert_eq!(keyed(&mut client, event("paid", "2", None), "all"), Ok(all));
    assert!(emit(&mut client, "one", "paid", "3"));
    assert_eq!(result(&ended(&mut client, "one")), "[1,2,3]");
    assert!(emit(&mut client, "two", "paid", "3"));
    until_it_waits(&mut client, "two");
    assert!(emit(&mut client, "two", "paid", "4"));
    assert_eq!(result(&ended(&mut client, "two")), "[2,3,4]");
    daemon.stop();
}

/// The daemon is killed while it sends an event: the request is repeated until it has its response.
#[test]
fn an_event_for_all_whose_daemon_is_killed_goes_on_with_those_that_have_not_got_it() {
    const EXECUTIONS: usize = 40;
    let mut daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(PAID);
    for number in 0..EXECUTIONS {
        start(&mut client, &format!("run {number}"), "2");
    }
    // One has got it, and the response of the request is not stored yet.
    client.send_with_key(event("paid", "1", None), Some("all"));
    let mut observer = daemon.client();
    let mut watch = Watch::begin();
    while (0..EXECUTIONS).all(|number| observer.checkpoints(&format!("run {number}")).len() < 2) {
        watch.pause(|| "nobody gets the event".to_owned());
    }
    drop((client, observer));
    let place = daemon.kill_everything();
    daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let emitted = keyed(&mut client, event("paid", "1", None), "all").expect("the rest");
    assert_eq!(emitted.received, EXECUTIONS as u64, "those of the first request, too");
    for number in 0..EXECUTIONS {
        until_it_waits(&mut client, &format!("run {number}"));
    }
    let last = client.op(event("paid", "2", None)).expect("all wait again");
    assert_eq!(last.received, EXECUTIONS as u64);
    for number in 0..EXECUTIONS {
        assert_eq!(result(&ended(&mut client, &format!("run {number}"))), "[1,2]", "once each");
    }
    daemon.stop();
}

#[test]
fn a_large_event_reaches_more_executions_than_get_it_at_a_time() {
    const EXECUTIONS: u64 = 70;
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load("async function main() { return (await waitFor('paid')).length }");
    for number in 0..EXECUTIONS {
        start(&mut client, &format!("run {number}"), "");
    }
    let largest = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    let refused = client.op(event("paid", &largest, None)).expect_err("70 MiB in all");
    assert!(refused.message.contains("70 executions wait"), "{refused:?}");
    let content = format!("\"{}\"", "x".repeat(64 << 10));
    assert_eq!(client.op(event("paid", &content, None)).map(|emitted| emitted.received), Ok(EXECUTIONS));
    for number in 0..EXECUTIONS {
        assert_eq!(result(&ended(&mut client, &format!("run {number}"))), "65536");
    }
    daemon.stop();
}

#[test]
fn all_apis_send_events() {
    let daemon = Daemon::start(User::AsStarted);
    let (mut client, mut http) = (daemon.client(), daemon.http());
    client.load(PAID);
    let run = start(&mut client, "run", "4");
    let line = daemon.cli(&["event", "emit", "paid", "{\"by\": \"cli\"}", "--execution", "run"]).ok();
    assert_eq!(line, format!("Received: {} (run)\n", id(&run)));
    until_it_waits(&mut client, "run");
    let nobody = daemon.cli(&["event", "emit", "unpaid", "1", "--all"]);
    assert_eq!((nobody.code, nobody.stderr.as_str()), (Some(0), "No execution waits for this event.\n"));
    let kept = daemon.cli(&["event", "emit", "unpaid", "1", "--execution", "run"]).ok();
    assert_eq!(kept, format!("Kept until it waits for it: {} (run)\n", id(&run)));
    assert_eq!(daemon.cli(&["event", "emit", "paid", "1", "-q", "--all"]).ok(), format!("{}\n", id(&run)));
    daemon.cli(&["event", "emit", "paid", "1"]).fails(2);
    daemon.cli(&["event", "emit", "paid", "1", "--all", "--execution", "run"]).fails(2);
    until_it_waits(&mut client, "run");

    let answer =
        http.post("/api/v1/events", &json!({ "name": "paid", "event": null, "execution_id": "run" }));
    let receiver = json!({ "execution_id": id(&run), "name": "run", "awaited": true });
    assert_eq!(answer.json(), json!({ "received": 1, "receivers": [receiver] }), "{}", answer.text());
    for body in [
        json!({ "name": "paid", "event": 1 }),
        json!({ "name": "paid", "event": 1, "execution_id": "run", "all": true }),
        json!({ "name": "paid", "all": true }),
        json!({ "event": 1, "all": true }),
        json!({ "name": "", "event": 1, "all": true }),
    ] {
        assert_eq!(http.post("/api/v1/events", &body).status, 400, "{body}");
    }
    until_it_waits(&mut client, "run");

    let mut agent = Agent::start(&daemon.place, &[]);
    let missing = agent.fails("emit_event", json!({ "name": "paid", "event": 1 }));
    assert!(missing.contains("No current execution"), "{missing}");
    let call = json!({ "name": "paid", "event": { "by": "mcp" }, "executionId": "run" });
    let emitted = agent.tool("emit_event", call);
    assert_eq!(text(&emitted), "Event received: run waited for it");
    assert_eq!(emitted["structuredContent"]["received"], 1);
    assert_eq!(result(&ended(&mut client, "run")), r#"[{"by":"cli"},1,null,{"by":"mcp"}]"#);
    agent.close();
    daemon.stop();
}
