//! Errors for people: what happened, what to do, and the exit code (`help/cli-command-reference.md`).

use crate::hints;
use crate::output::{Style, escape};
use crate::rights::{FileAction, missing_right};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use vm_system_protocol::control::{ErrorCode, OpError};

/// Exit codes that do not come from a script. Those of verbs are in the table of error codes, those of the operating system's
/// errors in [`exit::of_io`].
pub(crate) mod exit {
    use std::io;

    /// Success.
    pub(crate) const OK: u8 = 0;
    /// The script or the verb failed, or a file that the user named has not what is needed.
    pub(crate) const FAILED: u8 = 1;
    /// Invalid command line.
    pub(crate) const USAGE: u8 = 2;
    /// The script's top level awaits what nothing is left to settle, as in Node.
    pub(crate) const UNSETTLED: u8 = 13;
    /// No supervisor is reachable.
    pub(crate) const NO_DAEMON: u8 = 69;
    /// A bug, or a failure of the machine.
    pub(crate) const INTERNAL: u8 = 70;
    /// Busy; try again.
    pub(crate) const BUSY: u8 = 75;
    /// Not permitted.
    pub(crate) const NOT_PERMITTED: u8 = 77;
    /// A time limit ended the script.
    pub(crate) const TIMEOUT: u8 = 124;
    /// Ctrl-C.
    pub(crate) const INTERRUPTED: u8 = 130;
    /// The reader of stdout has closed it (128 + SIGPIPE, as in shells).
    pub(crate) const BROKEN_PIPE: u8 = 141;

    /// The code of an error at a file or folder that the user has named.
    pub(crate) fn of_io(error: &io::Error) -> u8 {
        match error.kind() {
            io::ErrorKind::PermissionDenied => NOT_PERMITTED,
            _ => FAILED,
        }
    }

    /// The code of an error at what a daemon needs: what the user may change, or a failure of the machine.
    pub(crate) fn of_daemon_io(error: &io::Error) -> u8 {
        let is_of_the_path = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ReadOnlyFilesystem
        );
        match of_io(error) {
            FAILED if !is_of_the_path => INTERNAL,
            code => code,
        }
    }
}

/// A command that failed.
#[derive(Debug)]
pub(crate) struct CliError {
    message: Option<String>,
    hint: Option<String>,
    exit: u8,
    /// The supervisor's, if the error is of a verb.
    code: Option<ErrorCode>,
}

