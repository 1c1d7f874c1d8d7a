//! Events of a script on a terminal: console output on stdout and stderr as in Node, values, exceptions, and the exit code for the
//! end of the execution.

use crate::error::{CliError, exit};
use crate::output::{Style, color, escape, notice};
use crate::signals::Interrupts;
use nix::errno::Errno;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::AsFd;
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{
    CUT_MESSAGE, ConsoleLevel, Event, EventPayload, Execution, ExecutionError, ExecutionStatus, HttpRecord,
    JsType, Metrics, NEVER_SETTLED_CODE, NoteCode, ResultValue, SYNTAX_ERROR_CODE,
};

/// Which values of last expressions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShowValues {
    /// None: a file's value is not its output.
    Never,
    /// All except `undefined`.
    Defined,
    /// All.
    Always,
}

/// The name of the limit of output in templates.
pub(crate) const OUTPUT_LIMIT_OF_TEMPLATES: &str = "`max_output_kb` of the template";

/// Most JSON of a value that is stored (`docs/api-reference.md`).
const STORED_JSON_BYTES: u64 = 4 << 20;

/// Prints the events of one execution.
pub(crate) struct ScriptOutput {
    style: Style,
    values: ShowValues,
    /// Whether the end says the execution's id, status and metrics.
    verbose: bool,
    /// The setting that the user can raise to get more output.
    output_limit: &'static str,
    execution: Cell<Option<ExecutionId>>,
    last_seq: Cell<u64>,
    exception_shown: Cell<bool>,
    syntax_error: Cell<bool>,
    missing_file: Cell<bool>,
    refused_write: Cell<bool>,
    /// A change of a file was refused, because none is permitted.
    changes_nothing: Cell<bool>,
    other_hint: Cell<Option<&'static str>>,
    /// Signals and the deadline that end the command while nobody reads the output.
    interrupts: RefCell<Option<Interrupts>>,
    is_interrupted: Cell<bool>,
}

/// Codes of errors about files and modules that were not found, or are not permitted.
const MISSING: [&str; 5] =
    ["MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND", "MODULE_OUTSIDE_WORKTREE", "ENOENT", "EACCES"];

const MODULE_HINT: &str = "hint: scripts of `run` have the module `fs` only; `database` and `exec` are for sessions of a daemon, \
                           whose template has them: `vm-system help templates-and-sessions`";
const NET_HINT: &str = "hint: `--net HOST` lets the script make requests to a host: `vm-system help rights`";
const PRIVATE_NET_HINT: &str =
    "hint: `--net-private HOST` lets the script make requests to an address of this machine or network";

/// Bytes that a pipe takes at once when it can be written (`PIPE_BUF`).
const PIECE_BYTES: usize = 4_096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

impl ScriptOutput {
    pub(crate) fn new(style: Style, values: ShowValues) -> Self {
        Self {
            style,
            values,
            verbose: false,
            output_limit: OUTPUT_LIMIT_OF_TEMPLATES,
            execution: Cell::new(None),
            last_seq: Cell::new(0),
            exception_shown: Cell::new(false),
            syntax_error: Cell::new(false),
            missing_file: Cell::new(false),
            refused_write: Cell::new(false),
            changes_nothing: Cell::new(false),
            other_hint: Cell::new(None),
            interrupts: RefCell::default(),
            is_interrupted: Cell::new(false),
        }
    }

    /// From now on a signal, or the end of the time, ends a print that waits for a reader.
    pub(crate) fn interrupted_by(&self, interrupts: &Interrupts) {
        *self.interrupts.borrow_mut() = Some(interrupts.clone());
    }

