//! `Date.parse`, ECMA-262 21.4.3.2: the ISO format of 21.4.1.32 exactly, then the formats that `toString` and
//! `toUTCString` print, with the common variations in order and words. Any other text is NaN.
//!
//! A date-time without an offset is local time, which is UTC here.

use super::super::units::Units;
use super::text::{is_day_name, month_by_name};
use super::time::{full_year, make_date, make_day, make_time, time_clip};

/// Longer text is not a date (units).
const MAX_LENGTH: usize = 256;

/// The time value of the text, or NaN.
pub(crate) fn parse<U: Units + ?Sized>(text: &U) -> f64 {
    if text.count() > MAX_LENGTH {
        return f64::NAN;
    }
    let mut ascii = String::with_capacity(text.count());
    for index in 0..text.count() {
        match u8::try_from(text.unit(index)) {
            Ok(byte) if byte.is_ascii() => ascii.push(char::from(byte)),
            // Some programs print a narrow no-break space before AM and PM.
            Err(_) if text.unit(index) == 0x202F => ascii.push(' '),
            _ => return f64::NAN,
        }
    }
    parse_iso(ascii.as_bytes()).or_else(|| parse_words(&ascii)).map_or(f64::NAN, time_clip)
}

/// A cursor over ASCII.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Exactly `count` digits.
    fn digits(&mut self, count: usize) -> Option<f64> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        if !head.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.rest = tail;
        Some(head.iter().fold(0.0, |value, digit| value * 10.0 + f64::from(digit - b'0')))
    }

    /// `+hh:mm` or `-hh:mm` in minutes; with `loose` the colon may be left out.
    fn offset(&mut self, loose: bool) -> Option<f64> {
        let sign = match self.rest.first()? {
            b'+' => 1.0,
            b'-' => -1.0,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        let hour = self.digits(2)?;
        let minute = if self.eat(b':') || loose && self.rest.first().is_some_and(u8::is_ascii_digit) {
            self.digits(2)?
        } else if loose {
            0.0
        } else {
            return None;
        };
        (hour <= 23.0 && minute <= 59.0).then_some(sign * (hour * 60.0 + minute))
    }
}

/// The grammar of ECMA-262 21.4.1.32, with expanded years.
fn parse_iso(text: &[u8]) -> Option<f64> {
    let mut cursor = Cursor { rest: text };
    let year = match cursor.rest.first()? {
        b'+' => {
            cursor.eat(b'+');
            cursor.digits(6)?
        }
        b'-' => {
            cursor.eat(b'-');
            let year = cursor.digits(6)?;
            // −000000 is not a year.
            if year == 0.0 {
                return None;
            }
            -year
        }
        _ => cursor.digits(4)?,
    };
    let (mut month, mut date) = (1.0, 1.0);
    if cursor.eat(b'-') {
        month = cursor.digits(2)?;
        if cursor.eat(b'-') {
            date = cursor.digits(2)?;
        }
    }
    // As in V8, a day that the month does not have is one of the next month.
    if !is_month(month) || !is_day(date) {
        return None;
    }
    let day = make_day(year, month - 1.0, date);
    if cursor.rest.is_empty() {
        return Some(make_date(day, 0.0));
    }
    if !cursor.eat(b'T') {
        return None;
    }
    let hour = cursor.digits(2)?;
    if !cursor.eat(b':') {
        return None;
    }
    let minute = cursor.digits(2)?;
    let (mut second, mut millisecond) = (0.0, 0.0);
    if cursor.eat(b':') {
        second = cursor.digits(2)?;
        if cursor.eat(b'.') {
            millisecond = fraction(&mut cursor)?;
        }
    }
    let midnight = hour == 24.0 && minute == 0.0 && second == 0.0 && millisecond == 0.0;
    if minute > 59.0 || second > 59.0 || (hour > 23.0 && !midnight) {
        return None;
    }
    let offset = if cursor.rest.is_empty() || cursor.eat(b'Z') { 0.0 } else { cursor.offset(false)? };
    if !cursor.rest.is_empty() {
        return None;
    }
    Some(make_date(day, make_time(hour, minute, second, millisecond)) - offset * 60_000.0)
}

/// Milliseconds from one or more digits after the point; those past the third are dropped.
fn fraction(cursor: &mut Cursor<'_>) -> Option<f64> {
    let count = cursor.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let (digits, rest) = cursor.rest.split_at(count);
    cursor.rest = rest;
    let weights = [100.0, 10.0, 1.0];
    Some(digits.iter().zip(weights).map(|(digit, weight)| f64::from(digit - b'0') * weight).sum())
}

