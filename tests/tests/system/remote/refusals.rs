//! Who is refused, and how the command line says so.

use super::scene::{
    SERVER_USER, command_at, daemon, http_url, run_at, server_user, session, unix_url, write_tokens,
};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use vm_system_protocol::control::{CONTROL_PROTOCOL, ErrorCode, ExecEvents, HealthGet, UPGRADE_PROTOCOL};
use vm_system_tests::PATIENCE;
use vm_system_tests::client::Client;
use vm_system_tests::command::{run, wait};
use vm_system_tests::daemon::Daemon;
use vm_system_tests::http::Http;
use vm_system_tests::place::User;
use vm_system_tests::{skip, watch};

const CONTROL: &str = "/api/v1/control";
const UPGRADE: [(&str, &str); 2] = [("connection", "Upgrade"), ("upgrade", UPGRADE_PROTOCOL)];

#[test]
fn without_a_valid_token_nobody_gets_through_where_one_is_required() {
    let daemon = daemon(User::AsStarted, "[http]\nrequire_token = true");
    let url = http_url(&daemon);
    let refused = run_at(&daemon, &url, "", &["session", "list"]).fails(77);
    assert!(refused.contains(&url) && refused.contains("UNAUTHORIZED"), "{refused}");
    assert!(refused.contains("--token-file"), "{refused}");
    let refused = run_at(&daemon, &url, "mallory", &["session", "list"]).fails(77);
    assert!(refused.contains("unknown token") && refused.contains("mallory-token"), "{refused}");
    run_at(&daemon, &url, "alice", &["session", "list"]).ok();
    // The socket's user is known without one.
    run_at(&daemon, &unix_url(&daemon), "", &["session", "list"]).ok();
    daemon.stop();
}

/// An upgraded connection of the HTTP socket; the status of another response.
fn try_upgraded(daemon: &Daemon, token: &str) -> Result<Client, String> {
    let mut stream = UnixStream::connect(daemon.place.http_socket()).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("deadline");
    let request = format!(
        "GET {CONTROL} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {UPGRADE_PROTOCOL}\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("request");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a response");
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    if !head.starts_with("http/1.1 101 ") {
        return Err(head.lines().next().unwrap_or_default().to_owned());
    }
    assert!(head.contains(&format!("\r\nupgrade: {UPGRADE_PROTOCOL}\r\n")), "{head}");
    Client::over_stream(stream)
}

fn upgraded(daemon: &Daemon, token: &str) -> Client {
    try_upgraded(daemon, token).unwrap_or_else(|refusal| panic!("refused: {refusal}"))
}

#[test]
fn a_token_that_is_removed_ends_the_rights_of_its_connections() {
    let daemon = daemon(User::AsStarted, "");
    let (mut alice, mut bob) = (upgraded(&daemon, "alice-token"), upgraded(&daemon, "bob-token"));
    let list = || vm_system_protocol::control::SessionList::default();
    assert!(alice.op(list()).is_ok());
    write_tokens(&daemon.place, &["bob"]);
    daemon.hang_up();
    let removed = || match alice.try_op(list()) {
        Ok(reply) => reply.is_err_and(|error| error.code == ErrorCode::NotPermitted),
        Err(_) => true,
    };
    watch::wait_until(removed, || "alice's token is removed and her connection still works".to_owned());
    assert!(bob.op(list()).is_ok());
    daemon.stop();
}

#[test]
fn a_token_that_is_replaced_ends_its_connections() {
    let daemon = daemon(User::AsStarted, "");
    let (mut alice, mut bob) = (upgraded(&daemon, "alice-token"), upgraded(&daemon, "bob-token"));
    let list = || vm_system_protocol::control::SessionList::default();
    assert!(alice.op(list()).is_ok());
    // The same name with the hash of another token.
    let book = daemon.place.path("tokens.toml");
    let text = std::fs::read_to_string(&book).expect("ours");
    let hash =
        text.split("sha256 = \"").nth(1).expect("alice's").split('"').next().expect("a hash").to_owned();
    std::fs::write(&book, text.replace(&hash, &"1".repeat(64))).expect("ours");
    daemon.hang_up();
    watch::wait_until(
        || alice.try_op(list()).is_err(),
        || "alice's token is replaced and her connection is open".to_owned(),
    );
    assert!(bob.op(list()).is_ok());
    daemon.stop();
}

