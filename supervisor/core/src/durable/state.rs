//! The parts of the machine's state, as data. Decides nothing.

use super::input::{DurableInput as Input, DurableRefusal, RunStatus, RunToken};
use super::spent::Spent;
use crate::{Now, WriteId};
use std::collections::{BTreeMap, VecDeque};
use vm_system_protocol::durable::{CreatedItem, HostCall, TaskAnswer};
use vm_system_protocol::egress::HttpRequest;
use vm_system_protocol::model::EventPayload;
use vm_system_protocol::reason::CloseReason;
use vm_system_record::{ItemRow, Write};

/// The program's next step from its last checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NextStep {
    /// It starts.
    Begin,
    /// It continues by itself.
    Continue,
    /// It resumes with this answer.
    Answer(TaskAnswer),
    /// It had requested an effect; the worker will request it again.
    Effect,
    /// It waits for the answer of its pause.
    Pause,
    /// It waits for its items, and goes on with the answers that they have.
    Items,
}

/// The stage of the worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// No worker.
    Cold,
    /// Being started; `Loaded` will be reported.
    Starting,
    /// Restores a state from its pages.
    Restoring,
    /// Runs a segment.
    Running,
    /// Is blocked: a host call is under way.
    Calling,
    /// Waits at a checkpoint that is being written.
    Held,
    /// Changes a variable.
    Setting,
    /// Waits for an answer until this time (monotonic milliseconds).
    Warm(u64),
    /// Was killed or released by this machine; its exit is awaited.
    Exiting,
}

/// The present act of an execution's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunActivity {
    /// It has nothing to do until something comes for which it waits.
    Rests,
    /// A worker is being started, or it waits for its turn to start one.
    Starts,
    Computes,
    /// It waits for the result of a call of its host.
    Calls,
    /// The state of a checkpoint is being stored.
    Stores,
    /// The worker is being ended.
    Ends,
}

impl RunActivity {
    /// A sentence without a subject.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rests => "waits",
            Self::Starts => "waits until a worker is started for it",
            Self::Computes => "computes",
            Self::Calls => "waits for the result of a call of its host",
            Self::Stores => "waits until its state is stored",
            Self::Ends => "waits until its worker has ended",
        }
    }
}

/// A call that others can see.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EffectCall {
    Files(HostCall),
    Request(Box<HttpRequest>),
}

/// The step that follows once a batch is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AfterCommit {
    Nothing,
    /// The worker continues.
    Continue,
    /// The effect is carried out.
    Effect(EffectCall),
    /// All waiting callers get the status `waiting`.
    Wait,
    /// One caller gets the refusal of its answer.
    Refuse(RunToken, DurableRefusal),
    /// One caller gets the reply that its variable is changed.
    Edited(RunToken),
    /// All waiting callers get the final status.
    End,
}

/// Messages of the worker since its last checkpoint.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) pages: BTreeMap<u64, Vec<u8>>,
    pub(super) page_bytes: u64,
    pub(super) events: Vec<(u64, EventPayload)>,
    pub(super) items: Vec<CreatedItem>,
    /// Size of the texts of these items (bytes).
    pub(super) item_bytes: u64,
    /// The mark of dropped output is among these events.
    pub(super) mark: bool,
}

/// Batches, from the rows of the next one to those that were given to the store.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    /// Rows of the next batch.
    pub(super) unwritten: Vec<Write>,
    pub(super) commit_at: Option<u64>,
    /// Batches that are not stored yet, in order.
    pub(super) writing: Vec<(WriteId, AfterCommit)>,
    /// Callers with a batch that is being written, and their replies: the status with that batch.
    pub(super) promised: Vec<(WriteId, RunToken, Box<RunStatus>)>,
    /// The contents of all these batches but the first, which the store has.
    pub(super) held: VecDeque<(WriteId, Vec<Write>)>,
    pub(super) last_write: u64,
    /// A batch with a state that is being measured, with the writes that do not depend on the state: only these are written if
    /// it is too large.
    pub(super) weighed: Option<(WriteId, Vec<Write>)>,
}

/// Callers, and the requests that wait.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Callers that get a reply as soon as the next batch is stored.
    pub(super) early: Vec<RunToken>,
    /// Senders of events, with whether the execution waited for them: as `early`.
    pub(super) emitters: Vec<(RunToken, bool)>,
    /// Callers that get a reply when the program pauses or ends.
    pub(super) waiting: Vec<RunToken>,
    /// Requests that arrived while a batch was being written; their number is bounded where they are added (`keep_deferred`).
    pub(super) deferred: Vec<Input>,
    /// The task of an accepted answer, as it was before: the answer is not stored until a worker has restored the state that it is
    /// for, and is withdrawn if none can.
    pub(super) held_answer: Option<ItemRow>,
    /// A change to send to the worker when it is paused.
    pub(super) set: Option<(RunToken, u32, String, vm_system_protocol::json::JsonText)>,
    /// A change was sent to the worker, and its result is not reported yet.
    pub(super) setting: Option<RunToken>,
}

/// The use of the limits, and of the store.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) scope: Spent,
    /// As of the last checkpoint.
    pub(super) scope_kept: Spent,
    /// Limits restored by waiting so far (milliseconds).
    pub(super) refilled_ms: u64,
    /// Bytes of state written since the state was last measured and versions were deleted by size.
    pub(super) unweighed: u64,
    /// Bytes that the program has written to files in its life.
    pub(super) written: u64,
}

/// The time of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentTimer {
    /// When the segment began.
    pub(super) began: Now,
    /// When the worker is killed.
    pub(super) hard_stop: Option<u64>,
    /// It waits for the store: since when it is not known whether the store fails.
    pub(super) waits: Option<u64>,
}

/// Facts about the worker besides its stage.
#[derive(Debug, Default)]
pub(super) struct WorkerNotes {
    /// It was started to repeat the effect of the last checkpoint.
    pub(super) effect_known: bool,
    /// It was sent its next message before it has reported that its state is restored.
    pub(super) owes_restored: bool,
    /// It was sent the response of a request, and has not sent the state with it.
    pub(super) owes_response: bool,
    /// Exits of workers after the same checkpoint.
    pub(super) exits: u32,
    /// Supervisors that were killed after the same checkpoint.
    pub(super) kills: u32,
    /// Why this machine killed it.
    pub(super) verdict: Option<CloseReason>,
}
