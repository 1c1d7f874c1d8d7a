//! Lists with filters in every API, for two owners: neither ever sees a row of the other, and only administrators name an owner.
//! Versions of programs that are started by number.

use super::people::{self, ALICE, BOB, ROOT};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use vm_system_tests::as_both;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::http::Http;
use vm_system_tests::mcp::Agent;
use vm_system_tests::place::User;

as_both!(
    lists_of_two_owners_are_filtered_and_apart,
    command_line_and_agents_list_with_the_same_filters,
    an_older_version_is_started_by_its_number,
);

const RUNS: &str = "/api/v1/executions?kind=program";
const TASKS: &str = "/api/v1/tasks";

/// A program `p`, and executions of it: `NAME-1` has ended with an answer, `NAME-2` waits, `NAME-3` was cancelled.
fn fill(http: &mut Http, name: &str) -> Vec<String> {
    let source = "function main() { return CC('which of ' + args[0] + '?') }";
    let mut create = |path: &str, body: &Value| {
        let response = http.post(&format!("/api/v1{path}"), body);
        assert!(response.status < 300, "{path}: {}", response.text());
        response.json()
    };
    create("/programs", &json!({ "name": "p", "source": source }));
    let mut start = |number: u32| {
        let execution = format!("{name}-{number}");
        let body = json!({ "name": "p", "execution_id": execution, "args": [execution] });
        create("/executions/program", &body)["id"].as_str().expect("an id").to_owned()
    };
    let ids = (1..=3).map(&mut start).collect();
    create(&format!("/executions/{name}-1/task"), &json!({ "result": "the first" }));
    create(&format!("/executions/{name}-3/cancel"), &json!({}));
    ids
}

fn get(http: &mut Http, path: &str) -> Value {
    let response = http.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.json()
}

/// A field of each element.
fn all(list: &Value, field: &str) -> Vec<String> {
    let texts = list.as_array().expect("a list").iter();
    texts.map(|one| one[field].as_str().unwrap_or_default().to_owned()).collect()
}

fn names(http: &mut Http, filter: &str) -> Vec<String> {
    all(&get(http, &format!("{RUNS}{filter}")), "name")
}

fn refused(http: &mut Http, path: &str) -> (u16, String) {
    let response = http.get(path);
    (response.status, response.code())
}

/// All elements of a list, one on each page.
fn one_by_one(http: &mut Http, path: &str) -> Vec<Value> {
    let (mut elements, mut cursor) = (Vec::new(), String::new());
    loop {
        let response = http.get(&format!("{path}&limit=1{cursor}"));
        assert_eq!(response.status, 200, "{}", response.text());
        let page = response.json();
        let page = page.as_array().expect("a list");
        assert!(page.len() <= 1);
        elements.extend(page.iter().cloned());
        match response.field("x-next-cursor") {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return elements,
        }
    }
}

mod cases {
    use super::*;

