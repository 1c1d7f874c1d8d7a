//! Streams of events over HTTP.

use serde_json::{Value, json};
use vm_system_protocol::model::{Session, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::http::Http;
use vm_system_tests::place::User;

const SSE: &[(&str, &str)] = &[("accept", "text/event-stream")];

fn session(daemon: &Daemon) -> (Client, Session) {
    let mut client = daemon.client();
    let settings = Settings::default();
    let template = client.template(settings, &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("session");
    (client, session)
}

/// Starts code; the path of its events.
fn start(http: &mut Http, session: &Session, code: &str) -> String {
    let body = json!({ "session_id": session.id.to_string(), "input": code });
    let started = http.post("/api/v1/executions/repl?wait=false", &body);
    assert_eq!(started.status, 202, "{}", started.text());
    format!("/api/v1/executions/{}/events", started.json()["id"].as_str().expect("an id"))
}

/// Opens a stream; the head must be that of an event stream.
fn open(http: &mut Http, path: &str, fields: &[(&str, &str)]) {
    let fields: Vec<(&str, &str)> = SSE.iter().chain(fields).copied().collect();
    http.send(&http.request_bytes("GET", path, &fields, None));
    let (status, head) = http.head().expect("a head");
    assert_eq!(status, 200);
    assert!(head.contains(&("content-type".to_owned(), "text/event-stream".to_owned())), "{head:?}");
}

/// The blocks of a stream until its end, or until `enough`.
fn blocks(http: &mut Http, enough: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut text = String::new();
    loop {
        let blocks: Vec<String> =
            text.split_inclusive("\n\n").filter(|block| block.ends_with("\n\n")).map(str::to_owned).collect();
        if enough(&blocks) {
            return blocks;
        }
        match http.chunk() {
            Some(chunk) => text.push_str(&String::from_utf8(chunk).expect("text")),
            None => return blocks,
        }
    }
}

fn numbers(blocks: &[String]) -> Vec<u64> {
    let number = |block: &String| block.strip_prefix("id: ")?.lines().next()?.parse().ok();
    blocks.iter().filter_map(number).collect()
}

fn data(block: &str) -> Value {
    let line = block.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
    serde_json::from_str(line).expect("json")
}

#[test]
fn a_stream_has_stored_events_new_events_and_the_end() {
    let daemon = Daemon::start(User::AsStarted);
    let (_client, session) = session(&daemon);
    let mut http = daemon.http();
    let path = start(
        &mut http,
        &session,
        "for (let i = 0; i < 5; i++) { console.log('tick', i); await new Promise(r => setTimeout(r, 5)) } 'done'",
    );
    let mut stream = daemon.http();
    open(&mut stream, &path, &[]);
    let blocks = blocks(&mut stream, |_| false);
    assert_eq!(numbers(&blocks), [1, 2, 3, 4, 5, 6, 7], "{blocks:?}");
    let last = blocks.last().expect("blocks");
    assert!(last.starts_with("event: end\n"), "{last}");
    assert_eq!(data(last)["status"], "ok");
    let listed = http.get(&path).json();
    let streamed: Vec<Value> =
        blocks.iter().filter(|block| block.starts_with("id: ")).map(|block| data(block)).collect();
    assert_eq!(listed, Value::Array(streamed), "the same events as in the list");
    // The connection can be used after a stream.
    assert_eq!(stream.get("/api/v1/health").status, 200);
    daemon.stop();
}

#[test]
fn stream_continues_after_the_last_event_and_marks_its_end() {
    let daemon = Daemon::start(User::AsStarted);
    let (mut client, session) = session(&daemon);
    let mut http = daemon.http();
    let path = start(
        &mut http,
        &session,
        "console.log(1); console.log(2); for (;;) await new Promise(r => setTimeout(r, 1))",
    );
    let mut first = daemon.http();
    open(&mut first, &path, &[]);
    let seen = blocks(&mut first, |blocks| numbers(blocks).len() == 3);
    assert_eq!(numbers(&seen), [1, 2, 3]);
    drop(first);
    let mut second = daemon.http();
    open(&mut second, &path, &[("last-event-id", "2")]);
    let seen = blocks(&mut second, |blocks| !numbers(blocks).is_empty());
    assert_eq!(numbers(&seen), [3]);
    client.close(&session);
    let rest = blocks(&mut second, |_| false);
    assert_eq!(data(rest.last().expect("the end"))["status"], "cancelled", "{rest:?}");
    let over = http.request("GET", &path, &[SSE[0], ("last-event-id", "3")], None);
    assert!([200, 204].contains(&over.status));
    let over = http.request("GET", &path, &[SSE[0], ("last-event-id", "1000")], None);
    assert_eq!(over.status, 204, "{}", over.text());
    for bad in ["x", "-1"] {
        let refused = http.request("GET", &path, &[SSE[0], ("last-event-id", bad)], None);
        assert_eq!(refused.code(), "VALIDATION_ERROR", "{bad}");
    }
    let unknown = "/api/v1/executions/00000000-0000-4000-8000-000000000000/events";
    assert_eq!(http.request("GET", unknown, SSE, None).code(), "EXECUTION_NOT_FOUND");
    daemon.stop();
}

#[test]
fn readers_that_do_not_read_delay_no_other_reader_and_no_stop() {
    let daemon = Daemon::start(User::AsStarted);
    let (_client, session) = session(&daemon);
    let mut http = daemon.http();
    let path =
        start(&mut http, &session, "for (let i = 0; i < 400; i++) console.log('x'.repeat(1000)); 'done'");
    let mut lazy: Vec<Http> = (0..8).map(|_| daemon.http()).collect();
    for reader in &mut lazy {
        reader.send(&reader.request_bytes("GET", &path, SSE, None));
    }
    let mut eager = daemon.http();
    open(&mut eager, &path, &[]);
    let blocks = blocks(&mut eager, |_| false);
    assert_eq!(numbers(&blocks).len(), 402);
    drop(eager);
    let silent = start(&mut http, &session, "await new Promise(() => {})");
    open(&mut http, &silent, &[]);
    // The clients `lazy` and `http` are still connected.
    daemon.stop();
}

#[test]
fn a_stream_of_a_program_continues_across_its_pauses() {
    const SOURCE: &str =
        "console.log('begin'); const answer = CC('what?'); console.log('got', answer); CC('and?');";
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let body = json!({ "name": "program", "source": SOURCE });
    assert_eq!(http.post("/api/v1/programs", &body).status, 201);
    let started = http.post("/api/v1/executions/program", &json!({ "name": "program" }));
    assert_eq!(started.status, 201, "{}", started.text());
    let path = format!("/api/v1/executions/{}", started.json()["id"].as_str().expect("an id"));
    let mut stream = daemon.http();
    open(&mut stream, &format!("{path}/events"), &[]);
    let has = |text: &'static str| move |blocks: &[String]| blocks.iter().any(|block| block.contains(text));
    let before = blocks(&mut stream, has("what?"));
    let mut answer = |result: &str| http.post(&format!("{path}/task"), &json!({ "result": result })).status;
    assert_eq!(answer("this"), 200);
    let after = blocks(&mut stream, has("and?"));
    assert!(has("got this")(&after), "{after:?}");
    assert_eq!([numbers(&before), numbers(&after)].concat(), [1, 2, 3, 4]);
    assert_eq!(answer("that"), 200);
    let rest = blocks(&mut stream, |_| false);
    let last = rest.last().expect("blocks");
    assert!(last.starts_with("event: end\n"), "{last}");
    assert_eq!(data(last)["status"], "ok");
    daemon.stop();
}
