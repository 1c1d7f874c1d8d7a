//! The exit of a daemon that was started on demand: after a time without clients and executions.
//!
//! Executions that wait for an answer are in the store and need no process, unless their deadline is near.

use super::assembly::Assembly;
use std::time::Duration;
use tokio::time::timeout;
use vm_system_api::control::ClientCount;

/// Returns when the daemon has been idle for `idle`.
pub(super) async fn wait(clients: &ClientCount, assembly: &Assembly, idle: Duration) {
    let mut connected = clients.watch();
    loop {
        // The sender exists as long as the server state.
        if connected.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        let came = timeout(idle, connected.wait_for(|count| *count > 0)).await.is_ok();
        if !came && assembly.is_idle().await {
            return;
        }
    }
}
