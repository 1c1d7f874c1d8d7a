//! Rows of one owner do not exist for others: checked for every route that the daemon describes, so that a new route fails here
//! until it has its row in the table.

use super::described::{Description, Route};
use super::people::{self, ALICE, BOB, Belongings, ROOT};
use serde_json::{Value, json};
use vm_system_tests::daemon::Daemon;
use vm_system_tests::http::{Http, Response};
use vm_system_tests::watch::Watch;

/// The kind of data that a route is about.
enum About {
    /// Data without an owner.
    Unowned,
    /// A list of which each owner sees its own part.
    List,
    /// Creates something that the caller owns.
    Own,
    /// A thing with an owner: the body, and the error code for a thing that does not exist.
    Theirs(Option<Value>, &'static str),
    /// For administrators only: the body.
    Administrators(Option<Value>),
}

fn about(route: &Route, of: &Belongings, daemon: &Daemon) -> About {
    const TEMPLATE: &str = "TEMPLATE_NOT_FOUND";
    const SESSION: &str = "SESSION_NOT_FOUND";
    const EXECUTION: &str = "EXECUTION_NOT_FOUND";
    let path = route.path.strip_prefix("/api/v1").expect("the prefix");
    let name = Some(json!({ "name": "fs" }));
    match (route.method.as_str(), path) {
        (
            "GET",
            "/health" | "/runtime" | "/runtime/summary" | "/modules" | "/libraries" | "/openapi.json",
        ) => About::Unowned,
        ("GET", "/runtime/upgrade") => About::Administrators(None),
        ("PUT", "/runtime/upgrade") => About::Administrators(Some(json!({}))),
        ("GET", "/templates" | "/sessions" | "/programs" | "/tasks" | "/schedules") => About::List,
        (
            "POST",
            "/templates" | "/programs" | "/plans" | "/imports/program" | "/imports/execution" | "/schedules",
        ) => About::Own,
        ("GET" | "POST" | "DELETE", path) if path.starts_with("/schedules/{schedule}") => {
            About::Theirs(None, "NOT_FOUND")
        }
        ("PUT", "/clients/{client}/current-execution") => {
            About::Theirs(Some(json!({ "execution_id": of.run })), EXECUTION)
        }
        ("GET", "/clients/{client}/current-execution") => About::Theirs(None, EXECUTION),
        ("PATCH", "/templates/{template_id}") => {
            About::Theirs(Some(json!({ "name": format!("new-{}", of.template) })), TEMPLATE)
        }
        ("POST", "/templates/{template_id}/modules") => About::Theirs(name, TEMPLATE),
        ("POST", "/templates/{template_id}/libraries") => {
            About::Theirs(Some(json!({ "name": "lodash-4.17.21" })), TEMPLATE)
        }
        ("POST", "/templates/{template_id}/capabilities") => {
            About::Theirs(Some(json!({ "kind": "env", "name": "Y" })), TEMPLATE)
        }
        ("POST", "/templates/{template_id}/startup-files") => {
            About::Theirs(Some(json!({ "path": "b.js" })), TEMPLATE)
        }
        ("GET" | "DELETE", path) if path.starts_with("/templates/{template_id}") => {
            About::Theirs(None, TEMPLATE)
        }
        ("POST", "/sessions") => {
            let worktree = daemon.place.worktree();
            let body = json!({
                "template_id": of.template, "workspace_id": "w", "base_commit_oid": "c", "worktree_path": worktree,
            });
            About::Theirs(Some(body), TEMPLATE)
        }
        ("POST", "/sessions/{session_id}/rename") => {
            About::Theirs(Some(json!({ "name": format!("new-{}", of.session) })), SESSION)
        }
        ("GET" | "POST" | "DELETE", path) if path.starts_with("/sessions/{session_id}") => {
            About::Theirs(None, SESSION)
        }
        ("POST", "/executions/repl") => {
            About::Theirs(Some(json!({ "session_id": of.session, "input": "1" })), SESSION)
        }
        ("POST", "/executions/run-file") => {
            About::Theirs(Some(json!({ "session_id": of.session, "path": "app.js" })), SESSION)
        }
        ("GET", "/executions") => About::Theirs(None, SESSION),
        ("POST", "/executions/program") => {
            About::Theirs(Some(json!({ "program_id": of.program })), "PROGRAM_NOT_FOUND")
        }
        ("GET" | "DELETE", path) if path.starts_with("/programs/{program}") => {
            About::Theirs(None, "PROGRAM_NOT_FOUND")
        }
        ("POST", "/executions/{execution_id}/task") => {
            About::Theirs(Some(json!({ "result": "1" })), EXECUTION)
        }
        ("PATCH", "/executions/{execution_id}/state") => {
            About::Theirs(Some(json!({ "name": "x", "value": 2 })), EXECUTION)
        }
        ("POST", "/events") => {
            About::Theirs(Some(json!({ "name": "e", "event": 1, "execution_id": of.run })), EXECUTION)
        }
        ("POST", "/executions/{execution_id}/rewind" | "/executions/{execution_id}/rerun") => {
            About::Theirs(Some(json!({ "checkpoint": of.checkpoint })), EXECUTION)
        }
        ("GET" | "POST" | "DELETE", path) if path.starts_with("/executions/{execution_id}") => {
            About::Theirs(None, EXECUTION)
        }
        (method, path) => panic!("{method} {path} has no row in the matrix of owners"),
    }
}

fn path_of(route: &Route, of: &Belongings) -> String {
    let parts = ["/task", "/state", "/checkpoints", "/rewind", "/fork", "/rerun", "/export"];
    let forgets = route.method == "DELETE" && route.path.ends_with("/executions/{execution_id}");
    let of_program = forgets || parts.iter().any(|part| route.path.ends_with(part));
    let path = route
        .path
        .replace("{template_id}", &of.template)
        .replace("{capability_id}", &of.capability)
        .replace("{file_id}", &of.file)
        .replace("{session_id}", &of.session)
        .replace("{execution_id}", if of_program { &of.run } else { &of.execution })
        .replace("{program}", &of.program)
        .replace("{schedule}", &of.schedule)
        .replace("{client}", "me")
        .replace("{checkpoint}", "1")
        .replace("libraries/{name}", "libraries/lodash-4.17.21")
        .replace("{name}", "fs");
    assert!(!path.contains('{'), "{path} has an unknown parameter");
    if path == "/api/v1/executions" { format!("{path}?session_id={}", of.session) } else { path }
}

fn request_route(http: &mut Http, route: &Route, of: &Belongings, body: Option<&Value>) -> Response {
    http.request(&route.method, &path_of(route, of), &[], body.map(Value::to_string).as_deref())
}

fn describes(http: &mut Http) -> Vec<Route> {
    let mut routes = Description::read(&http.get("/api/v1/openapi.json").json()).routes();
    // The upgrade has no request and no response of its own; `tests/remote` has its owners.
    routes.retain(|route| !route.path.ends_with("/control"));
    // Routes that end or delete something come last, those that delete most at the very end.
    routes.sort_by_key(|route| {
        let last = ["/close", "/kill", "/rewind"];
        let ends = route.method == "DELETE" || last.iter().any(|last| route.path.ends_with(last));
        let parts = route.path.matches('/').count();
        // The current execution is set before it is read.
        (ends, if ends { usize::MAX - parts } else { parts }, route.method != "PUT")
    });
    assert!(routes.len() > 30, "only {} routes", routes.len());
    routes
}

#[test]
fn what_belongs_to_alice_does_not_exist_for_bob_on_any_route() {
    let daemon = people::daemon(&[]);
    let mut alice = daemon.http().bearer(ALICE);
    let mut bob = daemon.http().bearer(BOB);
    let of = people::belongings(&mut alice, &daemon, "alices");
    let before = alice.get(&format!("/api/v1/templates/{}", of.template)).json();
    for route in describes(&mut bob) {
        let at = format!("{} {}", route.method, route.path);
        match about(&route, &of, &daemon) {
            About::Unowned => assert_eq!(request_route(&mut bob, &route, &of, None).status, 200, "{at}"),
            About::List => assert_eq!(request_route(&mut bob, &route, &of, None).text(), "[]", "{at}"),
            About::Own => {}
            About::Administrators(body) => {
                let response = request_route(&mut bob, &route, &of, body.as_ref());
                assert_eq!((response.status, response.code().as_str()), (403, "NOT_PERMITTED"), "{at}");
            }
            About::Theirs(body, code) => {
                let response = request_route(&mut bob, &route, &of, body.as_ref());
                assert_eq!(
                    (response.status, response.code().as_str()),
                    (404, code),
                    "{at}: {}",
                    response.text()
                );
                assert!(!response.text().contains("alice"), "{at} reveals too much: {}", response.text());
            }
        }
    }
    let summary = bob.get("/api/v1/runtime/summary").json();
    assert_eq!(summary["active_sessions"], 0);
    for filter in
        ["status=ready".to_owned(), format!("template_id={}", of.template), "workspace_id=alices".to_owned()]
    {
        assert_eq!(bob.get(&format!("/api/v1/sessions?{filter}")).text(), "[]", "{filter}");
    }
    // A name is unique per owner, and alice's rows have not changed.
    assert_eq!(bob.post("/api/v1/templates", &json!({ "name": "alices" })).status, 201);
    assert_eq!(alice.get(&format!("/api/v1/templates/{}", of.template)).json(), before);
    let execution =
        alice.post("/api/v1/executions/repl", &json!({ "session_id": of.session, "input": "40 + 2" }));
    assert_eq!(execution.json()["result"]["json"], 42, "{}", execution.text());
    drop((alice, bob));
    daemon.stop();
}

#[test]
fn schedule_of_an_owner_who_has_lost_the_token_starts_nothing() {
    let daemon = people::daemon(&[]);
    let mut alice = daemon.http().bearer(ALICE);
    let source = "function main() { return 1; }";
    assert_eq!(alice.post("/api/v1/programs", &json!({ "name": "p", "source": source })).status, 201);
    let made = alice.post("/api/v1/schedules", &json!({ "name": "p", "every_ms": 1_000 })).json();
    people::write_book(&daemon.place, &people::book(&["bob", "root"]));
    daemon.hang_up();
    let mut root = daemon.http().bearer(ROOT);
    let path = format!("/api/v1/schedules/{}", made["id"].as_str().expect("an id"));
    let mut watch = Watch::begin();
    loop {
        let now = root.get(&path).json();
        if now["last_error"]["code"] == "NOT_PERMITTED" {
            assert_eq!(now["owner"], "alice");
            break;
        }
        watch.pause(|| format!("it is started: {now}"));
    }
    let run = root.post(&format!("{path}/run"), &json!({}));
    assert_eq!((run.status, run.code().as_str()), (403, "NOT_PERMITTED"), "{}", run.text());
    daemon.stop();
}

#[test]
fn the_owner_and_an_administrator_reach_everything() {
    let daemon = people::daemon(&[]);
    for (number, (maker, user)) in [(ALICE, ALICE), (ALICE, ROOT)].into_iter().enumerate() {
        let name = format!("mine-{number}");
        let of = people::belongings(&mut daemon.http().bearer(maker), &daemon, &name);
        let mut http = daemon.http().bearer(user);
        for route in describes(&mut http) {
            let at = format!("{} {}", route.method, route.path);
            let response = match about(&route, &of, &daemon) {
                About::Unowned | About::List => request_route(&mut http, &route, &of, None),
                About::Own => continue,
                About::Administrators(_) if user != ROOT => continue,
                About::Administrators(body) | About::Theirs(body, _) => {
                    request_route(&mut http, &route, &of, body.as_ref())
                }
            };
            // After the route that kills the session, later ones find it ended.
            let ended = response.code() == "SESSION_NOT_READY";
            // It restores no other session, and while it is live it is not restored.
            let ended = ended
                || (response.code() == "NOT_FOUND" && route.path.ends_with("/restoration"))
                || (response.code() == "CONFLICT" && route.path.ends_with("/restore"));
            assert!(
                (200..300).contains(&response.status) || ended,
                "{at}: {} {}",
                response.status,
                response.text()
            );
            if route.path == "/api/v1/sessions" && route.method == "GET" {
                assert!(response.text().contains(&of.session), "{at}");
            }
        }
    }
    daemon.stop();
}

#[test]
fn audit_log_has_owner_verb_and_api_and_survives_a_restart() {
    let daemon = people::daemon(&[]);
    let mut alice = daemon.http().bearer(ALICE);
    let of = people::belongings(&mut alice, &daemon, "alices");
    assert_eq!(alice.post("/api/v1/templates", &json!({ "name": "alices" })).status, 409);
    let mut bob = daemon.http().bearer(BOB);
    assert_eq!(bob.post("/api/v1/templates", &json!({ "name": "bobs" })).status, 201);
    daemon.cli(&["session", "close", &of.session]).ok();
    drop((alice, bob));
    let place = daemon.stop();
    let config = format!("worktree_roots = [{:?}]\n", place.path(""));
    let daemon =
        Daemon::start_with(place, &vm_system_tests::daemon::DaemonOptions { config, ..Default::default() });
    let log: Value =
        serde_json::from_str(&daemon.cli(&["ops", "audit", "--output", "json"]).ok()).expect("json");
    let lines: Vec<String> = log
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} {}", text("owner"), text("api"), text("verb"), text("outcome"))
        })
        .collect();
    let us = format!("uid:{} control session close ok", nix::unistd::geteuid());
    for line in [
        "alice rest template create ok",
        "alice rest session create ok",
        "alice rest template create CONFLICT",
        "bob rest template create ok",
        us.as_str(),
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
    }
    let seqs: Vec<u64> =
        log.as_array().expect("a list").iter().filter_map(|entry| entry["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] > pair[1]), "newest first: {seqs:?}");
    let oldest = seqs.last().expect("entries").to_string();
    let older = daemon.cli(&["ops", "audit", "--before", &oldest, "--output", "json"]).ok();
    assert_eq!(older.trim(), "[]");
    daemon.stop();
}

#[test]
fn refusals_are_in_the_audit_log_and_a_flood_does_not_fill_it() {
    let daemon = people::daemon(&[]);
    let of = people::belongings(&mut daemon.http().bearer(ALICE), &daemon, "alices");
    let mut bob = daemon.http().bearer(BOB);
    let session = format!("/api/v1/sessions/{}", of.session);
    assert_eq!(bob.get(&session).status, 404);
    assert_eq!(bob.post(&format!("{session}/kill"), &json!({})).status, 404);
    let body = json!({ "name": "t", "color": "red" });
    assert_eq!(bob.post("/api/v1/templates", &body).code(), "INVALID_REQUEST");
    // An invalid read is not in the audit log.
    assert_eq!(bob.get("/api/v1/sessions/x").status, 400);
    let mut unauthorized = daemon.http().bearer("no-such-token");
    for _ in 0..300 {
        assert_eq!(unauthorized.get("/api/v1/templates").status, 401);
    }
    let origin = daemon.http().bearer(ALICE).with("origin", "http://evil.example").get("/api/v1/templates");
    assert_eq!(origin.status, 403);
    let command = ["ops", "audit", "--limit", "1000", "--output", "json"];
    let log: Value = serde_json::from_str(&daemon.cli(&command).ok()).expect("json");
    let entries = log.as_array().expect("a list");
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let line = |entry: &Value| {
        let [owner, verb, subject, outcome] =
            ["owner", "verb", "subject", "outcome"].map(|name| text(entry, name));
        format!("{owner} {verb} {subject} {outcome}")
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    let us = format!("uid:{}", nix::unistd::geteuid());
    for wanted in [
        format!("bob session get {} SESSION_NOT_FOUND", of.session),
        format!("bob session kill {} SESSION_NOT_FOUND", of.session),
        "bob POST /api/v1/templates  INVALID_REQUEST".to_owned(),
        format!("(nobody) GET /api/v1/templates {us} UNAUTHORIZED"),
    ] {
        assert!(lines.contains(&wanted), "{wanted}: {lines:#?}");
    }
    assert_eq!(lines.iter().filter(|line| line.starts_with("bob ")).count(), 3, "{lines:#?}");
    let unowned = lines.iter().filter(|line| line.starts_with("(nobody) "));
    assert!(unowned.count() < 60, "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("(nobody) unlisted ")), "{lines:#?}");
    daemon.stop();
}

#[test]
fn a_new_current_execution_has_a_line_in_the_audit_log() {
    let daemon = people::daemon(&[]);
    let mut alice = daemon.http().bearer(ALICE);
    let run = people::belongings(&mut alice, &daemon, "alice").run;
    let fields = [("content-type", "application/json")];
    let body = json!({ "execution_id": run }).to_string();
    let path = "/api/v1/clients/editor/current-execution";
    assert_eq!(alice.request("PUT", path, &fields, Some(&body)).status, 200);
    let log = daemon.cli(&["ops", "audit"]).ok();
    let line = log.lines().find(|line| line.contains("program set-current"));
    assert!(line.is_some_and(|line| line.contains(&run)), "{log}");
}

#[test]
fn administrators_see_the_owner_of_what_lists_have_and_others_see_none() {
    let daemon = people::daemon(&[]);
    let of = people::belongings(&mut daemon.http().bearer(ALICE), &daemon, "alices");
    people::belongings(&mut daemon.http().bearer(BOB), &daemon, "bobs");
    let lists = [
        "/sessions".to_owned(),
        "/sessions?engine=cvm".to_owned(),
        "/programs".to_owned(),
        format!("/executions?session_id={}", of.session),
        format!("/programs/{}/executions", of.program),
    ];
    let owners = |token: &str, path: &str| {
        let list = daemon.http().bearer(token).get(&format!("/api/v1{path}")).json();
        let list = list.as_array().expect("a list").clone();
        assert!(!list.is_empty(), "{path}");
        list.iter().map(|entry| entry["owner"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    for path in &lists {
        let of_all = owners(ROOT, path);
        assert!(of_all.contains(&"alice".to_owned()), "{path}: {of_all:?}");
        let has_bob = path.starts_with("/sessions") || path == "/programs";
        assert_eq!(of_all.contains(&"bob".to_owned()), has_bob, "{path}: {of_all:?}");
        assert!(owners(ALICE, path).iter().all(|owner| owner == "-"), "{path}");
    }
    for path in [
        format!("/sessions/{}", of.session),
        format!("/executions/{}", of.execution),
        format!("/executions/{}", of.run),
    ] {
        let path = format!("/api/v1{path}");
        assert_eq!(daemon.http().bearer(ROOT).get(&path).json()["owner"], "alice", "{path}");
        assert!(daemon.http().bearer(ALICE).get(&path).json().get("owner").is_none(), "{path}");
    }
    let table = |arguments: &[&str]| daemon.cli(arguments).ok();
    for arguments in [
        &["session", "list"][..],
        &["session", "list", "--engine", "cvm"],
        &["program", "list"],
        &["program", "runs"],
    ] {
        let text = table(arguments);
        let (header, rows) = text.split_once('\n').expect("a header");
        assert_eq!(header.split_whitespace().nth(1), Some("OWNER"), "{arguments:?}: {text}");
        let seen = rows.lines().filter_map(|row| row.split_whitespace().nth(1));
        assert_eq!(seen.collect::<std::collections::BTreeSet<_>>(), ["alice", "bob"].into(), "{text}");
    }
    // One owner: only with --wide. A uid is shown with its name.
    let executions = ["exec", "list", &of.session];
    assert!(!table(&executions).contains("OWNER"));
    assert!(table(&[&executions[..], &["--wide"]].concat()).contains("alice"));
    let mine = daemon.http().post("/api/v1/programs", &json!({ "name": "mine", "source": "1" }));
    assert_eq!(mine.status, 201, "{}", mine.text());
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().expect("a name");
    assert!(table(&["program", "list"]).lines().any(|row| row.split_whitespace().nth(1) == Some(&user.name)));
    daemon.stop();
}
