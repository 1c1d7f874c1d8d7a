//! Parts of lists: `limit` and `cursor`. Lists are plain arrays, so the cursor of the next part is in a header.

use super::envelope::{RestError, RestResult, ok};
use super::input::QueryParams;
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use vm_system_protocol::control::{ListCursor, ListPage, Listed};

/// Cursor of the next part of a list; absent after the last part.
const NEXT: HeaderName = HeaderName::from_static("x-next-cursor");
/// Below this length a response was not cut to fit a frame (bytes).
const SURELY_WHOLE: usize = 1 << 20;

/// Most elements of a part; a client that requests more gets these, and the cursor of the next part.
pub(super) const MOST: u32 = 1_000;

/// The requested part of a list; without a `limit` at most `otherwise` elements.
pub(super) fn requested(params: &QueryParams, otherwise: u32) -> Result<ListPage, RestError> {
    let limit = params.number("limit", 1)?.unwrap_or(otherwise).min(MOST);
    let after = params.one("cursor")?.map(parse).transpose()?;
    Ok(ListPage { limit: Some(limit), after })
}

/// The response with a part of a list, and the cursor of the next part if there may be more.
pub(super) fn response<T: Serialize + Listed>(page: ListPage, items: &[T]) -> RestResult {
    let mut response = ok(&items)?;
    let full = page.limit.is_some_and(|limit| items.len() >= limit as usize);
    let length = http_body::Body::size_hint(response.body()).exact();
    let whole = !full && length.is_some_and(|length| length < SURELY_WHOLE as u64);
    if let Some(last) = items.last().filter(|_| !whole) {
        // Digits and hyphens only.
        if let Ok(cursor) = HeaderValue::from_str(&last.position().to_string()) {
            response.headers_mut().insert(NEXT, cursor);
        }
    }
    Ok(response)
}

/// The number behind which a part of a list of events begins.
pub(super) fn after_seq(params: &QueryParams) -> Result<u64, RestError> {
    let after_seq = params.number("after_seq", 0)?;
    Ok(params.number("cursor", 0)?.or(after_seq).unwrap_or_default())
}

/// The response with a part of a list of events, and as its cursor the number of the last one if there may be more.
pub(super) fn events<T: Serialize>(limit: u32, items: &[T], seq: impl Fn(&T) -> u64) -> RestResult {
    let mut response = ok(&items)?;
    let most = if limit == 0 { MOST } else { limit.min(MOST) };
    let length = http_body::Body::size_hint(response.body()).exact();
    let whole = items.len() < most as usize && length.is_some_and(|length| length < SURELY_WHOLE as u64);
    if let Some(last) = items.last().filter(|_| !whole) {
        response.headers_mut().insert(NEXT, HeaderValue::from(seq(last)));
    }
    Ok(response)
}

fn parse(text: &str) -> Result<ListCursor, RestError> {
    text.parse().map_err(|_| RestError::invalid("cursor is not a value of X-Next-Cursor"))
}
