//! The web platform of programs: `URL`, `URLSearchParams`, `DOMException`, `atob`, `btoa`, `structuredClone`, `crypto.randomUUID`.

use crate::compared::{compare, lines, texts};
use std::collections::BTreeSet;

/// Cases with what Node wrote; sessions run them too.
const CASES: &str = include_str!("../../../web/tests/cases.txt");
/// Cases of the web platform tests, and those that differ, as in sessions.
const PARSER: &str = include_str!("../../../web/tests/wpt/urltestdata.json");
const SETTERS: &str = include_str!("../../../web/tests/wpt/setters_tests.json");
const KNOWN: &str = include_str!("../../../web/tests/wpt/known_failures.txt");

#[test]
fn they_behave_as_in_node() {
    let compared = compare(&[CASES], &[]);
    assert!(compared > 25, "only {compared} cases were compared");
}

const RUN_PARSER: &str = r"
const cases = JSON.parse(args[0]).filter((test) => typeof test === 'object');
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
const groups = Object.entries(JSON.parse(args[0])).filter(([part]) => part !== 'comment');
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

fn failures(script: &str, cases: &str) -> (usize, BTreeSet<String>) {
    let (lines, end) = lines(script, &[cases.to_owned()]);
    let mut lines = lines.into_iter().map(|line| line.1);
    let all = lines.next().and_then(|line| line.parse().ok());
    (all.unwrap_or_else(|| panic!("{end}")), lines.collect())
}

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

#[test]
fn they_live_across_a_pause_and_suspend_in_conversions() {
    let written = texts(
        "const u = new URL('http://a/?x=1'); const p = u.searchParams; const it = p.entries(); it.next(); CC('?'); \
         p.append('y', 2); console.log(u.href, it.next().value, p === u.searchParams); \
         const slow = { toString() { return CC('?') } }; p.set(slow, slow); u.hash = slow; console.log(u.href, btoa(slow)); \
         console.log(new URL(slow, 'http://b').href, new URLSearchParams([[slow, slow]]).toString()); \
         const c = structuredClone({ get g() { return [CC('?')] }, m: new Map([[{ get k() { return CC('?') } }, 1]]) }); console.log(c);",
    );
    assert_eq!(
        written,
        [
            "http://a/?x=1&y=2 [ 'y', '2' ] true",
            "http://a/?x=1&y=2&answer=answer#answer YW5zd2Vy",
            "http://b/answer answer=answer",
            "{ g: [ 'answer' ], m: Map(1) { { k: 'answer' } => 1 } }",
        ]
    );
}

#[test]
fn a_deep_or_large_clone_ends_at_the_limits_of_the_program() {
    let (_, end) = lines("let v = []; for (let i = 0; i < 100000; i++) v = [v]; structuredClone(v);", &[]);
    assert!(end.contains("RangeError: Maximum call stack size exceeded"), "{end}");
    let (_, end) = lines("const v = 'x'.repeat(1 << 20); let s = v; while (true) s = btoa(s);", &[]);
    assert!(end.starts_with("Limit("), "{end}");
}

#[test]
fn what_crypto_does_not_have_is_refused_at_load() {
    let (_, end) = lines("crypto.randomBytes(8);", &[]);
    assert!(end.contains("`crypto.randomBytes` is not supported: `crypto` has"), "{end}");
}

#[test]
fn random_uuids_repeat_with_the_seed() {
    let once = texts("console.log(crypto.randomUUID(), Math.random())");
    assert_eq!(once, texts("console.log(crypto.randomUUID(), Math.random())"));
    let many = texts(
        "const s = new Set(); for (let i = 0; i < 5000; i++) s.add(crypto.randomUUID()); console.log(s.size)",
    );
    assert_eq!(many, ["5000"]);
}
