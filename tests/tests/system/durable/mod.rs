//! Durable programs through the real daemon: pauses, answers, kills of every process, rewinds.

mod brokers;
mod deletions;
mod ends;
mod files;
mod follow;
mod limits;
mod zygote;

use std::time::Instant;
use vm_system_protocol::control::{
    ErrorCode, GivenAnswer, ProgramLoad, ProgramStart, RunDelete, RunFork, RunRewind, StateSet, TaskSubmit,
    TemplateCreate,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, EventPayload, ExecutionStatus, Limits, ResultValue, Run, Settings};
use vm_system_tests::PATIENCE;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::observe;
use vm_system_tests::place::User;
use vm_system_tests::programs::{code, ended, id, result};
use vm_system_tests::watch::Watch;

const SUM: &str = "
    let total: number = 0;
    function ask(question: string): number { return Number(CC(question)); }
    function main() {
        console.log('begin', args.join());
        total = ask('first?') + ask('second?') * 10;
        console.log('sum', total);
        return { total };
    }
";

fn prompt(run: &Run) -> &str {
    run.task.as_ref().map_or("", |task| task.prompt.as_str())
}

fn console(client: &mut Client, execution: &str) -> Vec<String> {
    let events = client.events(execution);
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event.seq, place as u64 + 1, "a gap in the output");
    }
    let line = |payload| match payload {
        EventPayload::Console { text, .. } => Some(text),
        _ => None,
    };
    events.into_iter().filter_map(|event| line(event.payload)).collect()
}

/// Waits until the status of an execution is not `running`.
fn settled(client: &mut Client, execution: &str) -> Run {
    let mut watch = Watch::begin();
    loop {
        let run = client.get_run(execution);
        if run.execution.status != ExecutionStatus::Running {
            return run;
        }
        watch.pause(|| format!("it still runs: {run:?}"));
    }
}

/// Waits until an execution has a task with this prompt.
fn until_task(client: &mut Client, execution: &str, prompt: &str) {
    let mut watch = Watch::begin();
    loop {
        let run = client.get_run(execution);
        if run.task.as_ref().is_some_and(|task| task.prompt == prompt) {
            return;
        }
        watch.pause(|| format!("no such task: {run:?}"));
    }
}

/// Keeps no worker warm.
fn cold() -> DaemonOptions {
    DaemonOptions { config: "[durable]\nwarm_ms = 0\n".to_owned(), ..DaemonOptions::default() }
}

fn cold_daemon() -> Daemon {
    Daemon::start_with(vm_system_tests::place::TestDir::new(User::AsStarted), &cold())
}

#[test]
fn a_program_pauses_inside_an_expression_and_resumes_there() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(SUM);
    let args = vec!["a".to_owned(), "b".to_owned()];
    let run = client.start_program(ProgramStart { args, ..ProgramStart::default() }).expect("started");
    assert_eq!((run.execution.status, prompt(&run)), (ExecutionStatus::Waiting, "first?"));
    let id = id(&run);
    assert_eq!(client.task(&id).task.map(|task| task.prompt).as_deref(), Some("first?"));
    assert_eq!(client.tasks().len(), 1);
    let run = client.submit(&id, "4").expect("taken");
    assert_eq!(prompt(&run), "second?");
    let run = client.submit(&id, "3").expect("taken");
    assert_eq!(result(&run), "{\"total\":34}");
    assert_eq!(console(&mut client, &id), ["begin a,b", "sum 34"]);
    assert_eq!(client.task(&id).result.as_ref().and_then(ResultValue::json_text), Some("{\"total\":34}"));
    assert_eq!(code(client.submit(&id, "5")), ErrorCode::TaskNotPending);
    assert!(client.tasks().is_empty());
    daemon.stop();
}

#[test]
fn an_execution_that_waits_holds_no_process_and_survives_a_kill_of_everything() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    let run = client.begin(SUM, "held");
    let info = daemon.info();
    let keeper = info.keeper_pid.expect("a keeper");
    let until = Instant::now() + PATIENCE;
    // The zygotes, and the prestarted worker without a session.
    while observe::descendants(keeper).len() > info.zygotes.len() + 1 {
        assert!(Instant::now() < until, "its worker does not exit");
    }
    assert_eq!(prompt(&client.submit("held", "4").expect("taken")), "second?");
    drop(client);
    let (place, family) = daemon.kill();
    let daemon = Daemon::start_with(place, &cold());
    observe::all_end(&family);
    let mut client = daemon.client();
    assert_eq!(prompt(&client.get_run("held")), "second?");
    let ended = client.submit("held", "3").expect("taken");
    assert_eq!((ended.execution.id, result(&ended)), (run.execution.id, "{\"total\":34}"));
    assert_eq!(console(&mut client, &id(&run)), ["begin ", "sum 34"]);
    daemon.stop();
}

