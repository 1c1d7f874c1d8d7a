//! Owns the native functions of `Intl`: each makes a formatter of `vm-system-intl` from options that the prelude has checked, and
//! returns it as a function that owns it. Knows nothing of scripts.

mod number;
mod text;
mod zone;

use super::super::state::SharedState;
use crate::engine::platform::text::LossyText;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};
use vm_system_intl::{DateFormat, FormatOptions, IntlError, TextPart};

fn failed(ctx: &Ctx<'_>, error: &IntlError) -> rquickjs::Error {
    Exception::throw_range(ctx, &error.to_string())
}

/// The options of the prelude: texts, numbers and truth values; what is undefined is not set.
fn options(spec: &Object<'_>) -> Result<FormatOptions> {
    let mut options = FormatOptions::default();
    for property in spec.props::<String, Value<'_>>() {
        let (name, value) = property?;
        if let Some(text) = value.as_string() {
            options.set(&name, text.to_string()?);
        } else if let Some(flag) = value.as_bool() {
            options.set(&name, flag.to_string());
        } else if let Some(number) = value.as_number() {
            options.set(&name, number.to_string());
        }
    }
    Ok(options)
}

/// Types and values in turn, or the whole text.
fn parts_or_text<'js>(ctx: Ctx<'js>, parts: &[TextPart], as_parts: bool) -> Result<Value<'js>> {
    if !as_parts {
        let text: String = parts.iter().map(|part| part.1.as_str()).collect();
        return Ok(rquickjs::String::from_str(ctx, &text)?.into_value());
    }
    let list = Array::new(ctx)?;
    for (index, (kind, value)) in parts.iter().enumerate() {
        list.set(2 * index, *kind)?;
        list.set(2 * index + 1, value.as_str())?;
    }
    Ok(list.into_value())
}

/// `date(locale, spec)` gives `[format, name of the zone, hour cycle, pattern]`; `format(time, parts)` takes milliseconds since 1970.
fn install_dates<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("timeZones", Function::new(ctx.clone(), vm_system_intl::zone_names)?)?;
    natives.set(
        "timeZone",
        Function::new(ctx.clone(), |name: Option<LossyText>| {
            zone::time_zone(name.as_deref()).map(|zone| zone.name().to_owned())
        })?,
    )?;
    natives.set(
        "date",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, tag: LossyText, spec: Object<'js>| {
            let zone = zone::time_zone(spec.get::<_, Option<LossyText>>("timeZone")?.as_deref());
            let zone = zone.ok_or_else(|| Exception::throw_range(&ctx, "Invalid time zone specified"))?;
            let format =
                DateFormat::new(&tag, &options(&spec)?, zone).map_err(|error| failed(&ctx, &error))?;
            let made = Array::new(ctx.clone())?;
            made.set(1, format.zone())?;
            made.set(2, format.hour_cycle())?;
            made.set(3, format.pattern())?;
            let run = move |ctx: Ctx<'js>, time_ms: f64, parts: bool| -> Result<Value<'js>> {
                let found = format.format(time_ms).map_err(|error| failed(&ctx, &error))?;
                parts_or_text(ctx, &found, parts)
            };
            made.set(0, Function::new(ctx, run)?)?;
            Ok::<_, rquickjs::Error>(made)
        })?,
    )
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, _: &SharedState, natives: &Object<'js>) -> Result<()> {
    number::install(ctx, natives)?;
    install_dates(ctx, natives)?;
    text::install(ctx, natives)
}

pub(super) use zone::learn_local as learn_local_time_zone;
