//! Shows control characters as escapes: a script must not move the cursor, recolour or rename a terminal, or reorder the
//! displayed text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text of a script for a terminal; line feeds and tabs are kept.
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n' || c == '\t')
}

/// Text inside a message; line feeds are kept.
pub(crate) fn for_message(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n')
}

/// Text for one line: line feeds are escaped too.
pub(crate) fn for_cell(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let dangerous = |c: char| is_control(c) && !keep(c);
    if !text.contains(dangerous) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !dangerous(c) {
            escaped.push(c);
            continue;
        }
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            // Writing to a String cannot fail.
            c if u32::from(c) < 0x100 => drop(write!(escaped, "\\x{:02x}", u32::from(c))),
            c => drop(write!(escaped, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(escaped)
}

/// C0, DEL, C1, line and paragraph separators, and the marks that reorder text (Unicode bidirectional algorithm, UAX 9).
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_cannot_steer_the_terminal() {
        assert_eq!(for_terminal("\x1b]0;owned\x07\r\u{9b}31m"), "\\x1b]0;owned\\x07\\r\\x9b31m");
        assert_eq!(for_terminal("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        assert!(matches!(for_terminal("líne one\n\ttwo 😀"), Cow::Borrowed(_)));
        assert_eq!(for_cell("one\ntwo\tthree"), "one\\ntwo\\tthree");
    }
}
