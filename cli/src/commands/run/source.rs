//! The code that `run` runs: an argument, stdin, or a file, and how it is sent to the supervisor.
//!
//! A file beneath the worktree is opened by the supervisor there, so that its relative imports work. Any other file is
//! read by this process, with the user's rights.

use crate::commands::exec::repl::new_execution;
use crate::error::{CliError, exit};
use crate::read::{read_file, read_stdin};
use crate::script_output::ShowValues;
use std::path::{Component, Path, PathBuf};
use vm_system_protocol::control::{ExecStart, TYPESCRIPT_INPUT};
use vm_system_protocol::model::ExecutionKind;
use vm_system_protocol::module_syntax::has_module_syntax;

/// The script to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    source: Source,
    typescript: bool,
    argv: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Code(String),
    Stdin(String),
    File(PathBuf),
}

/// A script in the form in which it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) kind: ExecutionKind,
    pub(super) input: Option<String>,
    pub(super) path: Option<String>,
    pub(super) argv: Vec<String>,
}

impl Script {
    /// `words`: the file and its arguments, or with code only arguments. The `--` that separates a file from its arguments is no
    /// argument.
    pub(super) fn from_args(
        eval: Option<String>,
        words: &[String],
        typescript: bool,
    ) -> Result<Self, CliError> {
        if let Some(code) = eval {
            return Ok(Self { source: Source::Code(code), typescript, argv: words.to_vec() });
        }
        let [file, rest @ ..] = words else {
            return Err(CliError::usage("a file, or code with -e, is missing"));
        };
        let argv = rest.strip_prefix(&["--".to_owned()][..]).unwrap_or(rest).to_vec();
        if file == "-" {
            return Ok(Self { source: Source::Stdin(read_stdin()?), typescript, argv });
        }
        if typescript {
            return Err(CliError::usage("--ts is for -e and for `-`: the name of a file says its kind")
                .with_hint("give the file the extension .ts"));
        }
        Ok(Self { source: Source::File(file.into()), typescript, argv })
    }

    /// The file, if it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Code(_) | Source::Stdin(_) => None,
        }
    }

    /// Whether the script itself was read from stdin, which is at its end then.
    pub(super) fn is_stdin(&self) -> bool {
        matches!(self.source, Source::Stdin(_))
    }

    /// The remedy for a syntax error if the text looks like a module or like TypeScript and runs as something else.
    pub(super) fn syntax_hint(&self) -> Option<&'static str> {
        let (text, file) = match &self.source {
            Source::Code(text) | Source::Stdin(text) => (text.clone(), None),
            Source::File(file) => (read_file(file).ok()?, Some(file)),
        };
        let is_script = file.is_none_or(|file| {
            file.extension()
                .is_none_or(|name| !["mjs", "mts", "ts", "tsx"].iter().any(|module| name == *module))
        });
        if is_script && has_module_syntax(&text) {
            return Some(match file {
                Some(_) => {
                    "hint: `import` and `export` are allowed only in modules, and this file is a script: rename it to .mjs or .ts"
                }
                None => {
                    "hint: `import` and `export` are allowed only in modules: write `await import(\"…\")` or `require(\"…\")`, \
                     give --ts, or run a .mjs file"
                }
            });
        }
        if is_script && text.contains("import.meta") {
            return Some("hint: `import.meta` is for modules: run a .mjs file");
        }
        let is_typed = looks_typed(&text);
        match file {
            None if is_typed && !self.typescript => Some("hint: if it is TypeScript, give --ts"),
            Some(_) if is_typed && is_script => {
                Some("hint: if it is TypeScript, give the file the extension .ts")
            }
            _ => None,
        }
    }

    pub(super) fn show_values(&self) -> ShowValues {
        match self.source {
            Source::Code(_) => ShowValues::Defined,
            Source::Stdin(_) | Source::File(_) => ShowValues::Never,
        }
    }

    /// For a session whose worktree is `folder`.
    pub(super) fn for_folder(self, folder: &str) -> Result<Sent, CliError> {
        if let Source::File(file) = &self.source
            && let Ok(current) = std::env::current_dir()
            && let Some(path) = beneath(Path::new(folder), &current.join(file))
        {
            check_readable(file)?;
            return Ok(Sent { kind: ExecutionKind::RunFile, input: None, path: Some(path), argv: self.argv });
        }
        self.for_session()
    }

    /// For a session whose worktree is unknown: the content is sent.
    pub(super) fn for_session(self) -> Result<Sent, CliError> {
        let Self { source, typescript, argv } = self;
        let repl = |code| {
            let ExecStart { kind, input, path, .. } =
                new_execution(String::new(), code, typescript.then_some(TYPESCRIPT_INPUT));
            Sent { kind, input, path, argv: argv.clone() }
        };
        match source {
            Source::Code(code) | Source::Stdin(code) => Ok(repl(code)),
            Source::File(file) => {
                let text = read_file(&file)?;
                let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
                Ok(Sent { kind: ExecutionKind::RunFile, input: Some(text), path: name, argv })
            }
        }
    }
}

