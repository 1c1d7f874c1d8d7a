//! Owns the comparison of texts by the rules of a language.

use super::{IntlError, parsed};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed};
use std::cmp::Ordering;

/// Compares texts by the rules of a locale, with the keywords of its tag (`kn`, `kf`, `co`).
#[derive(Debug)]
pub struct TextCollator(CollatorBorrowed<'static>);

impl TextCollator {
    /// `sensitivity`: `base`, `accent`, `case` or `variant`; `ignore_punctuation`: white space and punctuation do not count.
    pub fn new(tag: &str, sensitivity: &str, ignore_punctuation: bool) -> Result<Self, IntlError> {
        let mut options = CollatorOptions::default();
        options.strength = Some(match sensitivity {
            "base" | "case" => Strength::Primary,
            "accent" => Strength::Secondary,
            _ => Strength::Tertiary,
        });
        options.case_level = (sensitivity == "case").then_some(CaseLevel::On);
        options.alternate_handling = ignore_punctuation.then_some(AlternateHandling::Shifted);
        let locale = parsed(tag)?;
        Collator::try_new((&locale).into(), options).map(Self).map_err(IntlError::data)
    }

    /// The order of two texts of UTF-16 units.
    pub fn compare(&self, one: &[u16], other: &[u16]) -> Ordering {
        self.0.compare_utf16(one, other)
    }
}
