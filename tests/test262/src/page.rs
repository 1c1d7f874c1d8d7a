//! The page for readers: totals, and every folder with failures with its causes in words.
//!
//! Owns: [`page`] and the causes. Must not: run anything; it is written by `--update-expectations` and checked by every full run.

use crate::protocol::Verdict;
use crate::report;
use crate::suite::{Set, Suite};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const STRINGS: &str = "code from strings";
const USING: &str = "`using`";
const TAIL: &str = "tail calls";
const BYTES: &str = "shared memory";
const REALM: &str = "ShadowRealm";
const DECORATORS: &str = "decorators";
const EMOJI: &str = "emoji sequences";
const SCRIPTS: &str = "several scripts";
const DETAIL: &str = "details";

/// The causes, in the order of the page, with their explanations.
const CAUSES: &[(&str, &str)] = &[
    (
        STRINGS,
        "`Function(…)`, `eval` and their like: a program's code is known, and refused or accepted, when it is loaded.",
    ),
    (USING, "The number of jobs between the end of a scope with `await using` and what follows it."),
    (
        TAIL,
        "Calls in tail position keep their caller's frame, so that stacks show it; endless recursion ends at the depth limit.",
    ),
    (BYTES, "Tests of other features that also use a `SharedArrayBuffer`."),
    (REALM, "`ShadowRealm` is code from strings in another realm."),
    (DECORATORS, "Decorators and `accessor` fields: refused at load."),
    (
        EMOJI,
        "`\\p{RGI_Emoji}` and `\\p{RGI_Emoji_ZWJ_Sequence}`: the tables of emoji sequences are not built in; patterns with them are refused at load.",
    ),
    (
        SCRIPTS,
        "Tests that run a second script in the realm of the first: a program has one realm and one first file.",
    ),
    (DETAIL, "Single tests; the message names the expectation."),
];

/// Path of the committed page.
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cvm-test262.md")
}

/// Why a test fails: an entry of [`CAUSES`].
fn cause(path: &str, message: &str) -> &'static str {
    let in_message = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    let in_path = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
    let name = path.rsplit('/').next().unwrap_or_default();
    if in_path(&["ShadowRealm"]) {
        REALM
    } else if in_path(&[
        "isposable",
        "/using/",
        "/await-using/",
        "Symbol/dispose",
        "syncDispose",
        "Symbol.dispose",
    ]) || in_path(&["SuppressedError", "-using-"])
    {
        USING
    } else if name.starts_with("tco") {
        TAIL
    } else if in_message(&["`SharedArrayBuffer`", "SharedArrayBuffer is not defined"]) {
        BYTES
    } else if in_message(&["Code generation from strings", "`Function(…)`", "`eval`", "could not obtain %"])
        || path.starts_with("built-ins/Function/S")
        || in_path(&[
            "/function-constructor",
            "built-ins/GeneratorFunction",
            "built-ins/AsyncGeneratorFunction",
        ])
    {
        STRINGS
    } else if in_path(&["decorator", "field-accessor"]) {
        DECORATORS
    } else if in_message(&["RGI_Emoji"]) {
        EMOJI
    } else if in_message(&["evalScript"]) || in_path(&["global-code/script-"]) {
        SCRIPTS
    } else {
        DETAIL
    }
}

/// A message in one line of a table: the text of an assertion without its wrapping.
fn short(message: &str) -> String {
    let inner = message.split_once("message: ").map_or(message, |(_, inner)| inner);
    let words: Vec<&str> = inner.split_whitespace().collect();
    let text = words.join(" ").replace("\\n", " ").replace('|', "\\|").replace('`', "'");
    let text = text.trim_end_matches([' ', '}']).trim_matches('\'');
    let cut: String = text.chars().take(140).collect();
    if cut.len() < text.len() { format!("`{cut} …`") } else { format!("`{cut}`") }
}

/// One folder's part of the page.
#[derive(Default)]
struct Folder {
    total: usize,
    failed: usize,
    causes: BTreeMap<&'static str, usize>,
}

