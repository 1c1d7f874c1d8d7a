//! Owns the columns that QuickJS gives to tokens: it remembers where the last word began and where the last space or comment ended, and
//! a token that is no word has the later one of the two (`mark` in quickjs.c). Pure.

use oxc_ast::ast::{Program, RegExpLiteral, StringLiteral, TemplateElement};
use oxc_ast_visit::Visit;

/// See the file's description.
pub(super) struct Marks<'s> {
    text: &'s [u8],
    /// Texts and patterns, in which there are no tokens, by where they end.
    opaque: Vec<(u32, u32)>,
    /// Where comments end.
    comments: Vec<u32>,
    /// Length of the first line.
    first_line: u32,
}

impl<'s> Marks<'s> {
    pub(super) fn new(text: &'s str, program: &Program<'_>) -> Self {
        let mut literals = Literals::default();
        literals.visit_program(program);
        literals.0.sort_unstable();
        let comments = program.comments.iter().map(|comment| comment.span.end).collect();
        let first_line = text.find('\n').unwrap_or(text.len());
        let first_line = u32::try_from(first_line).unwrap_or(u32::MAX);
        Self { text: text.as_bytes(), opaque: literals.0, comments, first_line }
    }

    /// The offset that QuickJS notes for the token that begins here. In the first line its columns of tokens count from 0, those
    /// of variables from 1.
    pub(super) fn of_token(&self, token: u32) -> Option<u32> {
        let mark = self.mark(token)?;
        Some(if mark <= self.first_line { mark.saturating_sub(1) } else { mark })
    }

    fn mark(&self, token: u32) -> Option<u32> {
        if is_word(*self.text.get(token as usize)?) && !self.text[token as usize].is_ascii_digit() {
            return Some(token);
        }
        let mut at = token;
        loop {
            if self.comments.binary_search(&at).is_ok() {
                return Some(at);
            }
            if let Ok(literal) = self.opaque.binary_search_by_key(&at, |literal| literal.0) {
                let start = self.opaque[literal].1;
                // A line that ends in it is a mark, too.
                if self.text[start as usize..at as usize].contains(&b'\n') {
                    return None;
                }
                at = start;
                continue;
            }
            let before = *self.text.get((at as usize).checked_sub(1)?)?;
            if before.is_ascii_whitespace() {
                return Some(at);
            }
            if !is_word(before) {
                at -= 1;
                continue;
            }
            let word =
                self.text[..at as usize].iter().rposition(|byte| !is_word(*byte)).map_or(0, |end| end + 1);
            at = u32::try_from(word).ok()?;
            if !self.text[word].is_ascii_digit() {
                return Some(at);
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 0x80
}

#[derive(Default)]
struct Literals(Vec<(u32, u32)>);

impl<'a> Visit<'a> for Literals {
    fn visit_string_literal(&mut self, literal: &StringLiteral<'a>) {
        self.0.push((literal.span.end, literal.span.start));
    }

    fn visit_template_element(&mut self, element: &TemplateElement<'a>) {
        if element.span.end > element.span.start {
            self.0.push((element.span.end, element.span.start));
        }
    }

    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        self.0.push((literal.span.end, literal.span.start));
    }
}
