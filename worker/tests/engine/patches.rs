//! Cases that the patches of QuickJS mend (`quickjs/patches`): each of these has another result with the released engine.

use crate::harness::{Engine, limits, value_of};
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::Outcome;

#[test]
fn every_request_to_an_async_generator_is_settled() {
    let source = "await (async () => {
        async function* count() { for (let i = 0; i < 3; i++) { await null; yield i; } }
        const results = [];
        for (const calls of ['nt', 'rt', 'nrt', 'nrnt', 'nnrnt', 'rnt', 'rrt', 'nrnn', 'tnt', 'nnnnnt', 'nnnrtn']) {
            const one = count();
            const how = { n: () => one.next(), r: () => one.return('r'), t: () => one.throw(new Error('x')) };
            const settled = [...calls].map(call => how[call]().then(({ value, done }) => `${value}${done ? '.' : ''}`, () => '!'));
            results.push((await Promise.all(settled)).join(' '));
        }
        return results.join(' | ');
    })()";
    // As Node 20 says.
    let right = "0 ! | r. ! | 0 r. ! | 0 r. undefined. ! | 0 1 r. undefined. ! | r. undefined. ! | r. r. ! | 0 r. undefined. undefined. \
                 | ! undefined. ! | 0 1 2 undefined. undefined. ! | 0 1 2 r. ! undefined.";
    assert_eq!(Engine::new().value(source), format!("'{right}'"));
}

#[test]
fn an_iterator_that_fails_is_not_closed_by_for_await() {
    let source = "await (async () => {
        const log = [];
        const closes = next => ({ [Symbol.asyncIterator]() { return this; }, next, return() { log.push('closed'); return {}; } });
        const go = async (iterable, body = () => {}) => {
            try { for await (const one of iterable) body(one); } catch (error) { log.push(error); }
        };
        await go(closes(() => Promise.reject('rejects')));
        await go(closes(() => { throw 'throws'; }));
        await go(closes(() => ({ get done() { throw 'done'; } })));
        await go(closes(() => ({ done: false, get value() { throw 'value'; } })));
        await go(closes(() => ({ done: false, value: 1 })), () => { throw 'body'; });
        const promises = { next: () => ({ value: Promise.reject('element'), done: false }), return() { log.push('closed'); return {}; } };
        await go({ [Symbol.iterator]: () => promises });
        return log.join(' ');
    })()";
    assert_eq!(Engine::new().value(source), "'rejects throws done value closed body closed element'");
}

#[test]
fn running_out_of_memory_is_an_error_with_a_message() {
    let mut engine = Engine::with_limits(limits(|limits| limits.mem_mb = 16));
    for grow in [
        "const all = new Map(); for (let i = 0; ; i++) all.set(i, { i });",
        "const all = []; for (let i = 0; ; i++) all.push({ i, s: 'x' + i });",
    ] {
        for source in [
            format!(
                "(() => {{ try {{ {grow} }} catch (error) {{ return `${{error.name}}: ${{error.message}}`; }} }})()"
            ),
            format!(
                "await (async () => {{ {grow} }})().catch(error => `${{error.name}}: ${{error.message}}`)"
            ),
        ] {
            for _ in 0..2 {
                assert_eq!(engine.value(&source), "'InternalError: out of memory'", "{source}");
            }
        }
    }
    let kept = "(() => { const errors = [], all = []; try { for (;;) { try { for (;;) all.push({}); } catch (error) { \
                if (error === null || error.message !== 'out of memory') return 'wrong'; errors.push(error); if (errors.length > 9_999) return 'right'; } } } \
                catch (error) { return String(error); } })()";
    let done = engine.repl(kept);
    let right =
        value_of(&done).is_some_and(|(_, value, _)| value == "'right'" || value.contains("out of memory"));
    assert!(right || done.outcome == Outcome::Limit(LimitKind::Memory), "{done:?}");
    assert_eq!(engine.value("1 + 1"), "2");
}

