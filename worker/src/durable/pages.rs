//! Sending a checkpoint: the pages that changed, in messages of bounded size, then the cause.

use super::{ProgramWorker, send};
use crate::link::Link;
use vm_system_protocol::durable::{Cause, FromDurable, PAGE_BATCH_BYTES, STOP_PAGES_BYTES, StatePage, Stop};

impl ProgramWorker {
    /// Sends a checkpoint of the current state.
    pub(super) fn checkpoint(&mut self, cause: Cause, link: &mut Link) -> Option<()> {
        let (program, state) = (self.program.as_ref()?, self.state.as_mut()?);
        let mut pages = Vec::new();
        // Nothing goes on from an end: its state is not made into pages.
        if !matches!(cause, Cause::Ended(_)) {
            let checkpoint = state.pages_since(program, self.sent);
            (self.sent, pages) = (checkpoint.number, checkpoint.pages);
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for page in pages {
            bytes += page.bytes.len() + 16;
            batch.push(StatePage { number: page.number, bytes: page.bytes });
            if bytes >= PAGE_BATCH_BYTES {
                bytes = 0;
                send(link, FromDurable::Pages(std::mem::take(&mut batch)));
            }
        }
        if bytes > STOP_PAGES_BYTES {
            send(link, FromDurable::Pages(std::mem::take(&mut batch)));
        }
        // The supervisor sends those again that this state does not have.
        self.items.left.clear();
        let applied = std::mem::take(&mut self.items.applied);
        let stop = Stop { cause, cpu_us: self.clock.cpu_us(), heap_bytes: state.heap_bytes(), applied };
        send(link, FromDurable::SmallCheckpoint { pages: batch, stop: Box::new(stop) });
        Some(())
    }
}
