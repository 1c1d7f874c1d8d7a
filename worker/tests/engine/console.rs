//! Console output against Node's, from a committed corpus of inputs and outputs.

use crate::harness::Engine;
use vm_system_protocol::model::ConsoleLevel::{Debug, Error, Info, Log, Warn};

/// Cases between lines of `=====`: the script, a line of `-----`, what Node's console wrote. Programs are compared with them too.
const CASES: [&str; 3] = [
    include_str!("../../../inspect/tests/console.txt"),
    include_str!("../../../inspect/tests/values.txt"),
    include_str!("../../../web/tests/cases.txt"),
];

/// Cases of `web/tests` in which sessions differ: the message of a class that is called, `cause` of a `DOMException`, and clones
/// of a `Proxy` and of a symbol's wrapper.
const DIFFERENT: [&str; 3] =
    ["URL('http://a'); } catch (e) { console.log(e.message)", "cause: 1 }", "new Proxy({}, {}), Object("];

#[test]
fn output_is_what_node_writes() {
    let mut wrong = Vec::new();
    for case in CASES.iter().flat_map(|cases| cases.split("\n=====\n")).filter(|case| !case.trim().is_empty())
    {
        let (script, expected) = case.split_once("\n-----\n").expect("a script and its output");
        if DIFFERENT.iter().any(|text| script.contains(text)) {
            continue;
        }
        let mut engine = Engine::new();
        let done = engine.script("case.js", script);
        let written = engine.console().join("\n");
        if written != expected {
            wrong.push(format!("{script}\n--- node\n{expected}\n--- ours {:?}\n{written}\n", done.outcome));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n======\n"));
}

#[test]
fn every_writing_method_has_its_level() {
    let mut engine = Engine::new();
    engine.logs(
        "console.log(1); console.info(2); console.warn(3); console.error(4); console.debug(5); console.trace('here'); \
         console.assert(false, 'no'); console.assert(true)",
    );
    assert_eq!(engine.levels(), [Log, Info, Warn, Error, Debug, Error, Error]);
    let console = engine.console();
    assert!(console[5].starts_with("Trace: here\n    at repl:1:"), "{}", console[5]);
    assert_eq!(console[6], "Assertion failed: no");
}

#[test]
fn time_and_its_end_show_a_duration() {
    let mut engine = Engine::new();
    let logs = engine
        .logs("console.time('t'); console.timeLog('t', 'x', 1); console.timeEnd('t'); console.timeEnd('t')");
    assert!(logs[0].starts_with("t: ") && logs[0].ends_with("ms x 1"), "{}", logs[0]);
    assert!(logs[1].starts_with("t: ") && logs[1].ends_with("ms"), "{}", logs[1]);
    assert!(logs[2].contains("No such label 't'"), "{}", logs[2]);
}

#[test]
fn a_session_without_console_has_none() {
    let mut engine = Engine::start(crate::harness::limits(|_| {}), [1; 32], false);
    assert_eq!(engine.value("typeof console"), "'undefined'");
}

/// The first line, as Node 20 shows it, of errors whose stack nothing has read before; programs and sessions have the same cases.
#[test]
fn an_error_is_shown_with_the_name_and_message_that_it_has_now() {
    let shared = include_str!("../../../inspect/tests/errors.txt")
        .lines()
        .map(|line| line.split_once(" => ").expect("a case"));
    let captured = ("const e = new Error('a'); e.name = 'Foo'; Error.captureStackTrace(e)", "Foo: a");
    for (source, first) in shared.chain([captured]) {
        let mut engine = Engine::new();
        let shown = engine.logs(&format!("{source}; console.log(e)"));
        let (header, frames) = shown[0].split_once('\n').expect("frames");
        assert_eq!(header, first, "{source}: {shown:?}");
        assert!(!frames.contains("name:") || first.contains("other"), "{source}: {shown:?}");
    }
}
