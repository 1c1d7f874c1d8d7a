//! Items that a program has created, as messages to the supervisor. They are sent before the checkpoint whose state has them.

use super::send;
use crate::link::Link;
use vm_system_protocol::durable::{FromDurable, ItemRequest, NewItem, PAGE_BATCH_BYTES, PROMPT_BYTES};
use vm_system_protocol::json::JsonText;

/// Sends items that were created by this time of the segment, in messages of bounded size.
pub(super) fn send_new(items: Vec<vm_system_cvm::NewItem>, at_us: u64, link: &mut Link) {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for item in items {
        let item = NewItem { number: item.number, at_us, request: request(item.request) };
        bytes += 64 + item.request.bytes();
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

fn request(item: vm_system_cvm::ItemRequest) -> ItemRequest {
    use vm_system_cvm::ItemRequest as Item;
    let request = match item {
        Item::Question { prompt, options } => {
            ItemRequest::Question { prompt, options: options.map(JsonText::from_untrusted) }
        }
        Item::Timer { duration_ms } => ItemRequest::Timer { duration_ms },
        Item::Event { name, timeout_ms, default } => {
            ItemRequest::Event { name, timeout_ms, fallback: default.map(JsonText::from_untrusted) }
        }
    };
    if request.bytes() > PROMPT_BYTES {
        let what = if matches!(request, ItemRequest::Question { .. }) { "prompt" } else { "default" };
        return ItemRequest::Refused { why: format!("the {what} has more than {PROMPT_BYTES} bytes") };
    }
    request
}
