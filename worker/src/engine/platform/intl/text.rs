//! Owns what `Intl` does with texts: comparison, segmentation, lists, relative times, names, case, and the tags of locales.

use super::{failed, locale, units};
use icu_casemap::CaseMapper;
use icu_collator::Collator;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_experimental::displaynames::multi::{
    LanguageDisplayNames, LocaleDisplayNamesFormatter, RegionDisplayNames, ScriptDisplayNames,
};
use icu_experimental::displaynames::{DisplayNamesOptions, LanguageDisplay, Style};
use icu_experimental::relativetime::{RelativeTimeFormatter, RelativeTimeFormatterOptions, options::Numeric};
use icu_list::ListFormatter;
use icu_list::options::{ListFormatterOptions, ListLength};
use icu_locale::{Locale, LocaleCanonicalizer, LocaleExpander};
use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter};
use rquickjs::{Array, Ctx, Exception, Function, Object, Result};
use std::cmp::Ordering;
use writeable::Writeable;

fn compare<'js>(ctx: Ctx<'js>, tag: &str, sensitivity: &str, shifted: bool) -> Result<Function<'js>> {
    let mut options = CollatorOptions::default();
    options.strength = Some(match sensitivity {
        "base" | "case" => Strength::Primary,
        "accent" => Strength::Secondary,
        _ => Strength::Tertiary,
    });
    options.case_level = (sensitivity == "case").then_some(CaseLevel::On);
    options.alternate_handling = shifted.then_some(AlternateHandling::Shifted);
    let collator =
        Collator::try_new((&locale(&ctx, tag)?).into(), options).map_err(|error| failed(&ctx, &error))?;
    Function::new(ctx, move |one: rquickjs::String<'js>, other: rquickjs::String<'js>| {
        Ok::<_, rquickjs::Error>(match collator.compare_utf16(&units(&one)?, &units(&other)?) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
    })
}

fn list<'js>(ctx: Ctx<'js>, tag: &str, kind: &str, style: &str) -> Result<Function<'js>> {
    let locale = locale(&ctx, tag)?;
    let options = ListFormatterOptions::default().with_length(match style {
        "short" => ListLength::Short,
        "narrow" => ListLength::Narrow,
        _ => ListLength::Wide,
    });
    let formatter = match kind {
        "disjunction" => ListFormatter::try_new_or((&locale).into(), options),
        "unit" => ListFormatter::try_new_unit((&locale).into(), options),
        _ => ListFormatter::try_new_and((&locale).into(), options),
    };
    let formatter = formatter.map_err(|error| failed(&ctx, &error))?;
    Function::new(ctx, move |items: Vec<String>| {
        formatter.format(items.iter()).write_to_string().into_owned()
    })
}

fn relative<'js>(ctx: Ctx<'js>, tag: &str, style: &str, auto: bool, unit: &str) -> Result<Function<'js>> {
    let locale = locale(&ctx, tag)?;
    let mut options = RelativeTimeFormatterOptions::default();
    options.numeric = if auto { Numeric::Auto } else { Numeric::Always };
    macro_rules! make {
        ($long:ident $short:ident $narrow:ident) => {
            match style {
                "short" => RelativeTimeFormatter::$short((&locale).into(), options),
                "narrow" => RelativeTimeFormatter::$narrow((&locale).into(), options),
                _ => RelativeTimeFormatter::$long((&locale).into(), options),
            }
        };
    }
    let formatter = match unit {
        "second" => make!(try_new_long_second try_new_short_second try_new_narrow_second),
        "minute" => make!(try_new_long_minute try_new_short_minute try_new_narrow_minute),
        "hour" => make!(try_new_long_hour try_new_short_hour try_new_narrow_hour),
        "day" => make!(try_new_long_day try_new_short_day try_new_narrow_day),
        "week" => make!(try_new_long_week try_new_short_week try_new_narrow_week),
        "month" => make!(try_new_long_month try_new_short_month try_new_narrow_month),
        "quarter" => make!(try_new_long_quarter try_new_short_quarter try_new_narrow_quarter),
        _ => make!(try_new_long_year try_new_short_year try_new_narrow_year),
    };
    let formatter = formatter.map_err(|error| failed(&ctx, &error))?;
    Function::new(ctx, move |ctx: Ctx<'js>, value: String| {
        let value = value.parse().map_err(|_| Exception::throw_range(&ctx, "Invalid value"))?;
        Ok::<_, rquickjs::Error>(formatter.format(value).write_to_string().into_owned())
    })
}

