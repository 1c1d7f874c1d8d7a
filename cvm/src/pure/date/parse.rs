//! `Date.parse`, ECMA-262 21.4.3.2, as V8's `dateparser` reads texts: first the ISO format of 21.4.1.32, then, from where a text leaves
//! that format, the formats that browsers have always accepted. Any other text is NaN.
//!
//! A date-time without an offset is local time, which is UTC here.

use super::super::units::{Units, is_white_space};
use super::text::month_by_prefix;
use super::time::{make_date, make_day, make_time, time_clip};

/// Longer text is not a date (units).
const MAX_LENGTH: usize = 256;
/// Digits of a number behind its leading zeros that count; the others are dropped.
const SIGNIFICANT_DIGITS: usize = 9;

/// The time value of the text, or NaN.
pub(crate) fn parse<U: Units + ?Sized>(text: &U) -> f64 {
    if text.count() > MAX_LENGTH {
        return f64::NAN;
    }
    let units: Vec<u16> = (0..text.count()).map(|index| text.unit(index)).collect();
    let mut parser = Parser { tokens: Tokens { rest: &units }, parts: Parts::default() };
    parser.all().and_then(|()| parser.parts.time_value()).map_or(f64::NAN, time_clip)
}

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Token {
    /// A number: its value and the count of its digits.
    Number(i64, usize),
    /// `:`, `-`, `+`, `.`, `)`
    Symbol(u8),
    Word(Word),
    Space,
    /// Text in parentheses, or a character without meaning.
    Other,
    End,
}

/// The meaning of a word.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Word {
    /// 1 to 12.
    Month(i64),
    /// The hours that it adds.
    HalfOfDay(i64),
    /// The offset in hours.
    Zone(i64),
    /// `Z`, a zone too.
    Zulu,
    /// `T`
    BeforeTime,
    Unknown,
}

impl Token {
    fn sign(self) -> Option<i64> {
        match self {
            Self::Symbol(b'+') => Some(1),
            Self::Symbol(b'-') => Some(-1),
            _ => None,
        }
    }

    /// The value of a number with so many digits, if it is in the range.
    fn fixed(self, digits: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        match self {
            Self::Number(value, length) if length == digits && range.contains(&value) => Some(value),
            _ => None,
        }
    }
}

/// The tokens of a text. A unit of 0 ends it, as in V8.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    rest: &'a [u16],
}

impl Tokens<'_> {
    fn peek(self) -> Token {
        self.split().0
    }

    fn next(&mut self) -> Token {
        let (token, count) = self.split();
        self.rest = &self.rest[count..];
        token
    }

    fn skip(&mut self, symbol: u8) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    /// The next token and its units.
    fn split(self) -> (Token, usize) {
        let Some(&first) = self.rest.first().filter(|unit| **unit != 0) else { return (Token::End, 0) };
        let ascii = u8::try_from(first).unwrap_or(b'A');
        match ascii {
            b'0'..=b'9' => self.number(),
            b':' | b'-' | b'+' | b'.' | b')' => (Token::Symbol(ascii), 1),
            _ if is_white_space(first) => (Token::Space, 1),
            b'A'.. => self.word(),
            b'(' => (Token::Other, self.parentheses()),
            _ => (Token::Other, 1),
        }
    }

    fn number(self) -> (Token, usize) {
        let is_digit = |unit: &&u16| (0x30..=0x39).contains(*unit);
        let length = self.rest.iter().take_while(is_digit).count();
        let significant = self.rest[..length].iter().skip_while(|unit| **unit == 0x30);
        let value =
            significant.take(SIGNIFICANT_DIGITS).fold(0, |value, unit| value * 10 + i64::from(unit - 0x30));
        (Token::Number(value, length), length)
    }

    fn word(self) -> (Token, usize) {
        let is_part = |unit: &&u16| **unit >= u16::from(b'A') && !is_white_space(**unit);
        let length = self.rest.iter().take_while(is_part).count();
        let lower: Vec<u8> = self.rest[..length.min(3)]
            .iter()
            .map(|unit| u8::try_from(*unit).map_or(0xFF, |byte| byte.to_ascii_lowercase()))
            .collect();
        // Only the name of a month may be longer than what is compared.
        let word = match (&lower[..], length) {
            (_, 4..) => Word::Unknown,
            (b"am", _) => Word::HalfOfDay(0),
            (b"pm", _) => Word::HalfOfDay(12),
            (b"z", _) => Word::Zulu,
            (b"t", _) => Word::BeforeTime,
            (b"ut" | b"utc" | b"gmt", _) => Word::Zone(0),
            (b"edt", _) => Word::Zone(-4),
            (b"est" | b"cdt", _) => Word::Zone(-5),
            (b"cst" | b"mdt", _) => Word::Zone(-6),
            (b"mst" | b"pdt", _) => Word::Zone(-7),
            (b"pst", _) => Word::Zone(-8),
            _ => Word::Unknown,
        };
        let word = month_by_prefix(&lower).map_or(word, |month| Word::Month(month as i64 + 1));
        (Token::Word(word), length)
    }

    /// The units of a text in parentheses, which may be nested; without the last one it goes to the end.
    fn parentheses(self) -> usize {
        let mut open = 0;
        for (index, &unit) in self.rest.iter().enumerate() {
            match u8::try_from(unit) {
                Ok(b'(') => open += 1,
                Ok(b')') => open -= 1,
                Ok(0) => return index,
                _ => {}
            }
            if open == 0 {
                return index + 1;
            }
        }
        self.rest.len()
    }
}

