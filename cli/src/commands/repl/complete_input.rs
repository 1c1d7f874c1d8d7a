//! Decides whether typed text is complete, or continues on the next line.
//!
//! A scanner of tokens, not a parser: text continues while a bracket, template or comment is open, behind an operator and behind the
//! beginning of a statement (`if (x)`, `class A`). In doubt the input is complete, and the engine reports errors. It reads line by
//! line, so that a long input is scanned once.

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

/// The construct to which a `(` or `{` belongs: it decides whether the text may end behind the closing bracket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Head {
    #[default]
    None,
    /// `if`, `while`, `for`, `switch`, `with`, `catch`: a statement follows the `)`.
    Statement,
    /// `function`: a body follows the `)`.
    Function,
    /// `class`: a body follows.
    Class,
    /// `try`: `catch` or `finally` follows the `}`.
    Try,
}

/// Reads an input piece by piece; each piece but the last ends with a line feed.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    open: Vec<Open>,
    /// Whether the last token ends a value: then `/` divides, else it begins a regular expression.
    value_before: bool,
    /// Whether the last token needs another one: an operator, or a word as `typeof`.
    needs_more: bool,
    /// Whether the last token is `.` or `?.`: then a word is the name of a property.
    after_dot: bool,
    /// The word before the next bracket, if that belongs to it.
    head: Head,
    /// The head of each open bracket.
    heads: Vec<Head>,
    /// The depths of the brackets in which a `do` has no `while` yet.
    loops: Vec<usize>,
    /// Invalid, whatever follows; the engine will report the error.
    hopeless: bool,
}

impl Scanner {
    /// Whether the input continues on the next line.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.hopeless
            && (!self.open.is_empty() || self.needs_more || self.head != Head::None || !self.loops.is_empty())
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
                self.heads.push(self.head_of(c));
                self.ends_value(false);
            }
            ')' | ']' | '}' => match self.open.pop() {
                // After a substitution, its template continues, which is the next entry of the stack.
                Some(Open::Substitution) if c == '}' => {}
                Some(Open::Bracket(opening)) if closes(opening, c) => self.close(c),
                _ => self.hopeless = true,
            },
            '"' | '\'' => self.string(c, rest),
            '`' => {
                self.ends_value(false);
                self.open.push(Open::Template);
            }
            '/' => self.slash(rest),
            c if c.is_whitespace() => {}
            c if is_name(c) => self.word(c, rest),
            ';' => self.ends_value(false),
            '+' | '-' if rest.next_if_eq(&c).is_some() => {
                let is_postfix = self.value_before;
                self.ends_value(is_postfix);
                self.needs_more = !is_postfix;
            }
            _ => self.operator(c),
        }
    }

    /// Forgets what the token before needed.
    fn ends_value(&mut self, is_value: bool) {
        self.value_before = is_value;
        self.needs_more = false;
        self.after_dot = false;
        self.head = Head::None;
    }

    fn operator(&mut self, c: char) {
        // The `*` of a generator is between `function` and its name.
        let head = if c == '*' { self.head } else { Head::None };
        self.ends_value(false);
        self.needs_more = true;
        self.after_dot = c == '.';
        self.head = head;
    }

    /// The construct to which the bracket that opens now belongs.
    fn head_of(&self, opening: char) -> Head {
        match (self.head, opening) {
            (Head::Statement | Head::Function, '(') | (Head::Try | Head::Class, '{') => self.head,
            _ => Head::None,
        }
    }

    fn close(&mut self, closing: char) {
        let head = self.heads.pop().unwrap_or_default();
        self.loops.retain(|depth| *depth <= self.open.len());
        self.ends_value(closing != '}' && head != Head::Statement);
        self.needs_more = match head {
            Head::Statement | Head::Function => closing == ')',
            Head::Try => true,
            Head::None | Head::Class => false,
        };
    }

    fn word(&mut self, first: char, rest: &mut Peekable<Chars<'_>>) {
        let mut word = String::from(first);
        // `1.` is a number.
        let is_number = first.is_ascii_digit();
        while let Some(c) = rest.next_if(|c| is_name(*c) || (is_number && *c == '.')) {
            word.push(c);
        }
        if self.after_dot {
            return self.ends_value(true);
        }
        let (head, depth) = (self.head, self.open.len());
        let is_operator = matches!(
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
        self.ends_value(!is_operator);
        // `return` and `throw` end with their line; `of` may be a name.
        let ends_here = matches!(word.as_str(), "return" | "throw" | "of" | "yield" | "case");
        let begins = matches!(word.as_str(), "const" | "var" | "extends" | "finally" | "import" | "export");
        self.needs_more = (is_operator && !ends_here) || begins;
        self.head = match word.as_str() {
            "while" if self.loops.last() == Some(&depth) => {
                self.loops.pop();
                self.needs_more = true;
                Head::None
            }
            "if" | "while" | "for" | "switch" | "with" | "catch" => Head::Statement,
            "function" => Head::Function,
            "class" => Head::Class,
            "try" => Head::Try,
            // `for await (`, `function name(`, `class A extends B {`
            "await" if head == Head::Statement => head,
            _ if matches!(head, Head::Function | Head::Class) => head,
            _ => Head::None,
        };
        if word == "do" {
            self.loops.push(depth);
        }
    }

    fn string(&mut self, quote: char, rest: &mut Peekable<Chars<'_>>) {
        self.ends_value(true);
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
                    self.ends_value(true);
                    return;
                }
                '$' if rest.next_if_eq(&'{').is_some() => {
                    self.open.push(Open::Substitution);
                    self.ends_value(false);
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
            self.operator('/');
        } else {
            self.ends_value(true);
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
    fn input_continues_behind_operators_and_beginnings_of_statements() {
        for text in [
            "a+",
            "a + // what\n",
            "let x =",
            "let a = 1,",
            "x.",
            "x?.",
            "a ?",
            "a ? b :",
            "a /",
            "() =>",
            "(a, b) =>\n",
            "!",
            "++",
            "...",
            "if (x)",
            "if (x) 1; else",
            "for (const a of b)",
            "for await (const a of b)",
            "while (x)",
            "do",
            "do { x++ }",
            "do x++;",
            "switch (x)",
            "try { x }",
            "try",
            "try { x } catch (e)",
            "try { x } finally",
            "function",
            "function f",
            "async function* f(a, b)",
            "class A",
            "class A extends B",
            "const",
            "typeof",
            "new",
            "a instanceof",
            "a in",
            "await",
        ] {
            assert!(is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn complete_and_hopeless_input_is_run() {
        for text in [
            "a++",
            "a--\n",
            "1.",
            "1.5",
            "x.in",
            "x.if",
            "x.class",
            "x?.do",
            "let x = 5;",
            "if (x) 7",
            "if (x) {}",
            "if (x) {} else {}",
            "for (;;) {}",
            "do { x++ } while (x < 3)",
            "do x++; while (x < 3);",
            "switch (x) {}",
            "try { x } catch {}",
            "try { x } catch (e) {}",
            "try { x } finally {}",
            "function f() {}",
            "function* f() {}",
            "class A {}",
            "class A extends B {}",
            "x = { do: 1, if: 2, try: 3 }",
            "({ if() {}, catch() {} })",
            "x.catch(f)",
            "return",
            "throw",
            "let",
            "a /* + */",
            "if (x) /[(]/.test(y)",
            "+a",
            "f`a`",
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
