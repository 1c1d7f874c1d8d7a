//! All fixed caps of the system, with their units. The limits that a template sets are in [`model::Limits`](crate::model::Limits).

/// Largest `SOCK_SEQPACKET` packet we send, header included (bytes). The kernel's default send buffer carries 212 960.
pub const PACKET_BYTES: usize = 64 * 1024;
/// Largest logical message of a worker to the supervisor (bytes).
pub const WORKER_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// Largest logical message to a worker or between supervisor and broker (bytes): a file's content and its frame.
pub const HOST_MESSAGE_BYTES: usize = 72 * 1024 * 1024;
/// Largest file that `fs` reads in one call (bytes).
pub const FS_READ_BYTES: usize = 64 * 1024 * 1024;
/// Most entries of a folder that `fs` lists in one call.
pub const FS_DIR_ENTRIES: usize = 100_000;
/// Longest list of `fs.listFiles` in a durable program (bytes of paths).
pub const FS_LIST_BYTES: usize = 8 * 1024 * 1024;
/// Largest message of the keeper's channel (bytes); fits one packet.
pub const KEEPER_MESSAGE_BYTES: usize = 32 * 1024;
/// Largest frame on the control socket (bytes).
pub const CONTROL_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Largest source of a library (bytes).
pub const LIBRARY_BYTES: usize = 8 * 1024 * 1024;
/// Largest sum of the sources of a library set (bytes).
pub const LIBRARY_SET_BYTES: usize = 32 * 1024 * 1024;
/// Heap of a zygote while it evaluates its libraries (MiB).
pub const LIBRARY_HEAP_MB: u32 = 256;
/// CPU time in which a zygote must evaluate each of its libraries (milliseconds); the wall-clock limit is twice that.
pub const LIBRARY_MS: u32 = 5_000;
/// Time in which a zygote must evaluate all of its libraries (milliseconds), else SIGKILL.
pub const LIBRARY_SET_MS: u64 = 15_000;
/// Largest sum of the texts of a module set (bytes).
pub const MODULE_SET_BYTES: usize = 4 * 1024 * 1024;
/// Smallest sum for which a zygote is started (bytes).
pub const MODULE_SET_MIN_BYTES: usize = 64 * 1024;
/// Heap that the compiled modules of a set may take (MiB); modules above it are left out.
pub const MODULE_SET_HEAP_MB: u32 = 32;
/// Time in which a zygote must compile a module set (milliseconds), else SIGKILL.
pub const MODULE_SET_MS: u64 = 2_000;
/// Longest order to a zygote and longest reply of a zygote, without sources (bytes).
pub const ZYGOTE_MESSAGE_BYTES: usize = 4 * 1024;
/// Most unacknowledged messages that a worker keeps; above that it waits for acknowledgements (bytes).
pub const UNACKED_BYTES: usize = 4 * 1024 * 1024;
/// Up to here a worker does not wait, however large its next message is: the supervisor need not acknowledge less (bytes).
pub const UNACKED_SURE_BYTES: usize = 2 * 1024 * 1024;
/// Events in one batch of a worker (bytes).
pub const EVENT_BATCH_BYTES: usize = 16 * 1024;
/// Longest time that an event waits for a batch in a worker that keeps producing events (milliseconds).
pub const EVENT_BATCH_MS: u64 = 20;
/// Longest preview of a value, which is cut and marked, and longest text of one console event, of which a longer text takes
/// several (bytes).
pub const EVENT_TEXT_BYTES: usize = 256 * 1024;
/// Longest JSON of a value event; larger values have none (bytes). `max_output_kb` may be lower.
pub const EVENT_JSON_BYTES: usize = 4 * 1024 * 1024;
/// Deepest `json` of a value event (levels); deeper values have no `json`.
pub const EVENT_JSON_DEPTH: usize = 64;
/// A worker must send its hello within (milliseconds).
pub const HELLO_MS: u64 = 5_000;
/// A zygote must begin with a fork within (milliseconds) after its order, else SIGKILL; the reserve zygote takes over.
pub const FORK_ORDER_MS: u64 = 2_000;
/// Most checkpoints of one session.
pub const CHECKPOINTS: usize = 8;
/// Rollbacks or restarts after crashes within [`RECOVERY_WINDOW_MS`] above which a session ends instead.
pub const RECOVERIES: usize = 5;
/// See [`RECOVERIES`] (milliseconds).
pub const RECOVERY_WINDOW_MS: u64 = 60_000;
/// Pause before the second restart within [`RECOVERY_WINDOW_MS`] (milliseconds); each further one is twice as long.
pub const RESTART_BACK_OFF_MS: u64 = 100;
/// Most sessions that one request forks.
pub const FORKS: u32 = 64;
/// A chunked message must be complete within (milliseconds).
pub const MESSAGE_MS: u64 = 10_000;
/// A peer must read a message within (milliseconds).
pub const WRITE_MS: u64 = 10_000;
/// After an interrupt (cancel, wall limit) a worker must end the execution within (milliseconds), else SIGKILL.
pub const INTERRUPT_GRACE_MS: u64 = 500;
/// A closing session's worker must exit within (milliseconds), else SIGKILL.
pub const CLOSE_GRACE_MS: u64 = 1_000;
/// Sessions per packet of the keeper's list (each has two descriptors; SCM_MAX_FD is 253).
pub const RECORDS_PER_PACKET: usize = 120;
/// Largest piece of the standard input that a script reads at a time (bytes).
pub const STDIN_CHUNK_BYTES: u32 = 64 * 1024;
/// A file of a worktree must be opened or read by the supervisor within (milliseconds).
pub const FILE_CALL_MS: u64 = 10_000;
/// Work of the supervisor on files of worktrees that is done at a time.
pub const FILE_CALLS: usize = 64;
/// A broker must be jailed within (milliseconds).
pub const BROKER_START_MS: u64 = 5_000;
/// A broker must reply to a call within (milliseconds).
pub const BROKER_CALL_MS: u64 = 10_000;
/// A broker without a call exits after (milliseconds).
pub const BROKER_IDLE_MS: u64 = 300_000;
/// Longest message of the supervisor to a files agent (bytes).
pub const FILES_AGENT_ORDER_BYTES: usize = 16 * 1024;
/// Longest message of a files agent to the supervisor (bytes); fits one packet.
pub const FILES_AGENT_REPLY_BYTES: usize = PACKET_BYTES;
/// Part of a file's content in one message of a files agent (bytes).
pub const FILES_AGENT_PIECE_BYTES: usize = PACKET_BYTES - 64;
/// Calls that a files agent has in progress at a time; beyond that it replies that it is busy.
pub const FILES_AGENT_CALLS: usize = 256;
/// A files agent must be ready within (milliseconds).
pub const FILES_AGENT_START_MS: u64 = 5_000;
/// A files agent whose calls are late must reply to a ping within (milliseconds), else SIGKILL.
pub const FILES_AGENT_PING_MS: u64 = 5_000;
/// A files agent without open worktrees exits after (milliseconds).
pub const FILES_AGENT_IDLE_MS: u64 = 60_000;
/// Most files agents of all owners.
pub const FILES_AGENTS: usize = 1_024;
/// Calls of one session that may wait for its broker.
pub const BROKER_QUEUE: usize = 8;
/// Calls of all sessions in progress at a time; each may hold [`FS_READ_BYTES`].
pub const BROKER_CALLS: usize = 32;
/// Largest record of one durable execution (bytes of output and prompts, and [`DURABLE_ROW_BYTES`] for each of them).
pub const DURABLE_RECORD_BYTES: u64 = 256 * 1024 * 1024;
/// Size of an event of a durable execution in addition to its text (bytes), so that events without text count too.
pub const DURABLE_ROW_BYTES: u64 = 256;
/// Size of a page of a durable execution's state in addition to its content, in memory and in the store (bytes).
pub const DURABLE_PAGE_BYTES: u64 = 64;
/// Memory budget for replies that workers have not read yet (MiB).
pub const REPLIES_MIB: usize = 2_048;
/// Largest piece of a body in one message about HTTP (bytes); fits one packet with its frame.
pub const HTTP_PIECE_BYTES: usize = 60 * 1024;
/// Longest URL of a request (bytes).
pub const HTTP_URL_BYTES: usize = 16 * 1024;
/// Header fields of a request or response, names and values together (bytes).
pub const HTTP_HEADER_BYTES: usize = 64 * 1024;
/// Most header fields of a request or response.
pub const HTTP_HEADERS: usize = 256;
/// Longest method of a request (bytes).
pub const HTTP_METHOD_BYTES: usize = 32;
/// A connection to a server must be open within (milliseconds), with TLS.
pub const HTTP_CONNECT_MS: u64 = 10_000;
/// A script waits for the progress of its exchanges in one call at most (milliseconds).
pub const HTTP_WAIT_MS: u32 = 5_000;
/// Most exchanges of a session at a time.
pub const HTTP_EXCHANGES: usize = 256;
/// Exchanges of all sessions at a time.
pub const HTTP_EXCHANGES_OF_ALL: usize = 2_048;
/// The egress process must be jailed within (milliseconds).
pub const EGRESS_START_MS: u64 = 5_000;
/// An egress process with exchanges gets a ping at this interval (milliseconds).
pub const EGRESS_PING_MS: u64 = 5_000;
/// It is replaced when this many pings are without a reply.
pub const EGRESS_PINGS_LOST: u32 = 2;
/// An egress process without an exchange exits after (milliseconds).
pub const EGRESS_IDLE_MS: u64 = 300_000;
/// Largest message between supervisor and egress process (bytes).
pub const EGRESS_MESSAGE_BYTES: usize = 512 * 1024;
/// Longest SQL text of one call (bytes).
pub const SQL_BYTES: usize = 1024 * 1024;
/// Most parameters of one statement.
pub const SQL_PARAMETERS: usize = 32_766;
/// Databases that a session may have open at a time.
pub const SQL_DATABASES: usize = 4;
/// Most arguments, and most variables, of one command.
pub const EXEC_ARGUMENTS: usize = 1_000;
/// Arguments and variables of one command together (bytes).
pub const EXEC_ARGUMENT_BYTES: usize = 128 * 1024;

/// Longest time for which a request for events of a session waits for one (milliseconds); its client repeats it.
pub const SESSION_EVENTS_WAIT_MS: u64 = 20_000;