#[test]
fn a_computing_program_resumes_from_its_last_checkpoint_after_everything_was_killed() {
    let source = "
        const answer = CC('how far?');
        let n = 0;
        while (n < Number(answer)) n++;
        console.log('counted', n);
        CC('what next?');
    ";
    let options = DaemonOptions {
        config: "[durable]\nwarm_ms = 0\ncheckpoint_ms = 20\n".to_owned(),
        ..DaemonOptions::default()
    };
    let place = vm_system_tests::place::TestDir::new(User::AsStarted);
    let daemon = Daemon::start_with(place, &options);
    let mut client = daemon.client();
    let run = client.begin(source, "counts");
    let id = id(&run);
    let request = client.send(vm_system_protocol::control::TaskSubmit {
        execution: id.clone(),
        task: None,
        result: GivenAnswer::Typed("3000000".to_owned()),
        wait: true,
    });
    let mut other = daemon.client();
    let until = Instant::now() + PATIENCE;
    while !other.checkpoints(&id).iter().any(|checkpoint| checkpoint.cause == "steps") {
        assert!(Instant::now() < until, "no checkpoint while it computes");
    }
    let _ = request;
    drop((client, other));
    let (place, family) = daemon.kill();
    let daemon = Daemon::start_with(place, &options);
    observe::all_end(&family);
    let mut client = daemon.client();
    let run = settled(&mut client, &id);
    assert_eq!(prompt(&run), "what next?");
    assert_eq!(console(&mut client, &id), ["counted 3000000"]);
    daemon.stop();
}

#[test]
fn rejected_answers_are_counted_and_then_reported_to_the_program() {
    let source = "
        const schema = { type: 'object', required: ['x'], properties: { x: { type: 'integer' } } };
        let first = CC('fits?', { schema });
        let second;
        try { CC('never fits', { schema, retries: 1 }); } catch (error) { second = error.name; }
        ({ first, second });
        function main() { return { first, second }; }
    ";
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let run = client.begin(source, "schemas");
    let id = id(&run);
    assert_eq!(code(client.submit(&id, "{\"x\":1.5}")), ErrorCode::AnswerInvalid);
    assert_eq!(code(client.submit(&id, "nonsense")), ErrorCode::AnswerInvalid);
    let task = client.task(&id).task.expect("still pending");
    assert_eq!((task.attempts, task.first_attempt_at.is_some()), (2, true));
    assert_eq!(prompt(&client.submit(&id, "{\"x\":1}").expect("fits")), "never fits");
    assert_eq!(code(client.submit(&id, "{}")), ErrorCode::AnswerInvalid);
    assert_eq!(code(client.submit(&id, "{}")), ErrorCode::AnswerInvalid);
    let run = settled(&mut client, &id);
    assert_eq!(result(&run), "{\"first\":{\"x\":1},\"second\":\"CCError\"}");
    daemon.stop();
}

#[test]
fn a_schema_that_cannot_be_judged_is_a_type_error_and_references_and_patterns_are_judged() {
    let source = "
        const errors = [];
        for (const schema of [{ unevaluatedItems: false }, { $ref: 'https://example.com' }, { pattern: '(?=a)' }, { type: 'text' }]) {
            try { CC('no task', { schema }); } catch (error) { errors.push(error.name + ': ' + error.message); }
        }
        const schema = { $defs: { id: { type: 'string', pattern: '^[a-z]+-\\\\d+$' } }, type: 'array', items: { $ref: '#/$defs/id' } };
        const ids = CC('ids?', { schema });
        function main() { return { errors, ids }; }
    ";
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let run = client.begin(source, "hostile");
    assert_eq!(prompt(&run), "ids?", "{run:?}");
    let id = id(&run);
    assert_eq!(code(client.submit(&id, "[\"a-1\", \"a\"]")), ErrorCode::AnswerInvalid);
    let run = client.submit(&id, "[\"a-1\"]").expect("fits");
    let result = result(&run);
    for text in [
        "TypeError: The option schema of CC is wrong: the keyword \\\"unevaluatedItems\\\" is not supported",
        "TypeError: The option schema of CC is wrong: the reference",
        "TypeError: The option schema of CC is wrong: the pattern",
        "TypeError: The option schema of CC is wrong: \\\"type\\\" has an invalid value",
        "\"ids\":[\"a-1\"]",
    ] {
        assert!(result.contains(text), "{text}: {result}");
    }
    daemon.stop();
}

