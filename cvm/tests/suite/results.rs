//! Results of programs: every JSON parser can parse them, whatever the program returns.

use vm_system_cvm::{CompileOptions, RunOutcome, StateConfig, VmState, compile, run};

fn end(source: &str) -> RunOutcome {
    let program = compile(source, &CompileOptions::default()).expect("these programs compile");
    let mut state = VmState::new(&program, &StateConfig::default());
    run(&program, &mut state, u64::MAX)
}

fn result(expression: &str) -> String {
    match end(&format!("function main() {{ return {expression}; }}")) {
        RunOutcome::Done { json, .. } => json,
        other => panic!("{expression}: {other:?}"),
    }
}

fn thrown(source: &str) -> String {
    match end(source) {
        RunOutcome::Throw(text) => text,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn a_lone_surrogate_becomes_the_replacement_character() {
    assert_eq!(result("{ summary: '👍'.slice(0, 1) }"), "{\"summary\":\"\u{fffd}\"}");
    assert_eq!(result("{ ['k\\ud800']: 'a\\udc00b👍' }"), "{\"k\u{fffd}\":\"a\u{fffd}b👍\"}");
}

#[test]
fn every_result_is_valid_json() {
    for expression in [
        "'\\u0000\\u001f\\u2028\"\\\\\\ud800\\ud800\\udc00'",
        "[1e400, NaN, -0, 1e21, 2n ** 70n, undefined, Symbol(), () => 1, /x/, new Map([[1, 2]]), new Error('x')]",
        "[, 1, , 2]",
        "Object.assign(Object.create(null), { 1: 1, a: { get b() { throw 1; }, c: undefined } })",
        "Array.from({ length: 99 }).reduce((inner) => [inner], 1)",
    ] {
        let json = result(expression);
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{expression}: {json}");
    }
    assert_eq!(result("Object.assign([1], { 3: 4, 7: undefined })"), "[1,null,null,4,null,null,null,null]");
    assert!(result("Object.assign([1], { 100000: 7 })").ends_with(",null,7]"));
    assert_eq!(result("[new Date(0), new Date(NaN)]"), "[\"1970-01-01T00:00:00.000Z\",null]");
}

#[test]
fn a_url_is_its_text_as_json_stringify_has_it() {
    let urls = "[new URL('/a b?c=é#d', 'HTTPS://example.com:443'), { of: URL.parse('data:x') }, \
                new (class extends URL {})('http://x/')]";
    let expected = r#"["https://example.com/a%20b?c=%C3%A9#d",{"of":"data:x"},"http://x/"]"#;
    assert_eq!(result(urls), expected);
    assert_eq!(result(&format!("JSON.parse(JSON.stringify({urls}))")), expected);
    let changed =
        "(() => { const url = new URL('http://x/'); url.searchParams.set('a', '1'); return url })()";
    assert_eq!(result(changed), "\"http://x/?a=1\"");
}

#[test]
fn a_value_that_json_cannot_represent_is_an_error_of_the_program() {
    let deep = "contains itself, or is nested more than 100 levels deep";
    let cycle = "const a = {}; a.a = [a];";
    assert!(
        thrown(&format!("{cycle} function main() {{ return a; }}")).contains(&format!("The result {deep}"))
    );
    let proxy = "is or contains a Proxy, which has no data of its own";
    assert!(
        thrown("function main() { return [new Proxy({ a: 1 }, {})]; }")
            .starts_with(&format!("TypeError: The result {proxy}"))
    );
    assert_eq!(result("({ ...new Proxy({ a: 1 }, {}) })"), "{\"a\":1}");
    let nested = "function main() { let a = 1; for (let i = 0; i < 101; i++) a = [a]; return a; }";
    assert!(thrown(nested).contains(deep));
    let text = thrown(&format!("{cycle} function main() {{ CC('q', a); }}"));
    assert!(text.starts_with("TypeError: The second argument of CC") && text.contains(deep), "{text}");
    let caught = "try { fs.listFiles('.', a) } catch (error) { throw 'caught ' + error.message }";
    assert!(
        thrown(&format!("{cycle} function main() {{ {caught} }}"))
            .starts_with("caught An argument of listFiles")
    );
    // Two references to the next level at each of 90 levels.
    let many = "function main() { let a = 1; for (let i = 0; i < 90; i++) a = [a, a]; return a; }";
    assert!(thrown(many).contains("The result is too large"));
    assert!(
        thrown("function main() { const a = []; a.length = 2 ** 32 - 1; return a; }")
            .contains("is too large")
    );
}
