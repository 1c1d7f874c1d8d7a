//! Messages of errors that the engine throws, against Node's, from a committed corpus.

use crate::harness::{Engine, exception_of};

/// Scripts between lines of `=====`: the script, a line of `-----`, what Node shows.
const CASES: &str = include_str!("messages.txt");

/// Scripts with other messages.
const DIFFERENT: [(&str, &str); 0] = [];

/// The lines that a script's console wrote and, at its end, the message of its exception.
fn shown(engine: &mut Engine, script: &str) -> String {
    let before = engine.console().len();
    let done = engine.script("case.js", script);
    let mut lines = engine.console()[before..].to_vec();
    lines.extend(exception_of(&done).map(|(message, _)| message));
    lines.join("\n")
}

#[test]
fn messages_are_those_of_node() {
    let mut wrong = Vec::new();
    for case in CASES.split("\n=====\n").filter(|case| !case.trim().is_empty()) {
        let (script, node) = case.split_once("\n-----\n").expect("a script and its message");
        let other = DIFFERENT.iter().find(|(different, _)| *different == script);
        let expected = other.map_or(node, |(_, ours)| ours);
        let written = shown(&mut Engine::new(), script);
        if written != expected {
            wrong.push(format!("{script}\n--- expected\n{expected}\n--- ours\n{written}\n"));
        }
    }
    assert!(wrong.is_empty(), "{} messages differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn code_that_catches_an_error_reads_the_same_message() {
    let mut engine = Engine::new();
    let logs = engine.logs(
        "const o = {}; try { o.foo(1); } catch (e) { console.log(e.message, '|', e.stack.split('\\n')[0], '|', Object.keys(e)); } \
         Promise.resolve().then(() => o.bar()).catch((e) => console.log(String(e)));",
    );
    assert_eq!(logs[0], "o.foo is not a function | TypeError: o.foo is not a function | []");
    assert_eq!(logs[1], "TypeError: o.bar is not a function");
}

#[test]
fn a_call_with_the_position_of_another_one_is_not_named() {
    for script in [
        // Both have the position of `x`.
        "((f, g, x) => f(g(x)))(1, (x) => x, 1)",
        "((f, g, x) => f(g(x)))((x) => x, 1, 1)",
        "((f) => f(1)(2))((x) => x)",
        // The call of the missing method `next` has the position of the last call in the loop's body.
        "(() => { const it = { [Symbol.iterator]() { return {}; } }, f = [].map; for (const x of it) f(x); })()",
        // The name has two values.
        "(() => { let f = (x) => x, g = 1; f = g; f(g(1)); })()",
        "((g) => { f(g(1)); var f = (x) => x; })((x) => x)",
    ] {
        assert_eq!(shown(&mut Engine::new(), script), "TypeError: not a function", "{script}");
    }
}

#[test]
fn inputs_of_one_name_and_functions_of_earlier_ones_are_distinguished() {
    let mut engine = Engine::new();
    engine.repl("function first(o) { return o.alpha(o); }");
    engine.repl("function other(o) { return o.beta(o); }");
    assert_eq!(engine.exception("first({})").0, "TypeError: o.alpha is not a function");
    assert_eq!(engine.exception("other({})").0, "TypeError: o.beta is not a function");
    assert_eq!(engine.exception("console.log(first.gamma(1))").0, "TypeError: first.gamma is not a function");
    // Declared by an earlier input: a function now.
    assert_eq!(engine.exception("other(first.delta(1))").0, "TypeError: first.delta is not a function");
    // The text of the newest input is not kept.
    let long = format!("function long(o) {{ return o.eta(o); }} // {}", "x".repeat(300_000));
    engine.repl(&long);
    let top = format!("first.no(1); other // {}", "x".repeat(300_000));
    assert_eq!(engine.exception("first.no(1); other").0, "TypeError: first.no is not a function");
    assert_eq!(engine.exception(&top.replace("first.no", "other.no")).0, "TypeError: not a function");
    assert_eq!(engine.exception("long({})").0, "TypeError: not a function");
    assert_eq!(engine.exception("first({})").0, "TypeError: o.alpha is not a function");
    engine.repl("first = 1");
    assert_eq!(engine.exception("first(Math.max(1))").0, "TypeError: first is not a function");
}

#[test]
fn files_of_every_kind_name_what_failed() {
    let mut engine = Engine::new()
        .file("a.js", "exports.run = (o) => { return o.common(o); };")
        .file("b.mjs", "export function run(o) { return o.module(o); }\nexport const early = (o) => o;")
        .file("c.ts", "export const run = (o: any): number => { const x: number = 1; return o.typed<string>(x as any); };");
    let name = |engine: &mut Engine, script: &str| {
        let done = engine.module("main.mjs", script);
        exception_of(&done).expect("an exception").0
    };
    assert_eq!(
        name(&mut engine, "import a from './a.js'; a.run({})"),
        "TypeError: o.common is not a function"
    );
    assert_eq!(
        name(&mut engine, "import { run } from './b.mjs'; run({})"),
        "TypeError: o.module is not a function"
    );
    assert_eq!(
        name(&mut engine, "import { run } from './c.ts'; run({})"),
        "TypeError: o.typed is not a function"
    );
    assert_eq!(name(&mut engine, "const o = {};\nawait 1;\no.top()"), "TypeError: o.top is not a function");
}

#[test]
fn texts_that_are_not_kept_have_the_engines_messages() {
    let long = format!("(() => {{ const o = {{}}; o.foo(1); }})() // {}", "x".repeat(300_000));
    assert_eq!(shown(&mut Engine::new(), &long), "TypeError: not a function");
    assert_eq!(shown(&mut Engine::new(), "eval('var o = {}; o.foo(1)')"), "TypeError: not a function");
    assert_eq!(shown(&mut Engine::new(), "new Function('o', 'o.foo(1)')({})"), "TypeError: not a function");
    // Columns behind other characters are not counted as ours are.
    assert_eq!(shown(&mut Engine::new(), "var o = {}; 'ü'; o.foo(1)"), "TypeError: not a function");
    let deep = format!("{}1{}; var o = {{}}; o.foo(1)", "[".repeat(300), "]".repeat(300));
    assert_eq!(shown(&mut Engine::new(), &deep), "TypeError: not a function");
}

#[test]
fn a_script_that_prepares_stacks_itself_sees_the_engines_message() {
    let script = "Error.prepareStackTrace = (e) => e.message; var o = {}; try { o.foo(1); } catch (e) { console.log(e.stack); }";
    assert_eq!(shown(&mut Engine::new(), script), "not a function");
}
