//! Executions that continue from a checkpoint with other answers and other values of variables, through the real daemon.

use serde_json::json;
use vm_system_protocol::control::{
    ErrorCode, GivenAnswer, ListPage, OpError, OtherAnswer, OtherValue, RunList, RunRerun, TaskList,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionStatus, ListedTask, Run};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::mcp::{Agent, texts};
use vm_system_tests::place::User;
use vm_system_tests::programs::{id, result};

const ORDER: &str = "function main() {
    let price = 10;
    const amount = CC('how many?', { schema: { type: 'integer' } });
    const note = CC('a note?');
    return [amount * price, note];
}";

/// The task of an execution with this prompt, pending or ended.
#[track_caller]
fn task(client: &mut Client, execution: &str, prompt: &str) -> String {
    let execution = Some(execution.to_owned());
    let filter = TaskList { execution, page: ListPage::first(100), ..TaskList::default() };
    let tasks: Vec<ListedTask> = client.op(filter).expect("a list");
    let found = tasks.iter().find(|listed| listed.task.prompt == prompt);
    found.unwrap_or_else(|| panic!("no task {prompt:?}: {tasks:?}")).task.id.to_string()
}

fn rerun(execution: &str, checkpoint: u64, answers: &[(&str, &str)], variables: &[(&str, &str)]) -> RunRerun {
    let answer = |(task, text): &(&str, &str)| OtherAnswer {
        task: (*task).to_owned(),
        result: GivenAnswer::Typed((*text).to_owned()),
    };
    let value = |(name, json): &(&str, &str)| OtherValue {
        name: (*name).to_owned(),
        value: JsonText::from_untrusted((*json).to_owned()),
        frame: None,
    };
    RunRerun {
        execution: execution.to_owned(),
        checkpoint,
        answers: answers.iter().map(answer).collect(),
        variables: variables.iter().map(value).collect(),
        name: None,
        end_old: false,
    }
}

fn runs(client: &mut Client) -> Vec<Run> {
    client.op(RunList { page: ListPage::first(1_000), ..RunList::default() }).expect("a list")
}