/// Garbage in cycles may fill the memory; once it is free again, the reserve is there for the next time.
#[test]
fn memory_can_run_out_more_than_once_in_an_execution() {
    let mut engine = Engine::with_limits(limits(|limits| {
        (limits.mem_mb, limits.cpu_ms, limits.wall_ms) = (16, 60_000, 60_000);
    }));
    let source = "await (async () => { const seen = []; for (const grow of [
        () => { const all = []; for (;;) all.push(() => all); },
        async () => { const all = []; for (let i = 0; ; i++) all.push({ i, s: 'x' + i }); },
        () => { const all = {}; for (let i = 0; ; i++) all['k' + i] = i; },
        () => { const all = []; for (;;) { const one = { all }; all.push(one); } },
        () => { const all = new Map(); for (let i = 0; ; i++) all.set(i, { i }); },
        () => { const all = new Set(); for (let i = 0; ; i++) all.add('k' + i); },
    ]) { try { await grow(); } catch (error) { console.log('caught', error.message); seen.push(String(error)); } } return seen.join(); })()";
    assert_eq!(engine.value(source), format!("'{}'", ["InternalError: out of memory"; 6].join(",")));
    assert_eq!(engine.console(), ["caught out of memory"; 6]);
}

/// The compiler of QuickJS does not check its allocations: with a part of its bytecode it would end the process.
#[test]
fn memory_that_is_out_while_source_is_compiled_is_an_error() {
    for mem_mb in 16..=28 {
        let mut engine = Engine::with_limits(limits(|limits| {
            (limits.mem_mb, limits.cpu_ms, limits.wall_ms) = (mem_mb, 60_000, 60_000);
        }));
        for source in [
            "`() => () => ${i}`",
            "`(function () { let a = ${i}; return () => () => a + ${i}; })`",
            "`(class { #p = ${i}; static { this.q = ${i}; } get x() { return this.#p; } })`",
        ] {
            let grow = format!(
                "(() => {{ const errors = new Set(), all = []; for (let turn = 0; turn < 3; turn++) {{ all.length = 0; \
                 try {{ for (let i = 0; ; i++) all.push((0, eval)({source})); }} catch (error) {{ errors.add(error?.name); }} }} \
                 all.length = 0; return errors.has('InternalError') && !errors.has('SyntaxError') && !errors.has(undefined); }})()"
            );
            assert_eq!(engine.value(&grow), "true", "{mem_mb} MiB: {source}");
        }
    }
}

#[test]
fn numbers_are_as_short_as_possible() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("7.120236347223045e-307"), "7.120236347223045e-307");
    assert_eq!(
        engine.value("7.678447687145631e-239 + ' ' + JSON.stringify([2 ** -1017])"),
        "'7.678447687145631e-239 [7.120236347223045e-307]'"
    );
    let all = "let wrong = 0; for (let e = -1074; e < 1024; e++) { const text = String(2 ** e); \
               if (Number(text) !== 2 ** e || text.replace(/e.*|\\./g, '').replace(/^0+|0+$/g, '').length > 17) wrong++; } wrong";
    assert_eq!(engine.value(all), "0");
}

/// Content of `log` after each way to leave a `for await`, with a `return()` that takes its time, and with one that rejects.
#[test]
fn for_await_waits_until_the_iterator_is_closed() {
    let source = "await (async () => {
        const shown = []; let log = [];
        const closes = end => ({ [Symbol.asyncIterator]: () => ({ next: () => ({ value: 1, done: false }), return: end }) });
        const slow = closes(() => new Promise(done => setTimeout(() => { log.push('closed'); done({}); }, 1)));
        const rejects = closes(() => Promise.reject('rejects')), throws = closes(() => { throw 'throws'; }), wrong = closes(() => 5), none = closes();
        const generator = async function* () { try { for (;;) yield 1; } finally { await null; await null; log.push('closed'); } };
        const show = async call => {
            await call().catch(error => log.push(error.name ?? error));
            shown.push(log.join());
            log = [];
        };
        for (const iterable of [slow, rejects, throws, wrong, none, generator()]) await show(async () => { for await (const one of iterable) throw 'body'; });
        await show(async () => { for await (const [one] of slow); });
        await show(async () => { for await (const one of slow) await Promise.reject('awaited'); });
        await show(async () => { for await (const one of slow) for (const other of [1]) for await (const third of slow) throw 'deep'; });
        await show(async () => { for await (const one of slow) try { throw 'body'; } finally { log.push('finally'); } });
        const outer = async function* () { for await (const one of slow) yield one; };
        const thrown = outer();
        await thrown.next();
        await show(() => thrown.throw('thrown'));
        await show(async () => { for await (const one of slow) break; log.push('behind'); });
        return shown.join(' | ');
    })()";
    let right = "closed,body | body | body | body | body | closed,body | closed,TypeError | closed,awaited | closed,closed,deep | \
                 finally,closed,body | closed,thrown | closed,behind";
    assert_eq!(Engine::new().value(source), format!("'{right}'"));
}

