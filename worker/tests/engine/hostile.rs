//! Scripts that try to run code, or to cause unbounded work, while the engine inspects their values.

use crate::harness::{Engine, value_of};
use vm_system_protocol::limits::EVENT_TEXT_BYTES;
use vm_system_protocol::model::{EventPayload, ExecutionKind};
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::{Done, Outcome, SourceFormat};

/// Values with hooks that count their calls.
const TRAPS: &str = "
var calls = 0;
const count = () => { calls++; throw new Error('trap'); };
const traps = new Proxy({}, { get: () => count });
var hostile = [
  new Proxy({ a: 1 }, traps),
  new Proxy([1, 2], traps),
  new Proxy(function () {}, traps),
  new Proxy(new Proxy({}, traps), traps),
  { get a() { return count() }, set a(v) { count() } },
  { toString: count, valueOf: count, toJSON: count, [Symbol.toPrimitive]: count, then: undefined },
  { get [Symbol.toStringTag]() { return count() } },
  { get constructor() { return count() } },
  Object.create(new Proxy({}, traps)),
  Object.setPrototypeOf(() => {}, new Proxy(Function.prototype, traps)),
  Object.defineProperty(function () {}, 'name', { get: count }),
  Object.defineProperty(class {}, 'name', { get: count }),
  Object.defineProperties(new Error('e'), { message: { get: count }, name: { get: count }, stack: { get: count } }),
  Object.defineProperty(new Error('e'), 'cause', { get: count }),
  Object.assign(new Date(5), { toISOString: count, getTime: count }),
  Object.assign(/x/, { toString: count }), Object.defineProperty(/y/, 'flags', { get: count }),
  Object.assign(new Map([[1, 2]]), { entries: count, [Symbol.iterator]: count, forEach: count }),
  Object.assign(new Set([1]), { values: count, [Symbol.iterator]: count }),
  Object.defineProperty([1, 2], 1, { get: count }),
  Object.defineProperty([1, 2], Symbol.iterator, { value: count }),
  Object.assign(Object(5), { valueOf: count, toString: count }),
  Object.assign(Object('text'), { toString: count }),
  Object.assign(Promise.resolve(1), { then: count }),
  Object.assign(new Uint8Array(2), { toString: count }),
  { get [Symbol.for('nodejs.util.inspect.custom')]() { return count() }, inspect: count },
  Object.create(new Proxy({ [Symbol.for('nodejs.util.inspect.custom')]: count }, traps)),
  new (class { static [Symbol.hasInstance]() { return count() } })(),
  Object.create({ constructor: Object.defineProperty(function () {}, 'prototype', { value: new Proxy({}, traps) }) }),
];";

#[test]
fn inspecting_hostile_values_runs_none_of_their_code() {
    let mut engine = Engine::new();
    engine.value(TRAPS);
    let count: usize = engine.value("hostile.length").parse().expect("a number");
    for index in 0..count {
        for wrap in [
            "hostile[#]",
            "[hostile[#]]",
            "({ x: hostile[#] })",
            "console.log(hostile[#], '%s', hostile[#])",
            "console.log('%s %d %j %o', hostile[#], hostile[#], hostile[#], hostile[#])",
            "console.table([hostile[#]])",
        ] {
            let source = wrap.replace('#', &index.to_string());
            let done = engine.repl(&source);
            assert_eq!(done.outcome, Outcome::Ok, "{source}: {:?}", done.events);
            assert_eq!(engine.value("calls"), "0", "{source}: {:?}", done.events);
        }
    }
}

