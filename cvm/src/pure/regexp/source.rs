//! Pattern text: the parser's input, the text of `source`, and `RegExp.escape`.

use super::super::units::{code_point_at, is_lead, is_line_terminator, is_trail};
use super::RegExpError;

/// Deepest nesting of groups and classes. The parser and the compiler recurse once for each level.
pub(crate) const MAX_NESTING: usize = 200;

/// The pattern as text for the parser. A lone surrogate becomes an escape with the same meaning.
pub(super) fn to_parser_text(pattern: &[u16], unicode: bool) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut index = 0;
    let mut escaped = false;
    while index < pattern.len() {
        let (code_point, length) = code_point_at(pattern, index);
        index += length;
        if let Some(letter) = char::from_u32(code_point) {
            text.push(letter);
        } else {
            // After a backslash the surrogate is an identity escape of itself: remove the backslash.
            if escaped {
                text.pop();
            }
            let escape =
                if unicode { format!("\\u{{{code_point:X}}}") } else { format!("\\u{code_point:04X}") };
            text.push_str(&escape);
        }
        escaped = !escaped && code_point == u32::from('\\');
    }
    text
}

/// Refuses patterns that would make the parser recurse too deeply, before they are parsed.
pub(super) fn check_nesting(pattern: &[u16], nested_classes: bool) -> Result<(), RegExpError> {
    let (mut groups, mut classes, mut escaped) = (0_usize, 0_usize, false);
    for unit in pattern {
        let letter = u8::try_from(*unit).unwrap_or(0);
        if escaped {
            escaped = false;
            continue;
        }
        match letter {
            b'\\' => escaped = true,
            b'[' if classes == 0 || nested_classes => classes += 1,
            b']' => classes = classes.saturating_sub(1),
            b'(' if classes == 0 => groups += 1,
            b')' if classes == 0 => groups = groups.saturating_sub(1),
            _ => {}
        }
        if groups + classes > MAX_NESTING {
            return Err(RegExpError::TooDeep);
        }
    }
    Ok(())
}

/// `EscapeRegExpPattern`, ECMA-262 22.2.6.13.1: text that between slashes is the same pattern.
pub(crate) fn escape_pattern(pattern: &[u16]) -> Vec<u16> {
    if pattern.is_empty() {
        return "(?:)".encode_utf16().collect();
    }
    let mut out = Vec::with_capacity(pattern.len());
    let (mut escaped, mut in_class) = (false, false);
    for unit in pattern {
        let letter = u8::try_from(*unit).unwrap_or(0);
        if is_line_terminator(*unit) {
            // A backslash before a line terminator would become part of the new escape's text: drop it.
            if escaped {
                out.pop();
            }
            let text = match unit {
                0x0A => "\\n",
                0x0D => "\\r",
                0x2028 => "\\u2028",
                _ => "\\u2029",
            };
            out.extend(text.encode_utf16());
            escaped = false;
            continue;
        }
        match letter {
            b'/' if !escaped && !in_class => out.push(u16::from(b'\\')),
            b'[' if !escaped => in_class = true,
            b']' if !escaped => in_class = false,
            _ => {}
        }
        escaped = !escaped && letter == b'\\';
        out.push(*unit);
    }
    out
}

/// `RegExp.escape`, ECMA-262 22.2.5.1.
pub(crate) fn escape_literal(text: &[u16]) -> Vec<u16> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let mut index = 0;
    while index < text.len() {
        let (code_point, length) = code_point_at(text, index);
        let letter = u8::try_from(code_point).unwrap_or(0);
        if index == 0 && letter.is_ascii_alphanumeric() {
            out.extend(format!("\\x{letter:02x}").encode_utf16());
        } else {
            escape_one(&mut out, code_point, &text[index..index + length]);
        }
        index += length;
    }
    out
}

/// `EncodeForRegExpEscape`, ECMA-262 22.2.5.1.1.
fn escape_one(out: &mut Vec<u16>, code_point: u32, units: &[u16]) {
    let letter = u8::try_from(code_point).unwrap_or(0);
    let text = match letter {
        b'^' | b'$' | b'\\' | b'.' | b'*' | b'+' | b'?' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'|'
        | b'/' => {
            format!("\\{}", char::from(letter))
        }
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        0x0B => "\\v".to_owned(),
        0x0C => "\\f".to_owned(),
        b'\r' => "\\r".to_owned(),
        b',' | b'-' | b'=' | b'<' | b'>' | b'#' | b'&' | b'!' | b'%' | b':' | b';' | b'@' | b'~' | b'\''
        | b'`' | b'"' => {
            format!("\\x{letter:02x}")
        }
        _ => {
            let unit = units[0];
            let lone = units.len() == 1 && (is_lead(unit) || is_trail(unit));
            if lone || super::super::units::is_white_space(unit) {
                if unit < 256 { format!("\\x{unit:02x}") } else { format!("\\u{unit:04x}") }
            } else {
                out.extend_from_slice(units);
                return;
            }
        }
    };
    out.extend(text.encode_utf16());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn text(units: &[u16]) -> String {
        String::from_utf16_lossy(units)
    }

    #[test]
    fn source_is_a_valid_literal_between_slashes() {
        for (pattern, source) in [
            ("", "(?:)"),
            ("/", "\\/"),
            ("\\/", "\\/"),
            ("[/]", "[/]"),
            ("a\nb", "a\\nb"),
            ("a\\\nb", "a\\nb"),
            ("\u{2028}", "\\u2028"),
            ("[\\]/]/", "[\\]/]\\/"),
            ("\\\\/", "\\\\\\/"),
        ] {
            assert_eq!(text(&escape_pattern(&utf16(pattern))), source, "{pattern:?}");
        }
    }

    #[test]
    fn escaped_text_matches_itself_anywhere() {
        for (plain, escaped) in [
            ("abc", "\\x61bc"),
            ("_a.b", "_a\\.b"),
            ("1,2", "\\x31\\x2c2"),
            (" \n\u{2028}", "\\x20\\n\\u2028"),
            ("😀é", "😀é"),
        ] {
            assert_eq!(text(&escape_literal(&utf16(plain))), escaped);
        }
        assert_eq!(text(&escape_literal(&[0xD800])), "\\ud800");
    }

    #[test]
    fn nesting_is_bounded_where_the_parser_recurses() {
        let deep = |open: &str, count: usize| check_nesting(&utf16(&open.repeat(count)), true);
        assert!(deep("(", MAX_NESTING).is_ok() && deep("(", MAX_NESTING + 1).is_err());
        assert!(deep("(?=", 100_000).is_err() && deep("[", 100_000).is_err());
        assert!(deep("\\(", 100_000).is_ok() && deep("()", 100_000).is_ok());
        assert!(check_nesting(&utf16(&"[".repeat(1000)), false).is_ok());
    }

    #[test]
    fn lone_surrogates_become_escapes() {
        assert_eq!(to_parser_text(&[0x61, 0xD800, 0x62], false), "a\\uD800b");
        assert_eq!(to_parser_text(&[0x5C, 0xD800], false), "\\uD800");
        assert_eq!(to_parser_text(&[0xD800], true), "\\u{D800}");
        assert_eq!(to_parser_text(&utf16("😀"), false), "😀");
    }
}
