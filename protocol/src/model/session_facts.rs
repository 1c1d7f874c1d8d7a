//! Facts about a session, each with a field of its own: `runtime_meta` in the APIs, where absent facts are left out.

use super::SessionCheckpoint;
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, SessionId};
use crate::reason::CloseReason;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The facts of one session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct SessionFacts {
    /// The session that this one is a fork of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// The ended session whose inputs are repeated in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<SessionId>,
    /// The inputs that a restoration repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restoration: Option<RestorationPlan>,
    /// The inputs that it has repeated; present when all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<RestoredInputs>,
    /// The number of its worker, from 1; absent before the first checkpoint, rollback or restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The number of the last checkpoint, also if that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<u64>,
    /// The session's checkpoints; absent as `generation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<Vec<SessionCheckpoint>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints_lost: Option<LostCheckpoints>,
    /// The last rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<LastRollback>,
    /// The last restart after the exit of its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<LastRestart>,
    /// The last end of a worker that nobody had requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<LastCrash>,
    /// The time at which its worker is replaced, because it is of another build than its supervisor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_at: Option<Timestamp>,
    /// In replies about ended sessions alone, never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restorability>,
}

/// The inputs of an ended session as they are to be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct RestorationPlan {
    pub inputs: u64,
    /// Inputs that did not end `ok`.
    pub not_repeated: u64,
}

/// The inputs of an ended session as they were repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct RestoredInputs {
    pub inputs: u64,
    /// Inputs that had not ended `ok`.
    pub not_repeated: u64,
    /// Inputs with another result than before.
    pub different: u64,
}

/// Checkpoints that ended with an earlier supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct LostCheckpoints {
    pub count: u64,
    /// Text of [`CloseReason`].
    pub reason: String,
}

/// The continuation of a session from a frozen copy.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct LastRollback {
    pub at: Timestamp,
    /// `null`: the guard copy.
    pub checkpoint: Option<u64>,
    /// `request`, or text of the [`CloseReason`] of the worker.
    pub reason: String,
    /// The generation that began with it.
    pub generation: u64,
    /// The name of the copy in the keeper, which is no fact for clients.
    #[schemars(skip)]
    pub copy: Option<SessionId>,
    /// A sentence about effects that the state does not have.
    pub lacks: Option<String>,
    /// The last rollbacks and restarts after crashes, of which only a few may follow each other.
    pub recoveries: Vec<Timestamp>,
}

/// The continuation of a session with a worker without state.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct LastRestart {
    pub at: Timestamp,
    /// Text of the [`CloseReason`] of the worker.
    pub reason: String,
    /// An execution has reported the loss.
    pub reported: bool,
    /// The generation that began with it.
    pub generation: u64,
    /// The same times as in [`LastRollback`].
    pub recoveries: Vec<Timestamp>,
}

/// The end of a worker that nobody had requested.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct LastCrash {
    /// Text of [`CloseReason`].
    pub reason: String,
    /// The execution that ran.
    pub execution_id: Option<ExecutionId>,
    /// CPU time of the worker over its life (milliseconds).
    pub cpu_ms: Option<u64>,
    /// The most memory that it had (KiB).
    pub peak_memory_kib: Option<u64>,
}

/// The possibility to restore an ended session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Restorability {
    pub possible: bool,
    /// The command that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The reason why it is not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SessionFacts {
    /// The text that the store has.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The facts of a text of the store.
    pub fn from_json(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}

impl LostCheckpoints {
    /// Checkpoints of a supervisor that has exited.
    pub fn with_supervisor(count: u64) -> Self {
        Self { count, reason: CloseReason::HostRestart.to_string() }
    }
}