#[test]
fn a_pause_is_answered_differently_in_another_execution() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.begin(ORDER, "order");
    client.submit("order", "3").expect("an integer");
    let old = client.submit("order", "for me").expect("a note");
    assert_eq!(result(&old), r#"[30,"for me"]"#);
    let (amount, note) = (task(&mut client, "order", "how many?"), task(&mut client, "order", "a note?"));
    let numbers: Vec<u64> = client.checkpoints("order").iter().map(|point| point.seq).collect();
    let run = client.op(rerun("order", numbers[0], &[(&amount, "7")], &[("price", "11")])).expect("both fit");
    assert_ne!(run.execution.id, old.execution.id);
    assert_eq!(run.task.as_ref().map(|task| task.prompt.as_str()), Some("a note?"), "{run:?}");
    assert_eq!(result(&client.submit(&id(&run), "for you").expect("a note")), r#"[77,"for you"]"#);
    assert_eq!(client.get_run("order"), old, "the old one is not changed");
    // A beginning of the id, and no variable.
    let run = client.op(rerun("order", numbers[1], &[(&note[..30], "for all")], &[])).expect("one task");
    assert_eq!(result(&run), r#"[30,"for all"]"#);
    // Without changes it is a fork.
    let run = client.op(rerun("order", numbers[1], &[], &[])).expect("a checkpoint");
    assert_eq!(run.execution.status, ExecutionStatus::Waiting);
    let changed = client.op(rerun("order", numbers[1], &[], &[("price", "0")])).expect("it waits there");
    assert_eq!(changed.task.map(|task| task.prompt).as_deref(), Some("a note?"));
    assert_eq!(result(&client.submit(&id(&run), "").expect("a note")), r#"[30,""]"#);
    daemon.stop();
}

#[test]
fn several_questions_are_answered_in_the_given_order_also_after_a_kill() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        let mark = 'm';
        const log = [];
        const items = ['a', 'b', 'c'].map(name => CC.async(name).then(text => log.push(name + text + mark)));
        await Promise.all(items);
        return log;
    }";
    client.begin(source, "run");
    let [a, b, c] = ["a", "b", "c"].map(|prompt| task(&mut client, "run", prompt));
    let checkpoint = client.checkpoints("run").last().expect("it waits").seq;
    let run = client
        .op(rerun("run", checkpoint, &[(&c, "1"), (&a, "2")], &[("mark", "\"!\"")]))
        .expect("all of them fit");
    assert_eq!(run.waiting_for.map(|waiting| waiting.questions), Some(1), "{run:?}");
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    assert_eq!(result(&client.submit(&id(&run), "3").expect("one is left")), r#"["c1!","a2!","b3!"]"#);
    let old = client.get_run("run");
    assert_eq!(old.waiting_for.map(|waiting| waiting.questions), Some(3), "the old one waits as before");
    let order = [(&*b, "x"), (&*c, "y"), (&*a, "z")];
    let run = client.op(rerun("run", checkpoint, &order, &[])).expect("all of them");
    assert_eq!(result(&run), r#"["bxm","cym","azm"]"#);
    daemon.stop();
}

#[test]
fn a_refused_answer_or_variable_leaves_nothing_behind() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.begin(ORDER, "order");
    let amount = task(&mut client, "order", "how many?");
    let checkpoint = client.checkpoints("order").last().expect("it waits").seq;
    let before = runs(&mut client);
    let mut refused = |op: RunRerun| -> OpError { client.op(op).expect_err("refused") };
    let unfit = refused(rerun("order", checkpoint, &[(&amount, "many")], &[("price", "1")]));
    assert_eq!(unfit.code, ErrorCode::AnswerInvalid, "{unfit:?}");
    let unknown = refused(rerun("order", checkpoint, &[("ffffffff", "1")], &[]));
    assert_eq!(unknown.code, ErrorCode::TaskNotFound, "{unknown:?}");
    assert!(unknown.hint.is_some_and(|hint| hint.contains(&amount)), "it names those that are open");
    let twice = refused(rerun("order", checkpoint, &[(&amount, "1"), (&amount, "2")], &[]));
    assert_eq!(twice.code, ErrorCode::ValidationError, "{twice:?}");
    let variables = [("price", "1"), ("nothing", "1")];
    let missing = refused(rerun("order", checkpoint, &[(&amount, "1")], &variables));
    assert_eq!(missing.code, ErrorCode::NotFound, "{missing:?}");
    assert!(missing.message.contains("\"nothing\""), "{missing:?}");
    let value = refused(rerun("order", checkpoint, &[], &[("price", "1e400")]));
    assert_eq!(value.code, ErrorCode::ValidationError, "{value:?}");
    let nowhere = refused(rerun("order", 99, &[], &[]));
    assert_eq!(nowhere.code, ErrorCode::NotFound, "{nowhere:?}");
    let end = RunRerun { end_old: true, ..rerun("order", checkpoint, &[(&amount, "x")], &[]) };
    assert_eq!(refused(end).code, ErrorCode::AnswerInvalid);
    assert_eq!(runs(&mut client), before, "neither a new execution nor a change of the old one");
    daemon.stop();
}

#[test]
fn the_old_execution_ends_on_request_and_a_repeated_request_has_the_same_response() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let old = client.begin(ORDER, "order");
    let amount = task(&mut client, "order", "how many?");
    let checkpoint = client.checkpoints("order").last().expect("it waits").seq;
    let op = RunRerun { end_old: true, ..rerun("order", checkpoint, &[(&amount, "2")], &[]) };
    let sent = client.send_with_key(op.clone(), Some("k"));
    let run = client.reply::<RunRerun>(sent).expect("it fits");
    assert_eq!(run.name.as_deref(), Some("order"));
    let ended = client.get_run(&id(&old));
    assert_eq!((ended.execution.status, ended.name), (ExecutionStatus::Cancelled, None));
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let sent = client.send_with_key(op, Some("k"));
    let again = client.reply::<RunRerun>(sent).expect("the first response");
    assert_eq!(again.execution.id, run.execution.id);
    assert_eq!(runs(&mut client).len(), 2);
    assert_eq!(result(&client.submit("order", "x").expect("a note")), r#"[20,"x"]"#);
    daemon.stop();
}

#[test]
fn all_apis_continue_with_another_answer() {
    let daemon = Daemon::start(User::AsStarted);
    let (mut client, mut http) = (daemon.client(), daemon.http());
    client.begin(ORDER, "order");
    let amount = task(&mut client, "order", "how many?");
    let checkpoint = client.checkpoints("order").last().expect("it waits").seq;
    let at = checkpoint.to_string();
    let answer = format!("{amount}=4");
    let line = daemon
        .cli(&[
            "program", "rerun", "order", "--from", &at, "--answer", &answer, "--set", "price=5", "--name",
            "cli",
        ])
        .ok();
    assert!(line.contains("(cli)") && line.contains("Prompt: a note?"), "{line}");
    assert_eq!(result(&client.submit("cli", "n").expect("a note")), r#"[20,"n"]"#);
    let wrong = daemon.cli(&["program", "rerun", "order", "--from", &at, "--answer", "4"]).fails(2);
    assert!(wrong.contains("TASK=ANSWER"), "{wrong}");

    let body = json!({
        "checkpoint": checkpoint,
        "answers": [{ "task_id": amount, "result": 6 }],
        "variables": [{ "name": "price", "value": 7, "frame": 0 }],
        "name": "rest",
    });
    let made = http.post("/api/v1/executions/order/rerun", &body);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["task"]["prompt"], "a note?", "{}", made.text());
    let taken = http.post("/api/v1/executions/order/rerun", &body);
    assert_eq!((taken.status, taken.code()), (409, "CONFLICT".to_owned()), "{}", taken.text());
    assert_eq!(result(&client.submit("rest", "n").expect("a note")), r#"[42,"n"]"#);

    let mut agent = Agent::start(&daemon.place, &[]);
    let call = json!({
        "executionId": "order", "checkpoint": checkpoint, "newExecutionId": "mcp", "setCurrent": true,
        "answers": [{ "taskId": amount, "result": "8" }], "variables": [{ "name": "price", "value": 1 }],
    });
    let made = agent.tool("rerun", call);
    let shown = texts(&made);
    assert_eq!(shown[0], format!("Execution continues from checkpoint {checkpoint}: mcp (set as current)"));
    assert!(shown.iter().any(|text| text.contains("a note?")), "{shown:?}");
    assert_eq!(
        texts(&agent.tool("submitTask", json!({ "result": "n" })))[1],
        "Execution completed with result: [8,\"n\"]"
    );
    agent.close();
    daemon.stop();
}
