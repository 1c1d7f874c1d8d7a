//! The table of rules. Words that a rule looks for are concatenated here, so that this file does not break the rule.

use super::tree::{SourceFile, Tree};
use super::{decisions, habits, language, manifests, vocabulary};

/// One rule.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// The violations, one line each.
    pub(crate) check: fn(&Tree) -> Vec<String>,
    /// Files with one violation each.
    pub(crate) bad: &'static [(&'static str, &'static str)],
    /// Files without a violation.
    pub(crate) good: &'static [(&'static str, &'static str)],
}

const LINES_OF_A_FILE: usize = 600;
const LINES_OF_A_MAP: usize = 80;

/// All rules.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "every Rust file begins with a module header",
        check: |tree| {
            let silent = tree.rust().filter(|file| !file.text.starts_with("//!"));
            silent.map(|file| format!("{} does not begin with //!", file.path)).collect()
        },
        bad: &[("a/src/x.rs", "use std::io;\n"), ("a/src/y.rs", "\n//! late\n")],
        good: &[("a/src/x.rs", "//! Owns x.\n"), ("a/x.md", "text")],
    },
    Rule {
        name: "unchecked code is in files called sys.rs",
        check: |tree| words(tree, &[""], &[], &[concat!("un", "safe")], |file| file.name() == "sys.rs"),
        bad: &[("a/src/x.rs", concat!("fn f() { un", "safe { g() } }"))],
        good: &[
            ("a/src/sys.rs", concat!("un", "safe { g() }")),
            ("a/src/x.rs", concat!("// un", "safe in a comment")),
            ("a/src/x.rs", concat!("#![deny(un", "safe_code)]")),
        ],
    },
    Rule {
        name: "one file uses the codec's library",
        check: |tree| words(tree, &[""], &["protocol/src/codec.rs"], &[concat!("bin", "code")], no_exception),
        bad: &[("worker/src/x.rs", concat!("use bin", "code::encode;"))],
        good: &[("protocol/src/codec.rs", concat!("use bin", "code::encode;"))],
    },
    Rule {
        name: "only the store and the broker's database know SQLite's library",
        check: |tree| {
            let folders = &["supervisor/store/src", "supervisor/store/tests", "broker/src/database"];
            words(tree, &[""], folders, &[concat!("rusq", "lite")], no_exception)
        },
        bad: &[("supervisor/ops/src/x.rs", concat!("use rusq", "lite::Connection;"))],
        good: &[("supervisor/store/src/sqlite.rs", concat!("use rusq", "lite::Connection;"))],
    },
    Rule {
        name: "only sandbox uses seccomp and Landlock",
        check: |tree| {
            let calls = &[
                concat!("SYS_", "seccomp"),
                concat!("SYS_", "landlock_create_ruleset"),
                concat!("SYS_", "landlock_restrict_self"),
                concat!("PR_SET_", "SECCOMP"),
                concat!("sock_", "filter"),
                concat!("seccomp", "iler"),
                concat!("libsec", "comp"),
            ];
            // The escape suite tries the forbidden calls; a tracer needs an action that no product has.
            let others = &["sandbox/", "tests/src/escape/", "tests/src/bin/without_user_namespaces/"];
            words(tree, &[""], others, calls, no_exception)
        },
        bad: &[("worker/src/x.rs", concat!("libc::SYS_", "seccomp"))],
        good: &[
            ("sandbox/src/sys.rs", concat!("libc::SYS_", "seccomp")),
            ("worker/src/x.rs", "vm_system_sandbox::seccomp::install(TABLE)"),
        ],
    },
    Rule {
        name: "in the supervisor only spawn creates processes",
        check: |tree| {
            // The system call `fork`, not the verb.
            let ways = &[
                "Command::new",
                "posix_spawn",
                "libc::fork",
                "libc::clone",
                "unistd::fork",
                "process::fork",
                "fork_sibling",
                "process::spawn",
                "tokio::process",
            ];
            phrases(tree, &["supervisor/"], &["supervisor/spawn/src"], ways)
        },
        bad: &[
            ("supervisor/ops/src/x.rs", "std::process::Command::new(\"ls\")"),
            ("supervisor/ops/src/x.rs", "process::fork()"),
        ],
        good: &[
            ("supervisor/spawn/src/x.rs", "process::spawn(program)"),
            ("supervisor/ops/src/x.rs", "tokio::spawn(async {})"),
            ("supervisor/ops/src/x.rs", "self.session_fork(call)"),
        ],
    },
    Rule {
        name: "the supervisor's core has no runtime, no clock, no I/O",
        check: |tree| {
            let outside = &[
                "tokio",
                "Instant::now",
                "SystemTime",
                "std::fs",
                "std::net",
                "std::env",
                "std::thread",
                "std::process",
                "std::os",
                "nix::",
                "libc::",
                "tracing",
            ];
            phrases(tree, &["supervisor/core/src"], &[], outside)
        },
        bad: &[
            ("supervisor/core/src/x.rs", "use tokio::sync::mpsc;"),
            ("supervisor/core/src/lib.rs", "let now = Instant::now();"),
        ],
        good: &[
            ("supervisor/runtime/src/x.rs", "use tokio::sync::mpsc;"),
            ("supervisor/core/src/x.rs", "pub fn step(&mut self, event: Event, now: Millis) -> Vec<Action>"),
        ],
    },
    Rule {
        name: "protocol, inspect, web and cvm have no I/O, no clock, no processes",
        check: |tree| {
            let outside = &[
                "std::fs",
                "std::net",
                "std::thread",
                "std::process",
                "Instant::now",
                "SystemTime",
                "std::env::",
            ];
            // Tests of private items, which they compare with files of the repository.
            let allowed = &["cvm/src/builtins/generations/tests.rs", "cvm/src/liveness/tests.rs"];
            phrases(tree, &["protocol/src/", "inspect/src/", "web/src/", "cvm/src/"], allowed, outside)
        },
        bad: &[("cvm/src/x.rs", "std::fs::read(path)"), ("protocol/src/x.rs", "SystemTime::now()")],
        good: &[("worker/src/x.rs", "std::fs::read(path)"), ("cvm/tests/x.rs", "std::fs::read(path)")],
    },
    Rule {
        name: "only the crates that exist for a library depend on it",
        check: manifests::libraries,
        bad: &[
            ("supervisor/ops/Cargo.toml", concat!("[dependencies]\nrusq", "lite.workspace = true")),
            ("supervisor/core/Cargo.toml", "[dependencies]\ntokio.workspace = true"),
            ("supervisor/ops/Cargo.toml", "[dependencies]\naxum.workspace = true"),
        ],
        good: &[
            ("supervisor/store/Cargo.toml", concat!("[dependencies]\nrusq", "lite.workspace = true")),
            ("supervisor/api/Cargo.toml", "[dependencies]\naxum.workspace = true"),
            ("supervisor/core/Cargo.toml", "[dev-dependencies]\nproptest.workspace = true"),
        ],
    },
    Rule {
        name: "dependencies are those of the architecture",
        check: manifests::arrows,
        bad: &[
            ("supervisor/spawn/Cargo.toml", "[dependencies]\nvm-system-worker.workspace = true"),
            ("supervisor/core/Cargo.toml", "[dependencies]\nvm-system-store.workspace = true"),
            ("cvm/Cargo.toml", "[dependencies]\nvm-system-protocol.workspace = true"),
            ("protocol/Cargo.toml", "[dev-dependencies]\nvm-system-sandbox.workspace = true"),
            ("worker/Cargo.toml", "[dependencies]\nvm-system-testkit.workspace = true"),
            ("newroom/Cargo.toml", "[package]\nname = \"vm-system-newroom\""),
        ],
        good: &[
            ("supervisor/core/Cargo.toml", "[dependencies]\nvm-system-protocol.workspace = true"),
            ("tests/Cargo.toml", "[dependencies]\nvm-system-worker.workspace = true"),
            ("sandbox/Cargo.toml", "[dev-dependencies]\nvm-system-testkit.workspace = true"),
        ],
    },
    Rule {
        name: "what is jailed has no runtime, parser of arguments, web server or database in its tree",
        check: manifests::jailed_trees,
        bad: &[("worker/Cargo.toml", "[dependencies]\ntokio.workspace = true")],
        good: &[
            ("worker/Cargo.toml", "[dependencies]\nlibc.workspace = true"),
            ("supervisor/runtime/Cargo.toml", "[dependencies]\ntokio.workspace = true"),
        ],
    },
    Rule {
        name: "the data of Intl's formatters are in the blob alone",
        check: manifests::tables_of_formatters,
        bad: &[("Cargo.lock", "[[package]]\nname = \"icu_list_data\"\nversion = \"2.2.0\"")],
        good: &[("Cargo.lock", "[[package]]\nname = \"icu_list\"\nversion = \"2.2.0\"")],
    },
    Rule {
        name: "every crate is under the workspace's lints",
        check: manifests::lints,
        bad: &[("sandbox/Cargo.toml", "[package]\nname = \"x\"")],
        good: &[("sandbox/Cargo.toml", "[package]\nname = \"x\"\n[lints]\nworkspace = true")],
    },
    Rule {
        name: "examples in comments are no tests, which nothing would run",
        check: |tree| {
            let mut found = manifests::doctests(tree);
            for file in tree.rust() {
                // The language of a block behind its opening fence; without one it is Rust.
                let mut inside = false;
                for line in file.text.lines() {
                    let comment = line.trim_start();
                    let Some(text) = comment.strip_prefix("//!").or_else(|| comment.strip_prefix("///"))
                    else {
                        inside = false;
                        continue;
                    };
                    let Some(language) = text.trim_start().strip_prefix("```") else { continue };
                    if !inside
                        && ["", "rust", concat!("should_", "panic"), "no_run"].contains(&language.trim())
                    {
                        found.push(format!("{}: a block of Rust in a comment", file.path));
                    }
                    inside = !inside;
                }
            }
            found
        },
        bad: &[
            ("a/src/x.rs", "//! ```\n//! f();\n//! ```\n"),
            ("a/src/x.rs", "/// ```rust\n/// f();\n/// ```\n"),
        ],
        good: &[("a/src/x.rs", "//! ```text\n//! a picture\n//! ```\n")],
    },
    Rule {
        name: "files can be read in one sitting",
        check: |tree| {
            let long = tree.rust().filter_map(|file| {
                let lines = file.text.lines().count();
                let map = file.path.ends_with("/src/lib.rs");
                let most = if map { LINES_OF_A_MAP } else { LINES_OF_A_FILE };
                (lines > most).then(|| format!("{} has {lines} lines, at most {most}", file.path))
            });
            long.collect()
        },
        bad: &[("a/src/lib.rs", include_str!("rules.rs"))],
        good: &[("a/src/rules.rs", include_str!("rules.rs"))],
    },
    Rule {
        name: "nothing is left for later",
        check: |tree| {
            let markers = &[
                concat!("to", "do!("),
                concat!("unimple", "mented!("),
                concat!("#[ig", "nore"),
                concat!("FIX", "ME"),
            ];
            phrases(tree, &[""], &[], markers)
        },
        bad: &[("a/src/x.rs", concat!("to", "do!()")), ("a/tests/x.rs", concat!("#[ig", "nore]\nfn x() {}"))],
        good: &[("a/src/x.rs", "fn x() {}")],
    },
    Rule {
        name: "tests wait for events and not for time",
        check: sleeping_tests,
        bad: &[
            ("a/tests/x.rs", concat!("std::thread::sl", "eep(second)")),
            ("a/src/x.rs", concat!("fn x() {}\n#[cfg(test)]\nmod tests { tokio::time::sl", "eep(s) }")),
            ("a/tests/x.rs", concat!("#[should_", "panic]")),
        ],
        good: &[
            ("a/src/x.rs", concat!("tokio::time::sl", "eep(deadline).await")),
            ("a/tests/x.rs", "events.next()"),
        ],
    },
    Rule {
        // On Linux 6.18 it starves other processes, even those with a pending SIGKILL (`tests/src/watch.rs`).
        name: "no loop yields the processor",
        check: |tree| {
            phrases(tree, &[""], &[], &[concat!("thread::yield", "_now"), concat!("sched_yield", "(")])
        },
        bad: &[("a/tests/x.rs", concat!("while !so() { std::thread::yield", "_now() }"))],
        good: &[("a/tests/x.rs", "watch::wait_until(so, otherwise)"), ("a/src/x.rs", "SYS_sched_yield,")],
    },
    Rule {
        name: "words are those of the glossary",
        check: vocabulary::banned_words,
        bad: &[
            ("cvm/src/x.rs", concat!("// as the caller was to", "ld\n")),
            ("cvm/src/x.rs", concat!("struct Newb", "ornKind;\n")),
            ("broker/src/x.rs", concat!("fn sh", "elf_path() {}\n")),
            ("docs/javascript.md", concat!("a Do", "or\n")),
        ],
        good: &[
            ("cvm/src/x.rs", "// Authorization: Bearer\nlet outdoors = bedroom;\n"),
            ("cvm/tests/lang/x.js", concat!("print('to", "ld')\n")),
        ],
    },
    Rule {
        name: "the name of a public type is unique in the workspace",
        check: vocabulary::repeated_types,
        bad: &[("cvm/src/x.rs", "pub struct Page;\nmod y {\n    pub(crate) enum Page<'a> {}\n}\n")],
        good: &[
            ("cvm/src/x.rs", "pub struct Page;\nstruct Page2;\nimpl Page {}\nmod y { use super::Page; }\n"),
            ("cvm/src/x.rs", "pub struct Args;\nmod y {\n    pub struct Args;\n}\n"),
        ],
    },
    Rule {
        name: "a comment names its subject in its first words",
        check: language::nameless_comments,
        bad: &[
            ("cvm/src/x.rs", "/// What it holds.\nstruct Heap;\n"),
            ("cvm/src/x.rs", "fn f() {\n    // With the lock.\n    g();\n}\n"),
            ("cvm/src/x.rs", "//! Owns x.\n\n/// Whether it may.\nfn check() -> Result<(), E> {\n"),
        ],
        good: &[
            ("cvm/src/x.rs", "/// The cells of a state.\n/// With them come their ids.\nstruct Heap;\n"),
            ("cvm/src/x.rs", "/// Whether it may.\nfn may(\n    a: u8,\n) -> bool {\n"),
            ("cvm/src/x.rs", "struct S {\n    /// Whether it may.\n    may: bool,\n}\n"),
        ],
    },
    Rule {
        name: "a function's name is more than a preposition",
        check: language::prepositions,
        bad: &[("cvm/src/x.rs", "pub(crate) fn of(owner: &str) -> u8 {\n")],
        good: &[("cvm/src/x.rs", "fn limits_of(owner: &str) {}\nlet f: fn (u8) = of;\n")],
    },
    Rule {
        name: "a vague name of a type is unique in its crate",
        check: language::vague_types,
        bad: &[("cvm/src/x.rs", "struct Inner {\n}\nmod y {\n    pub(super) struct Inner;\n}\n")],
        good: &[(
            "cvm/src/x.rs",
            "struct Inner;\nimpl Inner {}\n#[cfg(test)]\nmod tests { struct Inner; }\n",
        )],
    },
    Rule {
        name: "a parameter is no tuple of three",
        check: language::wide_tuples,
        bad: &[("cvm/src/x.rs", "fn f((a, b, c): (u8, u8, u8)) {}\n")],
        good: &[("cvm/src/x.rs", "fn f((a, b): (u8, u8)) {}\nlet (a, b, c): (u8, u8, u8) = g();\n")],
    },
    Rule {
        name: "the glossary's modules exist",
        check: vocabulary::lost_modules,
        bad: &[(
            "docs/ARCHITECTURE.md",
            "## Glossary\n\n| term | meaning | where |\n|---|---|---|\n| a | b | `c/d` |\n",
        )],
        good: &[("docs/ARCHITECTURE.md", "| a | b | `c/d` |\n\n## Glossary\n\n| a | `b` | `docs` |\n")],
    },
    Rule {
        name: "records of decisions have a status, and those that are cited exist",
        check: decisions::lost_records,
        bad: &[
            ("docs/decisions/010-callers-over-loopback.md", "# 010: x\n"),
            (
                "docs/decisions/010-callers-over-loopback.md",
                concat!("Status: accepted.\n\nas (", "002) says\n"),
            ),
            ("cvm/src/x.rs", concat!("// for the reason of deci", "sion 999\n")),
            ("docs/x.md", concat!("see `docs/deci", "sions/999`\n")),
        ],
        good: &[
            (
                "docs/decisions/010-callers-over-loopback.md",
                concat!("# 010: x\n\nStatus: given.\n\n[010](deci", "sions/010-callers-over-loopback.md)\n"),
            ),
            ("docs/x.md", "`docs/decisions/`, the decision 3 times\n"),
        ],
    },
    Rule {
        name: "no folder of a builder and no registry is named",
        check: |tree| {
            tree.files.iter().filter(|file| file.name() != "Cargo.lock").flat_map(personal_paths).collect()
        },
        bad: &[
            ("README.md", concat!("see /ro", "ot/.cargo")),
            ("x.toml", concat!("url = \"https://index.cra", "tes.io\"")),
        ],
        good: &[("a/src/x.rs", "/proc/1/root/x"), ("README.md", "/abs/worktree and $HOME/x")],
    },
    Rule {
        name: "errors are distinguished by codes and not by their texts",
        check: habits::read_messages,
        bad: &[
            ("a/src/x.rs", "if error.message.contains(\"not found\") {}"),
            ("a/src/x.rs", "if why.starts_with(NO_USER) {}"),
            ("a/src/x.rs", "if error.to_string().contains(\"crc\") {}"),
        ],
        good: &[
            ("a/src/x.rs", "if error.code == NO_USER {}"),
            ("a/src/x.rs", "if text.starts_with(\"./\") {}"),
            ("a/tests/x.rs", "assert!(message.contains(\"x\"));"),
        ],
    },
    Rule {
        name: "nothing is killed from a destructor",
        check: habits::killing_destructors,
        bad: &[(
            "supervisor/a/src/x.rs",
            concat!("impl Drop for X {\n    fn drop(&mut self) {\n        self.0.ki", "ll();\n    }\n}\n"),
        )],
        good: &[(
            "supervisor/a/src/x.rs",
            concat!("impl Drop for X {\n    fn drop(&mut self) {}\n}\n\nfn f() {\n    x.ki", "ll();\n}\n"),
        )],
    },
    Rule {
        name: "every queue has a bound",
        check: habits::unbounded_queues,
        bad: &[("a/src/x.rs", concat!("let (a, b) = mpsc::unbounded_", "channel();"))],
        good: &[("a/src/x.rs", "let (a, b) = mpsc::channel(8);")],
    },
    Rule {
        name: "a test that cannot run is skipped through the testkit",
        check: |tree| {
            let folders = ["testkit", "benches", "tests/tests/tidy"];
            phrases(tree, &[""], &folders, &[concat!("\"SKIP", "PED")])
        },
        bad: &[("a/src/x.rs", concat!("println!(\"SKIP", "PED: no curl\")"))],
        good: &[("a/src/x.rs", "skip(\"curl\", \"no curl\")")],
    },
];

