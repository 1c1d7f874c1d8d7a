//! The input of the shell: a terminal with editing and history, or a pipe.

use super::assist::Assist;
use super::complete_input::Scanner;
use super::properties::Properties;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::read::read_line;
use rustyline::config::{CompletionType, Configurer as _};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;

/// Most entries of the history file.
const HISTORY: usize = 2_000;

/// One input.
pub(super) enum Line {
    Text(String),
    End,
}

/// The source of input.
pub(super) enum Input {
    Terminal { editor: Box<Editor<Assist, FileHistory>>, history: Option<PathBuf>, inputs: Vec<String> },
    Pipe { inputs: Vec<String> },
}

impl Input {
    /// A terminal if stdin is one.
    pub(super) fn open(context: &Context, properties: Properties) -> Result<Self, CliError> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe { inputs: Vec::new() });
        }
        let config = Config::builder().auto_add_history(false).completion_type(CompletionType::List).build();
        let mut editor = Editor::with_history(config, FileHistory::new()).map_err(|error| broken(&error))?;
        editor.set_max_history_size(HISTORY).map_err(|error| broken(&error))?;
        editor.set_helper(Some(Assist::new(properties)));
        let history = context.environment.history_file();
        if let Some(file) = &history {
            // There is no history file at the first start.
            let _ = editor.load_history(file);
        }
        Ok(Self::Terminal { editor: Box::new(editor), history, inputs: Vec::new() })
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// The next complete input, or one line as the answer to a task.
    pub(super) fn next(&mut self, answer: bool) -> Result<Line, CliError> {
        match self {
            Self::Terminal { editor, .. } => loop {
                if let Some(assist) = editor.helper_mut() {
                    assist.expects_answer = answer;
                }
                match editor.readline(if answer { "answer> " } else { "> " }) {
                    Ok(text) => {
                        let _ = editor.add_history_entry(&text);
                        return Ok(Line::Text(text));
                    }
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(Line::End),
                    Err(error) => return Err(broken(&error)),
                }
            },
            Self::Pipe { .. } => next_of_pipe(answer),
        }
    }

    /// Reads lines up to Ctrl-D as one input, complete or not; `None` after Ctrl-C.
    pub(super) fn editor(&mut self) -> Result<Option<String>, CliError> {
        let Self::Terminal { editor, .. } = self else { return Ok(None) };
        let mut text = String::new();
        let helper = editor.helper_mut().expect("a terminal has its helper from the start");
        let assist = std::mem::replace(helper, Assist::new(Properties::none()));
        editor.set_helper(None);
        let result = loop {
            match editor.readline("… ") {
                Ok(line) => {
                    text.push_str(&line);
                    text.push('\n');
                }
                Err(ReadlineError::Eof) => break Ok(Some(text)),
                Err(ReadlineError::Interrupted) => break Ok(None),
                Err(error) => break Err(broken(&error)),
            }
        };
        editor.set_helper(Some(assist));
        result
    }

    /// Remembers an input: for `.save`, and its names for completion.
    pub(super) fn learn(&mut self, text: &str) {
        let (Self::Terminal { inputs, .. } | Self::Pipe { inputs }) = self;
        let bytes: usize = inputs.iter().map(String::len).sum();
        if bytes + text.len() <= CONTROL_FRAME_BYTES {
            inputs.push(text.to_owned());
        }
        if let Self::Terminal { editor, .. } = self
            && let Some(assist) = editor.helper_mut()
        {
            assist.learn(text);
        }
    }

    /// Forgets the last input: no text in which it is can be loaded.
    pub(super) fn forget_last(&mut self) {
        let (Self::Terminal { inputs, .. } | Self::Pipe { inputs }) = self;
        inputs.pop();
    }

    /// Writes the inputs to a file that does not exist; returns their number.
    pub(super) fn write_inputs(&self, file: &Path) -> io::Result<usize> {
        let (Self::Terminal { inputs, .. } | Self::Pipe { inputs }) = self;
        let text = one_text(inputs);
        let mut new = std::fs::OpenOptions::new().write(true).create_new(true).open(file)?;
        new.write_all(text.as_bytes())?;
        Ok(inputs.len())
    }

    /// Writes the history, readable only by the user.
    pub(super) fn save(&mut self) {
        if let Self::Terminal { editor, history: Some(file), .. } = self
            && let Err(error) =
                private(file).and_then(|()| editor.save_history(file).map_err(io::Error::other))
        {
            tracing::warn!(%error, "cannot write the history");
        }
    }
}

/// The inputs as one text. One that would continue the statement before it gets a semicolon.
fn one_text(inputs: &[String]) -> String {
    let mut text = String::new();
    for input in inputs {
        let input = input.trim_end();
        if !text.is_empty() && input.trim_start().starts_with(['(', '[', '`', '/', '+', '-']) {
            text.push(';');
        }
        text.push_str(input);
        text.push('\n');
    }
    text
}

/// Creates the file with mode 0600 in a folder with mode 0700, if they do not exist.
fn private(file: &Path) -> io::Result<()> {
    if let Some(dir) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(file).map(drop)
}

/// Reads lines until the input is complete.
fn next_of_pipe(answer: bool) -> Result<Line, CliError> {
    let mut text = String::new();
    let mut scanner = Scanner::default();
    loop {
        let line = read_line(io::stdin().lock()).map_err(|error| CliError::file("stdin", &error))?;
        text.push_str(&line);
        scanner.feed(&line);
        match line.len() {
            0 if text.is_empty() => return Ok(Line::End),
            0 => return Ok(Line::Text(text)),
            _ if text.len() > CONTROL_FRAME_BYTES => {
                return Err(CliError::usage("the input is too large"));
            }
            _ if answer || !scanner.is_incomplete() => return Ok(Line::Text(text)),
            _ => {}
        }
    }
}

fn broken(error: &ReadlineError) -> CliError {
    CliError::new(exit::INTERNAL, format!("cannot read the terminal: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_one_text_do_not_continue_each_other() {
        let inputs =
            ["const o = {a: 1}", "o.a // the one", "[1, 2]", "`a`\n", "(1)", "let b = 1"].map(str::to_owned);
        let text = "const o = {a: 1}\no.a // the one\n;[1, 2]\n;`a`\n;(1)\nlet b = 1\n";
        assert_eq!(one_text(&inputs), text);
        assert_eq!(one_text(&inputs[2..3]), "[1, 2]\n");
    }
}
