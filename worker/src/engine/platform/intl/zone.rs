//! Owns time zones: their offsets, from the database in the binary, and the name of the local one.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use std::sync::OnceLock;

/// The machine's time zone, found by the zygote: sessions cannot open files.
static LOCAL: OnceLock<Local> = OnceLock::new();

enum Local {
    Named(String),
    /// The rules of a file whose name is not known.
    Rules(Vec<u8>),
}

/// Reads the local time zone as the C library does, whose zone `Date` has: `TZ`, then `/etc/localtime`.
pub(in crate::engine) fn learn_local() {
    LOCAL.get_or_init(|| {
        let known = |name: &str| named(name.trim()).map(|zone| Local::Named(zone.name));
        let variable = std::env::var("TZ").ok().and_then(|name| known(name.trim_start_matches(':')));
        let link = || {
            let path = std::fs::canonicalize("/etc/localtime").ok()?;
            known(path.to_str()?.split_once("zoneinfo/")?.1)
        };
        let rules = || std::fs::read("/etc/localtime").ok().map(Local::Rules);
        variable.or_else(link).or_else(rules).unwrap_or_else(|| Local::Named("UTC".to_owned()))
    });
}

/// A time zone with its name.
pub(super) struct Zone {
    pub(super) name: String,
    rules: TimeZone,
}

/// The zone of this name (in any case), or of an offset such as `+05:30`.
pub(super) fn named(name: &str) -> Option<Zone> {
    if let Some(seconds) = offset(name) {
        let sign = if seconds < 0 { '-' } else { '+' };
        let minutes = seconds.abs() / 60;
        return Some(Zone {
            name: format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
            rules: TimeZone::fixed(Offset::from_seconds(seconds).ok()?),
        });
    }
    if ["utc", "etc/utc", "etc/gmt", "gmt", "etc/zulu", "etc/uct", "zulu", "uct"]
        .contains(&name.to_ascii_lowercase().as_str())
    {
        return Some(Zone { name: "UTC".to_owned(), rules: TimeZone::UTC });
    }
    let rules = TimeZoneDatabase::bundled().get(name).ok()?;
    let name = rules.iana_name()?.to_owned();
    Some(Zone { name, rules })
}

/// The machine's time zone; one whose name is not known has CLDR's name for that.
pub(super) fn local() -> Option<Zone> {
    match LOCAL.get() {
        Some(Local::Named(name)) => named(name),
        Some(Local::Rules(rules)) => {
            let name = "Etc/Unknown";
            Some(Zone { name: name.to_owned(), rules: TimeZone::tzif(name, rules).ok()? })
        }
        None => named("UTC"),
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

impl Zone {
    /// Seconds east of UTC at a time (milliseconds since 1970).
    pub(super) fn offset_at(&self, time_ms: i64) -> i32 {
        let time = Timestamp::from_millisecond(time_ms).unwrap_or(if time_ms < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
        self.rules.to_offset(time).seconds()
    }
}

/// Names of all zones.
pub(super) fn names() -> Vec<String> {
    TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect()
}
