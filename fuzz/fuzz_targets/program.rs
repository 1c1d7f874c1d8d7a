//! Any messages of a worker that runs a durable program, in any order with what else happens to its execution: the state machine
//! does not panic, keeps events without gaps, replies to each caller once, and is released once it is stopped.
//! An input is a list of steps ([`vm_system_fuzz::pieces`]).
#![cfg_attr(fuzzing, no_main)]

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use vm_system_core::durable::{
    DurableAction, DurableInput, DurableMachine, DurableSpec, EventWrites, Fresh, RunToken, SubmittedAnswer,
    Unstored, fresh_record,
};
use vm_system_core::{Now, WorkerExitStatus, WriteId};
use vm_system_fuzz::pieces::{Pieces, number, text};
use vm_system_protocol::codec::decode;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::durable::{FromDurable, HttpResponse};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, ExecutionStatus, Limits};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{FromWorker, HostError};
use vm_system_record::Write;

/// Steps within which the machine must be released after a stop.
const LAST_STEPS: usize = 1_000;

fn spec() -> DurableSpec {
    DurableSpec {
        execution: ExecutionId::from_bytes([7; 16]),
        session: SessionId::from_bytes([8; 16]),
        limits: Limits { max_state_mb: 1, ..Limits::default() },
        checkpoint_steps: u64::MAX,
        checkpoint_ms: 1_000,
        warm_ms: 50,
        history: 3,
    }
}

struct World {
    machine: DurableMachine,
    now: Now,
    tokens: u64,
    waiting: BTreeSet<u64>,
    /// Writes that are not stored yet, each with the number of events before it.
    writes: VecDeque<(WriteId, u64)>,
    events: u64,
    loading: bool,
    worker: bool,
    /// The worker was killed, and its exit is to be reported.
    dying: bool,
    calling: bool,
    /// The call under way is an HTTP request.
    requesting: bool,
    written: u64,
}

impl World {
    fn new() -> Self {
        let (args, env) = (JsonText::from_untrusted("[]".to_owned()), JsonText::empty_object());
        let spec = spec();
        let record =
            fresh_record(spec.execution, spec.session, ExecutionStatus::Running, args, env, Timestamp(0));
        let creation = vec![Write::ExecutionStarted { name: None, execution: Arc::new(record.clone()) }];
        let fresh = Fresh { args: Vec::new(), env: Vec::new(), seed: 1, creation };
        Self {
            machine: DurableMachine::fresh(spec, record, fresh),
            now: Now { mono_ms: 1_000, unix_ms: 1_000_000, cpu_us: 0 },
            tokens: 0,
            waiting: BTreeSet::new(),
            writes: VecDeque::new(),
            events: 0,
            loading: false,
            worker: false,
            dying: false,
            calling: false,
            requesting: false,
            written: 0,
        }
    }

    fn token(&mut self) -> RunToken {
        self.tokens += 1;
        self.waiting.insert(self.tokens);
        RunToken::new(self.tokens)
    }

    fn input(&mut self, input: DurableInput) {
        let mut actions = Vec::new();
        self.machine.step(input, self.now, &mut actions);
        for action in actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: DurableAction) {
        match action {
            DurableAction::Spawn(_) => {
                assert!(!self.worker && !self.loading, "two workers");
                (self.loading, self.dying) = (true, false);
            }
            DurableAction::Kill | DurableAction::LetGo => self.dying = self.worker || self.loading,
            DurableAction::Write { id, batch } => {
                let before = self.events;
                for write in &batch {
                    self.check(write);
                }
                self.writes.push_back((id, before));
            }
            DurableAction::Host(_) => (self.calling, self.requesting) = (true, false),
            DurableAction::Request(_) => (self.calling, self.requesting) = (true, true),
            DurableAction::Reply { token, .. } => {
                assert!(self.waiting.remove(&token.number()), "a second reply");
            }
            DurableAction::Send(_) | DurableAction::AllowCpu(_) => {}
        }
    }

    fn check(&mut self, write: &Write) {
        if let Write::Events(events) = write {
            for event in events.iter() {
                self.events += 1;
                assert_eq!(event.seq, self.events, "a gap in the output");
            }
        }
    }

    fn exited(&mut self, status: WorkerExitStatus) {
        if std::mem::take(&mut self.worker) || (self.dying && std::mem::take(&mut self.loading)) {
            (self.calling, self.dying, self.loading) = (false, false, false);
            self.input(DurableInput::Exited(status));
        }
    }

    fn loaded(&mut self, small: bool) {
        if !self.dying && std::mem::take(&mut self.loading) {
            self.worker = true;
            self.input(DurableInput::Loaded { small });
        }
    }

    fn stored(&mut self) {
        if let Some((write, _)) = self.writes.pop_front() {
            self.input(DurableInput::Stored(write));
        }
    }

