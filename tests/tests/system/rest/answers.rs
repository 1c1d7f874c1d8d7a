//! The form of responses: refusals on a keep-alive connection, parts of lists, entity tags, compression, `OPTIONS`.

use serde_json::json;
use std::time::{Duration, Instant};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch::wait_until;

const TEMPLATES: &str = "/api/v1/templates";

#[test]
fn an_early_refusal_leaves_the_connection_usable_or_closes_it_by_name() {
    let config = "[http]\nlisten = [\"127.0.0.1:0\"]".to_owned();
    let options = DaemonOptions { config, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let mut http = Http::tcp(daemon.addresses()[0]);
    // Larger than the buffers of the connection.
    let body = format!("{{\"name\":\"{}\"}}", "x".repeat(3 << 20));
    for (method, path, fields, status) in [
        ("POST", "/api/v1/nothing", &[][..], 404),
        ("PUT", TEMPLATES, &[], 405),
        ("POST", TEMPLATES, &[], 413),
        ("POST", TEMPLATES, &[("authorization", "Bearer unknown")], 401),
        ("POST", TEMPLATES, &[("origin", "http://evil.example")], 403),
        ("POST", "/api/v1/templates?x=1", &[], 400),
        ("POST", "/api/v1/imports/program", &[("content-type", "text/plain")], 415),
        ("POST", "/ui", &[], 404),
    ] {
        let response = http.request(method, path, fields, Some(&body));
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert_eq!(response.field("connection"), None, "{path}");
        assert_eq!(http.get("/api/v1/health").status, 200, "the connection after {path}");
    }
    let too_long = "content-length: 1073741824\r\ncontent-type: application/json\r\n\r\n{";
    for (fields, status) in [
        (too_long, 413),
        (
            &format!("expect: 100-continue\r\nauthorization: x\r\n{}", too_long.replace("1073741824", "5")),
            401,
        ),
    ] {
        let mut http = Http::tcp(daemon.addresses()[0]);
        http.send(format!("POST {TEMPLATES} HTTP/1.1\r\nhost: localhost\r\n{fields}").as_bytes());
        let response = http.response(false).expect("a response");
        assert_eq!((response.status, response.field("connection")), (status, Some("close")));
        assert!(http.response(false).is_none(), "the connection ends");
    }
    daemon.stop();
}

#[test]
fn no_list_ends_without_a_cursor_unless_it_is_complete() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    for number in 0..1_010 {
        assert_eq!(http.post(TEMPLATES, &json!({ "name": format!("t{number}") })).status, 201);
    }
    for query in ["", "?limit=1000", "?limit=5000"] {
        let mut names = Vec::new();
        let mut next = format!("{TEMPLATES}{query}");
        let mut parts = 0;
        loop {
            let response = http.get(&next);
            let part = response.json();
            names.extend(part.as_array().expect("a list").iter().map(|row| row["name"].to_string()));
            parts += 1;
            let Some(cursor) = response.field("x-next-cursor") else { break };
            next = format!("{TEMPLATES}?cursor={cursor}");
        }
        names.sort();
        names.dedup();
        assert_eq!((names.len(), parts), (1_010, 2), "{query}");
    }
    daemon.stop();
}

#[test]
fn lists_of_events_have_a_cursor_if_there_may_be_more() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let template = http.post(TEMPLATES, &json!({ "name": "t" })).json()["id"].clone();
    let path = format!("{TEMPLATES}/{}", template.as_str().expect("an id"));
    let limits = json!({ "limits": { "max_events": 5_000 } }).to_string();
    assert_eq!(http.request("PATCH", &path, &[], Some(&limits)).status, 200);
    let session = json!({ "template_id": template, "workspace_id": "w", "base_commit_oid": "c",
        "worktree_path": daemon.place.worktree() });
    let session = http.post("/api/v1/sessions", &session).json()["id"].clone();
    let input = "for (let n = 0; n < 1500; n++) console.log(n)";
    let ran = http.post("/api/v1/executions/repl", &json!({ "session_id": session, "input": input })).json();
    let of_execution = format!("/api/v1/executions/{}/events", ran["id"].as_str().expect("an id"));
    let of_session = format!("/api/v1/sessions/{}/events", session.as_str().expect("an id"));
    for (path, query, total) in
        [(&of_execution, "?limit=1000", 1_502), (&of_execution, "", 1_502), (&of_session, "?limit=2", 4)]
    {
        let mut seqs = Vec::new();
        let mut next = format!("{path}{query}");
        let mut parts = 0;
        loop {
            let response = http.get(&next);
            seqs.extend(
                response.json().as_array().expect("a list").iter().filter_map(|row| row["seq"].as_u64()),
            );
            parts += 1;
            let Some(cursor) = response.field("x-next-cursor") else { break };
            let more = query.trim_start_matches('?');
            next = format!("{path}?cursor={cursor}&{more}");
        }
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{path}{query}");
        assert!(
            seqs.len() >= total && (parts > 1 || query.is_empty()),
            "{path}{query}: {} {parts}",
            seqs.len()
        );
    }
    daemon.stop();
}

