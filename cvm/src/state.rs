//! The state of a running program, as data.
//!
//! Owns: [`VmState`], [`Frame`], [`PendingJob`], limits. Must not: execute anything or use stored bytes (see `format`).

use crate::heap::Heap;
use crate::heap::object::ObjectKind;
use crate::program::CompiledProgram;
use crate::value::{Id, Key, Value};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The limits of a program. A limit that is reached ends the program, and the program cannot catch this; but a full stack is a
/// `RangeError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmLimits {
    /// Accounted bytes of the heap
    pub heap_bytes: u64,
    /// Frames; one more is a `RangeError`
    pub stack_depth: u32,
    /// UTF-16 units of one string
    pub string_units: u32,
    /// Instructions from the program's start to its end
    pub steps: u64,
    /// Bytes of console text between two calls of [`VmState::take_output`]; more is dropped
    pub output_bytes: u64,
    /// Items that are pending at the same time; one more is a `RangeError`
    pub pending_items: u32,
}

impl Default for VmLimits {
    fn default() -> Self {
        VmLimits {
            heap_bytes: 64 << 20,
            stack_depth: 10_000,
            string_units: 1 << 28,
            steps: u64::MAX,
            output_bytes: 64 << 20,
            pending_items: 10_000,
        }
    }
}

/// The limit that ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmLimitKind {
    /// [`VmLimits::heap_bytes`]
    Heap,
    /// [`VmLimits::stack_depth`]
    Stack,
    /// [`VmLimits::steps`]
    Steps,
    /// [`VmLimits::string_units`]
    Text,
    /// The output of a program of an earlier version
    Output,
}

/// The destination of a frame's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// Onto the caller's operands
    Push,
    /// As `Push`, but anything but an object is replaced by `this`
    Construct,
    /// Into the stack slot, for a conversion after which the caller's instruction runs again
    Store(u32),
    /// Nowhere
    Discard,
    /// The program's result
    Result,
}

/// One call in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Template number of the running function
    pub template: u32,
    /// Next instruction, absolute
    pub pc: u32,
    /// Stack slot of the callee; `this`, parameters and locals follow
    pub base: u32,
    /// Closure scope or undefined
    pub env: Value,
    /// `new.target`
    pub new_target: Value,
    /// The generator or async function of the frame
    pub coroutine: Id,
    /// Destination of the frame's result
    pub back: Back,
}

/// A job: work that runs when the stack is empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PendingJob {
    /// Call a function of the prelude
    Call(u32, Vec<Value>),
    /// Resume a coroutine: mode 0 value, 1 throw
    Resume(Id, u8, Value),
}

/// Accounted bytes of a waiting job.
pub(crate) const JOB_BYTES: u64 = 160;

/// Accounted bytes of a symbol of the registry, in addition to its cells.
pub(crate) const REGISTERED_BYTES: u64 = 64;

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Created; no instruction was executed
    Start,
    /// Top level, `main` and jobs
    Running,
    /// Waits for `resume_pause`
    Paused,
    /// Waits for `resume_host`
    Host,
    /// Nothing is left to run, and items are pending: waits for `resume_item`
    Wait,
    /// Ended with a result
    Done,
    /// Ended by an uncaught exception
    Failed,
    /// Ended by this limit
    Limited(VmLimitKind),
    /// Ended because the state was invalid: this engine does not produce such a state
    Broken,
}

/// First used stack slot. The slots below always exist, so that reading an operand below the top needs no check.
pub(crate) const STACK_START: usize = 4;

