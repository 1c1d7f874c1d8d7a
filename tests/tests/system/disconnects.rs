//! Clients that vanish while they wait: an execution ends with the last of them if one has requested that, and a backup ends with its
//! client. A client that has only finished to send still waits.

use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Instant;
use vm_system_protocol::control::{
    BackupBegin, ExecCancel, ExecEvents, ExecGet, ExecStart, ServerFrame, Verb as _,
};
use vm_system_protocol::model::{Execution, ExecutionStatus, Limits, Session, Settings};
use vm_system_tests::client::{self, Client, value};
use vm_system_tests::command::command;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::mcp::Agent;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::{PATIENCE, as_both, program, watch};

as_both!(
    an_execution_ends_with_the_command_that_waits_for_it_if_that_has_requested_it,
    a_client_that_follows_keeps_an_execution_until_it_goes_too,
    a_request_over_http_decides_whether_its_execution_ends_with_it,
    a_repeated_request_keeps_the_execution_that_its_first_client_has_left,
    a_request_that_is_repeated_too_late_gets_the_cancelled_execution,
    an_evaluation_ends_with_the_agent_that_is_killed,
    an_evaluation_over_http_ends_with_an_agent_that_does_not_come_back,
    a_client_that_has_only_finished_to_send_gets_its_reply,
    a_backup_ends_with_the_connection_of_its_client,
);

/// It runs for longer than any test.
const ENDLESS: &str = "for (;;) {}";
/// It runs for longer than a client may be away, and ends.
const LONG: &str = "await new Promise((resolve) => setTimeout(resolve, 4000)); 'in time'";

fn scene(user: User) -> Scene {
    let limits = Limits { cpu_ms: 600_000, wall_ms: 600_000, mem_mb: 48, ..Limits::default() };
    let arguments = ["--listen".to_owned(), "127.0.0.1:0".to_owned()].into();
    let options = DaemonOptions { arguments, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(user), &options);
    Scene::on_daemon(daemon, Settings { limits, ..Settings::default() })
}

/// A command that waits.
fn waiting(daemon: &Daemon, arguments: &[&str]) -> Child {
    let mut command = command(&daemon.place, program::PRODUCT);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("started")
}

fn end(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

/// The execution that runs in a session, once one does and is stored.
fn running(client: &mut Client, session: &Session) -> String {
    let mut found = None;
    watch::wait_until(
        || {
            let running = client.inspect(session).expect("live").running_execution;
            found = running.map(|id| id.to_string());
            let stored = |execution: &String| client.op(ExecGet { execution: execution.clone() }).is_ok();
            found.as_ref().is_some_and(stored)
        },
        || "nothing runs".to_owned(),
    );
    found.expect("it runs")
}

/// Waits until an execution is cancelled because its last client has gone.
fn abandoned(client: &mut Client, execution: &str) -> Execution {
    let record = ended(client, execution);
    assert_eq!(record.status, ExecutionStatus::Cancelled);
    let error = record.error.clone().expect("a reason");
    assert!(error.message.contains("the client that waited for it has disconnected"), "{}", error.message);
    record
}

fn ended(client: &mut Client, execution: &str) -> Execution {
    let mut record = client.execution_record(execution);
    watch::wait_until(
        || {
            record = client.execution_record(execution);
            record.status.is_final()
        },
        || format!("{execution} still runs"),
    );
    record
}

fn runs(client: &mut Client, execution: &str) {
    assert_eq!(client.execution_record(execution).status, ExecutionStatus::Running);
    client.op(ExecCancel { execution: execution.to_owned() }).expect("cancelled");
}

fn follow(daemon: &Daemon, execution: &str) -> Client {
    let mut follower = daemon.client();
    follower.send(ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: true });
    // The follower has its first events: from now on it follows.
    let _ = follower.frame();
    follower
}

/// The body of `POST /executions/repl`.
fn body(session: &Session, code: &str) -> Value {
    json!({ "session_id": session.id.to_string(), "input": code })
}

