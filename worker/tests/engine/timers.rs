//! The event loop: order, what keeps an execution alive, unhandled rejections.

use crate::harness::{Engine, exception_of};
use vm_system_protocol::model::ExecutionKind;
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::{Outcome, SourceFormat};

#[test]
fn macrotasks_ticks_and_jobs_run_in_nodes_order() {
    let mut engine = Engine::new();
    let logs = engine.logs(
        "setTimeout(() => console.log('timeout'), 0);
         setImmediate(() => console.log('immediate'));
         Promise.resolve().then(() => { console.log('job'); process.nextTick(() => console.log('tick in job')) });
         process.nextTick(() => console.log('tick'));
         queueMicrotask(() => console.log('microtask'));
         console.log('sync')",
    );
    assert_eq!(logs, ["sync", "tick", "job", "microtask", "tick in job", "timeout", "immediate"]);
}

#[test]
fn immediates_follow_finished_calls_and_what_they_add_runs_in_the_next_iteration() {
    let mut engine = Engine::new().file("a.txt", "a");
    // The order in which a call's callback adds: the immediate first, always.
    let logs = engine.logs(
        "require('fs').readFile('a.txt', () => {
             console.log('call');
             setTimeout(() => console.log('timeout'), 0);
             setImmediate(() => {
                 console.log('immediate');
                 setImmediate(() => console.log('next'));
                 process.nextTick(() => console.log('tick'));
             });
             setImmediate(() => console.log('second'));
         }); undefined",
    );
    let (in_order, timeout): (Vec<&str>, Vec<&str>) =
        logs.iter().map(String::as_str).partition(|line| *line != "timeout");
    assert_eq!(in_order, ["call", "immediate", "tick", "second", "next"]);
    assert_eq!(timeout.len(), 1);
    assert!(
        logs.iter().position(|line| line == "timeout") > logs.iter().position(|line| line == "second"),
        "{logs:?}"
    );
    // A timer that is due all the time, and immediates without end, leave the others their turn.
    let logs = engine.logs(
        "let turns = 0; const busy = setInterval(() => { const until = Date.now() + 3; while (Date.now() < until); }, 1);
         const again = () => { if (++turns < 5) setImmediate(again); else { clearInterval(busy); console.log('done') } }; setImmediate(again);
         require('fs').readFile('a.txt', 'utf8', (error, text) => console.log(text, turns)); undefined",
    );
    assert_eq!(logs, ["a 0", "done"]);
    let cleared = engine.logs(
        "const [a, b] = [setImmediate(() => { clearImmediate(b); console.log('a') }), setImmediate(() => console.log('b'))]; undefined",
    );
    assert_eq!(cleared, ["a"]);
}

#[test]
fn an_execution_lasts_until_its_timers_are_done() {
    let mut engine = Engine::new();
    let logs = engine.logs(
        "let n = 0; const t = setInterval((step) => { n += step; console.log(n); if (n === 6) { clearInterval(t); setTimeout(() => console.log('last'), 1) } }, 2, 2);
         const dead = setTimeout(() => console.log('never'), 3); clearTimeout(dead)",
    );
    assert_eq!(logs, ["2", "4", "6", "last"]);
    assert_eq!(engine.value("n"), "6");
}

#[test]
fn an_unreferenced_timer_keeps_nothing_alive() {
    let mut engine = Engine::new();
    assert_eq!(
        engine.value("const idle = setTimeout(() => { throw 1 }, 50000); idle.unref(); idle.hasRef()"),
        "false"
    );
}

#[test]
fn awaiting_a_timer_has_its_value() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("await new Promise((done) => setTimeout(done, 5, 'late'))"), "'late'");
}

#[test]
fn an_exception_in_a_callback_ends_the_execution_and_drops_queued_callbacks() {
    let mut engine = Engine::new();
    let (message, stack) = engine.exception(
        "setTimeout(() => { throw new TypeError('later') }, 1); setTimeout(() => globalThis.ran = true, 20)",
    );
    assert_eq!(message, "TypeError: later");
    assert!(stack.contains("repl:1:"), "{stack}");
    assert_eq!(engine.value("globalThis.ran"), "undefined");
}

#[test]
fn an_unhandled_rejection_is_an_exception_and_a_handled_one_is_not() {
    let mut engine = Engine::new();
    assert_eq!(engine.exception("Promise.reject(new Error('nobody')); 5").0, "Error: nobody");
    assert_eq!(engine.value("const p = Promise.reject(1); p.catch(() => {}); 6"), "6");
    assert_eq!(
        engine.value("const q = Promise.reject(1); Promise.resolve().then(() => q.catch(() => {})); 7"),
        "7"
    );
    assert_eq!(engine.exception("Promise.reject(3); 1").0, "Uncaught 3");
}

