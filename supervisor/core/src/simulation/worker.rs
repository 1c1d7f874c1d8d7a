//! A simulated worker: correct by default, hostile at random steps.

use crate::WorkerExitStatus;
use std::collections::VecDeque;
use vm_system_protocol::broker::FsRequest;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, JsType, ResultValue};
use vm_system_protocol::reason::LimitKind;
use vm_system_protocol::worker::{Done, FromWorker, HostRequest, Outcome, ToWorker, Usage, WorkerEvent};
use vm_system_testkit::SeededRandom;

/// The next act of a script.
enum Move {
    Print(u64),
    Call,
    /// `CC`: sometimes with options that are wrong, or with little time.
    Ask,
    /// Runs until it is interrupted.
    Spin,
    /// A native that never polls: only SIGKILL ends it.
    Hang,
    Finish(Outcome),
}

struct Script {
    execution: ExecutionId,
    moves: VecDeque<Move>,
    waiting: Option<u64>,
    /// Tasks so far.
    tasks: u64,
}

pub(super) struct SimulatedWorker {
    /// Sent and not read yet.
    pub(super) sent: VecDeque<(u64, FromWorker)>,
    /// Sent and not acknowledged yet.
    kept: VecDeque<(u64, FromWorker)>,
    next_seq: u64,
    next_call: u64,
    script: Option<Script>,
    interrupted: bool,
    started: bool,
    adopted: bool,
    /// The last execution that ended.
    finished: Option<ExecutionId>,
    pub(super) exited: Option<WorkerExitStatus>,
    pub(super) acked: u64,
    pub(super) lied: bool,
    /// Ordered, and not reported yet.
    fork: Option<u64>,
}

impl SimulatedWorker {
    pub(super) fn new() -> Self {
        Self {
            sent: VecDeque::new(),
            kept: VecDeque::new(),
            next_seq: 1,
            next_call: 1,
            script: None,
            interrupted: false,
            started: false,
            adopted: false,
            finished: None,
            exited: None,
            acked: 0,
            lied: false,
            fork: None,
        }
    }

    fn send(&mut self, message: FromWorker) {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.kept.push_back((seq, message.clone()));
        self.sent.push_back((seq, message));
    }

    pub(super) fn running(&self) -> Option<ExecutionId> {
        self.script.as_ref().map(|script| script.execution)
    }