    /// Whether a print was ended so. The rest of its text is lost.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted.get()
    }

    /// Sets whether the end says the execution's id, status and metrics.
    pub(crate) fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// Names the option that limits the output, instead of a template's setting.
    pub(crate) fn limited_by(self, option: &'static str) -> Self {
        Self { output_limit: option, ..self }
    }

    /// The execution, known after its first event.
    pub(crate) fn execution(&self) -> Option<ExecutionId> {
        self.execution.get()
    }

    /// Whether the source had a syntax error, such as a module that was run as a script.
    pub(crate) fn has_syntax_error(&self) -> bool {
        self.syntax_error.get()
    }

    /// Whether the script failed because a file or module was not found or not permitted.
    pub(crate) fn has_missing_file(&self) -> bool {
        self.missing_file.get()
    }

    /// Whether the script failed because it may change no file.
    pub(crate) fn has_refused_write(&self) -> bool {
        self.refused_write.get()
    }

    /// The remedy for another failure of a script of `run`.
    pub(crate) fn other_hint(&self) -> Option<&'static str> {
        self.other_hint.get()
    }

    /// Sequence number of the last printed event.
    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq.get()
    }

    /// Events up to this number are not printed.
    pub(crate) fn skip_to(&self, seq: u64) {
        self.last_seq.set(seq.max(self.last_seq.get()));
    }

    /// Prints a batch of events.
    pub(crate) fn events(&self, events: &[Event]) -> Result<(), CliError> {
        let mut pending = Pending { stream: Stream::Stdout, text: String::new(), output: self };
        for event in events {
            // A repeated request gets the events from the first one on.
            if self.execution.replace(Some(event.execution_id)) == Some(event.execution_id)
                && event.seq <= self.last_seq.get()
            {
                continue;
            }
            self.last_seq.set(event.seq);
            if let Some((stream, text)) = self.event(&event.payload) {
                pending.push(stream, &text).map_err(|error| CliError::output(&error))?;
            }
        }
        pending.flush().map_err(|error| CliError::output(&error))
    }

    fn write_now(&self, to: &mut (impl Write + AsFd), text: &str) -> io::Result<()> {
        to.flush()?;
        let interrupts = self.interrupts.borrow();
        let Some(interrupts) = interrupts.as_ref() else {
            to.write_all(text.as_bytes())?;
            return to.flush();
        };
        // Beside the buffer of the stream: of what is in it nobody knows whether it fits.
        let mut left = text.as_bytes();
        while !left.is_empty() {
            if !interrupts.until_writable(to.as_fd())? {
                self.is_interrupted.set(true);
                return Err(io::Error::other("interrupted while nobody reads the output"));
            }
            match nix::unistd::write(to.as_fd(), &left[..left.len().min(PIECE_BYTES)]) {
                Ok(written) => left = &left[written..],
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The stream and text of an event, line feed included; `None` if it is not shown.
    fn event(&self, payload: &EventPayload) -> Option<(Stream, String)> {
        let line = |stream, text: &str| {
            let mut line = self.text(stream, text);
            line.push('\n');
            Some((stream, line))
        };
        match payload {
            // Recorded host calls are not output of the script.
            EventPayload::InputEcho { .. } | EventPayload::System { level: ConsoleLevel::Info, .. } => None,
            EventPayload::Console { level, text, more } => {
                let stream = match level {
                    ConsoleLevel::Warn | ConsoleLevel::Error => Stream::Stderr,
                    ConsoleLevel::Log | ConsoleLevel::Info | ConsoleLevel::Debug => Stream::Stdout,
                };
                if *more { Some((stream, self.text(stream, text))) } else { line(stream, text) }
            }
            EventPayload::Value(ResultValue { kind, preview, .. }) => match self.values {
                ShowValues::Never => None,
                ShowValues::Defined if *kind == JsType::Undefined => None,
                // Of a shell: colours only around text that was escaped.
                ShowValues::Always if self.style.colors_stdout() => {
                    Some((Stream::Stdout, color::of_value(&self.text(Stream::Stdout, preview)) + "\n"))
                }
                _ => line(Stream::Stdout, preview),
            },
            EventPayload::Exception { message, stack, code, .. } => {
                self.exception_shown.set(true);
                self.note_code(code.as_deref().unwrap_or_default());
                line(Stream::Stderr, &exception(message, stack))
            }
            EventPayload::System { message, code, .. } => {
                match code {
                    Some(NoteCode::NoChanges) => self.changes_nothing.set(true),
                    Some(NoteCode::NetNotGranted) => self.other_hint.set(Some(NET_HINT)),
                    Some(NoteCode::ModuleNotGranted) => self.other_hint.set(Some(MODULE_HINT)),
                    None => {}
                }
                line(Stream::Stderr, &format!("[system] {message}"))
            }
            EventPayload::Http(record) if self.verbose => {
                line(Stream::Stderr, &format!("[http] {}", http_line(record)))
            }
            EventPayload::Http(_) => None,
            EventPayload::Task { prompt, .. } => line(Stream::Stderr, &format!("[task] {prompt}")),
            EventPayload::Stdout { text } => Some((Stream::Stdout, self.text(Stream::Stdout, text))),
            EventPayload::Stderr { text } => Some((Stream::Stderr, self.text(Stream::Stderr, text))),
        }
    }

    /// Notes the code of the exception that ended the script, for the hint.
    fn note_code(&self, code: &str) {
        self.syntax_error.set(code == SYNTAX_ERROR_CODE);
        self.refused_write.set(code == "EACCES" && self.changes_nothing.get());
        self.missing_file.set(MISSING.contains(&code));
        match code {
            "MODULE_NOT_ALLOWED" => self.other_hint.set(Some(MODULE_HINT)),
            // The host is granted: its address is not.
            "ERR_NET_DENIED" if self.other_hint.get().is_none() => {
                self.other_hint.set(Some(PRIVATE_NET_HINT));
            }
            _ => {}
        }
    }

    fn text(&self, stream: Stream, text: &str) -> String {
        let terminal = match stream {
            Stream::Stdout => self.style.stdout_is_terminal(),
            Stream::Stderr => self.style.stderr_is_terminal(),
        };
        if terminal { escape::for_terminal(text).into_owned() } else { text.to_owned() }
    }

    /// Prints the error if no event showed it, and a warning if the execution is degraded; returns the exit code.
    pub(crate) fn end(&self, execution: &Execution) -> u8 {
        match execution.error.as_ref().map(|error| error.code.as_str()) {
            Some("WALL_LIMIT" | "CPU_LIMIT") => {
                self.other_hint.set(Some("hint: `--timeout TIME` gives the script more time"));
            }
            Some("MEMORY_LIMIT") => {
                self.other_hint.set(Some("hint: `--memory MIB` gives the script more memory"));
            }
            _ => {}
        }
        if let Some(error) = &execution.error
            && !self.exception_shown.get()
            && error.exit_code.is_none()
        {
            let reason = error.reason.as_ref().filter(|reason| !error.message.contains(reason.as_str()));
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            CliError::new(exit::FAILED, format!("{}{reason} ({})", error.message, error.code))
                .print(self.style);
        }
        if self.values != ShowValues::Never {
            note_truncation(execution, self.output_limit);
        }
        note_truncated_error(execution.error.as_ref());
        if execution.degraded {
            CliError::new(exit::FAILED, "a write failed: the record of this execution may be incomplete")
                .print(self.style);
        }
        if self.verbose {
            notice(&summary(execution));
        }
        exit_code(execution)
    }
}

/// An HTTP request on one line.
pub(crate) fn http_line(record: &HttpRecord) -> String {
    let HttpRecord { method, origin, path, status, error, sent, received, ms } = record;
    let outcome = match (status, error) {
        (Some(status), Some(error)) => format!("{status}, then {error}"),
        (Some(status), None) => status.to_string(),
        (None, error) => error.clone().unwrap_or_default(),
    };
    format!(
        "{method} {origin}{path}: {outcome}, {} sent, {received} received, {ms} ms",
        counted(*sent, "byte")
    )
}

fn summary(execution: &Execution) -> String {
    let Metrics { duration_ms, cpu_ms, host_wait_ms, events, output_bytes, heap_peak_bytes } =
        execution.metrics;
    format!(
        "Execution ID: {}\nStatus: {}\nMetrics: {duration_ms} ms, CPU {cpu_ms} ms, host calls {host_wait_ms} ms, \
         {}, output {}, heap peak {}",
        execution.id,
        execution.status,
        counted(events, "event"),
        counted(output_bytes, "byte"),
        counted(heap_peak_bytes, "byte")
    )
}

/// Says on stderr that a value was cut, and the name of the limit that would keep its JSON.
pub(crate) fn note_truncation(execution: &Execution, limit: &str) {
    let Some(ResultValue { truncated: true, full_bytes, preview, json, .. }) = &execution.result else {
        return;
    };
    let whole = full_bytes.map_or_else(String::new, |bytes| format!(", of {bytes} bytes,"));
    let rest = match (json, full_bytes) {
        (Some(_), _) => format!("its JSON{whole} is stored: `exec get` with `--output json` has it"),
        (None, Some(bytes)) if *bytes > STORED_JSON_BYTES => {
            format!("its JSON{whole} is not stored: at most 4 MiB are")
        }
        (None, _) => format!("its JSON{whole} is not stored: raise {limit} (at most 4 MiB)"),
    };
    notice(&format!("[truncated: the first {} bytes of the value are shown; {rest}]", preview.len()));
}

/// Says on stderr that the text of an error was cut.
pub(crate) fn note_truncated_error(error: Option<&ExecutionError>) {
    // One that the worker has cut says so at its end.
    let is_reported = |error: &&ExecutionError| error.message.contains(CUT_MESSAGE);
    if let Some(error) = error.filter(|error| error.truncated).filter(|error| !is_reported(error)) {
        let of = error.full_bytes.map_or_else(String::new, |bytes| format!(", which has {bytes} bytes"));
        notice(&format!("[truncated: the error is not shown with its whole message{of}]"));
    }
}

/// The exit code of the command for an execution.
pub(crate) fn exit_code(execution: &Execution) -> u8 {
    match execution.status {
        ExecutionStatus::Ok | ExecutionStatus::Running | ExecutionStatus::Waiting => exit::OK,
        ExecutionStatus::Error if has_code(execution, NEVER_SETTLED_CODE) => exit::UNSETTLED,
        ExecutionStatus::Error => requested_exit_code(execution).unwrap_or(exit::FAILED),
        ExecutionStatus::Timeout => exit::TIMEOUT,
        ExecutionStatus::Cancelled => exit::INTERRUPTED,
    }
}

fn has_code(execution: &Execution, code: &str) -> bool {
    execution.error.as_ref().is_some_and(|error| error.code == code)
}

/// The `n` of the script's own `process.exit(n)`, if it is an exit code of a process that failed.
fn requested_exit_code(execution: &Execution) -> Option<u8> {
    let code = execution.error.as_ref()?.exit_code?;
    u8::try_from(code).ok().filter(|code| *code != exit::OK)
}

/// The `N` of an ended input's own `process.exit(N)`. Any other input that ended `ok` has a value.
pub(crate) fn exit_of_input(execution: &Execution) -> Option<u8> {
    let is_zero = execution.status == ExecutionStatus::Ok && execution.result.is_none();
    if is_zero { Some(exit::OK) } else { requested_exit_code(execution) }
}

/// As in Node's shell: `Uncaught`, then the stack, which begins with the message, or only the message.
fn exception(message: &str, stack: &str) -> String {
    let text = if stack.is_empty() { message } else { stack.trim_end() };
    if text.starts_with("Uncaught ") { text.to_owned() } else { format!("Uncaught {text}") }
}

/// Buffered text of one stream; written before text of the other stream, so that the order is kept.
struct Pending<'o> {
    stream: Stream,
    text: String,
    output: &'o ScriptOutput,
}

impl Pending<'_> {
    fn push(&mut self, stream: Stream, text: &str) -> io::Result<()> {
        if stream != self.stream {
            self.flush()?;
            self.stream = stream;
        }
        self.text.push_str(text);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return Ok(());
        }
        match self.stream {
            Stream::Stdout => self.output.write_now(&mut io::stdout().lock(), &text),
            Stream::Stderr => self.output.write_now(&mut io::stderr().lock(), &text),
        }
    }
}

