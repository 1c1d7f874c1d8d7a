//! Restarts of the session: their intensity and their back-off.

use vm_system_protocol::limits::{RECOVERIES, RECOVERY_WINDOW_MS, RESTART_BACK_OFF_MS};

#[derive(Default)]
pub(super) struct Restarts {
    /// A worker is to replace one that has exited.
    pub(super) is_under_way: bool,
    /// When the last worker exited, or could not be started (`mono_ms`).
    pub(super) exited_at: u64,
    /// Workers that replaced others.
    pub(super) count: u64,
    /// When each worker exited that was replaced (`mono_ms`).
    exits: Vec<u64>,
}

impl Restarts {
    /// A worker is to replace the last one; one of another build did not crash.
    pub(super) fn ordered(&mut self, now_ms: u64, is_of_other_build: bool) -> Result<(), String> {
        self.is_under_way = true;
        if is_of_other_build {
            return Ok(());
        }
        self.exits.push(self.exited_at);
        let recent = self.exits.iter().filter(|at| self.exited_at - **at < RECOVERY_WINDOW_MS).count();
        if recent > RECOVERIES {
            return Err(format!("restart {recent} within the window"));
        }
        // The first follows at once, the second after a pause, the third after twice this pause.
        let pause_ms = if recent < 2 { 0 } else { RESTART_BACK_OFF_MS << (recent - 2) };
        if now_ms - self.exited_at < pause_ms {
            return Err(format!("restart {recent} without its back-off of {pause_ms} ms"));
        }
        Ok(())
    }

    /// The supervisor exited, and the next one knows nothing of them.
    pub(super) fn forget(&mut self) {
        self.exits.clear();
    }
}
