//! `fetch` in durable programs, through the real daemon: what rows allow, records, limits, secrets, and requests whose outcome is
//! unknown because a process was killed.

mod held;

use crate::http_requests::server::Server;
use held::HeldServer;
use nix::libc::SIGKILL;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use vm_system_protocol::control::{
    AuditList, ExecCancel, NewCapability, ProgramStart, TemplateAddCapability,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    CapabilityKind, EventPayload, ExecutionStatus, HttpRecord, Limits, Run, Settings, TaskStatus,
};
use vm_system_tests::as_both;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::observe;
use vm_system_tests::place::{TestDir, User, write_secret};
use vm_system_tests::programs::{NAME, ended, id, result};
use vm_system_tests::watch::Watch;

as_both!(
    a_program_requests_what_a_row_allows,
    a_request_of_unknown_outcome_is_repeated_once_with_the_same_key_after_the_daemon_was_killed,
    secrets_reach_their_host_and_are_not_stored,
);

/// The options with which the operator of all tests permits requests.
fn options(more: &[&str]) -> DaemonOptions {
    let wide = ["--allow-net", "127.0.0.1:*", "--allow-net-private", "127.0.0.1:*"];
    let arguments = wide.iter().chain(more).map(|text| (*text).to_owned()).collect();
    DaemonOptions { arguments, ..DaemonOptions::default() }
}

fn daemon(user: User) -> Daemon {
    Daemon::start_with(TestDir::new(user), &options(&[]))
}

/// A template of programs with these rows of kind `net`; its id.
fn template(client: &mut Client, rows: &[String]) -> String {
    let template = client.program_template(Settings::default());
    for (number, row) in rows.iter().enumerate() {
        add_row(client, &template, &format!("row-{number}"), row);
    }
    template
}

fn add_row(client: &mut Client, template: &str, name: &str, row: &str) {
    let config = JsonText::from_untrusted(row.to_owned());
    let (kind, name) = (CapabilityKind::Net, name.to_owned());
    let capability = NewCapability { kind, name, enabled: true, config };
    client.op(TemplateAddCapability { template: template.to_owned(), capability }).expect("a row");
}

/// A row that allows a server of a test, with further keys.
fn row(address: impl std::fmt::Display, more: &str) -> String {
    format!(r#"{{"allow":["{address}"],"private":true{more}}}"#)
}

/// Runs a program with these rows until it waits or has ended.
fn run(client: &mut Client, rows: &[String], source: &str) -> Run {
    begin(client, rows, source, &[], true)
}

fn begin(client: &mut Client, rows: &[String], source: &str, args: &[String], wait: bool) -> Run {
    let template = Some(template(client, rows));
    client.load(source);
    client
        .start_program(ProgramStart { template, args: args.to_vec(), wait, ..ProgramStart::default() })
        .expect("started")
}

/// Waits until a checkpoint with this cause is stored.
fn until_checkpoint(client: &mut Client, execution: &str, cause: &str) {
    let mut watch = Watch::begin();
    while !client.checkpoints(execution).iter().any(|checkpoint| checkpoint.cause == cause) {
        watch.pause(|| format!("no checkpoint {cause}"));
    }
}

fn records(client: &mut Client, execution: &str) -> Vec<HttpRecord> {
    let events = client.events(execution).into_iter();
    let found = events.filter_map(|event| match event.payload {
        EventPayload::Http(record) => Some(*record),
        _ => None,
    });
    found.collect()
}

/// Lines of the audit log about requests, newest first: subject and outcome.
fn audit(client: &mut Client) -> Vec<(String, String)> {
    let Ok(lines) = client.op(AuditList { before: None, limit: 100 }) else { panic!("an audit log") };
    let http = lines.into_iter().filter(|line| line.verb == "http");
    http.map(|line| (line.subject, line.outcome)).collect()
}

/// Waits until the audit log has so many lines about requests.
fn audited(client: &mut Client, count: usize) -> Vec<(String, String)> {
    let mut watch = Watch::begin();
    loop {
        let lines = audit(client);
        if lines.len() >= count {
            return lines;
        }
        watch.pause(|| format!("{lines:?}"));
    }
}

/// A program that returns the body of one request, or the code of its error.
const ONE: &str = "async function main() {
    const init = args[1] === undefined ? undefined : JSON.parse(args[1]);
    try { return await (await fetch(args[0], init)).text(); } catch (error) { return error.cause?.code ?? String(error); }
}";