/// As Node 20 says, with the number of promise jobs until the request is settled.
#[test]
fn a_return_during_yield_star_reaches_the_inner_iterator() {
    let source = "await (async () => {
        let log = [];
        const closes = methods => ({ [Symbol.asyncIterator]: () => ({ next: () => ({ value: 1, done: false }), ...methods }) });
        const inner = { generator: (async function* () { try { yield 1; } finally { log.push('closed'); } }),
            returns: () => closes({ return: value => ({ value, done: true }) }), nothing: () => closes({}),
            goes_on: () => closes({ return: value => ({ value, done: false }), throw: error => ({ value: 'caught ' + error, done: true }) }) };
        const requests = { value: one => one.return('v'), promise: one => one.return(Promise.resolve('p')), rejects: one => one.return(Promise.reject('r')) };
        const shown = [];
        for (const [name, iterable] of Object.entries(inner)) for (const [how, request] of Object.entries(requests)) {
            log = [name, how];
            const one = (async function* () { try { yield* iterable(); } finally { log.push('left'); } })();
            await one.next();
            let jobs = 0, settled = false;
            request(one).then(({ value, done }) => log.push(value + (done ? '.' : '')), error => log.push(error.name ?? error)).then(() => { settled = true; });
            for (; !settled; jobs++) await null;
            shown.push(log.join(' ') + ' ' + jobs);
        }
        return shown.join(' | ');
    })()";
    let right = "generator value closed left v. 5 | generator promise closed left p. 5 | generator rejects closed left r 4 | returns value left v. 4 | returns promise left p. 4 | returns rejects left TypeError 4 | nothing value left v. 4 | nothing promise left p. 4 | nothing rejects left TypeError 3 | goes_on value v 4 | goes_on promise p 4 | goes_on rejects left undefined. 4";
    assert_eq!(Engine::new().value(source), format!("'{right}'"));
}

