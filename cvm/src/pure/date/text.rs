//! Dates as text: `toISOString` (ECMA-262 21.4.4.36), `toString` and its halves (21.4.4.41), `toUTCString` (21.4.4.43).

use super::time::{Fields, fields};

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The text of all formats for NaN.
const INVALID: &str = "Invalid Date";

/// The month, 0 to 11, whose English abbreviation these lower-case letters are.
pub(super) fn month_by_prefix(letters: &[u8]) -> Option<usize> {
    MONTHS.iter().position(|month| month.as_bytes().eq_ignore_ascii_case(letters))
}

/// `YYYY-MM-DDTHH:mm:ss.sssZ`, with six digits and a sign for years outside 0 to 9999. `None` (a `RangeError`) for NaN.
pub(crate) fn to_iso_string(time: f64) -> Option<String> {
    let Fields { year, month, date, hour, minute, second, millisecond, .. } = fields(time)?;
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    let month = month + 1;
    Some(format!("{year}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"))
}

/// `Tue Feb 01 2022 12:00:00 GMT+0000 (UTC)`, ECMA-262 21.4.4.41.4 `ToDateString`.
pub(crate) fn to_string(time: f64) -> String {
    match fields(time) {
        Some(parts) => format!("{} {}", date_part(&parts), time_part(&parts)),
        None => INVALID.to_owned(),
    }
}

/// `Tue Feb 01 2022`, ECMA-262 21.4.4.35.
pub(crate) fn to_date_string(time: f64) -> String {
    fields(time).map_or_else(|| INVALID.to_owned(), |parts| date_part(&parts))
}

/// `12:00:00 GMT+0000 (UTC)`, ECMA-262 21.4.4.42.
pub(crate) fn to_time_string(time: f64) -> String {
    fields(time).map_or_else(|| INVALID.to_owned(), |parts| time_part(&parts))
}

/// `Tue, 01 Feb 2022 12:00:00 GMT`, ECMA-262 21.4.4.43.
pub(crate) fn to_utc_string(time: f64) -> String {
    let Some(parts) = fields(time) else { return INVALID.to_owned() };
    let Fields { month, date, hour, minute, second, week_day, .. } = parts;
    let (day, month) = (DAYS[week_day as usize], MONTHS[month as usize]);
    format!("{day}, {date:02} {month} {} {hour:02}:{minute:02}:{second:02} GMT", year_text(parts.year))
}

fn date_part(parts: &Fields) -> String {
    let (day, month) = (DAYS[parts.week_day as usize], MONTHS[parts.month as usize]);
    format!("{day} {month} {:02} {}", parts.date, year_text(parts.year))
}

fn time_part(parts: &Fields) -> String {
    format!("{:02}:{:02}:{:02} GMT+0000 (UTC)", parts.hour, parts.minute, parts.second)
}

/// At least four digits, a minus sign before them, ECMA-262 21.4.4.41.2.
fn year_text(year: i64) -> String {
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}", year.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let time = 1_643_716_800_123.0;
        assert_eq!(to_iso_string(time).as_deref(), Some("2022-02-01T12:00:00.123Z"));
        assert_eq!(to_string(time), "Tue Feb 01 2022 12:00:00 GMT+0000 (UTC)");
        assert_eq!(to_utc_string(time), "Tue, 01 Feb 2022 12:00:00 GMT");
        assert_eq!(to_date_string(time), "Tue Feb 01 2022");
        assert_eq!(to_time_string(time), "12:00:00 GMT+0000 (UTC)");
        assert_eq!(to_string(f64::NAN), "Invalid Date");
        assert_eq!(to_iso_string(f64::NAN), None);
    }

    #[test]
    fn extended_years_have_a_sign() {
        assert_eq!(to_iso_string(8.64e15).as_deref(), Some("+275760-09-13T00:00:00.000Z"));
        assert_eq!(to_iso_string(-8.64e15).as_deref(), Some("-271821-04-20T00:00:00.000Z"));
        assert_eq!(to_iso_string(-62_167_219_200_001.0).as_deref(), Some("-000001-12-31T23:59:59.999Z"));
        assert_eq!(to_string(-62_167_219_200_001.0), "Fri Dec 31 -0001 23:59:59 GMT+0000 (UTC)");
        assert_eq!(to_string(-61_000_000_000_000.0), "Fri Dec 26 0036 11:33:20 GMT+0000 (UTC)");
    }
}