impl CliError {
    pub(crate) fn new(exit: u8, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), hint: None, exit, code: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, message)
    }

    /// A path's kind or a file's content is not the one that is needed.
    pub(crate) fn unfit(message: impl Into<String>) -> Self {
        Self::new(exit::FAILED, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(exit::INTERNAL, message)
    }

    /// Ends the process without a message.
    pub(crate) fn silent(exit: u8) -> Self {
        Self { message: None, hint: None, exit, code: None }
    }

    /// The code of the supervisor, if the error is of a verb.
    pub(crate) const fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// As the error about a value of the operator's file, at this place; a file that is not there is a wrong value then.
    pub(crate) fn at_place(mut self, place: Option<String>) -> Self {
        if let Some(place) = place {
            self.message = self.message.map(|message| format!("{place}: {message}"));
            self.exit = if self.exit == exit::FAILED { exit::USAGE } else { self.exit };
        }
        self
    }

    /// Adds a hint behind the one of the supervisor.
    #[must_use]
    pub(crate) fn and_hint(self, hint: &str) -> Self {
        let whole = match &self.hint {
            Some(first) => format!("{first}\nhint: {hint}"),
            None => hint.to_owned(),
        };
        self.with_hint(whole)
    }

    /// Adds how a limit is raised, if the message is about it and there is no other hint.
    #[must_use]
    pub(crate) fn with_flag(self, limit: &str, flag: &str) -> Self {
        let is_about = self.message.as_ref().is_some_and(|message| message.contains(limit));
        if is_about && self.hint.is_none() { self.with_hint(format!("raise it with {flag}")) } else { self }
    }

    /// A file that the user named.
    pub(crate) fn file(path: impl Display, error: &io::Error) -> Self {
        let path = path.to_string();
        Self::unreadable(&path, Path::new(&path), error)
    }

    /// A file cannot be read; `what` is what the user named with it (`the token in FILE`).
    pub(crate) fn unreadable(what: impl Display, path: &Path, error: &io::Error) -> Self {
        let failed = Self::new(exit::of_io(error), format!("cannot read {what}: {error}"));
        match std::env::current_dir() {
            Ok(folder) if error.kind() == io::ErrorKind::NotFound => {
                failed.with_hint(format!("relative paths are looked up in {}", folder.display()))
            }
            _ => failed.with_right(path, FileAction::Read, error),
        }
    }

    /// A file or folder that the user named cannot be written.
    pub(crate) fn written_file(path: impl Display, error: &io::Error) -> Self {
        let path = path.to_string();
        let failed = Self::new(exit::of_io(error), format!("cannot write {path}: {error}"));
        failed.with_right(Path::new(&path), FileAction::Write, error)
    }

    /// Adds which right is missing where, if the error is a lack of one.
    #[must_use]
    pub(crate) fn with_right(self, path: &Path, action: FileAction, error: &io::Error) -> Self {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return self;
        }
        match missing_right(path, action) {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    /// Stdout could not be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(exit::BROKEN_PIPE);
        }
        Self::new(exit::FAILED, format!("cannot write the output: {error}"))
    }

    /// The answer to a task did not match its schema; another answer may.
    pub(crate) fn is_about_the_answer(&self) -> bool {
        self.has_code(ErrorCode::AnswerInvalid)
    }

    /// Whether a verb failed with this code.
    pub(crate) fn has_code(&self, code: ErrorCode) -> bool {
        self.code == Some(code)
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit
    }

    /// `error: …` and `hint: …` on stderr.
    pub(crate) fn print(&self, style: Style) {
        let mut stderr = io::stderr().lock();
        // A closed stderr cannot be reported.
        if let Some(message) = &self.message {
            let _ = writeln!(stderr, "{} {}", style.error_label("error:"), escape::for_message(message));
        }
        // A part of the source text, not what to do.
        if let Some(source) = self.hint.as_ref().and_then(|hint| hint.strip_prefix('\n')) {
            let _ = writeln!(stderr, "{}", escape::for_message(source));
        } else if let Some(hint) = &self.hint {
            let _ = writeln!(
                stderr,
                "{} {}",
                style.hint_label("hint:"),
                escape::for_message(&hints::with_options(hint))
            );
        }
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

impl From<OpError> for CliError {
    fn from(error: OpError) -> Self {
        // Exit code 75 ("try again") must not make a script repeat an execution that has run.
        let exit = if error.has_run() { exit::INTERNAL } else { error.code.exit_code() };
        let hint = error.hint.or_else(|| default_hint(error.code).map(str::to_owned));
        Self {
            message: Some(format!("{} ({})", error.message, error.code)),
            hint,
            exit,
            code: Some(error.code),
        }
    }
}

/// The hint for errors without one from the supervisor.
fn default_hint(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::TemplateNotFound => "`vm-system template list` shows the templates",
        ErrorCode::SessionNotFound => "`vm-system session list` shows the sessions",
        ErrorCode::ExecutionNotFound => {
            "`vm-system program runs` shows the executions of programs, `vm-system exec list SESSION` a session's"
        }
        ErrorCode::FileNotFound => {
            "paths are relative to the session's worktree, which `vm-system session get SESSION` shows"
        }
        ErrorCode::ProgramNotFound => "`vm-system program list` shows the programs",
        ErrorCode::TaskNotPending => "`vm-system task get EXECUTION` shows its status",
        ErrorCode::TaskAmbiguous => "`vm-system task list --execution EXECUTION` shows the ids of its tasks",
        ErrorCode::SessionBusy => {
            "wait for the running execution, or end it: `vm-system exec list SESSION`, `vm-system exec cancel EXECUTION`"
        }
        ErrorCode::SessionNotReady => {
            "`vm-system session get SESSION` shows why: try again while it is `starting`, or `vm-system session create` makes a new one"
        }
        ErrorCode::ModuleNotAllowed => "`vm-system template list-available-modules` shows the modules",
        ErrorCode::LibraryNotFound => "`vm-system libs list` shows the libraries",
        ErrorCode::CapacityExceeded => "try again later; `vm-system ops runtime` shows the usage",
        ErrorCode::ShuttingDown => "try again later",
        ErrorCode::StorageUnavailable => {
            "is the disk of the state directory full or read-only? `vm-system ops health`"
        }
        _ => return None,
    })
}