/// The parts of a date that were read.
#[derive(Default)]
struct Parts {
    /// Year, month and day, in the order of the text.
    numbers: Vec<i64>,
    month: Option<i64>,
    is_iso: bool,
    /// The year has its four digits, as `toString` and `toUTCString` print it: `0036` is not 2036, as V8 reads it, since ECMA-262
    /// 21.4.3.2 demands the printed time.
    has_printed_year: bool,
    /// Hours, minutes, seconds, milliseconds.
    time: Vec<i64>,
    half_of_day: Option<i64>,
    zone_sign: Option<i64>,
    zone_hour: Option<i64>,
    zone_minute: Option<i64>,
}

const DAYS: std::ops::RangeInclusive<i64> = 1..=31;
const MONTHS: std::ops::RangeInclusive<i64> = 1..=12;
const MINUTES: std::ops::RangeInclusive<i64> = 0..=59;

impl Parts {
    fn add_number(&mut self, number: i64) -> Option<()> {
        (self.numbers.len() < 3).then(|| self.numbers.push(number))
    }

    fn add_time(&mut self, number: i64) -> Option<()> {
        (self.time.len() < 4).then(|| self.time.push(number))
    }

    /// The last part of the time: those behind it are 0.
    fn end_time(&mut self, number: i64) {
        self.time.push(number);
        self.time.resize(4, 0);
    }

    /// Whether the number may be the next part of a time that has begun.
    fn expects_time(&self, number: i64) -> bool {
        match self.time.len() {
            1 | 2 => MINUTES.contains(&number),
            3 => (0..=999).contains(&number),
            _ => false,
        }
    }

    fn expects_zone_minute(&self, number: i64) -> bool {
        self.zone_hour.is_some() && self.zone_minute.is_none() && MINUTES.contains(&number)
    }

    /// Day and month are known, by its name.
    fn expects_year(&self) -> bool {
        self.month.is_some() && self.numbers.len() == 1
    }

    fn is_utc(&self) -> bool {
        (self.zone_hour, self.zone_minute) == (Some(0), Some(0))
    }

    fn set_zone(&mut self, hours: i64) {
        self.zone_sign = Some(if hours < 0 { -1 } else { 1 });
        (self.zone_hour, self.zone_minute) = (Some(hours.abs()), Some(0));
    }

    fn time_value(&self) -> Option<f64> {
        let day = self.day()?;
        let time = self.time_of_day()?;
        Some(make_date(day, time) - self.offset_seconds()? * 1000.0)
    }

    /// Hours beyond 32 bits of seconds wrap around in V8, and so here.
    fn offset_seconds(&self) -> Option<f64> {
        let Some(sign) = self.zone_sign else { return Some(0.0) };
        let part = |part: Option<i64>| part.unwrap_or(0) as u32;
        let seconds = part(self.zone_hour).wrapping_mul(3600).wrapping_add(part(self.zone_minute) * 60);
        i32::try_from(seconds).ok().map(|seconds| sign as f64 * f64::from(seconds))
    }

