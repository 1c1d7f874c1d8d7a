//! `Intl` against Node: generated cases with Node's results.

use crate::harness::Engine;

/// One case a line: an expression, a tab, and its JSON in Node 20 (ICU 78, CLDR 48).
const CASES: &str = include_str!("../../../intl/tests/cases.txt");
/// The expressions whose results differ.
const KNOWN: &str = include_str!("../../../intl/tests/differences.txt");

/// A script that writes the result of each case.
fn source() -> String {
    let list = CASES.lines().filter_map(|line| line.split_once('\t'));
    let calls: Vec<String> = list.map(|(case, _)| format!("console.log(run(() => ({case})));\n")).collect();
    format!(
        "const d = new Date(1767625445678), e = new Date(-62135596800000 + 1), f = new Date(1719878400000);\n\
         const run = (f) => {{ try {{ return JSON.stringify(f()); }} catch (error) {{ return error.name; }} }};\n{}",
        calls.concat()
    )
}

/// The lines that a program writes.
fn in_a_program(source: &str) -> Vec<String> {
    let program = vm_system_cvm::compile(source, &vm_system_cvm::CompileOptions::default());
    let program = program.unwrap_or_else(|errors| panic!("{errors}"));
    let mut state = vm_system_cvm::VmState::new(&program, &vm_system_cvm::StateConfig::default());
    let end = vm_system_cvm::run(&program, &mut state, u64::MAX);
    assert!(matches!(end, vm_system_cvm::RunOutcome::Done { .. }), "{end:?}");
    state.take_output().into_iter().map(|line| line.text).collect()
}

#[test]
fn results_are_those_of_node_and_of_programs() {
    let lines: Vec<(&str, &str)> = CASES.lines().filter_map(|line| line.split_once('\t')).collect();
    let source = source();
    let mut engine = Engine::with_limits(crate::harness::limits(|limits| {
        limits.max_events = 100_000;
        limits.max_output_kb = 100_000;
    }));
    let done = engine.script("intl.js", &source);
    let found = engine.console();
    assert_eq!(found.len(), lines.len(), "{:?} {:?}", done.outcome, done.events);
    assert!(found == in_a_program(&source), "a program writes something else");
    let mut unexpected = Vec::new();
    let mut fixed = Vec::new();
    for ((case, expected), found) in lines.iter().zip(&found) {
        let known = KNOWN.lines().any(|line| line == *case);
        if found != expected && !known {
            unexpected.push(format!("{case}\t{expected}\t{found}"));
        }
        if found == expected && known {
            fixed.push((*case).to_owned());
        }
    }
    assert!(
        unexpected.is_empty(),
        "{} of {} differ:\n{}",
        unexpected.len(),
        lines.len(),
        unexpected.join("\n")
    );
    assert!(fixed.is_empty(), "{} differences are none any more:\n{}", fixed.len(), fixed.join("\n"));
}
