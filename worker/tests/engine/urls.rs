//! `URL` against the cases of the web platform tests (`wpt/`, from web-platform-tests/wpt, BSD-3-Clause).

use crate::harness::Engine;
use std::collections::BTreeSet;

const PARSER: &str = include_str!("../../../web/tests/wpt/urltestdata.json");
const SETTERS: &str = include_str!("../../../web/tests/wpt/setters_tests.json");
/// Cases that differ from the standard, one a line.
const KNOWN: &str = include_str!("../../../web/tests/wpt/known_failures.txt");

/// Runs the script, which logs the name of each case that fails after the number of all cases.
fn failures(script: &str, cases: &str) -> (usize, BTreeSet<String>) {
    let mut engine = Engine::new().file("cases.json", cases);
    let done = engine.script("wpt.js", script);
    let mut lines = engine.console().into_iter();
    let all = lines.next().and_then(|line| line.parse().ok());
    (all.unwrap_or_else(|| panic!("{:?} {:?}", done.outcome, done.events)), lines.collect())
}

const RUN_PARSER: &str = r"
const cases = require('./cases.json').filter((test) => typeof test === 'object');
console.log(cases.length);
for (const test of cases) {
  const name = `parse <${test.input}>${test.base === null ? '' : ` against <${test.base}>`}`;
  let ok;
  try {
    const url = test.base === null ? new URL(test.input) : new URL(test.input, test.base);
    ok = !test.failure;
    for (const part of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash']) {
      if (part in test && url[part] !== test[part]) ok = false;
    }
    if (new URL(url.href).href !== url.href) ok = false;
    if (!URL.canParse(test.input, test.base ?? undefined)) ok = false;
  } catch (error) {
    ok = Boolean(test.failure) && error instanceof TypeError && error.code === 'ERR_INVALID_URL' &&
      !URL.canParse(test.input, test.base ?? undefined);
  }
  if (!ok) console.log(encodeURI(name.toWellFormed()).replaceAll('%20', ' '));
}
";

const RUN_SETTERS: &str = r"
const groups = Object.entries(require('./cases.json')).filter(([part]) => part !== 'comment');
console.log(groups.reduce((sum, [, tests]) => sum + tests.length, 0));
for (const [part, tests] of groups) {
  for (const test of tests) {
    const url = new URL(test.href);
    url[part] = test.new_value;
    const ok = Object.entries(test.expected).every(([name, value]) => url[name] === value);
    const name = `set ${part} of <${test.href}> to <${test.new_value}>`;
    if (!ok) console.log(encodeURI(name.toWellFormed()).replaceAll('%20', ' '));
  }
}
";

#[test]
fn urls_are_those_of_the_standard() {
    let (parsed, mut failed) = failures(RUN_PARSER, PARSER);
    let (set, failed_setters) = failures(RUN_SETTERS, SETTERS);
    failed.extend(failed_setters);
    let known: BTreeSet<String> = KNOWN.lines().map(str::to_owned).collect();
    let new: Vec<_> = failed.difference(&known).cloned().collect();
    let passed: Vec<_> = known.difference(&failed).cloned().collect();
    assert!(parsed > 800 && set > 200, "{parsed} and {set} cases");
    assert!(new.is_empty(), "{} new failures:\n{}", new.len(), new.join("\n"));
    assert!(passed.is_empty(), "{} known failures pass:\n{}", passed.len(), passed.join("\n"));
}
