//! Declarations that persist, completion values, top-level await, as in Node's repl.

use crate::harness::{Engine, exception_of};
use vm_system_protocol::worker::Outcome;

#[test]
fn variables_functions_and_lexical_declarations_persist() {
    let mut engine = Engine::new();
    engine.value(
        "var a = 1; let b = 2; const c = 3; function d() { return a + b + c }; class E { static f = 9 }",
    );
    assert_eq!(engine.value("[a, b, c, d(), E.f]"), "[ 1, 2, 3, 6, 9 ]");
    assert_eq!(engine.value("b = 20; a = 10; d()"), "33");
}

#[test]
fn a_later_input_may_redeclare_any_name() {
    let mut engine = Engine::new();
    for (source, shown) in [
        ("let x = 1", "undefined"),
        ("let x = 2; x", "2"),
        ("const x = 3; x", "3"),
        ("class x {}; typeof x", "'function'"),
        ("var x = 4; x", "4"),
        ("let x; x", "undefined"),
        ("function x() { return 5 }; x()", "5"),
        ("const x = 6; x", "6"),
        ("let x = 7; x = 8; x", "8"),
    ] {
        assert_eq!(engine.value(source), shown, "{source}");
    }
}

#[test]
fn constants_cannot_be_assigned_in_the_same_or_a_later_input() {
    let mut engine = Engine::new();
    let (message, _) = engine.exception("const k = 1; k = 2");
    assert_eq!(message, "TypeError: Assignment to constant variable.");
    for source in [
        "k = 2",
        "k++",
        "k += 1",
        "[k] = [2]",
        "({ k } = { k: 2 })",
        "for (k of [1]);",
        "() => { k = 1 }; (() => { k = 3 })()",
    ] {
        assert_eq!(engine.exception(source).0, "TypeError: Assignment to constant variable.", "{source}");
    }
    assert_eq!(engine.value("k"), "1");
    assert_eq!(engine.value("{ let k = 5; k = 6; k }"), "6");
    assert_eq!(engine.value("((k) => { k = 9; return k })(1)"), "9");
    assert_eq!(engine.value("let k = 5; k = 6; k"), "6");
}

#[test]
fn a_name_cannot_be_used_before_its_declaration_is_reached() {
    let mut engine = Engine::new();
    assert_eq!(
        engine.exception("early; let early = 1").0,
        "ReferenceError: Cannot access 'early' before initialization"
    );
    assert_eq!(engine.exception("let half = (() => { throw new Error('no') })()").0, "Error: no");
    assert_eq!(engine.exception("half").0, "ReferenceError: Cannot access 'half' before initialization");
    assert_eq!(engine.value("let half = 2; half"), "2");
    assert_eq!(
        engine.exception("typeof nothing === 'undefined' && nothing").0,
        "ReferenceError: nothing is not defined"
    );
}

#[test]
fn declaring_a_name_twice_in_one_input_is_a_syntax_error() {
    let mut engine = Engine::new();
    for source in ["let a = 1; let a = 2", "const b = 1; var b", "class C {}; let C"] {
        let done = engine.repl(source);
        assert!(matches!(done.outcome, Outcome::SyntaxError { .. }), "{source}: {:?}", done.outcome);
    }
}

/// Allowed in scripts, and not in modules, which only what awaits at its top level is.
#[test]
fn functions_that_await_make_no_module_of_their_script() {
    let mut engine = Engine::new();
    let code = "var twice = 1; function twice() {} async function f() { await 1 } typeof twice";
    assert_eq!(engine.value(code), "'number'");
    assert_eq!(
        engine.value("const g = async () => await import('node:path'); delete globalThis.f; 010"),
        "8"
    );
    assert_eq!(engine.value("await 2"), "2");
}

#[test]
fn the_value_is_the_completion_value_of_the_input() {
    let mut engine = Engine::new();
    for (source, shown) in [
        ("1 + 2", "3"),
        ("1; let z = 5", "1"),
        ("let z = 5", "undefined"),
        ("if (true) { 'yes' } else { 'no' }", "'yes'"),
        ("for (let i = 0; i < 3; i++) i * 2", "4"),
        ("try { 7 } finally { 8 }", "7"),
        ("{ a: 1 }", "{ a: 1 }"),
        ("{ a: 1, b: { c: 2 } }", "{ a: 1, b: { c: 2 } }"),
        ("{}", "{}"),
        ("{ let q = 3; q }", "3"),
        ("{ a: 1 };", "1"),
        ("function f() {}", "undefined"),
        ("(class Named {})", "[class Named]"),
        ("", "undefined"),
        ("// nothing", "undefined"),
        ("'use strict'; (function () { return this })()", "undefined"),
    ] {
        assert_eq!(engine.value(source), shown, "{source}");
    }
}