#[test]
fn a_token_that_is_removed_ends_its_streams() {
    let daemon = daemon(User::AsStarted, "");
    let url = unix_url(&daemon);
    let opened = |owner: &str| {
        let id = session(&daemon, &url, owner, owner);
        let mut http = Http::unix(&daemon.place.http_socket()).bearer(&format!("{owner}-token"));
        let code = serde_json::json!({ "session_id": id, "input": "CC('wait')" });
        let started = http.post("/api/v1/executions/repl?wait=false", &code);
        let execution = started.json()["id"].as_str().expect("an id").to_owned();
        [format!("sessions/{id}"), format!("executions/{execution}")].map(|of| {
            let mut http = Http::unix(&daemon.place.http_socket()).bearer(&format!("{owner}-token"));
            let (path, accept) = (format!("/api/v1/{of}/events"), [("accept", "text/event-stream")]);
            http.send(&http.request_bytes("GET", &path, &accept, None));
            assert_eq!(http.head().expect("a head").0, 200, "{path}");
            http
        })
    };
    let mut bobs = opened("bob");
    let alices = opened("alice");
    write_tokens(&daemon.place, &["bob"]);
    daemon.hang_up();
    for mut stream in alices {
        // One that goes on sends heartbeats.
        let sent = std::iter::from_fn(|| stream.chunk()).take(10).count();
        assert!(sent < 10, "alice's token is removed and her stream is open");
    }
    let first = bobs.each_mut().map(|http| http.chunk().expect("it goes on"));
    assert!(first.iter().all(|chunk| !chunk.is_empty()));
    daemon.stop();
}

#[test]
fn requests_that_are_no_upgrade_of_a_program_are_refused() {
    let daemon = daemon(User::AsStarted, "");
    let address = daemon.addresses()[0];
    let origin = format!("http://{address}");
    let with = |more: &[(&'static str, &str)]| {
        let mut http = Http::tcp(address).bearer("alice-token");
        let given = |name: &str| more.iter().any(|(other, _)| *other == name);
        let mut fields: Vec<(&str, &str)> = UPGRADE.into_iter().filter(|(name, _)| !given(name)).collect();
        fields.extend_from_slice(more);
        http.request("GET", CONTROL, &fields, None)
    };
    // Pages of whatever origin, and a foreign name of this host.
    for page in [
        [("origin", "http://evil.example")],
        [("origin", origin.as_str())],
        [("sec-fetch-site", "same-origin")],
        [("sec-fetch-mode", "websocket")],
        [("sec-websocket-key", "x")],
        [("host", "evil.example")],
    ] {
        let response = with(&page);
        assert_eq!((response.status, response.code().as_str()), (403, "NOT_PERMITTED"), "{page:?}");
    }
    for other in [
        [("upgrade", "")],
        [("upgrade", "websocket")],
        [("connection", "keep-alive")],
        [("upgrade", "vm-system-control/6")],
    ] {
        let response = with(&other);
        assert_eq!(response.status, 426, "{other:?}: {}", response.text());
        assert_eq!(response.field("upgrade"), Some(UPGRADE_PROTOCOL), "{other:?}");
        if other[0].1.ends_with("/6") {
            let text = response.text();
            assert!(
                text.contains(&format!("protocol {CONTROL_PROTOCOL}")) && text.contains("the client 6"),
                "{text}"
            );
        }
    }
    let mut http = Http::tcp(address).bearer("alice-token");
    assert_eq!(http.request("GET", CONTROL, &UPGRADE, Some("{}")).status, 400, "a body");
    let mut http = Http::tcp(address).bearer("alice-token");
    assert_eq!(http.request("HEAD", CONTROL, &UPGRADE, None).status, 405);
    assert_eq!(Http::tcp(address).bearer("alice-token").post(CONTROL, &serde_json::json!({})).status, 405);
    let mut http = Http::tcp(address);
    assert_eq!(
        http.request("GET", CONTROL, &[UPGRADE[0], UPGRADE[1], ("authorization", "Bearer x")], None).status,
        401
    );
    let mut http = Http::tcp(address);
    http.send(format!("GET {CONTROL} HTTP/1.0\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {UPGRADE_PROTOCOL}\r\n\r\n").as_bytes());
    assert_eq!(http.response(false).expect("a response").status, 400, "HTTP/1.0");
    daemon.stop();
}

#[test]
fn idle_connections_of_one_owner_make_way_and_busy_ones_leave_some_to_others() {
    let daemon = daemon(User::AsStarted, "[shares.http_connections]\nmost = 16\nreserved = 2\n");
    let mut idle: Vec<Client> = (0..40).map(|_| upgraded(&daemon, "alice-token")).collect();
    let url = http_url(&daemon);
    run_at(&daemon, &url, "bob", &["session", "list"]).ok();
    run_at(&daemon, &url, "alice", &["session", "list"]).ok();
    // The longest idle were closed, the latest is open.
    assert!(idle.last_mut().is_some_and(|last| last.op(HealthGet).is_ok()));
    let mut first = idle.swap_remove(0).stream;
    assert_eq!(first.read(&mut [0]).expect("it is closed"), 0);
    drop(idle);
    // Connections with a stream are not idle: alice gets a part of them, and bob still his.
    let session = session(&daemon, &url, "alice", "waits");
    let waiting =
        run_at(&daemon, &url, "alice", &["--output", "json", "exec", "repl", &session, "CC('when?')"]);
    let waiting: serde_json::Value = serde_json::from_str(&waiting.stdout).expect("JSON");
    let execution = waiting["id"].as_str().expect("an id");
    let follow = || ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: true };
    let mut busy = Vec::new();
    let refused = loop {
        match try_upgraded(&daemon, "alice-token") {
            Ok(mut client) => {
                client.send(follow());
                // The first events: the stream is open, and the connection is busy.
                client.frame();
                busy.push(client);
            }
            Err(refused) => break refused,
        }
        assert!(busy.len() < 14, "one owner has all connections");
    };
    assert!(refused.starts_with("http/1.1 503 "), "{refused}");
    run_at(&daemon, &url, "bob", &["session", "list"]).ok();
    drop(busy);
    daemon.stop();
}

