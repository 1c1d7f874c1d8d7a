//! Any messages of a worker (`from_worker`), in any order with what else happens to a session: the state machine does not panic,
//! keeps events without gaps, replies to each caller once, sends nothing to a worker that it has killed, and is released at the end.
//! An input is a list of steps ([`vm_system_fuzz::pieces`]).
#![cfg_attr(fuzzing, no_main)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use vm_system_core::durable::SubmittedAnswer;
use vm_system_core::{
    ChannelFault, CloseCause, ExecuteRequest, ForkFault, LoadFailure, LoadedSource, Now, SessionAction,
    SessionInput, SessionMachine, SessionSpec, Source, SpawnFailure, Token, WorkerExitStatus, WriteId,
};
use vm_system_fuzz::pieces::{Pieces, number, text};
use vm_system_policy::{EffectivePolicy, Operator, Snapshot, effective};
use vm_system_protocol::broker::FsReply;
use vm_system_protocol::codec::decode;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::WORKER_MESSAGE_BYTES;
use vm_system_protocol::model::{Engine, ExecutionKind, Session, SessionFacts, SessionStatus, Settings};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{FromWorker, HostReply, SourceFormat, Start};
use vm_system_record::{Owner, PolicySnapshot, Write};

/// Longest text about an end that may be stored (bytes).
const SENTENCE_BYTES: usize = 16 << 10;
/// Steps within which the machine must be released after its worker has exited.
const LAST_STEPS: usize = 1_000;

fn policy() -> &'static Arc<EffectivePolicy> {
    static POLICY: OnceLock<Arc<EffectivePolicy>> = OnceLock::new();
    POLICY.get_or_init(|| {
        let modules = ["fs", "database", "exec"].map(str::to_owned).to_vec();
        let snapshot = Snapshot { modules, ..Snapshot::default() };
        Arc::new(effective(&snapshot, None, &Operator::default()))
    })
}

