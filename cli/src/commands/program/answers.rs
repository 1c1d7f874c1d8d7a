//! Answers for the questions of a program: from a file, or typed on the terminal.

use crate::context::Context;
use crate::error::CliError;
use crate::output::escape;
use std::collections::VecDeque;
use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use vm_system_protocol::model::Task;

/// Where answers come from.
pub(super) enum Answers {
    /// Nobody answers.
    None,
    /// These, in order.
    File(VecDeque<String>),
    /// Somebody at the terminal.
    Terminal,
}

impl Answers {
    /// From a file: a JSON array (texts as they are, other values as JSON), or else a line for each.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(path).map_err(|error| CliError::file(path.display(), &error))?;
        let list = match serde_json::from_str::<Vec<serde_json::Value>>(&text) {
            Ok(values) => values
                .into_iter()
                .map(|value| match value {
                    serde_json::Value::String(text) => text,
                    other => other.to_string(),
                })
                .collect(),
            Err(_) => text.lines().map(str::to_owned).collect(),
        };
        Ok(Self::File(list))
    }

    /// The answer to a question; none if there is none any more.
    pub(super) fn next(&mut self, context: &Context, task: &Task) -> Result<Option<String>, CliError> {
        match self {
            Self::None => Ok(None),
            Self::File(list) => Ok(list.pop_front()),
            Self::Terminal => ask(context, task),
        }
    }

    /// Whether there may be another answer.
    pub(super) fn may_be_more(&self) -> bool {
        match self {
            Self::None => false,
            Self::File(left) => !left.is_empty(),
            Self::Terminal => true,
        }
    }
}

fn ask(context: &Context, task: &Task) -> Result<Option<String>, CliError> {
    let mut stderr = io::stderr().lock();
    let prompt = escape::for_terminal(&task.prompt);
    // A terminal that takes no prompt takes no answer either; reading says so.
    let _ = writeln!(stderr, "{prompt}");
    if let Some(schema) = &task.schema
        && !context.out.quiet
    {
        let _ = writeln!(stderr, "(JSON that fits {})", escape::for_terminal(schema.as_str()));
    }
    let _ = write!(stderr, "> ");
    let _ = stderr.flush();
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| CliError::internal(format!("cannot read the answer: {error}")))?;
    if read == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
}
