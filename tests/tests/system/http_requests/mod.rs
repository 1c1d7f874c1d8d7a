//! `fetch` through the real daemon and its egress process: what rows allow, which addresses are reached, limits, secrets, records, and
//! what happens when a process is lost.

pub(crate) mod server;

use nix::libc::{SIGKILL, SIGPIPE, SIGSTOP};
use server::Server;
use vm_system_protocol::control::{AuditList, ExecCancel};
use vm_system_protocol::model::{CapabilityKind, EventPayload, HttpRecord, Session};
use vm_system_tests::as_both;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User, write_secret};
use vm_system_tests::rights::Bench;
use vm_system_tests::{observe, watch};

as_both!(
    nothing_is_requested_without_a_row_and_the_operator,
    private_addresses_are_refused_after_their_names_are_resolved,
    responses_in_brotli_are_decoded,
    redirects_are_judged_anew_and_take_no_credentials_along,
    redirects_without_end_fail_their_own_request,
    errors_name_the_host_of_the_request_and_no_address,
    every_limit_ends_the_request_and_not_the_session,
    servers_without_end_hold_up_their_own_requests_alone,
    another_daemon_refuses_the_requests_of_scripts,
    two_hundred_requests_of_one_session_run_at_a_time,
    requests_fail_when_the_egress_process_is_killed_or_hangs_and_the_next_one_gets_another,
    no_process_ends_because_a_peer_is_gone,
    secrets_reach_their_host_and_nothing_else,
    requests_are_events_and_lines_of_the_audit_log,
    a_request_that_its_execution_leaves_open_is_ended_and_recorded,
    sessions_do_not_reach_the_exchanges_of_others
);

/// A bench whose operator permits everything with a name, and the loopback address.
fn bench(user: User) -> Bench {
    with_arguments(user, &[])
}

fn with_arguments(user: User, more: &[&str]) -> Bench {
    let wide =
        ["--allow-net-private", "127.0.0.1:*", "--allow-net-private", "localhost:*", "--allow-net", "*:*"];
    let wide = wide.iter().chain(&["--allow-net", "169.254.169.254", "--allow-net", "127.0.0.1:*"]);
    let arguments = wide.chain(more).map(|text| (*text).to_owned()).collect();
    Bench::with_modules(user, &[], &DaemonOptions { arguments, ..DaemonOptions::default() })
}

/// The result of a script that returns the code of the error of a request, or what it received.
fn fetched(bench: &mut Bench, session: &Session, url: &str) -> String {
    bench.eval(
        session,
        &format!(
            "await fetch('{url}').then((response) => response.text()).then((text) => text.length > 100 ? text.length : text, \
             (error) => error.cause?.code ?? String(error))"
        ),
    )
}

fn records(bench: &mut Bench, session: &Session, code: &str) -> Vec<HttpRecord> {
    let execution = bench.client.eval(session, code).expect("a response");
    let events = bench.client.events(&execution.id.to_string());
    let found = events.into_iter().filter_map(|event| match event.payload {
        EventPayload::Http(record) => Some(*record),
        _ => None,
    });
    found.collect()
}

/// Lines of the audit log about requests, newest first: subject and outcome.
fn audit(bench: &mut Bench) -> Vec<(String, String)> {
    let Ok(lines) = bench.client.op(AuditList { before: None, limit: 100 }) else { panic!("an audit log") };
    let http = lines.into_iter().filter(|line| line.verb == "http");
    http.map(|line| (line.subject, line.outcome)).collect()
}

mod cases {
    use super::*;