#[test]
fn objects_have_tags_and_large_responses_are_compressed() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let id = http.post(TEMPLATES, &json!({ "name": "t" })).json()["id"].as_str().expect("an id").to_owned();
    let path = format!("{TEMPLATES}/{id}");
    let first = http.get(&path);
    let tag = first.field("etag").expect("a tag").to_owned();
    let again = http.request("GET", &path, &[("if-none-match", &tag)], None);
    assert_eq!((again.status, again.field("etag")), (304, Some(tag.as_str())));
    assert_eq!(http.request("PATCH", &path, &[], Some("{\"name\":\"u\"}")).status, 200);
    assert_eq!(http.request("GET", &path, &[("if-none-match", &tag)], None).status, 200, "it has changed");
    assert_eq!(http.get(TEMPLATES).field("etag"), None, "a list");
    let packed = http.request("GET", "/api/v1/openapi.json", &[("accept-encoding", "gzip")], None);
    assert_eq!((packed.status, packed.field("content-encoding")), (200, Some("gzip")));
    let whole = http.get("/api/v1/openapi.json");
    assert_eq!(whole.field("content-encoding"), None);
    let (packed, whole) = (packed.body, whole.body.len());
    assert!(packed.starts_with(&[0x1f, 0x8b]) && packed.len() < whole / 4, "{} of {whole}", packed.len());
    daemon.stop();
}

#[test]
fn a_refused_import_occupies_nothing() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    assert_eq!(http.post("/api/v1/programs", &json!({ "name": "p", "source": "1" })).status, 201);
    let file = http.get("/api/v1/programs/p/export").text();
    let mut import = |name: &str, key: &str| {
        let path = format!("/api/v1/imports/program?name={name}");
        http.request("POST", &path, &[("idempotency-key", key)], Some(&file)).status
    };
    assert_eq!(import("q", "k"), 201);
    // More than an owner may import at a time.
    for _ in 0..20 {
        assert_eq!(import("r", "k"), 409, "the key of another request");
        assert_eq!(import("q", "k"), 201, "the same request again");
    }
    assert_eq!(import("r", "l"), 201);
    daemon.stop();
}

#[test]
fn an_import_whose_client_has_gone_occupies_nothing() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    assert_eq!(http.post("/api/v1/programs", &json!({ "name": "p", "source": "1" })).status, 201);
    let file = http.get("/api/v1/programs/p/export").text();
    let fields = [("content-type", "application/json")];
    let whole = http.request_bytes("POST", "/api/v1/imports/program?name=q", &fields, Some(&file));
    // Each over a connection of its own: a refused one may be closed before its body was read.
    let import = || {
        let mut http = daemon.http();
        http.send(&whole);
        http.response(false).expect("a response").status
    };
    let half = whole[..whole.len() - 10].to_vec();
    // As many as an owner may import at a time. One that is refused occupies no place: then another one follows.
    let mut clients = Vec::new();
    let mut is_full = || {
        let mut client = daemon.http();
        client.send(&half);
        clients.push(client);
        import() == 503
    };
    wait_until(&mut is_full, || "the imports have not begun".to_owned());
    drop(clients);
    // Earlier than idle imports are given up.
    let gone = Instant::now();
    wait_until(|| import() != 503, || "the places are not free".to_owned());
    assert!(gone.elapsed() < Duration::from_secs(45), "{:?}", gone.elapsed());
    daemon.stop();
}