#[test]
fn process_exit_ends_the_run_with_its_code_and_nothing_catches_it() {
    let mut engine = Engine::new();
    let done = engine.script(
        "a.js",
        "try { process.exit(3) } catch { globalThis.caught = 1 } finally { globalThis.caught = 2 }",
    );
    assert_eq!(done.outcome, Outcome::Exit { code: 3 });
    assert_eq!(engine.value("globalThis.caught"), "undefined");
    assert_eq!(engine.script("b.js", "process.exit()").outcome, Outcome::Ok);
    assert_eq!(engine.script("c.js", "process.exitCode = 4; 1").outcome, Outcome::Exit { code: 4 });
    assert_eq!(engine.script("d.js", "1").outcome, Outcome::Ok);
}

#[test]
fn the_events_of_a_processs_end_are_emitted_as_in_node() {
    // Code, and what it prints with Node 20 and 22 in a file.
    let cases: &[(&str, &[&str])] = &[
        (
            "process.on('exit', (code) => console.log('exit', code, process.exitCode)); process.on('beforeExit', (code) => console.log('before', code)); console.log('end')",
            &["end", "before 0", "exit 0 undefined"],
        ),
        (
            "let more = 2; process.on('beforeExit', () => { console.log('before'); if (more-- > 0) setTimeout(() => console.log('timer'), 1) })",
            &["before", "timer", "before", "timer", "before"],
        ),
        (
            "process.once('beforeExit', () => { Promise.resolve().then(() => console.log('job')); process.nextTick(() => console.log('tick')) });
             process.on('exit', () => { console.log('exit'); setTimeout(() => console.log('never'), 0); process.nextTick(() => console.log('never')); Promise.resolve().then(() => console.log('job')) })",
            &["tick", "job", "exit", "job"],
        ),
        (
            "process.on('exit', (code) => console.log('exit', code)); process.on('beforeExit', () => console.log('never')); setTimeout(() => { process.exit(0); console.log('never') }, 1)",
            &["exit 0"],
        ),
        (
            "process.on('uncaughtException', (error, origin) => console.log('caught', error.message, origin)); process.on('exit', (code) => console.log('exit', code));
             setTimeout(() => { throw new Error('two') }, 1); setTimeout(() => console.log('three'), 5); throw new Error('one')",
            &["caught one uncaughtException", "caught two uncaughtException", "three", "exit 0"],
        ),
        (
            "process.on('unhandledRejection', (reason, promise) => console.log('rejected', reason.message, promise instanceof Promise));
             Promise.reject(new Error('x')); setTimeout(() => console.log('later'), 1)",
            &["rejected x true", "later"],
        ),
        (
            "process.on('uncaughtException', (error, origin) => console.log(error.code ?? error.message, origin)); Promise.reject(new Error('x')); Promise.reject(5); process.nextTick(() => { throw new Error('tick') })",
            &["tick uncaughtException", "x unhandledRejection", "ERR_UNHANDLED_REJECTION unhandledRejection"],
        ),
        (
            "process.on('uncaughtException', (error, origin) => console.log(error.message, origin)); process.on('exit', (code) => console.log('exit', code));
             queueMicrotask(() => { throw new Error('job') }); queueMicrotask(() => console.log('next')); setTimeout(() => console.log('later'), 1)",
            &["job uncaughtException", "next", "later", "exit 0"],
        ),
        (
            "process.on('exit', () => { console.log('one'); process.exit(0) }); process.on('exit', () => console.log('never'))",
            &["one"],
        ),
    ];
    let mut engine = Engine::new();
    for (code, printed) in cases {
        let done = engine.run(ExecutionKind::RunFile, "a.js", SourceFormat::CommonJs, code);
        assert_eq!(
            (done.outcome, engine.console()),
            (Outcome::Ok, printed.iter().map(|line| (*line).to_owned()).collect()),
            "{code}"
        );
    }
    // A listener sees and keeps the exit code of the script.
    let run = |engine: &mut Engine, source: &str| {
        let done = engine.run(ExecutionKind::RunFile, "a.mjs", SourceFormat::Module, source);
        (done.outcome, engine.console().join(" "))
    };
    let shows = "process.on('beforeExit', code => console.log('before', code)); process.on('exit', code => console.log('exit', code, process.exitCode));";
    let (outcome, printed) = run(&mut engine, &format!("{shows} process.exitCode = 4"));
    assert_eq!((outcome, printed.as_str()), (Outcome::Exit { code: 4 }, "before 4 exit 4 4"));
    // A promise for which the top level waits can be settled by a listener; else the exit code is 13, or the script's own.
    let (outcome, printed) = run(
        &mut engine,
        &format!(
            "{shows} let settle; process.once('beforeExit', () => settle(5)); const five = await new Promise(to => settle = to); setTimeout(() => console.log(five))"
        ),
    );
    assert_eq!((outcome, printed.as_str()), (Outcome::Ok, "before 0 5 exit 0 undefined"));
    let never = "await new Promise(() => {})";
    let (outcome, printed) = run(&mut engine, &format!("{shows} {never}"));
    let message = "Error: top-level await never settled: nothing is left that could resolve it".to_owned();
    assert_eq!((outcome, printed.as_str()), (Outcome::Exit { code: 13 }, "before 0 exit 0 13"));
    let done = engine.run(ExecutionKind::RunFile, "a.mjs", SourceFormat::Module, never);
    assert_eq!(exception_of(&done), Some((message.clone(), message)));
    for (own, code) in [
        ("process.exitCode = 7;", 7),
        ("process.on('exit', () => { process.exitCode = 5 });", 5),
        ("process.exitCode = 0;", 0),
    ] {
        let right = if code == 0 { Outcome::Ok } else { Outcome::Exit { code } };
        assert_eq!(run(&mut engine, &format!("{own} {never}")).0, right, "{own}");
    }
    // An exception that nothing catches is the execution's, and `exit` has its code.
    let done = engine.repl(
        "process.on('exit', (code) => console.log('exit', code, process.exitCode)); throw new Error('mine')",
    );
    assert!(
        matches!(&done.outcome, Outcome::Exception { message } if message == "Error: mine"),
        "{:?}",
        done.outcome
    );
    assert_eq!(engine.console(), ["exit 1 1"]);
    let done = engine.repl("process.on('exit', () => { process.exitCode = 3 }); process.exit(2)");
    assert_eq!(done.outcome, Outcome::Exit { code: 3 });
    let done = engine.repl(
        "process.on('uncaughtException', () => { throw new Error('again') }); throw new Error('first')",
    );
    assert!(
        matches!(&done.outcome, Outcome::Exception { message } if message == "Error: again"),
        "{:?}",
        done.outcome
    );
    // The exception of a microtask is one like any other, at any time.
    for (source, message, printed) in [
        (
            "for (let i = 0; i < 3; i++) queueMicrotask(() => { console.log(i); if (i === 1) throw new Error('job') }); process.on('exit', code => console.log('exit', code))",
            "Error: job",
            "0 1 exit 1",
        ),
        ("setTimeout(() => queueMicrotask(() => { throw null }), 1)", "Uncaught null", ""),
        ("await null; queueMicrotask(() => { throw new Error('await') })", "Error: await", ""),
        (
            "new (require('node:async_hooks').AsyncLocalStorage)().run(1, () => queueMicrotask(() => { throw new Error('run') }))",
            "Error: run",
            "",
        ),
        (
            "process.once('beforeExit', () => queueMicrotask(() => { throw new Error('before') }))",
            "Error: before",
            "",
        ),
        ("process.on('exit', () => queueMicrotask(() => { throw new Error('exit') }))", "Error: exit", ""),
        (
            "process.on('uncaughtException', () => { throw new Error('again') }); queueMicrotask(() => { throw new Error('first') })",
            "Error: again",
            "",
        ),
        (
            "globalThis.registry = new FinalizationRegistry(() => { throw new Error('freed') }); (() => registry.register({}, 1))(); 1",
            "Error: freed",
            "",
        ),
    ] {
        let done = engine.repl(source);
        assert!(
            matches!(&done.outcome, Outcome::Exception { message: is } if is == message),
            "{source}: {:?}",
            done.outcome
        );
        assert_eq!(engine.console().join(" "), printed, "{source}");
    }
    // For these events an execution is a process: nothing is left of its listeners.
    assert_eq!(engine.logs("process.on('warning', () => console.log('kept')); 1"), [] as [&str; 0]);
    assert_eq!(engine.logs("process.emit('warning'); process.listenerCount('exit')"), ["kept"]);
    assert_eq!(
        engine.value("process.listenerCount('uncaughtException') + process.listenerCount('exit')"),
        "0"
    );
    // A limit ends it without events.
    engine.policy.limits.wall_ms = 50;
    let done = engine.repl("process.on('exit', () => console.log('never')); for (;;);");
    assert_eq!((done.outcome, engine.console().len()), (Outcome::Limit(LimitKind::Wall), 0));
}