/// Only `console` calls a value's own method, and only for its arguments, outside of formats.
#[test]
fn a_method_for_inspection_is_called_for_arguments_of_the_console_alone() {
    let mut engine = Engine::new();
    engine.value(
        "globalThis.calls = 0; class Custom { [Symbol.for('nodejs.util.inspect.custom')]() { calls++; return '50% custom' } }; \
         globalThis.custom = new Custom(); 0",
    );
    for silent in
        ["custom", "[custom]", "console.log([custom])", "console.log('%o', custom)", "console.dir(custom)"]
    {
        let done = engine.repl(silent);
        assert_eq!(done.outcome, Outcome::Ok, "{silent}: {:?}", done.events);
        assert_eq!(engine.value("calls"), "0", "{silent}: {:?}", done.events);
    }
    for (code, expected) in [
        ("console.log(custom, 1, 'x')", "50% custom 1 x"),
        ("console.log('a', custom)", "a 50% custom"),
        ("console.error(Object.create(custom), '%s')", "50% custom %s"),
    ] {
        assert_eq!(engine.logs(code), [expected], "{code}");
    }
    let (message, _) = engine.exception(
        "console.log({ [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('of the method') } })",
    );
    assert!(message.contains("of the method"), "{message}");
}

#[test]
fn throwing_hostile_values_runs_none_of_their_code() {
    let mut engine = Engine::new();
    engine.value(TRAPS);
    let count: usize = engine.value("hostile.length").parse().expect("a number");
    for index in 0..count {
        let done = engine.repl(&format!("throw hostile[{index}]"));
        assert!(matches!(done.outcome, Outcome::Exception { .. }), "{index}: {:?}", done.outcome);
        assert_eq!(engine.value("calls"), "0", "{index}");
    }
}

