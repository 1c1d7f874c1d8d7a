//! The parts of the machine's state. Nothing here decides anything.

use super::input::{DurableInput as Input, Refused, RunStatus};
use super::spent::Spent;
use crate::{Now, Token, WriteId};
use std::collections::{BTreeMap, VecDeque};
use vm_system_protocol::durable::{HostCall, TaskAnswer};
use vm_system_protocol::model::EventPayload;
use vm_system_record::Write;

/// What the program does next, from where its last checkpoint stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// It begins.
    Begin,
    /// It goes on by itself.
    GoOn,
    /// It gets this answer.
    Answer(TaskAnswer),
    /// It had wanted an effect; the worker will say so again.
    Effect,
    /// It waits.
    Wait,
}

/// Where the worker is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// There is none.
    Cold,
    /// Ordered; the machine hears `Loaded`.
    Starting,
    /// Makes a state of its pages.
    Restoring,
    /// Runs a segment.
    Running,
    /// Runs nothing: a host call is under way.
    Calling,
    /// Stands at a checkpoint that is being written.
    Held,
    /// Changes a variable.
    Setting,
    /// Waits for an answer until then (monotonic milliseconds).
    Warm(u64),
    /// Was killed or let go by this machine; its death is awaited.
    Exiting,
}

/// What happens once a batch is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    /// Nothing.
    Nothing,
    /// The worker goes on.
    GoOn,
    /// The effect is made.
    Effect(HostCall),
    /// Everybody hears that the program waits.
    Wait,
    /// One caller hears that its answer did not fit.
    Refuse(Token, Refused),
    /// One caller hears that its variable is changed.
    Edited(Token),
    /// Everybody hears that it has ended.
    End,
}

/// What the worker said since its last checkpoint.
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
    pub(super) writing: Vec<(WriteId, Then)>,
    /// Callers whose batch is being written, and what they hear: where the program stands with that batch.
    pub(super) promised: Vec<(WriteId, Token, Box<RunStatus>)>,
    /// All of them but the first, which the store has.
    pub(super) held: VecDeque<(WriteId, Vec<Write>)>,
    pub(super) last_write: u64,
    /// A batch whose state is weighed, without what is about that state: all that is left of it if the state is too large.
    pub(super) weighed: Option<(WriteId, Vec<Write>)>,
}

/// What callers wait for.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Callers that hear as soon as the next batch is stored.
    pub(super) early: Vec<Token>,
    /// Callers that hear when the program stands still.
    pub(super) waiting: Vec<Token>,
    /// Came while a batch was being written.
    pub(super) deferred: Vec<Input>,
    /// The worker is to be sent this change when it stands.
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
pub(super) struct SegmentClock {
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
    /// It was sent what comes next before it has reported that its state stands.
    pub(super) owes_restored: bool,
    /// Exits of workers behind the same checkpoint.
    pub(super) exits: u32,
    /// Why this machine killed it.
    pub(super) verdict: Option<String>,
}