#[test]
fn top_level_await_works_and_its_declarations_persist() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("await 5"), "5");
    assert_eq!(engine.value("const got = await Promise.resolve({ n: 1 }); got"), "{ n: 1 }");
    assert_eq!(engine.value("got.n + await Promise.resolve(2)"), "3");
    assert_eq!(
        engine.value("let { a, ...rest } = await (async () => ({ a: 1, b: 2, c: 3 }))(); [a, rest]"),
        "[ 1, { b: 2, c: 3 } ]"
    );
    assert_eq!(
        engine.value("let sum = 0; for await (const n of [1, Promise.resolve(2)]) sum += n; sum"),
        "3"
    );
    assert_eq!(engine.value("class Late { v = 1 }; await 0; new Late().v"), "1");
    assert_eq!(engine.exception("await Promise.reject(new Error('refused'))").0, "Error: refused");
    assert_eq!(engine.value("async function later() { return await 4 }; await later()"), "4");
    assert_eq!(engine.value("({ await: 1 }).await"), "1");
}

#[test]
fn promises_are_shown_as_they_are_when_the_queue_is_empty() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("Promise.resolve(4)"), "Promise { 4 }");
    assert_eq!(engine.value("new Promise(() => {})"), "Promise { <pending> }");
    assert_eq!(engine.value("(async () => { await null; return 1 })()"), "Promise { 1 }");
}

#[test]
fn an_await_that_nothing_can_settle_is_an_error_and_not_a_hang() {
    let mut engine = Engine::new();
    let (message, _) = engine.exception("await new Promise(() => {})");
    assert!(message.contains("never settled"), "{message}");
    assert_eq!(engine.value("1"), "1");
}

#[test]
fn syntax_errors_name_file_line_and_column() {
    let mut engine = Engine::new();
    let done = engine.repl("let a = 1;\nlet b = ;");
    let Outcome::SyntaxError { message } = &done.outcome else { panic!("{:?}", done.outcome) };
    assert!(message.starts_with("SyntaxError: "), "{message}");
    let (_, stack) = exception_of(&done).expect("an event");
    assert!(stack.contains("repl:2:9"), "{stack}");
    let done = engine.repl("throw new SyntaxError('mine')");
    assert!(matches!(done.outcome, Outcome::Exception { .. }), "{:?}", done.outcome);
    let done = engine.repl("eval('(')");
    assert!(matches!(done.outcome, Outcome::Exception { .. }), "{:?}", done.outcome);
}

#[test]
fn strict_mode_is_a_setting() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("undeclared = 5; undeclared"), "5");
    engine.policy.strict = true;
    assert_eq!(engine.exception("undeclared_too = 5").0, "ReferenceError: undeclared_too is not defined");
}

#[test]
fn destructuring_defaults_and_several_declarators_persist() {
    let mut engine = Engine::new();
    engine.value("let [p, q = 2, ...r] = [1, , 3, 4], { s: { t } } = { s: { t: 5 } }, u");
    assert_eq!(engine.value("[p, q, r, t, u]"), "[ 1, 2, [ 3, 4 ], 5, undefined ]");
}

#[test]
fn a_class_sees_itself_during_its_definition_and_after_its_name_was_reassigned() {
    let mut engine = Engine::new();
    assert_eq!(
        engine.value("class Self { static made = new Self(); make() { return new Self() } }; Self.made"),
        "Self {}"
    );
    assert_eq!(
        {
            engine.value("const kept = Self");
            engine.value("let Self = null; kept.made.make()")
        },
        "Self {}"
    );
    assert_eq!(engine.value("class Next {}\n[1, 2].length"), "2");
}

#[test]
fn using_at_the_top_level_is_refused_by_name_and_works_below_it() {
    let mut engine = Engine::new();
    for source in
        ["using r = null", "let a = 1; using r = null", "await using r = null", "await 1; using r = null"]
    {
        let (message, _) = engine.exception(source);
        let expected =
            "SyntaxError: `using` is not allowed at the top level of a script: put it into a block";
        assert!(message.starts_with(expected), "{source}: {message}");
    }
    engine.value("var over = 0; { using r = { [Symbol.dispose]() { over = 1 } }; }");
    assert_eq!(engine.value("over"), "1");
    assert_eq!(engine.value("const using = 2; using + 1"), "3");
}

#[test]
fn calls_of_fs_that_there_are_not_are_refused_by_name() {
    let mut engine = Engine::new();
    let (message, _) = engine.exception("require('fs').symlinkSync('a', 'b')");
    assert!(message.contains("fs.symlinkSync is not available in sessions"), "{message}");
    let (message, _) = engine.exception("await require('fs/promises').readlink('a')");
    assert!(message.contains("fs.promises.readlink is not available in sessions"), "{message}");
}
