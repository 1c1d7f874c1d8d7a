//! Supervisor ⇄ worker: one enum per direction.
//!
//! A channel begins with a [`Hello`](crate::hello::Hello) packet of the worker; then logical messages in the packets of
//! [`crate::packet`], numbered from 1 in each direction. The worker keeps sent messages until they are acknowledged.
//! All messages of a worker are hostile input: the supervisor checks them against the session's state machine.

use crate::codec::{Decode, Encode};
use crate::durable::{FromDurable, ToDurable};
use crate::egress::HttpCall;
use crate::ids::{ExecutionId, SessionId};
use crate::json::JsonText;
use crate::model::{EventPayload, ExecutionKind, Limits, Resolver};
use crate::reason::LimitKind;

/// The exit code of a worker in which an allocation outside of the engine's heap has failed. A worker that exits with it for another
/// reason changes only what is said about its own end.
pub const EXIT_OUT_OF_MEMORY: i32 = 76;

/// Messages of a supervisor to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToWorker {
    /// First message: assigns the worker to a session, with an empty state or, in a fork, its parent's. The reply is
    /// [`FromWorker::Started`].
    Start(Box<Start>),
    /// Run code. Only while no execution runs. The reply is [`FromWorker::Done`].
    Execute(Box<Execute>),
    /// The reply to a [`FromWorker::HostCall`].
    HostReply { call: u64, reply: HostReply },
    /// All messages up to and including this sequence number are committed; cumulative.
    Ack {
        /// The worker's sequence number.
        seq: u64,
    },
    /// A new supervisor took over; everything up to this number is committed. The reply is [`FromWorker::Adopted`]; then all
    /// messages above this number are sent again.
    Adopt {
        /// The worker's sequence number.
        last_committed: u64,
        /// Different in each adoption: an earlier one's reply may be in the queue still.
        nonce: u64,
    },
    /// Exit with code 0 at the next message boundary.
    Shutdown,
    /// An order about a durable program. As the first message, it makes this a worker of the durable engine, which needs no
    /// acknowledgements and cannot be adopted.
    Durable(Box<ToDurable>),
    /// Fork. Only while no execution runs; the packet carries one descriptor, over which the child sends its hello. The parent
    /// replies with [`FromWorker::Forked`] or [`FromWorker::ForkFailed`].
    ///
    /// The child replaces its channel by the descriptor and sends a hello. The reply is one packet, also a
    /// [`Hello`](crate::hello::Hello), that carries the end of a new channel; the child replaces its channel by that end and sends a
    /// hello there. Then it is a worker that waits for its [`ToWorker::Start`], with numbers from 1 and no kept messages.
    Fork {
        /// Counts the orders of this worker, from 1.
        order: u64,
    },
    /// The message of the next version: sent once to each worker that knows it, which does nothing.
    #[cfg(feature = "next-protocol")]
    Announce {
        /// The version that the supervisor speaks.
        protocol: u32,
    },
}

/// Messages of a worker to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromWorker {
    /// The session is set up.
    Started {
        /// JavaScript heap after the set-up (bytes); advisory.
        heap_bytes: u64,
    },
    /// Output of the running execution.
    Events {
        execution: ExecutionId,
        /// At least one.
        events: Vec<WorkerEvent>,
    },
    /// The running execution waits for the host; the worker sends nothing until the reply.
    HostCall {
        execution: ExecutionId,
        /// Counts from 1 in each session, never reused.
        call: u64,
        request: HostRequest,
    },
    /// The execution ended.
    Done(Box<Done>),
    /// Reply to [`ToWorker::Adopt`]; the messages that follow have the next numbers after `acknowledged`.
    Adopted {
        /// As in the request.
        nonce: u64,
        /// The last number that was acknowledged before, or `last_committed`. A larger one: messages in between were given up as lost
        /// by a supervisor whose store could not write.
        acknowledged: u64,
        /// The number of the last message that was sent before: what follows the acknowledged one up to it is sent again.
        last_sent: u64,
        /// The execution that runs.
        running: Option<ExecutionId>,
        /// The last execution that ended.
        finished: Option<ExecutionId>,
    },
    /// A message about a durable program; only after a [`ToWorker::Durable`].
    Durable(Box<FromDurable>),
    /// Reply to [`ToWorker::Fork`]: there is a child, which sends its own hello.
    Forked {
        /// As in the order.
        order: u64,
    },
    /// Reply to [`ToWorker::Fork`]: the fork failed.
    ForkFailed {
        /// As in the order.
        order: u64,
        /// The errno of clone.
        errno: i32,
    },
}

