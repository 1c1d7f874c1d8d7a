//! Parts of lists: `limit` and `cursor`. Lists are plain arrays, so the cursor of the next part is in a header.

use super::endpoint::{Paged, Streamed};
use super::envelope::{RestResult, ok};
use super::query::{PageCursor, Positive, Sequence, query};
use axum::http::{HeaderName, HeaderValue};
use serde::Serialize;
use vm_system_protocol::control::{ListPage, Listed};

/// Cursor of the next part of a list; absent after the last part.
const NEXT: HeaderName = HeaderName::from_static("x-next-cursor");
/// Below this length a response was not cut to fit a frame (bytes).
const SURELY_WHOLE: usize = 1 << 20;

/// Most elements of a part; a client that requests more gets these, and the cursor of the next part.
pub(super) const MOST: u32 = 1_000;

/// The requested part of a list; without a `limit` at most `otherwise` elements.
pub(super) fn requested(limit: Option<Positive>, cursor: Option<PageCursor>, otherwise: u32) -> ListPage {
    let limit = limit.map_or(otherwise, |Positive(limit)| limit).min(MOST);
    ListPage { limit: Some(limit), after: cursor.map(|PageCursor(cursor)| cursor) }
}

query! {
    /// The query of a list without filters.
    PageQuery {
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

query! {
    /// The query of a list of events.
    EventQuery {
        /// Only events after this sequence number.
        after_seq: Option<Sequence>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000. Ignored for
        /// streams.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before: another name of `after_seq`, before which it takes precedence.
        cursor: Option<Sequence>,
    }
}

impl EventQuery {
    /// The number behind which the events begin.
    pub(super) fn after_seq(&self) -> u64 {
        self.cursor.or(self.after_seq).map_or(0, |Sequence(seq)| seq)
    }
}

/// The response with a part of a list, and the cursor of the next part if there may be more.
pub(super) fn response<T: Serialize + Listed>(page: ListPage, items: &[T]) -> RestResult<Vec<T>, Paged> {
    let mut response = ok(&items)?.response;
    let full = page.limit.is_some_and(|limit| items.len() >= limit as usize);
    let length = http_body::Body::size_hint(response.body()).exact();
    let whole = !full && length.is_some_and(|length| length < SURELY_WHOLE as u64);
    if let Some(last) = items.last().filter(|_| !whole) {
        // Digits and hyphens only.
        if let Ok(cursor) = HeaderValue::from_str(&last.position().to_string()) {
            response.headers_mut().insert(NEXT, cursor);
        }
    }
    Ok(response.into())
}

/// The response with a part of a list of events, and as its cursor the number of the last one if there may be more.
pub(super) fn events<T: Serialize>(
    limit: u32,
    items: &[T],
    seq: impl Fn(&T) -> u64,
) -> RestResult<Vec<T>, Streamed> {
    let mut response = ok(&items)?.response;
    let most = if limit == 0 { MOST } else { limit.min(MOST) };
    let length = http_body::Body::size_hint(response.body()).exact();
    let whole = items.len() < most as usize && length.is_some_and(|length| length < SURELY_WHOLE as u64);
    if let Some(last) = items.last().filter(|_| !whole) {
        response.headers_mut().insert(NEXT, HeaderValue::from(seq(last)));
    }
    Ok(response.into())
}
