//! Answers for the tasks of a program: from a file, or typed on the terminal.

use crate::context::Context;
use crate::error::CliError;
use crate::output::escape;
use crate::read::{read_file, read_line};
use crate::signals::Interrupts;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::Path;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::input::{json_for_script, not_json};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::Task;

/// The source of answers.
pub(super) enum Answers {
    /// No answers.
    None,
    /// From a file, in order.
    File(VecDeque<GivenAnswer>),
    /// Typed on the terminal.
    Terminal(Interrupts),
}

/// The result of requesting an answer.
pub(super) enum Next {
    /// The answer.
    Answer(GivenAnswer),
    /// No more answers.
    None,
    /// Ctrl-C.
    Interrupted,
}

impl Answers {
    /// Reads a file: a JSON array of JSON values, otherwise one line per answer, as entered on a terminal. A text that begins
    /// like an array and is invalid is refused, because an answer cannot be undone.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let text = read_file(path)?;
        let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        let list = match serde_json::from_str::<Vec<&RawValue>>(&text) {
            Ok(values) => {
                let json = |value: &RawValue| json_for_script(value.get());
                let values: Result<Vec<_>, String> = values.into_iter().map(json).collect();
                let values = values.map_err(|why| CliError::unfit(format!("{}: {why}", path.display())))?;
                values.iter().map(|value| GivenAnswer::Json(JsonText::from_value(value))).collect()
            }
            Err(error) if text.trim_start().starts_with('[') && !text.lines().next().is_some_and(is_json) => {
                return Err(CliError::unfit(format!("{}: {}", path.display(), not_json(&error))).with_hint(
                    "to answer with a text that begins with `[`, put it into a JSON array, as \"[…\"",
                ));
            }
            Err(_) => text.lines().map(|line| GivenAnswer::Typed(line.to_owned())).collect(),
        };
        Ok(Self::File(list))
    }

    /// The answer to a task.
    pub(super) async fn next(&mut self, context: &Context, task: &Task) -> Result<Next, CliError> {
        match self {
            Self::None => Ok(Next::None),
            Self::File(list) => Ok(list.pop_front().map_or(Next::None, Next::Answer)),
            Self::Terminal(interrupts) => {
                show(context, task);
                let next = type_answer(interrupts).await?;
                if matches!(next, Next::None) {
                    // The following output does not belong on the prompt's line.
                    context.out.note("");
                }
                Ok(next)
            }
        }
    }

    /// Waits for Ctrl-C if answers are typed, else forever.
    pub(super) async fn interrupted(&self) {
        match self {
            Self::Terminal(interrupts) => interrupts.next().await,
            Self::None | Self::File(_) => std::future::pending().await,
        }
    }

    /// Says how many answers of a file nobody needed.
    pub(super) fn note_unused(&self, context: &Context) {
        if let Self::File(left) = self {
            let count = left.len();
            context.out.note(&format!("note: the program has ended; unused answers of the file: {count}"));
        }
    }

    /// Whether more answers may follow.
    pub(super) fn may_be_more(&self) -> bool {
        match self {
            Self::None => false,
            Self::File(left) => !left.is_empty(),
            Self::Terminal(_) => true,
        }
    }
}

fn show(context: &Context, task: &Task) {
    let mut stderr = io::stderr().lock();
    let prompt = escape::for_terminal(&task.prompt);
    // If the prompt cannot be written, reading the answer fails too, with an error.
    let _ = writeln!(stderr, "{prompt}");
    if let Some(schema) = &task.schema
        && !context.out.quiet
    {
        let _ = writeln!(stderr, "(JSON that matches {})", escape::for_terminal(schema.as_str()));
    }
    let _ = write!(stderr, "> ");
    let _ = stderr.flush();
}

/// A line of the terminal. The thread that reads it ends with the process: a read cannot be cancelled.
async fn type_answer(interrupts: &Interrupts) -> Result<Next, CliError> {
    let (sender, line) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let read = read_line(io::stdin().lock()).map(|line| (!line.is_empty()).then_some(line));
        // After Ctrl-C there is no receiver.
        let _ = sender.send(read);
    });
    let read = tokio::select! {
        read = line => read,
        () = interrupts.next() => return Ok(Next::Interrupted),
    };
    match read {
        Ok(Ok(Some(line))) => {
            Ok(Next::Answer(GivenAnswer::Typed(line.trim_end_matches(['\n', '\r']).to_owned())))
        }
        Ok(Ok(None)) | Err(_) => Ok(Next::None),
        Ok(Err(error)) => Err(CliError::internal(format!("cannot read the answer: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::Answers;
    use std::io::Write as _;

    #[test]
    fn an_invalid_array_is_refused() {
        let read = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(text.as_bytes()).expect("written");
            match Answers::read(file.path()) {
                Ok(Answers::File(list)) => Some(list.len()),
                _ => None,
            }
        };
        assert_eq!(read("[\"Bob\", 41]\n"), Some(2));
        assert_eq!((read("[\"Bob\",\n"), read("  [not JSON]\nBob\n")), (None, None));
        // One answer per line, and the first one is an array.
        assert_eq!((read("[1, 2]\nBob\n"), read("Bob\n[not JSON]\n")), (Some(2), Some(2)));
    }
}
