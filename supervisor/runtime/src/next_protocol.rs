//! The message of the next protocol version, of which tests have a build: it is sent to each worker that knows it. Not in the product.

use super::session_task::SessionTask;
use vm_system_protocol::hello::PROTOCOL;
use vm_system_protocol::since;
use vm_system_protocol::worker::ToWorker;

impl SessionTask {
    /// A worker of the build before would exit if it got a message that it cannot decode.
    pub(super) fn announce(&mut self) {
        let (Some(jail), Some(link)) = (&self.worker.jail, &mut self.worker.link) else { return };
        let message = ToWorker::Announce { protocol: PROTOCOL };
        match since::check(&message, jail.build().protocol) {
            Ok(()) => {
                let failed = link.outbox.push(message).map(|error| error.to_string());
                tracing::info!(session = %self.live.id, failed, "the next protocol version is announced");
            }
            Err(unknown) => {
                tracing::info!(session = %self.live.id, %unknown, "the next protocol version is not announced");
            }
        }
    }
}
