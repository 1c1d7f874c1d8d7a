//! The dispatch of an execution to the worker: at once, or when its start is stored (`stored_first`).
//!
//! A client that repeats a request under an idempotency key finds its execution by the row. Without a row the request runs, so such an
//! execution must not reach the worker before its row is committed. It holds the session meanwhile, and no clock of it runs: the
//! store has its own deadline. A worker knows nothing of it: a message about it is a violation.

use super::deadlines::CPU_STEP_MS;
use super::execution::{Current, Running, StopCause};
use super::input::{Now, Refusal, SessionAction, WriteId};
use super::machine::SessionMachine;
use vm_system_protocol::worker::{Execute, ToWorker};

/// An execution that the worker gets when its start is stored.
#[derive(Debug)]
pub(super) struct Withheld {
    /// The batch with its start.
    pub(super) write: WriteId,
    pub(super) execute: Execute,
}

impl SessionMachine {
    /// Sends the worker an execution.
    pub(super) fn dispatch(
        &mut self,
        running: &Running,
        execute: Execute,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        self.peer.repeating = false;
        self.peer.database_restarted = false;
        self.allow_cpu(running, now, out);
        out.push(SessionAction::Send(ToWorker::Execute(Box::new(execute))));
        self.ack_behind_job(out);
    }

    /// Raises the kernel's CPU limit in large steps: the last resort after the worker's limit and this machine's.
    fn allow_cpu(&mut self, running: &Running, now: Now, out: &mut Vec<SessionAction>) {
        let needed_ms = now.cpu_us / 1_000 + u64::from(running.policy.wire.limits.cpu_ms) + 2_000;
        if needed_ms > self.peer.cpu_allowed_ms {
            let total_ms = needed_ms.div_ceil(CPU_STEP_MS) * CPU_STEP_MS;
            self.peer.cpu_allowed_ms = total_ms;
            out.push(SessionAction::AllowCpu { total_ms });
        }
    }

    /// The current execution, if the worker gets it after this batch.
    fn take_withheld(&mut self, write: WriteId) -> Option<(Box<Running>, Execute)> {
        let Some(Current::Running(running)) = &mut self.current else { return None };
        let withheld = running.withheld.take_if(|withheld| withheld.write == write)?;
        match self.current.take() {
            Some(Current::Running(running)) => Some((running, withheld.execute)),
            _ => None,
        }
    }

    /// The start of an execution is stored. If its worker is being killed, its exit ends the execution.
    pub(super) fn start_stored(&mut self, write: WriteId, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() {
            return;
        }
        let Some((mut running, execute)) = self.take_withheld(write) else { return };
        running.begins_now(now);
        self.dispatch(&running, execute, now, out);
        self.current = Some(Current::Running(running));
    }

    /// The start of an execution is lost: nothing of it ran, and nothing will. Whether there was such an execution.
    pub(super) fn start_not_stored(
        &mut self,
        write: WriteId,
        error: &str,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) -> bool {
        let Some((running, _)) = self.take_withheld(write) else { return false };
        if let Some(token) = running.token {
            Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
        }
        if self.channel_usable() {
            self.rest(now);
        }
        true
    }

    /// Ends an execution that the worker does not have.
    pub(super) fn stop_withheld(&mut self, stop: StopCause, now: Now, out: &mut Vec<SessionAction>) -> bool {
        let is_withheld = |current: &mut Current| matches!(current, Current::Running(running) if running.withheld.is_some());
        let Some(Current::Running(running)) = self.current.take_if(is_withheld) else { return false };
        self.end_withheld(*running, stop, now, out);
        true
    }
}
