//! Accidents: workers that exit or break the protocol, and supervisors that exit.

use super::World;
use crate::{
    AdoptedExecution, ChannelFault, SessionInput, SessionMachine, WorkerExitStatus, last_before_guard,
};
use std::sync::Arc;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::SessionStatus;
use vm_system_protocol::time::Timestamp;
use vm_system_record::RunningExecutionRow;

impl World {
    pub(super) fn accident(&mut self) {
        let worker_lives = self.machine.has_worker() && self.worker.exited.is_none();
        match self.rng.below(6) {
            0 if self.faults.exits && worker_lives => {
                let exits = [
                    WorkerExitStatus::Signaled(11),
                    WorkerExitStatus::Signaled(9),
                    WorkerExitStatus::Signaled(31),
                    WorkerExitStatus::Signaled(24),
                    WorkerExitStatus::Exited(3),
                    WorkerExitStatus::KeeperLost,
                    WorkerExitStatus::Unknown,
                ];
                let at = self.rng.below(exits.len() as u64) as usize;
                self.worker.exit(exits[at]);
            }
            1 if self.faults.hostile && worker_lives => {
                self.worker.lied = true;
                let fault = match self.rng.below(3) {
                    0 => ChannelFault::Closed,
                    1 => ChannelFault::Stuck,
                    _ => ChannelFault::Violation("an empty packet".to_owned()),
                };
                self.input(SessionInput::ChannelFailed(fault));
            }
            2 if self.faults.adoption => self.supervisor_exits(),
            _ => {}
        }
    }

    /// A new machine adopts the worker with the stored rows: what was queued for the store or for the worker is lost.
    fn supervisor_exits(&mut self) {
        let ready = self.machine.record().status == SessionStatus::Ready
            && self.database.session == Some(SessionStatus::Ready);
        let unharmed = self.worker.exited.is_none() && self.machine.deadline() != Some(0);
        if !(ready && unharmed) {
            return;
        }
        self.note(|| "the supervisor exits".to_owned());
        self.database.supervisor_exits(Timestamp(self.now.unix_ms));
        let running = self.database.running().map(|stored| AdoptedExecution {
            row: RunningExecutionRow {
                execution: stored.record.clone(),
                events: stored.events,
                output_bytes: stored.output_bytes,
                last_event_at: stored.last_ts,
                task: self.database.last_task(stored.record.id).cloned(),
            },
            policy: Arc::clone(&self.policy),
        });
        self.outbox.clear();
        self.loading = None;
        let is_unrecorded = |id: &ExecutionId| !self.database.executions.contains_key(id);
        self.unrecorded.running += u64::from(self.worker.running().as_ref().is_some_and(is_unrecorded));
        self.unrecorded.ended += self.worker.kept_ends().filter(is_unrecorded).count() as u64;
        let stored = self.database.running().map(|stored| stored.record.id);
        let runs_another = self.worker.running().is_some_and(|running| stored != Some(running));
        let facts = self.database.facts.clone().unwrap_or_else(|| self.spec.record.runtime_meta.clone());
        let guard = self.machine.guard().filter(|name| {
            last_before_guard(*name, &facts)
                .is_some_and(|last_before| last_before <= self.database.worker_seq)
        });
        self.checks.forget(&self.database, runs_another, guard.is_some());
        self.host_call = None;
        // The worker carries out an order that it has already.
        let _ = self.worker.fork(&mut self.rng);
        self.fork = None;
        self.adopted = true;
        let mut out = Vec::new();
        self.next_token += 1;
        let nonce = self.next_token;
        let mut spec = self.spec.clone();
        if let Some(facts) = &self.database.facts {
            spec.record.runtime_meta = facts.clone();
        }
        self.restarts.forget();
        self.machine = SessionMachine::adopt(
            spec,
            (self.database.worker_seq, nonce),
            running,
            guard,
            self.now,
            &mut out,
        );
        self.carry_out(out);
    }
}
