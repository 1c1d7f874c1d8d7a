//! Owns the native functions of `URL` and `URLSearchParams`: parsing and serialization by the URL standard. Keeps no state.

use super::super::state::SharedState;
use super::text::lossy;
use rquickjs::{Array, Ctx, Function, Object, Result};
use url::{Url, quirks};

/// A URL or form beside the text that it is made of: one unit is at most nine characters, twice while it grows (bytes for each unit).
const SERIALIZED_BYTES_PER_UNIT: u64 = 18;

/// The text of a JavaScript string; lone surrogates become U+FFFD.
fn text(string: &rquickjs::String<'_>) -> Result<String> {
    lossy(string, SERIALIZED_BYTES_PER_UNIT)
}

/// The serialized URL, which is ASCII, and the positions of its parts in the order of `prelude/url.js`.
fn parts<'js>(ctx: &Ctx<'js>, url: &Url) -> Result<Array<'js>> {
    let parts = Array::new(ctx.clone())?;
    parts.set(0, url.as_str())?;
    let at = quirks::internal_components(url);
    let text = url.as_str();
    let has = |position: u32, start: &str| {
        text.get(position as usize..).is_some_and(|rest| rest.starts_with(start))
    };
    // `://` of URLs with a host; the path of the others begins after the scheme.
    let user = if has(at.scheme_end, "://") { at.scheme_end + 3 } else { at.username_end };
    let password = if user < at.host_start && has(at.username_end, ":") {
        (at.username_end + 1, at.host_start - 1)
    } else {
        (at.username_end, at.username_end)
    };
    let end = text.len() as u32;
    let query_end = at.fragment_start.unwrap_or(end);
    let positions = [
        at.scheme_end + 1,
        user,
        at.username_end,
        password.0,
        password.1,
        at.host_start,
        at.host_end,
        if at.port.is_some() { at.host_end + 1 } else { at.host_end },
        if at.port.is_some() { at.path_start } else { at.host_end },
        at.path_start,
        at.query_start.unwrap_or(query_end),
        query_end,
    ];
    for (index, position) in positions.into_iter().enumerate() {
        parts.set(index + 1, position)?;
    }
    Ok(parts)
}

/// `parse(text, base?)` and `set(href, part, value)` give the parts of a URL or `undefined`; `readForm(text)` gives names and
/// values in turn, `writeForm(list)` their text.
pub(super) fn install<'js>(ctx: &Ctx<'js>, _: &SharedState, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "parse",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, input: rquickjs::String<'js>, base: Option<rquickjs::String<'js>>| {
                let base = base.map(|base| text(&base)).transpose()?;
                let parsed = vm_system_web::parse(&text(&input)?, base.as_deref());
                parsed.map(|url| parts(&ctx, &url)).transpose()
            },
        )?,
    )?;
    natives.set(
        "set",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, href: String, part: String, value: rquickjs::String<'js>| {
                let Some(mut url) = vm_system_web::parse(&href, None) else { return Ok(None) };
                vm_system_web::set_part(&mut url, &part, &text(&value)?);
                parts(&ctx, &url).map(Some)
            },
        )?,
    )?;
    natives.set(
        "readForm",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, input: rquickjs::String<'js>| {
            let list = Array::new(ctx)?;
            let input = text(&input)?;
            for (index, (name, value)) in url::form_urlencoded::parse(input.as_bytes()).enumerate() {
                list.set(2 * index, name.as_ref())?;
                list.set(2 * index + 1, value.as_ref())?;
            }
            Ok::<_, rquickjs::Error>(list)
        })?,
    )?;
    natives.set(
        "writeForm",
        Function::new(ctx.clone(), |list: Array<'js>| {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            for index in (0..list.len()).step_by(2) {
                form.append_pair(&text(&list.get(index)?)?, &text(&list.get(index + 1)?)?);
            }
            Ok::<_, rquickjs::Error>(form.finish())
        })?,
    )
}