    pub(super) fn lists_of_two_owners_are_filtered_and_apart(user: User) {
        let daemon = people::daemon_as(user, &[]);
        let http = |token: &str| Http::tcp(daemon.addresses()[0]).bearer(token);
        let (mut alice, mut bob, mut root) = (http(ALICE), http(BOB), http(ROOT));
        let of_alice = fill(&mut alice, "alice");
        fill(&mut bob, "bob");

        assert_eq!(names(&mut alice, ""), ["alice-3", "alice-2", "alice-1"]);
        assert_eq!(names(&mut bob, ""), ["bob-3", "bob-2", "bob-1"]);
        for (filter, number) in [("&status=ok", 1), ("&status=waiting", 2), ("&status=cancelled", 3)] {
            for (http, owner) in [(&mut alice, "alice"), (&mut bob, "bob")] {
                let filter = format!("{filter}&program=p");
                assert_eq!(names(http, &filter), [format!("{owner}-{number}")], "{filter}");
            }
            assert_eq!(names(&mut root, filter), [format!("bob-{number}"), format!("alice-{number}")]);
            let filter = format!("{filter}&owner=alice");
            assert_eq!(names(&mut root, &filter), [format!("alice-{number}")], "{filter}");
        }
        assert_eq!(names(&mut alice, "&status=error"), [""; 0]);
        assert_eq!(names(&mut alice, "&name=alice-2"), ["alice-2"]);
        assert_eq!(names(&mut bob, "&name=alice-2"), [""; 0]);
        assert_eq!(names(&mut root, "&name=alice-2&owner=bob"), [""; 0]);
        assert_eq!(names(&mut root, "&program=p&owner=alice").len(), 3, "a name among those of the owner");

        let runs = get(&mut root, RUNS);
        let started = all(&runs, "started_at");
        for bound in &started {
            let count = |is_in: &dyn Fn(&String) -> bool| started.iter().filter(|at| is_in(at)).count();
            assert_eq!(names(&mut root, &format!("&since={bound}")).len(), count(&|at| at >= bound));
            assert_eq!(names(&mut root, &format!("&until={bound}")).len(), count(&|at| at < bound));
        }
        let pages = one_by_one(&mut root, RUNS);
        assert_eq!(all(&Value::from(pages), "id"), all(&runs, "id"));

        assert_eq!(all(&get(&mut alice, TASKS), "execution_id"), [of_alice[1].clone()]);
        let ended = get(&mut alice, &format!("{TASKS}?status=answered"));
        assert_eq!(all(&ended, "execution_id"), [of_alice[0].clone()]);
        assert_eq!((&ended[0]["answer"], &ended[0]["status"]), (&json!("the first"), &json!("answered")));
        assert!(ended[0]["ended_at"].is_string() && ended[0].get("owner").is_none(), "{ended}");
        let path = format!("{TASKS}?status=all");
        let tasks = get(&mut alice, &path);
        assert_eq!(all(&tasks, "status"), ["withdrawn", "pending", "answered"]);
        assert_eq!(Value::from(one_by_one(&mut alice, &path)), tasks);
        assert_eq!(all(&get(&mut root, &format!("{path}&owner=bob&program=p")), "owner"), ["bob"; 3]);
        assert_eq!(get(&mut root, &path).as_array().expect("a list").len(), 6);
        let of_one = format!("{path}&execution_id={}", of_alice[0]);
        assert_eq!(all(&get(&mut alice, &of_one), "status"), ["answered"]);
        assert_eq!(refused(&mut bob, &of_one), (404, "EXECUTION_NOT_FOUND".to_owned()));

        let program = get(&mut alice, "/api/v1/programs?name=p");
        assert_eq!(all(&program, "name"), ["p"]);
        let id = program[0]["id"].as_str().expect("an id");
        assert_eq!(all(&get(&mut root, "/api/v1/programs?name=p"), "owner"), ["bob", "alice"]);
        assert_eq!(all(&get(&mut root, "/api/v1/programs?owner=bob"), "owner"), ["bob"]);
        let absent = (404, "PROGRAM_NOT_FOUND".to_owned());
        assert_eq!(refused(&mut bob, &format!("{RUNS}&program={id}")), absent);
        assert_eq!(refused(&mut bob, &format!("{TASKS}?program={id}")), absent);

        for owner in ["alice", "bob", "nobody"] {
            for list in [RUNS, "/api/v1/programs?limit=9", "/api/v1/tasks?status=all"] {
                let path = format!("{list}&owner={owner}");
                assert_eq!(refused(&mut alice, &path), (403, "NOT_PERMITTED".to_owned()), "{path}");
            }
        }
        assert_eq!(get(&mut root, &format!("{RUNS}&owner=nobody")), json!([]));
        for bad in ["&status=lost", "&since=yesterday", "&until=1"] {
            assert_eq!(refused(&mut alice, &format!("{RUNS}{bad}")).0, 400, "{bad}");
        }
        assert_eq!(refused(&mut alice, &format!("{TASKS}?status=lost")).0, 400);

        // Executions of a session.
        let of = people::belongings(&mut alice, &daemon, "alices");
        let list = format!("/api/v1/executions?session_id={}", of.session);
        let failing = json!({ "session_id": of.session, "input": "throw new Error('no')" });
        assert_eq!(alice.post("/api/v1/executions/repl", &failing).status, 201);
        assert_eq!(all(&get(&mut alice, &list), "status"), ["error", "ok"]);
        assert_eq!(all(&get(&mut alice, &format!("{list}&status=ok")), "status"), ["ok"]);
        assert_eq!(get(&mut alice, &format!("{list}&status=running")), json!([]));
        assert_eq!(get(&mut alice, &format!("{list}&since=2200-01-01T00:00:00Z")), json!([]));
        assert_eq!(refused(&mut alice, &format!("{list}&name=n")).0, 400);
        drop((alice, bob, root));
        daemon.stop();
    }

