//! The JSON scanner: text in, events out, with an explicit stack of one bit per open container.

use super::super::units::{Trim, Units, trim};
use std::fmt;
use std::ops::Range;

/// A scalar or key in the text: its position, and for strings whether escapes must be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JsonToken {
    /// Units of the content, without quotes for strings.
    pub range: Range<usize>,
    /// True if a string has escapes and must be decoded with [`JsonScanner::decode`]; else the range is the string.
    pub escaped: bool,
}

/// The next element of the text.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum JsonEvent {
    /// `{`
    BeginObject,
    /// `}`
    EndObject,
    /// `[`
    BeginArray,
    /// `]`
    EndArray,
    /// A property name; its value follows.
    Key(JsonToken),
    /// A string value.
    String(JsonToken),
    /// A number value and its position.
    Number(f64, JsonToken),
    /// `true` or `false` and its position.
    Boolean(bool, JsonToken),
    /// `null` and its position.
    Null(JsonToken),
}

/// The kind of an error in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonErrorKind {
    /// The text stops in the middle.
    UnexpectedEnd,
    /// This unit is not allowed here.
    UnexpectedUnit(u16),
    /// A control character inside a string.
    ControlInString(u16),
    /// A backslash that does not begin an escape.
    BadEscape,
}

/// Position and reason of an error. The caller throws a `SyntaxError` with the displayed text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct JsonError {
    /// The kind of error.
    pub problem: JsonErrorKind,
    /// Unit offset into the text.
    pub position: usize,
    /// 1-based.
    pub line: usize,
    /// 1-based, in units.
    pub column: usize,
}

impl std::error::Error for JsonError {}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonErrorKind::UnexpectedEnd => write!(out, "Unexpected end of JSON input"),
            JsonErrorKind::UnexpectedUnit(unit) => {
                let shown = char::from_u32(u32::from(*unit)).filter(|letter| !letter.is_control());
                match shown {
                    Some(letter) => write!(out, "Unexpected token '{letter}' in JSON"),
                    None => write!(out, "Unexpected token U+{unit:04X} in JSON"),
                }
            }
            JsonErrorKind::ControlInString(unit) => {
                write!(out, "Bad control character U+{unit:04X} in JSON string")
            }
            JsonErrorKind::BadEscape => write!(out, "Bad escape in JSON string"),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JsonError { problem, position, line, column } = self;
        write!(out, "{problem} at position {position} (line {line} column {column})")
    }
}

/// The tokens that are allowed next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    Value,
    /// Just after `[`.
    ValueOrEnd,
    /// Just after `{`.
    KeyOrEnd,
    Key,
    /// After a value.
    CommaOrEnd,
}

/// Scans one JSON text. Cost is linear in the text; memory is one byte for each container that is open.
#[derive(Debug)]
pub(crate) struct JsonScanner<'t, U: Units + ?Sized> {
    text: &'t U,
    position: usize,
    expect: Expect,
    /// For each open container, outermost first: whether it is an object.
    open: Vec<bool>,
}

impl<'t, U: Units + ?Sized> JsonScanner<'t, U> {
    /// A scanner at the start of `text`.
    pub(crate) fn new(text: &'t U) -> Self {
        JsonScanner { text, position: 0, expect: Expect::Value, open: Vec::new() }
    }

