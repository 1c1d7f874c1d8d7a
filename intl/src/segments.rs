//! Owns the boundaries of characters, words and sentences: of a whole text, or of pieces of a long one.

use icu_properties::CodePointMapData;
use icu_properties::props::WordBreak;
use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter};

/// The kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    Grapheme,
    Word,
    Sentence,
}

impl Granularity {
    /// By ECMA-402's name; characters if it is none.
    pub fn named(name: &str) -> Self {
        match name {
            "word" => Self::Word,
            "sentence" => Self::Sentence,
            _ => Self::Grapheme,
        }
    }
}

/// Whether a segment is a word by the rules of ICU: it has a letter, a kana, an ideograph or a digit. The segmenter's own types are
/// not used: that of a word from a dictionary (Thai, Japanese), and of what follows it, is the type of the text before it.
fn is_word_like(segment: &[u16]) -> bool {
    let properties = CodePointMapData::<WordBreak>::new();
    char::decode_utf16(segment.iter().copied()).flatten().any(|letter| match properties.get(letter) {
        WordBreak::ALetter | WordBreak::HebrewLetter | WordBreak::Katakana | WordBreak::Numeric => true,
        WordBreak::Extend | WordBreak::Format => false,
        _ => letter.is_alphabetic(),
    })
}

/// Positions of the boundaries, from 0 to the text's length; of words negative where the segment before it is not like a word.
pub fn boundaries(granularity: Granularity, text: &[u16]) -> Vec<i64> {
    match granularity {
        Granularity::Word => {
            let mut start = 0;
            let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
            segmenter
                .segment_utf16(text)
                .map(|at| {
                    let is_word = is_word_like(&text[start..at]);
                    start = at;
                    if is_word { at as i64 } else { -(at as i64) }
                })
                .collect()
        }
        Granularity::Sentence => SentenceSegmenter::new(SentenceBreakInvariantOptions::default())
            .segment_utf16(text)
            .map(|at| at as i64)
            .collect(),
        Granularity::Grapheme => {
            GraphemeClusterSegmenter::new().segment_utf16(text).map(|at| at as i64).collect()
        }
    }
}

/// One segment of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSegment {
    /// Position after its last unit
    pub end: usize,
    pub is_word_like: bool,
}

/// The next segments after the boundary `from` of a text of `length` units, at least one unless the text ends there, and how many
/// units were read for them. `read(from, to)` returns units of the text.
///
/// A piece of `least` units is read, and a longer one while it has no complete segment. Whether there is a boundary depends on what
/// follows: at most on the segment after it, and on the first character of the next one. The last two segments of a piece
/// that does not end the text are therefore not known yet.
pub fn segments_from(
    granularity: Granularity,
    from: usize,
    length: usize,
    least: usize,
    read: impl Fn(usize, usize) -> Vec<u16>,
) -> (Vec<TextSegment>, usize) {
    let (mut units, mut wanted) = (0, least.max(4));
    if from >= length {
        return (Vec::new(), 0);
    }
    loop {
        let mut to = from.saturating_add(wanted).min(length);
        let mut piece = read(from, to);
        if to < length && piece.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            piece.pop();
            to -= 1;
        }
        units += piece.len();
        let found = boundaries(granularity, &piece).into_iter().filter(|at| *at != 0);
        let mut list: Vec<TextSegment> = found
            .map(|at| TextSegment { end: from + at.unsigned_abs() as usize, is_word_like: at > 0 })
            .collect();
        if to >= length {
            return (list, units);
        }
        list.truncate(list.len().saturating_sub(2));
        if !list.is_empty() {
            return (list, units);
        }
        wanted = wanted.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::{Granularity, TextSegment, boundaries, segments_from};
    use vm_system_testkit::SeededRandom;

    /// Letters, marks and signs with rules of their own: flags, joined emoji, jamo, Thai, Chinese, Burmese, quotes, ends of sentences.
    const ALPHABET: &[&str] = &[
        "a",
        "Z",
        "é",
        "e\u{301}",
        "\u{301}",
        "\u{200d}",
        "1",
        "3.5",
        ",",
        ".",
        "'",
        "?",
        "!",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\u{2029}",
        "🇩🇪",
        "🇩",
        "👩\u{200d}💻",
        "👍🏽",
        "\u{fe0f}",
        "가",
        "\u{1100}",
        "\u{1161}",
        "ภาษาไทย",
        "กา",
        "ร",
        "中文",
        "日本語",
        "か",
        "カ",
        "မြန်",
        "מ\"ם",
        "_",
        "x_y",
        "\u{ad}",
        ")",
        "\"",
        "…",
        "can't",
        "A. b",
        "etc. 12 x",
        "\u{1f1e6}",
        "क्षि",
        "\u{600}",
        "ß",
    ];

    fn in_pieces(granularity: Granularity, text: &[u16], least: usize) -> Vec<TextSegment> {
        let (mut all, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let (list, _) =
                segments_from(granularity, at, text.len(), least, |from, to| text[from..to].to_vec());
            at = list.last().map_or(text.len(), |last| last.end);
            all.extend(list);
        }
        all
    }

    #[test]
    fn pieces_have_the_boundaries_of_the_whole_text() {
        let mut random = SeededRandom::new(11);
        for round in 0..600 {
            let count = 1 + random.index(40);
            let text: String = (0..count).map(|_| random.pick(ALPHABET)).collect();
            let units: Vec<u16> = text.encode_utf16().collect();
            for granularity in [Granularity::Grapheme, Granularity::Word, Granularity::Sentence] {
                let whole: Vec<TextSegment> = boundaries(granularity, &units)
                    .into_iter()
                    .filter(|at| *at != 0)
                    .map(|at| TextSegment { end: at.unsigned_abs() as usize, is_word_like: at > 0 })
                    .collect();
                for least in [4, 16, 64] {
                    let pieces = in_pieces(granularity, &units, least);
                    let first = pieces.iter().zip(&whole).find(|(piece, whole)| piece != whole);
                    assert!(
                        first.is_none() && pieces.len() == whole.len(),
                        "round {round}, {granularity:?} by {least}: {first:?} of {text:?}, {pieces:?}"
                    );
                }
            }
        }
    }
}
