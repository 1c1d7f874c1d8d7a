//! Uncaught exceptions: message, stack with file and line, thrown values that are not errors.

use crate::harness::{Engine, exception_of};
use vm_system_protocol::worker::Outcome;

#[test]
fn an_exception_names_its_class_message_file_line_and_column() {
    let mut engine = Engine::new();
    let done = engine.script("scripts/app.js", "function inner() {\n  return missing.field;\n}\ninner();");
    let (message, stack) = exception_of(&done).expect("an exception");
    assert_eq!(message, "ReferenceError: missing is not defined");
    assert_eq!(done.outcome, Outcome::Exception { message });
    let lines: Vec<&str> = stack.lines().collect();
    assert_eq!(lines[0], "ReferenceError: missing is not defined");
    assert!(lines[1].starts_with("    at inner (scripts/app.js:2:"), "{stack}");
    assert!(lines[2].starts_with("    at scripts/app.js:4:"), "{stack}");
    assert_eq!(lines.len(), 3, "{stack}");
}

#[test]
fn thrown_values_that_are_not_errors_are_shown_as_in_node() {
    let mut engine = Engine::new();
    for (source, message) in [
        ("throw 42", "Uncaught 42"),
        ("throw 'text'", "Uncaught 'text'"),
        ("throw null", "Uncaught null"),
        ("throw undefined", "Uncaught undefined"),
        ("throw { code: 1 }", "Uncaught { code: 1 }"),
        ("throw Symbol('s')", "Uncaught Symbol(s)"),
    ] {
        let (shown, stack) = engine.exception(source);
        assert_eq!(shown, message, "{source}");
        assert_eq!(stack, "");
    }
}

#[test]
fn a_script_reads_the_stack_as_in_node() {
    let mut engine = Engine::new();
    let shown = engine
        .value("function where() { return new TypeError('t').stack }; where().split('\\n').slice(0, 2)");
    assert!(shown.starts_with("[ 'TypeError: t', '    at where (repl:1:"), "{shown}");
    assert_eq!(
        engine.value(
            "class Mine extends Error { name = 'Mine' }; try { throw new Mine('m') } catch (e) { `${e}` }"
        ),
        "'Mine: m'"
    );
    assert_eq!(engine.exception("throw new Mine('x')").0, "Mine: x");
    assert_eq!(
        engine.value("const target = {}; Error.captureStackTrace(target); typeof target.stack"),
        "'string'"
    );
}

#[test]
fn call_sites_have_the_methods_of_v8() {
    let mut engine = Engine::new();
    let sites = "(() => { const before = Error.prepareStackTrace; Error.prepareStackTrace = (error, sites) => sites;
        try { return (function here() { return new Error('x').stack })() } finally { Error.prepareStackTrace = before } })()";
    let site = |code: &str| format!("{{ const site = {sites}[0]; {code} }}");
    // The functions that packages call, of depd 2.0.0.
    assert_eq!(
        engine.value(&site(
            "[site.isEval(), site.getEvalOrigin(), site.getThis(), site.getTypeName(), site.getMethodName()]"
        )),
        "[ false, undefined, undefined, null, null ]"
    );
    assert_eq!(
        engine.value(&site("[site.isAsync(), site.isToplevel(), site.getFunctionName()]")),
        "[ false, false, 'here' ]"
    );
    let shown = engine.value(&site("`${site}`"));
    assert!(shown.starts_with("'here (") && shown.contains(':'), "{shown}");
    assert_eq!(engine.value("try { null.x } catch (error) { error.stack.split('\\n').length > 1 }"), "true");
}

#[test]
fn lines_and_columns_stay_correct_after_rewritten_declarations() {
    let mut engine = Engine::new();
    let rewritten = engine.exception("class Wide {}; let unset; const c = 1; null.field").1;
    let plain = engine.exception("(class {}) ; var unset; var     c = 1; null.field").1;
    assert_eq!(rewritten, plain);
    assert!(plain.contains("repl:1:"), "{plain}");
    let inside = engine.exception("class Inside { static made = null.field }").1;
    assert_eq!(inside, engine.exception("(class Inside{ static made = null.field })").1);
    let (_, stack) = engine.exception("const first = 1;\nconst second = 2;\nfirst.call()");
    assert!(stack.contains("repl:3:"), "{stack}");
}

#[test]
fn causes_and_aggregates_are_logged() {
    let mut engine = Engine::new();
    let logs = engine.logs("console.log(new Error('outer', { cause: new TypeError('inner') }))");
    assert!(logs[0].starts_with("Error: outer\n    at repl:1:"), "{}", logs[0]);
    assert!(logs[0].contains("[cause]: TypeError: inner\n"), "{}", logs[0]);
    let logs = engine.logs("console.log(new AggregateError([new Error('one')], 'all'))");
    assert!(logs[0].contains("[errors]: [") && logs[0].contains("Error: one"), "{}", logs[0]);
}
