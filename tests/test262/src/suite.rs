//! The tests of a test262 checkout, and which set of cvm each belongs to.
//!
//! Set **A**: the tests that cvm should pass. Strict mode, without modules, Temporal, shared memory, immutable buffers (a proposal),
//! direct or indirect `eval`, and other realms. Set **B**: A without `Proxy` and `Reflect`, generators, and async functions, a first milestone.

use crate::metadata::Metadata;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The totals that a test counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    /// In A and in B.
    B,
    /// In A only.
    A,
    /// In neither: not run.
    Outside,
}

/// Of the harness for resizable buffers: code from a string, for engines without classes.
const CLASS_FROM_STRING: &str = "new Function('return class My' + type + ' extends ' + type + ' {}')()";
/// The same without it, so that the tests that include this file are about buffers.
const CLASS: &str = "class extends globalThis[type] {}";
/// Of the harness for the global object, in the same way.
const GLOBAL_FROM_STRING: &str = "Function(\"return this;\")()";

/// One test file.
#[derive(Clone, Debug)]
pub struct TestFile {
    /// Path below `test/`, with `/`.
    pub path: String,
    /// The test's front matter.
    pub metadata: Metadata,
    /// The test's text.
    pub source: String,
    /// The totals that the test counts in.
    pub set: Set,
}

impl TestFile {
    /// Whether it is about `Intl`, which is a standard of its own.
    pub fn is_intl(&self) -> bool {
        self.path.starts_with("intl402/")
    }
}

/// The tests below `language/`, `built-ins/` and `intl402/`, sorted by path, and the harness.
#[derive(Debug)]
pub struct Suite {
    /// All tests.
    pub tests: Vec<TestFile>,
    /// The folder of all tests.
    pub root: PathBuf,
    harness: BTreeMap<String, String>,
}

impl Suite {
    /// Reads the checkout at `root`.
    pub fn load(root: &Path) -> Result<Suite> {
        let mut files = Vec::new();
        for top in ["language", "built-ins", "intl402"] {
            collect(&root.join("test").join(top), &mut files)?;
        }
        files.sort();
        let mut tests = Vec::with_capacity(files.len());
        for file in files {
            let path = file.strip_prefix(root.join("test"))?.to_string_lossy().replace('\\', "/");
            let source = read(&file)?;
            let metadata = Metadata::parse(&source);
            let set = classify(&path, &metadata, &source);
            tests.push(TestFile { path, metadata, source, set });
        }
        tests.sort_by(|left, right| left.path.cmp(&right.path));
        let mut harness_files = Vec::new();
        collect(&root.join("harness"), &mut harness_files)?;
        let mut harness = BTreeMap::new();
        for file in harness_files {
            let name = file.strip_prefix(root.join("harness"))?.to_string_lossy().into_owned();
            harness.insert(
                name,
                read(&file)?.replace(CLASS_FROM_STRING, CLASS).replace(GLOBAL_FROM_STRING, "globalThis"),
            );
        }
        Ok(Suite { tests, root: root.join("test"), harness })
    }

    /// The harness text before a test, in the order that `INTERPRETING.md` requires.
    pub fn prelude(&self, test: &TestFile) -> Result<String> {
        let mut text = String::new();
        if test.metadata.has_flag("raw") {
            return Ok(text);
        }
        let mut names = vec!["assert.js", "sta.js"];
        if test.metadata.has_flag("async") {
            names.push("doneprintHandle.js");
        }
        names.extend(test.metadata.includes.iter().map(String::as_str));
        for name in names {
            let file = self.harness.get(name).with_context(|| format!("harness file {name} is missing"))?;
            text.push_str(file);
            text.push('\n');
        }
        Ok(text)
    }
}

fn read(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if Path::new(&name).extension().is_some_and(|kind| kind == "js")
                && !name.contains("_FIXTURE")
            {
                files.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Whether a folder below `built-ins/` or a feature is about memory that threads share, or about buffers that are a proposal.
pub(crate) fn is_other_memory(name: &str) -> bool {
    ["SharedArrayBuffer", "Atomics", "Atomics.pause", "Atomics.waitAsync", "immutable-arraybuffer"]
        .contains(&name)
}

fn classify(path: &str, metadata: &Metadata, source: &str) -> Set {
    let flagged = ["noStrict", "raw", "module", "CanBlockIsFalse", "CanBlockIsTrue"];
    let modules =
        ["dynamic-import", "top-level-await", "import-attributes", "import.meta", "source-phase-imports"];
    let folder = path.strip_prefix("built-ins/").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let outside = flagged.iter().any(|flag| metadata.has_flag(flag))
        || modules.iter().any(|feature| metadata.has_feature(feature))
        || metadata.features.iter().any(|feature| feature.starts_with("import-") || is_other_memory(feature))
        || metadata.has_feature("Temporal")
        || path.contains("/Temporal/")
        || is_other_memory(folder)
        || metadata.has_feature("cross-realm")
        || source.contains("createRealm")
        || mentions_eval(source);
    if outside {
        return Set::Outside;
    }
    let features =
        ["Proxy", "Reflect", "Reflect.construct", "generators", "async-functions", "async-iteration"];
    let words = ["Proxy", "Reflect", "enerator", "Async", "async"];
    let later = metadata.has_flag("async")
        || features.iter().any(|feature| metadata.has_feature(feature))
        || words.iter().any(|word| path.contains(word));
    if later { Set::A } else { Set::B }
}

/// Whether the text has the word `eval`.
pub(crate) fn mentions_eval(source: &str) -> bool {
    let part_of_name = |letter: Option<char>| letter.is_some_and(|l| l.is_alphanumeric() || l == '_');
    source.match_indices("eval").any(|(at, word)| {
        !part_of_name(source[..at].chars().next_back())
            && !part_of_name(source[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(path: &str, front_matter: &str, body: &str) -> Set {
        let source = format!("/*---\n{front_matter}\n---*/\n{body}");
        classify(path, &Metadata::parse(&source), &source)
    }

    #[test]
    fn sets_follow_flags_features_and_folders() {
        assert_eq!(set("language/a.js", "", "x"), Set::B);
        assert_eq!(set("language/a.js", "flags: [noStrict]", "x"), Set::Outside);
        assert_eq!(set("language/a.js", "flags: [async]", "x"), Set::A);
        assert_eq!(set("language/a.js", "features: [generators]", "x"), Set::A);
        assert_eq!(set("built-ins/Atomics/a.js", "", "x"), Set::Outside);
        assert_eq!(set("built-ins/TypedArrayConstructors/a.js", "", "x"), Set::B);
        assert_eq!(set("built-ins/Array/a.js", "", "x"), Set::B);
        assert_eq!(set("built-ins/Array/a.js", "features: [Uint8Array]", "x"), Set::B);
        assert_eq!(set("built-ins/Array/a.js", "features: [SharedArrayBuffer]", "x"), Set::Outside);
        assert_eq!(set("built-ins/ArrayBuffer/a.js", "features: [immutable-arraybuffer]", "x"), Set::Outside);
        assert_eq!(set("built-ins/Proxy/a.js", "", "x"), Set::A);
        assert_eq!(set("language/a.js", "", "(0, eval)('')"), Set::Outside);
        assert_eq!(set("language/a.js", "", "evaluate(medieval)"), Set::B);
    }
}
