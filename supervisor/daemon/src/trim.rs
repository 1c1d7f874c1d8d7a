//! Gives memory that the daemon does not need any more back to the system, when it has nothing to do. The heap keeps what it needed
//! once: a crowd of idle connections, or responses of many megabytes, would be held for ever.

use std::time::Duration;
use tokio::time::sleep;
use vm_system_api::control::ServerState;
use vm_system_sandbox::heap;

/// How often it is looked at while clients are connected, and once more after the last one has left.
const PAUSE: Duration = Duration::from_secs(10);
/// Growth since the last time below which there is nothing to give back (bytes).
const GROWTH_BYTES: u64 = 4 << 20;

/// Runs for as long as the daemon does. Does not wake up while no client is connected.
pub(super) async fn run(state: ServerState) {
    let mut clients = state.clients.watch();
    // The memory that a crowd needed is no measure for the time when it has left.
    let (mut trimmed_bytes, mut idle_bytes) = (0, 0);
    while clients.wait_for(|count| *count > 0).await.is_ok() {
        loop {
            sleep(PAUSE).await;
            let connected = *clients.borrow() > 0;
            // A request in progress would wait for it, and keeps its memory anyway.
            if !state.requests.is_empty() {
                continue;
            }
            let before = if connected { trimmed_bytes } else { idle_bytes };
            let trimmed = tokio::task::spawn_blocking(move || trim(before)).await;
            trimmed_bytes = trimmed.unwrap_or(before);
            if !connected {
                idle_bytes = trimmed_bytes;
                break;
            }
        }
    }
}

/// Trims a heap that has grown since it had this size; its size now (bytes).
fn trim(trimmed_bytes: u64) -> u64 {
    let resident = || heap::resident_bytes().unwrap_or(u64::MAX);
    let before = resident();
    if before < trimmed_bytes.saturating_add(GROWTH_BYTES) {
        return trimmed_bytes.min(before);
    }
    heap::trim();
    let after = resident();
    tracing::debug!(before, after, "unused memory was given back");
    after
}
