//! Schedules as rows. Knows nothing of cron expressions: when a schedule is due is decided by others.

use crate::rows::Owner;
use serde::{Deserialize, Serialize};
use vm_system_protocol::control::ProgramStart;
use vm_system_protocol::ids::{ExecutionId, ScheduleId};
use vm_system_protocol::model::{FailedStart, ScheduleRule, ScheduledStart, SkippedTime};
use vm_system_protocol::time::Timestamp;

/// Most schedules of one owner.
pub const SCHEDULES_OF_AN_OWNER: u64 = 1_000;

/// The constant part of a schedule. Stored as JSON: another field is another schema version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSpec {
    pub rule: ScheduleRule,
    /// Each start.
    pub start: ProgramStart,
}

/// The results of the last times of a schedule. Stored as JSON: another field is another schema version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleState {
    /// A time that waits for the end of the last execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_for: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ScheduledStart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FailedStart>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    pub id: ScheduleId,
    pub owner: Owner,
    /// Unique among the owner's schedules.
    pub name: String,
    pub created_at: Timestamp,
    /// Number of its changes: a change names the one that it was decided for.
    pub revision: u64,
    /// The next time; none: it is paused.
    pub next_at: Option<Timestamp>,
    pub spec: ScheduleSpec,
    pub state: ScheduleState,
}

/// A change of a schedule. `Rejected(Conflict)` if it was changed since it was read, or deleted: in one batch with the start of an
/// execution, this is why a time starts one execution and never two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleChange {
    pub id: ScheduleId,
    /// The revision that was read.
    pub revision: u64,
    pub next_at: Option<Timestamp>,
    /// When it is due: at `next_at` with its jitter, or at another attempt.
    pub due_at: Option<Timestamp>,
    /// The execution for whose end a queued time waits: the schedule is due then, at once if it has ended already.
    pub waits_for: Option<ExecutionId>,
    pub state: ScheduleState,
}

/// A schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSchedule {
    /// 0: a queued time may start.
    pub due_at: Timestamp,
    pub id: ScheduleId,
    pub owner: Owner,
}
