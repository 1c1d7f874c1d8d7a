//! Owns how a text of a script becomes one of Rust: a half of a surrogate pair without the other becomes U+FFFD, as in Node's UTF-8.
//! Conversions to `String` throw instead, in words that no script expects.

use crate::engine::sys;
use rquickjs::{Ctx, Error, FromJs, Result, Value};
use std::ops::Deref;

/// A text that a native function reads and does not give back.
pub(super) struct LossyText(String);

impl Deref for LossyText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'js> FromJs<'js> for LossyText {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let text = rquickjs::String::from_js(ctx, value)?;
        let units = sys::string_utf16(&text).ok_or(Error::Exception)?;
        Ok(Self(String::from_utf16_lossy(&units)))
    }
}