/// Variables that closures of each turn see, in loops that `continue` and in blocks that an exception leaves. As Node 20 says.
#[test]
fn each_turn_of_a_loop_has_its_own_variables() {
    let mut engine = Engine::new();
    for (body, right) in [
        ("for (let i = 0; i < 3; i++) { f.push(() => i); if (i === 1) continue; }", "0,1,2"),
        ("o: for (let i = 0; i < 3; i++) { f.push(() => i); for (;;) continue o; }", "0,1,2"),
        (
            "for (let i = 0; i < 3; i++) { try { f.push(() => i); continue; } finally { f.push(() => i * 10); } }",
            "0,0,1,10,2,20",
        ),
        (
            "for (let i = 0; i < 3; i++) { switch (i) { case 1: f.push(() => i); continue; default: f.push(() => i); } }",
            "0,1,2",
        ),
        (
            "for (let i = 0; i < 3;) { f.push(() => i); i++; if (i == 2) continue; f.push(() => -i); }",
            "1,-1,2,3,-3",
        ),
        ("for (let i = 0; ; i++) { if (i > 2) break; f.push(() => i); if (i == 1) continue; }", "0,1,2"),
        ("for (let i = 0; ;) { if (i > 2) break; f.push(() => i); i++; continue; }", "1,2,3"),
        ("for (let i = 0; i < 3; f.push(() => i), i++) { if (i == 1) continue; }", "1,2,3"),
        ("for (let i = 0; f.push(() => i), i < 3; i++) { if (i == 1) continue; }", "0,1,2,3"),
        ("for (let i = 0, g = f.push(() => i); i < 3; i++) { f.push(() => i); continue; }", "0,0,1,2"),
        (
            "for (let [i, { j }] = [0, { j: 5 }]; i < 3; i++, j--) { f.push(() => i + j * 10); if (j == 4) continue; }",
            "50,41,32",
        ),
        (
            "o: for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++) { f.push(() => i * 10 + j); if (j == 1) continue o; if (i == 1) continue; }",
            "0,1,10,11,20,21",
        ),
        (
            "for (let i = 0; i < 6; i++) { const more = () => i++; f.push(() => i); more(); continue; }",
            "1,3,5",
        ),
        ("for (let i = 0; i < 3; i++) { f.push(eval('() => i')); continue; }", "0,1,2"),
        (
            "const g = function* () { for (let i = 0; i < 3; i++) { f.push(() => i); yield; continue; } }; [...g()];",
            "0,1,2",
        ),
        ("for (let i = 0; i < 3; i++) { try { let x = i; f.push(() => x); throw 1; } catch {} }", "0,1,2"),
        (
            "for (let i = 0; i < 3; i++) { try { for (const x of [i, i + 1]) { f.push(() => x); if (x == i + 1) throw 1; } } catch {} }",
            "0,1,1,2,2,3",
        ),
        (
            "for (let i = 0; i < 3; i++) { try { for (let x = i; ; x++) { f.push(() => x); if (x == i + 1) throw 1; } } catch {} }",
            "0,1,1,2,2,3",
        ),
        (
            "for (let i = 0; i < 3; i++) { try { function x() { return i; } class K { static v = i; } f.push(() => x() + K.v); throw 1; } catch (e) { f.push(() => e); } }",
            "0,1,2,1,4,1",
        ),
        (
            "for (let i = 0; i < 3; i++) { try { try { throw i; } catch (e) { f.push(() => e); throw 1; } } catch {} }",
            "0,1,2",
        ),
        (
            "for (let i = 0; i < 3; i++) { try { throw [i, 1]; } catch ([a]) { f.push(() => a); continue; } }",
            "0,1,2",
        ),
        (
            "for (let i = 0; i < 3; i++) { try { let x = i; f.push(() => x); return; } finally { let z = i; f.push(() => z); continue; } }",
            "0,0,1,1,2,2",
        ),
    ] {
        let source = format!(
            "(() => {{ const f = []; (() => {{ {body} }})(); return f.map(call => call()).join(); }})()"
        );
        assert_eq!(engine.value(&source), format!("'{right}'"), "{body}");
    }
    let awaits = "await (async () => { const f = []; for (let i = 0; i < 3; i++) { f.push(() => i); await null; if (i == 1) continue; } return f.map(call => call()).join(); })()";
    assert_eq!(engine.value(awaits), "'0,1,2'");
}

/// As Node 20 says, but for an argument that changes the date itself: there the order is that of ECMA-262.
#[test]
fn a_date_that_is_set_to_no_number_is_invalid() {
    let mut engine = Engine::new();
    let source = "(() => {
        const wrong = [], parts = ['Date', 'Month', 'FullYear', 'Hours', 'Minutes', 'Seconds', 'Milliseconds'];
        for (const name of [...parts.flatMap(part => ['set' + part, 'setUTC' + part]), 'setTime', 'setYear']) {
            for (const args of [[], [NaN], [undefined], [Infinity], [-Infinity], ['x'], [{}], [1e300]]) {
                for (const time of [0, 1e12, NaN]) {
                    const date = new Date(time);
                    if (!Number.isNaN(date[name](...args)) || !Number.isNaN(date.getTime())) wrong.push(name, args, time);
                }
            }
            for (const args of [[1, NaN], [NaN, 1], [1, undefined]]) {
                const date = new Date(0);
                if (date[name].length > 1 && !Number.isNaN(date[name](...args))) wrong.push(name, args);
            }
            const log = [], set = new Date(NaN), changes = { valueOf() { set.setTime(5); log.push(name); return 7; } };
            set[name](changes);
            if (log.length !== 1) wrong.push(log);
        }
        return wrong.join();
    })()";
    assert_eq!(engine.value(source), "''");
    for (source, right) in [
        ("new Date(NaN).setFullYear(2024)", "1704067200000"),
        ("new Date(NaN).setUTCFullYear(2024, 1, 29)", "1709164800000"),
        ("new Date(NaN).setYear(99)", "915148800000"),
        ("new Date(NaN).setMonth(1)", "NaN"),
        (
            "(() => { const date = new Date(NaN); return [date.setHours({ valueOf() { date.setTime(5); return 7; } }), date.getTime()].join(); })()",
            "'NaN,5'",
        ),
        ("new Date(0).setUTCFullYear(275761, 0, -200)", "8639992137600000"),
        ("new Date(0).setUTCFullYear(-271822, 11, 400)", "-8639977622400000"),
        ("Date.UTC(275760, 13, -400)", "8639977536000000"),
        ("Date.UTC(1e6, -1e7, 1)", "5197324780800000"),
        ("Date.UTC(275760, 8, 13)", "8640000000000000"),
        ("Date.UTC(275760, 8, 13, 0, 0, 0, 1)", "NaN"),
        ("Date.UTC(2e6, -2e7, 1)", "NaN"),
        ("Date.UTC(1970, 0, 1, 1e300)", "NaN"),
    ] {
        assert_eq!(engine.value(source), right, "{source}");
    }
}

