//! Owns the fast scan of a script that decides whether it must be parsed: most repl inputs need no change.

use std::collections::HashSet;

/// The relevant words that occur anywhere in a text, strings and comments included.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Words {
    /// `let`, `const`, `class` or `using`.
    pub(in crate::engine) declares: bool,
    /// `await`.
    pub(in crate::engine) awaits: bool,
    /// One of `names`.
    pub(in crate::engine) names: bool,
    /// The first character that is no white space is `{`.
    pub(in crate::engine) brace_first: bool,
    /// Nested so deeply, or with so long chains of operators, that a recursive parser could run out of stack.
    pub(in crate::engine) deep: bool,
}

/// Deepest brackets, and longest chain of operators in one expression, that our parser accepts before QuickJS.
const BRACKETS: usize = 200;
const OPERATORS: usize = 2_000;

/// Measures the nesting depth of a text without parsing it: the contents of strings count too, which can only overestimate.
#[derive(Default)]
struct Depth {
    brackets: usize,
    operators: usize,
    deep: bool,
}

impl Depth {
    fn see(&mut self, byte: u8) {
        match byte {
            b'(' | b'[' | b'{' => self.brackets += 1,
            b')' | b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        match byte {
            b';' | b',' | b'{' | b'}' => self.operators = 0,
            byte if byte.is_ascii_punctuation() => self.operators += 1,
            _ => {}
        }
        self.deep |= self.brackets > BRACKETS || self.operators > OPERATORS;
    }

    /// Words that nest statements without brackets.
    fn see_word(&mut self, word: &[u8]) {
        if matches!(
            word,
            b"if"
                | b"else"
                | b"for"
                | b"while"
                | b"do"
                | b"typeof"
                | b"void"
                | b"delete"
                | b"await"
                | b"in"
                | b"new"
        ) {
            self.operators += 1;
        }
    }
}

impl Words {
    /// Whether the text must be parsed before it runs.
    pub(in crate::engine) fn need_parsing(self) -> bool {
        !self.deep && (self.declares || self.awaits || self.names || self.brace_first)
    }
}

/// Scans every word of a text once.
pub(in crate::engine) fn words(text: &str, names: &HashSet<String>) -> Words {
    let mut found = Words { brace_first: text.trim_start().starts_with('{'), ..Words::default() };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
    let bytes = text.as_bytes();
    let mut depth = Depth::default();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            // An escaped letter can spell any name.
            depth.see(bytes[at]);
            found.names |= bytes[at] == b'\\' && !names.is_empty();
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        depth.see_word(&bytes[start..at]);
        match &bytes[start..at] {
            b"let" | b"const" | b"class" | b"using" => found.declares = true,
            b"await" => found.awaits = true,
            word if !names.is_empty() => {
                found.names |= std::str::from_utf8(word).is_ok_and(|word| names.contains(word));
            }
            _ => {}
        }
    }
    found.deep = depth.deep;
    found
}

#[cfg(test)]
mod tests {
    use super::words;
    use std::collections::HashSet;

    #[test]
    fn plain_expressions_need_no_parsing() {
        let none = HashSet::new();
        for text in ["1+2", "letter.constant", "x.map(y => y * 2)", "function f() {}", ""] {
            assert!(!words(text, &none).need_parsing(), "{text}");
        }
    }

    #[test]
    fn declarations_awaits_braces_and_known_constants_need_it() {
        let names = HashSet::from(["limit".to_owned()]);
        for text in
            ["let a", "const\tb=1", "class C{}", "await p", " {a:1}", "using r=x", "limit++", "x;limit=3"]
        {
            assert!(words(text, &names).need_parsing(), "{text}");
        }
    }
}
