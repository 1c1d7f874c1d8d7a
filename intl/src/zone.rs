//! Owns the offsets of time zones, from the database in the binary.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

/// The rules of a time zone, with its name.
#[derive(Debug, Clone)]
pub struct TimeZoneRules {
    name: String,
    rules: TimeZone,
}

impl TimeZoneRules {
    /// The zone of this name (in any case), or of an offset such as `+05:30`.
    pub fn named(name: &str) -> Option<Self> {
        if let Some(seconds) = offset(name) {
            let sign = if seconds < 0 { '-' } else { '+' };
            let minutes = seconds.abs() / 60;
            return Some(Self {
                name: format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
                rules: TimeZone::fixed(Offset::from_seconds(seconds).ok()?),
            });
        }
        if ["utc", "etc/utc", "etc/gmt", "gmt", "etc/zulu", "etc/uct", "zulu", "uct"]
            .contains(&name.to_ascii_lowercase().as_str())
        {
            return Some(Self { name: "UTC".to_owned(), rules: TimeZone::UTC });
        }
        let rules = TimeZoneDatabase::bundled().get(name).ok()?;
        let name = rules.iana_name()?.to_owned();
        Some(Self { name, rules })
    }

    /// The rules of a file of the time zone database (`TZif`).
    pub fn of_file(name: &str, bytes: &[u8]) -> Option<Self> {
        Some(Self { name: name.to_owned(), rules: TimeZone::tzif(name, bytes).ok()? })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds east of UTC at a time (milliseconds since 1970).
    pub(crate) fn offset_at(&self, time_ms: i64) -> i32 {
        let time = Timestamp::from_millisecond(time_ms).unwrap_or(if time_ms < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
        self.rules.to_offset(time).seconds()
    }
}

fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let digits: String = rest.chars().filter(|digit| *digit != ':').collect();
    let well_formed = matches!((rest.len(), digits.len()), (2, 2) | (4 | 5, 4))
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    let (hours, minutes) = digits.split_at_checked(2)?;
    let (hours, minutes): (i32, i32) =
        (hours.parse().ok()?, if minutes.is_empty() { 0 } else { minutes.parse().ok()? });
    (well_formed && hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Names of the zones of regions (`Europe/Berlin`), sorted.
pub fn zone_names() -> Vec<String> {
    let is_of_region = |name: &str| {
        name.split_once('/').is_some_and(|(area, _)| {
            area.len() > 1
                && area.starts_with(|first: char| first.is_ascii_uppercase())
                && area[1..].bytes().all(|letter| letter.is_ascii_lowercase())
        })
    };
    let database = TimeZoneDatabase::bundled();
    let names = database.available();
    let mut names: Vec<String> =
        names.map(|name| name.as_str().to_owned()).filter(|name| is_of_region(name)).collect();
    names.sort();
    names
}
