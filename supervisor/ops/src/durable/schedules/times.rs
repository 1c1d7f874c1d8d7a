//! The times of a schedule: cron expressions and intervals. Pure functions: reads no clock. The only place that names the libraries for
//! cron expressions and time zones; the zones are those in the binary.

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;
use vm_system_protocol::ids::ScheduleId;
use vm_system_protocol::model::ScheduleRule;
use vm_system_protocol::time::Timestamp;

/// Longest cron expression (bytes).
const CRON_BYTES: usize = 200;
/// Shortest time between two starts (milliseconds).
const EVERY_MIN_MS: u64 = 1_000;
/// Longest time between two starts (milliseconds): a year.
const EVERY_MAX_MS: u64 = 366 * DAY_MS;
/// Largest jitter (milliseconds).
const JITTER_MAX_MS: u64 = DAY_MS;
const DAY_MS: u64 = 86_400_000;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of this name in any case, with its own name.
fn zone(name: &str) -> Option<(String, TimeZone)> {
    if name.eq_ignore_ascii_case("utc") {
        return Some(("UTC".to_owned(), TimeZone::UTC));
    }
    let zone = ZONES.get(name).ok()?;
    Some((zone.iana_name()?.to_owned(), zone))
}

/// The rule with the zone's own name, or what is wrong with it. Takes up to a tenth of a second for an expression without any time.
pub(super) fn checked(mut rule: ScheduleRule, now: Timestamp) -> Result<ScheduleRule, String> {
    let (name, _) = zone(rule.time_zone.trim()).ok_or_else(|| {
        let shown: String = rule.time_zone.chars().take(100).collect();
        format!("there is no time zone {shown:?}: zones have names such as Europe/Berlin")
    })?;
    rule.time_zone = name;
    if rule.jitter_ms > JITTER_MAX_MS {
        return Err("the jitter is longer than a day".to_owned());
    }
    match (&mut rule.cron, rule.every_ms) {
        (Some(_), Some(_)) => return Err("give a cron expression or an interval, not both".to_owned()),
        (None, None) => return Err("give a cron expression or an interval".to_owned()),
        (None, Some(every)) if !(EVERY_MIN_MS..=EVERY_MAX_MS).contains(&every) => {
            return Err("the interval must be at least one second and at most 366 days".to_owned());
        }
        (None, Some(every)) if rule.jitter_ms >= every => {
            return Err("the jitter must be shorter than the interval".to_owned());
        }
        (None, Some(_)) => {}
        (Some(cron), None) => *cron = cron.trim().to_owned(),
    }
    if let Some(cron) = &rule.cron {
        if cron.len() > CRON_BYTES {
            return Err(format!("the cron expression is longer than {CRON_BYTES} bytes"));
        }
        parse(cron)?;
        next_after(&rule, now, now).ok_or_else(|| {
            format!("the cron expression {cron:?} has no time at all, as the 30th of February has none")
        })?;
    }
    Ok(rule)
}

fn parse(text: &str) -> Result<croner::Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(text).map_err(|error| {
        format!(
            "{text:?} is no cron expression with the fields minute, hour, day, month and weekday: {error}"
        )
    })
}

/// The first time of a rule after another time; intervals are counted from the creation of the schedule. None: there is no such time.
pub(super) fn next_after(rule: &ScheduleRule, created_at: Timestamp, after: Timestamp) -> Option<Timestamp> {
    if let Some(every) = rule.every_ms {
        let every = i64::try_from(every.max(1)).ok()?;
        let passed = after.0.saturating_sub(created_at.0).max(0) / every;
        return Some(Timestamp(created_at.0.checked_add((passed + 1).checked_mul(every)?)?));
    }
    let (_, zone) = zone(&rule.time_zone)?;
    let after = jiff::Timestamp::from_millisecond(after.0).ok()?.to_zoned(zone);
    let next = parse(rule.cron.as_deref()?).ok()?.find_next_occurrence(&after, false).ok()?;
    Some(Timestamp(next.timestamp().as_millisecond()))
}

