//! Items that a program has created, as messages to the supervisor. They are sent before the checkpoint whose state has them.

use super::send;
use crate::link::Link;
use vm_system_cvm::{ItemRequest, NewItem};
use vm_system_protocol::durable::{CreatedItem, FromDurable, ItemContent, PAGE_BATCH_BYTES, PROMPT_BYTES};
use vm_system_protocol::json::JsonText;

/// Sends items that were created by this time of the segment, in messages of bounded size.
pub(super) fn send_new(items: Vec<NewItem>, at_us: u64, link: &mut Link) {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for item in items {
        let item = CreatedItem { number: item.number, at_us, content: content(item.request) };
        bytes += 64 + item.content.bytes();
        batch.push(item);
        if bytes >= PAGE_BATCH_BYTES {
            send(link, FromDurable::Items(std::mem::take(&mut batch)));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        send(link, FromDurable::Items(batch));
    }
}

fn content(request: ItemRequest) -> ItemContent {
    let content = match request {
        ItemRequest::Question { prompt, options } => {
            ItemContent::Question { prompt, options: options.map(JsonText::from_untrusted) }
        }
        ItemRequest::Timer { duration_ms } => ItemContent::Timer { duration_ms },
        ItemRequest::Event { name, timeout_ms, default } => {
            ItemContent::Event { name, timeout_ms, fallback: default.map(JsonText::from_untrusted) }
        }
    };
    if content.bytes() > PROMPT_BYTES {
        let what = if matches!(content, ItemContent::Question { .. }) { "prompt" } else { "default" };
        return ItemContent::Refused { why: format!("the {what} has more than {PROMPT_BYTES} bytes") };
    }
    content
}
