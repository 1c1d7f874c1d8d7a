//! Owns the transformations of source text before QuickJS evaluates it: repl declarations, TypeScript. Must not run anything.

pub(super) mod repl;
pub(super) mod scan;
pub(super) mod typescript;

use oxc_diagnostics::{OxcDiagnostic, Severity};

/// A text that cannot be run, with the position of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceError {
    pub(super) message: String,
    /// Counts from 1.
    pub(super) line: u32,
    /// Counts from 1, in characters.
    pub(super) column: u32,
}

impl SourceError {
    /// The first error among oxc's diagnostics.
    fn first<'a>(diagnostics: impl IntoIterator<Item = &'a OxcDiagnostic>, source: &str) -> Option<Self> {
        let error = diagnostics.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error)?;
        let offset = error.labels.iter().next().map_or(0, |label| label.offset() as usize);
        let (line, column) = place(source, offset);
        Some(Self { message: error.message.to_string(), line, column })
    }
}

/// QuickJS reads a text up to a NUL character, which literals and comments may have; there, `\x00` means the same.
pub(super) fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\\x00") } else { text }
}

/// Line and column (both from 1) of a byte offset.
pub(super) fn place(source: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &source[..offset];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// Runs a parser; a panic of the parser becomes an error of the text.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, SourceError>) -> Result<T, SourceError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(SourceError { message: "the parser failed on this text".to_owned(), line: 1, column: 1 })
    })
}