/// Sends the request that evaluates code over a connection of HTTP, and does not read the response.
fn evaluate(http: &mut Http, query: &str, session: &Session, code: &str) {
    let path = format!("/api/v1/executions/repl{query}");
    let bytes = http.request_bytes("POST", &path, &[], Some(&body(session, code).to_string()));
    http.send(&bytes);
}

const CANCEL: &str = "?cancel_on_disconnect=true";

mod cases {
    use super::*;

    pub(super) fn an_execution_ends_with_the_command_that_waits_for_it_if_that_has_requested_it(user: User) {
        let mut scene = scene(user);
        let [kept, ended] = [scene.session(), scene.session()];
        let start = |session: &Session, action: &str| {
            let id = session.id.to_string();
            waiting(&scene.daemon, &["exec", "repl", &id, ENDLESS, "--on-disconnect", action])
        };
        let of_kept = start(&kept, "continue");
        let in_kept = running(&mut scene.client, &kept);
        end(of_kept);
        // This one was begun and has vanished after the other.
        let of_ended = start(&ended, "cancel");
        let in_ended = running(&mut scene.client, &ended);
        end(of_ended);
        abandoned(&mut scene.client, &in_ended);
        runs(&mut scene.client, &in_kept);
        let audit = scene.daemon.cli(&["ops", "audit", "--output", "csv"]).ok();
        let line = format!("control,exec cancel-on-disconnect,{in_ended},ok");
        assert!(audit.contains(&line) && audit.matches("cancel-on-disconnect").count() == 1, "{audit}");
        assert_eq!(scene.client.preview_of(&ended, "6 * 7"), "42", "the session is usable");
    }

    pub(super) fn a_client_that_follows_keeps_an_execution_until_it_goes_too(user: User) {
        let mut scene = scene(user);
        let [followed, streamed, other] = [scene.session(), scene.session(), scene.session()];
        let begin = |session: &Session| {
            let mut client = scene.daemon.client();
            client.cancel_on_disconnect = true;
            client.send(client::repl(session, ENDLESS, true));
            client
        };
        let (of_followed, of_streamed) = (begin(&followed), begin(&streamed));
        let [in_followed, in_streamed] =
            [&followed, &streamed].map(|session| running(&mut scene.client, session));
        let follower = follow(&scene.daemon, &in_followed);
        let mut stream = scene.daemon.http();
        let path = format!("/api/v1/executions/{in_streamed}/events");
        let bytes = stream.request_bytes("GET", &path, &[("accept", "text/event-stream")], None);
        stream.send(&bytes);
        assert_eq!(stream.head().expect("a response").0, 200);
        drop((of_followed, of_streamed));
        // One without a follower that has vanished later is cancelled first.
        let of_other = begin(&other);
        let in_other = running(&mut scene.client, &other);
        drop(of_other);
        abandoned(&mut scene.client, &in_other);
        for execution in [&in_followed, &in_streamed] {
            assert_eq!(scene.client.execution_record(execution).status, ExecutionStatus::Running);
        }
        drop((follower, stream));
        abandoned(&mut scene.client, &in_followed);
        abandoned(&mut scene.client, &in_streamed);
    }

    pub(super) fn a_request_over_http_decides_whether_its_execution_ends_with_it(user: User) {
        let mut scene = scene(user);
        let address = scene.daemon.addresses()[0];
        for tcp in [false, true] {
            let [kept, ended] = [scene.session(), scene.session()];
            let begin = |session: &Session, query: &str| {
                let mut http = if tcp { Http::tcp(address) } else { scene.daemon.http() };
                evaluate(&mut http, query, session, ENDLESS);
                http
            };
            let (of_kept, of_ended) = (begin(&kept, ""), begin(&ended, CANCEL));
            let [in_kept, in_ended] = [&kept, &ended].map(|session| running(&mut scene.client, session));
            drop((of_kept, of_ended));
            abandoned(&mut scene.client, &in_ended);
            runs(&mut scene.client, &in_kept);
        }
        let session = scene.session();
        let path = format!("/api/v1/executions/repl{CANCEL}&wait=false");
        assert_eq!(scene.daemon.http().post(&path, &body(&session, "1")).status, 400, "nothing waits");
    }