/// The page's text.
pub fn page(suite: &Suite, places: &[usize], verdicts: &[Verdict]) -> String {
    let mut folders: BTreeMap<&str, Folder> = BTreeMap::new();
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut details: BTreeMap<&str, String> = BTreeMap::new();
    for (place, verdict) in places.iter().zip(verdicts) {
        let path = suite.tests[*place].path.as_str();
        let name = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = folders.entry(name).or_default();
        folder.total += 1;
        if let Verdict::Fail(message) = verdict {
            let why = cause(path, message);
            folder.failed += 1;
            *folder.causes.entry(why).or_default() += 1;
            *causes.entry(why).or_default() += 1;
            if why == DETAIL {
                details.insert(path, short(message));
            }
        }
    }
    folders.retain(|_, folder| folder.failed > 0);
    let mut text = String::from(
        "# Failing test262 tests of cvm, and the causes\n\n\
         Written by `vm-system-test262 --update-expectations` and checked by every full run; do not edit. Which tests are run, and what the\n\
         sets are, is in [decision 023](decisions/023-test262-sets.md).\n\n```text\n",
    );
    text.push_str(&report::totals(suite, places, verdicts, false));
    let outside = suite.tests.iter().filter(|test| test.set == Set::Outside && !test.is_intl()).count();
    let _ = writeln!(
        text,
        "```\n\n{outside} tests are outside of set A and are not run.\n\n## Causes\n\n| cause | tests | |\n|---|---|---|"
    );
    for (name, meaning) in CAUSES {
        if let Some(count) = causes.get(name) {
            let _ = writeln!(text, "| {name} | {count} | {meaning} |");
        }
    }
    text.push_str("\n## Folders\n\n| folder | failed | of | cause |\n|---|---|---|---|\n");
    for (name, folder) in &folders {
        let named = |(cause, count): (&&str, &usize)| {
            if *count == folder.failed { (*cause).to_owned() } else { format!("{cause} {count}") }
        };
        let causes: Vec<String> = folder.causes.iter().map(named).collect();
        let _ = writeln!(text, "| {name} | {} | {} | {} |", folder.failed, folder.total, causes.join(", "));
    }
    text.push_str("\n## Details\n\n| test | message |\n|---|---|\n");
    for (path, message) in details {
        let _ = writeln!(text, "| {path} | {message} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{CAUSES, cause, file};
    use crate::section::CVM;

    #[test]
    fn every_cause_is_explained() {
        for (path, message, expected) in [
            ("language/expressions/call/tco-call-args.js", "limit Stack", "tail calls"),
            (
                "built-ins/Function/length/x.js",
                "unsupported: `Function(…)` is not supported: why",
                "code from strings",
            ),
            ("built-ins/DisposableStack/length.js", "ReferenceError", "`using`"),
            (
                "built-ins/Object/seal/x.js",
                "ReferenceError: SharedArrayBuffer is not defined",
                "shared memory",
            ),
            ("built-ins/Number/x.js", "something else", "details"),
        ] {
            assert_eq!(cause(path, message), expected, "{path}");
            assert!(CAUSES.iter().any(|(name, _)| *name == expected));
        }
    }

    #[test]
    fn the_page_names_every_folder_of_the_expectations() {
        let read = |file: std::path::PathBuf| std::fs::read_to_string(&file).unwrap_or_default();
        let (page, expectations) = (read(file()), read(CVM.expectations()));
        let folders: Vec<&str> = expectations.lines().filter_map(|line| line.strip_suffix('/')).collect();
        assert!(folders.len() > 10, "the expectations list folders");
        for folder in &folders {
            assert!(page.contains(&format!("\n| {folder} | ")), "{folder} is not on the page");
        }
        let rows = page.split("## Folders").nth(1).and_then(|part| part.split("## Details").next());
        let rows = rows.unwrap_or_default().lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(rows, folders.len() + 1, "the page has a row for each folder and a head");
    }
}
