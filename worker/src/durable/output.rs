//! Console lines as events, sent in batches. Knows nothing of limits.

use super::send;
use crate::link::Link;
use vm_system_cvm::Level;
use vm_system_protocol::durable::FromDurable;
use vm_system_protocol::limits::EVENT_BATCH_BYTES;
use vm_system_protocol::model::{ConsoleLevel, EventPayload};
use vm_system_protocol::worker::WorkerEvent;

/// Approximate size of an event without its text (bytes).
const EVENT_OVERHEAD: usize = 32;

/// The events that are not sent yet.
#[derive(Default)]
pub(super) struct EventBatch {
    events: Vec<WorkerEvent>,
    bytes: usize,
}

impl EventBatch {
    /// Adds a piece of a line ([`console_piece`](vm_system_protocol::model::console_piece)).
    pub(super) fn take(&mut self, level: Level, text: &str, more: bool, at_us: u64, link: &mut Link) {
        let level = match level {
            Level::Log => ConsoleLevel::Log,
            Level::Warn => ConsoleLevel::Warn,
            Level::Error => ConsoleLevel::Error,
            Level::Debug => ConsoleLevel::Debug,
        };
        self.push(EventPayload::Console { level, text: text.to_owned(), more }, at_us, link);
    }

    /// Adds an event.
    pub(super) fn push(&mut self, payload: EventPayload, at_us: u64, link: &mut Link) {
        self.bytes += payload.output_bytes() as usize + EVENT_OVERHEAD;
        self.events.push(WorkerEvent { at_us, payload });
        if self.bytes >= EVENT_BATCH_BYTES {
            self.flush(link);
        }
    }

    /// Sends the batch, if it is not empty.
    pub(super) fn flush(&mut self, link: &mut Link) {
        self.bytes = 0;
        if !self.events.is_empty() {
            send(link, FromDurable::Events(std::mem::take(&mut self.events)));
        }
    }
}

/// Cuts a text to `most` bytes; the end says how many it had.
pub(super) fn truncate(text: &mut String, most: usize) {
    if text.len() > most {
        let mark = format!("... [truncated: the text has {} bytes]", text.len());
        text.truncate(text.floor_char_boundary(most - mark.len()));
        text.push_str(&mark);
    }
}

/// Cuts a text to about `most` bytes and marks it.
pub(super) fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let mut end = most;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}
