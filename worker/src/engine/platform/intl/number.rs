//! Owns the native functions of numbers: formats and plural rules.

use super::super::text::LossyText;
use super::{failed, options, parts_or_text};
use rquickjs::{Ctx, Function, Object, Result};
use vm_system_intl::{NumberFormat, PluralFormat, currency_digits};

/// `number(locale, spec)` gives a function of a number's text that gives types and values in turn; `plural(locale, ordinal, spec)`
/// one that gives the plural category.
pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("currencyDigits", Function::new(ctx.clone(), |code: LossyText| currency_digits(&code))?)?;
    natives.set("isUnit", Function::new(ctx.clone(), |name: LossyText| vm_system_intl::is_unit(&name))?)?;
    natives.set(
        "number",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: LossyText, spec: Object<'js>| {
            let format = NumberFormat::new(&tag, &options(&spec)?).map_err(|error| failed(&ctx, &error))?;
            let run = move |ctx: Ctx<'js>, text: LossyText, parts: bool| {
                let found = format.format(&text).map_err(|error| failed(&ctx, &error))?;
                parts_or_text(ctx, &found, parts)
            };
            Function::new(ctx, run)
        })?,
    )?;
    natives.set(
        "plural",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: LossyText, ordinal: bool, spec: Object<'js>| {
            let rules =
                PluralFormat::new(&tag, ordinal, &options(&spec)?).map_err(|error| failed(&ctx, &error))?;
            let run = move |text: Option<LossyText>| match text {
                None => rules.categories().join(" "),
                Some(text) => rules.select(&text).to_owned(),
            };
            Function::new(ctx, run)
        })?,
    )
}
