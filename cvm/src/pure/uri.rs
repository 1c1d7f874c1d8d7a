//! `encodeURI`, `encodeURIComponent`, `decodeURI`, `decodeURIComponent`: ECMA-262 19.2.6.

use super::units::{Units, code_point_at, push_code_point};

/// The text cannot be encoded or decoded; the caller throws a `URIError`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("URI malformed")]
pub(crate) struct UriError;

/// The characters that a coder treats as part of the URI's structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UriPart {
    /// A whole URI: `;/?:@&=+$,#` keep their meaning.
    Uri,
    /// One component: only unreserved marks stay.
    Component,
}

/// `uriReserved` and `#`, ECMA-262 19.2.6.1.
const STRUCTURE: &[u8] = b";/?:@&=+$,#";
/// `uriUnreserved` beyond letters and digits.
const MARKS: &[u8] = b"-_.!~*'()";

fn in_set(unit: u32, set: &[u8]) -> bool {
    u8::try_from(unit).is_ok_and(|byte| set.contains(&byte))
}

/// `Encode`, ECMA-262 19.2.6.5. The result is ASCII.
pub(crate) fn encode<U: Units + ?Sized>(text: &U, scope: UriPart) -> Result<String, UriError> {
    let mut out = String::with_capacity(text.count());
    let mut index = 0;
    while index < text.count() {
        let (code_point, length) = code_point_at(text, index);
        let letter = char::from_u32(code_point).ok_or(UriError)?;
        let plain = letter.is_ascii_alphanumeric()
            || in_set(code_point, MARKS)
            || (scope == UriPart::Uri && in_set(code_point, STRUCTURE));
        if plain {
            out.push(letter);
        } else {
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                push_percent(&mut out, byte);
            }
        }
        index += length;
    }
    Ok(out)
}

fn push_percent(out: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(HEX[usize::from(byte >> 4)]));
    out.push(char::from(HEX[usize::from(byte & 15)]));
}

/// `Decode`, ECMA-262 19.2.6.6.
pub(crate) fn decode<U: Units + ?Sized>(text: &U, scope: UriPart) -> Result<Vec<u16>, UriError> {
    let mut out = Vec::with_capacity(text.count());
    let mut index = 0;
    while index < text.count() {
        let unit = text.unit(index);
        if unit != u16::from(b'%') {
            out.push(unit);
            index += 1;
            continue;
        }
        let first = octet(text, index)?;
        let count = match first {
            0..=0x7F => 1,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => return Err(UriError),
        };
        let mut octets = [first, 0, 0, 0];
        for (offset, slot) in octets.iter_mut().enumerate().take(count).skip(1) {
            *slot = octet(text, index + offset * 3)?;
        }
        let decoded = std::str::from_utf8(&octets[..count]).map_err(|_| UriError)?;
        let code_point = decoded.chars().next().map_or(0, u32::from);
        if scope == UriPart::Uri && in_set(code_point, STRUCTURE) {
            out.extend((index..index + 3).map(|offset| text.unit(offset)));
        } else {
            push_code_point(&mut out, code_point);
        }
        index += count * 3;
    }
    Ok(out)
}

/// The byte of a `%XX` at `index`.
fn octet<U: Units + ?Sized>(text: &U, index: usize) -> Result<u8, UriError> {
    if index + 2 >= text.count() || text.unit(index) != u16::from(b'%') {
        return Err(UriError);
    }
    let digit = |offset: usize| {
        char::from_u32(u32::from(text.unit(offset))).and_then(|unit| unit.to_digit(16)).ok_or(UriError)
    };
    Ok((digit(index + 1)? * 16 + digit(index + 2)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn encoding_keeps_structure_only_for_whole_uris() {
        let text = utf16("a b/ü?😀#'");
        assert_eq!(encode(text.as_slice(), UriPart::Uri), Ok("a%20b/%C3%BC?%F0%9F%98%80#'".to_owned()));
        assert_eq!(
            encode(text.as_slice(), UriPart::Component),
            Ok("a%20b%2F%C3%BC%3F%F0%9F%98%80%23'".to_owned())
        );
        assert_eq!(encode([0xD800_u16].as_slice(), UriPart::Uri), Err(UriError));
        assert_eq!(encode([0xDC00_u16, 0xD800].as_slice(), UriPart::Uri), Err(UriError));
    }

    #[test]
    fn decoding_refuses_invalid_utf8() {
        assert_eq!(decode(b"a%20%F0%9F%98%80%2f".as_slice(), UriPart::Component), Ok(utf16("a 😀/")));
        assert_eq!(decode(b"%2f%23%41".as_slice(), UriPart::Uri), Ok(utf16("%2f%23A")));
        for bad in [
            "%",
            "%4",
            "%zz",
            "%80",
            "%C0%80",
            "%ED%A0%80",
            "%F8%80%80%80%80",
            "%C3",
            "%C3x3",
            "%F4%90%80%80",
        ] {
            assert_eq!(decode(bad.as_bytes(), UriPart::Component), Err(UriError), "{bad}");
        }
    }
}
