//! The committed list of tests that fail. A failing test that is not listed and a listed one that passes are both errors.
//!
//! Format: a folder on a separate line (ending in `/`), its failing files below it, indented. `*` means all files directly in
//! the folder.

use crate::suite::TestFile;
use std::collections::{BTreeMap, BTreeSet};

/// Paths of the tests that are expected to fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    failing: BTreeSet<String>,
}

/// The differences between a run and the expectations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Failing tests that are not listed.
    pub regressions: Vec<String>,
    /// Passing tests that are listed.
    pub unexpected_passes: Vec<String>,
}

/// Folder and file name of a path; the folder ends in `/`.
fn split(path: &str) -> (&str, &str) {
    let at = path.rfind('/').map_or(0, |slash| slash + 1);
    path.split_at(at)
}

/// For each folder the files of the tests that are run.
fn folders<'a>(tests: &[&'a TestFile]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests {
        let (folder, file) = split(&test.path);
        folders.entry(folder).or_default().push(file);
    }
    folders
}

impl Expectations {
    /// Reads the file's text.
    pub fn parse(text: &str, tests: &[&TestFile]) -> Expectations {
        let all = folders(tests);
        let mut failing = BTreeSet::new();
        let mut folder = "";
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            if line.ends_with('/') {
                folder = line;
            } else if line.trim() == "*" {
                let files = all.get(folder).map(Vec::as_slice).unwrap_or_default();
                failing.extend(files.iter().map(|file| format!("{folder}{file}")));
            } else {
                failing.insert(format!("{folder}{}", line.trim()));
            }
        }
        Expectations { failing }
    }

    /// The expectations that a run with these failures meets.
    pub fn of_failing(failing: impl IntoIterator<Item = String>) -> Expectations {
        Expectations { failing: failing.into_iter().collect() }
    }

    /// The file's text.
    pub fn to_text(&self, tests: &[&TestFile]) -> String {
        let all = folders(tests);
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in &self.failing {
            let (folder, file) = split(path);
            groups.entry(folder).or_default().push(file);
        }
        let mut text = String::from(
            "# Tests that fail. Written by `--update-expectations`; a regression and an unexpected pass both fail.\n",
        );
        for (folder, files) in groups {
            text.push_str(folder);
            text.push('\n');
            if all.get(folder).is_some_and(|known| known.len() == files.len() && files.len() > 1) {
                text.push_str(" *\n");
            } else {
                for file in files {
                    text.push(' ');
                    text.push_str(file);
                    text.push('\n');
                }
            }
        }
        text
    }

    /// Compares with results: `(path, passed)` of each test that was run.
    pub fn compare<'a>(&self, results: impl Iterator<Item = (&'a str, bool)>) -> Difference {
        let mut difference = Difference::default();
        for (path, passed) in results {
            match (passed, self.failing.contains(path)) {
                (false, false) => difference.regressions.push(path.to_owned()),
                (true, true) => difference.unexpected_passes.push(path.to_owned()),
                _ => {}
            }
        }
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Metadata;
    use crate::suite::Set;

    fn tests(paths: &[&str]) -> Vec<TestFile> {
        let test = |path: &&str| TestFile {
            path: (*path).to_owned(),
            metadata: Metadata::default(),
            source: String::new(),
            set: Set::B,
        };
        paths.iter().map(test).collect()
    }

    #[test]
    fn text_reads_back_and_folders_are_abbreviated_exactly() {
        let tests = tests(&["a/x.js", "a/y.js", "b/x.js", "b/y.js", "c/x.js"]);
        let tests: Vec<&TestFile> = tests.iter().collect();
        let expected = Expectations::of_failing(["a/x.js", "a/y.js", "b/y.js", "c/x.js"].map(str::to_owned));
        let text = expected.to_text(&tests);
        assert!(text.ends_with("a/\n *\nb/\n y.js\nc/\n x.js\n"), "{text}");
        assert_eq!(Expectations::parse(&text, &tests), expected);
    }

    #[test]
    fn regressions_and_unexpected_passes_are_distinguished() {
        let expected = Expectations::of_failing(["a/x.js".to_owned()]);
        let difference =
            expected.compare([("a/x.js", true), ("a/y.js", false), ("a/z.js", true)].into_iter());
        assert_eq!(difference.regressions, ["a/y.js"]);
        assert_eq!(difference.unexpected_passes, ["a/x.js"]);
    }
}