fn is_month(number: f64) -> bool {
    (1.0..=12.0).contains(&number)
}

fn is_day(number: f64) -> bool {
    (1.0..=31.0).contains(&number)
}

/// The parts that [`parse_words`] has read.
#[derive(Default)]
struct DateWords {
    month: Option<f64>,
    numbers: Vec<(f64, usize, bool)>,
    time: Option<[f64; 4]>,
    offset_minutes: f64,
    afternoon: Option<bool>,
}

/// `Tue Feb 01 2022 12:00:00 GMT+0000 (UTC)`, `Tue, 01 Feb 2022 12:00:00 GMT`, `Feb 1, 2022`, `2/1/2022 3:04 PM` and the like.
fn parse_words(text: &str) -> Option<f64> {
    let mut loose = DateWords::default();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        match first {
            b' ' | b',' | b'\t' => rest = &rest[1..],
            b'(' => rest = &rest[rest.find(')')? + 1..],
            b'0'..=b'9' => rest = number_or_time(&mut loose, rest, false)?,
            b'A'..=b'Z' | b'a'..=b'z' => {
                let end = rest.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len());
                word(&mut loose, &rest[..end])?;
                rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
            }
            b'+' | b'-' if loose.time.is_some() => {
                let mut cursor = Cursor { rest: rest.as_bytes() };
                loose.offset_minutes = cursor.offset(true)?;
                rest = &rest[rest.len() - cursor.rest.len()..];
            }
            b'-' if text[..text.len() - rest.len()].ends_with(' ') => {
                rest = number_or_time(&mut loose, &rest[1..], true)?;
            }
            b'/' | b'-' | b'.' if !loose.numbers.is_empty() || loose.month.is_some() => rest = &rest[1..],
            _ => return None,
        }
    }
    finish(&loose)
}

fn word(loose: &mut DateWords, name: &str) -> Option<()> {
    match name.to_ascii_lowercase().as_str() {
        "gmt" | "utc" | "ut" | "z" => loose.offset_minutes = 0.0,
        "am" => loose.afternoon = Some(false),
        "pm" => loose.afternoon = Some(true),
        "t" => {}
        _ => match month_by_name(name) {
            Some(month) if loose.month.is_none() => loose.month = Some(month as f64),
            _ if is_day_name(name) => {}
            // As in V8, any other word may stand before the first number.
            _ if loose.numbers.is_empty() && loose.time.is_none() => {}
            _ => return None,
        },
    }
    Some(())
}

/// A number, or hours, minutes, seconds and milliseconds if a colon follows.
fn number_or_time<'a>(loose: &mut DateWords, text: &'a str, negative: bool) -> Option<&'a str> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut cursor = Cursor { rest: text.as_bytes() };
    if count == 0 || count > 9 {
        return None;
    }
    let value = cursor.digits(count)?;
    if cursor.rest.first() != Some(&b':') {
        loose.numbers.push((if negative { -value } else { value }, count, negative));
        return Some(&text[count..]);
    }
    let mut parts = [value, 0.0, 0.0, 0.0];
    cursor.eat(b':');
    parts[1] = cursor.digits(2)?;
    if cursor.eat(b':') {
        parts[2] = cursor.digits(2)?;
        if cursor.eat(b'.') {
            parts[3] = fraction(&mut cursor)?;
        }
    }
    let midnight = parts == [24.0, 0.0, 0.0, 0.0];
    if loose.time.is_some() || (parts[0] > 23.0 && !midnight) || parts[1] > 59.0 || parts[2] > 59.0 {
        return None;
    }
    loose.time = Some(parts);
    Some(&text[text.len() - cursor.rest.len()..])
}