#[test]
fn a_shell_whose_idle_connection_was_closed_opens_another() {
    let daemon = daemon(User::AsStarted, "[shares.http_connections]\nmost = 16\nreserved = 2\n");
    let url = http_url(&daemon);
    let session = session(&daemon, &url, "alice", "hers");
    let mut shell = command_at(&daemon, &url, "alice", &["repl", &session]);
    let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let mut lines = BufReader::new(shell.stdout.take().expect("piped"));
    let mut input = shell.stdin.take().expect("piped");
    let mut answer = |line: &str| {
        input.write_all(line.as_bytes()).expect("a line");
        let mut answer = String::new();
        lines.read_line(&mut answer).expect("its result");
        answer
    };
    assert_eq!(answer("var x = 20\nx + 1\n"), "21\n");
    let others: Vec<Client> = (0..40).map(|_| upgraded(&daemon, "alice-token")).collect();
    assert_eq!(answer("x + 2\n"), "22\n");
    drop(others);
    drop(input);
    assert_eq!(wait(&mut shell, PATIENCE), Some(Some(0)));
    daemon.stop();
}

/// A server that is something else, and sends this response to whoever connects.
fn other_server(response: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(response.as_bytes());
    });
    url
}

#[test]
fn errors_name_the_url_and_the_cause() {
    let daemon = daemon(User::AsStarted, "");
    let list = ["session", "list"];
    let upgrade = |to: &str| {
        format!("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: {to}\r\n\r\n")
    };
    let refusal = |status: &str, code: &str, message: &str| {
        let body = format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
        format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let other_version = "the supervisor (version 9) uses control protocol 8, the client 7";
    for (response, code, cause) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_owned(), 69, "it responds with 200"),
        (refusal("404", "NOT_FOUND", "no such resource"), 69, "no such resource (NOT_FOUND)"),
        ("HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n".to_owned(), 69, "it responds with 404"),
        (
            "HTTP/1.1 302 x\r\nLocation: https://elsewhere/\r\n\r\n".to_owned(),
            69,
            "redirects to https://elsewhere/",
        ),
        (upgrade("websocket"), 69, "is no vm-system server"),
        (upgrade(UPGRADE_PROTOCOL), 75, "closed the connection before its hello"),
        (refusal("426", "INVALID_REQUEST", other_version), 70, other_version),
        (refusal("503", "CAPACITY_EXCEEDED", "all connections are in use"), 75, "all connections are in use"),
        ("SSH-2.0-OpenSSH_9.9\r\n".to_owned(), 69, "does not speak HTTP"),
        (String::new(), 69, "does not speak HTTP"),
    ] {
        let shown = response.clone();
        let url = other_server(response);
        let refused = run_at(&daemon, &url, "", &list).fails(code);
        assert!(refused.contains(&url) && refused.contains(cause), "{shown:?}: {refused}");
    }
    // Nobody listens.
    let refused = run_at(&daemon, "http://127.0.0.1:1", "", &list).fails(69);
    assert!(refused.contains("http://127.0.0.1:1") && refused.contains("refused"), "{refused}");
    // The walls of another machine are not those of this one.
    let refused = run_at(&daemon, "http://127.0.0.1:1", "", &["ops", "doctor"]).fails(69);
    assert!(refused.contains("no supervisor responds"), "{refused}");
    let refused = run_at(&daemon, "unix:/nowhere/http.sock", "", &list).fails(69);
    assert!(refused.contains("unix:/nowhere/http.sock") && refused.contains("No such file"), "{refused}");
    // The control socket is no HTTP server.
    let socket = format!("unix:{}", daemon.place.socket().display());
    let refused = run_at(&daemon, &socket, "", &list).fails(69);
    assert!(refused.contains("does not speak HTTP") && refused.contains("--socket"), "{refused}");
    let refused = run_at(&daemon, "http://no-such-name.invalid:1", "", &list).fails(69);
    assert!(refused.contains("no-such-name.invalid"), "{refused}");
    daemon.stop();
}

