//! The invariants, from outside: inspects every action, and the end of each history.

use super::database::Database;
use crate::{CopyId, SessionAction, SessionReply};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::ExecutionStatus;
use vm_system_protocol::worker::ToWorker;
use vm_system_record::Write;

#[derive(Default)]
pub(super) struct Checks {
    requested: BTreeSet<u64>,
    answered: BTreeSet<u64>,
    /// Next event number of each execution, as written.
    next_seq: BTreeMap<ExecutionId, u64>,
    last_ts: BTreeMap<ExecutionId, i64>,
    /// Next event number of each execution, as published.
    next_published: BTreeMap<ExecutionId, u64>,
    publish_ended: BTreeSet<ExecutionId>,
    dispatched: Option<ExecutionId>,
    /// An adopted worker ran an execution other than the stored one, and has got no other since.
    runs_another: bool,
    began: BTreeSet<ExecutionId>,
    /// Executions that are dispatched after their commit.
    pub(super) stored_first: BTreeSet<ExecutionId>,
    /// Executions whose types are being checked.
    pub(super) checking: BTreeSet<ExecutionId>,
    ended: BTreeSet<ExecutionId>,
    last_write: u64,
    killed: bool,
    session_ended: bool,
    released: bool,
    host_call: Option<u64>,
    /// A fork was ordered, and is not over.
    forking: bool,
    /// The child of the ordered fork was taken.
    taken: bool,
    copies: HashSet<CopyId>,
    /// The next worker continues from a copy, and gets its `Start`.
    restoring: bool,
    /// Executions that a client had cancelled while they ran.
    cancelled: BTreeSet<ExecutionId>,
    /// The worker's flag was set since the last dispatch.
    interrupted: bool,
    /// The worker is stopped.
    stopped: bool,
}

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

impl Checks {
    pub(super) fn requested(&mut self, token: u64) {
        self.requested.insert(token);
    }

    /// The supervisor exited: its callers and its memory are lost.
    pub(super) fn forget(&mut self, database: &Database, runs_another: bool, guard_stays: bool) {
        self.runs_another = runs_another;
        self.answered.extend(self.requested.iter().copied());
        self.last_write = 0;
        self.host_call = None;
        self.forking = false;
        // Whoever takes it over lets it run.
        self.stopped = false;
        self.copies.retain(|copy| guard_stays && *copy == CopyId::Guard);
        self.cancelled.clear();
        self.next_seq.clear();
        self.next_published.clear();
        self.ended.clear();
        self.publish_ended.clear();
        for (id, stored) in &database.executions {
            self.next_seq.insert(*id, stored.events + 1);
            self.next_published.insert(*id, stored.events + 1);
            self.last_ts.insert(*id, stored.last_ts.0);
            if stored.record.status.is_final() {
                self.ended.insert(*id);
                self.publish_ended.insert(*id);
            }
        }
        self.dispatched = database.running().map(|stored| stored.record.id);
    }

    /// A running execution was cancelled, and the step is over.
    pub(super) fn cancelled(&mut self, execution: ExecutionId) -> Result<(), String> {
        self.cancelled.insert(execution);
        let is_withheld = self.dispatched != Some(execution);
        if is_withheld || self.interrupted || self.killed {
            return Ok(());
        }
        Err("cancelled without an interrupt".to_owned())
    }

    /// The worker sent a message with a wrong sequence number, and the step is over.
    pub(super) fn out_of_order(&self) -> Result<(), String> {
        if self.killed || self.session_ended {
            return Ok(());
        }
        Err("a skipped sequence number was accepted".to_owned())
    }

