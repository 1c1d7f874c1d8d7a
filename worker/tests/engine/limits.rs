//! Soft limits end an execution whatever it does, and the session keeps its state.

use crate::harness::{Engine, limits};
use std::time::Duration;
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::{Done, Outcome};

/// The session still has its state and an empty queue.
fn assert_usable(engine: &mut Engine, what: &str) {
    let tight = engine.policy.limits.clone();
    // A machine under load may take longer for this than the limit that is being tested.
    (engine.policy.limits.cpu_ms, engine.policy.limits.wall_ms) = (60_000, 60_000);
    assert_eq!(engine.value("before + 1"), "42", "{what}");
    assert_eq!(engine.value("await Promise.resolve(before)"), "41", "{what}");
    assert_eq!(engine.value("globalThis.after"), "undefined", "{what}");
    engine.policy.limits = tight;
}

fn stopped(limit: LimitKind, engine: &mut Engine, sources: &[&str]) {
    engine.repl("var before = 41");
    for source in sources {
        let done: Done = engine.repl(source);
        assert_eq!(done.outcome, Outcome::Limit(limit), "{source}: {:?}", done.events);
        assert_usable(engine, source);
    }
}

#[test]
fn the_cpu_limit_ends_any_code() {
    let mut engine = Engine::with_limits(limits(|limits| limits.cpu_ms = 50));
    stopped(
        LimitKind::Cpu,
        &mut engine,
        &[
            "for (;;);",
            "while (true) { try { for (;;); } catch {} finally { globalThis.after = 1 } }",
            "try { for (;;); } finally { globalThis.after = 1 }",
            "(function f() { Promise.resolve().then(f) })()",
            "(async () => { for (;;) await 1 })()",
            "(async () => { try { for (;;); } catch { globalThis.after = 1 } })()",
            "await (async () => { try { for (;;); } finally { globalThis.after = 1 } })()",
            "(function f() { process.nextTick(f) })()",
            "(function f() { queueMicrotask(f); queueMicrotask(f) })()",
            "/^(a+)+$/.test('a'.repeat(40) + 'b')",
            "({ get x() { for (;;); } }).x",
            "new Proxy({}, { get() { for (;;); } }).x",
            "[3, 1, 2].sort(() => { for (;;); })",
            "JSON.stringify({ toJSON() { for (;;); } })",
            "for (const x of { [Symbol.iterator]() { return { next: () => ({ done: false }) } } });",
            "Promise.resolve().then(() => { for (;;); }).finally(() => { globalThis.after = 1 })",
            "(function f() { try { f() } catch { f() } })()",
            "setInterval(() => { const end = Date.now() + 10; while (Date.now() < end); }, 1)",
            "(function f() { setImmediate(f) })()",
            "eval('for (;;);')",
            "new Function('for (;;);')()",
            "Error.prepareStackTrace = () => { for (;;); }; new Error('x').stack",
        ],
    );
}

#[test]
fn the_wall_limit_ends_a_waiting_execution() {
    let mut engine = Engine::with_limits(limits(|limits| limits.wall_ms = 60));
    stopped(
        LimitKind::Wall,
        &mut engine,
        &[
            "setTimeout(() => { globalThis.after = 1 }, 10000)",
            "setInterval(() => {}, 5)",
            "await new Promise((done) => setTimeout(done, 10000))",
            "for (;;);",
        ],
    );
}

