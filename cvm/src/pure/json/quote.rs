//! `QuoteJSONString`, ECMA-262 25.5.2.3.

use super::super::units::{Units, is_lead, is_trail};

/// Appends `text` in double quotes to `out`; lone surrogates become `\uXXXX`. At most six units for each unit, and two.
pub(crate) fn quote<U: Units + ?Sized>(out: &mut Vec<u16>, text: &U) {
    quote_with(out, text, long);
}

/// The same with U+FFFD instead of each lone surrogate: many JSON parsers refuse the escape of a lone surrogate.
pub(crate) fn quote_readably<U: Units + ?Sized>(out: &mut Vec<u16>, text: &U) {
    quote_with(out, text, |out, _| out.push(0xFFFD));
}

fn quote_with<U: Units + ?Sized>(out: &mut Vec<u16>, text: &U, lone: impl Fn(&mut Vec<u16>, u16)) {
    out.reserve(text.count() + 2);
    out.push(u16::from(b'"'));
    let mut index = 0;
    while index < text.count() {
        let unit = text.unit(index);
        match unit {
            0x08 => short(out, b'b'),
            0x09 => short(out, b't'),
            0x0A => short(out, b'n'),
            0x0C => short(out, b'f'),
            0x0D => short(out, b'r'),
            0x22 | 0x5C => short(out, unit as u8),
            0..=0x1F => long(out, unit),
            0xD800..=0xDFFF => {
                let pair = is_lead(unit) && index + 1 < text.count() && is_trail(text.unit(index + 1));
                if pair {
                    out.extend([unit, text.unit(index + 1)]);
                    index += 1;
                } else {
                    lone(out, unit);
                }
            }
            _ => out.push(unit),
        }
        index += 1;
    }
    out.push(u16::from(b'"'));
}

fn short(out: &mut Vec<u16>, letter: u8) {
    out.extend([u16::from(b'\\'), u16::from(letter)]);
}

fn long(out: &mut Vec<u16>, unit: u16) {
    out.extend(format!("\\u{unit:04x}").encode_utf16());
}

#[cfg(test)]
mod tests {
    use super::quote;

    fn quoted(text: &[u16]) -> String {
        let mut out = Vec::new();
        quote(&mut out, text);
        String::from_utf16_lossy(&out)
    }

    #[test]
    fn control_characters_and_lone_surrogates_are_escaped() {
        let text: Vec<u16> = "a\"\\\u{8}\t\n\u{c}\r\u{1}\u{1f}/\u{7f}\u{2028}é😀".encode_utf16().collect();
        assert_eq!(quoted(&text), "\"a\\\"\\\\\\b\\t\\n\\f\\r\\u0001\\u001f/\u{7f}\u{2028}é😀\"");
        assert_eq!(quoted(&[0xD83D]), "\"\\ud83d\"");
        assert_eq!(quoted(&[0xDE00, 0xD83D, 0x41]), "\"\\ude00\\ud83dA\"");
    }
}
