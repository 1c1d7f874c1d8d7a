//! `console` of programs: what Node writes, and what a state keeps of it across a pause.

use crate::compared::{compare, lines, texts};
use vm_system_cvm::{
    CompileOptions, Level, PauseAnswer, RunOutcome, StateConfig, VmState, compile, resume_pause, run,
};

/// Cases between lines of `=====`: the script, a line of `-----`, what Node's console wrote. Sessions are compared with them too.
const CASES: [&str; 2] =
    [include_str!("../../../inspect/tests/console.txt"), include_str!("../../../inspect/tests/values.txt")];

/// Globals that programs do not have, or in which a script's globals differ.
const NOT_IN_PROGRAMS: [&str; 5] =
    ["SharedArrayBuffer", "Buffer.from", "Buffer.alloc", "process", "globalThis"];

#[test]
fn values_are_written_as_node_writes_them() {
    let compared = compare(&CASES, &NOT_IN_PROGRAMS);
    assert!(compared > 450, "only {compared} cases were compared");
}

#[test]
fn groups_counters_and_timers_live_across_a_pause() {
    let written = texts(
        "console.group('G'); console.count('c'); console.time('t'); console.count(); CC('?'); console.count('c'); \
         console.timeLog('t', 'so far'); console.timeEnd('t'); console.timeEnd('t'); CC('?'); console.groupEnd(); \
         console.countReset('c'); console.count('c'); console.countReset('other');",
    );
    assert_eq!(
        written,
        [
            "G",
            "  c: 1",
            "  default: 1",
            "  c: 2",
            "  t: 0ms so far",
            "  t: 0ms",
            "  Warning: No such label 't' for console.timeEnd()",
            "c: 1",
            "Warning: Count for 'other' does not exist",
        ]
    );
}

#[test]
fn a_timer_measures_the_time_of_the_state() {
    let program =
        compile("console.time(); CC('?'); console.timeEnd();", &CompileOptions::default()).expect("compiles");
    let mut state = VmState::new(&program, &StateConfig::default());
    state.set_time(1_000.0);
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    assert!(resume_pause(&program, &mut state, &PauseAnswer::Text(String::new())));
    state.set_time(3_500.0);
    run(&program, &mut state, u64::MAX);
    assert_eq!(state.take_output()[0].text, "default: 2.500s");
}

#[test]
fn every_writing_method_has_its_level() {
    use Level::{Debug, Error, Log, Warn};
    let (written, _) = lines(
        "console.log(1); console.info(2); console.warn(3); console.error(4); console.debug(5); console.assert(false, 'no'); \
         console.assert(true); function f() { console.trace('here'); } f();",
        &[],
    );
    let levels: Vec<Level> = written.iter().map(|line| line.0).collect();
    assert_eq!(levels, [Log, Log, Warn, Error, Debug, Error, Error]);
    assert!(written[6].1.starts_with("Trace: here\n    at f ("), "{}", written[6].1);
}

#[test]
fn iterators_are_shown_with_the_rest_of_their_items() {
    let written = texts(
        "const m = new Map([['a', 1], ['b', { c: 2 }]]); const it = m.entries(); it.next(); \
         console.log(it, m.keys(), m.values(), new Set([1]).values(), new Set([1]).entries()); \
         for (const x of it); console.log(it, m.size);",
    );
    assert_eq!(
        written,
        [
            "[Map Entries] { [ 'b', { c: 2 } ] } [Map Iterator] { 'a', 'b' } [Map Iterator] { 1, { c: 2 } } [Set Iterator] { 1 } \
             [Set Entries] { [ 1, 1 ] }",
            "[Map Entries] {  } 2",
        ]
    );
}

/// Runs no code, and does not change what is shown.
#[test]
fn showing_a_value_runs_no_code_and_changes_nothing() {
    let written = texts(
        "let ran = 0; const o = { get g() { ran++; return 1 }, toString() { ran++; return '' }, [Symbol.toPrimitive]() { ran++; } }; \
         const p = new Proxy(o, { get() { ran++; }, ownKeys() { ran++; return []; }, getOwnPropertyDescriptor() { ran++; } }); \
         console.log(o, p, [o], `${ran}`); console.table(p); console.dir(p, p); console.count(o); console.log('%s %d %j', o, o, 1); \
         function f() {} console.log(f); console.log(ran, Object.getOwnPropertyNames(f).join());",
    );
    assert_eq!(written.last().map(String::as_str), Some("0 length,name,prototype"), "{written:#?}");
}

#[test]
fn a_very_deep_value_is_shown_to_its_limit() {
    let written = texts(
        "let v = 1; for (let i = 0; i < 50000; i++) v = [v]; console.log(v); console.dir(v, { depth: 4 });",
    );
    assert_eq!(written[0], "[ [ [ [Array] ] ] ]");
}

/// The first line, as Node 20 shows it, of errors whose stack nothing has read before; programs and sessions have the same cases.
#[test]
fn an_error_is_shown_with_the_name_and_message_that_it_has_now() {
    for (source, first) in include_str!("../../../inspect/tests/errors.txt")
        .lines()
        .map(|line| line.split_once(" => ").expect("a case"))
    {
        let shown = texts(&format!("{source}; console.log(e);"));
        let (header, frames) = shown[0].split_once('\n').expect("frames");
        assert_eq!(header, first, "{source}: {shown:?}");
        assert!(!frames.contains("name:") || first.contains("other"), "{source}: {shown:?}");
    }
}