#[test]
fn expired_task_gets_its_default_also_while_nothing_runs() {
    let source = "
        const first = CC('quick', { timeout_ms: 100, default: { n: 1 } });
        let second;
        try { CC('quick', { timeout_ms: 100 }); } catch (error) { second = error.name; }
        function main() { return { first, second }; }
    ";
    let daemon = cold_daemon();
    let mut client = daemon.client();
    let run = client.begin(source, "late");
    drop(client);
    let (place, family) = daemon.kill();
    let daemon = Daemon::start_with(place, &cold());
    observe::all_end(&family);
    let mut client = daemon.client();
    let run = ended(&mut client, &id(&run));
    assert_eq!(result(&run), "{\"first\":{\"n\":1},\"second\":\"CCTimeoutError\"}");
    daemon.stop();
}

#[test]
fn expired_task_does_not_wait_behind_programs_that_compute() {
    let computes = "CC('go on', { timeout_ms: 20, default: 0 }); for (;;);";
    let waits =
        "const text = CC('late', { timeout_ms: 20, default: 'in time' }); function main() { return text; }";
    let daemon = cold_daemon();
    let mut client = daemon.client();
    // They compute for longer than the test lasts.
    let limits = Limits { cpu_ms: 600_000, wall_ms: 600_000, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let name = "patient".to_owned();
    let op = TemplateCreate { name: name.clone(), engine: Engine::Cvm, settings, modules: Vec::new() };
    assert!(client.op(op).is_ok());
    client.load(computes);
    // More than are resumed at a time.
    let busy: Vec<Run> = (0..12)
        .map(|_| {
            let new = ProgramStart { template: Some(name.clone()), ..ProgramStart::default() };
            client.start_program(new).expect("started")
        })
        .collect();
    let mut watch = Watch::begin();
    while client.get_run(&id(&busy[0])).execution.status != ExecutionStatus::Running {
        watch.pause(|| "nothing computes".to_owned());
    }
    let late = client.begin(waits, "late");
    assert_eq!(result(&ended(&mut client, &id(&late))), "\"in time\"");
    let computing = busy.iter().filter(|run| !client.get_run(&id(run)).execution.status.is_final()).count();
    assert_eq!(computing, busy.len(), "it waited for some of them");
    daemon.stop();
}

#[test]
fn variables_are_shown_and_changed_and_executions_are_rewound() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let first = client.begin(SUM, "story");
    client.submit("story", "4").expect("taken");
    let state = client.state("story");
    let frame = state.frames.iter().find(|frame| frame.function == "main").expect("main");
    assert!(frame.source_line.contains("ask('second?')"), "{frame:?}");
    assert_eq!(
        code(client.op(StateSet {
            execution: "story".to_owned(),
            name: "nothing".to_owned(),
            value: JsonText::from_untrusted("1".to_owned()),
            frame: Some(0),
        })),
        ErrorCode::NotFound
    );
    let pauses: Vec<u64> = client
        .checkpoints("story")
        .into_iter()
        .filter(|checkpoint| checkpoint.cause == "pause")
        .map(|checkpoint| checkpoint.seq)
        .collect();
    assert_eq!(pauses.len(), 2);
    let fork = client
        .op(RunFork { execution: "story".to_owned(), checkpoint: None, name: Some("branch".to_owned()) })
        .expect("forked");
    assert_eq!(prompt(&fork), "second?");
    let back =
        client.op(RunRewind { execution: "story".to_owned(), checkpoint: pauses[0] }).expect("rewound");
    assert_eq!((back.name.as_deref(), prompt(&back)), (Some("story"), "first?"));
    assert_eq!(client.get_run(&id(&first)).execution.status, ExecutionStatus::Cancelled);
    client.submit("story", "1").expect("taken");
    assert_eq!(result(&client.submit("story", "1").expect("taken")), "{\"total\":11}");
    assert_eq!(result(&client.submit("branch", "1").expect("taken")), "{\"total\":14}");
    daemon.stop();
}