/// The lines of a stack after its message, escaped, each with a line feed.
pub(crate) fn places(message: &str, stack: &str) -> String {
    let behind = stack.strip_prefix(message).unwrap_or(stack);
    let lines = behind.lines().filter(|line| !line.trim().is_empty());
    lines.flat_map(|line| ["    ".into(), escape::for_cell(line.trim()), "\n".into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_protocol::reason::NEVER_SETTLED;

    #[test]
    fn a_stack_is_shown_once_with_its_message() {
        assert_eq!(
            exception("Error: x", "Error: x\n    at f (a.js:1)\n"),
            "Uncaught Error: x\n    at f (a.js:1)"
        );
        assert_eq!(exception("Uncaught 42", ""), "Uncaught 42");
        assert_eq!(exception("SyntaxError: y", ""), "Uncaught SyntaxError: y");
    }

    #[test]
    fn process_exit_is_the_exit_code_and_other_failures_are_1() {
        let mut execution: Execution = serde_json::from_value(serde_json::json!({
            "id": "00000000-0000-0000-0000-000000000000", "session_id": "00000000-0000-0000-0000-000000000000",
            "kind": "repl", "args": {}, "env": {}, "status": "error", "started_at": "2026-01-01T00:00:00.000Z",
            "metrics": {"duration_ms":0,"cpu_ms":0,"host_wait_ms":0,"events":0,"output_bytes":0,"heap_peak_bytes":0},
            "error": {"code": "EXIT", "message": "process.exit(7)", "exit_code": 7},
        }))
        .unwrap();
        assert_eq!(exit_code(&execution), 7);
        for code in [Some(256), Some(-1), Some(0), None] {
            execution.error.as_mut().unwrap().exit_code = code;
            assert_eq!(exit_code(&execution), exit::FAILED, "{code:?}");
        }
        let error = execution.error.as_mut().unwrap();
        error.message = format!("Error: {NEVER_SETTLED}");
        for (code, right) in [("EXCEPTION", exit::FAILED), (NEVER_SETTLED_CODE, 13)] {
            code.clone_into(&mut execution.error.as_mut().unwrap().code);
            assert_eq!(exit_code(&execution), right);
        }
        execution.error = None;
        for (status, code) in [
            (ExecutionStatus::Ok, 0),
            (ExecutionStatus::Error, 1),
            (ExecutionStatus::Timeout, 124),
            (ExecutionStatus::Cancelled, 130),
        ] {
            execution.status = status;
            assert_eq!(exit_code(&execution), code);
        }
    }

    #[test]
    fn positions_are_the_lines_after_the_message() {
        let stack = "TypeError: bad\nsecond line\n    at f (out.js:2:21)\n    at main (out.js:3:5)\n";
        let lines = "    at f (out.js:2:21)\n    at main (out.js:3:5)\n";
        assert_eq!(places("TypeError: bad\nsecond line", stack), lines);
        assert_eq!(places("Uncaught 42", ""), "");
    }
}
