//! The formatters of `Intl` for both engines: numbers, dates, lists, relative times, names, comparison, segmentation, and the tags
//! of locales, on ICU4X and `jiff`. The data are in the binary, in pages that all processes share.
//!
//! Owns: pure functions on text and numbers. Must not: use an engine, do I/O, read a clock, keep state. Who converts a script's
//! options checks them, too: a value that is none of ECMA-402's is replaced by the usual one here, and never a panic.

#![forbid(unsafe_code)]

mod collation;
mod data;
mod date;
mod languages;
mod lists;
mod locales;
mod markers;
mod number;
mod options;
mod segments;
mod text;
mod zone;

pub use collation::TextCollator;
pub use date::DateFormat;
pub use lists::{CALENDARS, COLLATIONS, CURRENCIES, NUMBERING_SYSTEMS, UNITS, currency_digits, is_unit};
pub use locales::{
    Keyword, ResolvedLocale, canonical, canonical_code, change_case, has_own_case, is_supported, likely,
    locale_part, locale_with, resolve, split_tag,
};
pub use number::{NumberFormat, PluralFormat, plain_decimal};
pub use options::FormatOptions;
pub use segments::{Granularity, TextSegment, boundaries, segments_from};
pub use text::{ListTexts, LocaleNames, RelativeFormat};
pub use zone::{TimeZoneRules, zone_names};

/// A piece of formatted text with its type, by the names of `formatToParts`.
pub type TextPart = (&'static str, String);

/// Why there is no formatter or no text; a script gets its message in a `RangeError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntlError {
    /// A tag that is none of BCP 47's
    #[error("Incorrect locale information provided: {0}")]
    Tag(String),
    /// Data that are missing, which an option that exists cannot cause
    #[error("Intl: {0}")]
    Data(String),
    /// More digits than a number here may have
    #[error("Intl: a number of too many digits")]
    Digits,
    #[error("Invalid value")]
    Value,
    #[error("Intl.DateTimeFormat: this combination of date fields is not available")]
    DateFields,
}

impl IntlError {
    fn data(error: impl std::fmt::Display) -> Self {
        Self::Data(error.to_string())
    }
}

fn parsed(tag: &str) -> Result<icu_locale::Locale, IntlError> {
    tag.parse().map_err(|_| IntlError::Tag(tag.chars().take(40).collect()))
}
