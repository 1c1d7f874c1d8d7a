//! Texts of clients and operators as values, with errors that name the field and say in plain words what it must be. The only place
//! that reads the messages of the serde libraries; they never reach a user as they are.

use serde::Deserializer;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// Longest quotation of a text in an error (characters).
const QUOTED: usize = 60;

/// A value from the text of a JSON document; `subject` names the document in errors: "the body".
pub fn read_json<T: DeserializeOwned>(subject: &str, bytes: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = at_path(&mut reader).map_err(|(path, error)| json_error(subject, &path, &error))?;
    reader.end().map_err(|error| json_error(subject, "", &error))?;
    Ok(value)
}

/// A value from a parsed JSON document.
pub fn read_value<T: DeserializeOwned>(subject: &str, value: Value) -> Result<T, String> {
    at_path(value).map_err(|(path, error)| json_error(subject, &path, &error))
}

/// Reads a value; an error comes with the path of its field, which is empty for the document itself.
pub fn at_path<'de, T: DeserializeOwned, D: Deserializer<'de>>(reader: D) -> Result<T, (String, D::Error)> {
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        // A path that ends in `?` is one that the library could not follow.
        let path = path.trim_end_matches('?').trim_end_matches('.').to_owned();
        (path, error.into_inner())
    })
}

/// Why a text is not JSON, in plain words and with the position: "it is not JSON: … (line 1, column 7)".
pub fn not_json(error: &serde_json::Error) -> String {
    syntax("it", error)
}

/// Why a text is no value for a script; both reasons are in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotForScript {
    /// It is not JSON, and may be meant as a text.
    NotJson(String),
    /// It is JSON that no script can hold: a number is out of range or would be rounded, it is nested too deeply, or a text has half of
    /// a surrogate pair.
    Unsupported(String),
}

impl NotForScript {
    /// The reason.
    pub fn why(self) -> String {
        let (Self::NotJson(why) | Self::Unsupported(why)) = self;
        why
    }
}

/// Parses JSON for JavaScript, whose numbers are doubles: an integer that would be rounded is refused, never changed. The error is in
/// plain words.
pub fn json_for_script(text: &str) -> Result<Value, String> {
    parse_for_script(text).map_err(NotForScript::why)
}

/// As [`json_for_script`], for texts that need not be JSON: the error distinguishes the two.
pub fn parse_for_script(text: &str) -> Result<Value, NotForScript> {
    let value = serde_json::from_str(text).map_err(|error| {
        // A skipped value is checked for its syntax alone: no number, escape or nesting is refused.
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        let why = not_json(&error);
        if is_json { NotForScript::Unsupported(why) } else { NotForScript::NotJson(why) }
    })?;
    match rounded_integer(text) {
        None => Ok(value),
        Some(integer) => Err(NotForScript::Unsupported(format!(
            "the integer {} has more digits than a number of JavaScript keeps; send it as a string",
            shortened(integer)
        ))),
    }
}

/// The beginning of a long number.
fn shortened(digits: &str) -> std::borrow::Cow<'_, str> {
    const SHOWN: usize = 40;
    if digits.len() > SHOWN { format!("{}…", &digits[..SHOWN]).into() } else { digits.into() }
}

/// Whether a number without a sign is an integer that a double does not keep.
fn is_rounded(number: &str) -> bool {
    let Ok(double) = number.parse::<f64>() else { return false };
    // Without an exponent and to the last digit: the exact value of the double.
    let exact = format!("{double:.0}");
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        return exact != number;
    }
    let Some((digits, point)) = significant(number) else { return false };
    // A fraction is rounded everywhere. As a number with an exponent counts also the shortest text of a double, which is how a
    // script writes a large one.
    digits.len() <= point
        && significant(&exact) != Some((digits.clone(), point))
        && significant(&format!("{double:e}")) != Some((digits, point))
}

