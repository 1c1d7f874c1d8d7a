//! `Date`: time values, their parts, and their text.
//!
//! Owns: ECMA-262 21.4.1 (arithmetic), 21.4.1.32 (the ISO format), 21.4.4.41 (the other formats) and parsing of all three.
//! **The time zone is UTC, always**: local time equals UTC, so a program has the same result on every machine and after
//! a resume on another one. Must not: read a clock; the current time is an input of the state.

mod parse;
mod text;
mod time;

pub(crate) use parse::parse;
pub(crate) use text::{to_date_string, to_iso_string, to_string, to_time_string, to_utc_string};
pub(crate) use time::{
    DAY_MS, Fields, MAX_TIME_MS, day, fields, full_year, make_date, make_day, make_time, time_clip,
    time_within_day, week_day,
};
