//! The dispatch of an execution to the worker: at once, or when its start is stored (`stored_first`) and its types are checked.
//!
//! A client that repeats a request under an idempotency key finds its execution by the row. Without a row the request runs, so such an
//! execution must not reach the worker before its row is committed. It holds the session meanwhile, and no clock of it runs: the
//! store has its own deadline. A worker knows nothing of it: a message about it is a violation.

use super::close::StopCause;
use super::deadlines::CPU_STEP_MS;
use super::execution::{Current, Running};
use super::finish::ExecutionOutcome;
use super::input::{Now, Refusal, SessionAction, WriteId};
use super::machine::SessionMachine;
use vm_system_protocol::worker::{Execute, ToWorker};

/// An execution that the worker does not have yet.
#[derive(Debug)]
pub(super) struct Withheld {
    /// The batch with its start, if that is awaited.
    pub(super) write: Option<WriteId>,
    /// The result of the check of its types is awaited.
    pub(super) checking: bool,
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
        self.peer.adoption.end_of_previous();
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

    /// Takes the current execution, if the worker does not have it and this holds.
    fn take_withheld(&mut self, holds: impl Fn(&Withheld) -> bool) -> Option<Box<Running>> {
        let is_meant = |current: &mut Current| match current {
            Current::Running(running) => running.withheld.as_deref().is_some_and(&holds),
            Current::Loading(_) | Current::Forking(_) => false,
        };
        match self.current.take_if(is_meant) {
            Some(Current::Running(running)) => Some(running),
            _ => None,
        }
    }

    /// Sends the worker the current execution, if nothing is awaited any more.
    pub(super) fn release_withheld(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        let is_due = |withheld: &Withheld| withheld.write.is_none() && !withheld.checking;
        let Some(mut running) = self.take_withheld(is_due) else { return };
        let Some(withheld) = running.withheld.take() else { return };
        running.begins_now(now);
        self.dispatch(&running, withheld.execute, now, out);
        self.current = Some(Current::Running(running));
    }

    /// The start of an execution is stored. If its worker is being killed, its exit ends the execution.
    pub(super) fn start_stored(&mut self, write: WriteId, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() {
            return;
        }
        let Some(Current::Running(running)) = &mut self.current else { return };
        let Some(withheld) = &mut running.withheld else { return };
        if withheld.write.take_if(|awaited| *awaited == write).is_some() {
            self.release_withheld(now, out);
        }
    }

    /// The start of an execution is lost: nothing of it ran, and nothing will. Whether there was such an execution.
    pub(super) fn start_not_stored(
        &mut self,
        write: WriteId,
        error: &str,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) -> bool {
        let Some(running) = self.take_withheld(|withheld| withheld.write == Some(write)) else {
            return false;
        };
        if running.has_host_work() {
            out.push(SessionAction::DropHostWork);
        }
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
        let Some(running) = self.take_withheld(|_| true) else { return false };
        if running.has_host_work() {
            out.push(SessionAction::DropHostWork);
        }
        let ending = ExecutionOutcome::stopped(stop, &running);
        self.end_withheld(*running, ending, Vec::new(), now, out);
        true
    }
}
