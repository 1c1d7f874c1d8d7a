//! Requests that are wrong in every way that HTTP and JSON allow: a clear error or a closed connection, and all other
//! clients are served as before.

use serde_json::json;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::skip;
use vm_system_tests::{observe, watch};

const HEALTH: &str = "/api/v1/health";
const TEMPLATES: &str = "/api/v1/templates";

fn daemon() -> Daemon {
    let arguments = vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()];
    Daemon::start_with(
        TestDir::new(User::AsStarted),
        &DaemonOptions { arguments, ..DaemonOptions::default() },
    )
}

/// Sends bytes; the status of the response, or nothing if the server only closes the connection.
fn raw(daemon: &Daemon, bytes: &[u8]) -> Option<u16> {
    let mut http = Http::tcp(daemon.addresses()[0]);
    http.send(bytes);
    http.head().map(|(status, _)| status)
}

fn request(rest: &str) -> Vec<u8> {
    format!("POST {TEMPLATES} HTTP/1.1\r\nHost: localhost\r\n{rest}").into_bytes()
}

#[test]
fn invalid_http_is_refused_or_the_connection_closed() {
    let daemon = daemon();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("garbage", b"\x00\x01\x02\xff\xfe\r\n\r\n".to_vec()),
        ("another protocol", b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec()),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec()),
        ("no version", b"GET /\r\n\r\n".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("two lengths", request("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}")),
        ("a negative length", request("Content-Length: -1\r\n\r\n")),
        ("an invalid length", request("Content-Length: 0x10\r\n\r\n")),
        ("an endless length", request("Content-Length: 99999999999999999999999\r\n\r\n")),
        ("an unknown coding", request("Transfer-Encoding: gzip\r\n\r\n")),
        ("a space in a name", request("Bad Name: x\r\n\r\n")),
        ("a folded field", request("X-A: 1\r\n\tfolded\r\nContent-Length: 0\r\n\r\n")),
        ("a NUL in a field", request("X-A: a\x00b\r\n\r\n")),
        ("too many fields", request(&("X-A: 1\r\n".repeat(200) + "\r\n"))),
        ("a huge field", request(&format!("X-A: {}\r\n\r\n", "x".repeat(100_000)))),
        (
            "a huge target",
            format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(100_000)).into_bytes(),
        ),
    ];
    for (what, bytes) in cases {
        let status = raw(&daemon, &bytes);
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{what}: {status:?}");
        assert_eq!(daemon.http().get(HEALTH).status, 200, "after {what}");
    }
    // Small enough for the buffer of a connection, which grows beyond its limit.
    for (bytes, expected) in [(30_000, 200), (40_000, 431)] {
        let head = format!("GET {HEALTH} HTTP/1.1\r\nHost: localhost\r\nX-A: {}\r\n\r\n", "x".repeat(bytes));
        assert_eq!(raw(&daemon, head.as_bytes()), Some(expected), "a field of {bytes} bytes");
    }
    // Both a length and chunks: the chunks are the body, and the connection is closed after it.
    let smuggled = request(
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/runtime HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    let mut http = Http::tcp(daemon.addresses()[0]);
    http.send(&smuggled);
    let first = http.response(false).map(|response| response.status);
    assert!(first.is_none_or(|status| status == 400), "{first:?}");
    daemon.stop();
}

#[test]
fn a_client_that_sends_all_of_a_large_body_before_it_reads_gets_the_refusal() {
    const BODY: usize = 40 << 20;
    let daemon = daemon();
    let json = "Content-Type: application/json\r\n";
    let piece = "x".repeat(1 << 20);
    let with_length = || {
        let head = request(&format!("{json}Content-Length: {BODY}\r\n\r\n"));
        [head, piece.repeat(BODY >> 20).into_bytes()].concat()
    };
    let chunked = || {
        let head = request(&format!("{json}Transfer-Encoding: chunked\r\n\r\n"));
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        [head, chunk.repeat(BODY >> 20).into_bytes(), b"0\r\n\r\n".to_vec()].concat()
    };
    for bytes in [with_length(), chunked()] {
        for mut http in [daemon.http(), Http::tcp(daemon.addresses()[0])] {
            http.send_all(&bytes).expect("the server reads all of it");
            let response = http.response(false).expect("a response");
            assert_eq!((response.status, response.code().as_str()), (413, "INVALID_REQUEST"));
            assert!(http.ends(), "after the response");
        }
    }
    daemon.stop();
}

