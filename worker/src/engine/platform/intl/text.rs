//! Owns the native functions of texts: comparison, segmentation, lists, relative times, names, case, and the tags of locales.

use super::super::text::{LossyText, units};
use super::failed;
use crate::engine::sys;
use rquickjs::{Array, Ctx, Function, Object, Result};
use std::cmp::Ordering;
use vm_system_intl::{
    Granularity, Keyword, ListTexts, LocaleNames, RelativeFormat, TextCollator, boundaries, canonical,
    change_case, is_supported, likely, locale_with, resolve,
};

/// A boundary for each code unit at most, twice while their list grows (bytes).
const BOUNDARY_BYTES: u64 = 16;
/// A text and its changed form as UTF-8 and UTF-16, while they grow (bytes for each code unit).
const CHANGED_BYTES_PER_UNIT: u64 = 12;

/// `compare`, `list`, `relative`, `boundaries`, `display`, `canonical`, `supported`, `resolve`, `likely`, `localeWith`, `changeCase` and
/// `values`, for `prelude/intl_text.js` and `prelude/intl_base.js`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "compare",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, tag: LossyText, sensitivity: LossyText, shifted: bool| {
                let collator =
                    TextCollator::new(&tag, &sensitivity, shifted).map_err(|error| failed(&ctx, &error))?;
                Function::new(ctx, move |one: rquickjs::String<'js>, other: rquickjs::String<'js>| {
                    Ok::<_, rquickjs::Error>(match collator.compare(&units(&one, 0)?, &units(&other, 0)?) {
                        Ordering::Less => -1,
                        Ordering::Equal => 0,
                        Ordering::Greater => 1,
                    })
                })
            },
        )?,
    )?;
    natives.set(
        "list",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: LossyText, kind: LossyText, style: LossyText| {
            let list = ListTexts::new(&tag, &kind, &style).map_err(|error| failed(&ctx, &error))?;
            Function::new(ctx, move |items: Vec<String>| list.join(&items))
        })?,
    )?;
    natives.set(
        "relative",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, tag: LossyText, style: LossyText, auto: bool, unit: LossyText| {
                let format =
                    RelativeFormat::new(&tag, &style, auto, &unit).map_err(|error| failed(&ctx, &error))?;
                Function::new(ctx, move |ctx: Ctx<'js>, value: LossyText| {
                    format.format(&value).map_err(|error| failed(&ctx, &error))
                })
            },
        )?,
    )?;
    natives.set(
        "boundaries",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, granularity: LossyText, text: rquickjs::String<'js>| {
            let list = Array::new(ctx)?;
            let found = boundaries(Granularity::named(&granularity), &units(&text, BOUNDARY_BYTES)?);
            for (index, at) in found.into_iter().enumerate() {
                list.set(index, at as f64)?;
            }
            Ok::<_, rquickjs::Error>(list)
        })?,
    )?;
    natives.set(
        "display",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, tag: LossyText, kind: LossyText, style: LossyText, standard: bool| {
                let names =
                    LocaleNames::new(&tag, &kind, &style, standard).map_err(|error| failed(&ctx, &error))?;
                Function::new(ctx, move |code: LossyText| names.name_of(&code))
            },
        )?,
    )?;
    install_tags(ctx, natives)
}

fn install_tags<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("canonical", Function::new(ctx.clone(), |tag: LossyText| canonical(&tag))?)?;
    natives.set("supported", Function::new(ctx.clone(), |tag: LossyText| is_supported(&tag))?)?;
    natives.set(
        "resolve",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tags: Vec<String>, keywords: Vec<String>| {
            let keywords: Vec<Keyword> = keywords.iter().map(|text| Keyword::parse(text)).collect();
            let found = resolve(&tags, &keywords);
            let made = Object::new(ctx.clone())?;
            let values = Object::new(ctx)?;
            values.set_prototype(None)?;
            for (key, value) in found.values {
                values.set(key, value)?;
            }
            made.set("locale", found.locale)?;
            made.set("tag", found.tag)?;
            made.set("values", values)?;
            Ok::<_, rquickjs::Error>(made)
        })?,
    )?;
    // Keys and values of keywords in turn.
    let with = |tag: LossyText, parts: Vec<Option<LossyText>>, keywords: Vec<LossyText>| {
        let changed: Vec<(&str, &str)> =
            keywords.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])).collect();
        let part = |index: usize| parts.get(index).and_then(Option::as_deref);
        locale_with(&tag, [part(0), part(1), part(2)], &changed)
    };
    natives.set("localeWith", Function::new(ctx.clone(), with)?)?;
    natives.set("likely", Function::new(ctx.clone(), |tag: LossyText, more: bool| likely(&tag, more))?)?;
    natives.set(
        "changeCase",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, tag: LossyText, upper: bool, text: rquickjs::String<'js>| {
                sys::new_string_utf16(&ctx, &change_case(&tag, upper, &units(&text, CHANGED_BYTES_PER_UNIT)?))
            },
        )?,
    )?;
    natives.set(
        "values",
        Function::new(ctx.clone(), |name: LossyText| -> Vec<&'static str> {
            match &*name {
                "calendar" => vm_system_intl::CALENDARS,
                "collation" => vm_system_intl::COLLATIONS,
                "currency" => vm_system_intl::CURRENCIES,
                "numberingSystem" => vm_system_intl::NUMBERING_SYSTEMS,
                _ => vm_system_intl::UNITS,
            }
            .to_vec()
        })?,
    )
}