    /// Number of containers that are open now.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Offset of the next unit; grows with the work done.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The next event; `None` after the end of a complete text.
    pub(crate) fn next_event(&mut self) -> Result<Option<JsonEvent>, JsonError> {
        loop {
            self.skip_space();
            let Some(unit) = self.peek() else {
                let complete = self.open.is_empty() && self.expect == Expect::CommaOrEnd;
                return if complete { Ok(None) } else { Err(self.error(JsonErrorKind::UnexpectedEnd)) };
            };
            let letter = u8::try_from(unit).unwrap_or(0);
            match (self.expect, letter) {
                (Expect::ValueOrEnd, b']') => return Ok(Some(self.close(JsonEvent::EndArray))),
                (Expect::KeyOrEnd, b'}') => return Ok(Some(self.close(JsonEvent::EndObject))),
                (Expect::Value | Expect::ValueOrEnd, _) => return self.value(letter).map(Some),
                (Expect::Key | Expect::KeyOrEnd, b'"') => return self.key().map(Some),
                (Expect::CommaOrEnd, _) => match (self.open.last(), letter) {
                    (Some(object), b',') => {
                        self.expect = if *object { Expect::Key } else { Expect::Value };
                        self.position += 1;
                    }
                    (Some(true), b'}') => return Ok(Some(self.close(JsonEvent::EndObject))),
                    (Some(false), b']') => return Ok(Some(self.close(JsonEvent::EndArray))),
                    _ => return Err(self.unexpected()),
                },
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// The content of a string token, escapes resolved.
    pub(crate) fn decode(&self, token: &JsonToken) -> Vec<u16> {
        let mut out = Vec::with_capacity(token.range.len());
        let mut index = token.range.start;
        while index < token.range.end {
            let unit = self.text.unit(index);
            if unit != u16::from(b'\\') {
                out.push(unit);
                index += 1;
                continue;
            }
            let letter = self.text.unit(index + 1);
            index += 2;
            out.push(match u8::try_from(letter).unwrap_or(0) {
                b'b' => 8,
                b't' => 9,
                b'n' => 10,
                b'f' => 12,
                b'r' => 13,
                b'u' => {
                    index += 4;
                    (index - 4..index)
                        .fold(0, |value, position| value << 4 | hex(self.text.unit(position)).unwrap_or(0))
                }
                _ => letter,
            });
        }
        out
    }

    fn peek(&self) -> Option<u16> {
        (self.position < self.text.count()).then(|| self.text.unit(self.position))
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(0x20 | 0x09 | 0x0A | 0x0D)) {
            self.position += 1;
        }
    }

    fn close(&mut self, event: JsonEvent) -> JsonEvent {
        self.position += 1;
        self.open.pop();
        self.expect = Expect::CommaOrEnd;
        event
    }

    fn value(&mut self, letter: u8) -> Result<JsonEvent, JsonError> {
        match letter {
            b'{' => {
                self.position += 1;
                self.open.push(true);
                self.expect = Expect::KeyOrEnd;
                return Ok(JsonEvent::BeginObject);
            }
            b'[' => {
                self.position += 1;
                self.open.push(false);
                self.expect = Expect::ValueOrEnd;
                return Ok(JsonEvent::BeginArray);
            }
            _ => {}
        }
        let event = match letter {
            b'"' => JsonEvent::String(self.string()?),
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => JsonEvent::Boolean(true, self.word("true")?),
            b'f' => JsonEvent::Boolean(false, self.word("false")?),
            b'n' => JsonEvent::Null(self.word("null")?),
            _ => return Err(self.unexpected()),
        };
        self.expect = Expect::CommaOrEnd;
        Ok(event)
    }

    fn key(&mut self) -> Result<JsonEvent, JsonError> {
        let token = self.string()?;
        self.skip_space();
        if self.peek() != Some(u16::from(b':')) {
            return Err(self.unexpected());
        }
        self.position += 1;
        self.expect = Expect::Value;
        Ok(JsonEvent::Key(token))
    }

    fn word(&mut self, word: &str) -> Result<JsonToken, JsonError> {
        let start = self.position;
        for byte in word.bytes() {
            if self.peek() != Some(u16::from(byte)) {
                return Err(self.unexpected());
            }
            self.position += 1;
        }
        Ok(JsonToken { range: start..self.position, escaped: false })
    }

    /// The string at the opening quote; checks escapes, does not resolve them.
    fn string(&mut self) -> Result<JsonToken, JsonError> {
        self.position += 1;
        let start = self.position;
        let mut escaped = false;
        loop {
            let Some(unit) = self.peek() else { return Err(self.error(JsonErrorKind::UnexpectedEnd)) };
            match unit {
                0x22 => {
                    self.position += 1;
                    return Ok(JsonToken { range: start..self.position - 1, escaped });
                }
                0..=0x1F => return Err(self.error(JsonErrorKind::ControlInString(unit))),
                0x5C => {
                    escaped = true;
                    self.escape()?;
                }
                _ => self.position += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.position += 1;
        let Some(unit) = self.peek() else { return Err(self.error(JsonErrorKind::UnexpectedEnd)) };
        let digits = match u8::try_from(unit).unwrap_or(0) {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 0,
            b'u' => 4,
            _ => return Err(self.error(JsonErrorKind::BadEscape)),
        };
        self.position += 1;
        for _ in 0..digits {
            match self.peek() {
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
                Some(unit) if hex(unit).is_none() => return Err(self.error(JsonErrorKind::BadEscape)),
                Some(_) => self.position += 1,
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<JsonEvent, JsonError> {
        let start = self.position;
        let mut ascii = String::new();
        self.take(&mut ascii, |byte| byte == b'-', 1);
        if self.take(&mut ascii, |byte| byte == b'0', 1) == 0 {
            self.need_digits(&mut ascii)?;
        }
        if self.take(&mut ascii, |byte| byte == b'.', 1) == 1 {
            self.need_digits(&mut ascii)?;
        }
        if self.take(&mut ascii, |byte| matches!(byte, b'e' | b'E'), 1) == 1 {
            self.take(&mut ascii, |byte| matches!(byte, b'+' | b'-'), 1);
            self.need_digits(&mut ascii)?;
        }
        let value = ascii.parse().unwrap_or(f64::NAN);
        Ok(JsonEvent::Number(value, JsonToken { range: start..self.position, escaped: false }))
    }

    fn need_digits(&mut self, ascii: &mut String) -> Result<(), JsonError> {
        if self.take(ascii, |byte| byte.is_ascii_digit(), usize::MAX) == 0 {
            return Err(self.unexpected());
        }
        Ok(())
    }

    /// Moves at most `limit` fitting units to `ascii` and returns their number.
    fn take(&mut self, ascii: &mut String, fits: impl Fn(u8) -> bool, limit: usize) -> usize {
        let mut taken = 0;
        while taken < limit {
            let Some(byte) = self.peek().and_then(|unit| u8::try_from(unit).ok()).filter(|byte| fits(*byte))
            else {
                break;
            };
            ascii.push(char::from(byte));
            self.position += 1;
            taken += 1;
        }
        taken
    }

    fn unexpected(&self) -> JsonError {
        self.error(self.peek().map_or(JsonErrorKind::UnexpectedEnd, JsonErrorKind::UnexpectedUnit))
    }

    fn error(&self, problem: JsonErrorKind) -> JsonError {
        let before = 0..self.position.min(self.text.count());
        let mut line = 1;
        let mut line_start = 0;
        for index in before {
            if self.text.unit(index) == 0x0A {
                line += 1;
                line_start = index + 1;
            }
        }
        JsonError { problem, position: self.position, line, column: self.position - line_start + 1 }
    }
}

fn hex(unit: u16) -> Option<u16> {
    char::from_u32(u32::from(unit)).and_then(|letter| letter.to_digit(16)).map(|digit| digit as u16)
}

/// True for text that is one JSON primitive with nothing around it, as `JSON.rawJSON` requires, ECMA-262 25.5.3.
pub(crate) fn is_raw_primitive<U: Units + ?Sized>(text: &U) -> bool {
    if text.count() == 0 || trim(text, Trim::Both).len() != text.count() {
        return false;
    }
    let mut scanner = JsonScanner::new(text);
    let scalar = matches!(
        scanner.next_event(),
        Ok(Some(JsonEvent::String(_) | JsonEvent::Number(..) | JsonEvent::Boolean(..) | JsonEvent::Null(_)))
    );
    scalar && scanner.next_event() == Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events as compact text, or the error.
    fn scan(text: &str) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut scanner = JsonScanner::new(units.as_slice());
        let mut out = Vec::new();
        loop {
            match scanner.next_event() {
                Ok(None) => return out.concat(),
                Err(error) => return error.to_string(),
                Ok(Some(event)) => out.push(show(&scanner, &event)),
            }
        }
    }

    fn show(scanner: &JsonScanner<'_, [u16]>, event: &JsonEvent) -> String {
        let text = |token: &JsonToken| String::from_utf16_lossy(&scanner.decode(token));
        match event {
            JsonEvent::BeginObject => "{".to_owned(),
            JsonEvent::EndObject => "}".to_owned(),
            JsonEvent::BeginArray => "[".to_owned(),
            JsonEvent::EndArray => "]".to_owned(),
            JsonEvent::Key(token) => format!("{}:", text(token)),
            JsonEvent::String(token) => format!("'{}'", text(token)),
            JsonEvent::Number(value, _) => format!("{value};"),
            JsonEvent::Boolean(value, _) => format!("{value};"),
            JsonEvent::Null(_) => "null;".to_owned(),
        }
    }

    #[test]
    fn complete_texts_have_their_events() {
        for (text, events) in [
            ("null", "null;"),
            (" [1, -0.5e2 ,true,false]\t\r\n", "[1;-50;true;false;]"),
            (r#"{"a":{"b":[]},"c":"d"}"#, "{a:{b:[]}c:'d'}"),
            (r#""\"\\\/\b\f\n\r\t\u0041\ud83d\ude00é""#, "'\"\\/\u{8}\u{c}\n\r\tA😀é'"),
            ("[[],{}]", "[[]{}]"),
            ("1E+2", "100;"),
            ("-0", "-0;"),
            ("\"\u{2028}\"", "'\u{2028}'"),
            ("{\"\":0}", "{:0;}"),
        ] {
            assert_eq!(scan(text), events, "{text}");
        }
    }

    #[test]
    fn errors_have_line_and_column() {
        for (text, message) in [
            ("", "Unexpected end of JSON input at position 0 (line 1 column 1)"),
            ("[1,]", "Unexpected token ']' in JSON at position 3 (line 1 column 4)"),
            ("{\"a\":1,}", "Unexpected token '}' in JSON at position 7 (line 1 column 8)"),
            ("{\n \"a\" 1}", "Unexpected token '1' in JSON at position 7 (line 2 column 6)"),
            ("{a:1}", "Unexpected token 'a' in JSON at position 1 (line 1 column 2)"),
            ("01", "Unexpected token '1' in JSON at position 1 (line 1 column 2)"),
            ("1.", "Unexpected end of JSON input at position 2 (line 1 column 3)"),
            (".5", "Unexpected token '.' in JSON at position 0 (line 1 column 1)"),
            ("+1", "Unexpected token '+' in JSON at position 0 (line 1 column 1)"),
            ("1e", "Unexpected end of JSON input at position 2 (line 1 column 3)"),
            ("nul", "Unexpected end of JSON input at position 3 (line 1 column 4)"),
            ("'a'", "Unexpected token ''' in JSON at position 0 (line 1 column 1)"),
            ("\"a\nb\"", "Bad control character U+000A in JSON string at position 2 (line 1 column 3)"),
            ("\"\\x\"", "Bad escape in JSON string at position 2 (line 1 column 3)"),
            ("\"\\u12g4\"", "Bad escape in JSON string at position 5 (line 1 column 6)"),
            ("\"abc", "Unexpected end of JSON input at position 4 (line 1 column 5)"),
            ("1 2", "Unexpected token '2' in JSON at position 2 (line 1 column 3)"),
            ("[1}", "Unexpected token '}' in JSON at position 2 (line 1 column 3)"),
            ("]", "Unexpected token ']' in JSON at position 0 (line 1 column 1)"),
            ("\u{a0}1", "Unexpected token '\u{a0}' in JSON at position 0 (line 1 column 1)"),
            ("-", "Unexpected end of JSON input at position 1 (line 1 column 2)"),
            ("\u{0}", "Unexpected token U+0000 in JSON at position 0 (line 1 column 1)"),
        ] {
            assert_eq!(scan(text), message, "{text:?}");
        }
    }

    #[test]
    fn depth_uses_heap_and_not_stack() {
        let text = "[".repeat(1_000_000);
        let mut scanner = JsonScanner::new(text.as_bytes());
        for _ in 0..1_000_000 {
            assert_eq!(scanner.next_event(), Ok(Some(JsonEvent::BeginArray)));
        }
        assert_eq!(scanner.depth(), 1_000_000);
        assert_eq!(scanner.next_event().map_err(|error| error.problem), Err(JsonErrorKind::UnexpectedEnd));
    }

    #[test]
    fn raw_json_accepts_bare_primitives_only() {
        for (text, fits) in
            [("1", true), ("\"a\"", true), (" 1", false), ("{}", false), ("", false), ("1 2", false)]
        {
            assert_eq!(is_raw_primitive(text.as_bytes()), fits, "{text}");
        }
    }
}
