//! Rules about the form of code that no type enforces: errors have codes, queues have bounds, destructors kill nothing.

use super::tree::{SourceFile, Tree};

/// Places that read a text which another project, or an earlier release, has written, and which has no code.
const FOREIGN_TEXTS: &[(&str, &str)] = &[
    (
        "worker/src/engine/",
        "QuickJS has no codes: its messages become those of Node here, and nothing else is decided by them",
    ),
    ("protocol/src/input.rs", "serde has no codes: its messages are reworded here"),
    ("cvm/src/compiler/parse.rs", "the parser's diagnostics have no codes"),
    ("cli/src/entry.rs", "the messages of the parser of arguments are reworded here"),
    ("supervisor/api/src/mcp/http/errors.rs", "the messages of the protocol's library are reworded here"),
    (
        "cli/src/script_output.rs",
        "the number of `process.exit(N)` is in the message, and is shown; the mark of a cut text is a constant",
    ),
    ("inspect/src/error.rs", "the message of a script's error is shown, with what is missing in front of it"),
    ("supervisor/api/src/mcp/tools/evaluations.rs", "an `Error: ` in front of a message is not repeated"),
];

/// Modules of tests in files of their own.
const TEST_MODULES: &[&str] =
    &["egress/src/floods.rs", "egress/src/dns_floods.rs", "supervisor/core/src/simulation/"];

fn is_of_tests(file: &SourceFile) -> bool {
    TEST_MODULES.iter().any(|path| file.path.starts_with(path))
}

const TEXTS: &[&str] = &["message", "why", "what", "error", "failure", "cause", "explanation"];
const LOOKS: &[&str] =
    &["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "split_once", "find"];

/// Lines of production code that look for a fixed text in a message.
pub(super) fn read_messages(tree: &Tree) -> Vec<String> {
    let is_foreign = |file: &SourceFile| {
        is_of_tests(file) || FOREIGN_TEXTS.iter().any(|(path, _)| file.path.starts_with(path))
    };
    let files = tree.rust().filter(|file| file.path.contains("/src/") && !file.path.starts_with("tests/"));
    let mut found = Vec::new();
    for file in files.filter(|file| !is_foreign(file)) {
        let first = file.tests_from();
        for (number, line) in file.code_lines().filter(|(number, _)| *number < first) {
            if LOOKS.iter().any(|look| reads_message(line, look)) {
                found.push(format!("{}:{number} decides by a text: {}", file.path, line.trim()));
            }
        }
    }
    found
}

/// Whether a line has `message.contains("…")`, also with a constant, or of `message()` or `message.to_string()`.
fn reads_message(line: &str, look: &str) -> bool {
    let call = format!(".{look}(");
    line.match_indices(&call).any(|(at, _)| {
        let text = line[at + call.len()..].trim_start_matches('&');
        let is_fixed = text.starts_with('"') || text.starts_with(|c: char| c.is_ascii_uppercase());
        let mut of = &line[..at];
        for end in [".as_str()", ".to_string()", "()"] {
            of = of.strip_suffix(end).unwrap_or(of);
        }
        let name = of.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        is_fixed && TEXTS.contains(&name)
    })
}

/// Destructors that kill a process or start a task.
pub(super) fn killing_destructors(tree: &Tree) -> Vec<String> {
    let ways = [
        concat!(".ki", "ll("),
        ".end()",
        concat!("order_shut", "down"),
        "tokio::spawn",
        ".tasks().spawn(",
        ".signal(",
    ];
    let mut found = Vec::new();
    for file in tree
        .rust()
        .filter(|file| file.is_in(&["supervisor/", "cli/src", "worker/src", "broker/src", "egress/src"]))
    {
        let first = file.tests_from();
        let mut is_inside = false;
        for (number, line) in file.code_lines().filter(|(number, _)| *number < first) {
            is_inside = (is_inside && !line.starts_with('}'))
                || (line.starts_with("impl") && line.contains("Drop for "));
            if is_inside && ways.iter().any(|way| line.contains(way)) {
                found.push(format!("{}:{number} {}", file.path, line.trim()));
            }
        }
    }
    found
}

/// Queues that grow without a bound.
pub(super) fn unbounded_queues(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| file.path.contains("/src/") && !is_of_tests(file)) {
        let first = file.tests_from();
        let lines = file.code_lines().filter(|(number, _)| *number < first);
        for (number, _) in lines.filter(|(_, line)| line.contains(concat!("unbounded_", "channel"))) {
            found.push(format!("{}:{number} makes a queue without a bound", file.path));
        }
    }
    found
}
