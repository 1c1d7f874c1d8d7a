//! The code that `run` runs: an argument, stdin, or a file, and how it is sent to the supervisor.
//!
//! A file beneath the worktree is opened by the supervisor there, so that its relative imports work. Any other file is
//! read by this process, with the user's rights.

use crate::commands::exec::repl::new_execution;
use crate::error::{CliError, exit};
use crate::read::{read_file, read_stdin};
use crate::script_output::ShowValues;
use std::path::{Component, Path, PathBuf};
use vm_system_protocol::model::ExecutionKind;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    source: Source,
    argv: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Code(String),
    Stdin,
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
    /// With `-e` all positional arguments belong to the script.
    pub(super) fn from_args(
        eval: Option<&str>,
        file: Option<&str>,
        args: &[String],
    ) -> Result<Self, CliError> {
        let own = args.iter().cloned();
        match (eval, file) {
            (Some(code), first) => Ok(Self {
                source: Source::Code(code.to_owned()),
                argv: first.map(str::to_owned).into_iter().chain(own).collect(),
            }),
            (None, Some("-")) => Ok(Self { source: Source::Stdin, argv: own.collect() }),
            (None, Some(file)) => Ok(Self { source: Source::File(file.into()), argv: own.collect() }),
            (None, None) => Err(CliError::usage("a file, or code with -e, is missing")),
        }
    }

    pub(super) fn show_values(&self) -> ShowValues {
        match self.source {
            Source::Code(_) => ShowValues::Defined,
            Source::Stdin | Source::File(_) => ShowValues::Never,
        }
    }

    /// For a session whose worktree is `folder`.
    pub(super) fn for_folder(self, folder: &str) -> Result<Sent, CliError> {
        if let Source::File(file) = &self.source
            && let Some(path) = beneath(Path::new(folder), file)
        {
            // Reports a problem with the file under the name that the user gave.
            let refused = |error| CliError::file(file.display(), &error);
            let metadata = std::fs::metadata(file).map_err(refused)?;
            if metadata.is_dir() {
                return Err(CliError::new(exit::FAILED, format!("{} is a folder", file.display())));
            }
            // Not a named pipe, which would block until it has a writer.
            if metadata.is_file() {
                std::fs::File::open(file).map_err(refused)?;
            }
            return Ok(Sent { kind: ExecutionKind::RunFile, input: None, path: Some(path), argv: self.argv });
        }
        self.for_session()
    }

    /// For a session whose worktree is unknown: the content is sent.
    pub(super) fn for_session(self) -> Result<Sent, CliError> {
        let Self { source, argv } = self;
        let repl = |code| {
            let new = new_execution(String::new(), code);
            Sent { kind: new.kind, input: new.input, path: None, argv: argv.clone() }
        };
        match source {
            Source::Code(code) => Ok(repl(code)),
            Source::Stdin => Ok(repl(read_stdin()?)),
            Source::File(file) => {
                let text = read_file(&file)?;
                let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
                Ok(Sent { kind: ExecutionKind::RunFile, input: Some(text), path: name, argv })
            }
        }
    }
}

/// Whether a script has a line with `import` or `export`.
pub(super) fn is_module_by_mistake(file: &str) -> bool {
    let path = Path::new(file);
    let is_script = path.extension().is_some_and(|extension| extension == "js" || extension == "cjs");
    is_script
        && read_file(path).is_ok_and(|text| {
            let mut lines = text.lines().map(str::trim_start);
            lines.any(|line| ["import ", "import{", "export "].iter().any(|word| line.starts_with(word)))
        })
}

/// The file's path relative to the folder, if it is beneath the folder by its path text.
fn beneath(folder: &Path, file: &Path) -> Option<String> {
    let relative = if file.is_absolute() { file.strip_prefix(folder).ok()? } else { file };
    let mut parts = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => {
                parts.pop()?;
            }
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(file: &str) -> Option<String> {
        beneath(Path::new("/srv/tree"), Path::new(file))
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

    #[test]
    fn with_code_every_positional_argument_is_the_scripts() {
        let args = ["b".to_owned()];
        let script = Script::from_args(Some("1"), Some("a"), &args).unwrap();
        assert_eq!(script.argv, ["a", "b"]);
        assert_eq!(script.show_values(), ShowValues::Defined);
    }
}
