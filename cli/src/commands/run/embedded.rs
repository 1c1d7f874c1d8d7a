//! A supervisor inside this process, for one command: starts in a few milliseconds and leaves nothing behind.

use crate::args::SandboxArg;
use crate::backend::Backend;
use crate::commands::serve::failure;
use crate::error::CliError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vm_system_daemon::{Embedded, Operator, ScriptInput};
use vm_system_protocol::model::{Limits, Settings};

/// Most events of a script that is run by hand; higher than the default because a report may be long.
pub(super) const MAX_EVENTS: u32 = 1_000_000;
/// Most output of a script that is run by hand (KiB).
pub(super) const MAX_OUTPUT_KB: u32 = 64 * 1024;

/// The embedded supervisor.
pub(crate) struct EmbeddedRun {
    supervisor: Arc<Embedded>,
    backend: Backend,
}

/// Starts an embedded supervisor. `stdin`: what scripts read as their standard input.
pub(crate) async fn start(
    sandbox: SandboxArg,
    operator: Operator,
    stdin: Option<ScriptInput>,
) -> Result<EmbeddedRun, CliError> {
    let supervisor =
        Embedded::start(sandbox.into(), operator, stdin).await.map_err(|error| failure(&error))?;
    let supervisor = Arc::new(supervisor);
    Ok(EmbeddedRun { backend: Backend::Embedded(Arc::clone(&supervisor)), supervisor })
}

impl EmbeddedRun {
    /// The target for verbs.
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Stops the supervisor; none of its processes and files is left when this returns.
    pub(crate) async fn stop(self) {
        self.supervisor.stop().await;
    }
}

/// The settings of a session that one person uses at a terminal.
pub(crate) fn settings(timeout: Duration, memory_mb: u32) -> Settings {
    let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    let limits = Limits {
        cpu_ms: ms,
        wall_ms: ms,
        mem_mb: memory_mb,
        max_events: MAX_EVENTS,
        max_output_kb: MAX_OUTPUT_KB,
        ..Limits::default()
    };
    Settings { limits, ..Settings::default() }
}

/// The current folder in the form that the supervisor accepts.
pub(crate) fn current_folder() -> Result<String, CliError> {
    let folder = std::env::current_dir().map_err(|error| CliError::file("the current folder", &error))?;
    in_utf8(folder, "the current folder's name")
}

/// A folder that the user named, in the same form.
pub(crate) fn existing_folder(folder: &Path) -> Result<String, CliError> {
    let found = std::fs::canonicalize(folder).map_err(|error| CliError::file(folder.display(), &error))?;
    if !found.is_dir() {
        return Err(CliError::unfit(format!("{} is not a folder", folder.display())));
    }
    in_utf8(found, "the folder's name")
}

fn in_utf8(folder: PathBuf, what: &str) -> Result<String, CliError> {
    folder
        .into_os_string()
        .into_string()
        .map_err(|path| CliError::usage(format!("{what} must be UTF-8: {}", path.to_string_lossy())))
}
