//! Texts that are wrapped at the width of a terminal, between words, with a hanging indent.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The narrowest column of text beside a label; where less is left, further lines begin near the margin.
const NARROWEST: usize = 24;
/// The indent of further lines then.
const INDENT: usize = 4;

/// A label and a text on lines of at most `width` columns; further lines begin below the text.
pub(super) fn entry(label: &str, text: &str, width: usize) -> String {
    let label_width = label.width();
    let indent = if label_width + NARROWEST <= width { label_width } else { INDENT.min(width / 2) };
    hanging(&format!("{label}{text}"), width, indent, label.len())
}

/// A paragraph on lines of at most `width` columns; all but the first begin with `indent` spaces.
pub(crate) fn paragraph(text: &str, width: usize, indent: usize) -> String {
    hanging(text, width, indent, 0)
}

/// `label`: the length of the beginning that is not broken between words (bytes).
fn hanging(text: &str, width: usize, indent: usize, label: usize) -> String {
    let column = text[..label].width();
    let mut lines = Lines { done: text[..label].to_owned(), column, is_empty: label == 0, width, indent };
    for (number, word) in text[label..].split(' ').enumerate() {
        lines.word(word, number > 0);
    }
    lines.done
}

struct Lines {
    done: String,
    /// Of the next character.
    column: usize,
    /// Nothing but the indent is on the line.
    is_empty: bool,
    width: usize,
    indent: usize,
}

impl Lines {
    fn word(&mut self, word: &str, after_space: bool) {
        let space = usize::from(after_space);
        if self.column + space + word.width() > self.width && !self.is_empty {
            self.new_line();
        } else if after_space {
            self.done.push(' ');
            self.column += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            // A word that is longer than a line.
            if self.column + wide > self.width && !self.is_empty {
                self.new_line();
            }
            self.done.push(c);
            self.is_empty = false;
            self.column += wide;
        }
    }

    fn new_line(&mut self) {
        self.done.truncate(self.done.trim_end_matches(' ').len());
        self.done.push('\n');
        self.done.extend(std::iter::repeat_n(' ', self.indent));
        self.column = self.indent;
        self.is_empty = true;
    }
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
        assert_eq!(paragraph("a 世世世", 6, 2), "a\n  世世\n  世");
        assert_eq!(paragraph("", 6, 2), "");
    }
}