    /// A first number that cannot be a day is the year. Otherwise the order is month, day, year, or day, year beside a month's name.
    /// Missing parts are 1, which is the year 2001.
    fn day(&self) -> Option<f64> {
        let mut numbers = self.numbers.clone();
        if numbers.is_empty() {
            return None;
        }
        numbers.resize(3, 1);
        let is_year = self.is_iso || !DAYS.contains(&numbers[0]);
        let (year, month, day) = match (self.month, is_year) {
            (None, true) => (numbers[0], numbers[1], numbers[2]),
            (None, false) => (numbers[2], numbers[0], numbers[1]),
            (Some(month), true) => (numbers[0], month, numbers[1]),
            (Some(month), false) => (numbers[1], month, numbers[0]),
        };
        let is_whole = self.is_iso || self.has_printed_year;
        let year = match year {
            0..=49 if !is_whole => year + 2000,
            50..=99 if !is_whole => year + 1900,
            _ => year,
        };
        // As in V8, a day that the month does not have is one of the next month.
        let fits = MONTHS.contains(&month) && DAYS.contains(&day);
        fits.then(|| make_day(year as f64, (month - 1) as f64, day as f64))
    }

    fn time_of_day(&self) -> Option<f64> {
        let part = |index: usize| self.time.get(index).copied().unwrap_or(0);
        let (mut hour, minute, second, millisecond) = (part(0), part(1), part(2), part(3));
        if let Some(hours) = self.half_of_day {
            if !(0..=12).contains(&hour) {
                return None;
            }
            hour = hour % 12 + hours;
        }
        let is_midnight = (hour, minute, second, millisecond) == (24, 0, 0, 0);
        let fits = (0..=23).contains(&hour)
            && MINUTES.contains(&minute)
            && MINUTES.contains(&second)
            && (0..=999).contains(&millisecond);
        (fits || is_midnight)
            .then(|| make_time(hour as f64, minute as f64, second as f64, millisecond as f64))
    }
}

/// How a text leaves the ISO format.
enum Iso {
    /// All of it was read.
    Whole,
    /// It is no date.
    Invalid,
    /// The rest begins with this token.
    Left(Token),
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    parts: Parts,
}

