//! `toLowerCase`, `toUpperCase` and `normalize`: full Unicode mappings on UTF-16 that may hold lone surrogates.
//!
//! Owns: ECMA-262 22.1.3.15, 22.1.3.28, 22.1.3.30. The locale-sensitive variants are the same functions for most languages;
//! `builtins/locale.rs` refuses the others. Results do not depend on the machine.

use super::units::{Units, code_point_at, code_point_before, push_code_point};
use unicode_normalization::UnicodeNormalization;

/// `String.prototype.toLowerCase`, ECMA-262 22.1.3.28, with the final sigma rule of `SpecialCasing.txt`.
pub(crate) fn to_lower_case(text: &[u16]) -> Vec<u16> {
    let mut out = Vec::with_capacity(text.len());
    let mut index = 0;
    while index < text.len() {
        let (code_point, length) = code_point_at(text, index);
        if code_point == 0x3A3 {
            let last = is_final_sigma(text, index);
            out.push(if last { 0x3C2 } else { 0x3C3 });
        } else {
            match char::from_u32(code_point) {
                Some(letter) => letter.to_lowercase().for_each(|c| push_code_point(&mut out, u32::from(c))),
                None => out.push(code_point as u16),
            }
        }
        index += length;
    }
    out
}

/// `String.prototype.toUpperCase`, ECMA-262 22.1.3.30.
pub(crate) fn to_upper_case(text: &[u16]) -> Vec<u16> {
    let mut out = Vec::with_capacity(text.len());
    let mut index = 0;
    while index < text.len() {
        let (code_point, length) = code_point_at(text, index);
        match char::from_u32(code_point) {
            Some(letter) => letter.to_uppercase().for_each(|c| push_code_point(&mut out, u32::from(c))),
            None => out.push(code_point as u16),
        }
        index += length;
    }
    out
}

/// The condition `Final_Sigma` of the Unicode Standard 3.13: a cased letter before and none after, ignorable ones skipped.
/// Long runs of ignorable characters are scanned only this far on each side, so that the cost stays linear.
const SIGMA_WINDOW: usize = 64;

fn is_final_sigma(text: &[u16], index: usize) -> bool {
    let mut before = index;
    let mut cased_before = false;
    for _ in 0..SIGMA_WINDOW {
        if before == 0 {
            break;
        }
        let (code_point, length) = code_point_before(text, before);
        before -= length;
        if !is_case_ignorable(code_point) {
            cased_before = is_cased(code_point);
            break;
        }
    }
    if !cased_before {
        return false;
    }
    let mut after = index + 1;
    for _ in 0..SIGMA_WINDOW {
        if after >= text.len() {
            break;
        }
        let (code_point, length) = code_point_at(text, after);
        after += length;
        if !is_case_ignorable(code_point) {
            return !is_cased(code_point);
        }
    }
    true
}

/// The derived property `Cased`.
fn is_cased(code_point: u32) -> bool {
    let Some(letter) = char::from_u32(code_point) else { return false };
    letter.is_lowercase()
        || letter.is_uppercase()
        || matches!(code_point, 0x1C5 | 0x1C8 | 0x1CB | 0x1F2 | 0x1F88..=0x1F8F | 0x1F98..=0x1F9F | 0x1FA8..=0x1FAF)
        || matches!(code_point, 0x1FBC | 0x1FCC | 0x1FFC)
}

/// The derived property `Case_Ignorable`: marks, format characters, modifiers and the word-internal punctuation.
/// Decided by the tables that the regular expressions use, so that the language has one Unicode version.
fn is_case_ignorable(code_point: u32) -> bool {
    if code_point < 0x80 {
        return matches!(code_point, 0x27 | 0x2E | 0x3A | 0x5E | 0x60);
    }
    super::regexp::property("Case_Ignorable", None).is_some_and(|set| set.contains(code_point))
}

/// The forms of `String.prototype.normalize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Canonical composition, the default.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
}

