//! Base64 as `atob` and `btoa` have it.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Bytes as base64.
pub fn to_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The bytes of base64, by the rules of `atob`: white space is skipped, padding is optional.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut text: String =
        text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ')).collect();
    if text.len().is_multiple_of(4) {
        for _ in 0..2 {
            if text.ends_with('=') {
                text.pop();
            }
        }
    }
    FORGIVING.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::{from_base64, to_base64};

    #[test]
    fn base64_is_read_as_atob_does() {
        for (text, bytes) in [
            ("", Some("")),
            ("YQ==", Some("a")),
            ("YQ", Some("a")),
            (" Y\nQ = = ", Some("a")),
            ("YR==", Some("a")),
            ("YWI", Some("ab")),
            ("Y", None),
            ("YQ=", None),
            ("YQ===", None),
            ("=", None),
            ("Y-_=", None),
            ("YWJj=", None),
        ] {
            assert_eq!(from_base64(text), bytes.map(|bytes| bytes.as_bytes().to_vec()), "{text:?}");
        }
        assert_eq!(to_base64(&[0xfb, 0xff]), "+/8=");
    }
}