/// Whether a text has words that TypeScript has and JavaScript has not.
pub(crate) fn looks_typed(text: &str) -> bool {
    let words = [": number", ": string", ": boolean", ": any", ": unknown", ": void"];
    // `import { a as b }` is JavaScript.
    let is_of_module = |line: &&str| line.starts_with("import") || line.starts_with("export {");
    has_line_of(text, &["interface ", "type ", "enum ", "declare "])
        || words.iter().any(|word| text.contains(word))
        || text
            .lines()
            .map(str::trim_start)
            .filter(|line| !is_of_module(line))
            .any(|line| line.contains(" as "))
}

/// Whether a line begins with one of these words.
fn has_line_of(text: &str, words: &[&str]) -> bool {
    text.lines().map(str::trim_start).any(|line| words.iter().any(|word| line.starts_with(word)))
}

/// Which folder a script can read. `outside`: a script that is not in it.
pub(super) fn folder_hint(folder: &str, outside: Option<&Path>) -> String {
    let reads = format!("hint: the script can read files and modules of {folder} only");
    let Some(own) = outside.and_then(Path::parent) else { return format!("{reads} (--worktree DIR)") };
    format!("{reads}; `--worktree {}` gives it its own folder instead", own.display())
}

/// Reports a problem with a file under the name that the user gave.
pub(crate) fn check_readable(file: &Path) -> Result<(), CliError> {
    let refused = |error| CliError::file(file.display(), &error);
    let metadata = std::fs::metadata(file).map_err(refused)?;
    if metadata.is_dir() {
        return Err(CliError::new(exit::FAILED, format!("{} is a folder", file.display())));
    }
    // Not a named pipe, which would block until it has a writer.
    if metadata.is_file() {
        std::fs::File::open(file).map_err(refused)?;
    }
    Ok(())
}

/// The path of a file, given from the root, relative to the folder, if it is beneath the folder by its path text.
pub(crate) fn beneath(folder: &Path, file: &Path) -> Option<String> {
    let mut whole = PathBuf::new();
    for component in file.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(whole.pop()),
            other => whole.push(other),
        }
    }
    let relative = whole.strip_prefix(folder).ok()?.to_str()?;
    (!relative.is_empty()).then(|| relative.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(file: &str) -> Option<String> {
        beneath(Path::new("/srv/tree"), &Path::new("/srv/tree").join(file))
    }

    #[test]
    fn files_of_the_worktree_are_named_relative_to_it() {
        assert_eq!(path("a/b.js").as_deref(), Some("a/b.js"));
        assert_eq!(path("./a/../b.js").as_deref(), Some("b.js"));
        assert_eq!(path("/srv/tree/x.ts").as_deref(), Some("x.ts"));
    }

    #[test]
    fn files_elsewhere_are_not() {
        for file in ["../x.js", "a/../../x.js", "/srv/other/x.js", "/srv/treehouse/x.js", ".", "/srv/tree"] {
            assert_eq!(path(file), None, "{file}");
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn with_code_every_word_is_an_argument() {
        let script = Script::from_args(Some("1".to_owned()), &words(&["a", "--", "b"]), false).unwrap();
        assert_eq!(script.argv, ["a", "--", "b"]);
        assert_eq!(script.show_values(), ShowValues::Defined);
    }

    #[test]
    fn one_separator_behind_a_file_is_dropped() {
        let argv = |given: &[&str]| Script::from_args(None, &words(given), false).unwrap().argv;
        assert_eq!(argv(&["f.js", "-e", "a", "--"]), ["-e", "a", "--"]);
        assert_eq!(argv(&["f.js", "--", "--", "a"]), ["--", "a"]);
        assert!(Script::from_args(None, &words(&["f.js"]), true).is_err(), "a file has its own kind");
    }
}