#[test]
fn options_names_the_methods_of_a_resource() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    for (path, allowed) in [(TEMPLATES, "GET,HEAD,POST"), ("/api/v1/sessions/x", "GET,HEAD,DELETE")] {
        let response = http.request("OPTIONS", path, &[], None);
        assert_eq!((response.status, response.field("allow")), (204, Some(allowed)), "{path}");
    }
    assert_eq!(http.request("OPTIONS", "/api/v1/nothing", &[], None).status, 404);
    assert_eq!(http.request("PUT", TEMPLATES, &[], None).field("allow"), Some("GET,HEAD,POST"));
    let response = http.request("OPTIONS", "/mcp", &[], None);
    assert_eq!((response.status, response.field("allow")), (204, Some("GET,POST,DELETE")));
    daemon.stop();
}

#[test]
fn files_of_a_ui_name_their_methods() {
    let place = TestDir::new(User::AsStarted);
    place.write("ui/index.html", "<html>");
    place.write("ui/assets/a.js", "1");
    let arguments = vec!["--ui-dir".to_owned(), place.worktree().join("ui").to_string_lossy().into_owned()];
    let daemon = Daemon::start_with(place, &DaemonOptions { arguments, ..DaemonOptions::default() });
    let mut http = daemon.http();
    for path in ["/", "/index.html", "/assets/a.js", "/assets/none.js"] {
        for (method, status) in [("OPTIONS", 204), ("POST", 405), ("DELETE", 405)] {
            let response = http.request(method, path, &[], None);
            assert_eq!(
                (response.status, response.field("allow")),
                (status, Some("GET,HEAD")),
                "{method} {path}"
            );
        }
    }
    daemon.stop();
}

#[test]
fn head_has_the_fields_of_get() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let template = http.post(TEMPLATES, &json!({ "name": "t" })).json();
    let one = format!("{TEMPLATES}/{}", template["id"].as_str().expect("an id"));
    for path in ["/api/v1/health", TEMPLATES, &one, "/api/v1/openapi.json", "/api/v1/sessions/x"] {
        let fields = [("accept-encoding", "gzip")];
        let get = http.request("GET", path, &fields, None);
        http.send(&http.request_bytes("HEAD", path, &fields, None));
        let head = http.response(true).expect("a response");
        assert_eq!(head.status, get.status, "{path}");
        for name in ["etag", "content-type", "content-length", "content-encoding", "vary"] {
            assert_eq!(head.field(name), get.field(name), "{name} of {path}");
        }
        if let Some(tag) = get.field("etag") {
            http.send(&http.request_bytes("HEAD", path, &[("if-none-match", tag)], None));
            assert_eq!(http.response(true).expect("a response").status, 304, "{path}");
        }
    }
    daemon.stop();
}

#[test]
fn a_number_out_of_range_is_refused_with_its_parameter_and_its_bounds() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    for wrong in ["4294967296", "18446744073709551616", "-1", "0", "1.5", "1e3", "+1", "many", "%201"] {
        let response = http.get(&format!("{TEMPLATES}?limit={wrong}"));
        assert_eq!((response.status, response.code().as_str()), (400, "VALIDATION_ERROR"), "{wrong}");
        let message = &response.json()["error"]["message"];
        assert_eq!(message, "limit must be a whole number from 1 to 4294967295", "{wrong}");
    }
    assert_eq!(http.get(&format!("{TEMPLATES}?limit=4294967295")).status, 200);
    daemon.stop();
}

/// Not JavaScript: read as TypeScript, and refused under the name of a JavaScript file.
const ONLY_TYPESCRIPT: &[&str] = &[
    "enum Color { Red, Green }",
    "const enum Color { Red }",
    "let x: number = 1",
    "let x = 1 as number",
    "let x = {} satisfies object",
    "let x = 1; let y = x!",
    "let x = { a: 1 }; x!.a = 2",
    "let x = 1; let y = <number>x",
    "function f(a?) {}",
    "function f(this: object) {}",
    "function f(a): void; function f(a) {}",
    "const f = <T,>(a) => a",
    "const f = async <T>(a) => a",
    "let f = x => x; new Map<string, number>()",
    "abstract class A { abstract m() }",
    "class A {} class B implements A {}",
    "class A<T> {}",
    "class A { constructor(private x) {} }",
    "class A { private x }",
    "class A { public m() {} }",
    "class A { protected static m() {} }",
    "class A { readonly x = 1 }",
    "class A { declare x }",
    "class A { override m() {} }",
    "class A { x? }",
    "class A { m?() {} }",
    "class A { x!: number }",
    "class A { [key: string]: any }",
    "type A = string",
    "interface A { x: number }",
    "declare const a: number",
    "declare function f(): void",
    "try {} catch (e: unknown) {}",
];

