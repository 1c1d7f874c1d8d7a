//! Points in time as data. Nothing here reads a clock.

use crate::codec::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

/// Milliseconds since the Unix epoch, UTC. Shown as RFC 3339 with milliseconds (`rest.md`, Common).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Timestamp(pub i64);

const RFC3339_MS: &[BorrowedFormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|moment| moment.format(RFC3339_MS).ok());
        match text {
            Some(text) => f.write_str(&text),
            // Outside the years 0–9999: only a damaged row can say so; show the raw number.
            None => write!(f, "@{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let moment = OffsetDateTime::parse(&text, &time::format_description::well_known::Rfc3339)
            .map_err(|_| D::Error::custom("not an RFC 3339 timestamp"))?;
        Ok(Timestamp((moment.unix_timestamp_nanos() / 1_000_000) as i64))
    }
}