    pub(super) fn action(&mut self, action: &SessionAction, database: &Database) -> Result<(), String> {
        if self.released && !matches!(action, SessionAction::Reply(_)) {
            return Err("more than a reply after Release".to_owned());
        }
        match action {
            SessionAction::Send(ToWorker::Execute(_) | ToWorker::Shutdown) | SessionAction::Fork { .. }
                if self.stopped =>
            {
                Err("an order for a stopped worker".to_owned())
            }
            SessionAction::Signal(SIGSTOP) if self.dispatched.is_some() || self.forking || self.killed => {
                Err("a worker was stopped that is busy or was killed".to_owned())
            }
            SessionAction::Signal(signal @ (SIGSTOP | SIGCONT)) => {
                let stops = *signal == SIGSTOP;
                if std::mem::replace(&mut self.stopped, stops) == stops {
                    return Err("a worker was stopped or continued twice".to_owned());
                }
                Ok(())
            }
            SessionAction::Send(message) => self.send(message, database),
            SessionAction::Interrupt if self.dispatched.is_none() && !self.runs_another => {
                Err("Interrupt while nothing runs".to_owned())
            }
            SessionAction::Interrupt if !self.killed && !self.session_ended => {
                self.interrupted = true;
                Ok(())
            }
            SessionAction::Interrupt | SessionAction::AllowCpu { .. }
                if self.killed || self.session_ended =>
            {
                Err("an action for a worker after its end".to_owned())
            }
            SessionAction::Kill if self.killed && !self.restoring => Err("Kill twice".to_owned()),
            SessionAction::Kill => {
                (self.killed, self.restoring) = (true, false);
                Ok(())
            }
            SessionAction::Fork { .. } => self.fork(),
            SessionAction::ForkTaken if self.forking && !self.taken && !self.killed => {
                self.taken = true;
                Ok(())
            }
            SessionAction::ForkTaken => Err("a child was taken without a fork".to_owned()),
            SessionAction::Freeze { copy } if self.forking && !self.taken && !self.killed => {
                self.taken = true;
                if self.copies.insert(*copy) { Ok(()) } else { Err("a copy was frozen twice".to_owned()) }
            }
            SessionAction::Freeze { .. } => Err("a child was frozen without a fork".to_owned()),
            SessionAction::DropCopy { copy } if self.copies.remove(copy) => Ok(()),
            SessionAction::DropCopy { .. } => Err("a copy was dropped that does not exist".to_owned()),
            SessionAction::ForkCopy { copy } if self.forking || self.dispatched.is_some() => {
                Err(format!("{copy:?} replaces a worker that is busy"))
            }
            SessionAction::ForkCopy { copy } if !self.copies.contains(copy) => {
                Err(format!("{copy:?} does not exist"))
            }
            SessionAction::Respawn if self.forking || self.dispatched.is_some() => {
                Err("a worker that is busy is replaced".to_owned())
            }
            SessionAction::ForkCopy { .. } | SessionAction::Respawn => {
                (self.restoring, self.interrupted, self.runs_another) = (true, false, false);
                self.stopped = false;
                Ok(())
            }
            SessionAction::ForksOver if std::mem::take(&mut self.forking) => Ok(()),
            SessionAction::ForksOver => Err("forks are over that were not ordered".to_owned()),
            SessionAction::HostCall { call, .. } => match self.host_call.replace(*call) {
                Some(other) => Err(format!("host call {call} while {other} is under way")),
                None => Ok(()),
            },
            SessionAction::DropHostWork => {
                self.host_call = None;
                Ok(())
            }
            SessionAction::CheckTypes { execution, .. } => {
                self.checking.insert(*execution);
                Ok(())
            }
            SessionAction::Write { id, batch, .. } => {
                if id.0 <= self.last_write {
                    return Err("write ids must grow".to_owned());
                }
                self.last_write = id.0;
                batch.iter().try_for_each(|write| self.write(write, database))
            }
            SessionAction::Reply(reply) => {
                let caller = reply.caller();
                if !self.requested.contains(&caller) || !self.answered.insert(caller) {
                    return Err(format!("token {caller} got two replies or was never used"));
                }
                Self::reply(reply, database)
            }
            SessionAction::Publish { execution, events } => {
                let next = self.next_published.entry(*execution).or_insert(1);
                for event in events.iter() {
                    if event.seq != *next {
                        return Err(format!("published event {} instead of {next}", event.seq));
                    }
                    *next += 1;
                }
                Ok(())
            }
            SessionAction::PublishEnd { execution } => {
                if self.publish_ended.insert(*execution) {
                    return Ok(());
                }
                Err("PublishEnd twice".to_owned())
            }
            SessionAction::Release => {
                self.released = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn fork(&mut self) -> Result<(), String> {
        if self.killed || self.session_ended || self.dispatched.is_some() {
            return Err("a fork of a worker that is busy or has exited".to_owned());
        }
        if self.forking && !self.taken {
            return Err("a fork while another is under way".to_owned());
        }
        self.forking = true;
        self.taken = false;
        Ok(())
    }

    fn send(&mut self, message: &ToWorker, database: &Database) -> Result<(), String> {
        if self.restoring {
            if !matches!(message, ToWorker::Start(_)) {
                return Err("a message between two workers".to_owned());
            }
            (self.restoring, self.killed) = (false, false);
        }
        if self.killed || self.session_ended {
            return Err("a message to a worker that was killed".to_owned());
        }
        match message {
            ToWorker::Execute(_) | ToWorker::Shutdown if self.forking => {
                Err("a message to a worker that forks".to_owned())
            }
            ToWorker::Execute(job) => {
                if let Some(other) = self.dispatched {
                    return Err(format!("dispatched while {other} runs"));
                }
                if self.cancelled.contains(&job.execution) {
                    return Err("dispatched after it was cancelled".to_owned());
                }
                if !self.began.contains(&job.execution) {
                    return Err("dispatched before its start was written".to_owned());
                }
                if self.checking.contains(&job.execution) {
                    return Err("dispatched before its types were checked".to_owned());
                }
                if self.stored_first.contains(&job.execution)
                    && !database.executions.contains_key(&job.execution)
                {
                    return Err("dispatched before its start was stored".to_owned());
                }
                self.dispatched = Some(job.execution);
                self.runs_another = false;
                self.interrupted = false;
                Ok(())
            }
            ToWorker::HostReply { call, .. } => {
                self.host_call = self.host_call.filter(|pending| pending != call);
                Ok(())
            }
            ToWorker::Ack { seq } if *seq > database.let_go_seq => {
                Err(format!("Ack {seq} before its commit, {}", database.let_go_seq))
            }
            ToWorker::Shutdown if self.dispatched.is_some() => {
                Err("Shutdown while an execution runs".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, write: &Write, database: &Database) -> Result<(), String> {
        match write {
            Write::ExecutionStarted { execution: record, .. } => {
                let again = !self.began.insert(record.id);
                if again && !database.holes.contains(&record.id) {
                    return Err("an execution began twice".to_owned());
                }
                if self.session_ended && !again {
                    return Err("an execution began after the session's end".to_owned());
                }
            }
            Write::Events(events) => {
                for event in events.iter() {
                    let next = self.next_seq.entry(event.execution_id).or_insert(1);
                    if event.seq != *next {
                        return Err(format!("event {} instead of {next}", event.seq));
                    }
                    *next += 1;
                    let last = self.last_ts.entry(event.execution_id).or_insert(i64::MIN);
                    if event.ts.0 < *last {
                        return Err("time goes back between events".to_owned());
                    }
                    *last = event.ts.0;
                    if self.ended.contains(&event.execution_id) {
                        return Err("an event after its execution's end".to_owned());
                    }
                }
            }
            Write::ExecutionEnded(record) => {
                let again = !self.ended.insert(record.id);
                if again && !(record.degraded && database.holes.contains(&record.id)) {
                    return Err("an execution ended twice".to_owned());
                }
                if !record.status.is_final() || record.ended_at.is_none() {
                    return Err("an end with an unfinished status".to_owned());
                }
                let error_fits = (record.status == ExecutionStatus::Ok) == record.error.is_none();
                if !error_fits {
                    return Err(format!("status {} with error {:?}", record.status, record.error));
                }
                let events = self.next_seq.get(&record.id).map_or(0, |next| next - 1);
                if record.metrics.events != events {
                    return Err(format!("{} events counted, {events} written", record.metrics.events));
                }
                if record.status == ExecutionStatus::Ok && self.cancelled.contains(&record.id) {
                    return Err("cancelled, and yet ok".to_owned());
                }
                if self.dispatched == Some(record.id) {
                    self.dispatched = None;
                }
            }
            Write::SessionEnd { reason, .. } => {
                let again = std::mem::replace(&mut self.session_ended, true);
                if again && !database.end_lost {
                    return Err("the session ended twice".to_owned());
                }
                if let Some(running) = self.dispatched {
                    return Err(format!("the session ended ({reason}) before its execution {running}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn reply(reply: &SessionReply, database: &Database) -> Result<(), String> {
        let SessionReply::Executed(_, Ok(executed)) = reply else { return Ok(()) };
        let Some(stored) = database.executions.get(&executed.record.id) else {
            return Err("a reply before the execution is stored".to_owned());
        };
        if executed.record.status.is_final() && stored.record.status != executed.record.status {
            return Err(format!(
                "a reply with {} while {} is stored",
                executed.record.status, stored.record.status
            ));
        }
        if let Some(batches) = &executed.events {
            let count: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
            if count != executed.record.metrics.events {
                return Err("a reply without all events".to_owned());
            }
        }
        Ok(())
    }

    /// Checks at the end of the history.
    pub(super) fn at_the_end(&self, database: &Database) -> Result<(), String> {
        if !self.released {
            return Err("the session was never released".to_owned());
        }
        if self.forking {
            return Err("a fork is left behind".to_owned());
        }
        if let Some(token) = self.requested.difference(&self.answered).next() {
            return Err(format!("token {token} never got a reply"));
        }
        if let Some(silent) = database.silent {
            return Err(format!("{silent} is the first execution after a restart, and does not say so"));
        }
        if let Some(row) = database.pending() {
            return Err(format!("task {} of {} is left behind", row.id, row.execution));
        }
        for (id, stored) in &database.executions {
            if !stored.record.status.is_final() {
                return Err(format!("{id} is still {}", stored.record.status));
            }
            let hole = database.holes.contains(id);
            if stored.record.metrics.events != stored.events && !hole {
                return Err(format!(
                    "{id} has {} events stored of {}",
                    stored.events, stored.record.metrics.events
                ));
            }
            if hole && !stored.record.degraded && !database.unmarked.contains(id) {
                return Err(format!("{id} has lost a write and is not marked as degraded"));
            }
            if !self.publish_ended.contains(id) && self.began.contains(id) {
                return Err(format!("followers of {id} wait for ever"));
            }
        }
        Ok(())
    }
}
