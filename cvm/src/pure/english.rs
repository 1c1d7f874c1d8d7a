//! Numbers and dates as the locale `en-US` writes them, and the comparison of texts by the rules of a language.

use super::date;
use super::number;
use icu_locale::Locale;
use icu_locale::extensions::unicode::{Value, key};
use std::cmp::Ordering;
use std::sync::OnceLock;
use vm_system_intl::TextCollator;

/// Digits with a comma before each group of three.
pub(crate) fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with groups and at most three digits of a fraction: the shortest decimal text, rounded half away from zero.
pub(crate) fn decimal(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}∞");
    }
    let shortest = number::to_string(value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The digits, and how many of them are before the point.
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    let mut point = whole.len() as i64 + exponent.parse::<i64>().unwrap_or(0);
    while point < 1 {
        digits.insert(0, 0);
        point += 1;
        if digits.len() > 400 {
            break;
        }
    }
    let point = point.max(1) as usize;
    digits.resize(digits.len().max(point + 4), 0);
    let up = digits[point + 3] >= 5;
    digits.truncate(point + 3);
    let mut carry = up;
    for digit in digits.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == 9;
        *digit = if carry { 0 } else { *digit + 1 };
    }
    let mut text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let fraction = text.split_off(point);
    if carry {
        text.insert(0, '1');
    }
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}", grouped(&text))
}

/// `9/13/2001`, `None` for an invalid date.
pub(crate) fn date(time: f64) -> Option<String> {
    let fields = date::fields(time)?;
    // Years before the first one are counted backwards, and the era is not written.
    let year = if fields.year < 1 { 1 - fields.year } else { fields.year };
    Some(format!("{}/{}/{year}", fields.month + 1, fields.date))
}

/// `2:13:20 PM`.
pub(crate) fn time_of_day(time: f64) -> Option<String> {
    let fields = date::fields(time)?;
    let (hour, half) = (fields.hour % 12, if fields.hour < 12 { "AM" } else { "PM" });
    let hour = if hour == 0 { 12 } else { hour };
    Some(format!("{hour}:{:02}:{:02} {half}", fields.minute, fields.second))
}

/// The differences that a comparison of texts takes into account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextOrder {
    /// Digits are compared as numbers
    pub numeric: bool,
    /// Differences that count: 0 of letters, 1 and of accents, 2 and of case without accents, 3 all
    pub sensitivity: u8,
    /// White space and punctuation do not count
    pub shifted: bool,
}

fn collator(locale: &Locale, order: TextOrder) -> Option<TextCollator> {
    let sensitivity = match order.sensitivity {
        0 => "base",
        1 => "accent",
        2 => "case",
        _ => "variant",
    };
    let mut locale = locale.clone();
    if order.numeric {
        locale.extensions.unicode.keywords.set(key!("kn"), Value::default());
    }
    TextCollator::new(&locale.to_string(), sensitivity, order.shifted).ok()
}

/// The order of two texts by the rules of English.
pub(crate) fn compare(one: &[u16], other: &[u16]) -> Ordering {
    static ENGLISH: OnceLock<Option<TextCollator>> = OnceLock::new();
    let all = TextOrder { sensitivity: 3, ..TextOrder::default() };
    let english = ENGLISH.get_or_init(|| collator(&icu_locale::locale!("en-US"), all));
    english.as_ref().map_or_else(|| one.cmp(other), |english| english.compare(one, other))
}

/// The order of two texts by the rules of a language; `None` if there are no data for it.
pub(crate) fn compare_by(locale: &Locale, order: TextOrder, one: &[u16], other: &[u16]) -> Option<Ordering> {
    Some(collator(locale, order)?.compare(one, other))
}

#[cfg(test)]
mod tests {
    use super::{date, decimal, grouped, time_of_day};

    #[test]
    fn numbers_and_dates_are_written_as_node_writes_them() {
        for (value, text) in [
            (1e21, "1,000,000,000,000,000,000,000"),
            (123_456_789.123_45, "123,456,789.123"),
            (-0.0, "-0"),
            (0.0005, "0.001"),
            (0.000_49, "0"),
            (-1234.5555, "-1,234.556"),
            (2.0005, "2.001"),
            (1_000_000_000_000_000.3, "1,000,000,000,000,000.2"),
            (5e-324, "0"),
            (999.9995, "1,000"),
            (999_999.999_9, "1,000,000"),
            (0.5, "0.5"),
            (100.0, "100"),
            (f64::NEG_INFINITY, "-∞"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(decimal(value), text, "{value:e}");
        }
        assert_eq!(grouped("-123456"), "-123,456");
        let both = |time| (date(time).unwrap_or_default(), time_of_day(time).unwrap_or_default());
        assert_eq!(both(0.0), ("1/1/1970".to_owned(), "12:00:00 AM".to_owned()));
        assert_eq!(both(-1e14), ("2/15/1200".to_owned(), "2:13:20 PM".to_owned()));
        assert_eq!(both(43_200_000.0).1, "12:00:00 PM");
        assert_eq!(date(f64::NAN), None);
    }
}
