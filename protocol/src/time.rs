//! Points in time as data. Nothing here reads a clock.

use crate::codec::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use std::str::FromStr;
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

/// A text that is no RFC 3339 timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp")]
pub struct TimestampError;

/// Milliseconds since the Unix epoch, UTC. Shown as RFC 3339 with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Timestamp(pub i64);

const RFC3339_MS: &[BorrowedFormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .filter(|moment| (0..=9999).contains(&moment.year()))
            .and_then(|moment| moment.format(RFC3339_MS).ok());
        match text {
            Some(text) => f.write_str(&text),
            // Outside the years 0–9999: only a damaged row has such a time; the raw number is shown.
            None => write!(f, "@{}ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let moment = OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339)
            .map_err(|_| TimestampError)?;
        Ok(Timestamp(moment.unix_timestamp_nanos().div_euclid(1_000_000) as i64))
    }
}

impl schemars::JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_rfc3339_with_milliseconds_in_utc() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1, "1970-01-01T00:00:00.001Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp(milliseconds).to_string(), text);
            assert_eq!(serde_json::to_string(&Timestamp(milliseconds)).expect("json"), format!("\"{text}\""));
            let back: Timestamp = serde_json::from_str(&format!("\"{text}\"")).expect("own text");
            assert_eq!(back, Timestamp(milliseconds));
        }
    }

    #[test]
    fn damaged_numbers_are_shown_and_do_not_panic() {
        for milliseconds in [i64::MIN, i64::MAX, 253_402_300_800_000, -62_167_219_200_001] {
            assert_eq!(Timestamp(milliseconds).to_string(), format!("@{milliseconds}ms"));
        }
    }

    #[test]
    fn other_offsets_and_finer_fractions_are_read_and_nonsense_is_not() {
        let read = |text: &str| serde_json::from_str::<Timestamp>(&format!("\"{text}\""));
        assert_eq!(read("1970-01-01T01:00:00+01:00").expect("offset"), Timestamp(0));
        assert_eq!(read("1969-12-31T23:59:59.9995Z").expect("fraction"), Timestamp(-1));
        for nonsense in ["", "now", "1970-01-01", "1970-13-01T00:00:00Z", "1970-01-01T00:00:00"] {
            assert!(read(nonsense).is_err(), "{nonsense}");
        }
    }
}