    pub(super) fn a_repeated_request_keeps_the_execution_that_its_first_client_has_left(user: User) {
        let mut scene = scene(user);
        let [kept, ended] = [scene.session(), scene.session()];
        let begin = |session: &Session, key: &str| {
            let id = session.id.to_string();
            let key = ["--on-disconnect", "cancel", "--idempotency-key", key];
            waiting(&scene.daemon, &[&["exec", "repl", &id, ENDLESS][..], &key].concat())
        };
        let first = begin(&kept, "a");
        let in_kept = running(&mut scene.client, &kept);
        let second = begin(&kept, "a");
        // The second one may come after the first one has left: a client has some time to come back.
        end(first);
        let third = begin(&ended, "b");
        let in_ended = running(&mut scene.client, &ended);
        end(third);
        abandoned(&mut scene.client, &in_ended);
        assert_eq!(scene.client.execution_record(&in_kept).status, ExecutionStatus::Running);
        end(second);
        abandoned(&mut scene.client, &in_kept);
    }

    pub(super) fn a_request_that_is_repeated_too_late_gets_the_cancelled_execution(user: User) {
        let mut scene = scene(user);
        let session = scene.session();
        let evaluated = body(&session, ENDLESS).to_string();
        let path = format!("/api/v1/executions/repl{CANCEL}");
        let key = [("idempotency-key", "late")];
        let mut first = scene.daemon.http();
        let bytes = first.request_bytes("POST", &path, &key, Some(&evaluated));
        first.send(&bytes);
        let execution = running(&mut scene.client, &session);
        drop(first);
        abandoned(&mut scene.client, &execution);
        // The code has run in part: it does not run again, and the response says why it has ended.
        let again = scene.daemon.http().request("POST", "/api/v1/executions/repl", &key, Some(&evaluated));
        let again = again.json();
        assert_eq!(
            (again["id"].as_str(), again["status"].as_str()),
            (Some(execution.as_str()), Some("cancelled"))
        );
        let why = again["error"]["message"].as_str().expect("a reason");
        assert!(why.contains("the client that waited for it has disconnected"), "{why}");
    }

    pub(super) fn an_evaluation_ends_with_the_agent_that_is_killed(user: User) {
        let mut scene = scene(user);
        let session = scene.session();
        let mut agent = Agent::start(&scene.daemon.place, &[]);
        let arguments = json!({ "sessionId": session.id.to_string(), "code": ENDLESS });
        agent.send_request("tools/call", json!({ "name": "session_eval", "arguments": arguments }));
        let execution = running(&mut scene.client, &session);
        // The wait of the agent is a request of its own, after that which has begun the execution.
        let at_work = scene.session();
        agent.data("session_eval", json!({ "sessionId": at_work.id.to_string(), "code": "1" }));
        // Kills the process.
        drop(agent);
        abandoned(&mut scene.client, &execution);
    }

