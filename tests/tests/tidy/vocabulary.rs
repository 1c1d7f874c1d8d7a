//! Rules about words: the glossary of `docs/ARCHITECTURE.md` has one term for each concept. Knows no syntax beyond words and
//! the first line of a type's definition.

use super::tree::Tree;
use std::collections::BTreeMap;

/// The document with the glossary.
const GLOSSARY: &str = "docs/ARCHITECTURE.md";

/// Where the words and type names are checked.
const CHECKED: &[&str] = &[
    "cvm/",
    "broker/",
    "cli/src/",
    "protocol/",
    "sandbox/",
    "supervisor/api/",
    "supervisor/daemon/",
    "supervisor/ops/",
    "supervisor/runtime/",
    "supervisor/core/",
    "supervisor/policy/",
    "supervisor/record/",
    "supervisor/spawn/",
    "supervisor/store/",
    "worker/",
    "tests/",
    "testkit/",
    "benches/",
    "fuzz/",
    "docs/",
    "examples/",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// This file has the words that it bans.
const EXEMPT: &[&str] = &["tests/tests/tidy/vocabulary.rs"];

/// Words that this project once used for its concepts, in identifiers, comments and texts.
const BANNED: &[&str] = &[
    "asked",
    "asks",
    "bear",
    "bears",
    "birth",
    "births",
    "bore",
    "born",
    "buried",
    "door",
    "doors",
    "everybody",
    "hear",
    "heard",
    "hears",
    "heaviest",
    "liar",
    "liars",
    "newborn",
    "newborns",
    "offspring",
    "room",
    "rooms",
    "shelf",
    "shelves",
    "somebody",
    "speaking",
    "standing",
    "stands",
    "tell",
    "tells",
    "told",
    "unborn",
    "whom",
];

/// Banned words that are contracts: names and values of JSON fields, configuration keys, and code that mirrors them.
const CONTRACTS: &[(&str, &str)] = &[("cvm/src/builtins/string.rs", "stands")];

/// Type names that clap's derive expects in each file.
const REPEATED: &[&str] = &["Args", "Command"];

/// Uses of banned words.
pub(crate) fn banned_words(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_in(CHECKED) && !file.is_in(EXEMPT)) {
        let text = ["rs", "md", "sql", "toml"].iter().any(|end| file.name().ends_with(end));
        for (index, line) in file.text.lines().enumerate().filter(|_| text) {
            let banned = words(line).filter(|word| BANNED.contains(&word.as_str()));
            for word in banned.filter(|word| !CONTRACTS.contains(&(file.path.as_str(), word.as_str()))) {
                found.push(format!(
                    "{}:{} {word:?}: {GLOSSARY}, Glossary, has the term",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    found
}

/// Words of a line in lower case; `snake_case` and `CamelCase` are several.
fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_alphabetic()).flat_map(|run| {
        let mut words = vec![String::new()];
        let mut after_lower = false;
        for c in run.chars() {
            if c.is_uppercase() && after_lower {
                words.push(String::new());
            }
            after_lower = c.is_lowercase();
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
        words
    })
}

/// Names of types that are visible outside of their module and defined more than once.
pub(crate) fn repeated_types(tree: &Tree) -> Vec<String> {
    let mut defined: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in tree.rust().filter(|file| file.is_in(CHECKED) && file.path.contains("/src/")) {
        for (number, line) in file.code_lines() {
            if let Some(name) = public_type(line).filter(|name| !REPEATED.contains(name)) {
                defined.entry(name).or_default().push(format!("{}:{number}", file.path));
            }
        }
    }
    let repeated = defined.into_iter().filter(|(_, places)| places.len() > 1);
    repeated.map(|(name, places)| format!("{name} is defined in {}", places.join(" and in "))).collect()
}

/// The type that a line begins to define, if it is public in some way.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (keyword, rest) = rest.trim_start().split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    (["struct", "enum", "trait", "type", "union"].contains(&keyword) && !name.is_empty()).then_some(name)
}

/// Paths in the glossary's last column that do not exist.
pub(crate) fn lost_modules(tree: &Tree) -> Vec<String> {
    let Some(document) = tree.files.iter().find(|file| file.path == GLOSSARY) else { return Vec::new() };
    let glossary = document.text.lines().skip_while(|line| *line != "## Glossary");
    let rows = glossary.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit(" | ").next());
    let paths = rows.flat_map(|modules| modules.split('`').skip(1).step_by(2));
    let exists = |path: &str| {
        tree.files.iter().any(|file| {
            file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    paths.filter(|path| !exists(path)).map(|path| format!("{GLOSSARY}: there is no {path}")).collect()
}
