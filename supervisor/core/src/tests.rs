//! Tests of single cases, named by behaviour. The invariants of all histories are in the simulation.

mod adoption;
mod continuation;
mod drain;
mod ends;
mod executions;
mod phases;
mod renames;
mod restart;
mod restoration;
mod rollback;
mod suspension;
mod tasks;
mod type_check;
mod violations;
mod withheld;

use super::{
    ChannelFault, CloseCause, CopyId, ExecuteRequest, Executed, LoadedSource, Now, Refusal, SessionAction,
    SessionInput, SessionMachine, SessionReply, SessionRequest, SessionSpec, Source, Token, WorkerExitStatus,
    WriteId,
};
use std::sync::Arc;
use vm_system_policy::{EffectivePolicy, Operator, Snapshot, effective};
use vm_system_protocol::broker::{FsReply, FsRequest};
use vm_system_protocol::codec::encode;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{
    CLOSE_GRACE_MS, HELLO_MS, INTERRUPT_GRACE_MS, UNACKED_SURE_BYTES, WORKER_MESSAGE_BYTES,
};
use vm_system_protocol::model::{
    ConsoleLevel, Engine, EventPayload, Execution, ExecutionKind, ExecutionStatus, JsType, OnCrash,
    ResultValue, Session, SessionCheckpoint, SessionEventType, SessionFacts, SessionStatus, Settings,
};
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{
    Done, FromWorker, HostReply, HostRequest, Outcome, SourceFormat, Start, ToWorker, Usage, WorkerEvent,
};
use vm_system_record::{Owner, PolicySnapshot, RepeatFacts, Write};

const EXECUTION: ExecutionId = ExecutionId::from_bytes([7; 16]);

/// The reply to any caller, and the number of its token.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Done,
    Session(Box<Session>),
    Executed(Executed),
    Checkpoint(Box<SessionCheckpoint>),
}

fn answer(reply: SessionReply) -> (u64, Result<Answer, Refusal>) {
    let caller = reply.caller();
    let result = match reply {
        SessionReply::Done(_, result) => result.map(|()| Answer::Done),
        SessionReply::Session(_, result) => result.map(Answer::Session),
        SessionReply::Executed(_, result) => result.map(Answer::Executed),
        SessionReply::Checkpoint(_, result) => result.map(Answer::Checkpoint),
    };
    (caller, result)
}

/// A machine with a store that commits at once and a worker that sends only what a test orders.
struct Bench {
    machine: SessionMachine,
    now: Now,
    seq: u64,
    policy: Arc<EffectivePolicy>,
    sent: Vec<ToWorker>,
    writes: Vec<Write>,
    /// Batches without a result in a slow store.
    held: Option<Vec<WriteId>>,
    replies: Vec<(u64, Result<Answer, Refusal>)>,
    killed: bool,
    interrupts: u32,
    host_calls: u32,
    checks: u32,
    /// Host calls, files and checks that were given up.
    dropped_work: u32,
    /// Forks that were ordered.
    forks: Vec<u64>,
    respawns: u32,
    dropped: Vec<CopyId>,
    /// Signals that the worker got.
    signals: Vec<i32>,
}

fn rights(change: impl FnOnce(&mut Snapshot)) -> Arc<EffectivePolicy> {
    let mut snapshot = Snapshot { modules: vec!["fs".to_owned()], ..Snapshot::default() };
    change(&mut snapshot);
    Arc::new(effective(&snapshot, None, &Operator::default()))
}

