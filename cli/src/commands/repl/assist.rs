//! Help while typing: continuation of incomplete input, and completion of names.
//!
//! Names are those of the language, those that were declared in this shell, and properties, which an execution in the
//! session finds (`properties`).

use super::complete_input::is_incomplete;
use super::properties::Properties;
use rustyline::Context;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use std::collections::BTreeSet;

/// Globals of the language and of the runtime, and their most frequent properties.
const NAMES: &[&str] = &[
    "Array",
    "Array.from",
    "Array.isArray",
    "ArrayBuffer",
    "BigInt",
    "Boolean",
    "DataView",
    "Date",
    "Date.now",
    "Error",
    "Float64Array",
    "Infinity",
    "Int32Array",
    "JSON",
    "JSON.parse",
    "JSON.stringify",
    "Map",
    "Math",
    "Math.abs",
    "Math.ceil",
    "Math.floor",
    "Math.max",
    "Math.min",
    "Math.random",
    "Math.round",
    "Math.sqrt",
    "NaN",
    "Number",
    "Number.isInteger",
    "Number.parseFloat",
    "Object",
    "Object.assign",
    "Object.entries",
    "Object.freeze",
    "Object.fromEntries",
    "Object.keys",
    "Object.values",
    "Promise",
    "Promise.all",
    "Promise.resolve",
    "Proxy",
    "RangeError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "String.raw",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "Uint8Array",
    "WeakMap",
    "WeakSet",
    "args",
    "async",
    "await",
    "class",
    "clearTimeout",
    "console",
    "console.debug",
    "console.error",
    "console.info",
    "console.log",
    "console.warn",
    "const",
    "delete",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "function",
    "globalThis",
    "import",
    "instanceof",
    "isFinite",
    "isNaN",
    "null",
    "parseFloat",
    "parseInt",
    "process",
    "process.argv",
    "process.env",
    "require",
    "require(\"fs\")",
    "return",
    "setTimeout",
    "static",
    "super",
    "switch",
    "throw",
    "true",
    "typeof",
    "undefined",
    "while",
    "yield",
];

/// Dot commands.
const DOTS: &[&str] = &[".answer", ".cancel", ".editor", ".exit", ".help", ".load", ".save"];

/// Most names that are remembered for completion, so that generated input cannot fill the memory.
const LEARNED: usize = 10_000;

/// Completes names and detects incomplete input.
pub(super) struct Assist {
    declared: BTreeSet<String>,
    properties: Properties,
    /// The next line is an answer, which is complete as it is.
    pub(super) expects_answer: bool,
}

impl Assist {
    pub(super) fn new(properties: Properties) -> Self {
        Self { declared: BTreeSet::new(), properties, expects_answer: false }
    }

    /// Remembers names that the input declares.
    pub(super) fn learn(&mut self, text: &str) {
        let mut words = text.split(|c: char| !is_name(c)).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            if matches!(word, "var" | "let" | "const" | "function" | "class")
                && let Some(name) = words.next()
                && self.declared.len() < LEARNED
                && !name.starts_with(|c: char| c.is_ascii_digit())
            {
                self.declared.insert(name.to_owned());
            }
        }
    }

    /// The start of the word before `position`, and its completions.
    fn candidates(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = line.get(..position).unwrap_or(line);
        let start = before
            .rfind(|c: char| !is_name(c) && c != '.')
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        if word.is_empty() {
            return (start, Vec::new());
        }
        let dots = DOTS.iter().filter(|_| start == 0).copied();
        let known = NAMES.iter().copied().chain(dots).filter(|name| name.starts_with(word));
        let declared = self.declared.iter().map(String::as_str).filter(|name| name.starts_with(word));
        let mut candidates: Vec<String> = known.chain(declared).map(str::to_owned).collect();
        candidates.sort();
        if let Some((object, name)) = word.rsplit_once('.') {
            // Own properties first; those that nobody wants unless they begin to type them are left out.
            let is_wanted = |property: &String| {
                property.starts_with(name) && (!property.starts_with("__") || name.starts_with('_'))
            };
            let found = self.properties.names_of(object).into_iter().filter(is_wanted);
            candidates.extend(found.map(|property| format!("{object}.{property}")));
        }
        let mut seen = BTreeSet::new();
        candidates.retain(|candidate| seen.insert(candidate.clone()));
        (start, candidates)
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

impl Completer for Assist {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(line, pos))
    }
}

impl Validator for Assist {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let incomplete = !self.expects_answer && is_incomplete(context.input());
        Ok(if incomplete { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Assist {
    type Hint = String;
}
impl Highlighter for Assist {}
impl rustyline::Helper for Assist {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_language_and_of_this_shell_are_completed() {
        let mut assist = Assist::new(Properties::none());
        assist.learn("const total = 1; function tally() {}\nclass Töne {}");
        assert_eq!(assist.candidates("x = Math.ro", 11), (4, vec!["Math.round".to_owned()]));
        assert_eq!(assist.candidates("ta", 2), (0, vec!["tally".to_owned()]));
        assert_eq!(assist.candidates("é(Tö", 6), (3, vec!["Töne".to_owned()]));
        assert_eq!(assist.candidates(".lo", 3), (0, vec![".load".to_owned()]));
        assert_eq!(assist.candidates("f(", 2), (2, Vec::new()));
    }
}