/// A time with its jitter, which is the same for the same time of the same schedule.
pub(super) fn with_jitter(rule: &ScheduleRule, id: ScheduleId, at: Timestamp) -> Timestamp {
    if rule.jitter_ms == 0 {
        return at;
    }
    let hash = Sha256::new().chain_update(id.as_bytes()).chain_update(at.0.to_be_bytes()).finalize();
    let number = hash[..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    Timestamp(at.0.saturating_add((number % (rule.jitter_ms + 1)).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::{checked, next_after, with_jitter};
    use proptest::prelude::*;
    use vm_system_protocol::ids::ScheduleId;
    use vm_system_protocol::model::{Overlap, ScheduleRule};
    use vm_system_protocol::time::Timestamp;

    fn rule(cron: &str, zone: &str) -> ScheduleRule {
        let (cron, time_zone) = (Some(cron.to_owned()), zone.to_owned());
        ScheduleRule { cron, every_ms: None, time_zone, overlap: Overlap::Skip, jitter_ms: 0 }
    }

    fn every(ms: u64) -> ScheduleRule {
        ScheduleRule { cron: None, every_ms: Some(ms), ..rule("", "UTC") }
    }

    fn time(text: &str) -> Timestamp {
        text.parse().expect("RFC 3339")
    }

    /// The next times of an expression.
    fn times(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let rule = checked(rule(cron, zone), time(from)).expect("an expression with times");
        let mut last = time(from);
        let next = || {
            last = next_after(&rule, time(from), last)?;
            Some(last.to_string().replace(":00.000Z", "Z"))
        };
        std::iter::from_fn(next).take(count).collect()
    }

    const BERLIN: &str = "Europe/Berlin";

    #[test]
    fn time_that_the_change_to_summer_time_leaves_out_is_the_first_one_after_it() {
        assert_eq!(
            times("30 2 * * *", BERLIN, "2026-03-27T12:00:00Z", 3),
            ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"]
        );
        assert_eq!(
            times("0 0 * * *", "America/Sao_Paulo", "2017-10-14T12:00:00Z", 2),
            ["2017-10-15T03:00Z", "2017-10-16T02:00Z"],
            "a day without a midnight"
        );
    }

    #[test]
    fn time_of_day_that_comes_twice_counts_once_and_an_interval_counts_each_time() {
        assert_eq!(
            times("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]
        );
        assert_eq!(
            times("30 * * * *", BERLIN, "2026-10-24T23:00:00Z", 4),
            ["2026-10-24T23:30Z", "2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T02:30Z"]
        );
    }

    #[test]
    fn months_without_the_day_are_left_out() {
        assert_eq!(
            times("0 0 31 * *", "utc", "2026-01-31T00:00:00Z", 3),
            ["2026-03-31T00:00Z", "2026-05-31T00:00Z", "2026-07-31T00:00Z"]
        );
        assert_eq!(
            times("0 0 L 2,4 *", "UTC", "2026-01-31T00:00:00Z", 2),
            ["2026-02-28T00:00Z", "2026-04-30T00:00Z"]
        );
    }

    #[test]
    fn day_of_month_and_weekday_are_alternatives_unless_a_plus_joins_them() {
        assert_eq!(
            times("0 0 13 * FRI", "UTC", "2026-02-01T00:00:00Z", 3),
            ["2026-02-06T00:00Z", "2026-02-13T00:00Z", "2026-02-20T00:00Z"]
        );
        assert_eq!(
            times("0 0 13 * +FRI", "UTC", "2026-02-14T00:00:00Z", 2),
            ["2026-03-13T00:00Z", "2026-11-13T00:00Z"]
        );
        assert_eq!(
            times("0 0 * * 7", "UTC", "2026-02-02T00:00:00Z", 1),
            times("0 0 * * SUN", "UTC", "2026-02-02T00:00:00Z", 1)
        );
    }

    #[test]
    fn names_of_months_weekdays_and_whole_expressions_are_read_in_any_case() {
        assert_eq!(
            times("0 9 * jan-mar Mon-FRI", "UTC", "2026-01-31T00:00:00Z", 2),
            ["2026-02-02T09:00Z", "2026-02-03T09:00Z"]
        );
        for (name, expected) in [
            ("@hourly", "2026-01-31T13:00Z"),
            ("@daily", "2026-02-01T00:00Z"),
            ("@weekly", "2026-02-01T00:00Z"),
            ("@monthly", "2026-02-01T00:00Z"),
            ("@yearly", "2027-01-01T00:00Z"),
        ] {
            assert_eq!(times(name, "UTC", "2026-01-31T12:00:00Z", 1), [expected], "{name}");
        }
    }

    #[test]
    fn next_time_may_be_many_years_away() {
        assert_eq!(times("0 0 29 2 +MON", "UTC", "2044-03-01T00:00:00Z", 1), ["2072-02-29T00:00Z"]);
        assert_eq!(times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["2104-02-29T00:00Z"]);
    }

    #[test]
    fn rules_without_a_meaning_are_refused_by_name() {
        let now = time("2026-01-31T00:00:00Z");
        for (cron, why) in [
            ("0 0 30 2 *", "no time at all"),
            ("0 0 31 4,6,9,11 *", "no time at all"),
            ("", "minute, hour, day, month and weekday"),
            ("* * * *", "5 fields"),
            ("* * * * * *", "5 fields"),
            ("60 * * * *", "out of bounds"),
            ("5-1 * * * *", "out of bounds"),
            ("*/0 * * * *", "zero"),
            ("@reboot", "5 fields"),
            ("a b c d e", "illegal"),
            (&"1,".repeat(200), "longer than"),
        ] {
            let error = checked(rule(cron, "UTC"), now).expect_err(cron);
            assert!(error.contains(why), "{cron}: {error}");
        }
        let error = checked(rule("@daily", "Europe/Atlantis"), now).expect_err("no such zone");
        assert!(error.contains("Atlantis"), "{error}");
        assert_eq!(checked(rule(" @daily ", "europe/berlin"), now).expect("a zone").time_zone, BERLIN);
        let both = ScheduleRule { every_ms: Some(1_000), ..rule("@daily", "UTC") };
        let jitter = |rule, jitter_ms| ScheduleRule { jitter_ms, ..rule };
        for wrong in [
            both,
            ScheduleRule { cron: None, ..rule("", "UTC") },
            every(0),
            every(999),
            every(u64::MAX),
            jitter(every(5_000), 5_000),
            jitter(rule("@daily", "UTC"), 86_400_001),
        ] {
            assert!(checked(wrong.clone(), now).is_err(), "{wrong:?}");
        }
        checked(jitter(every(5_000), 4_999), now).expect("it is shorter");
    }

    #[test]
    fn intervals_are_counted_from_the_creation() {
        let (rule, created) = (every(60_000), Timestamp(5_000));
        for (after, next) in [(5_000, 65_000), (64_999, 65_000), (65_000, 125_000), (1_000_000, 1_025_000)] {
            assert_eq!(next_after(&rule, created, Timestamp(after)), Some(Timestamp(next)));
        }
        assert_eq!(
            next_after(&rule, created, Timestamp(0)),
            Some(Timestamp(65_000)),
            "the clock was set back"
        );
    }

    #[test]
    fn jitter_is_within_its_bound_and_the_same_for_the_same_time() {
        let rule = ScheduleRule { jitter_ms: 30_000, ..every(60_000) };
        let id = ScheduleId::from_bytes([7; 16]);
        let of = |at| with_jitter(&rule, id, Timestamp(at)).0 - at;
        let all: std::collections::BTreeSet<i64> = (0..50).map(|n| of(n * 60_000)).collect();
        assert!(all.len() > 40 && all.iter().all(|jitter| (0..=30_000).contains(jitter)), "{all:?}");
        assert_eq!(of(60_000), of(60_000));
        assert_eq!(with_jitter(&every(60_000), id, Timestamp(9)), Timestamp(9));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[-0-9*/,#LW+? @a-zA-Zü]{0,40}", zone in "[A-Za-z/_+0-9-]{0,20}") {
            let _ = super::parse(&text);
            let _ = super::zone(&zone);
        }
    }
}
