//! Totals, failures by cause, failures by folder.

use crate::protocol::Verdict;
use crate::suite::{Set, Suite};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Tests run and tests passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Passed.
    pub passed: usize,
    /// All.
    pub total: usize,
}

impl Count {
    fn add(&mut self, passed: bool) {
        self.total += 1;
        self.passed += usize::from(passed);
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.passed as f64 / self.total.max(1) as f64;
        write!(out, "{:>6} of {:>6}  {percent:6.2} %", self.passed, self.total)
    }
}

/// The totals of a run. In "all", tests outside of A count as not passed, because they are not run.
pub fn totals(suite: &Suite, places: &[usize], verdicts: &[Verdict], sampled: bool) -> String {
    let (mut b, mut a) = (Count::default(), Count::default());
    for (place, verdict) in places.iter().zip(verdicts) {
        let passed = *verdict == Verdict::Pass;
        a.add(passed);
        if suite.tests[*place].set == Set::B {
            b.add(passed);
        }
    }
    let mut text = format!("set B  {b}\nset A  {a}\n");
    if !sampled {
        let all =
            Count { passed: a.passed, total: suite.tests.iter().filter(|test| !test.is_intl()).count() };
        let _ = writeln!(text, "all    {all}  (language/ and built-ins/; outside of A nothing is attempted)");
    }
    text
}

/// The total of a section without sets.
pub fn total(verdicts: &[Verdict]) -> Count {
    let mut count = Count::default();
    for verdict in verdicts {
        count.add(*verdict == Verdict::Pass);
    }
    count
}

/// A failure message without the parts that vary between tests.
pub fn cause(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let mut text = String::new();
    let mut quote = None;
    for letter in first.chars().take(200) {
        match quote {
            Some(mark) if mark == letter => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'' | '`' | '«') => {
                quote = Some(if letter == '«' { '»' } else { letter });
                text.push('…');
            }
            // Numbers vary between tests; digits inside a name (`Test262Error`) do not.
            None if letter.is_ascii_digit() && !text.ends_with(char::is_alphanumeric) => {
                if !text.ends_with('#') {
                    text.push('#');
                }
            }
            None => text.push(letter),
        }
    }
    text.truncate(text.char_indices().nth(90).map_or(text.len(), |(at, _)| at));
    text
}

/// The most frequent causes with an example each.
pub fn by_cause(suite: &Suite, places: &[usize], verdicts: &[Verdict], most: usize) -> String {
    let mut causes: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for (place, verdict) in places.iter().zip(verdicts) {
        if let Verdict::Fail(message) = verdict {
            causes.entry(cause(message)).or_insert((0, &suite.tests[*place].path)).0 += 1;
        }
    }
    let mut sorted: Vec<_> = causes.into_iter().collect();
    sorted.sort_by(|left, right| right.1.0.cmp(&left.1.0).then_with(|| left.0.cmp(&right.0)));
    let mut text = String::new();
    for (cause, (count, example)) in sorted.into_iter().take(most) {
        let _ = writeln!(text, "{count:>6}  {cause}\n        {example}");
    }
    text
}

/// The folder of a summary line: three levels.
fn summary_folder(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    parts[..parts.len().saturating_sub(1).min(3)].join("/")
}

/// Passed and total of each folder with failures, with its most frequent cause.
pub fn by_folder(suite: &Suite, places: &[usize], verdicts: &[Verdict]) -> String {
    let mut folders: BTreeMap<String, (Count, BTreeMap<String, usize>)> = BTreeMap::new();
    for (place, verdict) in places.iter().zip(verdicts) {
        let folder = folders.entry(summary_folder(&suite.tests[*place].path)).or_default();
        folder.0.add(*verdict == Verdict::Pass);
        if let Verdict::Fail(message) = verdict {
            *folder.1.entry(cause(message)).or_default() += 1;
        }
    }
    let mut text = String::new();
    for (folder, (count, causes)) in folders.iter().filter(|(_, (count, _))| count.passed < count.total) {
        let worst = causes.iter().max_by_key(|(_, count)| **count);
        let worst = worst.map(|(cause, count)| format!("{count} × {cause}")).unwrap_or_default();
        let _ = writeln!(text, "{count}  {folder}  ({worst})");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_no_varying_parts() {
        assert_eq!(
            cause("Test262Error: Expected SameValue(«1», «2») to be true"),
            "Test262Error: Expected SameValue(…, …) to be true"
        );
        assert_eq!(
            cause("TypeError: 'x' is not a function at 12:3\nmore"),
            "TypeError: … is not a function at #:#"
        );
    }
}