/// Refused in both languages: they are not in the language of programs, or have an error in TypeScript, too.
const NEITHER: &[&str] = &[
    "import fs = require(\"fs\")",
    "export = 5",
    "namespace N { export const a = 1 }",
    "@dec class A {}",
    "class A { @dec m() {} }",
    "class A { accessor x = 1 }",
    "function f(a?: number, b) {}",
    "let a!",
    "({ m?() {} })",
    "class A { constructor() {} constructor() {} }",
    "let a; let a",
    "var yield",
    "with ({}) {}",
    "07",
    "delete x",
];

/// JavaScript whose tokens have another meaning in TypeScript, and its result.
const JAVASCRIPT_THAT_LOOKS_TYPED: &[(&str, &str)] = &[
    ("let a = 1, b = 2, c = 0; function main() { return a < b > (c) }", "true"),
    ("let f = 1, T = 1; function main() { return f<T>(0) }", "false"),
    ("let f = 3, T = 2; function main() { return f < T > `0` }", "false"),
    ("let x = 1, y = 2; function main() { return x ? (y) : z => 3 }", "2"),
    ("let x = 0, y = 2; function main() { return (x ? (y) : z => z)(3) }", "3"),
    ("let x = 1, y = 2; function main() { return (x ? (y) => y : z => 0)(7) }", "7"),
    ("class A { declare\nx } function main() { return Object.keys(new A()) }", "[\"declare\",\"x\"]"),
    ("class A { readonly\nx = 1 } function main() { return Object.keys(new A()) }", "[\"readonly\",\"x\"]"),
    ("class A { static\nprivate = 4 } function main() { return A.private }", "4"),
    ("var type = 1, A = 2; type\nA\n= 5; function main() { return [type, A] }", "[1,5]"),
    ("var abstract = 1; abstract\nclass A {} function main() { return typeof A }", "\"function\""),
    ("var namespace = 1, N = 2; namespace\nN\n{ } function main() { return N }", "2"),
    ("var as = 1, satisfies = 2; function main() { return as + satisfies }", "3"),
    ("let async = 5, x = 1; function main() { return async < x > (1) }", "false"),
];

#[test]
fn the_language_of_a_program_is_decided_and_reported() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let mut runs = daemon.http();
    let mut load = |name: &str, source: &str, typescript: Option<bool>| {
        let body = json!({ "name": name, "source": source, "typescript": typescript });
        let response = http.post("/api/v1/programs", &body);
        match response.status {
            201 => response.json()["typescript"].as_bool(),
            422 => None,
            status => panic!("{status}: {}", response.text()),
        }
    };
    // Not JavaScript, and without anything of TypeScript; the compiler of TypeScript accepts it.
    let neither = "class C { constructor() {} constructor() {} }";
    assert_eq!(load("a", neither, None), None);
    assert_eq!(load("a", "function main() { return 1 }", None), Some(false));
    assert_eq!(load("a", "function main(): number { return 1 }", None), Some(true));
    assert_eq!(load("a", "interface I { x: number } function main() { return 1 }", None), Some(true));
    assert_eq!(load("a.ts", "function main() { return 1 }", None), Some(true));
    assert_eq!(load("a.js", "function main(): number { return 1 }", None), None);
    assert_eq!(load("a.js", "function main(): number { return 1 }", Some(true)), Some(true));
    for source in ONLY_TYPESCRIPT {
        assert_eq!(load("b", source, None), Some(true), "{source}");
        assert_eq!(load("b.js", source, None), None, "{source}");
    }
    for source in NEITHER {
        assert_eq!((load("c", source, None), load("c.js", source, None)), (None, None), "{source}");
    }
    for (source, result) in JAVASCRIPT_THAT_LOOKS_TYPED {
        assert_eq!(load("d", source, None), Some(false), "{source}");
        let run = runs.post("/api/v1/executions/program", &json!({ "name": "d" }));
        assert_eq!(run.json()["result"]["json"].to_string(), *result, "{source}");
    }
    daemon.stop();
}
