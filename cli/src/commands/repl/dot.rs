//! The shell's own commands, which begin with a dot.

use super::input::Input;
use crate::context::Context;
use crate::error::CliError;
use crate::read::read_file;
use std::path::Path;
use vm_system_protocol::counted::counted;

/// A dot command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dot {
    Help,
    Exit,
    Load(String),
    Save(String),
    Editor,
    /// The answer to the pending task.
    Answer(String),
    /// Cancels the execution that waits.
    Cancel,
    Unknown(String),
}

const HELP: &str = "\
.answer TEXT  answer the task (CC) that is pending; so does a line at its prompt
.cancel       cancel the execution that waits for the answer
.editor       type or paste several lines; Ctrl-D runs them
.exit         leave (so does Ctrl-D)
.help         show this help
.load FILE    run the text of a file as input
.save FILE    write the inputs of this shell to a new file
_             the value of the last input
Tab           complete names, and the properties of variables
Ctrl-C        cancel the running code; while typing, drop the line
Incomplete input continues on the next line. Declarations are kept.
";

impl Dot {
    /// `None` where the input is JavaScript (`.5` is a number).
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let rest = text.strip_prefix('.')?;
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) || text.contains('\n') {
            return None;
        }
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some(match (name, argument.trim()) {
            ("help", _) => Self::Help,
            ("exit", _) => Self::Exit,
            ("editor", _) => Self::Editor,
            ("answer", text) => Self::Answer(text.to_owned()),
            ("cancel", _) => Self::Cancel,
            ("save", file) if !file.is_empty() => Self::Save(file.to_owned()),
            ("load", file) if !file.is_empty() => Self::Load(file.to_owned()),
            _ => Self::Unknown(text.to_owned()),
        })
    }

    /// Executes the command; returns code to run, if there is any.
    pub(super) fn perform(self, context: &Context, input: &mut Input) -> Result<Option<String>, CliError> {
        match self {
            Self::Help => context.out.write(HELP)?,
            Self::Exit => {}
            Self::Answer(_) | Self::Cancel => {
                CliError::usage("no task is pending").print(context.out.style);
            }
            Self::Save(file) => match input.write_inputs(Path::new(&file)) {
                Ok(count) => context.out.note(&format!("wrote {} to {file}", counted(count, "input"))),
                Err(error) => {
                    CliError::written_file(&file, &error).print(context.out.style);
                }
            },
            Self::Editor => return input.editor(),
            Self::Load(file) => match read_file(Path::new(&file)) {
                Ok(text) => return Ok(Some(text)),
                Err(error) => error.print(context.out.style),
            },
            Self::Unknown(what) => {
                CliError::usage(format!("unknown command `{what}`"))
                    .with_hint(".help lists the commands")
                    .print(context.out.style);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_commands_only_before_letters() {
        assert_eq!(Dot::parse(" .exit "), Some(Dot::Exit));
        assert_eq!(Dot::parse(".load a b.js"), Some(Dot::Load("a b.js".to_owned())));
        assert_eq!(Dot::parse(".load"), Some(Dot::Unknown(".load".to_owned())));
        assert_eq!(Dot::parse(".answer  two words "), Some(Dot::Answer("two words".to_owned())));
        assert_eq!(Dot::parse(".cancel"), Some(Dot::Cancel));
        assert_eq!(Dot::parse(".save a.js"), Some(Dot::Save("a.js".to_owned())));
        assert_eq!(Dot::parse(".5 + 1"), None);
        assert_eq!(Dot::parse("a.b"), None);
        assert_eq!(Dot::parse(".map(x)\n.filter(y)"), None);
    }
}
