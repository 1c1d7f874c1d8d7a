//! Messages between the runner and its children: JSON with a length prefix, over pipes.

use crate::metadata::Negative;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// The order to run one test.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// Path of the test, for messages.
    pub path: String,
    /// Harness text.
    pub prelude: String,
    /// The test's text.
    pub source: String,
    /// The folder of all tests, for the files that a module imports.
    pub root: PathBuf,
    /// How it is run; it passes if it does each time.
    pub modes: Vec<TestMode>,
    /// The failure with which the test passes.
    pub negative: Option<Negative>,
    /// Whether the test must print that it is complete.
    pub asynchronous: bool,
}

/// How the text of a test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TestMode {
    /// As a script.
    Script,
    /// As a script in strict mode.
    StrictScript,
    /// As a module.
    Module,
}

/// The judged result of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected, and why.
    Fail(String),
}

/// Largest message, in bytes.
const MAX_MESSAGE: u32 = 64 << 20;

/// Writes one message.
pub fn send<T: Serialize>(out: &mut impl Write, message: &T) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MAX_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("message too large"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&text)?;
    out.flush()
}

/// Reads one message; `None` at the end of the stream.
pub fn receive<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::Error::other("message too large"));
    }
    let mut text = vec![0; length as usize];
    input.read_exact(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}
