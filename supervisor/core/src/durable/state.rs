//! The parts of the machine's state, as data. Decides nothing.

use super::input::{DurableInput as Input, DurableRefusal, RunStatus};
use super::spent::Spent;
use crate::{Now, Token, WriteId};
use std::collections::{BTreeMap, VecDeque};
use vm_system_protocol::durable::{HostCall, TaskAnswer};
use vm_system_protocol::model::EventPayload;
use vm_system_record::Write;

/// The program's next step from its last checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NextStep {
    /// It begins.
    Begin,
    /// It goes on by itself.
    GoOn,
    /// It gets this answer.
    Answer(TaskAnswer),
    /// It had requested an effect; the worker will request it again.
    Effect,
    /// It waits.
    Wait,
}

/// Where the worker is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// There is none.
    Cold,
    /// Being started; `Loaded` will be reported.
    Starting,
    /// Makes a state of its pages.
    Restoring,
    /// Runs a segment.
    Running,
    /// Runs nothing: a host call is under way.
    Calling,
    /// Waits at a checkpoint that is being written.
    Held,
    /// Changes a variable.
    Setting,
    /// Waits for an answer until then (monotonic milliseconds).
    Warm(u64),
    /// Was killed or let go by this machine; its exit is awaited.
    Exiting,
}

/// What happens once a batch is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AfterCommit {
    /// Nothing.
    Nothing,
    /// The worker goes on.
    GoOn,
    /// The effect is made.
    Effect(HostCall),
    /// All waiting callers get the status `waiting`.
    Wait,
    /// One caller gets the refusal of its answer.
    Refuse(Token, DurableRefusal),
    /// One caller gets the reply that its variable is changed.
    Edited(Token),
    /// All waiting callers get the end.
    End,
}

/// Messages of the worker since its last checkpoint.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) pages: BTreeMap<u64, Vec<u8>>,
    pub(super) page_bytes: u64,
    pub(super) events: Vec<(u64, EventPayload)>,
}

/// Batches, from what goes into the next one to what the store has.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    /// Goes with the next batch.
    pub(super) unwritten: Vec<Write>,
    pub(super) commit_at: Option<u64>,
    /// Batches that are not stored yet, in order.
    pub(super) writing: Vec<(WriteId, AfterCommit)>,
    /// Callers with a batch that is being written, and their replies: the status with that batch.
    pub(super) promised: Vec<(WriteId, Token, Box<RunStatus>)>,
    /// All of them but the first, which the store has.
    pub(super) held: VecDeque<(WriteId, Vec<Write>)>,
    pub(super) last_write: u64,
    /// A batch with a state that is being measured, without the writes of that state: only these are written if it is too large.
    pub(super) weighed: Option<(WriteId, Vec<Write>)>,
}

/// What callers wait for.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Callers that get a reply as soon as the next batch is stored.
    pub(super) early: Vec<Token>,
    /// Callers that get a reply when the program pauses or ends.
    pub(super) waiting: Vec<Token>,
    /// Came while a batch was being written.
    pub(super) deferred: Vec<Input>,
    /// The worker is to be sent this change when it is paused.
    pub(super) set: Option<(Token, u32, String, vm_system_protocol::json::JsonText)>,
    /// The worker was sent one, and has not reported what came of it.
    pub(super) setting: Option<Token>,
}

/// What was used of the limits, and of the store.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) scope: Spent,
    /// As of the last checkpoint.
    pub(super) scope_kept: Spent,
    /// How much waiting has given limits back so far (milliseconds).
    pub(super) refilled_ms: u64,
    /// What was written of the state since it was last weighed, and versions were forgotten by their size (bytes).
    pub(super) unweighed: u64,
    /// What the program has written to files in its life (bytes).
    pub(super) written: u64,
}

/// The time of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentTimer {
    /// When the segment began.
    pub(super) began: Now,
    /// The worker is killed then.
    pub(super) hard_stop: Option<u64>,
    /// Nothing is received from the worker: when it would have been killed, and since when.
    pub(super) stalled: Option<(u64, u64)>,
}

/// What is known of the worker beside its stage.
#[derive(Debug, Default)]
pub(super) struct WorkerNotes {
    /// It was started to announce the effect that the last checkpoint is about.
    pub(super) effect_known: bool,
    /// It was sent what comes next before it has reported that its state is restored.
    pub(super) owes_restored: bool,
    /// Exits of workers behind the same checkpoint.
    pub(super) exits: u32,
    /// Why this machine killed it.
    pub(super) verdict: Option<String>,
}