#[test]
fn server_of_another_user_on_loopback_gets_nothing() {
    if !User::can_be_switched() {
        return skip("root", "only a daemon that root starts has another user than the client");
    }
    let daemon = daemon(User::AsStarted, "");
    let (url, user) = (http_url(&daemon), server_user(&daemon));
    let list = |more: &[&str]| {
        let mut command = command_at(&daemon, &url, "alice", &["session", "list"]);
        run(command.env_remove(SERVER_USER).args(more), "")
    };
    for refused in [list(&[]).fails(77), list(&["--server-user", "daemon"]).fails(77)] {
        assert!(refused.contains(&url) && refused.contains(&format!("belongs to uid {user}")), "{refused}");
        assert!(refused.contains("nothing was sent") && refused.contains("--server-user"), "{refused}");
    }
    list(&["--server-user", &user]).ok();
    // A server of root, and one of the client's own user.
    let own = other_server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_owned());
    let mut command = command_at(&daemon, &own, "", &["session", "list"]);
    let answered = run(command.env_remove(SERVER_USER), "").fails(69);
    assert!(answered.contains("it responds with 200"), "{answered}");
    let unknown = list(&["--server-user", "no-such-user-here"]).fails(2);
    assert!(unknown.contains("no-such-user-here"), "{unknown}");
    daemon.stop();
}

#[test]
fn what_cannot_work_behind_a_url_is_refused_by_name() {
    let daemon = daemon(User::AsStarted, "");
    let url = http_url(&daemon);
    for (arguments, cause) in [
        (&["serve", "--detach"][..], "`serve` starts a daemon on this machine"),
        (&["run", "app.js"], "`run` without --session"),
        (&["repl"], "`repl` without a SESSION"),
        (&["--socket", "/x", "session", "list"], "--server-url and --socket name two daemons"),
        (
            &[
                "session",
                "create",
                "--template-id",
                "t",
                "--workspace-id",
                "w",
                "--base-commit",
                "c",
                "--worktree-path",
                ".",
            ],
            "is a folder of the machine of",
        ),
        (&["--ca-file", "/x", "session", "list"], "--ca-file is for https"),
    ] {
        let refused = run_at(&daemon, &url, "", arguments).fails(2);
        assert!(refused.contains(cause), "{arguments:?}: {refused}");
    }
    let socket =
        run_at(&daemon, &unix_url(&daemon), "", &["--server-user", "root", "session", "list"]).fails(2);
    assert!(socket.contains("--server-user is for http"), "{socket}");
    // The token stays on this machine: no connection is attempted.
    for elsewhere in ["http://192.0.2.1:9", "http://[2001:db8::1]:9"] {
        let refused = run_at(&daemon, elsewhere, "alice", &["session", "list"]).fails(2);
        assert!(refused.contains("would send the token unencrypted"), "{refused}");
        assert!(refused.contains("https") && refused.contains("--insecure-http"), "{refused}");
    }
    for wrong in ["localhost:3210", "ftp://h", "http://a:b@h", ""] {
        let refused = run_at(&daemon, wrong, "", &["session", "list"]).fails(2);
        assert!(
            refused.contains("is not the URL of a daemon") && refused.contains("https://HOST:PORT"),
            "{refused}"
        );
    }
    let mut agent = command_at(&daemon, "http://127.0.0.1:1", "", &["mcp"]);
    let output = run(&mut agent, super::verbs::AGENT);
    assert!(output.stdout.contains("no supervisor responds at http://127.0.0.1:1"), "{output:?}");
    daemon.stop();
}
