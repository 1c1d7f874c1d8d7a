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
    for options in ["null", "1", "'x'"] {
        let (message, _) = engine.exception(&format!("CC('?', {options})"));
        assert_eq!(message, "TypeError: The second argument of CC must be an object", "{options}");
    }
    let (message, _) = engine.exception(&format!("CC('x'.repeat({}))", PROMPT_BYTES + 1));
    assert_eq!(message, format!("CCError: the prompt has more than {PROMPT_BYTES} bytes"));
    assert!(engine.exception("CC(Symbol())").0.starts_with("TypeError"));
    engine.policy.disabled_globals.push("CC".to_owned());
    assert_eq!(engine.exception("CC('?')").0, "ReferenceError: CC is not defined");
    assert_eq!(engine.memory.requests, []);
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
