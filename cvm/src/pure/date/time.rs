//! Time values and calendar arithmetic, ECMA-262 21.4.1.1 to 21.4.1.31. Times are milliseconds since 1970-01-01T00:00Z.

use super::super::number::to_integer_or_infinity;

/// Milliseconds in a day.
pub(crate) const DAY_MS: f64 = 86_400_000.0;
/// The largest time value in either direction, ECMA-262 21.4.1.1.
pub(crate) const MAX_TIME_MS: f64 = 8.64e15;

/// The parts of a time value. Local time is UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fields {
    /// Proleptic Gregorian year, −271821 to 275760.
    pub year: i64,
    /// 0 to 11.
    pub month: i64,
    /// Day of the month, 1 to 31.
    pub date: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
    /// 0 to 999.
    pub millisecond: i64,
    /// 0 is Sunday.
    pub week_day: i64,
}

/// `Day(t)`, ECMA-262 21.4.1.3.
pub(crate) fn day(time: f64) -> f64 {
    (time / DAY_MS).floor()
}

/// `TimeWithinDay(t)`, ECMA-262 21.4.1.4.
pub(crate) fn time_within_day(time: f64) -> f64 {
    time.rem_euclid(DAY_MS)
}

/// `WeekDay(t)`, ECMA-262 21.4.1.13: 0 is Sunday.
pub(crate) fn week_day(time: f64) -> f64 {
    (day(time) + 4.0).rem_euclid(7.0)
}

/// All parts of a finite time value within ±[`MAX_TIME_MS`]; `None` for NaN and values outside.
pub(crate) fn fields(time: f64) -> Option<Fields> {
    if time.is_nan() || time.abs() > MAX_TIME_MS {
        return None;
    }
    let days = day(time) as i64;
    let within = time_within_day(time) as i64;
    let (year, month, date) = civil_from_days(days);
    Some(Fields {
        year,
        month,
        date,
        hour: within / 3_600_000,
        minute: within / 60_000 % 60,
        second: within / 1000 % 60,
        millisecond: within % 1000,
        week_day: (days + 4).rem_euclid(7),
    })
}

/// Year, month (0 to 11) and day of the month of a day number, ECMA-262 21.4.1.8 to 21.4.1.12.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that the leap day ends the year; 146 097 days make 400 years.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 2 } else { march_month - 10 };
    (year_of_era + era * 400 + i64::from(month < 2), month, date)
}

/// Day number of the first of `month` (0 to 11) of `year`.
fn days_from_civil(year: i64, month: i64) -> i64 {
    let year = year - i64::from(month < 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = if month < 2 { month + 10 } else { month - 2 };
    let day_of_year = (153 * march_month + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// `MakeTime`, ECMA-262 21.4.1.27.
pub(crate) fn make_time(hour: f64, minute: f64, second: f64, millisecond: f64) -> f64 {
    if ![hour, minute, second, millisecond].iter().all(|part| part.is_finite()) {
        return f64::NAN;
    }
    let [hour, minute, second, millisecond] = [hour, minute, second, millisecond].map(to_integer_or_infinity);
    ((hour * 3_600_000.0 + minute * 60_000.0) + second * 1000.0) + millisecond
}

/// `MakeDay`, ECMA-262 21.4.1.28. `month` may be outside 0 to 11, `date` outside the month. NaN if there is no such day,
/// which includes every year beyond the range of time values.
pub(crate) fn make_day(year: f64, month: f64, date: f64) -> f64 {
    if ![year, month, date].iter().all(|part| part.is_finite()) {
        return f64::NAN;
    }
    let [year, month, date] = [year, month, date].map(to_integer_or_infinity);
    let whole_year = year + (month / 12.0).floor();
    if whole_year.abs() > 400_000.0 {
        return f64::NAN;
    }
    days_from_civil(whole_year as i64, month.rem_euclid(12.0) as i64) as f64 + date - 1.0
}

/// `MakeDate`, ECMA-262 21.4.1.29.
pub(crate) fn make_date(day: f64, time: f64) -> f64 {
    let value = day * DAY_MS + time;
    if day.is_finite() && time.is_finite() && value.is_finite() { value } else { f64::NAN }
}

/// `MakeFullYear`, ECMA-262 21.4.1.30: 0 to 99 mean 1900 to 1999.
pub(crate) fn full_year(year: f64) -> f64 {
    if year.is_nan() {
        return f64::NAN;
    }
    let year = to_integer_or_infinity(year);
    if (0.0..=99.0).contains(&year) { year + 1900.0 } else { year }
}

/// `TimeClip`, ECMA-262 21.4.1.31.
pub(crate) fn time_clip(time: f64) -> f64 {
    if !time.is_finite() || time.abs() > MAX_TIME_MS { f64::NAN } else { to_integer_or_infinity(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_range_round_trips() {
        let mut expected = civil_from_days(-100_000_000);
        for days in (-100_000_000..=100_000_000_i64).step_by(997) {
            let (year, month, date) = civil_from_days(days);
            assert_eq!(make_day(year as f64, month as f64, date as f64), days as f64);
            expected = expected.max((year, month, date));
            assert_eq!(expected, (year, month, date), "dates grow with days");
        }
        assert_eq!(civil_from_days(0), (1970, 0, 1));
        assert_eq!(civil_from_days(11_016), (2000, 1, 29));
        assert_eq!(civil_from_days(-1), (1969, 11, 31));
        assert_eq!(civil_from_days(100_000_000), (275_760, 8, 13));
        assert_eq!(civil_from_days(-100_000_000), (-271_821, 3, 20));
    }

    #[test]
    fn parts_of_negative_times() {
        let parts = fields(-1.0);
        let expected = Fields {
            year: 1969,
            month: 11,
            date: 31,
            hour: 23,
            minute: 59,
            second: 59,
            millisecond: 999,
            week_day: 3,
        };
        assert_eq!(parts, Some(expected));
        assert_eq!(fields(f64::NAN), None);
        assert_eq!(fields(8.64e15 + 1.0), None);
        assert_eq!(week_day(0.0), 4.0);
    }

    #[test]
    fn overflowing_parts_carry() {
        assert_eq!(make_day(2020.0, 12.0, 1.0), make_day(2021.0, 0.0, 1.0));
        assert_eq!(make_day(2020.0, -1.0, 1.0), make_day(2019.0, 11.0, 1.0));
        assert_eq!(make_day(2021.0, 0.0, 0.0), make_day(2020.0, 11.0, 31.0));
        assert_eq!(make_time(1.9, -1.0, 0.0, 0.5), 3_540_000.0);
        assert!(make_day(1e300, 0.0, 1.0).is_nan() && make_day(f64::NAN, 0.0, 1.0).is_nan());
        assert!(make_day(0.0, f64::INFINITY, 1.0).is_nan());
        assert!(make_date(1e301, 1e301).is_nan());
        assert!(time_clip(8.64e15 + 1.0).is_nan());
        assert!(time_clip(-0.0).is_sign_positive());
        assert_eq!((full_year(99.0), full_year(100.0), full_year(-0.5)), (1999.0, 100.0, 1900.0));
    }
}
