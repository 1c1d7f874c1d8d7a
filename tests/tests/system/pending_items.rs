//! Programs that wait for many things at once, through the real daemon: the order of answers, crashes between acceptance and use, timers,
//! limits, branches.

use vm_system_protocol::control::{
    ErrorCode, GivenAnswer, ProgramStart, RunFork, RunRewind, StateSet, TaskSubmit,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionStatus, Run, Task, WaitKind, WaitingFor};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::programs::{code, ended, id, result};
use vm_system_tests::watch::Watch;

/// The pending task with this prompt.
#[track_caller]
fn task(client: &mut Client, prompt: &str) -> Task {
    let tasks = client.tasks();
    tasks.into_iter().find(|task| task.prompt == prompt).unwrap_or_else(|| panic!("no task {prompt:?}"))
}

/// Answers a task by its prompt; with `wait` the reply comes when the program waits again or has ended.
#[track_caller]
fn answer(client: &mut Client, prompt: &str, answer: &str, wait: bool) -> Run {
    let task = task(client, prompt);
    let result = GivenAnswer::Typed(answer.to_owned());
    let (execution, task) = (task.execution_id.to_string(), Some(task.id.to_string()));
    client.op(TaskSubmit { execution, task, result, wait }).expect("it is pending")
}

fn waits_for(run: &Run) -> (u32, u32, u32) {
    let WaitingFor { questions, timers, events, .. } = run.waiting_for.unwrap_or_default();
    (questions, timers, events)
}

/// Waits until an execution waits with this many questions, timers and events.
fn until_it_waits(client: &mut Client, execution: &str, what: (u32, u32, u32)) -> Run {
    let mut watch = Watch::begin();
    loop {
        let run = client.get_run(execution);
        if run.execution.status == ExecutionStatus::Waiting && waits_for(&run) == what {
            return run;
        }
        watch.pause(|| format!("it does not wait so: {run:?}"));
    }
}

#[test]
fn answers_are_used_in_the_order_in_which_they_were_accepted_also_after_kills() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "const log = [];
        const items = ['a', 'b', 'c', 'd'].map(name => CC.async(name).then(text => log.push(name + text)));
        const stop = CC('stop?');
        await Promise.all(items);
        log.join(' ') + stop";
    let source = format!("async function main() {{ {} }}", source.replace("log.join", "return log.join"));
    let run = client.begin(&source, "run");
    assert_eq!((waits_for(&run), run.execution.status), ((5, 0, 0), ExecutionStatus::Waiting));
    let status = client.task("run");
    assert_eq!((status.task.map(|task| task.prompt).as_deref(), status.more_tasks), (Some("stop?"), 4));
    // While the program waits at its pause: accepted, stored, and not used yet.
    for (prompt, text) in [("c", "1"), ("a", "2")] {
        let run = answer(&mut client, prompt, text, true);
        assert_eq!(run.execution.status, ExecutionStatus::Waiting, "at its pause");
    }
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    answer(&mut client, "d", "3", true);
    let run = answer(&mut client, "stop?", "!", true);
    assert_eq!(waits_for(&run), (1, 0, 0));
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let run = answer(&mut client, "b", "4", true);
    assert_eq!(result(&run), "\"c1 a2 d3 b4!\"");
    assert_eq!(code(client.submit("run", "5")), ErrorCode::TaskNotPending);
    daemon.stop();
}

#[test]
fn race_has_the_winner_that_was_accepted_first_and_the_loser_is_listed() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        const [a, b] = [CC.async('a'), CC.async('b')];
        CC('hold');
        return await Promise.race([a, b, sleep(3600000)]);
    }";
    client.begin(source, "run");
    answer(&mut client, "b", "late", true);
    answer(&mut client, "a", "later", true);
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let run = answer(&mut client, "hold", "go", true);
    assert_eq!(result(&run), "\"late\"");
    // The answer to `a` was accepted, and the timer was running.
    let abandoned: Vec<_> = run.abandoned.iter().map(|item| (item.kind, item.answer.as_deref())).collect();
    assert!(abandoned.contains(&(WaitKind::Timer, None)), "{abandoned:?}");
    assert_eq!(client.get_run("run").abandoned, run.abandoned, "also later");
    daemon.stop();
}

#[test]
fn timers_end_without_a_process_and_over_restarts() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load("async function main() { await Promise.all(Array.from({ length: 300 }, (_, n) => sleep(2000 + n % 7))); return 'up' }");
    let named =
        |name: &str| ProgramStart { name: Some(name.to_owned()), wait: false, ..ProgramStart::default() };
    client.start_program(named("run")).expect("started");
    let run = until_it_waits(&mut client, "run", (0, 300, 0));
    assert!(run.waiting_for.and_then(|waiting| waiting.wakes_at).is_some());
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    assert_eq!(result(&ended(&mut client, "run")), "\"up\"");
    daemon.stop();
}

