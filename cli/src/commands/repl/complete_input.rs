//! Whether typed text is complete, or continues on the next line.
//!
//! A scanner of brackets, strings, templates and comments, not a parser: in doubt the input is complete, and the engine reports
//! errors. It reads line by line, so that a long input is scanned once.

use std::iter::Peekable;
use std::str::Chars;

/// Whether a construct is still open at the end of the input.
pub(super) fn is_incomplete(text: &str) -> bool {
    let mut scanner = Scanner::default();
    scanner.feed(text);
    scanner.is_incomplete()
}

/// An open construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Bracket(char),
    Template,
    /// `${` inside a template.
    Substitution,
    Comment,
    /// A string whose last line ended with a backslash.
    String(char),
}

/// Reads an input piece by piece; each piece but the last ends with a line feed.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    open: Vec<Open>,
    /// Whether the last token ends a value: then `/` divides, else it begins a regular expression.
    value_before: bool,
    /// Invalid, whatever follows; the engine will report the error.
    hopeless: bool,
}

impl Scanner {
    /// Whether the input continues on the next line.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.hopeless && !self.open.is_empty()
    }

    /// Reads the next piece.
    pub(super) fn feed(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        while rest.peek().is_some() && !self.hopeless {
            match self.open.last() {
                Some(Open::Template) => self.template(&mut rest),
                Some(Open::Comment) => self.comment(&mut rest),
                Some(Open::String(quote)) => {
                    let quote = *quote;
                    self.open.pop();
                    self.string(quote, &mut rest);
                }
                _ => self.token(&mut rest),
            }
        }
    }

    fn token(&mut self, rest: &mut Peekable<Chars<'_>>) {
        let Some(c) = rest.next() else { return };
        match c {
            '(' | '[' | '{' => {
                self.open.push(Open::Bracket(c));
                self.value_before = false;
            }
            ')' | ']' | '}' => match self.open.pop() {
                // After a substitution, its template continues, which is the next entry of the stack.
                Some(Open::Substitution) if c == '}' => {}
                Some(Open::Bracket(opening)) if closes(opening, c) => self.value_before = c != '}',
                _ => self.hopeless = true,
            },
            '"' | '\'' => self.string(c, rest),
            '`' => self.open.push(Open::Template),
            '/' => self.slash(rest),
            c if c.is_whitespace() => {}
            c if is_name(c) => self.word(c, rest),
            _ => self.value_before = false,
        }
    }

    fn word(&mut self, first: char, rest: &mut Peekable<Chars<'_>>) {
        let mut word = String::from(first);
        while let Some(c) = rest.next_if(|c| is_name(*c)) {
            word.push(c);
        }
        self.value_before = !matches!(
            word.as_str(),
            "return"
                | "typeof"
                | "instanceof"
                | "in"
                | "of"
                | "new"
                | "delete"
                | "void"
                | "throw"
                | "case"
                | "do"
                | "else"
                | "await"
                | "yield"
        );
    }

    fn string(&mut self, quote: char, rest: &mut Peekable<Chars<'_>>) {
        self.value_before = true;
        while let Some(c) = rest.next() {
            match c {
                '\\' if matches!(rest.next(), None | Some('\n')) && rest.peek().is_none() => {
                    self.open.push(Open::String(quote));
                    return;
                }
                // The guard has consumed the escaped character.
                '\\' => {}
                c if c == quote => return,
                '\n' => break,
                _ => {}
            }
        }
        // A string that is not closed on its line is an error, not the beginning of a longer input.
        self.hopeless = true;
    }

    fn template(&mut self, rest: &mut Peekable<Chars<'_>>) {
        while let Some(c) = rest.next() {
            match c {
                '\\' => drop(rest.next()),
                '`' => {
                    self.open.pop();
                    self.value_before = true;
                    return;
                }
                '$' if rest.next_if_eq(&'{').is_some() => {
                    self.open.push(Open::Substitution);
                    self.value_before = false;
                    return;
                }
                _ => {}
            }
        }
    }

    fn comment(&mut self, rest: &mut Peekable<Chars<'_>>) {
        while let Some(c) = rest.next() {
            if c == '*' && rest.next_if_eq(&'/').is_some() {
                self.open.pop();
                return;
            }
        }
    }

    fn slash(&mut self, rest: &mut Peekable<Chars<'_>>) {
        if rest.next_if_eq(&'/').is_some() {
            while rest.next_if(|c| *c != '\n').is_some() {}
        } else if rest.next_if_eq(&'*').is_some() {
            self.open.push(Open::Comment);
        } else if self.value_before {
            self.value_before = false;
        } else {
            self.value_before = true;
            regular_expression(rest);
        }
    }
}

fn regular_expression(rest: &mut Peekable<Chars<'_>>) {
    let mut class = false;
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\\' => drop(rest.next_if(|c| *c != '\n')),
            '[' => class = true,
            ']' => class = false,
            '/' if !class => return,
            _ => {}
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn closes(opening: char, closing: char) -> bool {
    matches!((opening, closing), ('(', ')') | ('[', ']') | ('{', '}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_brackets_templates_and_comments_are_incomplete() {
        for text in [
            "function f() {",
            "[1,\n2",
            "`a\nb",
            "`${a",
            "`${ {a:1} } b",
            "/* x",
            "f(\"a)\", (",
            "if (x) {\n// }\n",
            "'a\\\n",
            "return /[)]/, (",
        ] {
            assert!(is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn complete_and_hopeless_input_is_run() {
        for text in [
            "",
            "1 + 1",
            "f()",
            "\"(\"",
            "'{'",
            "`(${a})`",
            "a / b / (c)",
            "/[(]/.test(x)",
            "x = /\\(/",
            ")",
            "}",
            "(]",
            "'open",
            "// (",
            "/* ( */ 1",
            "a => ({})",
            "`${`${1}`}`",
            "'a\\\nb'",
            "({}) / 2 /* ( */",
        ] {
            assert!(!is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn feeding_lines_one_by_one_gives_the_same_result() {
        let text = "f(`a ${ {b: '}'} }\n`, /* \n ) */ 'x\\\ny', /[)]/\n)";
        let mut scanner = Scanner::default();
        let incomplete: Vec<bool> = text
            .split_inclusive('\n')
            .map(|line| {
                scanner.feed(line);
                scanner.is_incomplete()
            })
            .collect();
        assert_eq!(incomplete, [true, true, true, true, false]);
    }
}