/// Positions of the boundaries; of words negative where the segment before it is not like a word.
fn boundaries(granularity: &str, text: &[u16]) -> Vec<i64> {
    match granularity {
        "word" => WordSegmenter::new_dictionary(WordBreakInvariantOptions::default())
            .segment_utf16(text)
            .iter_with_word_type()
            .map(|(at, kind)| if kind.is_word_like() { at as i64 } else { -(at as i64) })
            .collect(),
        "sentence" => SentenceSegmenter::new(SentenceBreakInvariantOptions::default())
            .segment_utf16(text)
            .map(|at| at as i64)
            .collect(),
        _ => GraphemeClusterSegmenter::new().segment_utf16(text).map(|at| at as i64).collect(),
    }
}

/// A name by its code; `None` if there is none.
fn display<'js>(ctx: Ctx<'js>, tag: &str, kind: &str, style: &str, standard: bool) -> Result<Function<'js>> {
    let locale = locale(&ctx, tag)?;
    let mut options = DisplayNamesOptions::default();
    options.style = (style != "long").then_some(Style::Short);
    options.language_display = if standard { LanguageDisplay::Standard } else { LanguageDisplay::Dialect };
    let fail = |error: icu_provider::DataError| failed(&ctx, &error);
    match kind {
        "region" => {
            let names = RegionDisplayNames::try_new((&locale).into(), options).map_err(fail)?;
            Function::new(ctx, move |code: String| names.of(code.parse().ok()?).map(str::to_owned))
        }
        "script" => {
            let names = ScriptDisplayNames::try_new((&locale).into(), options).map_err(fail)?;
            Function::new(ctx, move |code: String| names.of(code.parse().ok()?).map(str::to_owned))
        }
        _ => {
            let languages = LanguageDisplayNames::try_new((&locale).into(), options).map_err(fail)?;
            let names = LocaleDisplayNamesFormatter::try_new((&locale).into(), options).map_err(fail)?;
            Function::new(ctx, move |code: String| {
                let locale: Locale = code.parse().ok()?;
                languages.of(locale.id.language)?;
                Some(names.of(&locale).into_owned())
            })
        }
    }
}

/// `compare`, `list`, `relative`, `boundaries`, `display`, `canonical`, `likely` and `changeCase`, for `prelude/intl_text.js`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "compare",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: String, sensitivity: String, shifted: bool| {
            compare(ctx, &tag, &sensitivity, shifted)
        })?,
    )?;
    natives.set(
        "list",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: String, kind: String, style: String| {
            list(ctx, &tag, &kind, &style)
        })?,
    )?;
    natives.set(
        "relative",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: String, style: String, auto: bool, unit: String| {
            relative(ctx, &tag, &style, auto, &unit)
        })?,
    )?;
    natives.set(
        "boundaries",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, granularity: String, text: rquickjs::String<'js>| {
            let list = Array::new(ctx)?;
            for (index, at) in boundaries(&granularity, &units(&text)?).into_iter().enumerate() {
                list.set(index, at as f64)?;
            }
            Ok::<_, rquickjs::Error>(list)
        })?,
    )?;
    natives.set(
        "display",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, tag: String, kind: String, style: String, standard: bool| {
                display(ctx, &tag, &kind, &style, standard)
            },
        )?,
    )?;
    natives.set(
        "canonical",
        Function::new(ctx.clone(), |tag: String| {
            let mut locale: Locale = tag.parse().ok()?;
            LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
            Some(locale.to_string())
        })?,
    )?;
    natives.set(
        "likely",
        Function::new(ctx.clone(), |tag: String, more: bool| {
            let mut locale: Locale = tag.parse().ok()?;
            let expander = LocaleExpander::new_extended();
            if more {
                expander.maximize(&mut locale.id);
            } else {
                expander.minimize(&mut locale.id);
            }
            Some(locale.to_string())
        })?,
    )?;
    natives.set(
        "changeCase",
        Function::new(ctx.clone(), |tag: String, upper: bool, text: String| {
            let language =
                tag.parse::<Locale>().map_or(icu_locale::LanguageIdentifier::UNKNOWN, |locale| locale.id);
            let mapper = CaseMapper::new();
            if upper {
                mapper.uppercase_to_string(&text, &language).into_owned()
            } else {
                mapper.lowercase_to_string(&text, &language).into_owned()
            }
        })?,
    )
}