    /// One step of the input.
    fn step(&mut self, kind: u8, content: &[u8]) {
        let at = number(content);
        let listens = self.worker && !self.dying;
        match kind % 23 {
            0..=7 if listens => match decode::<FromDurable>(content) {
                Ok(message) => self.input(DurableInput::Message(message)),
                // As a whole message: the corpus has these.
                Err(error) => match decode::<FromWorker>(content) {
                    Ok(FromWorker::Durable(message)) => self.input(DurableInput::Message(*message)),
                    _ => self.input(DurableInput::Violation(error.to_string())),
                },
            },
            8 => self.loaded(at.is_multiple_of(2)),
            9 => {
                if !self.dying && std::mem::take(&mut self.loading) {
                    self.input(DurableInput::NotLoaded {
                        why: text(content),
                        permanent: at.is_multiple_of(2),
                    });
                }
            }
            10 => self.exited(match at % 3 {
                0 => WorkerExitStatus::Exited((at >> 8) as i32),
                1 => WorkerExitStatus::KeeperLost,
                _ => WorkerExitStatus::Signaled((at >> 8) as i32 & 0x7f),
            }),
            11 => self.stored(),
            12 => {
                if let Some((write, before)) = self.writes.pop_front() {
                    // A batch without its state has the same events again.
                    self.events = before;
                    let reasons =
                        [Unstored::Conflict, Unstored::TooLarge, Unstored::Failed, Unstored::Withdrawn];
                    let (why, error) = (reasons[at as usize % reasons.len()], text(content));
                    self.input(DurableInput::NotStored { write, why, error });
                }
            }
            13 => {
                if std::mem::take(&mut self.calling) {
                    self.written += at % 4_096;
                    let text = text(content);
                    let result =
                        if at.is_multiple_of(2) { Ok(JsonText::from_untrusted(text)) } else { Err(text) };
                    if self.requesting {
                        let error = HostError { code: "ERR_NET_DENIED".to_owned(), message: String::new() };
                        let (message, level) = (format!("{result:?}"), ConsoleLevel::Warn);
                        let body = content.to_vec();
                        let response =
                            HttpResponse { status: 200, reason: String::new(), headers: Vec::new(), body };
                        let result = if at.is_multiple_of(2) { Ok(response) } else { Err(error) };
                        let notes = vec![EventPayload::System { message, level, code: None }];
                        self.input(DurableInput::Responded { result, notes });
                    } else {
                        self.input(DurableInput::Called { result, written: self.written });
                    }
                }
            }
            14 => {
                let (token, answer) = (self.token(), GivenAnswer::Typed(text(content)));
                let wait = at.is_multiple_of(2);
                self.input(DurableInput::Submit {
                    token,
                    task: None,
                    answer: SubmittedAnswer::Unchecked(answer),
                    with: Vec::new(),
                    wait,
                });
            }
            15 => {
                let token = self.token();
                let value = JsonText::from_untrusted(text(content));
                self.input(DurableInput::Set { token, frame: at as u32, name: "x".to_owned(), value });
            }
            16 => {
                let token = self.token();
                self.input(DurableInput::Cancel { token, with: Vec::new() });
            }
            21 => {
                let (token, name) = (self.token(), "e".to_owned());
                let event = JsonText::from_untrusted("1".to_owned());
                let with = EventWrites { kept: Some(Vec::new()), ..EventWrites::default() };
                self.input(DurableInput::Emit { token, name, event, with });
            }
            17 => self.input(DurableInput::Pressure),
            18 if listens => self.input(DurableInput::Stalled),
            19 => self.input(DurableInput::Continues),
            // Reported once the worker has exited.
            20 if listens => {
                (self.worker, self.calling) = (false, false);
                self.input(DurableInput::ForbiddenCall(text(content)));
            }
            _ => {
                self.now.mono_ms += at % 120_000;
                self.now.unix_ms += (at % 120_000) as i64;
                self.now.cpu_us += at % 1_000_000;
                self.input(DurableInput::Tick);
            }
        }
    }

    /// Every history ends.
    fn end(mut self) {
        self.input(DurableInput::Continues);
        self.input(DurableInput::Stop);
        for _ in 0..LAST_STEPS {
            if self.machine.is_released() {
                break;
            }
            self.stored();
            if self.dying {
                self.exited(WorkerExitStatus::Signaled(9));
            } else {
                self.loaded(true);
            }
            if let Some(deadline) = self.machine.deadline(self.now) {
                self.now.mono_ms = self.now.mono_ms.max(deadline);
                self.input(DurableInput::Tick);
            }
        }
        assert!(self.machine.is_released(), "never released: {:?}", self.machine);
        assert!(self.waiting.is_empty(), "callers without a reply: {:?}", self.waiting);
    }
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let Some((&begun, rest)) = data.split_first() else { return };
    let token = world.token();
    world.input(DurableInput::Start { token, wait: begun % 2 == 0 });
    world.loaded(true);
    for (kind, content) in Pieces::new(rest) {
        if world.machine.is_leaving() {
            break;
        }
        world.step(kind, content);
    }
    world.end();
});