/// The digits of a number without the zeros around them, and how many of its digits are before the point. `None`: it is 0, or its
/// exponent is beyond all doubles.
fn significant(number: &str) -> Option<(String, usize)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.bytes().take_while(|byte| *byte == b'0').count();
    let point =
        i32::try_from(whole.len()).ok()?.checked_add(exponent)?.checked_sub(i32::try_from(leading).ok()?)?;
    let digits = digits.trim_matches('0').to_owned();
    (!digits.is_empty()).then_some((digits, usize::try_from(point).unwrap_or(0)))
}

/// The first integer of a valid JSON text that is not exactly a double.
fn rounded_integer(text: &str) -> Option<&str> {
    // No integer with fewer digits is rounded.
    const EXACT_DIGITS: usize = 15;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'0'..=b'9' => {
                let length = bytes[at..]
                    .iter()
                    .take_while(|byte| {
                        byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
                    })
                    .count();
                if length > EXACT_DIGITS && is_rounded(&text[at..at + length]) {
                    let sign = usize::from(text[..at].ends_with('-'));
                    return Some(&text[at - sign..at + length]);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

fn json_error(subject: &str, path: &str, error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Data => plain(subject, path, without_position(&error.to_string())),
        Category::Syntax | Category::Eof | Category::Io => syntax(subject, error),
    }
}

fn without_position(message: &str) -> &str {
    message.rfind(" at line ").map_or(message, |end| &message[..end])
}

fn syntax(subject: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    // These are JSON, but no value can be made of them.
    let limit = match without_position(&text) {
        "number out of range" => Some("a number that is out of range"),
        "recursion limit exceeded" => Some("lists or objects that are nested too deeply"),
        "invalid unicode code point"
        | "lone leading surrogate in hex escape"
        | "unexpected end of hex escape" => {
            Some("a text with half of a surrogate pair, which is no character")
        }
        _ => None,
    };
    if let Some(limit) = limit {
        return format!("{subject} has {limit} ({})", position(error));
    }
    let why = match without_position(&text) {
        eof if eof.starts_with("EOF") => {
            "it ends too early (is a bracket, a brace or a quotation mark missing?)"
        }
        "expected value" | "expected ident" => "a value was expected here; texts need double quotation marks",
        "key must be a string" => "a name in double quotation marks was expected here",
        "trailing comma" => "there is a comma after the last element",
        "trailing characters" => "there is more text after its end",
        "expected `:`" => "a colon was expected here",
        "expected `,` or `}`" => "a comma or `}` was expected here",
        "expected `,` or `]`" => "a comma or `]` was expected here",
        "invalid number" => "this is not a number of JSON",
        "invalid escape" => "the escape after this backslash is not one of JSON",
        control if control.starts_with("control character") => {
            "a text contains a line break or another control character; write \\n"
        }
        other => return format!("{subject} is not JSON: {other} ({})", position(error)),
    };
    format!("{subject} is not JSON: {why} ({})", position(error))
}

fn position(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

/// The message of a serde library about the value at `path`, in plain words.
pub fn plain(subject: &str, path: &str, message: &str) -> String {
    explain(subject, path, message, |found| format!(", not {found}"))
}

/// As [`plain`], without the value that was found: it may be a secret.
pub fn plain_without_value(subject: &str, path: &str, message: &str) -> String {
    explain(subject, path, message, |_| String::new())
}

/// `not` is the end of a sentence about the value that was found.
fn explain(subject: &str, path: &str, message: &str, not: impl Fn(&str) -> String) -> String {
    let place = if path.is_empty() || path == "." { subject.to_owned() } else { format!("`{path}`") };
    let parsed = wrong_type(&place, message, &not)
        .or_else(|| wrong_field(path, &place, message, &not))
        .or_else(|| wrong_length(&place, message));
    parsed.unwrap_or_else(|| format!("{place}: {message}"))
}

/// `invalid type: string "x", expected a sequence`
fn wrong_type(place: &str, message: &str, not: impl Fn(&str) -> String) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    // The value may contain the word as well; the expectation does not.
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some(format!("{place} must be {}{}", expectation(expected), not(&value(found))))
}

fn expectation(expected: &str) -> String {
    let whole = |least: i128, most: i128| format!("a whole number from {least} to {most}");
    match expected {
        "a sequence" | "sequence" => "a list".to_owned(),
        "a map" | "map" => "an object".to_owned(),
        "a string" | "string" | "str" | "a borrowed string" => "a text".to_owned(),
        "a boolean" | "bool" => "true or false".to_owned(),
        "f64" | "f32" | "a JSON number" => "a number".to_owned(),
        "any valid JSON value" => "a value of JSON".to_owned(),
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        "i32" => whole(i32::MIN.into(), i32::MAX.into()),
        "u64" | "usize" | "u128" => "a whole number that is not negative".to_owned(),
        "i64" | "isize" | "i128" => "a whole number".to_owned(),
        "unit" | "null" => "null".to_owned(),
        "string or map" | "variant identifier" => "a name".to_owned(),
        text if text.starts_with("struct ") || text.starts_with("internally tagged enum ") => {
            "an object".to_owned()
        }
        text if text.starts_with("a tuple of size ") => {
            text.replace("a tuple of size ", "a list of values, as many as ")
        }
        text if text.starts_with("enum ") => "a name".to_owned(),
        // The expectation of a type of our own.
        text => text.to_owned(),
    }
}

fn value(found: &str) -> String {
    match found {
        "null" | "unit value" | "Option value" => return "null".to_owned(),
        "sequence" => return "a list".to_owned(),
        "map" => return "an object".to_owned(),
        _ => {}
    }
    let quoted = |text: &str| text.trim_matches('`').to_owned();
    if let Some(text) = found.strip_prefix("string ") {
        return format!("the text {}", short(text));
    }
    if let Some(text) = found.strip_prefix("boolean ") {
        return quoted(text);
    }
    for kind in ["integer ", "floating point ", "number "] {
        if let Some(number) = found.strip_prefix(kind) {
            return quoted(number);
        }
    }
    short(found)
}

/// The beginning of a quoted text.
fn short(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…\"", &text[..end]),
        None => text.to_owned(),
    }
}

