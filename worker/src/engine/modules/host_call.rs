//! Owns the result format that the native halves of all host modules share.

use rquickjs::{Array, Ctx, Result, Value};

/// `[value]`.
pub(in crate::engine) fn given<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Array<'js>> {
    let answer = Array::new(ctx.clone())?;
    answer.set(0, value)?;
    Ok(answer)
}

/// `[undefined, code, message]`.
pub(in crate::engine) fn failed<'js>(ctx: &Ctx<'js>, code: &str, message: &str) -> Result<Array<'js>> {
    let answer = Array::new(ctx.clone())?;
    answer.set(0, Value::new_undefined(ctx.clone()))?;
    answer.set(1, code)?;
    answer.set(2, message)?;
    Ok(answer)
}

/// The host's reply does not match the request.
pub(in crate::engine) fn unexpected<'js>(ctx: &Ctx<'js>) -> Result<Array<'js>> {
    failed(ctx, "EIO", "EIO: the host's reply does not match the request")
}

/// A text of an array that the prelude made.
pub(in crate::engine) fn text_at(array: &Array<'_>, index: usize) -> Result<String> {
    let value: Value = array.get(index)?;
    match value.as_string() {
        Some(text) => text.to_string(),
        None => Ok(String::new()),
    }
}
