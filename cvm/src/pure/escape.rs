//! `escape` and `unescape`, ECMA-262 B.2.1.

use super::units::Units;

/// `escape`, ECMA-262 B.2.1.1. The result is ASCII.
pub(crate) fn escape<U: Units + ?Sized>(text: &U) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.count());
    for index in 0..text.count() {
        let unit = text.unit(index);
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() || b"@*_+-./".contains(&byte) => {
                out.push(char::from(byte));
            }
            Ok(byte) => {
                let _ = write!(out, "%{byte:02X}");
            }
            Err(_) => {
                let _ = write!(out, "%u{unit:04X}");
            }
        }
    }
    out
}

/// `unescape`, ECMA-262 B.2.1.2; text that is not an escape is unchanged.
pub(crate) fn unescape<U: Units + ?Sized>(text: &U) -> Vec<u16> {
    let mut out = Vec::with_capacity(text.count());
    let mut index = 0;
    while index < text.count() {
        let (unit, length) = escape_at(text, index).unwrap_or((text.unit(index), 1));
        out.push(unit);
        index += length;
    }
    out
}

fn escape_at<U: Units + ?Sized>(text: &U, index: usize) -> Option<(u16, usize)> {
    if text.unit(index) != u16::from(b'%') {
        return None;
    }
    let long = index + 1 < text.count() && text.unit(index + 1) == u16::from(b'u');
    let (start, count) = if long { (index + 2, 4) } else { (index + 1, 2) };
    if start + count > text.count() {
        return None;
    }
    let mut value = 0;
    for position in start..start + count {
        value = value * 16 + char::from_u32(u32::from(text.unit(position)))?.to_digit(16)?;
    }
    Some((value as u16, start + count - index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_round_trip() {
        let text: Vec<u16> = "a+ü€ 😀".encode_utf16().collect();
        let escaped = escape(text.as_slice());
        assert_eq!(escaped, "a+%FC%u20AC%20%uD83D%uDE00");
        assert_eq!(unescape(escaped.as_bytes()), text);
    }

    #[test]
    fn incomplete_escapes_stay() {
        for text in ["%", "%u", "%u12", "%u123", "%zz", "%1", "%u00g0"] {
            assert_eq!(unescape(text.as_bytes()), text.encode_utf16().collect::<Vec<_>>());
        }
        assert_eq!(unescape(b"%u0041%41%u004".as_slice()), "AA%u004".encode_utf16().collect::<Vec<_>>());
    }
}