impl Form {
    /// The form with this name; the caller throws a `RangeError` for others.
    pub(crate) fn from_name<U: Units + ?Sized>(name: &U) -> Option<Form> {
        let name: Vec<u16> = (0..name.count()).map(|index| name.unit(index)).collect();
        [("NFC", Form::Nfc), ("NFD", Form::Nfd), ("NFKC", Form::Nfkc), ("NFKD", Form::Nfkd)]
            .into_iter()
            .find(|(text, _)| text.encode_utf16().eq(name.iter().copied()))
            .map(|(_, form)| form)
    }
}

/// `String.prototype.normalize`, ECMA-262 22.1.3.15. Lone surrogates stay; the text on each side is normalized separately.
/// The result has at most 18 times as many units as the input.
pub(crate) fn normalize(text: &[u16], form: Form) -> Vec<u16> {
    let mut out = Vec::with_capacity(text.len());
    let mut run = String::new();
    for item in char::decode_utf16(text.iter().copied()) {
        match item {
            Ok(letter) => run.push(letter),
            Err(lone) => {
                flush(&mut out, &mut run, form);
                out.push(lone.unpaired_surrogate());
            }
        }
    }
    flush(&mut out, &mut run, form);
    out
}

fn flush(out: &mut Vec<u16>, run: &mut String, form: Form) {
    let mut push = |letter: char| push_code_point(out, u32::from(letter));
    match form {
        Form::Nfc => run.nfc().for_each(&mut push),
        Form::Nfd => run.nfd().for_each(&mut push),
        Form::Nfkc => run.nfkc().for_each(&mut push),
        Form::Nfkd => run.nfkd().for_each(&mut push),
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn mappings_may_grow_and_leave_surrogates_alone() {
        assert_eq!(to_upper_case(&utf16("straße ﬁ 𐐨")), utf16("STRASSE FI 𐐀"));
        assert_eq!(to_lower_case(&utf16("İ𐐀A")), utf16("i\u{307}𐐨a"));
        assert_eq!(to_upper_case(&[0xD801, 0x61]), [0xD801, 0x41]);
        assert_eq!(to_lower_case(&[0xDC00, 0x41]), [0xDC00, 0x61]);
    }

    #[test]
    fn sigma_is_final_only_at_the_end_of_a_word() {
        for (text, lower) in [
            ("Σ", "σ"),
            ("AΣ", "aς"),
            ("AΣB", "aσb"),
            ("A.Σ", "a.ς"),
            ("AΣ.B", "aσ.b"),
            ("A\u{AD}Σ", "a\u{AD}ς"),
            ("A\u{1D242}Σ", "a\u{1D242}ς"),
            ("\u{1D242}Σ", "\u{1D242}σ"),
            ("AΣ\u{E0001}B", "aσ\u{E0001}b"),
            ("ΑΣ Β", "ας β"),
            ("\u{345}Σ", "\u{345}σ"),
        ] {
            assert_eq!(to_lower_case(&utf16(text)), utf16(lower), "{text:?}");
        }
    }

    #[test]
    fn normal_forms() {
        let text = utf16("\u{1E9B}\u{0323}");
        assert_eq!(normalize(&text, Form::Nfc), utf16("\u{1E9B}\u{0323}"));
        assert_eq!(normalize(&text, Form::Nfd), utf16("\u{017F}\u{0323}\u{0307}"));
        assert_eq!(normalize(&text, Form::Nfkc), utf16("\u{1E69}"));
        assert_eq!(normalize(&text, Form::Nfkd), utf16("s\u{0323}\u{0307}"));
        assert_eq!(normalize(&[0x65, 0xD800, 0x301], Form::Nfc), [0x65, 0xD800, 0x301]);
        assert_eq!(Form::from_name(b"NFKC".as_slice()), Some(Form::Nfkc));
        assert_eq!(Form::from_name(b"nfc".as_slice()), None);
    }
}
