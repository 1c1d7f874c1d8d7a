//! The interface to the engine under test.

use crate::protocol::{Job, TestMode};

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Without an exception, also in its jobs.
    Finished,
    /// The compiler found a syntax error.
    SyntaxError(String),
    /// The compiler does not support something in it.
    Unsupported(String),
    /// An uncaught exception: name of its constructor, and its text.
    Threw {
        /// `TypeError`, `Test262Error`, …
        name: String,
        /// The whole text.
        message: String,
    },
    /// A limit, or a bug of the engine.
    Stopped(String),
}

impl Ending {
    /// One line for a report.
    pub fn describe(&self) -> String {
        match self {
            Ending::Finished => "finished".to_owned(),
            Ending::SyntaxError(message) => format!("compile error: {message}"),
            Ending::Unsupported(message) => format!("unsupported: {message}"),
            Ending::Threw { message, .. } => {
                let lines = message.lines().take_while(|line| !line.trim_start().starts_with("at ")).take(4);
                lines.map(str::trim).collect::<Vec<_>>().join(" ")
            }
            Ending::Stopped(message) => message.clone(),
        }
    }
}

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptRun {
    /// How the script ended.
    pub ending: Ending,
    /// Printed lines.
    pub printed: Vec<String>,
}

/// An engine that runs scripts.
pub trait Engine {
    /// Runs the harness and the test in a fresh realm.
    fn run(&self, job: &Job, mode: TestMode) -> ScriptRun;
}