mod cases {
    use super::*;

    pub(super) fn a_program_requests_what_a_row_allows(user: User) {
        let server = Server::start();
        let daemon = daemon(user);
        let mut client = daemon.client();
        let source = format!(
            "async function main() {{
                const url = 'http://{}';
                const plain = await fetch(url + '/?q=1');
                const large = 'é'.repeat(100000);
                const echo = await fetch(url + '/echo', {{ method: 'POST', body: JSON.stringify({{ large }}) }});
                const sent = await (await fetch(url + '/headers', {{ headers: {{ 'x-own': '1' }} }})).text();
                const brotli = await fetch(url + '/br');
                const [one, two] = await Promise.all([fetch(url + '/1'), fetch(url + '/2')]);
                return [plain.status, plain.ok, plain.headers.get('x-test'), plain.url, await plain.text(),
                    (await echo.json()).large === large, /x-own: 1/.test(sent), sent.match(/idempotency-key: (.*)/)[1].length,
                    (await brotli.bytes()).length, one.status + two.status];
            }}",
            server.address
        );
        let run = run(&mut client, &[row(server.address, "")], &source);
        let url = server.url("/?q=1");
        assert_eq!(result(&run), format!(r#"[200,true,"1","{url}","hello",true,true,38,9600,400]"#));
        assert_eq!(server.count(), 6);
        let execution = id(&run);
        let causes: Vec<String> =
            client.checkpoints(&execution).into_iter().map(|checkpoint| checkpoint.cause).collect();
        assert!(causes.is_empty(), "nothing goes on from the end: {causes:?}");
        let records = records(&mut client, &execution);
        let shown: Vec<_> = records
            .iter()
            .map(|one| (one.method.as_str(), one.path.as_str(), one.status, one.sent))
            .collect();
        let ok = Some(200);
        assert_eq!(
            shown,
            [
                ("GET", "/", ok, 0),
                ("POST", "/echo", ok, 200_012),
                ("GET", "/headers", ok, 0),
                ("GET", "/br", ok, 0),
                ("GET", "/1", ok, 0),
                ("GET", "/2", ok, 0)
            ]
        );
        assert_eq!(
            (records[0].origin.clone(), records[0].received),
            (format!("http://{}", server.address), 5)
        );
        let lines = audited(&mut client, 6);
        assert_eq!(lines.len(), 6);
        let session = run.execution.session_id;
        assert!(
            lines[5].0.starts_with(&format!("{session} GET http://{}/ sent=0 received=5", server.address))
        );
        assert_eq!(lines[5].1, "200");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_request_of_unknown_outcome_is_repeated_once_with_the_same_key_after_the_daemon_was_killed(
        user: User,
    ) {
        let server = HeldServer::start();
        let daemon = daemon(user);
        let mut client = daemon.client();
        let args = [server.url("/buy"), r#"{"method":"POST","body":"one"}"#.to_owned()];
        let run = begin(&mut client, &[row(server.address, "")], ONE, &args, false);
        let execution = id(&run);
        let first = server.next();
        assert_eq!((first.line.as_str(), first.body.as_slice()), ("POST /buy", &b"one"[..]));
        // The effect's checkpoint is stored before the request leaves, and so is its number.
        let effect = client.checkpoints(&execution).into_iter().find(|one| one.cause == "effect");
        let key = format!("{execution}-{}", effect.expect("a checkpoint").seq);
        assert_eq!(first.field("idempotency-key"), key);
        drop(client);
        let place = daemon.kill_everything();
        let daemon = Daemon::start_with(place, &options(&[]));
        let mut client = daemon.client();
        let second = server.next();
        assert_eq!((second.field("idempotency-key"), second.body.as_slice()), (key.as_str(), &b"one"[..]));
        second.respond("bought");
        first.respond("too late");
        let run = ended(&mut client, &execution);
        assert_eq!(result(&run), "\"bought\"");
        assert!(server.is_quiet(), "a third request");
        assert_eq!(records(&mut client, &execution).len(), 1, "one response arrived");
        drop(client);
        daemon.stop();
    }

    pub(super) fn secrets_reach_their_host_and_are_not_stored(user: User) {
        let server = HeldServer::start();
        let place = TestDir::new(user);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("mode");
        let file = folder.path().join("secrets.toml");
        write_secret(&file, user, server.address);
        let secrets = ["--secrets", file.to_str().expect("UTF-8")];
        let daemon = Daemon::start_with(place, &options(&secrets));
        let mut client = daemon.client();
        let source = format!(
            "async function main() {{
                const headers = {{ authorization: 'Bearer {{secret:KEY}}' }};
                const response = await fetch('{}', {{ headers }});
                const text = await response.text();
                CC('state?');
                return text;
            }}",
            server.url("/")
        );
        let run = begin(&mut client, &[row(server.address, r#","secrets":["KEY"]"#)], &source, &[], false);
        let request = server.next();
        assert_eq!(request.field("authorization"), "Bearer hunter2");
        request.respond("thanks");
        let execution = id(&run);
        let mut watch = Watch::begin();
        while client.get_run(&execution).task.is_none() {
            watch.pause(|| "no task".to_owned());
        }
        let state = format!("{:?}", client.state(&execution));
        assert!(state.contains("{secret:KEY}") && !state.contains("hunter2"), "{state}");
        let export = daemon.cli(&["program", "export", "--execution", &execution]).ok();
        assert!(!export.contains("hunter2"));
        assert_eq!(result(&client.submit(&execution, "yes").expect("taken")), "\"thanks\"");
        audited(&mut client, 1);
        assert!(!format!("{:?}", client.events(&execution)).contains("hunter2"));
        drop(client);
        let place = daemon.stop();
        let files = files_with(&place.path("."), b"{secret:KEY}");
        assert!(!files.is_empty(), "the search finds what is stored");
        assert_eq!(files_with(&place.path("."), b"hunter2"), Vec::<String>::new());
    }
}

/// The files beneath a folder that contain these bytes.
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        if kind.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if kind.is_file() {
            let content = std::fs::read(&path).expect("readable");
            if content.windows(bytes.len()).any(|window| window == bytes) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn without_a_row_or_the_operator_a_request_is_refused_by_name() {
    let server = Server::start();
    let closed = Daemon::start(User::AsStarted);
    let mut client = closed.client();
    let source = format!("async function main() {{ await fetch('{}'); }}", server.url("/a"));
    let denied = run(&mut client, &[row(server.address, "")], &source);
    let message = denied.execution.error.expect("an error").message;
    assert_eq!(message, "TypeError: fetch failed", "the cause is in the stack of the exception");
    let why = |client: &mut Client, execution: &str| {
        let events = client.events(execution).into_iter();
        let texts = events.map(|event| match event.payload {
            EventPayload::System { message, .. } => message,
            EventPayload::Exception { stack, .. } => stack,
            other => panic!("{other:?}"),
        });
        texts.collect::<Vec<_>>()
    };
    let execution = denied.execution.id.to_string();
    let events = why(&mut client, &execution);
    let reason = format!(
        "GET http://{}/a is not allowed: the operator of this daemon allows no requests (serve --allow-net PATTERN)",
        server.address
    );
    assert_eq!(events[0], format!("denied: http.fetch: {reason}"));
    assert!(events[1].contains(&reason), "{events:?}");
    drop(client);
    closed.stop();

    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    // The built-in template.
    let none = client.begin(&source, "none");
    let events = why(&mut client, &id(&none));
    assert!(
        events[0].contains("no capability of kind net of this session's template allows it"),
        "{events:?}"
    );
    let other = run(&mut client, &[row("127.0.0.1:1", "")], &source);
    assert_eq!(other.execution.status, ExecutionStatus::Error);
    let post = begin(
        &mut client,
        &[row(server.address, r#","methods":["GET"]"#)],
        ONE,
        &[server.url("/"), r#"{"method":"POST"}"#.to_owned()],
        true,
    );
    assert_eq!(result(&post), "\"ERR_NET_DENIED\"");
    assert_eq!(server.count(), 0);
    assert_eq!(audit(&mut client), [], "no request was made");
    drop(client);
    daemon.stop();
}

#[test]
fn redirects_are_judged_anew() {
    let (server, other) = (Server::start(), Server::start());
    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    let args = [server.url(&format!("/to?{}", other.url("/headers")))];
    let rows = [row(server.address, "")];
    assert_eq!(result(&begin(&mut client, &rows, ONE, &args, true)), "\"ERR_NET_DENIED\"");
    assert_eq!((server.count(), other.count()), (1, 0));
    let rows = [row(server.address, ""), row(other.address, "")];
    let source = "async function main() {
        const response = await fetch(args[0], { headers: { authorization: 'x' } });
        return [response.url, response.redirected, (await response.text()).includes('authorization')];
    }";
    let run = begin(&mut client, &rows, source, &args, true);
    assert_eq!(result(&run), format!(r#"["{}",true,false]"#, other.url("/headers")));
    let statuses: Vec<_> = records(&mut client, &id(&run)).iter().map(|record| record.status).collect();
    assert_eq!(statuses, [Some(302), Some(200)]);
    drop(client);
    daemon.stop();
}

#[test]
fn limits_end_the_request_and_not_the_program() {
    let server = Server::start();
    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    for (limits, path, expected) in [
        (r#","max_response_kb":100"#, "/large", "ERR_NET_LIMIT"),
        (r#","headers_ms":100"#, "/hold", "UND_ERR_HEADERS_TIMEOUT"),
        (r#","timeout_ms":300"#, "/endless", "ERR_NET_LIMIT"),
        ("", "/half", "UND_ERR_SOCKET"),
        // A response may be as large as a program may receive, and no larger.
        ("", "/endless", "ERR_NET_LIMIT"),
    ] {
        let run = begin(&mut client, &[row(server.address, limits)], ONE, &[server.url(path)], true);
        assert_eq!(result(&run), format!("\"{expected}\""), "{limits} {path}");
        let received = records(&mut client, &id(&run))[0].received;
        assert!(received <= 16 << 20, "{limits} {path}: {received}");
    }
    let source = "async function main() {
        const tried = [];
        const attempt = async (init) => {
            try { tried.push((await fetch(args[0], init)).status); } catch (error) { tried.push(error.cause.code); }
        };
        await attempt({ method: 'POST', body: 'x'.repeat(5000000) });
        await attempt({ method: 'POST', body: 'x'.repeat(4000000) });
        await attempt({ method: 'POST', body: 'x'.repeat(2000) });
        await attempt();
        await fetch(args[0] + 'x'.repeat(9000000)).catch((error) => tried.push(error.cause.code));
        await attempt();
        CC('?');
        await attempt();
        return tried;
    }";
    let rows = [row(server.address, r#","max_requests":3"#)];
    let run = begin(&mut client, &rows, source, &[server.url("/echo")], true);
    let ended = client.submit(&id(&run), "yes").expect("taken");
    // The largest one never leaves the worker; the count is restored by an answer.
    assert_eq!(
        result(&ended),
        r#"["ERR_NET_LIMIT",200,200,200,"ERR_INVALID_ARG_VALUE","ERR_NET_LIMIT",200]"#
    );
    let rows = [row(server.address, r#","max_request_kb":1"#)];
    let run = begin(&mut client, &rows, source, &[server.url("/echo")], true);
    let ended = client.submit(&id(&run), "yes").expect("taken");
    assert_eq!(
        result(&ended),
        r#"["ERR_NET_LIMIT","ERR_NET_LIMIT","ERR_NET_LIMIT",200,"ERR_INVALID_ARG_VALUE",200,200]"#
    );
    drop(client);
    daemon.stop();
}

#[test]
fn a_response_that_its_state_cannot_hold_ends_the_program() {
    let server = Server::start();
    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    let limits = Limits { max_state_mb: 2, ..Limits::default() };
    let template = client.program_template(Settings { limits, ..Settings::default() });
    add_row(&mut client, &template, "row", &row(server.address, ""));
    client.load("async function main() { try { await fetch(args[0]); } catch { return 'caught'; } }");
    let args = vec![server.url("/large")];
    let run =
        client.start_program(ProgramStart { template: Some(template), args, ..ProgramStart::default() });
    let error = run.expect("started").execution.error.expect("3 MiB do not fit");
    assert_eq!(error.code, "MEMORY_LIMIT");
    assert_eq!(server.count(), 1);
    drop(client);
    daemon.stop();
}

#[test]
fn a_stored_response_is_used_after_a_restart() {
    let server = HeldServer::start();
    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        const response = await fetch(args[0]);
        while (fs.readFile('stop') === null);
        return [response.status, await response.text(), CC('more?')];
    }";
    let template = Some(template(&mut client, &[row(server.address, "")]));
    client.load(source);
    let worktree_path = Some(daemon.place.worktree().to_string_lossy().into_owned());
    let new = ProgramStart {
        program: NAME.to_owned(),
        template,
        worktree_path,
        args: vec![server.url("/")],
        wait: false,
        ..ProgramStart::default()
    };
    let run = client.op(new).expect("started");
    let execution = id(&run);
    server.next().respond("stored");
    until_checkpoint(&mut client, &execution, "response");
    drop(client);
    let place = daemon.kill_everything();
    place.write("stop", "");
    let daemon = Daemon::start_with(place, &options(&[]));
    let mut client = daemon.client();
    let mut watch = Watch::begin();
    while !matches!(client.task(&execution), TaskStatus { task: Some(_), .. }) {
        watch.pause(|| "no task".to_owned());
    }
    let run = client.submit(&execution, "no").expect("taken");
    assert_eq!(result(&run), r#"[200,"stored","no"]"#);
    assert!(server.is_quiet(), "it was requested again");
    assert_eq!(records(&mut client, &execution).len(), 1);
    drop(client);
    daemon.stop();
}

#[test]
fn a_request_is_repeated_with_the_same_key_when_the_egress_process_is_killed() {
    let server = HeldServer::start();
    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    let args = [server.url("/"), r#"{"method":"PATCH","headers":{"Idempotency-Key":"mine"}}"#.to_owned()];
    let run = begin(&mut client, &[row(server.address, "")], ONE, &args, false);
    let first = server.next();
    assert_eq!(first.field("idempotency-key"), "mine", "the program's own key stays");
    let egress = observe::in_mode(daemon.pid(), "egress");
    assert_eq!(egress.len(), 1);
    egress[0].signal(SIGKILL).expect("a signal");
    let second = server.next();
    assert_eq!((second.line.as_str(), second.field("idempotency-key")), ("PATCH /", "mine"));
    second.respond("once");
    let run = ended(&mut client, &id(&run));
    assert_eq!(result(&run), "\"once\"");
    let errors: Vec<_> = records(&mut client, &id(&run)).into_iter().map(|record| record.error).collect();
    assert_eq!(errors, [Some("ERR_NET_EGRESS_LOST".to_owned()), None]);
    drop((client, first));
    daemon.stop();
}

#[test]
fn a_request_of_a_cancelled_program_is_given_up_and_in_the_audit_log() {
    let server = Server::start();
    let daemon = daemon(User::AsStarted);
    let mut client = daemon.client();
    let run = begin(&mut client, &[row(server.address, "")], ONE, &[server.url("/hold/it")], false);
    assert_eq!(server.held.recv_timeout(vm_system_tests::PATIENCE).expect("a request"), "/hold/it");
    client.op(ExecCancel { execution: id(&run) }).expect("cancelled");
    assert_eq!(ended(&mut client, &id(&run)).execution.status, ExecutionStatus::Cancelled);
    let lines = audited(&mut client, 1);
    assert_eq!((lines.len(), lines[0].1.as_str()), (1, "ABORT_ERR"));
    drop(client);
    daemon.stop();
}