#[test]
fn further_items_than_permitted_are_refused_and_those_that_wait_stay() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        const held = CC.async('held'), errors = [];
        for (let n = 0; n < 1003; n++) {
            try { sleep(3600000) } catch (error) { errors.push(`${error.name}: ${error.message}`) }
        }
        return [await held, errors.length, errors[0]];
    }";
    client.begin(source, "run");
    let run = answer(&mut client, "held", "yes", true);
    let text = result(&run);
    assert!(text.starts_with("[\"yes\",") && text.contains("RangeError") && text.contains("1000"), "{text}");
    assert_eq!(run.abandoned.len(), 100, "the first of them are shown");
    daemon.stop();
}

#[test]
fn wrong_options_reject_the_promise_and_attempts_end_a_task() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        const name = error => error.name;
        const schema = { type: args[0] ?? 'nope' };
        const wrong = CC.async('w', { schema }).catch(name);
        const tried = CC.async('t', { schema: { type: 'number' }, retries: 0 }).catch(name);
        const timed = CC.async('d', { timeout_ms: 20 }).catch(name);
        const defaulted = CC.async('e', { timeout_ms: 20, default: { n: 1 } });
        return await Promise.all([wrong, tried, timed, defaulted]);
    }";
    client.begin(source, "run");
    let tried = task(&mut client, "t").id.to_string();
    let unfit = client.op(TaskSubmit {
        execution: "run".to_owned(),
        task: Some(tried),
        result: GivenAnswer::Typed("many".to_owned()),
        wait: true,
    });
    assert_eq!(code(unfit), ErrorCode::AnswerInvalid);
    let text = r#"["TypeError","CCError","CCTimeoutError",{"n":1}]"#;
    assert_eq!(result(&ended(&mut client, "run")), text);
    daemon.stop();
}

#[test]
fn unhandled_rejection_is_an_event_while_something_is_pending_and_ends_the_program_when_nothing_is() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        const failed = CC.async('first').then(() => { throw new Error('not yet handled') });
        await CC.async('second');
        try { await failed } catch (error) { return error.message }
    }";
    client.begin(source, "run");
    let run = answer(&mut client, "first", "x", true);
    assert_eq!(waits_for(&run), (1, 0, 0));
    let events = daemon.cli(&["exec", "events", &id(&run)]);
    assert!(events.stdout.contains("not yet handled"), "{events:?}");
    assert_eq!(result(&answer(&mut client, "second", "y", true)), "\"not yet handled\"");
    daemon.stop();
}

#[test]
fn branches_have_the_items_of_their_checkpoint() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let source = "async function main() {
        let mark = 'm';
        const all = Promise.all([CC.async('a'), CC.async('b'), sleep(3600000).then(() => 'never')]);
        const some = await Promise.race([all, CC.async('c')]);
        return [some, mark];
    }";
    client.begin(source, "run");
    answer(&mut client, "a", "1", true);
    let checkpoints = client.checkpoints("run");
    let causes: Vec<&str> = checkpoints.iter().map(|point| point.cause.as_str()).collect();
    assert_eq!(causes, ["wait", "wait"]);
    let frames = client.state("run").frames;
    let items: Vec<u64> = frames.iter().flat_map(|frame| frame.items.clone()).collect();
    assert!(frames.iter().any(|frame| frame.function == "main"), "{frames:?}");
    assert!(!items.is_empty(), "{frames:?}");
    let main = frames.iter().position(|frame| frame.function == "main").expect("it is suspended");
    let value = JsonText::from_untrusted("\"changed\"".to_owned());
    let (name, frame) = ("mark".to_owned(), u32::try_from(main).ok());
    client.op(StateSet { execution: "run".to_owned(), name, value, frame }).expect("it waits");
    assert_eq!(
        client.checkpoints("run").last().map(|point| point.cause.clone()).as_deref(),
        Some("wait_edit")
    );
    let fork = RunFork { execution: "run".to_owned(), checkpoint: Some(1), name: Some("fork".to_owned()) };
    let fork = client.op(fork).expect("a checkpoint");
    assert_eq!(waits_for(&fork), (3, 1, 0), "at its beginning");
    let of_fork: Vec<Task> =
        client.tasks().into_iter().filter(|task| task.execution_id == fork.execution.id).collect();
    let last = of_fork.iter().find(|task| task.prompt == "c").expect("it waits for it").id.to_string();
    let submit = |client: &mut Client, task: String, text: &str| {
        let (result, wait) = (GivenAnswer::Typed(text.to_owned()), true);
        client.op(TaskSubmit { execution: task, task: None, result, wait }).expect("it is pending")
    };
    assert_eq!(result(&submit(&mut client, last, "x")), r#"["x","m"]"#, "the fork has its own variables");
    let back = client.op(RunRewind { execution: "run".to_owned(), checkpoint: 3 }).expect("a checkpoint");
    assert_eq!(waits_for(&back), (2, 1, 0));
    let tasks = client.tasks();
    let c = tasks.iter().find(|task| task.prompt == "c" && task.execution_id == back.execution.id);
    let c = c.expect("it waits for it").id.to_string();
    assert_eq!(result(&submit(&mut client, c, "z")), r#"["z","changed"]"#);
    daemon.stop();
}
