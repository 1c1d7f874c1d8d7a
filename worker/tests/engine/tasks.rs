//! `CC`: the requests to the host, and the answers as values.

use crate::harness::{Engine, limits};
use std::time::Duration;
use vm_system_protocol::durable::{PROMPT_BYTES, TaskAnswer};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::{HostReply, HostRequest, Outcome};

fn answering(answers: Vec<TaskAnswer>) -> Engine {
    let mut engine = Engine::new();
    engine.memory.replies.extend(answers.into_iter().map(HostReply::Answer));
    engine
}

fn text(text: &str) -> TaskAnswer {
    TaskAnswer::Text(text.to_owned())
}

#[test]
fn an_answer_is_a_value_in_the_middle_of_an_expression() {
    let json = TaskAnswer::Json(JsonText::from_untrusted(r#"{"n":4}"#.to_owned()));
    let mut engine = answering(vec![text("3"), json]);
    let value =
        engine.value("Number(CC('first?')) + CC(`second ${1 + 1}?`, { schema: { type: 'object' } }).n");
    assert_eq!(value, "7");
    let request = |number, prompt: &str, options: Option<&str>| HostRequest::Ask {
        number,
        prompt: prompt.to_owned(),
        options: options.map(|options| JsonText::from_untrusted(options.to_owned())),
    };
    let schema = r#"{"schema":{"type":"object"}}"#;
    assert_eq!(engine.memory.requests, [request(1, "first?", None), request(2, "second 2?", Some(schema))]);
    engine.memory.requests.clear();
    engine.memory.replies.push_back(HostReply::Answer(text("so")));
    assert_eq!(engine.value("CC('again?')"), "'so'");
    assert_eq!(engine.memory.requests, [request(1, "again?", None)], "counted anew in each execution");
}

#[test]
fn failures_are_error_classes_that_can_be_caught() {
    let failed = || TaskAnswer::Failed("no answer fitted".to_owned());
    let expired = || TaskAnswer::Expired("no answer came in time".to_owned());
    let wrong = TaskAnswer::Wrong("CC has no option".to_owned());
    let mut engine = answering(vec![failed(), expired(), failed(), wrong]);
    let caught = "try { CC('?') } catch (e) {
        [e.name, e.message, e instanceof CCError, e instanceof CCTimeoutError, e instanceof Error].join() }";
    assert_eq!(engine.value(caught), "'CCError,no answer fitted,true,false,true'");
    assert_eq!(engine.value(caught), "'CCTimeoutError,no answer came in time,true,true,true'");
    assert_eq!(engine.exception("CC('?')").0, "CCError: no answer fitted");
    assert_eq!(engine.exception("CC('?', { o: 1 })").0, "TypeError: CC has no option");
}

#[test]
fn an_invalid_prompt_never_reaches_the_host() {
    let mut engine = Engine::new();
    for (options, found) in [
        ("null", "null"),
        ("1", "a number"),
        ("'x'", "a string"),
        ("[]", "an array"),
        ("() => 1", "a function"),
        ("1n", "a bigint"),
    ] {
        let (message, _) = engine.exception(&format!("CC('?', {options})"));
        let right = format!("TypeError: The second argument of CC must be an object, not {found}");
        assert_eq!(message, right, "{options}");
    }
    for (prompt, found) in
        [("5n", "a bigint"), ("Symbol()", "a symbol"), ("null", "null"), ("Object('x')", "an object")]
    {
        let right = format!("TypeError: The first argument of CC must be a string, not {found}");
        assert_eq!(engine.exception(&format!("CC({prompt})")).0, right);
    }
    for (name, value, right) in [
        ("timeout_ms", "NaN", "RangeError: The option timeout_ms of CC must be a finite number, not NaN"),
        ("retries", "1 / 0", "RangeError: The option retries of CC must be a finite number, not Infinity"),
        (
            "timeout_ms",
            "Object(NaN)",
            "TypeError: The option timeout_ms of CC must be a number, not an object",
        ),
        ("retries", "new Date(NaN)", "TypeError: The option retries of CC must be a number, not an object"),
        ("timeout_ms", "Symbol()", "TypeError: The option timeout_ms of CC must be a number, not a symbol"),
        ("retries", "() => 1", "TypeError: The option retries of CC must be a number, not a function"),
        ("timeout_ms", "[NaN]", "TypeError: The option timeout_ms of CC must be a number, not an array"),
        ("timeout_ms", "5n", "TypeError: The option timeout_ms of CC must be a number, not a bigint"),
        (
            "schema",
            "{ toJSON() { return null } }",
            "TypeError: The option schema of CC must be a value that JSON can hold, not an object",
        ),
        (
            "default",
            "Symbol()",
            "TypeError: The option default of CC must be a value that JSON can hold, not a symbol",
        ),
        (
            "default",
            "Object(NaN)",
            "TypeError: The option default of CC must be a value that JSON can hold, not an object",
        ),
    ] {
        assert_eq!(engine.exception(&format!("CC('?', {{ {name}: {value} }})")).0, right);
    }
    for options in [
        "(() => { let deep = 1; for (let i = 0; i < 127; i++) deep = [deep]; return { default: deep }; })()",
        "{ default: JSON.rawJSON('1e400') }",
    ] {
        assert_eq!(
            engine.exception(&format!("CC('?', {options})")).0,
            "TypeError: The options of CC are nested more than 127 deep, or have a number out of range"
        );
    }
    let (message, _) = engine.exception(&format!("CC('x'.repeat({}))", PROMPT_BYTES + 1));
    assert_eq!(message, format!("CCError: the prompt has more than {PROMPT_BYTES} bytes"));
    let (message, _) = engine.exception(&format!("CC('?', {{ default: 'x'.repeat({PROMPT_BYTES}) }})"));
    assert_eq!(message, format!("CCError: prompt and options have more than {PROMPT_BYTES} bytes"));
    engine.policy.disabled_globals.push("CC".to_owned());
    assert_eq!(engine.exception("CC('?')").0, "ReferenceError: CC is not defined");
    assert_eq!(engine.memory.requests, []);
}

/// Options that the supervisor reads are valid JSON, whatever a script passes.
#[test]
fn options_are_json_that_the_supervisor_accepts() {
    let mut engine = Engine::new();
    for (options, right) in [
        (r"{ default: '\ud800' }", "{\"default\":\"\u{fffd}\"}"),
        (r"{ default: '\\ud800\\\udfff\u{1f600}\n' }", "{\"default\":\"\\\\ud800\\\\\u{fffd}\u{1f600}\\n\"}"),
        (
            r"{ schema: { enum: ['\udc00a', 'b\ud83d'] } }",
            "{\"schema\":{\"enum\":[\"\u{fffd}a\",\"b\u{fffd}\"]}}",
        ),
        (r"{ '\ud800': 1 }", "{\"\u{fffd}\":1}"),
        (
            "{ get timeout_ms() { return 1; }, retries: null, schema: undefined, default: null }",
            "{\"timeout_ms\":1,\"default\":null}",
        ),
        ("new (class { retries = 3; get timeout_ms() { return 1; } })()", "{\"retries\":3}"),
        (
            "(() => { let deep = 1; for (let i = 0; i < 126; i++) deep = [deep]; return { default: deep }; })()",
            &format!("{{\"default\":{}1{}}}", "[".repeat(126), "]".repeat(126)),
        ),
    ] {
        engine.memory.requests.clear();
        engine.memory.replies.push_back(HostReply::Answer(text("ok")));
        assert_eq!(engine.value(&format!("CC('?', {options})")), "'ok'", "{options}");
        let Some(HostRequest::Ask { options: Some(json), .. }) = engine.memory.requests.first() else {
            panic!("{options}: {:?}", engine.memory.requests);
        };
        assert_eq!(json.as_str(), right, "{options}");
        assert!(json.is_valid(), "{options}");
    }
}

#[test]
fn replaced_builtins_do_not_affect_the_answer() {
    let mut engine = answering(vec![text("ok")]);
    let value = engine.value(
        "JSON.parse = JSON.stringify = () => { throw 1 }; Object.prototype.toJSON = 1;
         Array.prototype[Symbol.iterator] = function* () { yield 'spoilt' }; CC('?', {})",
    );
    assert_eq!(value, "'ok'");
}

#[test]
fn waiting_counts_against_no_limit_and_each_task_is_an_event() {
    let mut engine = Engine::with_limits(limits(|limits| {
        limits.wall_ms = 40;
        limits.max_events = 3;
    }));
    engine.memory.call_takes = Duration::from_millis(80);
    engine.memory.replies.extend([text("a"), text("b"), text("c")].map(HostReply::Answer));
    let done = engine.repl("CC('1') + CC('2')");
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    engine.memory.call_takes = Duration::ZERO;
    engine.memory.replies.extend((0..5).map(|_| HostReply::Answer(text("x"))));
    let done = engine.repl("for (;;) { try { CC('?') } catch {} }");
    assert_eq!(done.outcome, Outcome::Limit(LimitKind::Events));
}
