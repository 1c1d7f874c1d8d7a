//! Values as YAML, in a subset that every reader of YAML 1.1 and 1.2 reads alike: mappings and sequences in block style, texts of
//! several lines as literal blocks, and in quotation marks, as JSON, whatever a reader could take for something else.

use super::tree::DocumentValue;
use std::fmt::Write as _;

/// The value as one document, with a line feed at the end.
pub(super) fn document(value: &DocumentValue) -> String {
    let mut text = String::new();
    match value {
        DocumentValue::Mapping(fields) if !fields.is_empty() => write_mapping(&mut text, fields, 0),
        DocumentValue::Sequence(items) if !items.is_empty() => write_sequence(&mut text, items, 0),
        scalar => {
            write_scalar(&mut text, scalar, 0);
            text.push('\n');
        }
    }
    text
}

fn write_mapping(text: &mut String, fields: &[(String, DocumentValue)], indent: usize) {
    for (number, (name, value)) in fields.iter().enumerate() {
        // The first line of an item begins behind the item's dash.
        if number > 0 || !text.ends_with("- ") {
            write_indent(text, indent);
        }
        text.push_str(&if is_plain(name) { name.clone() } else { quoted(name) });
        text.push(':');
        match value {
            DocumentValue::Mapping(fields) if !fields.is_empty() => {
                text.push('\n');
                write_mapping(text, fields, indent + 2);
            }
            DocumentValue::Sequence(items) if !items.is_empty() => {
                text.push('\n');
                write_sequence(text, items, indent);
            }
            scalar => {
                text.push(' ');
                write_scalar(text, scalar, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn write_sequence(text: &mut String, items: &[DocumentValue], indent: usize) {
    for (number, item) in items.iter().enumerate() {
        if number > 0 || !text.ends_with("- ") {
            write_indent(text, indent);
        }
        text.push_str("- ");
        match item {
            DocumentValue::Mapping(fields) if !fields.is_empty() => write_mapping(text, fields, indent + 2),
            DocumentValue::Sequence(items) if !items.is_empty() => write_sequence(text, items, indent + 2),
            scalar => {
                write_scalar(text, scalar, indent + 2);
                text.push('\n');
            }
        }
    }
}

/// Writes a value that is on one line, or a literal block whose lines begin with `indent` spaces.
fn write_scalar(text: &mut String, value: &DocumentValue, indent: usize) {
    match value {
        DocumentValue::Null => text.push_str("null"),
        DocumentValue::Bool(value) => text.push_str(&value.to_string()),
        DocumentValue::Number(number) => text.push_str(&number.to_string()),
        DocumentValue::Sequence(_) => text.push_str("[]"),
        DocumentValue::Mapping(_) => text.push_str("{}"),
        DocumentValue::String(line) if is_plain(line) => text.push_str(line),
        DocumentValue::String(lines) if is_block(lines) => {
            // `-`: without a line feed at the end; `+`: with all that are there.
            text.push_str(if lines.ends_with("\n\n") {
                "|+"
            } else if lines.ends_with('\n') {
                "|"
            } else {
                "|-"
            });
            for line in lines.strip_suffix('\n').unwrap_or(lines).split('\n') {
                text.push('\n');
                if !line.is_empty() {
                    write_indent(text, indent);
                    text.push_str(line);
                }
            }
        }
        DocumentValue::String(other) => text.push_str(&quoted(other)),
    }
}

fn write_indent(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// A text as a JSON string, which is a double-quoted scalar of YAML. Characters that YAML's readers refuse or fold are escaped.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in serde_json::Value::from(text).to_string().chars() {
        if is_printable(c) {
            quoted.push(c);
        } else {
            // Writing to a text does not fail.
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        }
    }
    quoted
}

/// Whether YAML allows the character outside of escapes and a reader leaves it as it is: no controls, no further line separators
/// (YAML 1.1), no byte-order mark.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether every reader takes the text, without quotation marks, for this text.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "~", ".nan"];
    let is_word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    // Numbers of all notations, of base 60 and dates among them. None has more than two hyphens, but UUIDs have.
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && text.matches('-').count() <= 2
        && text.chars().all(|c| {
            c.is_ascii_hexdigit()
                || matches!(c, '+' | '-' | '.' | ':' | '_' | 'x' | 'o' | 'i' | 'n' | 'I' | 'N')
        });
    let begins_well = text.starts_with(|c: char| {
        c.is_alphanumeric() || !c.is_ascii() || matches!(c, '/' | '(' | '_' | '$' | '.')
    });
    begins_well
        && !is_word
        && !is_number
        && text != "="
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(is_printable)
}

/// Whether a text of several lines is readable as a literal block: its first line has no spaces in front, by which a reader finds
/// the block's indent, and no line ends with spaces, which editors remove.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.contains(" \n")
        && !text.ends_with(' ')
        && text.chars().all(|c| c == '\n' || is_printable(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(json: &str) -> String {
        document(&serde_json::from_str(json).expect("a document"))
    }

    #[test]
    fn mappings_and_sequences_nest() {
        let written = yaml(r#"{"b":[1,[2,[]],{"x":null,"z":{}}],"a":{"c":true,"d":[{"e":1.5}]}}"#);
        let expected = "b:\n- 1\n- - 2\n  - []\n- x: null\n  z: {}\na:\n  c: true\n  d:\n  - e: 1.5\n";
        assert_eq!(written, expected);
        assert_eq!(yaml("[]"), "[]\n");
        assert_eq!(yaml("\"text\""), "text\n");
    }

    #[test]
    fn a_text_that_a_reader_could_take_for_something_else_is_in_quotation_marks() {
        for text in [
            "",
            "null",
            "True",
            "no",
            "~",
            "1",
            "-1.5",
            "0x1f",
            "1e3",
            "1_000",
            "12:30",
            "2026-01-01",
            ".inf",
            "-",
            "- a",
            "? a",
            "a: b",
            "a #b",
            "#a",
            " a",
            "a ",
            "a:",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "@a",
            "`a",
            "%a",
            "{a}",
            "[a]",
            "\"a\"",
            "'a'",
            "a\tb",
            "\u{85}",
            "\u{feff}",
            "a\u{2028}b",
            "=",
            "<<",
        ] {
            let value = serde_json::Value::from(text).to_string();
            let written = yaml(&value);
            assert!(written.starts_with('"') && written.ends_with("\"\n"), "{text:?}: {written}");
            let read: String = serde_json::from_str(&written).expect("JSON");
            assert_eq!(read, text);
        }
        for text in [
            "a",
            "a b",
            "2026-01-01T00:00:00.000Z",
            "/a/b",
            "a:b",
            "a#b",
            "(nobody)",
            "uid:1000",
            "größer",
            "limit(wall)",
        ] {
            assert_eq!(yaml(&serde_json::Value::from(text).to_string()), format!("{text}\n"));
        }
    }

    #[test]
    fn lines_are_literal_blocks_unless_a_reader_would_change_them() {
        assert_eq!(
            yaml(r#"{"a":"x\n\n  y","b":"x\n","c":"x\n\n"}"#),
            "a: |-\n  x\n\n    y\nb: |\n  x\nc: |+\n  x\n\n"
        );
        assert_eq!(yaml(r#"[["a\nb"]]"#), "- - |-\n    a\n    b\n");
        for text in ["\na", " a\nb", "a \nb", "a\n ", "a\u{1b}\nb", "a\r\nb", "\n"] {
            let written = yaml(&serde_json::Value::from(text).to_string());
            assert!(written.starts_with('"'), "{text:?}: {written}");
        }
    }
}
