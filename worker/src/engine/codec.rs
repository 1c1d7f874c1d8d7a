//! Owns the conversions between text and bytes for `Buffer`, `TextEncoder`, `TextDecoder`, `atob` and `btoa`.

use super::memory;
use super::sys;
use rquickjs::{Ctx, Exception, Function, Object, Result, Value};

/// An encoding of bytes as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Le,
    Latin1,
    Ascii,
    Hex,
    Base64,
    Base64Url,
}

/// The encoding of this name, by Node's rules.
pub(super) fn encoding(name: &str) -> Option<Encoding> {
    Some(match name.to_ascii_lowercase().as_str() {
        "utf8" | "utf-8" => Encoding::Utf8,
        "utf16le" | "utf-16le" | "ucs2" | "ucs-2" => Encoding::Utf16Le,
        "latin1" | "binary" => Encoding::Latin1,
        "ascii" => Encoding::Ascii,
        "hex" => Encoding::Hex,
        "base64" => Encoding::Base64,
        "base64url" => Encoding::Base64Url,
        _ => return None,
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8], url: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            if index <= chunk.len() {
                let digit = ALPHABET[(word >> (18 - 6 * index) & 63) as usize];
                text.push(match (digit, url) {
                    (b'+', true) => '-',
                    (b'/', true) => '_',
                    _ => char::from(digit),
                });
            } else if !url {
                text.push('=');
            }
        }
    }
    text
}

/// Reads base64 of either alphabet; other characters are skipped, as in Node.
fn from_base64(text: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0_u32, 0_u32);
    for unit in text {
        let digit = match u8::try_from(*unit).unwrap_or(0) {
            byte @ b'A'..=b'Z' => byte - b'A',
            byte @ b'a'..=b'z' => byte - b'a' + 26,
            byte @ b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => continue,
        };
        word = (word << 6) | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    bytes
}

/// The bytes of `text` in an encoding.
pub(super) fn encode(text: &[u16], encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => String::from_utf16_lossy(text).into_bytes(),
        Encoding::Utf16Le => text.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
        Encoding::Latin1 | Encoding::Ascii => text.iter().map(|unit| *unit as u8).collect(),
        Encoding::Base64 | Encoding::Base64Url => from_base64(text),
        Encoding::Hex => {
            let digit = |unit: u16| char::from_u32(u32::from(unit)).and_then(|digit| digit.to_digit(16));
            let mut bytes = Vec::with_capacity(text.len() / 2);
            for pair in text.chunks_exact(2) {
                match (digit(pair[0]), digit(pair[1])) {
                    (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                    _ => break,
                }
            }
            bytes
        }
    }
}

/// `bytes` as a JavaScript string.
pub(super) fn decode<'js>(ctx: &Ctx<'js>, bytes: &[u8], encoding: Encoding) -> Result<Value<'js>> {
    let ascii = |text: &str| Ok(rquickjs::String::from_str(ctx.clone(), text)?.into_value());
    match encoding {
        Encoding::Utf8 => ascii(&String::from_utf8_lossy(bytes)),
        Encoding::Utf16Le => {
            let units: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            sys::new_string_utf16(ctx, &units)
        }
        Encoding::Latin1 => ascii(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
        Encoding::Ascii => ascii(&bytes.iter().map(|byte| char::from(byte & 0x7f)).collect::<String>()),
        Encoding::Base64 => ascii(&to_base64(bytes, false)),
        Encoding::Base64Url => ascii(&to_base64(bytes, true)),
        Encoding::Hex => {
            let mut text = String::with_capacity(bytes.len() * 2);
            for byte in bytes {
                for digit in [byte >> 4, byte & 15] {
                    text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
                }
            }
            ascii(&text)
        }
    }
}

fn named(ctx: &Ctx<'_>, name: &str) -> Result<Encoding> {
    encoding(name).ok_or_else(|| Exception::throw_type(ctx, &format!("Unknown encoding: {name}")))
}

/// `encode(text, encoding) -> Uint8Array`, `decode(view, encoding, fatal) -> string`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "encode",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: rquickjs::String<'js>, name: String| {
            let encoding = named(&ctx, &name)?;
            // Two bytes for each unit, and at most three for its text.
            memory::reserve(&ctx, 5 * sys::string_units(&text) as u64)?;
            let units = sys::string_utf16(&text);
            let units = units.ok_or_else(|| Exception::throw_internal(&ctx, "out of memory"))?;
            sys::new_uint8_array(&ctx, &encode(&units, encoding))
        })?,
    )?;
    natives.set(
        "decode",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, view: Object<'js>, name: String, fatal: bool| {
            let encoding = named(&ctx, &name)?;
            memory::reserve_for(&ctx, &view, 4)?;
            let (bytes, _) = sys::view_bytes(&view, usize::MAX).ok_or_else(|| {
                Exception::throw_type(&ctx, "The bytes of a detached buffer cannot be read.")
            })?;
            if fatal && encoding == Encoding::Utf8 && std::str::from_utf8(&bytes).is_err() {
                return Err(Exception::throw_type(&ctx, "The encoded data was not valid for encoding utf-8"));
            }
            decode(&ctx, &bytes, encoding)
        })?,
    )
}

#[cfg(test)]
mod tests {
    use super::{from_base64, to_base64};

    #[test]
    fn base64_round_trips_at_every_length() {
        for length in 0..20_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            for url in [false, true] {
                let text: Vec<u16> = to_base64(&bytes, url).encode_utf16().collect();
                assert_eq!(from_base64(&text), bytes);
            }
        }
        assert_eq!(to_base64(b"hi", false), "aGk=");
        assert_eq!(to_base64(b"hi", true), "aGk");
    }
}