/// The parameters of a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Start {
    pub session: SessionId,
    /// In force from the start on.
    pub limits: Limits,
    /// Seeds `Math.random`; different for every session.
    pub random_seed: [u8; 32],
    /// There is a `console` global.
    pub console: bool,
}

/// One run of code with the policy in force for it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Execute {
    /// Echoed in every message about the execution.
    pub execution: ExecutionId,
    pub kind: ExecutionKind,
    pub source: String,
    /// Name in stacks, and the base of relative specifiers: a path relative to the worktree, or `repl`.
    pub file_name: String,
    /// The kind of the text.
    pub format: SourceFormat,
    /// Visible as `args` and `__ARGS__` (an object), only for this run.
    pub args: JsonText,
    /// Visible as `process.env`, only for this run.
    pub env: Vec<(String, String)>,
    /// Visible as `process.argv`, only for this run.
    pub argv: Vec<String>,
    /// The rights and limits of this run.
    pub policy: Policy,
}

/// The kind of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SourceFormat {
    /// A script; at top level declarations persist and `await` works.
    Script,
    /// An ES module.
    Module,
    /// A `CommonJS` module, as `require` runs a script file.
    CommonJs,
    /// A JSON document.
    Json,
    /// TypeScript, read as a script after its types are removed.
    TypeScript,
    /// TypeScript, read as a module after its types are removed.
    TypeScriptModule,
}

/// The rights and limits in force for one execution (the effective policy, docs/decisions/015).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Policy {
    /// The limits.
    pub limits: Limits,
    /// How modules are found; the worker lists candidates, the supervisor reads the first that exists and may be loaded.
    pub resolver: Resolver,
    /// Strict mode for scripts.
    pub strict: bool,
    /// Names of the host modules that `require` and `import` allow.
    pub modules: Vec<String>,
    /// Host modules that the template names and the session does not get, with the reason.
    pub refused_modules: Vec<(String, String)>,
    /// Names of intrinsics that must not be reachable as globals.
    pub disabled_globals: Vec<String>,
}

/// One piece of output of a script.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WorkerEvent {
    /// Time since the execution started by the worker's clock (microseconds); the supervisor clamps it.
    pub at_us: u64,
    /// The output. A worker may send `Console`, `Value`, `Exception` and `System`; anything else is a protocol violation.
    pub payload: EventPayload,
}

/// The end of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Done {
    pub execution: ExecutionId,
    /// The last events of the execution; after [`Outcome::Ok`] the last one is its value, if it has one.
    pub events: Vec<WorkerEvent>,
    pub outcome: Outcome,
    pub usage: Usage,
}

/// How an execution ended, as the worker reports it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Outcome {
    /// The code ran to its end.
    Ok,
    /// The code threw; an `Exception` event is among its events.
    Exception {
        /// As in the event.
        message: String,
    },
    /// The code could not be parsed; an `Exception` event is among its events.
    SyntaxError {
        /// As in the event.
        message: String,
    },
    /// A soft limit ended it.
    Limit(LimitKind),
    /// The interrupt signal ended it; the supervisor has the reason for the signal.
    Interrupted,
    /// The script set this exit code by `process.exit` or `process.exitCode`; never 0. With an `Exception` event as the last of its
    /// events, and [`EXIT_UNSETTLED`](crate::reason::EXIT_UNSETTLED): its top level awaits what nothing is left to settle.
    Exit {
        /// 1 to 255.
        code: i32,
    },
}

/// The usage of an execution. Advisory: the supervisor accounts with the kernel's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Usage {
    /// CPU time of the thread (microseconds).
    pub cpu_us: u64,
    /// JavaScript heap at the end (bytes).
    pub heap_bytes: u64,
    /// Peak of the JavaScript heap, as far as it was sampled (bytes).
    pub heap_peak_bytes: u64,
}