fn spec() -> SessionSpec {
    let (id, template) = (SessionId::from_bytes([1; 16]), TemplateId::from_bytes([2; 16]));
    let snapshot = PolicySnapshot {
        engine: Engine::Quickjs,
        settings: Settings::default(),
        modules: Vec::new(),
        libraries: Vec::new(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    };
    SessionSpec {
        worktree: None,
        record: Session {
            id,
            name: None,
            template_id: template,
            vm_id: template,
            workspace_id: String::new(),
            base_commit_oid: String::new(),
            worktree_path: String::new(),
            status: SessionStatus::Starting,
            created_at: Timestamp(0),
            closed_at: None,
            last_error: None,
            close_reason: None,
            runtime_meta: SessionFacts::default(),
            engine: Engine::Quickjs,
            execution_id: None,
            owner: None,
        },
        owner: Owner::new("uid:1000"),
        snapshot: Arc::new(snapshot),
        start: Start {
            session: id,
            limits: policy().wire.limits.clone(),
            random_seed: [0; 32],
            console: true,
        },
        startup: Vec::new(),
        startup_policy: Arc::clone(policy()),
        ttl_s: 0,
        idle_timeout_s: 0,
        on_crash: vm_system_protocol::model::OnCrash::Close,
    }
}

fn request(number: u8, content: &[u8]) -> ExecuteRequest {
    let source = match content.first() {
        Some(0) => Source::File { path: "a.js".to_owned(), format: None },
        _ => Source::Text {
            text: text(content),
            file_name: "repl".to_owned(),
            format: Some(SourceFormat::Script),
        },
    };
    ExecuteRequest {
        id: ExecutionId::from_bytes([number; 16]),
        kind: ExecutionKind::Repl,
        source,
        args: JsonText::empty_object(),
        env: Vec::new(),
        argv: Vec::new(),
        recorded_args: JsonText::empty_object(),
        recorded_env: JsonText::empty_object(),
        wait: content.len() % 3 != 1,
        collect_events: content.len().is_multiple_of(2),
        stored_first: content.len().is_multiple_of(5),
    }
}

/// Makes a message name the running execution: no mutation finds 16 bytes.
fn address(message: &mut FromWorker, to: ExecutionId) {
    match message {
        FromWorker::Events { execution, .. } | FromWorker::HostCall { execution, .. } => *execution = to,
        FromWorker::Done(done) => done.execution = to,
        _ => {}
    }
}

struct World {
    machine: SessionMachine,
    now: Now,
    /// Number of the worker's next message.
    seq: u64,
    tokens: u64,
    waiting: BTreeSet<u64>,
    executions: u8,
    writes: VecDeque<WriteId>,
    /// Number of the last event of each execution.
    events: BTreeMap<ExecutionId, u64>,
    spawning: bool,
    alive: bool,
    channel: bool,
    killed: bool,
    call: Option<u64>,
    fork: Option<u64>,
    loading: Option<ExecutionId>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            machine: SessionMachine::new(spec()),
            now: Now { mono_ms: 1_000, unix_ms: 1_700_000_000_000, cpu_us: 0 },
            seq: 0,
            tokens: 0,
            waiting: BTreeSet::new(),
            executions: 0,
            writes: VecDeque::new(),
            events: BTreeMap::new(),
            spawning: false,
            alive: false,
            channel: false,
            killed: false,
            call: None,
            fork: None,
            loading: None,
        };
        let token = world.token();
        world.input(SessionInput::Create { token });
        world
    }

    fn token<R>(&mut self) -> Token<R> {
        self.tokens += 1;
        self.waiting.insert(self.tokens);
        Token::new(self.tokens)
    }

    fn input(&mut self, input: SessionInput) {
        let mut out = Vec::new();
        self.machine.step(input, self.now, &mut out);
        for action in out {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: SessionAction) {
        match action {
            SessionAction::Spawn => self.spawning = true,
            SessionAction::Send(_) => assert!(self.alive && !self.killed, "sent to a killed worker"),
            SessionAction::Kill => {
                assert!(!self.killed, "killed twice");
                self.killed = true;
            }
            SessionAction::Write { id, batch, .. } => {
                for write in &batch {
                    self.check(write);
                }
                self.writes.push_back(id);
            }
            SessionAction::Reply(reply) => assert!(self.waiting.remove(&reply.caller()), "a second reply"),
            SessionAction::HostCall { call, .. } => self.call = Some(call),
            SessionAction::DropHostWork => (self.call, self.loading) = (None, None),
            SessionAction::LoadSource { execution, .. } => self.loading = Some(execution),
            SessionAction::Fork { order } => self.fork = Some(order),
            SessionAction::ForksOver => self.fork = None,
            _ => {}
        }
    }

    fn check(&mut self, write: &Write) {
        match write {
            Write::Events(events) => {
                for event in events.iter() {
                    let last = self.events.entry(event.execution_id).or_default();
                    *last += 1;
                    assert_eq!(event.seq, *last, "a gap in the output");
                }
            }
            Write::SessionEnd { reason, last_error, .. } => {
                let bytes = reason.to_string().len() + last_error.as_ref().map_or(0, String::len);
                assert!(bytes <= SENTENCE_BYTES, "{bytes} bytes about an end");
            }
            _ => {}
        }
    }

    fn stored(&mut self) {
        if let Some(write) = self.writes.pop_front() {
            self.input(SessionInput::Stored(write));
        }
    }

    fn spawned(&mut self) {
        if std::mem::take(&mut self.spawning) {
            (self.alive, self.channel) = (true, true);
            self.input(SessionInput::Spawned);
        }
    }

    fn exited(&mut self, status: WorkerExitStatus) {
        if std::mem::take(&mut self.alive) {
            (self.channel, self.call, self.fork) = (false, None, None);
            self.input(SessionInput::Exited(status));
        }
    }

    fn execute(&mut self, content: &[u8]) {
        self.executions = self.executions.wrapping_add(1);
        let request = Box::new(request(self.executions, content));
        let token = self.token();
        self.input(SessionInput::Execute { token, request, policy: Arc::clone(policy()) });
    }

    fn message(&mut self, content: &[u8], addressed: bool, seq: u64) {
        if !self.channel || content.len() > WORKER_MESSAGE_BYTES {
            return;
        }
        match decode::<FromWorker>(content) {
            Ok(mut message) => {
                if let Some(to) = self.machine.running().filter(|_| addressed) {
                    address(&mut message, to);
                }
                let bytes = content.len() as u64;
                self.input(SessionInput::Message { seq, bytes, message });
            }
            Err(error) => {
                self.channel = false;
                self.input(SessionInput::ChannelFailed(ChannelFault::Violation(error.to_string())));
            }
        }
    }

    /// One step of the input.
    fn step(&mut self, kind: u8, content: &[u8]) {
        let at = number(content);
        match kind % 24 {
            // Most steps are messages of the worker.
            0..=7 => {
                self.seq += 1;
                self.message(content, true, self.seq);
            }
            8 => self.message(content.get(1..).unwrap_or_default(), false, at % 16),
            9 => self.execute(content),
            10 => self.stored(),
            11 => {
                if let Some(write) = self.writes.pop_front() {
                    let (error, permanent) = (text(content), at % 2 == 1);
                    self.input(SessionInput::StoreFailed { write, error, permanent });
                }
            }
            12 => {
                if let Some(call) = self.call.take() {
                    let reply = decode(content).unwrap_or(HostReply::Fs(FsReply::Bool(true)));
                    self.input(SessionInput::HostReplied { call, reply });
                }
            }
            13 => {
                if self.channel {
                    self.channel = false;
                    let fault = if at.is_multiple_of(2) { ChannelFault::Closed } else { ChannelFault::Stuck };
                    self.input(SessionInput::ChannelFailed(fault));
                }
            }
            14 => self.exited(match at % 4 {
                0 => WorkerExitStatus::Exited((at >> 8) as i32),
                1 => WorkerExitStatus::Signaled((at >> 8) as i32 & 0x7f),
                2 => WorkerExitStatus::KeeperLost,
                _ => WorkerExitStatus::Signaled(9),
            }),
            15 => {
                let (token, execution) = (self.token(), ExecutionId::from_bytes([at as u8; 16]));
                self.input(SessionInput::Cancel { token, execution, abandoned: at % 2 == 1 });
            }
            16 => {
                let (token, cause) =
                    (self.token(), [CloseCause::Request, CloseCause::Shutdown][at as usize % 2]);
                self.input(SessionInput::Close { token, cause });
            }
            17 => {
                let token = self.token();
                let answer = GivenAnswer::Typed(text(content));
                let execution = self.machine.running().unwrap_or(ExecutionId::from_bytes([9; 16]));
                let wait = at.is_multiple_of(2);
                self.input(SessionInput::Submit {
                    token,
                    execution,
                    task: None,
                    answer: SubmittedAnswer::Unchecked(answer),
                    wait,
                });
            }
            18 => self.spawned(),
            19 => {
                let (token, count) = (self.token(), at as u32 % 4 + 1);
                self.input(SessionInput::Fork { token, count });
            }
            20 => {
                if let Some(order) = self.fork {
                    let fault = || match at % 3 {
                        0 => ForkFault::Violation(text(content)),
                        1 => ForkFault::NotOrdered(SpawnFailure::late("none".to_owned())),
                        _ => ForkFault::Failed(SpawnFailure::late("none".to_owned())),
                    };
                    let result = if content.len().is_multiple_of(2) { Ok(()) } else { Err(fault()) };
                    self.input(SessionInput::ForkEnded { order, result });
                }
            }
            21 => {
                if let Some(execution) = self.loading.take() {
                    let source = LoadedSource { text: text(content), format: SourceFormat::Script };
                    let missing = LoadFailure::NotFound(text(content));
                    let result = if at.is_multiple_of(2) { Ok(source) } else { Err(missing) };
                    self.input(SessionInput::SourceLoaded { execution, result });
                }
            }
            22 if self.alive => self.input(SessionInput::ForbiddenCall(text(content))),
            _ => {
                self.now.mono_ms += at % 120_000;
                self.now.cpu_us += at % 1_000_000;
                self.input(SessionInput::Tick);
            }
        }
    }

    /// Every history ends.
    fn end(mut self) {
        let token = self.token();
        self.input(SessionInput::Close { token, cause: CloseCause::Shutdown });
        for _ in 0..LAST_STEPS {
            if self.machine.is_released() {
                break;
            }
            self.stored();
            if self.spawning {
                self.spawned();
            }
            if let Some(deadline) = self.machine.deadline() {
                self.now.mono_ms = self.now.mono_ms.max(deadline);
                self.input(SessionInput::Tick);
            }
            if self.killed || self.writes.is_empty() {
                self.exited(WorkerExitStatus::Signaled(9));
            }
        }
        assert!(self.machine.is_released(), "never released: {:?}", self.machine);
        assert!(self.waiting.is_empty(), "callers without a reply: {:?}", self.waiting);
    }
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    // The first byte: how far the session has come.
    let Some((&begun, rest)) = data.split_first() else { return };
    if begun % 4 > 0 {
        world.spawned();
        world.seq = 1;
        let message = FromWorker::Started { heap_bytes: 1 };
        world.input(SessionInput::Message { seq: 1, bytes: 1, message });
        while !world.writes.is_empty() {
            world.stored();
        }
    }
    if begun % 4 > 1 {
        world.execute(b"1");
    }
    for (kind, content) in Pieces::new(rest) {
        if world.machine.is_released() {
            break;
        }
        world.step(kind, content);
    }
    world.end();
});
