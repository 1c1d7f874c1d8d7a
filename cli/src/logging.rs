//! The log: to stderr, as text or JSON, never to stdout, which belongs to results.

use crate::args::{GlobalArgs, LogFormat};
use crate::error::CliError;
use std::io::{self, IsTerminal as _};
use tracing_subscriber::EnvFilter;

/// Starts logging; a client logs nothing unless asked or something is wrong.
pub(crate) fn start(global: &GlobalArgs, daemon: bool) -> Result<(), CliError> {
    if !daemon && global.log_level.is_none() {
        return Ok(());
    }
    // The library of the agents' protocol tells of every message.
    let level = global.log_level.as_deref().unwrap_or("info,rmcp=warn");
    let filter = EnvFilter::try_new(level).map_err(|error| {
        CliError::usage(format!("--log-level `{level}`: {error}"))
            .with_hint("levels: error, warn, info, debug, trace")
    })?;
    let color = io::stderr().is_terminal() && !global.no_color && std::env::var_os("NO_COLOR").is_none();
    // A line that cannot be written (a full disk, a reader that has gone) is lost, and nothing else: told of it, the
    // library would print to the same stderr and panic in the middle of whatever logged.
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
