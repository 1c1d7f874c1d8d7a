//! The log: to stderr, as text or JSON, never to stdout, which is reserved for results.
//!
//! Fields may have text of clients (versions, paths, names of folders): in both formats a record is one line without control
//! characters, and a long value is cut.

use crate::args::{GlobalArgs, LogFormat};
use crate::error::CliError;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _};
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Longest value of a field in the text format (characters).
const FIELD_CHARS: usize = 4_096;

/// Starts logging; by default a client logs only warnings and errors.
pub(crate) fn start(global: &GlobalArgs, daemon: bool) -> Result<(), CliError> {
    if !daemon && global.log_level.is_none() {
        return Ok(());
    }
    // The MCP library logs every message, and warns of each mistake of a client, which gets the error.
    let level = global.log_level.as_deref().unwrap_or("info,rmcp=error");
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
        LogFormat::Text => log.fmt_fields(debug_fn(field).delimited(" ")).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| CliError::internal(format!("cannot start the log: {error}")))
}

/// Writes a field: the message alone, others with their names.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let name = field.name();
    // Spellings of names that are keywords; fields of records from the crate `log`.
    if name.starts_with("log.") {
        return Ok(());
    }
    if name != "message" {
        write!(writer, "{}=", name.strip_prefix("r#").unwrap_or(name))?;
    }
    let mut plain = Plain { writer, chars: 0, cut: 0 };
    write!(plain, "{value:?}")?;
    let cut = plain.cut;
    if cut > 0 { write!(writer, "… ({cut} more characters are cut)") } else { Ok(()) }
}

/// Escapes what would end the line or act on a terminal.
struct Plain<'a, W> {
    writer: &'a mut W,
    chars: usize,
    /// Characters that were not written.
    cut: usize,
}

impl<W: fmt::Write> fmt::Write for Plain<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.chars == FIELD_CHARS {
                self.cut += 1;
                continue;
            }
            self.chars += 1;
            match character {
                // Line and paragraph separators, and marks that change the order of text on the screen.
                '\u{2028}'
                | '\u{2029}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => {
                    write!(self.writer, "{}", character.escape_unicode())?;
                }
                _ if character.is_control() => write!(self.writer, "{}", character.escape_default())?,
                _ => self.writer.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (String, usize) {
        let mut out = String::new();
        let mut plain = Plain { writer: &mut out, chars: 0, cut: 0 };
        plain.write_str(text).expect("a string");
        let cut = plain.cut;
        (out, cut)
    }

    #[test]
    fn control_characters_are_escaped_and_long_values_cut() {
        let hostile = "a\nWARN forged \u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2028}é";
        let (out, cut) = shown(hostile);
        assert_eq!(out, r"a\nWARN forged \u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2028}é");
        assert_eq!(cut, 0);
        let (out, cut) = shown(&"x".repeat(FIELD_CHARS + 7));
        assert_eq!((out.len(), cut), (FIELD_CHARS, 7));
    }

    /// The bytes that a subscriber writes.
    #[derive(Clone, Default)]
    struct Lines(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_record_is_one_line_whatever_its_fields_have() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(debug_fn(field).delimited(" "))
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let reason = "the client (version 1\n2026-11-23T00:00:00Z WARN forged uid=0 \u{1b}[31m)";
            let span = tracing::info_span!("request", id = %"a\nb");
            span.in_scope(|| tracing::warn!(client = 7, %reason, path = "a\rb", "left {}", "c\nd"));
        });
        let out = String::from_utf8(lines.0.lock().expect("not poisoned").clone()).expect("text");
        assert_eq!(out.lines().count(), 1, "{out}");
        assert!(!out.trim_end().chars().any(char::is_control), "{out:?}");
        let fields =
            r"client=7 reason=the client (version 1\n2026-11-23T00:00:00Z WARN forged uid=0 \u{1b}[31m)";
        assert!(out.contains(fields) && out.contains(r"left c\nd"), "{out}");
    }
}