/// A template without rights.
pub(crate) fn snapshot() -> PolicySnapshot {
    PolicySnapshot {
        engine: Engine::Quickjs,
        settings: Settings::default(),
        modules: Vec::new(),
        libraries: Vec::new(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    }
}

fn spec(policy: &Arc<EffectivePolicy>, idle_timeout_s: u32) -> SessionSpec {
    let id = SessionId::from_bytes([1; 16]);
    let template = TemplateId::from_bytes([2; 16]);
    SessionSpec {
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
        owner: Owner::new("uid:0"),
        worktree: None,
        snapshot: Arc::new(snapshot()),
        start: Start { session: id, limits: policy.wire.limits.clone(), random_seed: [0; 32], console: true },
        startup: Vec::new(),
        startup_policy: Arc::clone(policy),
        ttl_s: 0,
        idle_timeout_s,
        on_crash: OnCrash::Close,
    }
}

impl Bench {
    fn new(policy: Arc<EffectivePolicy>, idle_timeout_s: u32) -> Self {
        Self {
            machine: SessionMachine::new(spec(&policy, idle_timeout_s)),
            now: Now { mono_ms: 1_000, unix_ms: 1_000_000, cpu_us: 0 },
            seq: 0,
            policy,
            sent: Vec::new(),
            writes: Vec::new(),
            held: None,
            replies: Vec::new(),
            killed: false,
            interrupts: 0,
            host_calls: 0,
            checks: 0,
            dropped_work: 0,
            forks: Vec::new(),
            respawns: 0,
            dropped: Vec::new(),
            signals: Vec::new(),
        }
    }

    fn ready_with(policy: Arc<EffectivePolicy>) -> Self {
        let mut bench = Self::new(policy, 0);
        bench.input(SessionInput::Create { token: Token::new(1) });
        bench.input(SessionInput::Spawned);
        bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
        assert!(matches!(bench.reply(1), Some(Ok(Answer::Session(_)))));
        bench
    }

    fn ready() -> Self {
        Self::ready_with(rights(|_| {}))
    }

    fn running() -> Self {
        Self::running_with(rights(|_| {}))
    }

    fn running_with(policy: Arc<EffectivePolicy>) -> Self {
        let mut bench = Self::ready_with(policy);
        bench.execute(2);
        assert_eq!(bench.machine.running(), Some(EXECUTION));
        bench
    }

    fn execute(&mut self, token: u64) {
        self.execute_as(token, EXECUTION);
    }

    fn execute_as(&mut self, token: u64, id: ExecutionId) {
        self.input(SessionInput::Execute {
            token: Token::new(token),
            request: Box::new(request(id)),
            policy: Arc::clone(&self.policy),
        });
    }

    fn input(&mut self, input: SessionInput) {
        let mut inputs = vec![input];
        while !inputs.is_empty() {
            let mut actions = Vec::new();
            for input in inputs.drain(..) {
                self.machine.step(input, self.now, &mut actions);
            }
            for action in actions {
                match action {
                    SessionAction::Write { id, batch, .. } => {
                        self.writes.extend(batch);
                        match &mut self.held {
                            Some(held) => held.push(id),
                            None => inputs.push(SessionInput::Stored(id)),
                        }
                    }
                    SessionAction::Send(message) => self.sent.push(message),
                    SessionAction::Reply(reply) => self.replies.push(answer(reply)),
                    SessionAction::Kill => self.killed = true,
                    SessionAction::Interrupt => self.interrupts += 1,
                    SessionAction::HostCall { .. } => self.host_calls += 1,
                    SessionAction::CheckTypes { .. } => self.checks += 1,
                    SessionAction::DropHostWork => self.dropped_work += 1,
                    SessionAction::Fork { order } => self.forks.push(order),
                    SessionAction::Respawn => self.respawns += 1,
                    SessionAction::DropCopy { copy } => self.dropped.push(copy),
                    SessionAction::Signal(signal) => self.signals.push(signal),
                    _ => {}
                }
            }
        }
    }

    fn on_worker_message(&mut self, message: FromWorker) {
        self.seq += 1;
        self.input(from_worker(self.seq, message));
    }

    fn prints(&mut self, at_us: u64, text: &str) {
        self.on_worker_message(FromWorker::Events {
            execution: EXECUTION,
            events: vec![printed(at_us, text)],
        });
    }

    fn ends(&mut self, outcome: Outcome) {
        self.on_worker_message(FromWorker::Done(Box::new(done(outcome))));
    }

    fn calls(&mut self, call: u64) {
        let request = HostRequest::Fs(FsRequest::Exists { path: "a".to_owned() });
        self.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call, request });
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now.mono_ms += ms;
        self.now.unix_ms += ms as i64;
        self.input(SessionInput::Tick);
    }

    /// The slow store keeps its oldest batch.
    fn keeps(&mut self) {
        let write = self.held.as_mut().expect("a slow store").remove(0);
        self.input(SessionInput::Stored(write));
    }

    /// The slow store's oldest batch fails.
    fn loses(&mut self, error: &str, permanent: bool) {
        let write = self.held.as_mut().expect("a slow store").remove(0);
        self.input(SessionInput::StoreFailed { write, error: error.to_owned(), permanent });
    }

    fn reply(&self, token: u64) -> Option<&Result<Answer, Refusal>> {
        self.replies.iter().find(|(answered, _)| *answered == token).map(|(_, result)| result)
    }

    fn ended(&self) -> Execution {
        let ended = self.writes.iter().find_map(|write| match write {
            Write::ExecutionEnded(record) => Some(Execution::clone(record)),
            _ => None,
        });
        ended.expect("an end was written")
    }

    fn code(&self) -> String {
        self.ended().error.map_or_else(String::new, |error| error.code)
    }

    fn reason(&self) -> String {
        self.machine.record().close_reason.clone().expect("the session ended")
    }

    fn times(&self) -> Vec<i64> {
        let events = self.writes.iter().filter_map(|write| match write {
            Write::Events(events) => Some(events.iter().map(|event| event.ts.0).collect::<Vec<_>>()),
            _ => None,
        });
        events.flatten().collect()
    }
}

fn was_dispatched(bench: &Bench) -> bool {
    bench.sent.iter().any(|message| matches!(message, ToWorker::Execute(_)))
}

fn from_worker(seq: u64, message: FromWorker) -> SessionInput {
    let bytes = encode(&message, WORKER_MESSAGE_BYTES).expect("it fits").len() as u64;
    SessionInput::Message { seq, bytes, message }
}

fn request(id: ExecutionId) -> ExecuteRequest {
    ExecuteRequest {
        id,
        kind: ExecutionKind::Repl,
        source: Source::Text {
            text: "1 + 2".to_owned(),
            file_name: "repl".to_owned(),
            format: Some(SourceFormat::Script),
        },
        args: JsonText::empty_object(),
        env: Vec::new(),
        argv: Vec::new(),
        recorded_args: JsonText::empty_object(),
        recorded_env: JsonText::empty_object(),
        wait: true,
        collect_events: true,
        stored_first: false,
    }
}

fn printed(at_us: u64, text: &str) -> WorkerEvent {
    WorkerEvent { at_us, payload: EventPayload::console(ConsoleLevel::Log, text.to_owned()) }
}

fn done(outcome: Outcome) -> Done {
    Done { execution: EXECUTION, events: Vec::new(), outcome, usage: Usage::default() }
}