fn no_exception(_: &SourceFile) -> bool {
    false
}

/// Places in `folders`, outside of `allowed`, where code has one of these words as a whole word.
fn words(
    tree: &Tree,
    folders: &[&str],
    allowed: &[&str],
    words: &[&str],
    exception: fn(&SourceFile) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| file.is_in(folders) && !file.is_in(allowed) && !exception(file)) {
        for (number, line) in file.code_lines() {
            let mut parts = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(word) = parts.find(|part| words.contains(part)) {
                found.push(format!("{}:{number} names {word}", file.path));
            }
        }
    }
    found
}

/// Places in `folders`, outside of `allowed`, where code contains one of these.
fn phrases(tree: &Tree, folders: &[&str], allowed: &[&str], phrases: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| file.is_in(folders) && !file.is_in(allowed)) {
        for (number, line) in file.code_lines() {
            if let Some(phrase) = phrases.iter().find(|phrase| line.contains(**phrase)) {
                found.push(format!("{}:{number} has {phrase}", file.path));
            }
        }
    }
    found
}

fn sleeping_tests(tree: &Tree) -> Vec<String> {
    let ways = [
        concat!("thread::sl", "eep"),
        concat!("time::sl", "eep"),
        concat!("let_", "pass("),
        concat!("should_", "panic"),
    ];
    let mut found = Vec::new();
    for file in tree.rust() {
        let first = file.tests_from();
        for (number, line) in file.code_lines().filter(|(number, _)| *number >= first) {
            if ways.iter().any(|way| line.contains(way)) {
                found.push(format!("{}:{number} {}", file.path, line.trim()));
            }
        }
    }
    found
}

fn personal_paths(file: &SourceFile) -> Vec<String> {
    let home = concat!("/ro", "ot/");
    let hosts =
        [concat!("index.cra", "tes.io"), concat!("static.cra", "tes.io"), concat!(".cargo/reg", "istry")];
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let own_path = line.match_indices(home).any(|(at, _)| {
            // `/proc/1/root/` is no home folder.
            !line[..at]
                .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.' | '}' | '>'))
        });
        if own_path || hosts.iter().any(|host| line.contains(host)) {
            found.push(format!("{}:{} {}", file.path, index + 1, line.trim()));
        }
    }
    found
}
