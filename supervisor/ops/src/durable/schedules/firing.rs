//! Starts the programs of schedules that are due. The store says which, by one index: while none is due, there is one timer. A start and
//! the advance of its schedule to the next time are one batch, which is refused if anybody else has changed the schedule: a time starts
//! one execution, also if the supervisor is killed before or after it.
//!
//! The first of the times that passed while no supervisor ran starts an execution, late; the others are passed over. A start that fails is
//! recorded, and the schedule goes on with its next time.

use super::{ENV_PREFIX, change_of, times};
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
        if let Some(queued_for) = row.state.queued_for.filter(|_| running.is_none()) {
            row.state.queued_for = None;
            let next_at = row.next_at;
            return self.start_due(row, next_at, queued_for).await;
        }
        let now = self.store.now();
        let rule = &row.spec.rule;
        let Some(time) = row.next_at.filter(|at| times::with_jitter(rule, id, *at) <= now) else {
            // It is not due: the position in the index was.
            return self.store_change(change_of(&row)).await;
        };
        let next_at = times::next_after(rule, row.created_at, now.max(time));
        match (running, rule.overlap) {
            (None, _) => self.start_due(row, next_at, time).await,
            (Some(running), Overlap::Cancel) => {
                self.cancel_program(running).await?;
                self.start_due(row, next_at, time).await
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
    async fn start_due(
        &self,
        row: ScheduleRow,
        next_at: Option<Timestamp>,
        time: Timestamp,
    ) -> Result<(), OpError> {
        let started = match self.owner_as_caller(&row.owner) {
            Ok(caller) => {
                let call = VerbCall::of_nobody(&caller, ProgramStart::NAME, Uuid::now_v7());
                Box::pin(self.start_scheduled(&call, &row, next_at, time)).await
            }
            Err(error) => Err(error),
        };
        let Err(error) = started else { return Ok(()) };
        if error.code == ErrorCode::ShuttingDown {
            return Err(error);
        }
        let now = self.store.now();
        let mut message = error.message;
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
        let code = error.code.as_str().to_owned();
        let failed = FailedStart { scheduled_for: time, at: now, code, message };
        tracing::warn!(schedule = %row.id, owner = %row.owner, code = failed.code, "a scheduled start failed");
        let again = Timestamp(now.0.saturating_add(NO_CAPACITY_MS));
        // The schedule has gone on from a queued time already.
        let is_queued = row.next_at == next_at;
        let mut after = ScheduleRow { next_at, ..row };
        // The same time once more, later: a busy moment should not cost a whole night's run.
        let retries = error.code == ErrorCode::CapacityExceeded && next_at.is_none_or(|next| again < next);
        let change = if retries && !is_queued {
            after.next_at = Some(time);
            after.state.error = Some(failed);
            ScheduleChange { due_at: Some(again), ..change_of(&after) }
        } else {
            after.state.error = Some(failed);
            change_of(&after)
        };
        self.store_change(change).await
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
        let mut env = row.spec.start.env.clone();
        env.extend([
            (format!("{ENV_PREFIX}SCHEDULE"), row.name.clone()),
            (format!("{ENV_PREFIX}SCHEDULED_FOR"), time.to_string()),
            (format!("{ENV_PREFIX}LATE_MS"), late_ms.to_string()),
        ]);
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
