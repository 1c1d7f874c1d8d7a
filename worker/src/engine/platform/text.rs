//! Owns how a text of a script becomes one of Rust: a half of a surrogate pair without the other becomes U+FFFD, as in Node's UTF-8.
//! Conversions to `String` throw instead, in words that no script expects.

use crate::engine::{memory, sys};
use rquickjs::{Ctx, Exception, FromJs, Result, Value};
use std::ops::Deref;

/// Bytes that [`units`] takes for each code unit: a copy of the engine's and one of ours.
const BYTES_PER_UNIT: u64 = 4;
/// The text in UTF-8, also while it grows (bytes for each code unit).
const UTF8_BYTES_PER_UNIT: u64 = 6;

/// The code units of a text, as JavaScript has them. Of a text that is held beside them in other forms, `more_bytes` for each unit count
/// for the limit of memory, too.
pub(super) fn units(text: &rquickjs::String<'_>, more_bytes: u64) -> Result<Vec<u16>> {
    let ctx = text.ctx();
    memory::reserve(ctx, (BYTES_PER_UNIT + more_bytes).saturating_mul(sys::string_units(text) as u64))?;
    sys::string_utf16(text).ok_or_else(|| Exception::throw_internal(ctx, "out of memory"))
}

/// The text; halves of surrogate pairs become U+FFFD.
pub(super) fn lossy(text: &rquickjs::String<'_>, more_bytes: u64) -> Result<String> {
    Ok(String::from_utf16_lossy(&units(text, UTF8_BYTES_PER_UNIT + more_bytes)?))
}

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
        lossy(&text, 0).map(Self)
    }
}