    pub(super) fn command_line_and_agents_list_with_the_same_filters(user: User) {
        let daemon = people::daemon_as(user, &[]);
        let address = daemon.addresses()[0];
        fill(&mut Http::tcp(address).bearer(ALICE), "alice");
        let mut own = daemon.http();
        let of_own = fill(&mut own, "own");
        drop(own);
        let listed = |arguments: &[&str], field: &str| {
            let text = daemon.cli(&[arguments, &["--output", "json"]].concat()).ok();
            all(&serde_json::from_str(&text).expect("JSON"), field)
        };
        let runs = ["program", "runs"];
        assert_eq!(
            listed(&[&runs[..], &["--owner", "alice", "--status", "ok"]].concat(), "name"),
            ["alice-1"]
        );
        assert_eq!(listed(&[&runs[..], &["--name", "own-2", "--since", "1h"]].concat(), "name"), ["own-2"]);
        assert_eq!(listed(&[&runs[..], &["--until", "1h"]].concat(), "name"), [""; 0]);
        // The user of this process, at the HTTP socket; the command line is one of the daemon's user.
        let uid = format!("uid:{}", nix::unistd::geteuid());
        assert_eq!(listed(&[&runs[..], &["--owner", &uid]].concat(), "name"), ["own-3", "own-2", "own-1"]);
        assert_eq!(listed(&["program", "list", "--owner", "alice"], "owner"), ["alice"]);
        assert_eq!(listed(&["task", "list"], "status"), ["pending"; 2]);
        let states = ["withdrawn", "pending", "answered"];
        assert_eq!(listed(&["task", "list", "--all", "--owner", "alice"], "status"), states);
        assert_eq!(listed(&["task", "list", "--all", "--limit", "0"], "status").len(), 6);
        assert_eq!(listed(&["task", "list", "--all", "--execution", &of_own[0]], "answer"), ["the first"]);
        let cut = daemon.cli(&["task", "list", "--all", "--limit", "1"]);
        assert!(
            cut.stderr.contains("There are more than 1: `--limit N` or `--limit 0` shows them."),
            "{cut:?}"
        );
        assert!(cut.stdout.contains("ANSWER") && cut.stdout.contains("withdrawn"), "{cut:?}");

        // A user's own command line, by token.
        let (url, token) = (format!("http://{address}"), daemon.place.path("alice.token"));
        std::fs::write(&token, ALICE).expect("a token");
        daemon.place.give(&token);
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        let token = token.to_string_lossy().into_owned();
        let server = daemon.place.http_socket().metadata().expect("its socket").uid().to_string();
        let of_alice = |arguments: &[&str]| {
            // The user that a daemon of root becomes.
            let remote = ["--server-url", &url, "--token-file", &token, "--server-user", &server];
            daemon.cli(&[arguments, &remote].concat())
        };
        let found = of_alice(&["program", "runs", "--status", "waiting", "--output", "json"]).ok();
        assert_eq!(all(&serde_json::from_str(&found).expect("JSON"), "name"), ["alice-2"]);
        for list in ["program runs", "program list", "task list"] {
            let arguments: Vec<&str> = list.split(' ').chain(["--owner", "alice"]).collect();
            let error = of_alice(&arguments).fails(77);
            assert!(error.contains("only an administrator may list"), "{error}");
        }

        let mut agent = Agent::start(&daemon.place, &[]);
        let found = agent.data("list_executions", json!({ "owner": "alice", "status": "ok" }));
        assert_eq!(all(&found["executions"], "executionId"), ["alice-1"]);
        let found = agent.data("list_executions", json!({ "name": "own-3" }));
        assert_eq!(all(&found["executions"], "status"), ["cancelled"]);
        let found = agent.data("list_tasks", json!({ "status": "answered" }));
        assert_eq!(all(&found["tasks"], "answer"), ["the first"; 2]);
        let found = agent.data("list_tasks", json!({ "status": "all", "executionId": of_own[1] }));
        assert_eq!(all(&found["tasks"], "status"), ["pending"]);
        assert_eq!(all(&agent.data("list_tasks", json!({}))["tasks"], "status"), ["pending"; 2]);
        let found = agent.data("list_programs", json!({ "owner": "alice", "name": "p" }));
        assert_eq!(all(&found["programs"], "owner"), ["alice"]);
        agent.fails("list_tasks", json!({ "cursor": "behind" }));
        agent.close();
        daemon.stop();
    }