#[test]
fn time_in_host_calls_is_not_wall_time() {
    let mut engine = Engine::with_limits(limits(|limits| limits.wall_ms = 1_000)).file("a.txt", "x");
    engine.memory.call_takes = Duration::from_millis(600);
    let done = engine.repl(
        "const fs = require('fs'); fs.readFileSync('a.txt', 'utf8') + fs.readFileSync('a.txt', 'utf8')",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
}

#[test]
fn memory_bombs_are_stopped_and_the_session_continues() {
    let mut engine = Engine::with_limits(limits(|limits| limits.mem_mb = 16));
    stopped(
        LimitKind::Memory,
        &mut engine,
        &[
            "(() => { const hoard = []; for (;;) hoard.push({ a: 1 }) })()",
            "(() => { const buffers = []; for (;;) buffers.push(new ArrayBuffer(1e6)) })()",
            "new Uint8Array(1e9)",
            "(() => { const map = new Map(); for (let i = 0; ; i++) map.set(i, 'v' + i) })()",
            "(function f() { const all = []; for (;;) all.push(() => all) })()",
            "await (async () => { const all = []; for (;;) all.push(new Array(1000).fill(1)) })()",
            "'x'.repeat(5e8)",
            "await (async () => { const all = []; async function f(n) { all.push(new Array(50)); await null; if (n) return f(n - 1) } for (;;) await f(5) })()",
            "(() => { const all = []; for (;;) { try { null.x } catch (e) { all.push(e) } } })()",
        ],
    );
}

#[test]
fn running_out_of_memory_can_be_caught() {
    let mut engine = Engine::with_limits(limits(|limits| limits.mem_mb = 16));
    assert_eq!(
        engine.value("try { new Uint8Array(1e9); 'no' } catch (e) { e === null || e.message }"),
        "'out of memory'"
    );
}

#[test]
fn a_session_whose_memory_is_full_to_the_last_piece_can_be_emptied() {
    let mut engine = Engine::with_limits(limits(|limits| limits.mem_mb = 16));
    engine.value("var before = 41; var keep = []; 0");
    engine.value(
        "var fill = () => { for (let n = 1 << 20; n >= 1; n >>= 1) for (;;) try { keep.push(new Uint8Array(n)) } \
         catch { break } for (;;) try { keep = [keep] } catch { break } }; 0",
    );
    // Each call is given the reserve anew, and fills it.
    for _ in 0..8 {
        engine.repl("fill()");
    }
    assert_eq!(engine.value("keep = null"), "null");
    assert_usable(&mut engine, "emptied");
}

#[test]
fn deep_recursion_is_a_range_error_that_can_be_caught() {
    let mut engine = Engine::new();
    let caught = engine.value("let depth = 0; (function f() { depth++; f() })");
    assert_eq!(caught, "[Function: f]");
    assert_eq!(
        engine.value("try { (function f() { f() })() } catch (e) { e instanceof RangeError }"),
        "true"
    );
    let (message, _) = engine.exception("(function f() { f() })()");
    assert_eq!(message, "RangeError: Maximum call stack size exceeded");
    for source in [
        "let deep = []; for (let i = 0; i < 100000; i++) deep = [deep]; JSON.stringify(deep)",
        "JSON.parse('['.repeat(100000))",
        "new RegExp('('.repeat(100000) + ')'.repeat(100000))",
        "eval('('.repeat(100000))",
    ] {
        let done = engine.repl(source);
        assert!(
            !matches!(done.outcome, Outcome::Limit(_) | Outcome::Interrupted),
            "{source}: {:?}",
            done.outcome
        );
    }
    assert_eq!(engine.value("1"), "1");
}

#[test]
fn too_many_events_end_the_run_while_it_runs() {
    let mut engine = Engine::with_limits(limits(|limits| limits.max_events = 10));
    engine.value("var before = 41");
    let done = engine.repl(
        "try { for (;;) console.log('x') } catch { globalThis.after = 1 } finally { globalThis.after = 2 }",
    );
    assert_eq!(done.outcome, Outcome::Limit(LimitKind::Events));
    assert_eq!(engine.memory.events.len(), 10);
    assert_usable(&mut engine, "events");
}

#[test]
fn too_much_output_ends_the_run_while_it_runs() {
    let mut engine = Engine::with_limits(limits(|limits| limits.max_output_kb = 4));
    engine.value("var before = 41");
    let done = engine.repl("for (;;) console.log('x'.repeat(1000))");
    assert_eq!(done.outcome, Outcome::Limit(LimitKind::Output));
    assert_eq!(engine.memory.events.len(), 4);
    let done = engine.repl("'v'.repeat(5000)");
    assert_eq!(done.outcome, Outcome::Limit(LimitKind::Output));
    assert_usable(&mut engine, "output");
}

#[test]
fn a_flood_of_a_hundred_megabytes_is_stopped_early() {
    let mut engine = Engine::new();
    let done = engine.repl("const chunk = 'x'.repeat(1e6); for (let i = 0; i < 100; i++) console.log(chunk)");
    assert_eq!(done.outcome, Outcome::Limit(LimitKind::Output));
    assert!(engine.memory.events.len() <= 2);
}

#[test]
fn usage_is_reported() {
    let mut engine = Engine::new();
    let done =
        engine.repl("let big = new Array(100000).fill('x'); big = null; for (let i = 0; i < 1e6; i++); 1");
    assert!(done.usage.cpu_us > 0);
    assert!(done.usage.heap_peak_bytes >= done.usage.heap_bytes + 700_000, "{:?}", done.usage);
    assert!(done.usage.heap_bytes > 0);
}

#[test]
fn disabled_globals_are_removed_and_restored() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("typeof eval + typeof Date"), "'functionfunction'");
    engine.policy.disabled_globals =
        vec!["eval".to_owned(), "Function".to_owned(), "Date".to_owned(), "nothing".to_owned()];
    assert_eq!(
        engine.value("[typeof eval, typeof Function, typeof Date]"),
        "[ 'undefined', 'undefined', 'undefined' ]"
    );
    assert_eq!(engine.value("[(() => {}).constructor, (async () => {}).constructor, (function* () {}).constructor].map(f => f && f.name)"), "[ 'Object', 'Object', 'Object' ]");
    engine.policy.disabled_globals.clear();
    assert_eq!(engine.value("eval('1') + new Function('return 2')() + typeof Date"), "'3function'");
}
