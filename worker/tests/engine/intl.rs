//! `Intl` against Node: generated cases with Node's results.

use crate::harness::Engine;

/// One case a line: an expression, a tab, and its JSON in Node 20 (ICU 78, CLDR 48).
const CASES: &str = include_str!("intl_cases.txt");
/// The expressions whose results differ.
const KNOWN: &str = include_str!("intl_differences.txt");

#[test]
fn results_are_those_of_node() {
    let lines: Vec<(&str, &str)> = CASES.lines().filter_map(|line| line.split_once('\t')).collect();
    let list: Vec<&str> = lines.iter().map(|(expression, _)| *expression).collect();
    let calls: Vec<String> = list.iter().map(|case| format!("console.log(run(() => ({case})));\n")).collect();
    let source = format!(
        "const d = new Date(1767625445678), e = new Date(-62135596800000 + 1), f = new Date(1719878400000);\n\
         const run = (f) => {{ try {{ return JSON.stringify(f()); }} catch (error) {{ return error.name; }} }};\n{}",
        calls.concat()
    );
    let mut engine = Engine::with_limits(crate::harness::limits(|limits| {
        limits.max_events = 100_000;
        limits.max_output_kb = 100_000;
    }));
    let done = engine.script("intl.js", &source);
    let found = engine.console();
    assert_eq!(found.len(), lines.len(), "{:?} {:?}", done.outcome, done.events);
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
