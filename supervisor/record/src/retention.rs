//! Retention: which rows are deleted when. Deletes nothing itself: the store's writer applies these rules, with
//! [`Write::Prune`](crate::Write::Prune) and [`Write::PruneOwner`](crate::Write::PruneOwner) in bounded steps.

use std::time::Duration;
use vm_system_protocol::time::Timestamp;

/// How long ended rows are kept, and how large the database may grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Ended executions, sessions and audit entries older than this are deleted; `None`: kept.
    pub max_age: Option<Duration>,
    /// How long idempotency keys are kept; at least [`KEY_LIFE`].
    pub key_life: Duration,
    /// Above this size ended executions and sessions are deleted whatever their age, the oldest of the largest owner first
    /// (bytes).
    pub prune_above_bytes: u64,
    /// Above this size no new executions and sessions are admitted (bytes).
    pub quota_bytes: u64,
    /// Above seven eighths of this an owner's ended executions are deleted, the oldest first, but none that ended within
    /// [`KEPT_AFTER_END`]; above it these, too, and no more states of its programs are stored: they end (bytes).
    pub owner_quota_bytes: u64,
    /// States that the programs of an owner may write in a minute, and at once (bytes); beyond it they end.
    pub owner_write_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            max_age: Some(Duration::from_hours(720)),
            key_life: KEY_LIFE,
            prune_above_bytes: 4 << 30,
            quota_bytes: 5 << 30,
            owner_quota_bytes: 4 << 30,
            owner_write_bytes: 4 << 30,
        }
    }
}

/// How long an idempotency key is valid.
pub const KEY_LIFE: Duration = Duration::from_hours(24);
/// Above seven eighths of its quota an owner keeps what ended so recently: why it ended can be read, and its states are deleted anyway.
pub const KEPT_AFTER_END: Duration = Duration::from_mins(1);
/// Most stored current executions of one owner's clients; the least recently used are deleted.
pub const CLIENTS_OF_AN_OWNER: u32 = 1_000;
/// Most rows that one step deletes (an execution is deleted with all of its events).
pub const PRUNE_ROWS: u32 = 1_000;
/// Time between two steps of deletion if the first left nothing to delete.
pub const PRUNE_EVERY: Duration = Duration::from_mins(1);

impl Retention {
    /// Above this an owner's ended executions are deleted (bytes).
    pub fn owner_prune_bytes(&self) -> u64 {
        self.owner_quota_bytes / 8 * 7
    }

    /// Everything that ended before this time is deleted: records, and lines of the audit log, which are deleted for no other
    /// reason.
    pub fn cutoff(&self, now: Timestamp) -> Timestamp {
        self.max_age.map_or(Timestamp(0), |age| earlier(now, age))
    }
}

/// `now - age`.
pub fn earlier(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
}

/// The smallest time-ordered id (UUID version 7) of a point in time: everything created before has a smaller one.
pub fn oldest_id_at(moment: Timestamp) -> [u8; 16] {
    let ms = u64::try_from(moment.0).unwrap_or(0).min((1 << 48) - 1);
    let mut id = [0; 16];
    id[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    id
}