    /// Executions with an end that is not acknowledged.
    pub(super) fn kept_ends(&self) -> impl Iterator<Item = ExecutionId> {
        self.kept.iter().filter_map(|(_, message)| match message {
            FromWorker::Done(done) => Some(done.execution),
            _ => None,
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        self.script.is_some()
    }

    pub(super) fn exit(&mut self, exit_status: WorkerExitStatus) {
        if self.exited.is_none() {
            self.exited = Some(exit_status);
        }
        self.script = None;
    }

    /// Receives a message; an error if the supervisor may not send it now.
    pub(super) fn on_message(&mut self, message: ToWorker, rng: &mut SeededRandom) -> Result<(), String> {
        if self.exited.is_some() {
            return Ok(());
        }
        match message {
            ToWorker::Durable(_) => return Err("a message of the other engine".to_owned()),
            ToWorker::Fork { .. } => return Err("a fork that was not permitted".to_owned()),
            ToWorker::Start(_) if std::mem::replace(&mut self.started, true) => {
                return Err("Start twice".to_owned());
            }
            ToWorker::Start(_) => self.send(FromWorker::Started { heap_bytes: 1 }),
            ToWorker::Execute(_) if self.script.is_some() && !self.lied => {
                return Err("Execute while one runs".to_owned());
            }
            ToWorker::Execute(job) => {
                self.interrupted = false;
                self.script =
                    Some(Script { execution: job.execution, moves: script(rng), waiting: None, tasks: 0 });
            }
            ToWorker::HostReply { call, .. } => match &mut self.script {
                Some(script) if script.waiting == Some(call) => script.waiting = None,
                // It had the answer from a supervisor that exited, and repeated the call for the next one.
                _ if self.lied || self.adopted => {}
                _ => return Err(format!("HostReply {call} without a pending call")),
            },
            ToWorker::Ack { seq } => {
                if seq <= self.acked {
                    return Err(format!("Ack {seq} after {}", self.acked));
                }
                self.acked = seq;
                self.kept.retain(|(kept, _)| *kept > seq);
            }
            ToWorker::Adopt { last_committed, nonce } => {
                self.adopted = true;
                // Above the stored number if the supervisor before could not store what it acknowledged.
                self.acked = self.acked.max(last_committed);
                let acknowledged = self.acked;
                self.kept.retain(|(kept, _)| *kept > acknowledged);
                let running = self.script.as_ref().map(|script| script.execution);
                let (last_sent, finished) = (self.next_seq - 1, self.finished);
                let adopted = FromWorker::Adopted { nonce, acknowledged, last_sent, running, finished };
                self.sent.push_back((0, adopted));
                self.sent.extend(self.kept.iter().cloned());
            }
            ToWorker::Shutdown => self.exit(WorkerExitStatus::Exited(0)),
        }
        Ok(())
    }

    /// Gets a fork order.
    pub(super) fn order_fork(&mut self, order: u64) -> Result<(), String> {
        if self.exited.is_some() {
            return Ok(());
        }
        if (self.script.is_some() && !self.lied) || self.fork.is_some() {
            return Err("Fork while something runs".to_owned());
        }
        self.fork = Some(order);
        Ok(())
    }

    /// Reports its fork, if one was ordered; returns whether there is a child.
    pub(super) fn fork(&mut self, rng: &mut SeededRandom) -> Option<bool> {
        let order = self.fork.take().filter(|_| self.exited.is_none())?;
        let made = rng.below(4) > 0;
        self.send(if made {
            FromWorker::Forked { order }
        } else {
            FromWorker::ForkFailed { order, errno: 11 }
        });
        Some(made)
    }

    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Runs a little. `hostile`: may break the rules.
    pub(super) fn run(&mut self, hostile: bool, rng: &mut SeededRandom) {
        if self.exited.is_some() {
            return;
        }
        if hostile && rng.one_in(12) {
            self.lied = true;
            return self.lie(rng);
        }
        let interrupted = self.interrupted;
        let Some(script) = &mut self.script else { return };
        let execution = script.execution;
        if script.waiting.is_some() || matches!(script.moves.front(), Some(Move::Hang)) {
            return;
        }
        if interrupted {
            return self.finish(execution, Outcome::Interrupted);
        }
        match script.moves.pop_front() {
            Some(Move::Spin) => script.moves.push_front(Move::Spin),
            Some(Move::Print(count)) => {
                let events = (0..count.max(1)).map(|at| print(at * 700, rng)).collect();
                self.send(FromWorker::Events { execution, events });
            }
            Some(Move::Call) => {
                let call = self.next_call;
                self.next_call += 1;
                script.waiting = Some(call);
                let request = match rng.below(4) {
                    0 => HostRequest::Stdin { max_bytes: 1, wait_ms: 1_000_000 },
                    1 => HostRequest::Fs(FsRequest::Exists { path: "a".to_owned() }),
                    _ => HostRequest::LoadModule {
                        candidates: vec!["a".to_owned()],
                        import: false,
                        package: false,
                    },
                };
                self.send(FromWorker::HostCall { execution, call, request });
            }
            Some(Move::Ask) => {
                let call = self.next_call;
                self.next_call += 1;
                script.waiting = Some(call);
                script.tasks += 1;
                let number = script.tasks;
                let options = match rng.below(6) {
                    0 => Some(r#"{"timeout_ms":20}"#),
                    1 => Some(r#"{"timeout_ms":0,"default":1}"#),
                    2 => Some(r#"{"schema":{"type":"number"},"retries":1}"#),
                    3 => Some(r#"{"schema":{"pattern":"x"}}"#),
                    _ => None,
                };
                let options = options.map(|json| JsonText::from_untrusted(json.to_owned()));
                let request = HostRequest::Ask { number, prompt: "what next?".to_owned(), options };
                self.send(FromWorker::HostCall { execution, call, request });
            }
            Some(Move::Finish(outcome)) => self.finish(execution, outcome),
            Some(Move::Hang) | None => self.finish(execution, Outcome::Ok),
        }
    }

    fn finish(&mut self, execution: ExecutionId, outcome: Outcome) {
        self.script = None;
        self.finished = Some(execution);
        self.send(done(execution, outcome));
    }

    /// A message that no correct worker sends now.
    fn lie(&mut self, rng: &mut SeededRandom) {
        let stranger = ExecutionId::from_bytes(rng.id());
        let current = self.script.as_ref().map_or(stranger, |script| script.execution);
        let forbidden =
            WorkerEvent { at_us: u64::MAX, payload: EventPayload::Stdout { text: "x".to_owned() } };
        let broken = WorkerEvent {
            at_us: 0,
            payload: EventPayload::Value(ResultValue {
                kind: JsType::Object,
                preview: String::new(),
                json: Some(JsonText::from_untrusted("{".to_owned())),
                truncated: false,
                full_bytes: None,
            }),
        };
        match rng.below(15) {
            13 => self.send(FromWorker::Forked { order: self.fork.unwrap_or(rng.below(4)) }),
            14 => {
                let order = self.fork.unwrap_or(rng.below(4));
                self.send(FromWorker::ForkFailed { order, errno: 12 });
            }
            12 => {
                let number = rng.below(4);
                let request = HostRequest::Ask { number, prompt: "?".to_owned(), options: None };
                self.send(FromWorker::HostCall { execution: current, call: self.next_call, request });
            }
            0 => self.send(FromWorker::Started { heap_bytes: u64::MAX }),
            1 => self.send(FromWorker::Events { execution: stranger, events: vec![print(0, rng)] }),
            2 => self.send(FromWorker::Events { execution: current, events: Vec::new() }),
            3 => self.send(FromWorker::Events { execution: current, events: vec![forbidden] }),
            4 => self.send(FromWorker::Events { execution: current, events: vec![broken] }),
            5 => self.send(done(stranger, Outcome::Ok)),
            6 => {
                self.send(done(current, Outcome::Ok));
                self.send(done(current, Outcome::Ok));
            }
            7 => {
                self.next_seq += 1 + rng.below(3);
                self.send(FromWorker::Started { heap_bytes: 0 });
            }
            8 => self.send(FromWorker::Adopted {
                nonce: rng.below(9),
                acknowledged: rng.below(9),
                last_sent: rng.below(9),
                running: None,
                finished: None,
            }),
            9 => {
                let request = HostRequest::Fs(FsRequest::Exists { path: String::new() });
                self.send(FromWorker::HostCall { execution: current, call: u64::MAX, request });
            }
            10 => {
                let events = (0..3_000).map(|_| print(0, rng)).collect();
                self.send(FromWorker::Events { execution: current, events });
            }
            _ => self.send(done(current, Outcome::Limit(LimitKind::Pids))),
        }
    }
}

fn script(rng: &mut SeededRandom) -> VecDeque<Move> {
    let mut moves = VecDeque::new();
    for _ in 0..rng.below(5) {
        moves.push_back(match rng.below(6) {
            0 | 1 => Move::Call,
            2 => Move::Ask,
            _ => Move::Print(rng.below(4)),
        });
    }
    moves.push_back(match rng.below(16) {
        0 => Move::Spin,
        1 => Move::Hang,
        2 => Move::Finish(Outcome::Exception { message: "Error: x".to_owned() }),
        3 => Move::Finish(Outcome::SyntaxError { message: "SyntaxError: x".to_owned() }),
        4 => Move::Finish(Outcome::Limit(LimitKind::Cpu)),
        5 => Move::Finish(Outcome::Limit(LimitKind::Output)),
        _ => Move::Finish(Outcome::Ok),
    });
    moves
}

fn print(at_us: u64, rng: &mut SeededRandom) -> WorkerEvent {
    let text = "x".repeat(rng.below(9) as usize);
    WorkerEvent { at_us, payload: EventPayload::console(ConsoleLevel::Log, text) }
}

fn done(execution: ExecutionId, outcome: Outcome) -> FromWorker {
    let value = EventPayload::Value(ResultValue {
        kind: JsType::Number,
        preview: "1".to_owned(),
        json: Some(JsonText::from_untrusted("1".to_owned())),
        truncated: false,
        full_bytes: None,
    });
    FromWorker::Done(Box::new(Done {
        execution,
        events: vec![WorkerEvent { at_us: 5, payload: value }],
        outcome,
        usage: Usage { cpu_us: u64::MAX, heap_bytes: u64::MAX, heap_peak_bytes: u64::MAX },
    }))
}
