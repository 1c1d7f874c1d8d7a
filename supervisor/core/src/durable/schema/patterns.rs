//! Patterns of schemas in JavaScript's notation; matching takes time linear in text times pattern.
//!
//! Owns: the translation from JavaScript's notation to the matcher's. Look-around and back-references have no linear-time
//! matching: a pattern with them is refused.

use regex::{Regex, RegexBuilder};

/// Largest compiled pattern (bytes).
const COMPILED_BYTES: usize = 1 << 20;
/// Deepest nesting of a pattern.
const NESTING: u32 = 64;

/// Compiles a pattern; on error the reason.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    let shown = || pattern.chars().take(100).collect::<String>();
    RegexBuilder::new(&translated(pattern))
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .nest_limit(NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => format!("the pattern {:?} is too large", shown()),
            _ => format!(
                "the pattern {:?} cannot be used: look-around and back-references are not supported",
                shown()
            ),
        })
}

/// The same pattern in the matcher's notation.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('/') => out.push('/'),
                Some('b') if in_class => out.push_str("\\x08"),
                Some('b') => out.push_str("(?-u:\\b)"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
            }
            // These characters have no special meaning in a class of JavaScript.
            '[' | '&' | '~' if in_class => out.extend(['\\', char]),
            ']' => {
                in_class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}