impl Parser<'_> {
    /// `None` if the text is no date.
    fn all(&mut self) -> Option<()> {
        let mut token = match self.iso() {
            Iso::Whole => return Some(()),
            Iso::Invalid => return None,
            Iso::Left(token) => token,
        };
        let mut has_number = !self.parts.numbers.is_empty();
        while token != Token::End {
            match token {
                Token::Number(number, digits) => {
                    has_number = true;
                    self.parts.has_printed_year |= digits == 4 && self.parts.expects_year();
                    self.number(number)?;
                }
                Token::Word(word) => self.word(word, has_number)?,
                Token::Symbol(b'+' | b'-') if self.parts.is_utc() || !self.parts.time.is_empty() => {
                    has_number = true;
                    self.zone(token)?;
                }
                Token::Symbol(b'-') if self.parts.expects_year() => self.negative_year()?,
                Token::Symbol(b'+' | b'-' | b')') if has_number => return None,
                _ => {}
            }
            token = self.tokens.next();
        }
        Some(())
    }

    fn number(&mut self, number: i64) -> Option<()> {
        if self.tokens.skip(b':') {
            if self.tokens.skip(b':') {
                if !self.parts.time.is_empty() {
                    return None;
                }
                self.parts.add_time(number)?;
                return self.parts.add_time(0);
            }
            self.parts.add_time(number)?;
            self.tokens.skip(b'.');
        } else if self.tokens.skip(b'.') && self.parts.expects_time(number) {
            self.parts.add_time(number)?;
            let Token::Number(fraction, digits) = self.tokens.next() else { return None };
            self.parts.end_time(milliseconds(fraction, digits));
        } else if self.parts.expects_zone_minute(number) {
            self.parts.zone_minute = Some(number);
        } else if self.parts.expects_time(number) {
            self.parts.end_time(number);
            let next = self.tokens.peek();
            let ends = matches!(next, Token::End | Token::Space | Token::Word(Word::Zulu));
            return (ends || next.sign().is_some()).then_some(());
        } else {
            self.parts.add_number(number)?;
            self.tokens.skip(b'-');
        }
        Some(())
    }

    fn word(&mut self, word: Word, has_number: bool) -> Option<()> {
        match word {
            Word::HalfOfDay(hours) if !self.parts.time.is_empty() => self.parts.half_of_day = Some(hours),
            Word::Month(month) => {
                self.parts.month = Some(month);
                self.tokens.skip(b'-');
            }
            Word::Zone(hours) if has_number => self.parts.set_zone(hours),
            Word::Zulu if has_number => self.parts.set_zone(0),
            // Any other word may stand before the first number, but not directly.
            _ => return (!has_number && !matches!(self.tokens.peek(), Token::Number(..))).then_some(()),
        }
        Some(())
    }

    /// A year before the year 0 as `toString` and `toUTCString` print it, with the time behind it: ECMA-262 21.4.3.2 demands that time,
    /// V8 does not read what it prints. Without a time it is none, as in V8.
    fn negative_year(&mut self) -> Option<()> {
        let Token::Number(year, 4..) = self.tokens.next() else { return None };
        let mut behind = self.tokens;
        let has_time =
            behind.next() == Token::Space && matches!(behind.next(), Token::Number(..)) && behind.skip(b':');
        has_time.then(|| self.parts.add_number(-year)).flatten()
    }

    /// `+1`, `-08`, `+0530`, `+5:30` behind a time or UTC.
    fn zone(&mut self, sign: Token) -> Option<()> {
        self.parts.zone_sign = sign.sign();
        let (mut number, mut digits) = (0, 0);
        if let Token::Number(value, length) = self.tokens.peek() {
            (number, digits) = (value, length);
            self.tokens.next();
        }
        let (hour, minute) = match digits {
            _ if self.tokens.peek() == Token::Symbol(b':') => (number, None),
            1 | 2 => (number, Some(0)),
            3 | 4 => (number / 100, Some(number % 100)),
            _ => return None,
        };
        (self.parts.zone_hour, self.parts.zone_minute) = (Some(hour), minute);
        Some(())
    }

    /// Reads the format of ECMA-262 21.4.1.32, with expanded years, as far as the text has it.
    fn iso(&mut self) -> Iso {
        let tokens = &mut self.tokens;
        if let Some(sign) = tokens.peek().sign() {
            let left = Iso::Left(tokens.next());
            let Some(year) = tokens.peek().fixed(6, 0..=999_999) else { return left };
            tokens.next();
            // -000000 is not a year.
            if sign < 0 && year == 0 {
                return left;
            }
            self.parts.numbers.push(sign * year);
        } else if let Some(year) = tokens.peek().fixed(4, 0..=9999) {
            tokens.next();
            self.parts.numbers.push(year);
        } else {
            return Iso::Left(tokens.next());
        }
        for range in [MONTHS, DAYS] {
            if !tokens.skip(b'-') {
                break;
            }
            let Some(number) = tokens.peek().fixed(2, range) else { return Iso::Left(tokens.next()) };
            tokens.next();
            self.parts.numbers.push(number);
        }
        match tokens.peek() {
            Token::Word(Word::BeforeTime) => {
                tokens.next();
                if self.iso_time().is_none() || self.tokens.peek() != Token::End {
                    return Iso::Invalid;
                }
            }
            Token::End => {}
            _ => return Iso::Left(tokens.next()),
        }
        self.parts.is_iso = true;
        Iso::Whole
    }

    fn iso_time(&mut self) -> Option<()> {
        let (tokens, parts) = (&mut self.tokens, &mut self.parts);
        let hour = tokens.next().fixed(2, 0..=24)?;
        parts.time.push(hour);
        let rest = if hour == 24 { 0..=0 } else { MINUTES };
        if !tokens.skip(b':') {
            return None;
        }
        parts.time.push(tokens.next().fixed(2, rest.clone())?);
        if tokens.skip(b':') {
            parts.time.push(tokens.next().fixed(2, rest)?);
            if tokens.skip(b'.') {
                let Token::Number(fraction, digits) = tokens.next() else { return None };
                if hour == 24 && fraction > 0 {
                    return None;
                }
                parts.time.push(milliseconds(fraction, digits));
            }
        }
        match tokens.peek() {
            Token::Word(Word::Zulu) => {
                tokens.next();
                parts.set_zone(0);
            }
            sign if sign.sign().is_some() => {
                tokens.next();
                parts.zone_sign = sign.sign();
                let (hour, minute) = match tokens.next() {
                    Token::Number(both, 4) => (both / 100, both % 100),
                    hour => {
                        let hour = hour.fixed(2, 0..=23)?;
                        if !tokens.skip(b':') {
                            return None;
                        }
                        (hour, tokens.next().fixed(2, MINUTES)?)
                    }
                };
                if hour > 23 || minute > 59 {
                    return None;
                }
                (parts.zone_hour, parts.zone_minute) = (Some(hour), Some(minute));
            }
            _ => {}
        }
        Some(())
    }
}

/// Milliseconds from the digits behind the point; those past the third are dropped.
fn milliseconds(number: i64, digits: usize) -> i64 {
    match digits.min(SIGNIFICANT_DIGITS) as u32 {
        digits @ 0..3 => number * 10_i64.pow(3 - digits),
        digits => number / 10_i64.pow(digits - 3),
    }
}

#[cfg(test)]
mod tests;
