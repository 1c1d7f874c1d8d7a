//! Base64 and hexadecimal digits of `Uint8Array`, ECMA-262 23.3.3.

use super::units::Units;

/// The treatment of digits at the end that are no whole chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastChunk {
    Loose,
    Strict,
    StopBeforePartial,
}

/// Decoded text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct DecodedDigits {
    /// Units of the text that were read
    pub read: usize,
    pub bytes: Vec<u8>,
    /// The rest is no valid text
    pub invalid: bool,
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn digit(unit: u16, url: bool) -> Option<u32> {
    let byte = u8::try_from(unit).ok()?;
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' if !url => 62,
        b'/' if !url => 63,
        b'-' if url => 62,
        b'_' if url => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

fn skip_space<U: Units + ?Sized>(text: &U, mut at: usize) -> usize {
    while at < text.count() && matches!(text.unit(at), 0x9 | 0xa | 0xc | 0xd | 0x20) {
        at += 1;
    }
    at
}

/// The bytes of the last 2 or 3 digits; none if `strict` and there are more bits.
fn last_bytes(chunk: &[u32], strict: bool) -> Option<Vec<u8>> {
    let bits = chunk.iter().fold(0, |bits, digit| bits << 6 | digit);
    let extra = if chunk.len() == 2 { bits & 0xf } else { bits & 0x3 };
    if strict && extra != 0 {
        return None;
    }
    Some(if chunk.len() == 2 { vec![(bits >> 4) as u8] } else { vec![(bits >> 10) as u8, (bits >> 2) as u8] })
}

/// `FromBase64`, 23.3.3.8: at most `most` bytes.
pub(crate) fn from_base64<U: Units + ?Sized>(
    text: &U,
    url: bool,
    last: LastChunk,
    most: usize,
) -> DecodedDigits {
    let mut out = DecodedDigits::default();
    if most == 0 {
        return out;
    }
    let mut chunk: Vec<u32> = Vec::with_capacity(4);
    let mut at = 0;
    let length = text.count();
    loop {
        at = skip_space(text, at);
        if at == length {
            return end_of_text(out, &chunk, last, length);
        }
        let unit = text.unit(at);
        at += 1;
        if unit == u16::from(b'=') {
            return after_padding(out, &chunk, last, text, at);
        }
        let Some(value) = digit(unit, url) else { return DecodedDigits { invalid: true, ..out } };
        let rest = most - out.bytes.len();
        if (rest == 1 && chunk.len() == 2) || (rest == 2 && chunk.len() == 3) {
            return out;
        }
        chunk.push(value);
        if chunk.len() == 4 {
            let bits = chunk.drain(..).fold(0, |bits, digit| bits << 6 | digit);
            out.bytes.extend([(bits >> 16) as u8, (bits >> 8) as u8, bits as u8]);
            out.read = at;
            if out.bytes.len() == most {
                return out;
            }
        }
    }
}

fn end_of_text(mut out: DecodedDigits, chunk: &[u32], last: LastChunk, length: usize) -> DecodedDigits {
    if !chunk.is_empty() {
        if last == LastChunk::StopBeforePartial {
            return out;
        }
        if last == LastChunk::Strict || chunk.len() == 1 {
            return DecodedDigits { invalid: true, ..out };
        }
        out.bytes.extend(last_bytes(chunk, false).unwrap_or_default());
    }
    out.read = length;
    out
}

fn after_padding<U: Units + ?Sized>(
    mut out: DecodedDigits,
    chunk: &[u32],
    last: LastChunk,
    text: &U,
    at: usize,
) -> DecodedDigits {
    let length = text.count();
    if chunk.len() < 2 {
        return DecodedDigits { invalid: true, ..out };
    }
    let mut at = skip_space(text, at);
    if chunk.len() == 2 {
        if at == length {
            return DecodedDigits { invalid: last != LastChunk::StopBeforePartial, ..out };
        }
        if text.unit(at) == u16::from(b'=') {
            at = skip_space(text, at + 1);
        }
    }
    match last_bytes(chunk, last == LastChunk::Strict).filter(|_| at == length) {
        Some(bytes) => {
            out.bytes.extend(bytes);
            out.read = length;
            out
        }
        None => DecodedDigits { invalid: true, ..out },
    }
}

/// `FromHex`, 23.3.3.9: at most `most` bytes.
pub(crate) fn from_hex<U: Units + ?Sized>(text: &U, most: usize) -> DecodedDigits {
    let mut out = DecodedDigits::default();
    let length = text.count();
    if !length.is_multiple_of(2) {
        return DecodedDigits { invalid: true, ..out };
    }
    let value = |at: usize| char::from_u32(u32::from(text.unit(at))).and_then(|c| c.to_digit(16));
    while out.read < length && out.bytes.len() < most {
        let (Some(high), Some(low)) = (value(out.read), value(out.read + 1)) else {
            return DecodedDigits { invalid: true, ..out };
        };
        out.bytes.push((high << 4 | low) as u8);
        out.read += 2;
    }
    out
}

/// Bytes as base64.
pub(crate) fn to_base64(bytes: &[u8], url: bool, padding: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
        for i in 0..=chunk.len() {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(match digit {
                b'+' if url => b'-',
                b'/' if url => b'_',
                digit => digit,
            });
        }
        if padding {
            text.resize(text.len().next_multiple_of(4), b'=');
        }
    }
    text
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn bytes_survive_their_digits() {
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 37) as u8).collect();
            for (url, padding) in [(false, true), (true, false)] {
                let text: Vec<u16> = to_base64(&bytes, url, padding).into_iter().map(u16::from).collect();
                let back = from_base64(text.as_slice(), url, LastChunk::Loose, usize::MAX);
                assert_eq!((back.bytes, back.read, back.invalid), (bytes.clone(), text.len(), false));
            }
            let hex: Vec<u16> = to_hex(&bytes).into_iter().map(u16::from).collect();
            assert_eq!(from_hex(hex.as_slice(), usize::MAX).bytes, bytes);
        }
    }

    #[test]
    fn invalid_and_partial_texts() {
        let read = |text: &str, last| {
            let got = from_base64(units(text).as_slice(), false, last, usize::MAX);
            (got.bytes.len(), got.read, got.invalid)
        };
        assert_eq!(read("ZXhhZg", LastChunk::Loose), (4, 6, false));
        assert_eq!(read("ZXhhZg", LastChunk::Strict), (3, 4, true));
        assert_eq!(read("ZXhhZg", LastChunk::StopBeforePartial), (3, 4, false));
        assert_eq!(read("ZXhhZh==", LastChunk::Strict), (3, 4, true));
        assert_eq!(read("ZX=hZg", LastChunk::Loose), (0, 0, true));
        assert_eq!(
            from_hex(units("abc").as_slice(), 9),
            DecodedDigits { invalid: true, ..DecodedDigits::default() }
        );
    }
}
