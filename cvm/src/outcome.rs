//! What running a program comes to, and what the outside gives back.
//!
//! Owns: the vocabulary of [`crate::run`]. Must not: know the heap.

use crate::state::LimitKind;

/// Console severity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// `console.log`, `console.info`
    Log,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
    /// `console.debug`
    Debug,
}

/// One console call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Severity
    pub level: Level,
    /// Formatted text, without a line end
    pub text: String,
}

/// What a program asks for while it waits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Request {
    /// `CC(prompt, options)`
    Task {
        /// The prompt
        prompt: String,
        /// The options object as JSON, if given
        options: Option<String>,
    },
    /// A host function
    Host {
        /// `readFile`, `writeFile` or `listFiles`
        name: String,
        /// Arguments as JSON, an array
        args: String,
    },
}

/// Why [`crate::run`] came back.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The program ended; its result as JSON (`null` for what JSON has no word for) and as console text
    Done {
        /// JSON text
        json: String,
        /// Text as the console shows it
        text: String,
    },
    /// An exception that nobody caught: text with stack
    Throw(String),
    /// A pause: answer with [`crate::resume_pause`]
    Pause {
        /// The prompt
        prompt: String,
        /// The options object as JSON
        options: Option<String>,
    },
    /// A host call: answer with [`crate::resume_host`]
    Host {
        /// Which
        name: String,
        /// Arguments as JSON, an array
        args: String,
    },
    /// The fuel given to this call is used up; run on at will
    OutOfFuel,
    /// A limit ended the program
    Limit(LimitKind),
    /// The state is not one that this engine makes; it cannot go on
    Corrupt(&'static str),
}

/// The answer to a pause.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// A plain string
    Text(String),
    /// JSON text that fits the task's schema
    Json(String),
    /// Attempts are used up: `CCError` with this message
    Error(String),
    /// The time is over and there is no default: `CCTimeoutError`
    Timeout(String),
    /// The question itself is wrong: `TypeError` with this message
    Wrong(String),
}

/// The result of a host call.
#[derive(Clone, PartialEq, Debug)]
pub enum HostResult {
    /// JSON text
    Json(String),
    /// An `Error` with this message
    Error(String),
}