    pub(super) fn nothing_is_requested_without_a_row_and_the_operator(user: User) {
        let server = Server::start();
        let row = format!(r#"{{"allow":["{}"],"private":true}}"#, server.address);
        let mut closed = Bench::new(user, &[]);
        closed.row(CapabilityKind::Net, "test", &row);
        let session = closed.session();
        assert_eq!(
            fetched(&mut closed, &session, &server.url("/")),
            "'ERR_NET_DENIED'",
            "the operator permits nothing"
        );
        let mut bench = bench(user);
        let before = bench.session();
        assert_eq!(fetched(&mut bench, &before, &server.url("/")), "'ERR_NET_DENIED'", "there is no row");
        let id = bench.row(CapabilityKind::Net, "test", &row);
        assert_eq!(
            fetched(&mut bench, &before, &server.url("/")),
            "'ERR_NET_DENIED'",
            "an old session gains nothing"
        );
        let session = bench.session();
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'");
        bench.remove_row(id);
        assert_eq!(
            fetched(&mut bench, &session, &server.url("/")),
            "'ERR_NET_DENIED'",
            "narrowing applies at once"
        );
        assert_eq!(server.count(), 1);
        closed.end();
        bench.end();
    }

    pub(super) fn responses_in_brotli_are_decoded(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        let row = format!(r#"{{"allow":["{}"],"private":true}}"#, server.address);
        bench.row(CapabilityKind::Net, "test", &row);
        let session = bench.session();
        assert_eq!(fetched(&mut bench, &session, &server.url("/br")), "9600");
        let cut = fetched(&mut bench, &session, &server.url("/br-cut"));
        assert_eq!(cut, "'TypeError: unexpected end of file'");
        let fields = format!(
            "(await (await fetch('{}')).text()).split('\\r\\n').find((line) => line.startsWith('accept-encoding'))",
            server.url("/headers")
        );
        assert_eq!(bench.eval(&session, &fields), "'accept-encoding: br, gzip, deflate'");
        bench.end();
    }

    pub(super) fn private_addresses_are_refused_after_their_names_are_resolved(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(CapabilityKind::Net, "public", r#"{"allow":["*:*","127.0.0.1:*","169.254.169.254"]}"#);
        let session = bench.session();
        let port = server.address.port();
        for host in ["127.0.0.1", "localhost", "a.localhost", "127.1", "0x7f000001"] {
            let url = format!("http://{host}:{port}/");
            assert_eq!(fetched(&mut bench, &session, &url), "'ERR_NET_DENIED'", "{host}");
        }
        assert_eq!(
            fetched(&mut bench, &session, "http://169.254.169.254/latest/meta-data/"),
            "'ERR_NET_DENIED'"
        );
        assert_eq!(server.count(), 0);
        bench.row(CapabilityKind::Net, "private", r#"{"allow":["localhost:*"],"private":true}"#);
        let session = bench.session();
        let local = format!("http://localhost:{port}/");
        assert_eq!(fetched(&mut bench, &session, &local), "'hello'", "a row names it");
        let address = server.url("/");
        assert_eq!(fetched(&mut bench, &session, &address), "'ERR_NET_DENIED'", "by this name only");
        bench.end();
    }

    pub(super) fn redirects_are_judged_anew_and_take_no_credentials_along(user: User) {
        let (server, other) = (Server::start(), Server::start());
        let mut bench = bench(user);
        let row = format!(r#"{{"allow":["{}"],"private":true}}"#, server.address);
        bench.row(CapabilityKind::Net, "one", &row);
        let session = bench.session();
        let to_other = server.url(&format!("/to?{}", other.url("/headers")));
        assert_eq!(fetched(&mut bench, &session, &to_other), "'ERR_NET_DENIED'");
        let to_metadata = server.url("/to?http://169.254.169.254/");
        assert_eq!(fetched(&mut bench, &session, &to_metadata), "'ERR_NET_DENIED'");
        assert_eq!(other.count(), 0);
        let row = format!(r#"{{"allow":["{}"],"private":true}}"#, other.address);
        bench.row(CapabilityKind::Net, "two", &row);
        let session = bench.session();
        let with_credentials = |url: &str| {
            format!(
                "const r = await fetch('{url}', {{ headers: {{ authorization: 'x', cookie: 'y', 'x-other': 'z' }} }}); \
                 const text = await r.text(); [/authorization/.test(text), /cookie/.test(text), /x-other/.test(text)].join()"
            )
        };
        assert_eq!(bench.eval(&session, &with_credentials(&to_other)), "'false,false,true'");
        let to_itself = server.url("/to?/headers");
        let session = bench.session();
        assert_eq!(bench.eval(&session, &with_credentials(&to_itself)), "'true,true,true'");
        bench.end();
    }

    pub(super) fn redirects_without_end_fail_their_own_request(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(
            CapabilityKind::Net,
            "test",
            &format!(r#"{{"allow":["{}"],"private":true}}"#, server.address),
        );
        let session = bench.session();
        let failed = |path: &str| {
            format!(
                "await fetch('{}').catch((error) => error.cause.code ?? error.cause.message)",
                server.url(path)
            )
        };
        assert_eq!(bench.eval(&session, &failed("/loop")), "'redirect count exceeded'");
        assert_eq!(server.count(), 21, "requests of one fetch");
        // The URL is longer than one may be.
        assert_eq!(bench.eval(&session, &failed("/grow?x")), "'ERR_INVALID_ARG_VALUE'");
        assert!(server.count() < 40, "{} requests", server.count());
        assert_eq!(bench.eval(&session, &failed("/far")), "'ERR_INVALID_ARG_VALUE'");
        assert_eq!(bench.eval(&session, &failed("/too-far")), "'HPE_HEADER_OVERFLOW'");
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'");
        bench.end();
    }

    pub(super) fn errors_name_the_host_of_the_request_and_no_address(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        let port = server.address.port();
        bench.row(CapabilityKind::Net, "test", r#"{"allow":["localhost:*"],"private":true}"#);
        let session = bench.session();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr());
        let closed = closed.expect("an address").port();
        // All that a script can find in an error.
        let all = |url: &str| {
            format!(
                "const all = (error) => error instanceof Object ? Object.getOwnPropertyNames(error).map((name) => \
                 name + '=' + all(error[name])).join(' ') : String(error); \
                 await fetch('{url}').then((response) => response.text()).then(() => 'no error', all)"
            )
        };
        for (url, expected) in [
            (format!("http://localhost:{closed}/"), format!("connect ECONNREFUSED localhost:{closed}")),
            (format!("https://localhost:{closed}/"), format!("connect ECONNREFUSED localhost:{closed}")),
            (format!("https://localhost:{port}/"), "TLS with localhost".to_owned()),
            (format!("http://localhost:{port}/half"), "UND_ERR_SOCKET".to_owned()),
        ] {
            let error = bench.eval(&session, &all(&url));
            assert!(error.contains(&expected), "{url}: {error}");
            assert!(!error.contains("127.0.0.1") && !error.contains("::1"), "{url}: {error}");
        }
        bench.end();
    }

    pub(super) fn every_limit_ends_the_request_and_not_the_session(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        let limited = |limits: &str| format!(r#"{{"allow":["{}"],"private":true,{limits}}}"#, server.address);
        for (limits, path, expected) in [
            (r#""max_response_kb":100"#, "/large", "'ERR_NET_LIMIT'"),
            (r#""max_response_kb":100"#, "/endless", "'ERR_NET_LIMIT'"),
            (r#""headers_ms":100"#, "/hold", "'UND_ERR_HEADERS_TIMEOUT'"),
            (r#""timeout_ms":100"#, "/hold", "'ERR_NET_LIMIT'"),
            (r#""timeout_ms":300"#, "/endless", "'ERR_NET_LIMIT'"),
            (r#""timeout_ms":60000"#, "/half", "'UND_ERR_SOCKET'"),
            (r#""timeout_ms":60000"#, "/large", "3145728"),
        ] {
            let row = bench.row(CapabilityKind::Net, "test", &limited(limits));
            let session = bench.session();
            assert_eq!(fetched(&mut bench, &session, &server.url(path)), expected, "{limits} {path}");
            assert_eq!(bench.eval(&session, "1 + 1"), "2");
            bench.remove_row(row);
        }
        let row = bench.row(CapabilityKind::Net, "test", &limited(r#""max_requests":3,"max_request_kb":1"#));
        let session = bench.session();
        let large = format!(
            "await fetch('{}', {{ method: 'POST', body: 'x'.repeat(2000) }}).catch((error) => error.cause.code)",
            server.url("/echo")
        );
        assert_eq!(bench.eval(&session, &large), "'ERR_NET_LIMIT'");
        let many = format!(
            "let n = 0, code; for (;;) try {{ await fetch('{}'); n++ }} catch (error) {{ code = error.cause.code; break }} n + code",
            server.url("/")
        );
        assert_eq!(bench.eval(&session, &many), "'3ERR_NET_LIMIT'");
        bench.remove_row(row);
        bench.row(CapabilityKind::Net, "few", &limited(r#""concurrency":2"#));
        let session = bench.session();
        // Responses that the script has not received yet are kept for it, and count.
        let unread = format!(
            "const get = () => fetch('{}'); const two = [get(), get()]; for (const end = Date.now() + 300; Date.now() < end;); \
             const third = await get().catch((error) => error.cause.code); await Promise.all(two); [third, (await get()).status].join()",
            server.url("/")
        );
        assert_eq!(bench.eval(&session, &unread), "'ERR_NET_LIMIT,200'");
        bench.end();
    }

    pub(super) fn servers_without_end_hold_up_their_own_requests_alone(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        let row = format!(r#"{{"allow":["{}"],"private":true,"timeout_ms":3600000}}"#, server.address);
        bench.row(CapabilityKind::Net, "test", &row);
        let session = bench.session();
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'");
        let before = observe::in_mode(bench.daemon.pid(), "egress");
        let flooded = format!(
            "const get = () => fetch('{}').catch((error) => error.cause.code); \
             (await Promise.all([get(), get(), get(), get()])).join()",
            server.url("/interim")
        );
        let others = bench.session();
        let execution = bench.client.start(&others, &flooded);
        assert_eq!(server.held.recv().expect("a request"), "/interim");
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'");
        bench.client.until_final(&execution);
        let events = bench.client.events(&execution.id.to_string());
        let codes = "'ERR_NET_LIMIT,ERR_NET_LIMIT,ERR_NET_LIMIT,ERR_NET_LIMIT'";
        assert_eq!(vm_system_tests::client::value(&events), Some(codes));
        assert!(before[0].is_alive(), "the egress process was not replaced");
        bench.end();
    }

    pub(super) fn another_daemon_refuses_the_requests_of_scripts(user: User) {
        let options = ["--listen".to_owned(), "127.0.0.1:0".to_owned()];
        let options = DaemonOptions { arguments: options.into(), ..DaemonOptions::default() };
        let other = Daemon::start_with(TestDir::new(user), &options);
        let address = other.addresses()[0];
        let mut bench = bench(user);
        bench.row(CapabilityKind::Net, "test", &format!(r#"{{"allow":["{address}"],"private":true}}"#));
        let session = bench.session();
        for (path, more) in [
            ("/api/v1/health", ""),
            ("/api/v1/templates", "method: 'POST', body: '{\"name\":\"x\"}',"),
            ("/api/v1/control", ""),
            ("/mcp", "method: 'POST', body: '{}',"),
            ("/", ""),
            ("/api/v1/templates", "headers: { 'X-VM-System-Egress': '', connection: 'x-vm-system-egress' },"),
            ("/api/v1/templates", "headers: { authorization: 'Bearer x' },"),
        ] {
            let code = format!(
                "await fetch('http://{address}{path}', {{ {more} }}).then(async (r) => r.status + (await r.text()), String)"
            );
            let response = bench.eval(&session, &code);
            assert!(response.starts_with("'403") && response.contains("script"), "{path} {more}: {response}");
        }
        let made = Http::tcp(address).get("/api/v1/templates");
        assert!(made.status == 200 && !made.text().contains("\"x\""), "nothing was made: {}", made.text());
        drop(other);
        // A length that would let a server take the next request for a body.
        let server = Server::start();
        bench.row(
            CapabilityKind::Net,
            "own",
            &format!(r#"{{"allow":["{}"],"private":true}}"#, server.address),
        );
        let session = bench.session();
        for length in ["5, 50", "x", "+5", ""] {
            let code = format!(
                "const body = new ReadableStream({{ pull(c) {{ c.enqueue(new TextEncoder().encode('12345')); c.close() }} }}); \
                 await fetch('{}', {{ method: 'POST', duplex: 'half', body, headers: {{ 'content-length': '{length}' }} }}) \
                 .then((r) => r.status, (error) => error.cause?.code)",
                server.url("/echo")
            );
            let session = &session;
            assert_eq!(bench.eval(session, &format!("{{ {code} }}")), "'UND_ERR_INVALID_ARG'", "{length}");
        }
        assert_eq!(server.count(), 0);
        bench.end();
    }

    pub(super) fn two_hundred_requests_of_one_session_run_at_a_time(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(
            CapabilityKind::Net,
            "test",
            &format!(r#"{{"allow":["{}"],"private":true,"concurrency":200}}"#, server.address),
        );
        let session = bench.session();
        let all = format!(
            "const all = await Promise.all(Array.from({{ length: 200 }}, (_, i) => fetch('{}', {{ method: 'POST', body: 'n' + i }}) \
             .then((r) => r.text()).then((text) => text === 'n' + i))); all.length + String(all.every(Boolean))",
            server.url("/echo")
        );
        assert_eq!(bench.eval(&session, &all), "'200true'");
        let more = format!(
            "const held = Array.from({{ length: 201 }}, () => fetch('{}', {{ signal: AbortSignal.timeout(200) }})); \
             (await Promise.allSettled(held)).filter((one) => one.reason.cause?.code === 'ERR_NET_LIMIT').length",
            server.url("/hold")
        );
        assert_eq!(bench.eval(&session, &more), "1");
        bench.end();
    }

    pub(super) fn requests_fail_when_the_egress_process_is_killed_or_hangs_and_the_next_one_gets_another(
        user: User,
    ) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(
            CapabilityKind::Net,
            "test",
            &format!(r#"{{"allow":["{}"],"private":true}}"#, server.address),
        );
        let session = bench.session();
        let code = format!("await fetch('{}').catch((error) => error.cause.code)", server.url("/hold"));
        for signal in [SIGKILL, SIGSTOP] {
            let execution = bench.client.start(&session, &code);
            server.held.recv().expect("a request");
            let egress = observe::in_mode(bench.daemon.pid(), "egress");
            assert_eq!(egress.len(), 1, "one process for all sessions");
            egress[0].signal(signal).expect("a signal");
            let record = bench.client.until_final(&execution);
            assert!(record.error.is_none(), "{signal}: {record:?}");
            let events = bench.client.events(&execution.id.to_string());
            assert_eq!(vm_system_tests::client::value(&events), Some("'ERR_NET_EGRESS_LOST'"), "{signal}");
            assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'", "{signal}");
        }
        bench.end();
    }

    /// A write to a socket that the peer has reset sends SIGPIPE, unless its caller says otherwise (`writev` cannot).
    pub(super) fn no_process_ends_because_a_peer_is_gone(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        let reach = format!(r#"{{"allow":["{}"],"private":true}}"#, server.address);
        bench.row(CapabilityKind::Net, "test", &reach);
        let session = bench.session();
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'");
        bench.eval(&session, "globalThis.kept = 1");
        let processes = observe::descendants(bench.daemon.pid());
        assert_eq!(observe::in_mode(bench.daemon.pid(), "egress").len(), 1, "it is one of them");
        for process in &processes {
            process.signal(SIGPIPE).expect("a signal");
        }
        assert_eq!(bench.eval(&session, "kept"), "1");
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'");
        for process in &processes {
            assert!(process.is_alive(), "{:?} has ended", process.pid());
        }
        bench.end();
    }

    pub(super) fn secrets_reach_their_host_and_nothing_else(user: User) {
        let (server, other) = (Server::start(), Server::start());
        let place = TestDir::new(user);
        let file = place.path("secrets.toml");
        write_secret(&file, user, server.address);
        let mut bench = with_arguments(user, &["--secrets", file.to_str().expect("UTF-8")]);
        for server in [&server, &other] {
            let row = format!(r#"{{"allow":["{}"],"private":true,"secrets":["KEY"]}}"#, server.address);
            bench.row(CapabilityKind::Net, &server.address.to_string(), &row);
        }
        let session = bench.session();
        let with_secret = |url: &str| {
            format!(
                "await fetch('{url}', {{ headers: {{ authorization: 'Bearer {{secret:KEY}}' }} }}).then((r) => r.text()) \
                 .then((text) => /bearer hunter2/.test(text), (error) => error.cause.code)"
            )
        };
        assert_eq!(bench.eval(&session, &with_secret(&server.url("/headers"))), "true");
        assert_eq!(bench.eval(&session, &with_secret(&other.url("/headers"))), "'ERR_NET_DENIED'");
        let redirected = with_secret(&server.url(&format!("/to?{}", other.url("/headers"))));
        assert_eq!(bench.eval(&session, &redirected), "false", "a redirect takes no secret along");
        assert!(!format!("{:?}", audit(&mut bench)).contains("hunter2"));
        assert!(!bench.daemon.log().contains("hunter2"));
        bench.end();
    }

    pub(super) fn requests_are_events_and_lines_of_the_audit_log(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(
            CapabilityKind::Net,
            "test",
            &format!(r#"{{"allow":["{}"],"private":true}}"#, server.address),
        );
        let session = bench.session();
        let code = format!(
            "await (await fetch('{}', {{ method: 'POST', body: 'four' }})).text()",
            server.url("/echo?secret=query")
        );
        let records = records(&mut bench, &session, &code);
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!(
            (record.method.as_str(), record.path.as_str(), record.status),
            ("POST", "/echo", Some(200))
        );
        assert_eq!((record.sent, record.received, &record.error), (4, 4, &None));
        assert_eq!(record.origin, format!("http://{}", server.address));
        watch::wait_until(|| audit(&mut bench).len() == 1, || "no line of the audit log".to_owned());
        let (subject, outcome) = audit(&mut bench).remove(0);
        assert_eq!(outcome, "200");
        assert!(
            subject.contains(&format!("POST http://{}/echo sent=4 received=4 ms=", server.address)),
            "{subject}"
        );
        assert!(!subject.contains("query"), "{subject}");
        bench.end();
    }

    pub(super) fn a_request_that_its_execution_leaves_open_is_ended_and_recorded(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(
            CapabilityKind::Net,
            "test",
            &format!(r#"{{"allow":["{}"],"private":true}}"#, server.address),
        );
        let session = bench.session();
        let code = format!("fetch('{}'); setTimeout(() => process.exit(0), 50)", server.url("/hold"));
        bench.client.eval(&session, &code).expect("a response");
        watch::wait_until(|| audit(&mut bench).len() == 1, || "no line of the audit log".to_owned());
        assert_eq!(audit(&mut bench)[0].1, "ABORT_ERR");
        assert_eq!(fetched(&mut bench, &session, &server.url("/")), "'hello'", "the session goes on");
        bench.end();
    }

    pub(super) fn sessions_do_not_reach_the_exchanges_of_others(user: User) {
        let server = Server::start();
        let mut bench = bench(user);
        bench.row(
            CapabilityKind::Net,
            "test",
            &format!(r#"{{"allow":["{}"],"private":true}}"#, server.address),
        );
        let (one, two) = (bench.session(), bench.session());
        let wait = format!("await fetch('{}').catch((error) => error.cause.code)", server.url("/hold/one"));
        let execution = bench.client.start(&one, &wait);
        assert_eq!(server.held.recv().expect("a request"), "/hold/one");
        // Both sessions number their first exchange 1.
        let aborted = format!(
            "await fetch('{}', {{ signal: AbortSignal.timeout(50) }}).catch((error) => error.name)",
            server.url("/hold/two")
        );
        assert_eq!(bench.eval(&two, &aborted), "'TimeoutError'");
        let record = bench.client.execution_record(&execution.id.to_string());
        assert!(record.ended_at.is_none(), "the other session's request goes on: {record:?}");
        bench.client.op(ExecCancel { execution: execution.id.to_string() }).expect("cancelled");
        bench.client.until_final(&execution);
        bench.end();
    }
}
