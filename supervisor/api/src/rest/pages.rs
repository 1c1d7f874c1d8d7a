//! Parts of lists: `limit` and `cursor`. Lists are plain arrays, so the cursor of the next part is in a header.

use super::envelope::{RestError, RestResult, ok};
use super::input::QueryParams;
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use vm_system_protocol::control::{ListCursor, ListPage};
use vm_system_protocol::time::Timestamp;

/// Cursor of the next part of a list; absent after the last part.
const NEXT: HeaderName = HeaderName::from_static("x-next-cursor");
/// Below this length a response was not cut to fit a frame (bytes).
const SURELY_WHOLE: usize = 1 << 20;

/// The requested part of a list.
pub(super) fn requested(params: &QueryParams) -> Result<ListPage, RestError> {
    let limit = params.number("limit", 1)?;
    let after = params.one("cursor")?.map(parse).transpose()?;
    Ok(ListPage { limit, after })
}

/// The response with a part of a list, and the cursor of the next part if there may be more.
pub(super) fn response<T: Serialize>(
    limit: Option<u32>,
    items: &[T],
    position: impl Fn(&T) -> (Timestamp, [u8; 16]),
) -> RestResult {
    let mut response = ok(&items)?;
    let full = limit.is_some_and(|limit| items.len() >= limit as usize);
    let length = http_body::Body::size_hint(response.body()).exact();
    let whole = !full && length.is_some_and(|length| length < SURELY_WHOLE as u64);
    if let Some(last) = items.last().filter(|_| !whole) {
        let (at, id) = position(last);
        // Digits and hyphens only.
        if let Ok(cursor) = HeaderValue::from_str(&format!("{}.{}", at.0, uuid::Uuid::from_bytes(id))) {
            response.headers_mut().insert(NEXT, cursor);
        }
    }
    Ok(response)
}

fn parse(text: &str) -> Result<ListCursor, RestError> {
    let parts = text.split_once('.').and_then(|(at, id)| {
        let id = uuid::Uuid::try_parse(id).ok()?;
        Some(ListCursor { at: Timestamp(at.parse().ok()?), id: id.into_bytes() })
    });
    parts.ok_or_else(|| RestError::invalid("cursor is not a value of X-Next-Cursor"))
}
