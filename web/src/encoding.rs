//! The encodings of `TextDecoder`: labels, and bytes as text in chunks, without a decoder that lives between them.

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Why bytes are not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They are not valid in the encoding
    Invalid,
    /// Chunks of an encoding with state between its characters
    Chunks,
}

/// The name of the encoding with this label, in lower case.
pub fn encoding_of(label: &str) -> Option<String> {
    let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
    Some(encoding.name().to_ascii_lowercase())
}

/// The bytes as text, and how many of them: the start of a character at the end is left unless these are the last bytes. With `fatal`
/// invalid bytes are an error, otherwise U+FFFD. A byte order mark at the start is left out unless `keep_mark` is set.
pub fn decode(
    encoding: &str,
    bytes: &[u8],
    fatal: bool,
    keep_mark: bool,
    last: bool,
) -> Result<(String, usize), DecodeError> {
    let encoding = Encoding::for_label(encoding.as_bytes()).unwrap_or(UTF_8);
    let used = if last { bytes.len() } else { bytes.len() - unfinished(encoding, bytes)? };
    let bytes = bytes.get(..used).unwrap_or(bytes);
    let mut decoder = if keep_mark {
        encoding.new_decoder_without_bom_handling()
    } else {
        encoding.new_decoder_with_bom_removal()
    };
    let space = if fatal {
        decoder.max_utf8_buffer_length_without_replacement(bytes.len())
    } else {
        decoder.max_utf8_buffer_length(bytes.len())
    };
    let mut text = String::with_capacity(space.ok_or(DecodeError::Invalid)?);
    if fatal {
        let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, true);
        if result != DecoderResult::InputEmpty {
            return Err(DecodeError::Invalid);
        }
    } else {
        // The text has enough capacity for all bytes.
        let _ = decoder.decode_to_string(bytes, &mut text, true);
    }
    Ok((text, used))
}

/// Bytes at the end that are the start of a character.
fn unfinished(encoding: &'static Encoding, bytes: &[u8]) -> Result<usize, DecodeError> {
    if encoding == UTF_8 {
        let starts = (1..=3.min(bytes.len())).find(|n| {
            let tail = bytes.get(bytes.len() - n..).unwrap_or_default();
            std::str::from_utf8(tail)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        });
        return Ok(starts.unwrap_or(0));
    }
    if encoding == UTF_16LE || encoding == UTF_16BE {
        let odd = bytes.len() % 2;
        let high = if encoding == UTF_16LE { 1 } else { 2 };
        let unit =
            (bytes.len() - odd).checked_sub(if high == 1 { 1 } else { 2 }).and_then(|at| bytes.get(at));
        let surrogate = unit.is_some_and(|byte| (0xd8..=0xdb).contains(byte));
        return Ok(odd + if surrogate { 2 } else { 0 });
    }
    if encoding.is_single_byte() { Ok(0) } else { Err(DecodeError::Chunks) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_give_the_text_of_the_whole() {
        let text = "a€😀é\u{feff}z";
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (encoding, bytes) in [("utf-8", text.as_bytes()), ("utf-16le", &utf16), ("utf-16be", &utf16be)] {
            for size in 1..=bytes.len() {
                let (mut out, mut pending) = (String::new(), Vec::new());
                for (i, chunk) in bytes.chunks(size).enumerate() {
                    pending.extend_from_slice(chunk);
                    let last = (i + 1) * size >= bytes.len();
                    let (part, used) = decode(encoding, &pending, true, true, last).expect("valid");
                    out.push_str(&part);
                    pending.drain(..used);
                }
                assert_eq!(out, text, "{encoding} in chunks of {size}");
            }
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_or_an_error() {
        assert_eq!(
            decode("utf-8", b"a\xffb\xe2\x82", false, false, true),
            Ok(("a\u{fffd}b\u{fffd}".to_owned(), 5))
        );
        assert_eq!(decode("utf-8", b"a\xff", true, false, true), Err(DecodeError::Invalid));
        assert_eq!(decode("utf-8", b"\xef\xbb\xbfa", true, false, true), Ok(("a".to_owned(), 4)));
        assert_eq!(decode("windows-1252", b"\x80", true, false, false), Ok(("€".to_owned(), 1)));
        assert_eq!(decode("shift_jis", b"a", true, false, false), Err(DecodeError::Chunks));
        assert_eq!(encoding_of(" Latin1 ").as_deref(), Some("windows-1252"));
        assert_eq!(encoding_of("none"), None);
    }
}