/// The complete state of a program at one moment, apart from its code.
#[derive(Clone, Debug)]
pub struct VmState {
    pub(crate) heap: Heap,
    pub(crate) stack: Vec<Value>,
    pub(crate) sp: usize,
    pub(crate) frames: Vec<Frame>,
    pub(crate) jobs: VecDeque<PendingJob>,
    pub(crate) phase: RunPhase,
    pub(crate) result: Value,
    pub(crate) rng: u64,
    /// Milliseconds since the epoch, as set by [`VmState::set_time`]
    pub(crate) now: f64,
    pub(crate) steps: u64,
    pub(crate) limits: VmLimits,
    /// Arrays of tagged templates by constant
    pub(crate) template_objects: BTreeMap<u32, Id>,
    /// `Symbol.for`: key string (the canonical one, where it is a property key), symbol
    pub(crate) registry: Vec<(Id, Id)>,
    /// Derived: the registry's symbols by key
    pub(crate) registered: HashMap<Key, Id>,
    /// The pending pause or host call
    pub(crate) request: Option<crate::outcome::PendingRequest>,
    /// Derived: promises of the pending items by number; the promises' cells have numbers and kinds
    pub(crate) items: BTreeMap<u64, Id>,
    /// Number of the next item
    pub(crate) next_item: u64,
    /// Items that [`VmState::take_new_items`] has not returned yet; never stored
    pub(crate) new_items: Vec<crate::outcome::NewItem>,
    /// Property slot hints by instruction; never stored
    pub(crate) hints: Vec<u16>,
    /// Console lines that [`VmState::take_output`] has not returned yet; never stored
    pub(crate) output: Vec<crate::outcome::ConsoleLine>,
    /// Output that did not fit; never stored
    pub(crate) dropped: crate::outcome::DroppedOutput,
    /// Derived: compiled regular expressions by source and flags; never stored
    pub(crate) regexps: crate::builtins::RegExpCache,
    /// Derived: the slots that the code of frames reads no more; never stored
    pub(crate) dead_slots: crate::liveness::DeadSlots,
    /// Number of the last checkpoint
    pub(crate) checkpoint: u64,
    /// An exception that the next step throws, as the result of a pause or host call
    pub(crate) thrown: Option<Value>,
    /// Destination of the result of a pause or host call
    pub(crate) wait_back: Back,
    /// The checkpoint at which each page changed last; never stored
    pub(crate) versions: crate::format::Versions,
    /// Objects that are being joined
    pub(crate) joining: Vec<Id>,
    /// Uncaught exception's text with stack, once failed
    pub(crate) failure: Option<String>,
    /// Work of natives that is not charged to the fuel yet, in instructions
    pub(crate) debt: u64,
    /// Bytes of console text in `output`
    pub(crate) printed: u64,
}

/// The inputs of a new state.
#[derive(Clone, Debug, Default)]
pub struct StateConfig {
    /// Limits
    pub limits: VmLimits,
    /// Seed of `Math.random`
    pub seed: u64,
    /// `args`
    pub args: Vec<String>,
    /// `env`
    pub env: Vec<(String, String)>,
}

impl VmState {
    /// The state of a program before its first instruction.
    pub fn new(program: &CompiledProgram, config: &StateConfig) -> VmState {
        let mut limits = config.limits;
        // One string alone must not exceed the heap's limit.
        limits.string_units =
            limits.string_units.min(u32::try_from(limits.heap_bytes / 4).unwrap_or(u32::MAX));
        let mut heap = Heap::on_base(&program.base, config.limits.heap_bytes);
        heap.longest = limits.string_units as usize;
        let mut state = VmState {
            heap,
            stack: vec![Value::Undefined; 1024],
            sp: STACK_START,
            frames: Vec::new(),
            jobs: VecDeque::new(),
            phase: RunPhase::Start,
            result: Value::Undefined,
            rng: config.seed,
            now: f64::NAN,
            steps: 0,
            limits,
            template_objects: BTreeMap::new(),
            registry: Vec::new(),
            registered: HashMap::new(),
            request: None,
            items: BTreeMap::new(),
            next_item: 1,
            new_items: Vec::new(),
            hints: vec![0; program.code.len()],
            output: Vec::new(),
            dropped: crate::outcome::DroppedOutput::default(),
            regexps: crate::builtins::RegExpCache::default(),
            dead_slots: crate::liveness::DeadSlots::default(),
            checkpoint: 0,
            thrown: None,
            wait_back: Back::Push,
            versions: crate::format::Versions::default(),
            joining: Vec::new(),
            failure: None,
            debt: 0,
            printed: 0,
        };
        crate::builtins::host::install_inputs(&mut state, &config.args, &config.env);
        state
    }