/// As Node 20 says.
#[test]
fn dates_are_read_as_in_v8() {
    let mut engine = Engine::new();
    let space = "['\\u202F', '\\u00A0', '\\u2003', ' '].map(space => Date.parse(`1/2/2024, 3:04:05${space}PM`)).every((time, _, all) => time === all[3])";
    assert_eq!(engine.value(space), "true");
    for (text, right) in [
        ("Jan 2, 2024 GMT+1", "2024-01-01T23:00:00.000Z"),
        ("Jan 2, 2024 GMT+0100", "2024-01-01T23:00:00.000Z"),
        ("2024-01-02 UTC+2", "2024-01-01T22:00:00.000Z"),
        ("Jan 2 2024 +0100", "NaN"),
        ("-1 UTC", "2001-01-01T00:00:00.000Z"),
        ("+5 UTC", "2001-05-01T00:00:00.000Z"),
        ("Jan 2 2024 10:20-08", "2024-01-02T18:20:00.000Z"),
        ("Jan 1 2024 12:00+05:30", "2024-01-01T06:30:00.000Z"),
        ("2024-01-02", "2024-01-02T00:00:00.000Z"),
        ("2024-01-02T10:20Z", "2024-01-02T10:20:00.000Z"),
        ("2024-01-02T24:00:00Z", "2024-01-03T00:00:00.000Z"),
        ("2024-01-02T10:20:30.12345+0130", "2024-01-02T08:50:30.123Z"),
        ("-000000-01-01T00:00Z", "NaN"),
        ("+002024-01-02T00:00Z", "2024-01-02T00:00:00.000Z"),
        ("Tue, 02 Jan 2024 10:20:30 GMT", "2024-01-02T10:20:30.000Z"),
        ("Tue Jan 02 2024 10:20:30 GMT+0100 (CET)", "2024-01-02T09:20:30.000Z"),
        ("1/2/24 10:20 pm Z", "2024-01-02T22:20:00.000Z"),
        ("1/2/2024 10:20 CET", "NaN"),
        ("Jan 5 UTC", "2001-01-05T00:00:00.000Z"),
        ("2024-2-30 Z", "2024-03-01T00:00:00.000Z"),
        ("2024-13-01", "NaN"),
        ("foo 2024 UTC", "2024-01-01T00:00:00.000Z"),
        ("2024 foo", "NaN"),
        ("10:20", "NaN"),
    ] {
        let source = format!(
            "const read = new Date({text:?}), time = Date.parse({text:?}); Number.isNaN(time) ? 'NaN' : read.toISOString() + (+read === time ? '' : '!')"
        );
        assert_eq!(engine.value(&source), format!("'{right}'"), "{text}");
    }
}

