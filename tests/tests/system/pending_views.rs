//! An execution that waits for several questions, a timer and an event, as every client sees it, and as it is copied.

use serde_json::{Value, json};
use vm_system_protocol::control::{EventEmit, RunFork};
use vm_system_protocol::json::JsonText;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::http::Http;
use vm_system_tests::mcp::{Agent, texts};
use vm_system_tests::place::User;
use vm_system_tests::programs::{ended, id, result};

const SOURCE: &str = "async function main() {
    let mark = 'm';
    const first = CC.async('first?'), second = CC.async('second?', { schema: { type: 'integer' } });
    const late = sleep(3600000).then(() => 'late');
    const answers = await Promise.race([Promise.all([first, second, waitFor('paid')]), late]);
    return [...answers, await waitFor('later'), mark];
}";

fn emit(client: &mut Client, execution: &str, name: &str, event: &str) {
    let event = JsonText::from_untrusted(event.to_owned());
    let op = EventEmit { name: name.to_owned(), event, execution: Some(execution.to_owned()) };
    client.op(op).expect("it is there");
}

/// Questions, timers and events of a view.
fn waits(view: &Value) -> [&Value; 3] {
    [&view["questions"], &view["timers"], &view["events"]]
}

#[test]
fn every_view_has_what_an_execution_waits_for() {
    let daemon = Daemon::start(User::AsStarted);
    let (mut client, mut http) = (daemon.client(), daemon.http());
    client.begin(SOURCE, "run");
    let tasks = client.tasks();
    let mut ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
    ids.sort_unstable();
    for (command, shown) in [
        (vec!["program", "status", "run"], "Waiting for: 2 tasks, 1 timer, 1 event; until "),
        (vec!["program", "status", "run"], "(and 1 more: `vm-system task list --execution "),
        (vec!["program", "runs"], "2 tasks, 1 timer, 1 event; until "),
        (vec!["task", "list"], "  AGE "),
        (vec!["task", "get", "run"], "first?"),
    ] {
        let output = daemon.cli(&command).ok();
        assert!(output.contains(shown), "{command:?}: {output}");
    }
    let ambiguous = daemon.cli(&["task", "submit", "run", "x"]).fails(1);
    assert!(ids.iter().all(|id| ambiguous.contains(id)), "{ambiguous}");

    for path in ["/api/v1/executions/run", "/api/v1/executions/run/task"] {
        let view = http.get(path).json();
        assert_eq!(waits(&view["waiting_for"]), [2, 1, 1], "{view}");
        assert!(view["waiting_for"]["wakes_at"].is_string() && view["task"]["prompt"] == "first?", "{view}");
    }
    assert_eq!(http.get("/api/v1/executions/run/task").json()["more_tasks"], 1);
    let list = http.get("/api/v1/executions?kind=program").json();
    assert_eq!(waits(&list[0]["waiting_for"]), [2, 1, 1], "{list}");
    let refused = http.post("/api/v1/executions/run/task", &json!({ "result": "x" }));
    assert_eq!((refused.status, refused.code()), (409, "TASK_AMBIGUOUS".to_owned()));
    let named = refused.json()["error"]["details"]["task_ids"].clone();
    let mut named: Vec<String> = serde_json::from_value(named).expect("ids");
    named.sort_unstable();
    assert_eq!(named, ids, "{}", refused.text());

    let mut agent = Agent::start(&daemon.place, &[]);
    let why = agent.fails("submitTask", json!({ "executionId": "run", "result": "x" }));
    assert!(ids.iter().all(|id| why.contains(id)) && why.contains("as taskId"), "{why}");
    let task = agent.tool("getTask", json!({ "executionId": "run" }));
    assert_eq!(texts(&task)[0], "first?");
    assert!(texts(&task).iter().any(|text| text.starts_with("1 more task pending")), "{task}");
    let data = &task["structuredContent"];
    assert_eq!((data["state"].as_str(), &data["moreTasks"]), (Some("AWAITING_COGNITIVE_RESULT"), &json!(1)));
    assert_eq!(waits(&data["waitingFor"]), [2, 1, 1], "{data}");
    for tool in ["status", "get_execution"] {
        let view = agent.data(tool, json!({ "executionId": "run" }));
        assert_eq!(waits(&view["waitingFor"]), [2, 1, 1], "{tool}: {view}");
    }
    let list = agent.data("list_executions", json!({}));
    assert_eq!(waits(&list["executions"][0]["waitingFor"]), [2, 1, 1], "{list}");

    // The task that the agent was given is the one that it answers.
    let answered = agent.tool("submitTask", json!({ "executionId": "run", "result": "one" }));
    assert!(texts(&answered)[1].contains("second?"), "{answered}");
    let answered = agent.tool("submitTask", json!({ "executionId": "run", "result": "2" }));
    let waiting = texts(&answered)[1];
    assert!(waiting.starts_with("Waiting for 1 timer and 1 event, until "), "{waiting}");
    let task = agent.tool("getTask", json!({ "executionId": "run" }));
    assert_eq!(texts(&task)[0], waiting, "nothing is to be answered");
    assert_eq!(task["structuredContent"]["state"], "RUNNING", "{task}");
    assert_eq!(agent.data("list_executions", json!({}))["executions"][0]["state"], "RUNNING");
    agent.close();
    daemon.stop();
}

#[test]
fn a_suspended_call_is_changed_and_copies_have_items_and_events() {
    let daemon = Daemon::start(User::AsStarted);
    let (mut client, mut http) = (daemon.client(), daemon.http());
    let run = client.begin(SOURCE, "run");
    let state = daemon.cli(&["program", "state", "run"]).ok();
    assert!(
        state.contains("main at 5:") && state.contains("suspended until an item is answered: "),
        "{state}"
    );
    daemon.cli(&["program", "set", "run", "mark", "changed"]).ok();
    emit(&mut client, "run", "later", "{\"n\": 1}");
    let fork = RunFork { execution: "run".to_owned(), checkpoint: None, name: Some("fork".to_owned()) };
    let fork = client.op(fork).expect("it waits");
    let file = http.get("/api/v1/executions/run/export");
    assert_eq!(file.status, 200);
    let imported = import(&mut http, &file.text());
    let wanted = run.waiting_for.map(|waiting| (waiting.questions, waiting.timers, waiting.events));
    for copy in [&id(&fork), &imported] {
        let found = client.get_run(copy);
        let found = found.waiting_for.map(|waiting| (waiting.questions, waiting.timers, waiting.events));
        assert_eq!((found, wanted), (Some((2, 1, 1)), Some((2, 1, 1))), "{copy}");
    }
    for execution in ["run", "fork", &imported] {
        let of = client.get_run(execution).execution.id;
        let tasks: Vec<_> = client.tasks().into_iter().filter(|task| task.execution_id == of).collect();
        for task in tasks {
            let answer = if task.prompt == "first?" { "one" } else { "2" };
            daemon.cli(&["task", "submit", &task.id.to_string(), answer]).ok();
        }
        emit(&mut client, execution, "paid", "3");
        assert_eq!(result(&ended(&mut client, execution)), r#"["one",2,3,{"n":1},"changed"]"#, "{execution}");
    }
    daemon.stop();
}

/// The id of the execution that the file becomes.
fn import(http: &mut Http, file: &str) -> String {
    let fields = [("content-type", "application/json")];
    let made = http.request("POST", "/api/v1/imports/execution?name=imported", &fields, Some(file));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["id"].as_str().expect("an id").to_owned()
}
