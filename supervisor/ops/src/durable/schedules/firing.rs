//! Starts the programs of schedules that are due. The store says which, by one index: while none is due, there is one timer. A start and
//! the advance of its schedule to the next time are one batch, which is refused if anybody else has changed the schedule: a time starts
//! one execution, also if the supervisor is killed before or after it.
//!
//! The first of the times that passed while no supervisor ran starts an execution, late; the others are passed over. A start that fails is
//! recorded, and the schedule goes on with its next time.

use super::{change_of, times, with_variables};
use crate::errors::stored;
use crate::ops::VerbCall;
use crate::{Caller, Ops};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use uuid::Uuid;
use vm_system_protocol::control::{ErrorCode, OpError, ProgramStart, Verb as _};
use vm_system_protocol::ids::{ExecutionId, ScheduleId};
use vm_system_protocol::model::{FailedStart, Overlap, ScheduledStart, SkippedTime};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    DueSchedule, Entity, Owner, Rejection, ScheduleChange, ScheduleRow, Scope, StoreError, Write,
};
use vm_system_runtime::OwnerRole;

/// Schedules that are read at once.
const ROWS: u32 = 64;
/// Starts at a time.
const STARTS: usize = 64;
/// Starts of one owner at a time: its programs may wait for workers, and the schedules of others must not wait for that.
const STARTS_OF_ONE: usize = 4;
/// Time until a schedule is tried again of which nothing could be stored.
const AGAIN: Duration = Duration::from_secs(5);
/// Time between two looks for what is due while starts are in progress.
const LOOK: Duration = Duration::from_secs(1);
/// Time until a start is tried again that found no worker or no memory, if its schedule has no other time before (milliseconds).
const NO_CAPACITY_MS: i64 = 60_000;
/// Longest message of an error that is stored with its schedule (bytes).
const MESSAGE_BYTES: usize = 500;

/// The starts in progress.
#[derive(Default)]
struct Starts {
    tasks: JoinSet<ScheduleId>,
    owners: HashMap<ScheduleId, Owner>,
}

impl Starts {
    fn may_begin(&self, due: &DueSchedule) -> bool {
        let of_one = self.owners.values().filter(|owner| **owner == due.owner).count();
        !self.owners.contains_key(&due.id) && of_one < STARTS_OF_ONE && self.owners.len() < STARTS
    }
}

/// A time that is to start an execution.
struct DueTime {
    time: Timestamp,
    /// The next time of the schedule from then on.
    next_at: Option<Timestamp>,
    /// It has waited for the end of another execution.
    is_queued: bool,
}

/// The change of a schedule of which a start failed: it goes on with its next time. Without capacity the same time is tried once more
/// before that: a busy moment should not cost a whole night's run.
fn change_after_failure(
    row: ScheduleRow,
    due: &DueTime,
    failed: FailedStart,
    has_no_capacity: bool,
) -> ScheduleChange {
    let again = Timestamp(failed.at.0.saturating_add(NO_CAPACITY_MS));
    let mut after = ScheduleRow { next_at: due.next_at, ..row };
    after.state.error = Some(failed);
    if !has_no_capacity || due.next_at.is_some_and(|next| next <= again) {
        return change_of(&after);
    }
    if due.is_queued {
        after.state.queued_for = Some(due.time);
    } else {
        after.next_at = Some(due.time);
    }
    // For no execution: the one that it waited for has ended, and it would be due at once.
    ScheduleChange { due_at: Some(again), waits_for: None, ..change_of(&after) }
}

