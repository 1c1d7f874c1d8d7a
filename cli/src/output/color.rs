//! Colours of a value as the inspector prints it. A scanner of words and quotes, not a parser: what it does not know stays plain.

/// The text with colours of its strings, numbers and words, as in Node's shell.
pub(crate) fn of_value(text: &str) -> String {
    let mut painted = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (len, code) = match first {
            '\'' | '"' | '`' => (quoted(rest, first), Some("32")),
            '[' => bracket(rest),
            c if c.is_ascii_digit() || (c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) => {
                (word(rest, 1), Some("33"))
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                let len = word(rest, c.len_utf8());
                // A key is followed by a colon.
                let is_key = rest[len..].starts_with(':');
                (len, if is_key { None } else { color_of(&rest[..len]) })
            }
            c => (c.len_utf8(), None),
        };
        let (token, behind) = rest.split_at(len);
        match code {
            Some(code) => {
                painted.push_str("\x1b[");
                painted.push_str(code);
                painted.push('m');
                painted.push_str(token);
                painted.push_str("\x1b[0m");
            }
            None => painted.push_str(token),
        }
        rest = behind;
    }
    painted
}

fn color_of(word: &str) -> Option<&'static str> {
    match word {
        "true" | "false" | "NaN" | "Infinity" => Some("33"),
        "undefined" => Some("90"),
        "null" => Some("1"),
        _ => None,
    }
}

/// The length of a quoted text, with its quotes; of the whole rest if it has no end.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return place + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// `[Function: f]`, `[class A]` and the like; else only the bracket.
fn bracket(text: &str) -> (usize, Option<&'static str>) {
    let marks = [
        "[Function",
        "[AsyncFunction",
        "[GeneratorFunction",
        "[class",
        "[Getter",
        "[Setter",
        "[Circular",
        "[Object",
        "[Array",
    ];
    if marks.iter().any(|mark| text.starts_with(mark))
        && let Some(end) = text.find(']')
    {
        return (end + 1, Some("36"));
    }
    (1, None)
}

/// The length of a word or number that begins with `first` bytes.
fn word(text: &str, first: usize) -> usize {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    text[first..].find(|c: char| !continues(c)).map_or(text.len(), |len| first + len)
}

#[cfg(test)]
mod tests {
    use super::of_value;

    #[test]
    fn values_have_colours_and_keys_have_none() {
        let plain = |text: &str| {
            let mut plain = of_value(text);
            for code in ["32", "33", "90", "36", "1", "0"] {
                plain = plain.replace(&format!("\x1b[{code}m"), "");
            }
            plain
        };
        for text in [
            "{ a: 1, 'b c': 'it\\'s', f: [Function: f] }",
            "'no end",
            "-1.5e3",
            "[ 1, [Array] ]",
            "Map(1) { 'ä' => null }",
            "é-",
        ] {
            assert_eq!(plain(text), text);
        }
        assert_eq!(of_value("{ a: -1, b: 'x' }"), "{ a: \x1b[33m-1\x1b[0m, b: \x1b[32m'x'\x1b[0m }");
        assert_eq!(of_value("undefined"), "\x1b[90mundefined\x1b[0m");
        assert_eq!(of_value("{ null: [Function: f] }"), "{ null: \x1b[36m[Function: f]\x1b[0m }");
    }
}