    pub(super) fn an_older_version_is_started_by_its_number(user: User) {
        let daemon = Daemon::start(user);
        let mut http = daemon.http();
        let mut load = |name: &str, result: u32| {
            let source = format!("function main() {{ return {result} }}");
            let response = http.post("/api/v1/programs", &json!({ "name": name, "source": source }));
            assert_eq!(response.status, 201, "{}", response.text());
            response.json()["id"].as_str().expect("an id").to_owned()
        };
        let id = load("p", 10);
        load("p", 20);
        let mut start = |body: Value| {
            let response = http.post("/api/v1/executions/program", &body);
            let json = response.json();
            (response.status, json["program_version"].clone(), json["result"]["json"].clone())
        };
        assert_eq!(start(json!({ "name": "p" })), (201, json!(2), json!(20)));
        assert_eq!(start(json!({ "name": "p@1" })), (201, json!(1), json!(10)));
        assert_eq!(start(json!({ "name": "p@2" })), (201, json!(2), json!(20)));
        assert_eq!(start(json!({ "program_id": id, "version": 1 })), (201, json!(1), json!(10)));
        for absent in [
            json!({ "name": "p@3" }),
            json!({ "name": "p@0" }),
            json!({ "name": "q@1" }),
            json!({ "name": "p@" }),
        ] {
            assert_eq!(start(absent.clone()).0, 404, "{absent}");
        }
        assert_eq!(start(json!({ "name": "p", "version": 1 })).0, 400);
        drop(http);
        let started = daemon.cli(&["program", "start", &format!("{id}@1")]).ok();
        assert!(started.contains("Program: p version 1\n") && started.contains("Result: 10"), "{started}");
        let missing = daemon.cli(&["program", "start", &format!("{id}@7")]).fails(1);
        assert!(missing.contains("program \"p\" has no version 7"), "{missing}");
        let missing = daemon.cli(&["program", "start", &format!("{id}@99999999999999999999")]).fails(1);
        assert!(missing.contains("program \"p\" has no version 99999999999999999999"), "{missing}");
        let mut agent = Agent::start(&daemon.place, &[]);
        let ended =
            agent.data("start", json!({ "programId": format!("{id}@1"), "executionId": "by-an-agent" }));
        assert_eq!((&ended["programVersion"], &ended["result"]), (&json!(1), &json!(10)));
        agent.close();
        // A program that is called so.
        let mut http = daemon.http();
        let called = json!({ "name": "p@1", "source": "function main() { return 'called so' }" });
        assert_eq!(http.post("/api/v1/programs", &called).status, 201);
        let named = http.post("/api/v1/executions/program", &json!({ "name": "p@1" })).json();
        assert_eq!((&named["program"], &named["result"]["json"]), (&json!("p@1"), &json!("called so")));
        drop(http);
        daemon.stop();
    }
}