#[test]
fn a_fork_of_a_computing_state_replies_with_its_task() {
    // Computes longer than 20 ms before its first pause: its beginning is a checkpoint.
    let source = "
        let n = 0;
        while (n < 3000000) n++;
        CC('how many?');
        return n;
    ";
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.begin(&format!("function main() {{ {source} }}"), "computes");
    let start = client.checkpoints("computes").into_iter().find(|checkpoint| checkpoint.cause == "start");
    let start = start.expect("a checkpoint before the first pause").seq;
    let fork =
        RunFork { execution: "computes".to_owned(), checkpoint: Some(start), name: Some("fork".to_owned()) };
    let fork = client.op(fork).expect("forked");
    assert_eq!((fork.execution.status, prompt(&fork)), (ExecutionStatus::Waiting, "how many?"));
    let rewound = client.op(RunRewind { execution: "computes".to_owned(), checkpoint: start });
    let rewound = rewound.expect("rewound");
    assert_eq!((rewound.execution.status, prompt(&rewound)), (ExecutionStatus::Waiting, "how many?"));
    for name in ["fork", "computes"] {
        assert_eq!(result(&client.submit(name, "").expect("taken")), "3000000");
    }
    daemon.stop();
}

#[test]
fn a_repeated_answer_after_a_kill_is_no_error_in_the_log() {
    let daemon = cold_daemon();
    let mut client = daemon.client();
    let run = client.begin("CC('go on?'); for (;;);", "endless");
    let id = id(&run);
    let submit = TaskSubmit {
        execution: id.clone(),
        task: None,
        result: GivenAnswer::Typed("yes".to_owned()),
        wait: true,
    };
    client.send_with_key(submit.clone(), Some("key"));
    // The answer is stored, its response is not: the program runs.
    let mut other = daemon.client();
    let mut watch = Watch::begin();
    while other.get_run(&id).task.is_some() {
        watch.pause(|| "the answer is not taken".to_owned());
    }
    drop((client, other));
    let (place, family) = daemon.kill();
    let daemon = Daemon::start_with(place, &cold());
    observe::all_end(&family);
    let mut client = daemon.client();
    let request = client.send_with_key(submit, Some("key"));
    let reply = client.reply::<TaskSubmit>(request);
    let Ok(run) = reply else { panic!("{reply:?}") };
    assert_eq!(run.execution.id.to_string(), id, "the same answer does not answer the next task");
    assert!(!daemon.log().contains("ERROR"), "{}", daemon.log());
    client.op(RunDelete { execution: id }).expect("deleted");
    daemon.stop();
}

#[test]
fn limits_end_a_program_whatever_it_catches() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    for (source, status, error) in [
        ("try { for (;;); } catch {}", ExecutionStatus::Timeout, "CPU_LIMIT"),
        (
            "const a = []; try { for (;;) a.push('x'.repeat(1000)); } catch {}",
            ExecutionStatus::Error,
            "MEMORY_LIMIT",
        ),
        ("try { for (;;) console.log('x'); } catch {}", ExecutionStatus::Timeout, "CPU_LIMIT"),
        ("function f() { f(); } f();", ExecutionStatus::Error, "EXCEPTION"),
        ("throw new TypeError('no')", ExecutionStatus::Error, "EXCEPTION"),
    ] {
        let run = client.begin(source, "limited");
        let found = run.execution.error.as_ref().map(|error| error.code.as_str());
        assert_eq!((run.execution.status, found), (status, Some(error)), "{source}");
    }
    daemon.stop();
}

#[test]
fn source_that_does_not_compile_is_refused_with_its_position() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let (name, source) = ("bad".to_owned(), "let a = 1;\nlet b = ;\n".to_owned());
    let op = ProgramLoad { name, source, ..ProgramLoad::default() };
    let error = client.op(op).expect_err("refused");
    assert_eq!(error.code, ErrorCode::CompileError);
    assert!(error.message.starts_with("bad:2:"), "{}", error.message);
    client.load("CC('x')");
    let first = client.start_program(ProgramStart { name: Some("n".to_owned()), ..ProgramStart::default() });
    assert!(first.is_ok());
    let second = client.start_program(ProgramStart { name: Some("n".to_owned()), ..ProgramStart::default() });
    assert_eq!(code(second), ErrorCode::Conflict);
    daemon.stop();
}

#[test]
fn a_program_reads_its_worktree_and_nothing_else() {
    let daemon = Daemon::start(User::AsStarted);
    std::fs::write(daemon.place.worktree().join("a.txt"), "hello").expect("a file");
    let mut client = daemon.client();
    client.load(
        "function main() { return [fs.readFile('a.txt'), fs.readFile('/etc/passwd'), fs.readFile('b'), fs.readFile('/a.txt')]; }",
    );
    let worktree_path = Some(daemon.place.worktree().to_string_lossy().into_owned());
    let run =
        client.start_program(ProgramStart { worktree_path, ..ProgramStart::default() }).expect("started");
    assert_eq!(result(&run), "[\"hello\",null,null,\"hello\"]");
    daemon.stop();
}