/// Puts month, day and year together, as V8 does: a first number that cannot be a day is the year; then the order is month, day,
/// year, or day, year beside a month word. Missing parts are 1 (the year: 2001).
fn finish(loose: &DateWords) -> Option<f64> {
    const ABSENT: (f64, usize, bool) = (1.0, 1, false);
    let (first, second, third) = match *loose.numbers.as_slice() {
        [first] => (first, ABSENT, ABSENT),
        [first, second] => (first, second, ABSENT),
        [first, second, third] => (first, second, third),
        _ => return None,
    };
    let is_year = first.1 > 2 || first.2 || !is_day(first.0);
    let (year, month, date) = match loose.month {
        Some(month) if is_year => (first, month + 1.0, second.0),
        Some(month) => (second, month + 1.0, first.0),
        None if is_year => (first, second.0, third.0),
        None => (third, first.0, second.0),
    };
    let year = match year {
        (value, ..=2, false) if value < 50.0 => value + 2000.0,
        (value, ..=2, false) => full_year(value),
        (value, ..) => value,
    };
    if !is_month(month) || !is_day(date) {
        return None;
    }
    let [mut hour, minute, second, millisecond] = loose.time.unwrap_or_default();
    if let Some(afternoon) = loose.afternoon {
        if !(1.0..=12.0).contains(&hour) {
            return None;
        }
        hour = hour % 12.0 + if afternoon { 12.0 } else { 0.0 };
    }
    let time = make_time(hour, minute, second, millisecond) - loose.offset_minutes * 60_000.0;
    Some(make_date(make_day(year, month - 1.0, date), time))
}

#[cfg(test)]
mod tests {
    use super::super::{to_iso_string, to_string, to_utc_string};
    use super::parse;

    fn iso(text: &str) -> String {
        to_iso_string(parse(text.as_bytes())).unwrap_or_else(|| "NaN".to_owned())
    }