    pub(super) fn an_evaluation_over_http_ends_with_an_agent_that_does_not_come_back(user: User) {
        let mut scene = scene(user);
        let [of_older, of_newer] = [scene.session(), scene.session()];
        let call = |session: &Session| {
            let arguments = json!({ "sessionId": session.id.to_string(), "code": ENDLESS });
            let params = json!({ "name": "session_eval", "arguments": arguments });
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })
        };
        let accept = ("accept", "application/json, text/event-stream");
        let mut older = scene.daemon.http();
        let about = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let begun = older.request("POST", "/mcp", &[accept], Some(&begin.to_string()));
        let id = begun.field("mcp-session-id").expect("a session").to_owned();
        let fields = [accept, ("mcp-session-id", id.as_str())];
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(older.request("POST", "/mcp", &fields, Some(&begun.to_string())).status, 202);
        let bytes = older.request_bytes("POST", "/mcp", &fields, Some(&call(&of_older).to_string()));
        older.send(&bytes);
        let in_older = running(&mut scene.client, &of_older);
        drop(older);
        // In the newer generation the end of the connection is the cancellation of the request.
        let mut newer = scene.daemon.http();
        let mut message = call(&of_newer);
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let fields = [
            accept,
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "session_eval"),
        ];
        let bytes = newer.request_bytes("POST", "/mcp", &fields, Some(&message.to_string()));
        newer.send(&bytes);
        let in_newer = running(&mut scene.client, &of_newer);
        drop(newer);
        assert_eq!(ended(&mut scene.client, &in_newer).status, ExecutionStatus::Cancelled);
        abandoned(&mut scene.client, &in_older);
    }

    pub(super) fn a_client_that_has_only_finished_to_send_gets_its_reply(user: User) {
        let mut scene = scene(user);
        let sessions: [Session; 5] = std::array::from_fn(|_| scene.session());
        let [in_control, in_unix, in_tcp, gone_control, gone_unix] = &sessions;
        let control = |session: &Session, code: &str| {
            let mut client = scene.daemon.client();
            client.cancel_on_disconnect = true;
            let id = client.send(client::repl(session, code, true));
            client.stream.shutdown(Shutdown::Write).expect("finished");
            (client, id)
        };
        let request = |query: &str, session: &Session, code: &str| {
            let path = format!("/api/v1/executions/repl{query}");
            scene.daemon.http().request_bytes("POST", &path, &[], Some(&body(session, code).to_string()))
        };
        let unix = |session: &Session, code: &str| {
            let mut stream = UnixStream::connect(scene.daemon.place.http_socket()).expect("connected");
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            stream.write_all(&request(CANCEL, session, code)).expect("sent");
            stream.shutdown(Shutdown::Write).expect("finished");
            stream
        };
        let (mut of_control, id) = control(in_control, LONG);
        let mut of_unix = unix(in_unix, LONG);
        // Over TCP the end of the input is the end of the client.
        let mut of_tcp = TcpStream::connect(scene.daemon.addresses()[0]).expect("connected");
        of_tcp.write_all(&request(CANCEL, in_tcp, ENDLESS)).expect("sent");
        let execution_of_tcp = running(&mut scene.client, in_tcp);
        of_tcp.shutdown(Shutdown::Write).expect("finished");
        // These have finished to send, and go later.
        let (of_gone_control, _) = control(gone_control, ENDLESS);
        let of_gone_unix = unix(gone_unix, ENDLESS);
        let gone = [gone_control, gone_unix].map(|session| running(&mut scene.client, session));
        let reply = loop {
            match of_control.frame() {
                ServerFrame::Events { .. } => {}
                ServerFrame::Reply { id: of, result } if of == id => break result,
                ServerFrame::Reply { .. } => panic!("a reply to another request"),
            }
        };
        let Ok(Ok(state)) = reply.map(ExecStart::reply_from) else { panic!("another reply") };
        let execution = state.execution();
        assert_eq!(execution.status, ExecutionStatus::Ok, "{:?}", execution.error);
        let stored = scene.client.events(&execution.id.to_string());
        assert_eq!(value(&stored), Some("'in time'"));
        let mut response = String::new();
        of_unix.read_to_string(&mut response).expect("a response, and then its end");
        assert!(response.starts_with("HTTP/1.1 201") && response.contains("in time"), "{response}");
        abandoned(&mut scene.client, &execution_of_tcp);
        for execution in &gone {
            assert_eq!(scene.client.execution_record(execution).status, ExecutionStatus::Running);
        }
        drop((of_gone_control, of_gone_unix));
        for execution in &gone {
            abandoned(&mut scene.client, execution);
        }
    }

    pub(super) fn a_backup_ends_with_the_connection_of_its_client(user: User) {
        let daemon = Daemon::start(user);
        let begin = || daemon.client().op(BackupBegin);
        let mut client = daemon.client();
        let Ok(_) = client.op(BackupBegin) else { panic!("another reply") };
        let refused = begin().expect_err("one at a time");
        assert!(refused.message.contains("another backup"), "{}", refused.message);
        let gone = Instant::now();
        drop(client);
        watch::wait_until(
            || begin().is_ok(),
            || "the backup of a client that has gone is in progress".to_owned(),
        );
        assert!(gone.elapsed() < PATIENCE / 2, "it was given up because nobody read it");
        daemon.stop();
    }
}
