//! What the patches of QuickJS mend (`quickjs/patches`): each of these has another result with the released engine.

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

#[test]
fn every_white_space_separates_the_parts_of_a_date() {
    let source = "['\\u202F', '\\u00A0', '\\u2003', ' '].map(space => Date.parse(`1/2/2024, 3:04:05${space}PM`)).every((time, _, all) => time === all[3])";
    assert_eq!(Engine::new().value(source), "true");
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
