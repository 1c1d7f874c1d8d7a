//! The end of a daemon that was started on demand: when nobody was connected and nothing ran for a while.
//!
//! What waits for an answer is on disk and needs no process; what waits for a moment that comes soon does.

use super::assembly::Assembly;
use std::time::Duration;
use tokio::time::timeout;
use vm_system_api::control::Presence;

/// Returns when the daemon has been of no use for `idle`.
pub(super) async fn wait(presence: &Presence, assembly: &Assembly, idle: Duration) {
    let mut connected = presence.watch();
    loop {
        // The sender lives as long as the door does.
        if connected.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        let came = timeout(idle, connected.wait_for(|count| *count > 0)).await.is_ok();
        if !came && assembly.is_idle().await {
            return;
        }
    }
}