    /// Queues a job.
    pub(crate) fn enqueue(&mut self, job: PendingJob) {
        self.jobs.push_back(job);
        self.heap.charge(JOB_BYTES as usize);
    }

    /// Drops frames, jobs and the pending request when the program has ended. Items stay: [`VmState::open_items`] lists them.
    pub(crate) fn end(&mut self, phase: RunPhase) {
        self.phase = phase;
        self.frames.clear();
        self.sp = STACK_START;
        self.jobs.clear();
        self.thrown = None;
        self.request = None;
    }

    /// Bytes of the heap that do not belong to cells.
    pub(crate) fn bytes_beside_cells(&self) -> u64 {
        self.jobs.len() as u64 * JOB_BYTES + self.registry.len() as u64 * REGISTERED_BYTES
    }

    /// Returns the console lines written since the last call.
    pub fn take_output(&mut self) -> Vec<crate::outcome::ConsoleLine> {
        self.printed = 0;
        std::mem::take(&mut self.output)
    }

    /// How much output was dropped since the last call, behind the lines that [`VmState::take_output`] returns.
    pub fn take_dropped(&mut self) -> crate::outcome::DroppedOutput {
        std::mem::take(&mut self.dropped)
    }

    /// Returns the items that were made since the last call, in the order of their numbers. They are not stored with the state: a host
    /// takes them before each [`VmState::pages_since`].
    pub fn take_new_items(&mut self) -> Vec<crate::outcome::NewItem> {
        std::mem::take(&mut self.new_items)
    }

    /// The items that are pending, or were when the program ended, in the order of their numbers.
    pub fn open_items(&self) -> Vec<crate::outcome::OpenItem> {
        let kind = |promise: Id| match &self.heap.obj(promise).kind {
            ObjectKind::Promise(promise) => promise.item.map(|item| item.kind),
            _ => None,
        };
        let open = self.items.iter();
        open.filter_map(|(&number, &promise)| Some(crate::outcome::OpenItem { number, kind: kind(promise)? }))
            .collect()
    }

    /// Instructions executed so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of the last checkpoint.
    pub fn checkpoint_number(&self) -> u64 {
        self.checkpoint
    }

    /// Accounted bytes of the heap.
    pub fn heap_bytes(&self) -> u64 {
        self.heap.bytes
    }

    /// The phase of a run.
    pub fn phase(&self) -> RunPhase {
        self.phase
    }

    /// Sets the time that `Date` shows from now on, in milliseconds since the epoch.
    pub fn set_time(&mut self, now_ms: f64) {
        self.now = now_ms;
    }

    /// Everything outside the heap that keeps cells alive.
    pub(crate) fn roots(&self) -> impl Iterator<Item = Value> + '_ {
        let frames = self.frames.iter().flat_map(|f| [f.env, f.new_target, Value::Obj(f.coroutine)]);
        let jobs = self.jobs.iter().flat_map(|j| match j {
            PendingJob::Call(_, args) => args.clone(),
            PendingJob::Resume(id, _, value) => vec![Value::Obj(*id), *value],
        });
        self.stack[..self.sp.min(self.stack.len())]
            .iter()
            .copied()
            .chain(frames)
            .chain(jobs)
            .chain([self.result, self.thrown.unwrap_or(Value::Undefined)])
            .chain(self.template_objects.values().chain(&self.joining).map(|&id| Value::Obj(id)))
            .chain(self.items.values().map(|&id| Value::Obj(id)))
            .chain(self.registry.iter().flat_map(|&(k, s)| [Value::Str(k), Value::Sym(s)]))
    }
}
