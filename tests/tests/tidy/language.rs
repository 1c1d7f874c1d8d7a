//! Rules about sentences and names: a comment names its subject in its first word, a function's name has a verb or is a noun that says
//! of what, a private type's name is unique in its crate, and a parameter is no tuple of three. Knows no syntax beyond lines.

use super::tree::{SourceFile, Tree};
use std::collections::BTreeMap;

/// The file that has samples of violations, as text.
const SAMPLES: &str = "tests/tests/tidy/rules.rs";

/// Beginnings of a comment that name nothing. `Whether` is right for a truth value.
const NAMELESS: &[&str] =
    &["What ", "What'", "Whether ", "Those ", "That ", "Of one ", "So many ", "With ", "Its "];

/// Prepositions that are no name of a function.
const PREPOSITIONS: &[&str] = &[
    "after", "among", "at", "before", "behind", "beside", "between", "by", "in_", "into", "of", "on", "over",
    "since", "through", "to", "under", "until", "with", "within", "without",
];

/// Names of types that say nothing alone, and that several private types of a crate had.
const VAGUE: &[&str] = &[
    "Candidate",
    "Entry",
    "Finder",
    "Found",
    "Inner",
    "Machine",
    "Place",
    "Prepared",
    "Res",
    "Shared",
    "State",
    "Table",
];

/// Comments that begin with a pronoun, a preposition or a question.
pub(crate) fn nameless_comments(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| is_clean(file)) {
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let continues =
                index > 0 && comment(lines[index - 1]).is_some_and(|before| !before.trim().is_empty());
            let Some(text) = comment(line).filter(|_| !continues) else { continue };
            if !NAMELESS.iter().any(|begin| text.starts_with(begin)) {
                continue;
            }
            let rest = lines[index..].iter().skip_while(|line| comment(line).is_some());
            let item: Vec<&str> = rest.take(16).copied().collect();
            let is_help = item.first().is_some_and(|line| line.trim_start().starts_with("#[arg"));
            let is_condition = text.starts_with("Whether ") && is_truth_value(&item);
            if !is_help && !is_condition {
                found.push(format!("{}:{}: {:?} names no subject", file.path, index + 1, line.trim()));
            }
        }
    }
    found
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']);
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Whether the item that begins here is a field or constant of type `bool`, or a function that returns one.
fn is_truth_value(lines: &[&str]) -> bool {
    let code: Vec<&str> =
        lines.iter().copied().skip_while(|line| line.trim_start().starts_with("#[")).collect();
    let Some(first) = code.first() else { return false };
    if !first.contains("fn ") {
        return first.contains(": ") && first.to_lowercase().contains("bool");
    }
    let text = code.join(" ");
    let signature = text.split('{').next().unwrap_or_default();
    signature.split_once("->").is_some_and(|(_, returned)| returned.contains("bool"))
}

fn is_clean(file: &SourceFile) -> bool {
    file.path != SAMPLES
}

/// Functions that are a bare preposition. `with` of a builder, which takes and returns it, is a verb of its own.
pub(crate) fn prepositions(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| is_clean(file)) {
        for (number, line) in file.code_lines() {
            let name = line.split_once("fn ").and_then(|(before, rest)| {
                let is_word = before.is_empty() || before.ends_with([' ', '(']);
                rest.split(['(', '<']).next().filter(|_| is_word)
            });
            let is_builder = line.contains("fn with") && line.contains("(mut self");
            if let Some(name) = name.filter(|name| PREPOSITIONS.contains(name) && !is_builder) {
                found.push(format!("{}:{number}: a function is called `{name}`: of what?", file.path));
            }
        }
    }
    found
}

/// Vague names of types that a crate has more than once.
pub(crate) fn vague_types(tree: &Tree) -> Vec<String> {
    let mut defined: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for file in tree.rust().filter(|file| is_clean(file)) {
        let Some((package, _)) = file.path.split_once("/src/") else { continue };
        let first_of_tests = file.tests_from();
        for (number, line) in file.code_lines().filter(|(number, _)| *number < first_of_tests) {
            if let Some(name) = defined_type(line).filter(|name| VAGUE.contains(name)) {
                defined.entry((package, name)).or_default().push(format!("{}:{number}", file.path));
            }
        }
    }
    let repeated = defined.into_iter().filter(|(_, places)| places.len() > 1);
    repeated.map(|((_, name), places)| format!("{name} is defined in {}", places.join(" and in "))).collect()
}

/// The type that a line begins to define.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
    let keyword = words.next()?;
    let name = words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    ["struct", "enum", "trait"].contains(&keyword).then_some(name)
}

/// Parameters that are destructured tuples of three or more.
pub(crate) fn wide_tuples(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| is_clean(file)) {
        for (number, line) in file.code_lines() {
            // A parameter `(a, b, c): (A, B, C)`, on a line of its own or behind the name of the function.
            for (at, _) in line.match_indices("): (") {
                let pattern = line[..at].rsplit('(').next().unwrap_or_default();
                let is_let = line[..at].contains("let ") || line[..at].contains("const ");
                if pattern.matches(',').count() >= 2 && !is_let {
                    found.push(format!(
                        "{}:{number}: ({pattern}) is one parameter: a struct has names",
                        file.path
                    ));
                }
            }
        }
    }
    found
}
