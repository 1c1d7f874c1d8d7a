//! Verbs of schedules.

use super::ProgramStart;
use crate::codec::{Decode, Encode};
use crate::control::ListPage;
use crate::model::ScheduleRule;

/// Start a program at certain times.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ScheduleAdd {
    /// Unique among the owner's schedules.
    pub name: String,
    pub rule: ScheduleRule,
    /// Each start; it does not wait.
    pub start: ProgramStart,
}

/// Schedules, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct ScheduleList {
    /// Only of this owner; for administrators.
    pub owner: Option<String>,
    pub page: ListPage,
}

/// One schedule.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ScheduleGet {
    pub schedule: String,
}

/// Start nothing until the schedule is resumed; a queued time is given up.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SchedulePause {
    pub schedule: String,
}

/// Go on with the next time from now on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ScheduleResume {
    pub schedule: String,
}

/// Start the program now, beside the times of the schedule; also of one that is paused. Replies as soon as the start is stored.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ScheduleRun {
    pub schedule: String,
}

/// Delete a schedule; its executions continue. Replies with the deleted one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ScheduleDelete {
    pub schedule: String,
}
