//! Values that follow asynchronous calls (`node:async_hooks`), and what their use must not change.

use crate::harness::Engine;

/// The lines that a text prints in a session of its own.
fn printed(code: &str) -> Vec<String> {
    Engine::new().logs(code)
}

const STORE: &str = "const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks'); const als = new AsyncLocalStorage();
    const log = (text) => console.log(`${text} ${als.getStore()}`); ";

#[test]
fn a_value_follows_every_kind_of_await() {
    let code = "const job = (id) => als.run(id, async () => {
            await 5; log('value');
            await Promise.resolve(5); log('settled');
            await new Promise((resolve) => setImmediate(resolve)); log('later');
            try { await Promise.reject(new Error('no')) } catch { log('rejected') }
            await { then(resolve) { setTimeout(resolve, 1) } }; log('thenable');
            for await (const x of (async function* () { yield 1; await null; yield 2 })()) log(`item ${x}`);
            await Promise.all([1, 2].map(async () => { await null })); log('all');
            await (async () => { await null; return Promise.resolve() })(); log('returned');
        });
        await Promise.all([job('a'), job('b'), job('c')]); log('outside');";
    let lines = printed(&format!("{STORE}{code}"));
    for id in ["a", "b", "c"] {
        let own: Vec<_> = lines.iter().filter(|line| line.ends_with(&format!(" {id}"))).collect();
        let steps =
            ["value", "settled", "later", "rejected", "thenable", "item 1", "item 2", "all", "returned"];
        let expected: Vec<_> = steps.iter().map(|step| format!("{step} {id}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>(), "{lines:?}");
    }
    assert_eq!(lines.last().map(String::as_str), Some("outside undefined"));
    assert_eq!(lines.len(), 28, "{lines:?}");
}

/// A promise that others settle, with another value or with none.
#[test]
fn a_value_does_not_come_from_the_code_that_settles() {
    let code = "let settle; const common = new Promise((resolve) => { settle = resolve });
        let fail; const failing = new Promise((_, reject) => { fail = reject });
        const waiters = ['a', 'b'].map((id) => als.run(id, async () => {
            await common; log('first'); try { await failing } catch { log('second') } }));
        als.run('other', () => setImmediate(() => { settle(); setImmediate(() => als.run('third', fail)) }));
        await Promise.all(waiters); log('outside')";
    let lines = printed(&format!("{STORE}{code}"));
    assert_eq!(lines, ["first a", "first b", "second a", "second b", "outside undefined"]);
}

#[test]
fn a_value_follows_callbacks() {
    let code = "als.run('x', () => {
            setTimeout(() => log('timer'), 1); setImmediate(() => log('immediate')); process.nextTick(() => log('tick'));
            queueMicrotask(() => log('microtask')); Promise.resolve().then(() => log('then')).finally(() => log('finally'));
            require('fs').readFile('none', () => log('call'));
        });
        const bound = als.run('y', () => AsyncResource.bind(() => log('bound'))); bound();
        als.run('y', () => als.exit(() => log('exit')));
        als.run('z', () => AsyncLocalStorage.snapshot())(() => log('snapshot')); log('outside')";
    let mut lines = printed(&format!("{STORE}{code}"));
    lines.sort();
    assert_eq!(
        lines,
        [
            "bound y",
            "call x",
            "exit undefined",
            "finally x",
            "immediate x",
            "microtask x",
            "outside undefined",
            "snapshot z",
            "then x",
            "tick x",
            "timer x"
        ]
    );
}

#[test]
fn the_next_execution_has_no_value() {
    let mut engine = Engine::new();
    assert_eq!(engine.logs(&format!("{STORE} als.enterWith('left'); log('entered')")), ["entered left"]);
    assert_eq!(engine.value("als.getStore()"), "undefined");
    assert_eq!(engine.value("await null; als.getStore()"), "undefined");
}

/// The order of jobs, unhandled rejections, and the properties of promises are as without it.
#[test]
fn promises_behave_as_before() {
    let order = "const out = []; const p = Promise.resolve();
        (async () => { out.push(1); await p; out.push(2); await 0; out.push(3); await p.then(() => out.push(4)); out.push(5) })();
        (async () => { out.push('a'); await 0; out.push('b'); await p; out.push('c'); await null; out.push('d') })();
        p.then(() => out.push('x')).then(() => out.push('y')).then(() => out.push('z')); process.nextTick(() => out.push('tick'));
        class Mine extends Promise {} Mine.resolve(1).then(() => out.push('mine')); await new Promise((f) => setTimeout(f, 2));
        console.log(out.join(' '), Promise.resolve().constructor === Promise, Mine.resolve().constructor === Mine,
            Promise.prototype.then.name, Promise.prototype.then.length, Mine.resolve().then() instanceof Mine)";
    assert_eq!(printed(&format!("{STORE}{order}")), printed(&format!("const als = 0; {order}")));
    let mut engine = Engine::new();
    engine.value(&format!("{STORE} 0"));
    for code in [
        "Promise.reject(new Error('unhandled')); 0",
        "(async () => { await null; throw new Error('unhandled') })(); 0",
    ] {
        let (message, _) = engine.exception(code);
        assert!(message.contains("unhandled"), "{message}");
    }
    assert_eq!(
        engine.value("await als.run(1, () => Promise.reject(new Error('handled')).catch((e) => e.message))"),
        "'handled'"
    );
    assert_eq!(engine.value("[Promise.resolve(1)]"), "[ Promise { 1 } ]");
    assert_eq!(engine.value("class Own extends Promise {}; [Own.resolve(1)]"), "[ Own [Promise] { 1 } ]");
}

/// Reactions of our own are not reported again: the work is linear, and nothing is kept.
#[test]
fn many_awaits_take_no_memory() {
    let mut engine = Engine::new();
    engine.value(&format!("{STORE} 0"));
    let code = "await als.run({}, async () => { for (let i = 0; i < 20000; i++) { await i; await Promise.resolve(i) } }); \
                process.memoryUsage().heapUsed";
    let first: f64 = engine.value(code).parse().expect("bytes");
    let second: f64 = engine.value(code).parse().expect("bytes");
    assert!(second < first + 2_000_000.0, "{first} {second}");
}