/// `unknown variant`, `unknown field`, `missing field`, `duplicate field`.
fn wrong_field(path: &str, place: &str, message: &str, not: impl Fn(&str) -> String) -> Option<String> {
    let name = |rest: &str| {
        rest.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(name, _)| name.to_owned())
    };
    // The path of an unknown field may end with the field already.
    let inside = |field: &str| match path {
        "" | "." => format!("`{field}`"),
        path if path == field || path.ends_with(&format!(".{field}")) => format!("`{path}`"),
        path => format!("`{path}.{field}`"),
    };
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (found, expected) = rest.split_once(", ")?;
        return Some(match names(expected) {
            Some(names) => format!("{place} must be {names}{}", not(&short(found))),
            None => format!("{place} must not be {}", short(found)),
        });
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let field = short(&name(rest)?);
        let known = rest.split_once(", ").and_then(|(_, expected)| names(expected));
        return Some(match known {
            Some(names) => format!("there is no field {}; a field is {names}", inside(&field)),
            None => format!("there is no field {}: no fields are expected here", inside(&field)),
        });
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        return Some(format!("{} is missing", inside(&name(rest)?)));
    }
    if let Some(rest) = message.strip_prefix("duplicate field ") {
        return Some(format!("{} is given twice", inside(&name(rest)?)));
    }
    message
        .starts_with("data did not match any variant")
        .then(|| format!("{place} has none of the forms that are possible here"))
}

/// "`a`, `b` or `c`" of "expected one of `a`, `b`, `c`" and the like.
fn names(expected: &str) -> Option<String> {
    let list = expected.strip_prefix("expected ")?;
    let list = list.strip_prefix("one of ").unwrap_or(list);
    Some(match list.rsplit_once(", ") {
        Some((first, last)) => format!("{first} or {last}"),
        None => list.to_owned(),
    })
}

/// `invalid length 3, expected …`
fn wrong_length(place: &str, message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid length ")?;
    let (length, expected) = rest.split_once(", expected ")?;
    Some(format!("{place} has {length} elements; {} is expected", expectation(expected)))
}
