//! Schedules of programs in the form that clients see (REST and the CLI's JSON), and their rules, which are stored in the same form.

use super::text_enum;
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, ScheduleId};
use crate::json::JsonText;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

text_enum! {
    /// The rule for a time of a schedule at which its last execution has not ended.
    Overlap {
        /// The time is skipped.
        Skip = "skip",
        /// Another execution starts when that one has ended; one time at most waits so.
        Queue = "queue",
        /// The last execution is cancelled first.
        Cancel = "cancel",
    }
}

/// When a schedule starts its program. Stored as JSON: another field is another schema version.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRule {
    /// A cron expression of five fields, or a name such as `@daily`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time between two starts, from the creation on (milliseconds). A rule has either this or `cron`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// The time zone of `cron`.
    pub time_zone: String,
    pub overlap: Overlap,
    /// Each start is later by up to this much (milliseconds), always by the same for the same time.
    pub jitter_ms: u64,
}

/// A schedule: times at which a program is started.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    pub id: ScheduleId,
    /// Unique among the owner's schedules.
    pub name: String,
    /// The program: its name or id, or `NAME@VERSION` for one version; without a version the newest is started.
    pub program: String,
    /// The cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time between two starts (milliseconds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1_000))]
    pub every_ms: Option<u64>,
    /// The time zone of `cron`.
    pub time_zone: String,
    pub overlap: Overlap,
    /// Each start is later by up to this much (milliseconds).
    pub jitter_ms: u64,
    /// The name of each execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_name: Option<String>,
    /// The program's `args`.
    pub args: Vec<String>,
    /// The program's `env`, without secrets.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub env: JsonText,
    /// The template; absent: the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The folder whose files the program may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_path: Option<String>,
    /// The user with whose rights the folder is used, if that is not the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_user: Option<String>,
    pub created_at: Timestamp,
    /// It starts nothing until it is resumed.
    pub paused: bool,
    /// The next time, without its jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// A time that waits until the last execution has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_for: Option<Timestamp>,
    /// The last execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ScheduledStart>,
    /// The last time that was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedTime>,
    /// The last start that failed, if no later one succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<FailedStart>,
    /// The owner, `uid:1000` or the name of a token: in lists and single objects, for administrators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// An execution that a schedule has started.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledStart {
    pub execution_id: ExecutionId,
    /// The time of the schedule; of several that were missed, the first one.
    pub scheduled_for: Timestamp,
    /// How much later than that, with its jitter, the start was (milliseconds).
    pub late_ms: u64,
}

/// A time of a schedule at which nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct SkippedTime {
    pub scheduled_for: Timestamp,
    pub reason: String,
}

/// A start that failed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct FailedStart {
    pub scheduled_for: Timestamp,
    /// When it failed.
    pub at: Timestamp,
    /// The code of the error.
    pub code: String,
    pub message: String,
}