#[test]
fn replaced_builtins_do_not_affect_the_console() {
    let mut engine = Engine::new();
    engine.value(
        "var seen = 0; const evil = function () { seen++; throw new Error('evil') };
         const { ownKeys, defineProperty } = Reflect;
         const targets = [Array.prototype, Object.prototype, Map.prototype, Set.prototype, String.prototype,
             Function.prototype, Date.prototype, RegExp.prototype, Symbol.prototype, Promise.prototype, Error.prototype,
             Number.prototype, Uint8Array.prototype, Object.getPrototypeOf(Uint8Array.prototype),
             Object.getPrototypeOf(new Map().entries()), Object.getPrototypeOf(new Set().values())];
         for (let t = 0; t < targets.length; t++) {
           const keys = ownKeys(targets[t]);
           for (let k = 0; k < keys.length; k++) {
             if (keys[k] === 'constructor' || keys[k] === 'length') continue;
             defineProperty(targets[t], keys[k], { __proto__: null, value: evil, configurable: true, writable: true });
           }
         }
         const trap = { __proto__: null, get: evil, set: evil, configurable: true };
         defineProperty(Object.prototype, 'done', trap);
         defineProperty(Object.prototype, 'value', trap);
         defineProperty(Array.prototype, '0', trap);
         0",
    );
    let done = engine.repl(
        "console.log('%s', { a: 1 }, [1, , 3], new Map(), /x/g, new Date(0), Symbol('s'), 1n, new Error('e'), class A {}, () => {}, new Uint8Array(2))",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    let console = engine.console();
    assert!(
        console[0].starts_with(
            "{ a: 1 } [ 1, <1 empty item>, 3 ] Map(0) {} /x/g 1970-01-01T00:00:00.000Z Symbol(s) 1n Error: e"
        ),
        "{console:?}"
    );
    assert_eq!(engine.value("seen"), "0");
}

#[test]
fn work_for_huge_values_is_bounded_by_their_text() {
    let mut engine = Engine::new();
    for source in [
        "'x'.repeat(50_000_000)",
        "Array.from({ length: 1000 }, () => 'y'.repeat(5000))",
        "const wide = {}; for (let i = 0; i < 200000; i++) wide['key' + i] = i; wide",
        "new Array(4294967295)",
        "const far = []; far[4294967290] = 1; far",
        "new Uint8Array(50_000_000)",
        "new Map(Array.from({ length: 10000 }, (_, i) => [i, 'z'.repeat(1000)]))",
        "let nest = {}; const root = nest; for (let i = 0; i < 100000; i++) nest = nest.n = {}; root",
        "let chain = {}; for (let i = 0; i < 5000; i++) chain = Object.create(chain); chain",
        "let p = {}; for (let i = 0; i < 5000; i++) p = new Proxy(p, {}); p",
        "Symbol('s'.repeat(1_000_000))",
        "Object.defineProperty(() => {}, 'name', { value: 'n'.repeat(1_000_000) })",
        "let c = new Error('0'); for (let i = 0; i < 1000; i++) c = new Error('e' + i, { cause: c }); c",
    ] {
        let mut limits = engine.policy.limits.clone();
        limits.max_output_kb = 4_096;
        engine.policy.limits = limits;
        let done = engine.repl(source);
        let (_, preview, _) =
            value_of(&done).unwrap_or_else(|| panic!("{source}: {:?} {:?}", done.outcome, done.events));
        assert!(preview.len() <= EVENT_TEXT_BYTES, "{source}: {}", preview.len());
    }
}

#[test]
fn a_long_text_is_printed_whole_in_several_events() {
    let mut engine = Engine::new();
    engine.policy.limits.max_output_kb = 16_384;
    // A surrogate pair and a character of two bytes are at every possible boundary.
    for unit in ["é", "a\u{1F600}", "\u{1F600}"] {
        engine.logs(&format!(
            "const t = '{unit}'.repeat(400_000); console.log(t, t); console.log('b'); process.stdout.write(t); process.stdout.write('\\n')"
        ));
        let whole = unit.repeat(400_000);
        let mut lines = vec![String::new()];
        for event in &engine.memory.events {
            let EventPayload::Console { text, more, .. } = event else { panic!("{event:?}") };
            assert!(text.len() <= EVENT_TEXT_BYTES);
            lines.last_mut().expect("a line").push_str(text);
            if !more {
                lines.push(String::new());
            }
        }
        assert!(lines == [format!("{whole} {whole}"), "b".to_owned(), whole, String::new()], "{unit}");
    }
    engine.policy.limits.max_output_kb = 600;
    let done = engine.repl("console.log('x'.repeat(1_000_000))");
    assert_eq!(done.outcome, Outcome::Limit(LimitKind::Output));
    assert_eq!(engine.console().concat().len(), 2 * EVENT_TEXT_BYTES, "the pieces within the limit");
    engine.policy.limits.max_output_kb = 4_096;
    engine.logs("console.log(Array(100).fill('x'.repeat(9_000)))");
    assert!(engine.console()[0].ends_with("... [cut: too long]"), "an inspected value is cut and marked");
}

#[test]
fn an_error_that_is_cut_says_how_long_its_message_is() {
    let mut engine = Engine::new();
    let done = engine.repl("throw new RangeError('\u{e4}'.repeat(600_000))");
    let Outcome::Exception { message } = &done.outcome else { panic!("{:?}", done.outcome) };
    assert!(message.starts_with("RangeError: \u{e4}\u{e4}"), "{}", &message[..40]);
    assert!(message.ends_with("... [truncated: the message has 600000 characters]"), "{}", message.len());
    assert!(message.len() <= EVENT_TEXT_BYTES);
    let size = |done: &Done| match done.events.last().map(|event| &event.payload) {
        Some(EventPayload::Exception { truncated, full_bytes, .. }) => (*truncated, *full_bytes),
        other => panic!("{other:?}"),
    };
    assert_eq!(size(&done), (true, Some(1_200_012)), "with its name");
    let done = engine.repl("const e = new Error('a'); e.stack = 'Error: a' + 'y'.repeat(300_000); throw e");
    assert_eq!(size(&done), (true, Some(8)), "only the stack is cut");
    assert_eq!(size(&engine.repl("throw 'x'.repeat(300_000)")), (true, Some(300_000)));
    assert_eq!(size(&engine.repl("throw Array(99).fill('x'.repeat(9_000))")), (true, None));
    let done = engine.repl("throw new RangeError('short')");
    assert_eq!(size(&done), (false, None));
    assert_eq!(done.outcome, Outcome::Exception { message: "RangeError: short".to_owned() });
}

#[test]
fn a_value_that_is_cut_says_so_with_its_size() {
    let mut engine = Engine::new();
    let mut value = |kb, source: &str| {
        engine.policy.limits.max_output_kb = kb;
        let done = engine.repl(source);
        match done.events.last().map(|event| &event.payload) {
            Some(EventPayload::Value(value)) => value.clone(),
            _ => panic!("{source}: {:?}", done.outcome),
        }
    };
    let whole = value(512, "'x'.repeat(200_000)");
    assert!(!whole.truncated && whole.full_bytes.is_none() && whole.json.is_some());
    let cut = value(512, "'x'.repeat(600_000)");
    assert_eq!((cut.truncated, cut.full_bytes, cut.json), (true, Some(600_002), None));
    let kept = value(8_192, "'é'.repeat(2_000_000)");
    assert_eq!((kept.truncated, kept.full_bytes), (false, None));
    assert_eq!(kept.json.map(|json| json.as_str().len()), Some(4_000_002));
    let too_long = value(8_192, "'é'.repeat(3_000_000)");
    assert_eq!((too_long.truncated, too_long.full_bytes, too_long.json), (true, Some(6_000_002), None));
    let numbers = value(8_192, "Array(1_000_000).fill(10)");
    assert_eq!((numbers.truncated, numbers.json.map(|json| json.as_str().len())), (false, Some(3_000_001)));
    let shared = value(512, "let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a");
    assert_eq!((shared.truncated, shared.full_bytes, shared.json), (true, None, None), "too many to count");
    let preview = value(8_192, "Array(100).fill('x'.repeat(9_000))");
    assert_eq!((preview.truncated, preview.full_bytes), (true, Some(900_301)), "only the preview is cut");
    assert!(preview.json.is_some());
    let map = value(512, "new Map([[1, 2]])");
    assert!(!map.truncated && map.json.is_none());
}

#[test]
fn a_revoked_proxy_is_named() {
    let mut engine = Engine::new();
    assert_eq!(
        engine.value("const r = Proxy.revocable({}, {}); r.revoke(); [r.proxy]"),
        "[ <Revoked Proxy> ]"
    );
}

#[test]
fn sources_with_odd_characters_run_or_are_refused() {
    let mut engine = Engine::new();
    for source in
        ["'a\0b'", "\u{feff}1", "#!/bin/sh\n1", "'\u{2028}'", "/* \0 */ 1", "\\u0061", "let \\u{62} = 1"]
    {
        let done = engine.repl(source);
        assert!(!done.events.is_empty(), "{source:?}: {:?}", done.outcome);
    }
    assert_eq!(engine.value("1"), "1");
}

#[test]
fn texts_that_are_deep_or_long_do_not_overflow_the_parser() {
    let mut engine = Engine::new();
    let brackets = format!("let a = {}1{}; a", "(".repeat(50_000), ")".repeat(50_000));
    let arrays = format!("let b = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    let sum = format!("let c = 1{}; c", " + 1".repeat(20_000));
    let not = format!("let d = {}1", "!".repeat(50_000));
    let ifs = format!("let e; {} 1", "if (1)".repeat(20_000));
    let arrows = format!("let f = {} 1", "x =>".repeat(20_000));
    let members = format!("let g = {{}}; g{}", "?.x".repeat(20_000));
    let ternary = format!("let h = {} 1", "0 ? 0 :".repeat(20_000));
    for source in [brackets, arrays, sum, not, ifs, arrows, members, ternary] {
        let done = engine.repl(&source);
        assert!(!done.events.is_empty(), "{}", &source[..20]);
        let done = engine.run(ExecutionKind::RunFile, "a.ts", SourceFormat::TypeScript, &source);
        assert!(!matches!(done.outcome, Outcome::Limit(_)), "{}", &source[..20]);
        assert_eq!(engine.value("1"), "1");
    }
}

#[test]
fn an_uninitialised_module_binding_is_shown_as_such() {
    let mut engine = Engine::new()
        .file("a.mjs", "")
        .file("b.mjs", "import * as a from './a.mjs'; console.log(a); export const b = 1;");
    let done = engine.module("a.mjs", "import './b.mjs'; export const a = 2;");
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert!(matches!(engine.memory.events.first(), Some(EventPayload::Console { .. })));
}