#[test]
fn bodies_that_are_too_large_or_not_json_are_refused_by_name() {
    let daemon = daemon();
    let json = "Content-Type: application/json\r\n";
    let huge = raw(&daemon, &request(&format!("{json}Content-Length: 1073741824\r\n\r\n{{")));
    assert_eq!(huge, Some(413), "refused by its length, before it comes");
    let mut chunks = request(&format!("{json}Transfer-Encoding: chunked\r\n\r\n"));
    for _ in 0..40 {
        chunks.extend_from_slice(format!("10000\r\n{}\r\n", "x".repeat(0x10000)).as_bytes());
    }
    assert_eq!(raw(&daemon, &chunks), Some(413));
    let endless = request(&format!("{json}Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n"));
    let endless = raw(&daemon, &endless);
    assert!(endless.is_none_or(|status| status == 400), "{endless:?}");
    let mut http = daemon.http();
    let deep =
        |open: &str, close: &str| format!("{{\"name\":{}1{}}}", open.repeat(100_000), close.repeat(100_000));
    for (what, body) in [
        ("deep arrays", deep("[", "]")),
        ("deep objects", deep("{\"a\":", "}")),
        ("an endless number", format!("{{\"name\":{}}}", "9".repeat(100_000))),
        ("a number out of range", "{\"name\":1e99999}".to_owned()),
        ("a lone surrogate", "{\"name\":\"\\ud800\"}".to_owned()),
        ("a byte order mark", "\u{feff}{\"name\":\"x\"}".to_owned()),
        ("not a number", "{\"name\":NaN}".to_owned()),
    ] {
        let response = http.request("POST", TEMPLATES, &[], Some(&body));
        assert_eq!((response.status, response.code().as_str()), (400, "INVALID_REQUEST"), "{what}");
        assert!(response.body.len() < 2_000, "{what}: {} bytes", response.body.len());
    }
    let mut latin = request(&format!("{json}Content-Length: 14\r\n\r\n{{\"name\":\""));
    latin.extend_from_slice(b"\xe9\xff\"}\n");
    assert_eq!(raw(&daemon, &latin), Some(400));
    for (kind, status) in [
        ("application/json; charset=utf-8", 201),
        ("APPLICATION/JSON", 409),
        ("application/jsonx", 415),
        ("text/json", 415),
        ("", 415),
    ] {
        let response =
            http.request("POST", TEMPLATES, &[("content-type", kind)], Some("{\"name\":\"kinds\"}"));
        assert_eq!(response.status, status, "{kind}: {}", response.text());
    }
    let packed = http.request("POST", TEMPLATES, &[("content-encoding", "gzip")], Some("{\"name\":\"z\"}"));
    assert_eq!(packed.status, 415);
    let deep_args = format!(
        "{{\"session_id\":\"x\",\"path\":\"p\",\"args\":{}}}",
        "{\"a\":".repeat(500) + "1" + &"}".repeat(500)
    );
    assert_eq!(
        http.request("POST", "/api/v1/executions/run-file", &[], Some(&deep_args)).code(),
        "INVALID_REQUEST"
    );
    daemon.stop();
}

#[test]
fn invalid_paths_and_queries_are_refused() {
    let daemon = daemon();
    let mut http = daemon.http();
    for path in ["/api/v1/templates/%ff", "/api/v1/templates/%00", "/api/v1/templates/a%2fb"] {
        assert_eq!(http.get(path).code(), "VALIDATION_ERROR", "{path}");
    }
    let many = format!("/api/v1/templates?{}", "a=1&".repeat(1_000));
    assert_eq!(http.get(&many).code(), "VALIDATION_ERROR");
    assert_eq!(http.get("/api/v1/sessions?status=ready&status=closed").code(), "VALIDATION_ERROR");
    assert_eq!(http.get("/api/v1/sessions?workspace_id=%ff").status, 200);
    assert_eq!(http.get("/api/v1/../v1/health").code(), "NOT_FOUND");
    daemon.stop();
}

