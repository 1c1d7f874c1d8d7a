//! The log: to stderr, as text or JSON, never to stdout, which is reserved for results.

use crate::args::{GlobalArgs, LogFormat};
use crate::error::CliError;
use std::io::{self, IsTerminal as _};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging; by default a client logs only warnings and errors.
pub(crate) fn start(global: &GlobalArgs, daemon: bool) -> Result<(), CliError> {
    if !daemon && global.log_level.is_none() {
        return Ok(());
    }
    // The MCP library logs every message.
    let level = global.log_level.as_deref().unwrap_or("info,rmcp=warn");
    let wrong = |why: &str| {
        CliError::usage(format!("--log-level `{level}`: {why}"))
            .with_hint("levels: error, warn, info, debug, trace")
    };
    // The library reads a single word as a module name and logs only that module: a misspelled level would silence
    // everything.
    if level.split(',').any(|part| !part.contains(['=', '[']) && part.trim().parse::<LevelFilter>().is_err())
    {
        return Err(wrong("unknown level"));
    }
    let filter = EnvFilter::try_new(level).map_err(|error| wrong(&error.to_string()))?;
    let color = io::stderr().is_terminal() && !global.no_color && std::env::var_os("NO_COLOR").is_none();
    // A line that cannot be written (a full disk, a closed pipe) is dropped: if the library saw the error, it would print to the
    // same stderr and panic in the thread that logged.
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(color)
        .log_internal_errors(false);
    let started = match global.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| CliError::internal(format!("cannot start the log: {error}")))
}
