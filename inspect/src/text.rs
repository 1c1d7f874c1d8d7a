//! Owns quoting and measuring of text as Node does it.

use std::fmt::Write;

/// The end of a text that was cut.
pub const CUT_MARK: &str = "... [cut: too long]";

/// Cuts a text to this many bytes, and marks it.
pub fn cut_to(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(CUT_MARK.len())));
        text.push_str(CUT_MARK);
    }
    text
}

/// Whether a property name is written without quotes.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A string in quotes: single quotes unless it contains one, then double quotes, then backticks.
pub(super) fn escape(units: &[u16]) -> String {
    let has = |byte: u8| units.contains(&u16::from(byte));
    let template = units.windows(2).any(|pair| pair == [u16::from(b'$'), u16::from(b'{')]);
    let quote = match (has(b'\''), has(b'"'), has(b'`') || template) {
        (true, false, _) => '"',
        (true, true, false) => '`',
        _ => '\'',
    };
    let mut text = String::with_capacity(units.len() + 2);
    text.push(quote);
    escape_units(&mut text, units, quote);
    text.push(quote);
    text
}

/// The name of a symbol as a key.
pub(super) fn escape_symbol(units: &[u16]) -> String {
    let mut text = String::from("Symbol(");
    escape_units(&mut text, units, '\'');
    text.push(')');
    text
}

fn escape_units(text: &mut String, units: &[u16], quote: char) {
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(character) => escape_character(text, character, quote),
            Err(lone) => {
                let _ = write!(text, "\\u{:04x}", lone.unpaired_surrogate());
            }
        }
    }
}

fn escape_character(text: &mut String, character: char, quote: char) {
    match character {
        '\u{8}' => text.push_str("\\b"),
        '\t' => text.push_str("\\t"),
        '\n' => text.push_str("\\n"),
        '\u{c}' => text.push_str("\\f"),
        '\r' => text.push_str("\\r"),
        '\\' => text.push_str("\\\\"),
        '\'' if quote == '\'' => text.push_str("\\'"),
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
            let _ = write!(text, "\\x{:02X}", u32::from(character));
        }
        other => text.push(other),
    }
}

/// Length in UTF-16 code units, as `.length`.
pub(super) fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Columns on a terminal.
pub(super) fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        text.len()
    } else {
        text.chars().map(columns).sum()
    }
}

fn columns(character: char) -> usize {
    match u32::from(character) {
        // Control characters, combining marks, zero-width characters, variation selectors.
        0..=0x1f
        | 0x7f..=0x9f
        | 0x300..=0x36f
        | 0x200b..=0x200f
        | 0x20d0..=0x20ff
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0xe0100..=0xe01ef => 0,
        // East Asian wide and fullwidth, emoji.
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0x33ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xa000..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn quotes_are_chosen_by_the_contents_of_the_text() {
        let quoted = |text: &str| escape(&text.encode_utf16().collect::<Vec<_>>());
        assert_eq!(quoted("a"), "'a'");
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("'\""), "`'\"`");
        assert_eq!(quoted("'\"`"), "'\\'\"`'");
        assert_eq!(quoted("a\n\u{7f}"), "'a\\n\\x7F'");
        assert_eq!(escape(&[0xd83d]), "'\\ud83d'");
    }
}