#[test]
fn a_program_writes_its_worktree_and_nothing_else() {
    let daemon = Daemon::start(User::AsStarted);
    let root = daemon.place.worktree();
    let mut client = daemon.client();
    client.load(
        "const root = args[0];
        function main() {
            return [
                fs.writeFile('out/deep/a.txt', 'one'), fs.writeFile(root + '/out/b.txt', 'two'),
                fs.writeFile('out/b.txt', '2'), fs.writeFile('../x', 'no'), fs.writeFile('/below/x', 'in it'),
                fs.writeFile('out', 'a folder'), fs.listFiles('out', { recursive: true }).map(p => p.slice(root.length)),
                CC('done?'),
            ];
        }",
    );
    let worktree_path = Some(root.to_string_lossy().into_owned());
    let args = vec![root.to_string_lossy().into_owned()];
    let run = client
        .start_program(ProgramStart { worktree_path, args, ..ProgramStart::default() })
        .expect("started");
    let run = client.submit(&id(&run), "yes").expect("taken");
    assert_eq!(
        result(&run),
        "[true,true,true,false,true,false,[\"/out/b.txt\",\"/out/deep\",\"/out/deep/a.txt\"],\"yes\"]"
    );
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("written");
    assert_eq!((read("out/deep/a.txt").as_str(), read("out/b.txt").as_str()), ("one", "2"));
    let checkpoints = client.checkpoints(&id(&run));
    assert_eq!(checkpoints.iter().filter(|checkpoint| checkpoint.cause == "effect").count(), 6);
    daemon.stop();
}

#[test]
fn worker_of_a_program_can_be_inspected_and_killed() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let run = client.begin(SUM, "warm");
    let session = run.execution.session_id.to_string();
    let inspect = || vm_system_protocol::control::SessionInspect { session: session.clone() };
    let kill = vm_system_protocol::control::SessionKill { session: session.clone(), signal: 9 };
    let seen = client.op(inspect()).expect("a warm worker");
    assert_eq!((seen.running_execution, seen.seccomp_mode), (Some(run.execution.id), Some(2)));
    assert_eq!(client.op(kill), Ok(()));
    let until = Instant::now() + PATIENCE;
    while client.op(inspect()).is_ok() {
        assert!(Instant::now() < until, "it was killed");
    }
    assert_eq!(code(client.op(inspect())), ErrorCode::SessionNotReady);
    assert_eq!(prompt(&client.submit("warm", "4").expect("taken")), "second?");
    daemon.stop();
}

#[test]
fn ops_of_sessions_and_executions_apply_to_programs_too() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let run = client.begin(SUM, "seen");
    let op = vm_system_protocol::control::ExecCancel { execution: "seen".to_owned() };
    assert_eq!(client.op(op), Ok(()));
    assert_eq!(client.get_run(&id(&run)).execution.status, ExecutionStatus::Cancelled);
    assert!(client.tasks().is_empty());
    daemon.stop();
}

/// Deletion is incremental; with a state of many pages it must keep the same checkpoints as a complete scan would.
#[test]
fn old_versions_of_pages_are_deleted_and_the_state_is_kept() {
    const LISTS: &str = "
        const lists = [];
        for (let i = 0; i < 20; i++) lists.push([]);
        for (let step = 0; step < 60; step++) lists[step % 20].push(CC('next').repeat(100));
        const all = lists.map(list => list.map(text => text.slice(0, 3)).join());
        function main() { return all.join(';'); }
    ";
    let options = DaemonOptions {
        config: "[durable]\nhistory = 8\nwarm_ms = 0\n".to_owned(),
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start_with(vm_system_tests::place::TestDir::new(User::AsStarted), &options);
    let mut client = daemon.client();
    client.begin(LISTS, "lists");
    for step in 0..59 {
        client.submit("lists", &format!("{step:03}")).expect("taken");
    }
    let kept = client.checkpoints("lists");
    assert!((8..=17).contains(&kept.len()), "{} are kept", kept.len());
    let from = kept.first().expect("the oldest").seq;
    let fork =
        RunFork { execution: "lists".to_owned(), checkpoint: Some(from), name: Some("again".to_owned()) };
    client.op(fork).expect("forked");
    for step in from - 1..59 {
        client.submit("again", &format!("{step:03}")).expect("taken");
    }
    let first = client.submit("lists", "059").expect("taken");
    let again = client.submit("again", "059").expect("taken");
    assert_eq!(result(&first), result(&again));
    assert!(result(&first).contains("000,020,040;"), "{}", result(&first));
    daemon.stop();
}
