//! Owns the native functions of `Intl`: each makes a formatter of ICU4X from options that the prelude has checked, and returns it as
//! a function. The data are constants of the binary, in pages that all processes share. Knows nothing of scripts.

mod date;
mod number;
mod text;
mod zone;

use super::super::state::SharedState;
use super::super::sys;
use icu_locale::Locale;
use rquickjs::{Array, Ctx, Exception, Object, Result};

/// A piece of formatted text with its type, by the names of `formatToParts`.
type TextPart = (&'static str, String);

fn locale(ctx: &Ctx<'_>, tag: &str) -> Result<Locale> {
    tag.parse()
        .map_err(|_| Exception::throw_range(ctx, &format!("Incorrect locale information provided: {tag}")))
}

/// Data that are missing, which an option that exists cannot cause.
fn failed(ctx: &Ctx<'_>, error: &dyn std::fmt::Display) -> rquickjs::Error {
    Exception::throw_range(ctx, &format!("Intl: {error}"))
}

/// Types and values in turn.
fn parts_array<'js>(ctx: &Ctx<'js>, parts: &[TextPart]) -> Result<Array<'js>> {
    let list = Array::new(ctx.clone())?;
    for (index, (kind, value)) in parts.iter().enumerate() {
        list.set(2 * index, *kind)?;
        list.set(2 * index + 1, value.as_str())?;
    }
    Ok(list)
}

/// The code units of a text, as JavaScript has them.
fn units(text: &rquickjs::String<'_>) -> Result<Vec<u16>> {
    sys::string_utf16(text).ok_or(rquickjs::Error::Exception)
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, _: &SharedState, natives: &Object<'js>) -> Result<()> {
    number::install(ctx, natives)?;
    date::install(ctx, natives)?;
    text::install(ctx, natives)
}

pub(super) use zone::learn_local as learn_local_time_zone;
