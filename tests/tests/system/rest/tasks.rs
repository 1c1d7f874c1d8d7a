//! Answers, changed variables and events over REST: which task an answer is for, and JSON that JavaScript would change.

use super::people;
use serde_json::json;
use std::sync::Barrier;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;

const QUESTIONS: &str = "function main() { let n = 0; for (;;) { const a = CC('q' + n++, { schema: {} }); \
    if (a === 'stop') return n; { let inner = 1; } } }";
const TASK: &str = "/api/v1/executions/job/task";
const STATE: &str = "/api/v1/executions/job/state";

#[test]
fn a_race_for_an_answer_is_lost_with_the_id_of_the_pending_task() {
    const RACERS: usize = 40;
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    assert_eq!(http.post("/api/v1/programs", &json!({ "name": "job", "source": QUESTIONS })).status, 201);
    let start = json!({ "name": "job", "execution_id": "job" });
    assert_eq!(http.post("/api/v1/executions/program", &start).status, 201);
    let first = http.get(TASK).json()["task"]["id"].clone();
    let begin = Barrier::new(RACERS);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let race = |_| {
            scope.spawn(|| {
                let mut http = daemon.http();
                begin.wait();
                http.post(TASK, &json!({ "result": "mine", "task_id": first }))
            })
        };
        let racers: Vec<_> = (0..RACERS).map(race).collect();
        racers.into_iter().map(|racer| racer.join().expect("no panic")).collect()
    });
    let next = http.get(TASK).json()["task"]["id"].clone();
    assert_ne!(next, first);
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for lost in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!((lost.status, lost.code()), (409, "TASK_NOT_PENDING".to_owned()));
        let details = &lost.json()["error"]["details"];
        // While the program runs on, no task is pending.
        assert!(details["task_id"].is_null() || details["task_id"] == next, "{details}");
    }
    let late = http.post(TASK, &json!({ "result": "late", "task_id": first }));
    assert_eq!(late.json()["error"]["details"]["task_id"], next);
    daemon.stop();
}

#[test]
fn an_answer_without_a_task_is_not_for_a_task_that_appeared_while_it_arrived() {
    let daemon = Daemon::start(User::AsStarted);
    let (mut http, mut slow) = (daemon.http(), daemon.http());
    assert_eq!(http.post("/api/v1/programs", &json!({ "name": "job", "source": QUESTIONS })).status, 201);
    let start = json!({ "name": "job", "execution_id": "job" });
    assert_eq!(http.post("/api/v1/executions/program", &start).status, 201);
    let body = json!({ "result": "slow" }).to_string();
    let head = format!(
        "POST {TASK} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        body.len()
    );
    slow.send(head.as_bytes());
    assert_eq!(slow.head().map(|(status, _)| status), Some(100), "the head has been read");
    assert_eq!(http.post(TASK, &json!({ "result": "fast" })).status, 200);
    let next = http.get(TASK).json()["task"]["id"].clone();
    slow.send(body.as_bytes());
    let late = slow.response(false).expect("a response");
    assert_eq!((late.status, late.code()), (409, "TASK_NOT_PENDING".to_owned()), "{}", late.text());
    assert_eq!(late.json()["error"]["details"]["task_id"], next);
    assert_eq!(http.post(TASK, &json!({ "result": "in time" })).status, 200);
    daemon.stop();
}

#[test]
fn json_that_javascript_would_change_is_refused_with_the_reason() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    assert_eq!(http.post("/api/v1/programs", &json!({ "name": "job", "source": QUESTIONS })).status, 201);
    let start = json!({ "name": "job", "execution_id": "job" });
    assert_eq!(http.post("/api/v1/executions/program", &start).status, 201);
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    for (value, reason) in
        [("1e400", "out of range"), (&deep, "nested too deeply"), ("9007199254740993", "send it as a string")]
    {
        let json = [("content-type", "application/json")];
        let answer = http.request("POST", TASK, &json, Some(&format!("{{\"result\":{value}}}")));
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(reason), "{}", answer.text());
        let body = format!("{{\"name\":\"n\",\"value\":{value}}}");
        let change = http.request("PATCH", STATE, &json, Some(&body));
        assert_eq!(change.status, 400, "{}", change.text());
        assert!(change.text().contains(reason), "{}", change.text());
    }
    assert_eq!(http.post(TASK, &json!({ "result": 9_007_199_254_740_992_u64 })).status, 200);
    daemon.stop();
}

#[test]
fn a_variable_of_an_outer_call_is_changed_without_its_frame() {
    let source =
        "function inner() { return CC('now?') } function main() { let outer = 1; inner(); return outer }";
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    assert_eq!(http.post("/api/v1/programs", &json!({ "name": "job", "source": source })).status, 201);
    let start = json!({ "name": "job", "execution_id": "job" });
    assert_eq!(http.post("/api/v1/executions/program", &start).status, 201);
    let json = [("content-type", "application/json")];
    let changed = http.request("PATCH", STATE, &json, Some("{\"name\":\"outer\",\"value\":7}"));
    assert_eq!(changed.status, 200, "{}", changed.text());
    let ended = http.post(TASK, &json!({ "result": "go on" }));
    assert_eq!(ended.json()["result"]["json"], 7, "{}", ended.text());
    daemon.stop();
}

#[test]
fn events_of_one_owner_do_not_reach_another() {
    let daemon = people::daemon(&[]);
    let mut of = [people::ALICE, people::BOB].map(|token| daemon.http().bearer(token));
    let source = "async function main() { return await waitFor('paid') }";
    for http in &mut of {
        assert_eq!(http.post("/api/v1/programs", &json!({ "name": "p", "source": source })).status, 201);
        let start = http.post("/api/v1/executions/program", &json!({ "name": "p", "execution_id": "run" }));
        assert_eq!(start.status, 201, "{}", start.text());
    }
    let [alice, bob] = &mut of;
    let id = alice.get("/api/v1/executions/run").json()["id"].clone();
    let theirs = bob.post("/api/v1/events", &json!({ "name": "paid", "event": 1, "execution_id": id }));
    assert_eq!((theirs.status, theirs.code()), (404, "EXECUTION_NOT_FOUND".to_owned()));
    let all = bob.post("/api/v1/events", &json!({ "name": "paid", "event": 1, "all": true }));
    assert_eq!((all.status, all.json()["received"].as_u64()), (200, Some(1)), "{}", all.text());
    let waits = &alice.get("/api/v1/executions/run").json()["waiting_for"];
    assert_eq!(waits["events"], 1, "{waits}");
    daemon.stop();
}
