//! Owns lists, relative times and the names of languages, regions and scripts as text.

use super::data::FormatData;
use super::{IntlError, parsed};
use icu_experimental::displaynames::multi::{
    LanguageDisplayNames, LocaleDisplayNamesFormatter, RegionDisplayNames, ScriptDisplayNames,
};
use icu_experimental::displaynames::{DisplayNamesOptions, LanguageDisplay, Style};
use icu_experimental::relativetime::{RelativeTimeFormatter, RelativeTimeFormatterOptions, options::Numeric};
use icu_list::options::{ListFormatterOptions, ListLength};
use icu_list::{ListFormatter, parts};
use icu_locale::Locale;
use writeable::{Part, PartsWrite, Writeable};

/// Joins texts by the rules of a locale.
#[derive(Debug)]
pub struct ListTexts(ListFormatter);

impl ListTexts {
    /// `kind`: `conjunction`, `disjunction` or `unit`; `style`: `long`, `short` or `narrow`.
    pub fn new(tag: &str, kind: &str, style: &str) -> Result<Self, IntlError> {
        let locale = parsed(tag)?;
        let options = ListFormatterOptions::default().with_length(match style {
            "short" => ListLength::Short,
            "narrow" => ListLength::Narrow,
            _ => ListLength::Wide,
        });
        let formatter = match kind {
            "disjunction" => ListFormatter::try_new_or_unstable(&FormatData, (&locale).into(), options),
            "unit" => ListFormatter::try_new_unit_unstable(&FormatData, (&locale).into(), options),
            _ => ListFormatter::try_new_and_unstable(&FormatData, (&locale).into(), options),
        };
        formatter.map(Self).map_err(IntlError::data)
    }

    pub fn join(&self, items: &[String]) -> String {
        self.0.format(items.iter()).write_to_string().into_owned()
    }

    /// As [`Self::join`]; halves of surrogate pairs stay as they are.
    pub fn join_units(&self, items: &[Vec<u16>]) -> Vec<u16> {
        let texts: Vec<String> = items.iter().map(|item| String::from_utf16_lossy(item)).collect();
        let mut joined = JoinedUnits { units: Vec::new(), items: items.iter(), is_in_item: false };
        // The sink never fails.
        let _ = self.0.format(texts.iter()).write_to_parts(&mut joined);
        joined.units
    }
}

/// Takes the text between the items as it is written, and the items themselves from their units.
struct JoinedUnits<'a> {
    units: Vec<u16>,
    items: std::slice::Iter<'a, Vec<u16>>,
    is_in_item: bool,
}

impl std::fmt::Write for JoinedUnits<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if !self.is_in_item {
            self.units.extend(text.encode_utf16());
        }
        Ok(())
    }
}

impl PartsWrite for JoinedUnits<'_> {
    type SubPartsWrite = Self;

    fn with_part(
        &mut self,
        part: Part,
        mut write: impl FnMut(&mut Self) -> std::fmt::Result,
    ) -> std::fmt::Result {
        if part != parts::ELEMENT {
            return write(self);
        }
        self.units.extend(self.items.next().into_iter().flatten());
        self.is_in_item = true;
        let result = write(self);
        self.is_in_item = false;
        result
    }
}

/// Writes how far away a time is, in one unit.
pub struct RelativeFormat(RelativeTimeFormatter);

impl RelativeFormat {
    /// `style`: `long`, `short` or `narrow`; `auto`: with words such as `yesterday`; `unit`: `second`, …, `year`.
    pub fn new(tag: &str, style: &str, auto: bool, unit: &str) -> Result<Self, IntlError> {
        let locale = parsed(tag)?;
        let mut options = RelativeTimeFormatterOptions::default();
        options.numeric = if auto { Numeric::Auto } else { Numeric::Always };
        macro_rules! make {
            ($long:ident $short:ident $narrow:ident) => {
                match style {
                    "short" => RelativeTimeFormatter::$short(&FormatData, (&locale).into(), options),
                    "narrow" => RelativeTimeFormatter::$narrow(&FormatData, (&locale).into(), options),
                    _ => RelativeTimeFormatter::$long(&FormatData, (&locale).into(), options),
                }
            };
        }
        let formatter = match unit {
            "second" => {
                make!(try_new_long_second_unstable try_new_short_second_unstable try_new_narrow_second_unstable)
            }
            "minute" => {
                make!(try_new_long_minute_unstable try_new_short_minute_unstable try_new_narrow_minute_unstable)
            }
            "hour" => {
                make!(try_new_long_hour_unstable try_new_short_hour_unstable try_new_narrow_hour_unstable)
            }
            "day" => make!(try_new_long_day_unstable try_new_short_day_unstable try_new_narrow_day_unstable),
            "week" => {
                make!(try_new_long_week_unstable try_new_short_week_unstable try_new_narrow_week_unstable)
            }
            "month" => {
                make!(try_new_long_month_unstable try_new_short_month_unstable try_new_narrow_month_unstable)
            }
            "quarter" => {
                make!(try_new_long_quarter_unstable try_new_short_quarter_unstable try_new_narrow_quarter_unstable)
            }
            _ => make!(try_new_long_year_unstable try_new_short_year_unstable try_new_narrow_year_unstable),
        };
        formatter.map(Self).map_err(IntlError::data)
    }

    /// The text of a number's decimal digits.
    pub fn format(&self, value: &str) -> Result<String, IntlError> {
        let value = value.parse().map_err(|_| IntlError::Value)?;
        Ok(self.0.format(value).write_to_string().into_owned())
    }
}

/// Names of regions, scripts or languages in a locale's language.
pub enum LocaleNames {
    Region(Box<RegionDisplayNames>),
    Script(Box<ScriptDisplayNames>),
    Language(Box<(LanguageDisplayNames, LocaleDisplayNamesFormatter)>),
}

impl LocaleNames {
    /// `kind`: `region`, `script` or `language`; `style`: `long`, `short` or `narrow`; `standard`: `Chinese (Simplified)` and not
    /// `Simplified Chinese`.
    pub fn new(tag: &str, kind: &str, style: &str, standard: bool) -> Result<Self, IntlError> {
        let locale = parsed(tag)?;
        let mut options = DisplayNamesOptions::default();
        options.style = (style != "long").then_some(Style::Short);
        options.language_display =
            if standard { LanguageDisplay::Standard } else { LanguageDisplay::Dialect };
        let fail = |error: icu_provider::DataError| IntlError::data(error);
        Ok(match kind {
            "region" => Self::Region(Box::new(
                RegionDisplayNames::try_new_unstable(&FormatData, (&locale).into(), options).map_err(fail)?,
            )),
            "script" => Self::Script(Box::new(
                ScriptDisplayNames::try_new_unstable(&FormatData, (&locale).into(), options).map_err(fail)?,
            )),
            _ => Self::Language(Box::new((
                LanguageDisplayNames::try_new_unstable(&FormatData, (&locale).into(), options)
                    .map_err(fail)?,
                LocaleDisplayNamesFormatter::try_new_unstable(&FormatData, (&locale).into(), options)
                    .map_err(fail)?,
            ))),
        })
    }

    /// The name of a canonical code; `None` if there is none.
    pub fn name_of(&self, code: &str) -> Option<String> {
        match self {
            Self::Region(names) => names.of(code.parse().ok()?).map(str::to_owned),
            Self::Script(names) => names.of(code.parse().ok()?).map(str::to_owned),
            Self::Language(names) => {
                let locale: Locale = code.parse().ok()?;
                names.0.of(locale.id.language)?;
                Some(names.1.of(&locale).into_owned())
            }
        }
    }
}
