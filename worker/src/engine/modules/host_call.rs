//! Owns the result format that the native halves of all host modules share.

use rquickjs::{Array, Ctx, Result, Value};

/// `[value]`.
pub(in crate::engine) fn returned<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Array<'js>> {
    let result = Array::new(ctx.clone())?;
    result.set(0, value)?;
    Ok(result)
}

/// `[undefined, code, message]`.
pub(in crate::engine) fn failed<'js>(ctx: &Ctx<'js>, code: &str, message: &str) -> Result<Array<'js>> {
    let result = Array::new(ctx.clone())?;
    result.set(0, Value::new_undefined(ctx.clone()))?;
    result.set(1, code)?;
    result.set(2, message)?;
    Ok(result)
}

/// The result for a reply of the host that does not match the request.
pub(in crate::engine) fn unexpected<'js>(ctx: &Ctx<'js>) -> Result<Array<'js>> {
    failed(ctx, "EIO", "EIO: the host's reply does not match the request")
}

/// A text of an array that the prelude created; empty if the element is not a string.
pub(in crate::engine) fn text_at(array: &Array<'_>, index: usize) -> Result<String> {
    let value: Value = array.get(index)?;
    match value.as_string() {
        Some(text) => text.to_string(),
        None => Ok(String::new()),
    }
}
