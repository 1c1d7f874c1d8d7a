//! Results as text: tables for people, documents for programs. Field names are those of the REST API in every format.
//!
//! All text that a script or another user may have written goes through [`escape`] before it is shown to people.

pub(crate) mod color;
mod decisions;
mod document;
pub(crate) mod escape;
mod fields;
mod fit;
mod owners;
mod pager;
mod reflow;
mod table;
mod tree;
mod wrap;
mod yaml;

pub(crate) use fields::Columns;
pub(crate) use fit::Fit;
pub(crate) use owners::with_owners;
pub(crate) use table::Rows;

use crate::args::{GlobalArgs, OutputFormat};
use crate::error::CliError;
use crate::hints;
use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

/// The capabilities of the terminals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    color: bool,
    stderr_terminal: bool,
    stdout_terminal: bool,
}

impl Style {
    /// Colour only on a terminal that has it, and never with `--no-color` or `NO_COLOR`.
    pub(crate) fn detect(no_color: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = !no_color && !dumb && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            color,
            stderr_terminal: io::stderr().is_terminal(),
            stdout_terminal: io::stdout().is_terminal(),
        }
    }

    pub(crate) fn color_allowed(self) -> bool {
        self.color
    }

    pub(crate) fn stdout_is_terminal(self) -> bool {
        self.stdout_terminal
    }

    pub(crate) fn stderr_is_terminal(self) -> bool {
        self.stderr_terminal
    }

    /// Whether stdout shows colours.
    pub(crate) fn colors_stdout(self) -> bool {
        self.color && self.stdout_terminal
    }

    pub(crate) fn error_label(self, text: &str) -> String {
        paint(self.color && self.stderr_terminal, "1;31", text)
    }

    pub(crate) fn hint_label(self, text: &str) -> String {
        paint(self.color && self.stderr_terminal, "1;36", text)
    }
}

fn paint(color: bool, code: &str, text: &str) -> String {
    if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// The destination and format of results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: OutputFormat,
    pub(crate) quiet: bool,
    /// Tables are not fitted to the terminal.
    pub(crate) wide: bool,
    pub(crate) style: Style,
}

impl Output {
    pub(crate) fn new(global: &GlobalArgs, style: Style) -> Self {
        let GlobalArgs { output: format, quiet, wide, .. } = *global;
        Self { format, quiet, wide, style }
    }

    /// The terminal that tables must fit.
    pub(crate) fn fit(self) -> Option<Fit> {
        if self.wide || !self.style.stdout_is_terminal() { None } else { Fit::detect() }
    }

    /// A cell of a table: where tables fit the terminal the first line, of at most so many characters.
    pub(crate) fn cell(self, text: &str, most_chars: usize) -> String {
        if self.fit().is_none() {
            return text.to_owned();
        }
        let line = text.lines().next().unwrap_or_default();
        let short: String = line.chars().take(most_chars).collect();
        if short.len() < text.len() { short + "…" } else { short }
    }

    /// A line that begins with a label, wrapped at the width of the terminal, with further lines below its text.
    pub(crate) fn entry(self, label: &str, text: &str) -> String {
        match self.fit() {
            Some(fit) => wrap::entry(label, text, fit.width),
            None => format!("{label}{text}"),
        }
    }

    /// Whether results are shown to people.
    pub(crate) fn is_table(self) -> bool {
        self.format == OutputFormat::Table
    }

    /// Prints a result: `table` returns the text for people; the other formats serialize the value.
    pub(crate) fn result<T: Columns + ?Sized>(
        self,
        value: &T,
        table: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        let text = match self.format {
            OutputFormat::Table => with_newline(table()),
            OutputFormat::Json => document::json(value)?,
            OutputFormat::Yaml => document::yaml(value)?,
            OutputFormat::Csv => document::csv(value)?,
        };
        self.write(&text)
    }

    /// Prints a list: a table for people, or with `--quiet` only its first column. The note about an empty list goes to stderr.
    pub(crate) fn list<T: Columns + ?Sized>(
        self,
        value: &T,
        empty: &str,
        table: impl FnOnce() -> Rows,
    ) -> Result<(), CliError> {
        if !self.is_table() {
            return self.result(value, String::new);
        }
        let rows = table();
        if rows.is_empty() {
            self.note(empty);
            return Ok(());
        }
        self.write(&with_newline(if self.quiet { rows.names() } else { rows.finish(empty, self.fit()) }))
    }

    /// Prints one line about a completed command; with `--quiet` only the id.
    pub(crate) fn done<T: Columns>(self, value: &T, line: &str, id: &str) -> Result<(), CliError> {
        self.result(value, || if self.quiet { id.to_owned() } else { escape::for_message(line).into_owned() })
    }

    /// Prints one object as names and values.
    pub(crate) fn details<T: Columns>(self, value: &T) -> Result<(), CliError> {
        if self.is_table() {
            self.write(&with_newline(table::details(value, self.fit())?))
        } else {
            self.result(value, String::new)
        }
    }

    /// Prints one element of a stream.
    pub(crate) fn element<T: Columns>(
        self,
        value: &T,
        first: bool,
        line: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        let text = match self.format {
            OutputFormat::Table => with_newline(line()),
            OutputFormat::Json => document::json_line(value)?,
            OutputFormat::Yaml => document::yaml(&[value])?,
            OutputFormat::Csv => document::csv_element(value, first)?,
        };
        self.write(&text)
    }

    /// Writes text to stdout at once; on a terminal without control characters, whatever the format.
    pub(crate) fn write(self, text: &str) -> Result<(), CliError> {
        let visible =
            if self.style.stdout_is_terminal() { escape::for_terminal(text) } else { Cow::Borrowed(text) };
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(visible.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(|error| CliError::output(&error))
    }

    /// Prints a long text of ours, on a terminal through the pager.
    pub(crate) fn page(self, text: &str) -> Result<(), CliError> {
        if self.style.stdout_is_terminal() && pager::show(text) { Ok(()) } else { self.write(text) }
    }

    /// Prints a page of Markdown, on a terminal with paragraphs of its width.
    pub(crate) fn page_of_markdown(self, text: &str) -> Result<(), CliError> {
        let text = decisions::without_links(text);
        match self.fit() {
            Some(fit) => self.page(&reflow::reflow(&text, fit.width)),
            None => self.page(&text),
        }
    }

    /// Prints a note that is not a result.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            notice(&hints::with_options(text));
        }
    }
}

/// Shows a text in the pager; `false` if there is none or it is not needed.
pub(crate) fn page(text: &str) -> bool {
    pager::show(text)
}

/// Prints a note that is important with `--quiet` too, such as that what is printed is not everything.
pub(crate) fn notice(text: &str) {
    // A closed stderr cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", escape::for_message(text));
}

fn with_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
