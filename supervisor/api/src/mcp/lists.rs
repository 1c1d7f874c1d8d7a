//! The parts of lists that tools return: at most [`LISTED`] elements, and a cursor behind them.

use super::output::ToolError;
use vm_system_protocol::control::{ListCursor, ListPage, Listed, Period};
use vm_system_protocol::time::Timestamp;

/// Most elements of a list in one response.
pub(super) const LISTED: u32 = 200;

/// Elements behind a cursor, and the cursor behind the last of them if there are more. `part` requests the next ones: a reply may
/// have fewer than were requested, only an empty one is the end.
pub(super) async fn collect<T: Listed>(
    cursor: Option<String>,
    part: impl AsyncFn(ListPage) -> Result<Vec<T>, ToolError>,
) -> Result<(Vec<T>, Option<String>), ToolError> {
    let most = LISTED as usize;
    let mut after = cursor.map(|text| parsed(&text)).transpose()?;
    let mut found: Vec<T> = Vec::new();
    while found.len() <= most {
        let wanted = u32::try_from(most + 1 - found.len()).unwrap_or(LISTED);
        let next = part(ListPage { limit: Some(wanted), after }).await?;
        let Some(last) = next.last() else { return Ok((found, None)) };
        after = Some(last.position());
        found.extend(next);
    }
    found.truncate(most);
    let next = found.last().map(|last| last.position().to_string());
    Ok((found, next))
}

fn parsed(text: &str) -> Result<ListCursor, ToolError> {
    text.parse().map_err(|_| ToolError::invalid("cursor is not the nextCursor of an earlier result"))
}

/// From the arguments `since` and `until`.
pub(super) fn period(since: Option<String>, until: Option<String>) -> Result<Period, ToolError> {
    Ok(Period { since: time("since", since)?, until: time("until", until)? })
}

fn time(name: &str, text: Option<String>) -> Result<Option<Timestamp>, ToolError> {
    let Some(text) = text else { return Ok(None) };
    serde_json::from_value(text.into())
        .map(Some)
        .map_err(|_| ToolError::invalid(format!("{name} must be a time such as 2030-01-31T18:00:00Z")))
}

/// The line about further elements.
pub(super) fn note(next: Option<&String>) -> Option<String> {
    next.map(|next| format!("[truncated: there are more; cursor={next} continues]"))
}