#[test]
fn pipelined_requests_get_their_responses_in_order() {
    let daemon = daemon();
    let mut http = daemon.http();
    let mut bytes = Vec::new();
    for number in 0..50 {
        let body = json!({ "name": format!("pipelined-{number}") }).to_string();
        bytes.extend(http.request_bytes(
            "POST",
            TEMPLATES,
            &[("x-request-id", &number.to_string())],
            Some(&body),
        ));
    }
    http.send(&bytes);
    for number in 0..50 {
        let response = http.response(false).expect("a response");
        assert_eq!(
            (response.status, response.field("x-request-id")),
            (201, Some(number.to_string().as_str()))
        );
    }
    let log = daemon.log();
    assert!(log.contains("request{id=\"17\"}") || log.contains("id=\"17\""), "the id is in the log: {log}");
    let odd = http.request("GET", HEALTH, &[("x-request-id", "a b\"c")], None);
    assert_eq!(odd.field("x-request-id").map(str::len), Some(36), "an id of our own");
    daemon.stop();
}

#[test]
fn clients_that_disconnect_harm_no_other() {
    let daemon = daemon();
    let address = daemon.addresses()[0];
    // The reserve is started after the daemon is ready.
    watch::wait_until(|| daemon.info().zygotes.len() == 2, || "no zygote in reserve".to_owned());
    let before = observe::descriptors(daemon.pid());
    for _ in 0..50 {
        let mut http = Http::tcp(address);
        http.send(b"GET /api/v1/hea");
        drop(http);
        let mut http = Http::tcp(address);
        http.send(&request("Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"na"));
        drop(http);
        let mut http = Http::tcp(address);
        http.send(&http.request_bytes("GET", "/api/v1/openapi.json", &[], None));
        drop(http);
    }
    let descriptors = || observe::descriptors(daemon.pid());
    watch::wait_until(
        || descriptors() <= before + 2,
        || format!("{} descriptors, {before} before", descriptors()),
    );
    assert_eq!(daemon.http().get(HEALTH).status, 200);
    daemon.stop();
}

/// Idle connections.
const CROWD: usize = 5_000;

#[test]
fn five_thousand_idle_connections_and_slow_requests_keep_no_client_out() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits");
    if (hard as usize) < 2 * CROWD + 1_000 {
        let needed = 2 * CROWD + 1_000;
        skip(
            "descriptors",
            &format!("{CROWD} connections need {needed} descriptors, the hard limit is {hard}"),
        );
        return;
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("the hard limit is allowed");
    let daemon = daemon();
    let address = daemon.addresses()[0];
    let memory = observe::anonymous_kib(daemon.pid());
    let mut crowd = Vec::with_capacity(CROWD);
    for number in 0..CROWD {
        let mut http = Http::tcp(address);
        // A quarter each sends nothing, half a head, one request, half a body.
        match number % 4 {
            0 => {}
            1 => http.send(b"GET /api/v1/health HTTP/1.1\r\nHost: local"),
            2 => http.send(&http.request_bytes("GET", HEALTH, &[], None)),
            _ => http.send(&request("Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")),
        }
        crowd.push(http);
    }
    for (name, mut http) in [("tcp", Http::tcp(address)), ("unix", daemon.http())] {
        assert_eq!(http.get(HEALTH).status, 200);
        assert_eq!(http.post(TEMPLATES, &json!({ "name": name })).status, 201);
    }
    let grown = observe::anonymous_kib(daemon.pid()).saturating_sub(memory);
    assert!(grown < 200 * 1_024, "{CROWD} connections take {grown} KiB");
    println!("{CROWD} connections take {grown} KiB");
    drop(crowd);
    let descriptors = || observe::descriptors(daemon.pid());
    watch::wait_until(|| descriptors() <= 500, || format!("{} descriptors", descriptors()));
    daemon.stop();
}