impl Ops {
    /// Starts what is due, until the supervisor stops.
    pub async fn run_schedules(self: Arc<Self>) {
        let stop = self.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.fire_for_ever() => {}
        }
    }

    async fn fire_for_ever(self: Arc<Self>) {
        let mut starts = Starts::default();
        loop {
            let begun = self.begin_due(&mut starts).await;
            if let Err(error) = begun {
                tracing::warn!(%error, "it is not known which schedules are due");
                tokio::time::sleep(AGAIN).await;
            }
            if starts.owners.is_empty() {
                self.store.schedule_wakes().await;
                continue;
            }
            tokio::select! {
                Some(ended) = starts.tasks.join_next() => match ended {
                    Ok(id) => drop(starts.owners.remove(&id)),
                    // A bug: the others go on.
                    Err(error) => {
                        tracing::error!(%error, "the start of a schedule was interrupted");
                        starts.owners.clear();
                    }
                },
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Begins the starts of all that is due, as many as may be in progress.
    async fn begin_due(self: &Arc<Self>, starts: &mut Starts) -> Result<(), StoreError> {
        let mut after = (Timestamp(i64::MIN), ScheduleId::from_bytes([0; 16]));
        let until = self.store.now();
        loop {
            let due = self.store.due_schedules(after, until, ROWS).await?;
            let is_last = due.len() < ROWS as usize;
            for due in due {
                after = (due.due_at, due.id);
                if starts.owners.len() >= STARTS {
                    return Ok(());
                }
                if !starts.may_begin(&due) {
                    continue;
                }
                let (ops, id) = (Arc::clone(self), due.id);
                starts.owners.insert(id, due.owner);
                starts.tasks.spawn(async move {
                    if let Err(error) = ops.fire(id).await {
                        tracing::warn!(schedule = %id, %error, "a schedule that is due is tried again");
                        // It is due still, and would be tried again at once.
                        tokio::time::sleep(AGAIN).await;
                    }
                    id
                });
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Does what is due. An error: nothing was stored, and it is still due.
    async fn fire(&self, id: ScheduleId) -> Result<(), OpError> {
        let Some(row) = self.store.schedule(&Scope::All, id).await.map_err(stored)? else { return Ok(()) };
        let mut row = *row;
        let running = self.unfinished_of(&row).await.map_err(stored)?;
        if let Some(time) = row.state.queued_for.filter(|_| running.is_none()) {
            row.state.queued_for = None;
            let due = DueTime { time, next_at: row.next_at, is_queued: true };
            return self.start_due(row, due).await;
        }
        let now = self.store.now();
        let rule = &row.spec.rule;
        let Some(time) = row.next_at.filter(|at| times::with_jitter(rule, id, *at) <= now) else {
            // It is not due: the position in the index was.
            return self.store_change(change_of(&row)).await;
        };
        let next_at = times::next_after(rule, row.created_at, now.max(time));
        let due = DueTime { time, next_at, is_queued: false };
        match (running, rule.overlap) {
            (None, _) => self.start_due(row, due).await,
            (Some(running), Overlap::Cancel) => {
                self.cancel_program(running).await?;
                self.start_due(row, due).await
            }
            (Some(_), Overlap::Queue) if row.state.queued_for.is_none() => {
                row.state.queued_for = Some(time);
                self.store_change(change_of(&ScheduleRow { next_at, ..row })).await
            }
            (Some(running), overlap) => {
                let reason = match overlap {
                    Overlap::Queue => format!("an earlier time waits for the end of execution {running}"),
                    _ => format!("execution {running} had not ended"),
                };
                row.state.skipped = Some(SkippedTime { scheduled_for: time, reason });
                self.store_change(change_of(&ScheduleRow { next_at, ..row })).await
            }
        }
    }

    /// Starts an execution for a time, or records why that failed.
    async fn start_due(&self, row: ScheduleRow, due: DueTime) -> Result<(), OpError> {
        let started = match self.owner_as_caller(&row.owner) {
            Ok(caller) => {
                let call = VerbCall::of_nobody(&caller, ProgramStart::NAME, Uuid::now_v7());
                Box::pin(self.start_scheduled(&call, &row, due.next_at, due.time)).await
            }
            Err(error) => Err(error),
        };
        let Err(error) = started else { return Ok(()) };
        if error.code == ErrorCode::ShuttingDown {
            return Err(error);
        }
        let mut message = error.message;
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
        let (at, code) = (self.store.now(), error.code.as_str().to_owned());
        let failed = FailedStart { scheduled_for: due.time, at, code, message };
        tracing::warn!(schedule = %row.id, owner = %row.owner, code = failed.code, "a scheduled start failed");
        let has_no_capacity = error.code == ErrorCode::CapacityExceeded;
        self.store_change(change_after_failure(row, &due, failed, has_no_capacity)).await
    }

    /// Starts an execution of a schedule, and changes the schedule with it.
    pub(super) async fn start_scheduled(
        &self,
        call: &VerbCall<'_>,
        row: &ScheduleRow,
        next_at: Option<Timestamp>,
        time: Timestamp,
    ) -> Result<ExecutionId, OpError> {
        let now = self.store.now();
        let execution_id = ExecutionId::from_uuid(call.subject);
        // A time that waited in the queue is late by that; a start on request never is.
        let due = times::with_jitter(&row.spec.rule, row.id, time);
        let late_ms = u64::try_from(now.0.saturating_sub(due.0)).unwrap_or(0);
        let mut after = ScheduleRow { next_at, ..row.clone() };
        after.state.last = Some(ScheduledStart { execution_id, scheduled_for: time, late_ms });
        after.state.error = None;
        let env = with_variables(&row.spec.start.env, &row.name, time, late_ms);
        let start = ProgramStart { env, wait: false, ..row.spec.start.clone() };
        let change = Write::ScheduleChange(Box::new(change_of(&after)));
        self.start_program(call, start, Some(change)).await?;
        Ok(execution_id)
    }

    /// The last execution of a schedule, if it has not ended.
    pub(super) async fn unfinished_of(&self, row: &ScheduleRow) -> Result<Option<ExecutionId>, StoreError> {
        let Some(last) = &row.state.last else { return Ok(None) };
        let found = self.store.run_by_id(&Scope::All, last.execution_id).await?.pop();
        let unfinished = found.filter(|run| !run.row.execution.status.is_final());
        Ok(unfinished.map(|run| run.row.execution.id))
    }

    /// Stores a change; one that was decided for an earlier state is given up.
    async fn store_change(&self, change: ScheduleChange) -> Result<(), OpError> {
        match self.store.apply(Write::ScheduleChange(Box::new(change))).await {
            Ok(_) | Err(StoreError::Rejected(Rejection::Conflict(Entity::Schedule))) => Ok(()),
            Err(error) => Err(stored(error)),
        }
    }

    /// The owner of a schedule with the rights that it has now.
    pub(super) fn owner_as_caller(&self, owner: &Owner) -> Result<Caller, OpError> {
        let admin = match self.runtime.role_of(owner) {
            OwnerRole::Administrator => true,
            OwnerRole::User => false,
            OwnerRole::Revoked => {
                let message = format!("{owner} may not use this supervisor any more");
                return Err(OpError::new(ErrorCode::NotPermitted, message));
            }
        };
        Ok(Caller { owner: owner.clone(), admin, api: "schedule" })
    }
}

#[cfg(test)]
mod tests {
    use super::{DueTime, NO_CAPACITY_MS, STARTS_OF_ONE, Starts, change_after_failure};
    use vm_system_protocol::control::ProgramStart;
    use vm_system_protocol::ids::{ExecutionId, ScheduleId};
    use vm_system_protocol::model::{FailedStart, Overlap, ScheduleRule, ScheduledStart};
    use vm_system_protocol::time::Timestamp;
    use vm_system_record::{DueSchedule, Owner, ScheduleRow, ScheduleSpec, ScheduleState};

    const TIME: Timestamp = Timestamp(1_000);
    const NOW: Timestamp = Timestamp(1_500);

    fn row() -> ScheduleRow {
        let rule = ScheduleRule {
            cron: Some("@daily".to_owned()),
            every_ms: None,
            time_zone: "UTC".to_owned(),
            overlap: Overlap::Queue,
            jitter_ms: 0,
        };
        let execution_id = ExecutionId::from_bytes([2; 16]);
        let last = Some(ScheduledStart { execution_id, scheduled_for: Timestamp(0), late_ms: 0 });
        ScheduleRow {
            id: ScheduleId::from_bytes([1; 16]),
            owner: Owner::new("alice"),
            name: "s".to_owned(),
            created_at: Timestamp(0),
            revision: 7,
            next_at: Some(TIME),
            spec: ScheduleSpec { rule, start: ProgramStart::default() },
            state: ScheduleState { last, ..ScheduleState::default() },
        }
    }

    fn failed() -> FailedStart {
        FailedStart { scheduled_for: TIME, at: NOW, code: String::new(), message: String::new() }
    }

    #[test]
    fn schedule_goes_on_after_a_failure_and_waits_a_minute_for_capacity() {
        let (again, far) = (Timestamp(NOW.0 + NO_CAPACITY_MS), Timestamp(86_400_000));
        let soon = Timestamp(again.0 - 1);
        for (next, has_no_capacity, expected) in [
            (far, false, (far, far)),
            (far, true, (TIME, again)),
            (soon, true, (soon, soon)),
            (soon, false, (soon, soon)),
        ] {
            let due = DueTime { time: TIME, next_at: Some(next), is_queued: false };
            let change = change_after_failure(row(), &due, failed(), has_no_capacity);
            assert_eq!((change.next_at, change.due_at), (Some(expected.0), Some(expected.1)), "{next}");
            assert_eq!((change.revision, change.waits_for), (7, None));
            assert_eq!(change.state.error, Some(failed()));
            assert_eq!(change.state.last, row().state.last);
        }
    }

    #[test]
    fn queued_time_without_capacity_stays_in_the_queue_and_waits_for_no_execution() {
        let next = Some(Timestamp(86_400_000));
        let due = DueTime { time: Timestamp(500), next_at: next, is_queued: true };
        let change = change_after_failure(row(), &due, failed(), true);
        assert_eq!((change.next_at, change.waits_for), (next, None));
        assert_eq!(change.due_at, Some(Timestamp(NOW.0 + NO_CAPACITY_MS)));
        assert_eq!(change.state.queued_for, Some(Timestamp(500)));
        let change = change_after_failure(row(), &due, failed(), false);
        assert_eq!((change.state.queued_for, change.due_at), (None, next), "it is given up");
    }

    #[tokio::test]
    async fn starts_of_one_owner_leave_capacity_to_others() {
        let due = |n: u8, owner: &str| DueSchedule {
            due_at: TIME,
            id: ScheduleId::from_bytes([n; 16]),
            owner: Owner::new(owner),
        };
        let mut starts = Starts::default();
        for n in 0..9 {
            let next = due(n, "alice");
            if starts.may_begin(&next) {
                starts.owners.insert(next.id, next.owner);
            }
        }
        assert_eq!(starts.owners.len(), STARTS_OF_ONE);
        assert!(starts.may_begin(&due(10, "bob")) && !starts.may_begin(&due(10, "alice")));
        assert!(!starts.may_begin(&due(0, "bob")), "it is in progress");
    }
}