/// A host call of a running script. The supervisor checks it against the policy before it is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HostRequest {
    /// The first of some worktree files that exists, for `require` or `import`.
    LoadModule {
        /// Paths relative to the worktree, in order; those that the policy does not cover count as missing.
        candidates: Vec<String>,
        /// `import` (true) or `require` (false).
        import: bool,
        /// The reply contains the `package.json` that applies to the file.
        package: bool,
    },
    /// A call of the `fs` module.
    Fs(crate::broker::FsRequest),
    /// A call of the `database` module.
    Database(crate::broker::DatabaseRequest),
    /// A call of the `exec` module.
    Exec(crate::broker::ExecRequest),
    /// A call about HTTP.
    Http(HttpCall),
    /// `CC`: a task for a client. The reply is [`HostReply::Answer`], perhaps much later.
    Ask {
        /// The number of the task in the execution, from 1; identifies it when it is sent again after an adoption.
        number: u64,
        /// At most [`PROMPT_BYTES`](crate::durable::PROMPT_BYTES) together with the options.
        prompt: String,
        options: Option<JsonText>,
    },
    /// Reads the standard input of the command that runs the script. The reply is [`HostReply::Stdin`]. Unlike during other calls,
    /// the wall clock goes on.
    Stdin {
        /// At most [`STDIN_CHUNK_BYTES`](crate::limits::STDIN_CHUNK_BYTES).
        max_bytes: u32,
        /// Longest wait for a byte (milliseconds).
        wait_ms: u64,
    },
}

impl HostRequest {
    /// Whether it may change something outside of the worker: to carry it out twice is not the same as once.
    pub fn has_effect(&self) -> bool {
        match self {
            Self::LoadModule { .. } | Self::Ask { .. } | Self::Stdin { .. } => false,
            Self::Fs(request) => request.changes_files(),
            Self::Database(_) | Self::Exec(_) => true,
            Self::Http(call) => matches!(call, HttpCall::Open { .. } | HttpCall::Send { .. }),
        }
    }
}

/// The reply to a host call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HostReply {
    /// A file of the worktree.
    Module {
        /// One of the candidates; identifies the module.
        path: String,
        source: String,
        /// The kind of the text, by the file's name.
        format: SourceFormat,
        /// The nearest `package.json` in the file's folder and above, not above `node_modules`; `None` if there is none, or it was
        /// not requested.
        package: Option<PackageFile>,
    },
    /// The reply of the `fs` module.
    Fs(crate::broker::FsReply),
    /// The call failed; becomes an `Error` with these properties.
    Failed(HostError),
    /// The reply of the `database` module.
    Database(crate::broker::DatabaseReply),
    /// The reply of the `exec` module.
    Exec(crate::broker::ExecReply),
    /// The reply to a call about HTTP.
    Http(crate::egress::HttpReply),
    /// The result of a task.
    Answer(crate::durable::TaskAnswer),
    /// The bytes that were read of the standard input.
    Stdin(StdinReply),
    /// As [`Self::Module`]: the text is that of the module with this path which the worker's zygote has compiled.
    Compiled { path: String, format: SourceFormat, package: Option<PackageFile> },
}

/// The bytes that a script gets of its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum StdinReply {
    /// At least one byte.
    Data(Vec<u8>),
    /// There is no more input, or the session has none.
    End,
    /// Nothing came in time.
    NotYet,
}

/// A `package.json`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PackageFile {
    /// Relative to the worktree.
    pub path: String,
    pub source: String,
}

/// Why a session may not use a host module that nothing refuses expressly; behind the name of the module.
pub const NOT_GRANTED: &str = "it is not among the modules of this session's template";

/// A failed host request, as the script sees it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HostError {
    /// Node's code if there is one: `ENOENT`, `EACCES`, `MODULE_NOT_FOUND`, `MODULE_NOT_ALLOWED`, …
    pub code: String,
    /// Without host paths.
    pub message: String,
}
