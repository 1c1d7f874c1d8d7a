//! The web platform against Node, from a committed corpus of scripts and what they write.

use crate::harness::Engine;

/// Cases between lines of `=====`: the script, a line of `-----`, what Node's console wrote.
const CORPUS: &str = include_str!("platform.txt");

#[test]
fn output_is_what_node_writes() {
    let mut wrong = Vec::new();
    for case in CORPUS.trim_end().split("\n=====\n") {
        let (script, expected) = case.split_once("\n-----\n").expect("a script and its output");
        let mut engine = Engine::new();
        let done = engine.script("case.js", script);
        let written = engine.console().join("\n");
        if written != expected {
            wrong.push(format!(
                "{script}\n--- node\n{expected}\n--- ours {:?} {:?}\n{written}\n",
                done.outcome, done.events
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n======\n"));
}

#[test]
fn a_disabled_global_is_not_evaluated_and_comes_back() {
    let mut engine = Engine::new();
    engine.policy.disabled_globals = vec!["URL".to_owned(), "crypto".to_owned()];
    assert_eq!(
        engine.value("[typeof URL, typeof crypto, typeof URLSearchParams]"),
        "[ 'undefined', 'undefined', 'function' ]"
    );
    engine.policy.disabled_globals.clear();
    // Still an accessor: reading it evaluates it.
    assert_eq!(
        engine.value("typeof Object.getOwnPropertyDescriptor(globalThis, 'crypto').get"),
        "'function'"
    );
    assert_eq!(engine.value("new URL('http://a/b').pathname + typeof crypto.randomUUID()"), "'/bstring'");
}

#[test]
fn a_global_can_be_declared_and_assigned_by_a_script() {
    let mut engine = Engine::new();
    assert_eq!(engine.value("class URL { x = 1 }; new URL().x"), "1");
    assert_eq!(engine.value("Headers = 5; Headers"), "5");
    assert_eq!(engine.value("const crypto = 7; crypto"), "7");
    assert_eq!(engine.value("typeof new URLSearchParams('a=1').get"), "'function'");
}

#[test]
fn parts_do_not_use_what_a_script_replaced() {
    let mut engine = Engine::new();
    engine.repl(
        "globalThis.Map = globalThis.Promise = globalThis.Uint8Array = globalThis.TypeError = undefined",
    );
    assert_eq!(engine.value("new EventTarget().dispatchEvent(new Event('x'))"), "true");
    assert_eq!(engine.value("try { new URL('') } catch (error) { error.code }"), "'ERR_INVALID_URL'");
    assert_eq!(engine.value("(1234.5).toLocaleString('de')"), "'1.234,5'");
}

#[test]
fn lists_by_locale_are_the_texts_of_their_items() {
    let mut engine = Engine::new();
    let item = "{ toLocaleString: () => ({ toString: () => 'text', valueOf: () => 'value' }) }";
    assert_eq!(engine.value(&format!("[1234.5, {item}].toLocaleString('de')")), "'1.234,5,text'");
    assert_eq!(engine.value("new Float64Array([1234.5, 2]).toLocaleString('de')"), "'1.234,5,2'");
    let gone = "const gone = new Uint8Array(2); gone.buffer.transfer(); gone.toLocaleString()";
    assert!(engine.exception(gone).0.starts_with("TypeError"), "it has no buffer");
}

#[test]
fn a_global_that_does_not_exist_says_why() {
    let mut engine = Engine::new();
    let (message, _) = engine.exception("WebAssembly.compile()");
    assert_eq!(message, "ReferenceError: WebAssembly is not defined: sessions run JavaScript only");
    let (message, _) = engine.exception("new WebSocket('ws://a')");
    assert!(message.ends_with("sessions have no sockets; `fetch` makes requests"), "{message}");
    assert_eq!(engine.value("typeof WebAssembly + typeof WebSocket"), "'undefinedundefined'");
}

#[test]
fn what_cannot_be_cloned_is_refused() {
    let mut engine = Engine::new();
    for source in
        ["new URL('http://a')", "[new Blob([])]", "{ a: new Headers() }", "new AbortController().signal"]
    {
        let script = format!("try {{ structuredClone({source}) }} catch (error) {{ error.name }}");
        assert_eq!(engine.value(&script), "'DataCloneError'", "{source}");
    }
    assert_eq!(engine.value("structuredClone({ a: [1, { b: new Date(0) }] }).a[1].b.getTime()"), "0");
}
