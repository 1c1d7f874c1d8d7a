//! Texts that are wrapped at the width of a terminal, between words, with a hanging indent.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::UnicodeWidthStr as _;

/// The narrowest column of text beside a label; where less is left, further lines begin near the margin.
const NARROWEST: usize = 24;
/// The indent of further lines then.
const INDENT: usize = 4;

/// A label and a text on lines of at most `width` columns; further lines begin below the text.
pub(super) fn entry(label: &str, text: &str, width: usize) -> String {
    let label_width = label.width();
    let indent = if label_width + NARROWEST <= width { label_width } else { INDENT.min(width / 2) };
    wrapped(text, label, width, indent)
}

/// A paragraph on lines of at most `width` columns; all but the first begin with `indent` spaces.
pub(crate) fn paragraph(text: &str, width: usize, indent: usize) -> String {
    wrapped(text, "", width, indent)
}

fn wrapped(text: &str, label: &str, width: usize, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let options = Options::new(width)
        .initial_indent(label)
        .subsequent_indent(&indent)
        // Commands, paths and options are not broken at their hyphens: they are copied.
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_begin_below_the_text() {
        let text = "one two three four five six seven eight";
        assert_eq!(entry("label  ", text, 32), "label  one two three four five\n       six seven eight");
        assert_eq!(entry("label  ", "short", 32), "label  short");
        // Too little is left beside the label.
        assert_eq!(
            entry("a.long.label  ", text, 24),
            "a.long.label  one two\n    three four five six\n    seven eight"
        );
    }

    #[test]
    fn words_that_are_longer_than_a_line_are_broken_and_wide_characters_count_twice() {
        assert_eq!(paragraph("abcdefghij kl", 4, 0), "abcd\nefgh\nij\nkl");
        assert_eq!(paragraph("a 世世世", 6, 2), "a 世世\n  世");
        assert_eq!(paragraph("", 6, 2), "");
    }
}