#[test]
fn stacks_have_the_async_functions_that_wait() {
    let mut engine = Engine::new();
    let source = "async function inner() { await null; throw new Error('x'); }
async function middle() { return await inner(); }
const outer = async () => { await middle(); };
try { await outer(); } catch (error) { error.stack.replaceAll(/ \\(?\\S+:(\\d+):\\d+\\)?/g, ' $1') }";
    let stack = engine.value(source);
    let frames: Vec<&str> =
        stack.lines().skip(1).map(|line| line.trim_matches([' ', '\'', '+', 'n', '\\'])).collect();
    assert_eq!(frames, ["at inner 1", "at async middle 2", "at async outer 3", "at async 4"], "{stack}");
}

/// Frames of the stack that a source shows, with lines and without columns, as Node 20 has them.
#[test]
fn stacks_have_the_async_generators_that_wait() {
    let source = "const frames = error => error.stack.split('\\n').slice(1).map(frame => frame.replace(/^ +at /, '').replace(/\\(?(?:[^ ]+):(\\d+):\\d+\\)?$/, '$1')).join(', ');
async function deep() { await null; throw new Error('x'); }
async function* inner() { await null; await deep(); yield 1; }
async function* delegates() { yield* inner(); }
async function* outer() { for await (const one of delegates()) yield one; }
const loops = async () => { for await (const one of outer()); };
async function once() { await inner().next(); }
async function* later() { yield 1; await null; throw new Error('y'); }
async function resumed() { for await (const one of later()); }
async function* closed() { try { yield 1; } finally { await null; throw new Error('z'); } }
async function leaves() { for await (const one of closed()) return one; }
async function queued() { const one = later(); await Promise.allSettled([one.next()]); one.next().catch(() => {}); await one.next(); }
class Iterable { async *[Symbol.asyncIterator]() { await null; throw new Error('k'); } }
async function iterates() { for await (const one of new Iterable()); }
async function* alone() { await null; throw new Error('a'); }
const shown = [];
for (const call of [loops, once, resumed, leaves, iterates]) try { await call(); } catch (error) { shown.push(frames(error)); }
await alone().next().catch(error => shown.push(frames(error)));
await queued(); shown.join('; ')";
    let top = "async 17";
    let right = [
        format!("deep 2, async inner 3, async delegates 4, async outer 5, async loops 6, {top}"),
        format!("deep 2, async inner 3, async once 7, {top}"),
        format!("later 8, async resumed 9, {top}"),
        format!("closed 10, async leaves 11, {top}"),
        format!("[Symbol.asyncIterator] 13, async iterates 14, {top}"),
        "alone 15".to_owned(),
    ];
    assert_eq!(Engine::new().value(source), format!("'{}'", right.join("; ")));
}

#[test]
fn halves_of_surrogate_pairs_are_no_surprise_to_intl() {
    let mut engine = Engine::new();
    assert_eq!(
        engine.value("new Intl.ListFormat('en').format(['\\uD800', 'a']) === '\\uD800 and a'"),
        "true"
    );
    assert_eq!(engine.value("'a\\uDC00i'.toLocaleUpperCase('tr') === 'A\\uDC00\\u0130'"), "true");
    for source in [
        "new Intl.Locale('\\uD800')",
        "new Intl.NumberFormat('en', { style: 'currency', currency: '\\uD800' })",
        "new Intl.DateTimeFormat('en', { timeZone: '\\uD800' })",
    ] {
        assert_eq!(
            engine.value(&format!("try {{ {source} }} catch (error) {{ error.name }}")),
            "'RangeError'",
            "{source}"
        );
    }
    assert_eq!(
        engine.value("try { new TextDecoder('\\uD800') } catch (error) { error.name }"),
        "'RangeError'"
    );
}

#[test]
fn options_of_a_task_that_are_no_finite_numbers_are_refused() {
    let mut engine = Engine::new();
    for number in ["NaN", "Infinity", "-Infinity"] {
        let source = format!(
            "try {{ CC('?', {{ timeout_ms: {number} }}) }} catch (error) {{ `${{error.name}}: ${{error.message}}` }}"
        );
        assert_eq!(
            engine.value(&source),
            format!("'RangeError: The option timeout_ms of CC must be a finite number, not {number}'")
        );
    }
}