    #[test]
    fn iso_format_is_exact() {
        for (text, expected) in [
            ("2022", "2022-01-01T00:00:00.000Z"),
            ("2022-02", "2022-02-01T00:00:00.000Z"),
            ("2022-02-28", "2022-02-28T00:00:00.000Z"),
            ("2022-02-28T01:02", "2022-02-28T01:02:00.000Z"),
            ("2022-02-28T01:02:03.4Z", "2022-02-28T01:02:03.400Z"),
            ("2022-02-28T01:02:03.456789Z", "2022-02-28T01:02:03.456Z"),
            ("2022-02-28T01:02:03+05:30", "2022-02-27T19:32:03.000Z"),
            ("2022-02-28T24:00", "2022-03-01T00:00:00.000Z"),
            ("+275760-09-13T00:00:00.000Z", "+275760-09-13T00:00:00.000Z"),
            ("-271821-04-20T00:00:00.000Z", "-271821-04-20T00:00:00.000Z"),
            ("-271821-04-19T23:59:59.999Z", "NaN"),
            ("+275760-09-13T00:00:00.001Z", "NaN"),
            ("-000000-01-01T00:00:00Z", "NaN"),
            ("2022-02-30", "2022-03-02T00:00:00.000Z"),
            ("2024-02-30", "2024-03-01T00:00:00.000Z"),
            ("2024-04-31T24:00Z", "2024-05-02T00:00:00.000Z"),
            ("+002024-02-30", "2024-03-01T00:00:00.000Z"),
            ("2024-02-32", "NaN"),
            ("2024-02-00", "NaN"),
            ("2022-13-01", "NaN"),
            ("2022-00-01", "NaN"),
            ("2022-01-01T24:00:01", "NaN"),
            ("2022-01-01T25:00", "NaN"),
            ("2022-01-01T00", "NaN"),
            ("2022-01-01T00:00:00.Z", "NaN"),
            ("2022-01-01T00:00Zx", "NaN"),
            ("", "NaN"),
            ("nonsense", "NaN"),
            ("2000-02-29", "2000-02-29T00:00:00.000Z"),
            ("1900-02-29", "1900-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(text), expected, "{text}");
        }
    }

    #[test]
    fn printed_formats_are_parsed() {
        for time in [
            0.0,
            -1000.0,
            1_643_716_800_000.0,
            8.64e15,
            -62_167_219_201_000.0,
            -8.64e15,
            -61_000_000_000_000.0,
        ] {
            assert_eq!(parse(to_string(time).as_bytes()), time, "{}", to_string(time));
            assert_eq!(parse(to_utc_string(time).as_bytes()), time, "{}", to_utc_string(time));
        }
    }

    #[test]
    fn common_loose_formats() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT+0200", "1969-12-31T22:00:00.000Z"),
            ("Feb 1, 2022", "2022-02-01T00:00:00.000Z"),
            ("1 February 2022 10:30", "2022-02-01T10:30:00.000Z"),
            ("2/1/2022", "2022-02-01T00:00:00.000Z"),
            ("2022/02/01 12:30:00", "2022-02-01T12:30:00.000Z"),
            ("2022-02-01 12:30", "2022-02-01T12:30:00.000Z"),
            ("2/1/22 12:05 AM", "2022-02-01T00:05:00.000Z"),
            ("2/1/99 1:05 pm", "1999-02-01T13:05:00.000Z"),
            ("1-Feb-2022", "2022-02-01T00:00:00.000Z"),
            ("Feb 1", "2001-02-01T00:00:00.000Z"),
            ("1 2 3 4", "NaN"),
            ("(((", "NaN"),
            ("Feb 32 2022", "NaN"),
        ] {
            assert_eq!(iso(text), expected, "{text}");
        }
        assert!(parse("1".repeat(300).as_bytes()).is_nan());
    }

    /// Printed by node 20 with `TZ=UTC`.
    #[test]
    fn few_numbers_are_read_as_in_v8() {
        for (text, expected) in [
            ("1065873600", "NaN"),
            ("2000000000", "NaN"),
            ("5", "2001-05-01T00:00:00.000Z"),
            ("12", "2001-12-01T00:00:00.000Z"),
            ("13", "NaN"),
            ("31", "NaN"),
            ("32", "2032-01-01T00:00:00.000Z"),
            ("49", "2049-01-01T00:00:00.000Z"),
            ("50", "1950-01-01T00:00:00.000Z"),
            ("99", "1999-01-01T00:00:00.000Z"),
            ("0", "2000-01-01T00:00:00.000Z"),
            ("00", "2000-01-01T00:00:00.000Z"),
            ("100", "0100-01-01T00:00:00.000Z"),
            ("999", "0999-01-01T00:00:00.000Z"),
            ("9999", "9999-01-01T00:00:00.000Z"),
            ("12345", "+012345-01-01T00:00:00.000Z"),
            ("123456", "+123456-01-01T00:00:00.000Z"),
            ("275760", "+275760-01-01T00:00:00.000Z"),
            ("275761", "NaN"),
            ("1234567", "NaN"),
            ("1e3", "NaN"),
            ("1.5", "2001-01-05T00:00:00.000Z"),
            (" 5 ", "2001-05-01T00:00:00.000Z"),
            ("2 3", "2001-02-03T00:00:00.000Z"),
            ("2 31", "2001-03-03T00:00:00.000Z"),
            ("2 32", "NaN"),
            ("13 1", "NaN"),
            ("32 1", "2032-01-01T00:00:00.000Z"),
            ("50 1", "1950-01-01T00:00:00.000Z"),
            ("1 50", "NaN"),
            ("2/30", "2001-03-02T00:00:00.000Z"),
            ("2/30/2024", "2024-03-01T00:00:00.000Z"),
            ("Feb 30 2024", "2024-03-01T00:00:00.000Z"),
            ("Feb", "NaN"),
            ("2024/02/30", "2024-03-01T00:00:00.000Z"),
            ("2024/02/32", "NaN"),
            ("2024-2-30", "2024-03-01T00:00:00.000Z"),
            ("20240230", "NaN"),
            ("3.4.2020", "2020-03-04T00:00:00.000Z"),
            ("Feb 5 2000000000", "NaN"),
            ("Jan 1 275760", "+275760-01-01T00:00:00.000Z"),
            ("Feb 2024", "2024-02-01T00:00:00.000Z"),
            ("2024 Feb", "2024-02-01T00:00:00.000Z"),
            ("Feb 45", "2045-02-01T00:00:00.000Z"),
            ("45 Feb", "2045-02-01T00:00:00.000Z"),
            ("10:00", "NaN"),
            ("5 10:00", "2001-05-01T10:00:00.000Z"),
            ("0/0/0", "NaN"),
            ("2024-1", "2024-01-01T00:00:00.000Z"),
            ("24-1-1", "NaN"),
            ("hello 5", "2001-05-01T00:00:00.000Z"),
            ("5 hello", "NaN"),
            ("x", "NaN"),
            ("Feb 1 2022 5", "2022-02-01T00:00:00.000Z"),
            ("5 GMT", "2001-05-01T00:00:00.000Z"),
            ("5 pm", "NaN"),
            ("1-2", "2001-01-02T00:00:00.000Z"),
            ("2024-1-2-3", "NaN"),
            ("5/", "2001-05-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(text), expected, "{text}");
        }
    }
}
