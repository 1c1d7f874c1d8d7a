//! The parts of lists that tools return: at most [`LISTED`] elements, and a cursor behind them.

use super::output::ToolError;
use vm_system_protocol::control::{ListCursor, ListPage, Listed, Period};
use vm_system_protocol::time::Timestamp;

/// Most elements of a list in one response.
pub(super) const LISTED: u32 = 200;

/// Elements of a list behind a cursor while they are collected: a reply may have fewer than were requested, only an empty one is the
/// end.
pub(super) struct ListParts<T> {
    found: Vec<T>,
    after: Option<ListCursor>,
    is_complete: bool,
}

impl<T: Listed> ListParts<T> {
    pub(super) fn new(cursor: Option<String>) -> Result<Self, ToolError> {
        let after = cursor.map(|text| parsed(&text)).transpose()?;
        Ok(Self { found: Vec::new(), after, is_complete: false })
    }

    /// The page to be requested next: one element more than is returned, to know whether there are more.
    pub(super) fn wanted(&self) -> Option<ListPage> {
        let missing = (LISTED + 1).saturating_sub(u32::try_from(self.found.len()).unwrap_or(u32::MAX));
        (missing > 0 && !self.is_complete).then_some(ListPage { limit: Some(missing), after: self.after })
    }

    pub(super) fn add(&mut self, part: Vec<T>) {
        self.is_complete = part.is_empty();
        self.after = part.last().map(Listed::position).or(self.after);
        self.found.extend(part);
    }

    /// The elements, and the cursor behind the last of them if there are more.
    pub(super) fn finish(mut self) -> (Vec<T>, Option<String>) {
        let most = LISTED as usize;
        let is_cut = self.found.len() > most;
        self.found.truncate(most);
        let last = self.found.last().filter(|_| is_cut);
        let next = last.map(|last| last.position().to_string());
        (self.found, next)
    }
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
    text.parse()
        .map(Some)
        .map_err(|_| ToolError::invalid(format!("{name} must be a time such as 2030-01-31T18:00:00Z")))
}

/// The line about further elements.
pub(super) fn note(next: Option<&String>) -> Option<String> {
    next.map(|next| format!("[truncated: there are more; cursor={next} continues]"))
}
