//! Seeded histories of one execution with crashes, stops and errors of the store at every point: after each the model reads the
//! store again, as a supervisor does at its start. Checked: every acknowledged answer is used exactly once, no task is repeated
//! after its answer was acknowledged, output has no gap, effects are repeated under the same id only, every request gets a
//! reply, and a released machine leaves no worker behind.

mod cases;
mod items;
mod requests;
mod restarts;
mod rows;
mod worker;

use super::input::{
    DurableAction, DurableInput, DurableRefusal, DurableSpec, Fresh, LoadFrom, RunStatus, RunToken, Unstored,
};
use super::{DurableMachine, SubmittedAnswer, fresh_record};
use crate::{Now, WorkerExitStatus, WriteId};
use rows::StoredRows;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::durable::{Cause, End, FromDurable, HostCall, StatePage, Stop};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{EventPayload, Execution, ExecutionStatus, Limits};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemOutcome, ItemRow, StorageLimit, WaitKind, Write};
use vm_system_testkit::SeededRandom;
use worker::{REQUESTS, TASKS, Worker};

/// A stop of the model's worker.
fn stop_at(cause: Cause) -> Stop {
    Stop { cause, cpu_us: 1, heap_bytes: 1, applied: 0 }
}

fn json(text: &str) -> JsonText {
    JsonText::from_untrusted(text.to_owned())
}

fn execution() -> ExecutionId {
    ExecutionId::from_bytes([7; 16])
}

fn spec() -> DurableSpec {
    DurableSpec {
        execution: execution(),
        session: SessionId::from_bytes([8; 16]),
        limits: Limits::default(),
        checkpoint_steps: u64::MAX,
        checkpoint_ms: 1_000,
        warm_ms: 50,
        history: 3,
    }
}

fn record() -> Execution {
    let at = Timestamp(0);
    fresh_record(execution(), spec().session, ExecutionStatus::Running, json("[]"), json("{}"), at)
}

struct World {
    rng: SeededRandom,
    now: Now,
    rows: StoredRows,
    machine: Option<DurableMachine>,
    worker: Option<Worker>,
    loading: Option<LoadFrom>,
    sent: VecDeque<FromDurable>,
    writing: VecDeque<(WriteId, Vec<Write>)>,
    /// A call is under way; its result.
    calling: Option<DurableInput>,
    dying: bool,
    /// The program waits for items, too.
    has_items: bool,
    /// Events without a reply.
    undelivered: BTreeMap<u64, String>,
    delivered: Vec<String>,
    /// Answers without a reply: number of the task, and text.
    unanswered: BTreeMap<u64, (u64, String)>,
    acknowledged: Vec<(u64, String)>,
    /// Callers that wait until the program waits or has ended.
    resuming: BTreeSet<RunToken>,
    resumed: u64,
    effects: Vec<u64>,
    tokens: u64,
    submitted: u64,
    crashes: u64,
    stops: u64,
    lost: u64,
    /// How long a worker is kept after a pause (milliseconds).
    warm_ms: u64,
    /// Callers that change variables, and their refusals.
    refused: Vec<(RunToken, DurableRefusal)>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            rng: SeededRandom::new(seed),
            now: Now { mono_ms: 1_000, unix_ms: 1_000_000, cpu_us: 0 },
            rows: StoredRows::default(),
            machine: None,
            worker: None,
            loading: None,
            sent: VecDeque::new(),
            writing: VecDeque::new(),
            calling: None,
            dying: false,
            has_items: false,
            undelivered: BTreeMap::new(),
            delivered: Vec::new(),
            unanswered: BTreeMap::new(),
            acknowledged: Vec::new(),
            resuming: BTreeSet::new(),
            resumed: 0,
            effects: Vec::new(),
            tokens: 0,
            submitted: 0,
            crashes: 0,
            stops: 0,
            lost: 0,
            warm_ms: if seed.is_multiple_of(4) { 0 } else { spec().warm_ms },
            refused: Vec::new(),
        }
    }

    fn spec(&self) -> DurableSpec {
        DurableSpec { warm_ms: self.warm_ms, ..spec() }
    }

    fn token(&mut self) -> RunToken {
        self.tokens += 1;
        RunToken::new(self.tokens)
    }

    fn step(&mut self, input: DurableInput) {
        let Some(mut machine) = self.machine.take() else { return };
        let mut actions = Vec::new();
        machine.step(input, self.now, &mut actions);
        self.machine = Some(machine);
        for action in actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: DurableAction) {
        match action {
            DurableAction::Spawn(from) => {
                assert!(self.worker.is_none() && self.loading.is_none(), "two workers");
                if let LoadFrom::Checkpoint(seq) = &from {
                    assert!(
                        self.rows.checkpoints.contains_key(seq),
                        "{seq} is not stored: {:?}",
                        self.machine
                    );
                }
                self.dying = false;
                self.loading = Some(from);
            }
            DurableAction::Send(order) => {
                if let Some(worker) = &mut self.worker {
                    self.sent.extend(worker.on_message(&order));
                }
            }
            DurableAction::AllowCpu(_) => {}
            DurableAction::Kill | DurableAction::LetGo => {
                self.dying = self.worker.is_some() || self.loading.is_some();
            }
            DurableAction::Write { id, batch } => self.writing.push_back((id, batch)),
            DurableAction::Host(work) => {
                work.effect.into_iter().for_each(|effect| self.effect(effect));
                self.calling = Some(DurableInput::Called { result: Ok(json("true")), written: 0 });
            }
            DurableAction::Request(work) => {
                self.effect(work.effect);
                let later = self.rows.checkpoints.range(work.effect + 1..);
                assert_eq!(later.count(), 0, "its response is stored");
                let result = Ok(requests::response());
                self.calling = Some(DurableInput::Responded { result, notes: vec![requests::note()] });
            }
            DurableAction::Reply { token, result } if self.resuming.remove(&token) => {
                if let Ok(status) = result {
                    self.resumed += 1;
                    let RunStatus { record, task, waiting_for, .. } = *status;
                    let is_far = waiting_for.wakes_at.is_none_or(|at| at.0 > self.now.unix_ms + 60_000);
                    let needs =
                        task.is_some_and(|task| task.ended_at.is_none()) || waiting_for.events > 0 || is_far;
                    let rests =
                        record.status.is_final() || record.status == ExecutionStatus::Waiting && needs;
                    assert!(rests, "the reply is not the program's rest: {:?}", record.status);
                }
            }
            DurableAction::Reply { token, result } if self.undelivered.contains_key(&token.number()) => {
                let event = self.undelivered.remove(&token.number()).expect("it was there");
                if result.is_ok() {
                    self.delivered.push(event);
                }
            }
            DurableAction::Reply { token, result } => {
                let unanswered = self.unanswered.remove(&token.number());
                match (unanswered, result) {
                    (Some(answer), Ok(_)) => self.acknowledged.push(answer),
                    (None, Ok(_))
                    | (
                        Some(_),
                        Err(
                            DurableRefusal::NotPending
                            | DurableRefusal::Ended
                            | DurableRefusal::Ambiguous { .. }
                            | DurableRefusal::Busy
                            | DurableRefusal::NoWorker(_)
                            | DurableRefusal::Storage(_)
                            | DurableRefusal::Stopping,
                        ),
                    ) => {}
                    (None, Err(why)) => self.refused.push((token, why)),
                    (Some(_), Err(why)) => panic!("refused: {why}"),
                }
            }
        }
    }

    fn effect(&mut self, effect: u64) {
        let stored = self.rows.checkpoints.get(&effect).expect("made before it was stored");
        assert_eq!(stored.0, "effect");
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    /// Memory is lost; the supervisor starts again.
    fn crash(&mut self) {
        self.crashes += 1;
        (self.worker, self.loading, self.calling, self.dying) = (None, None, None, false);
        self.sent.clear();
        // Any prefix of the batches in the store's queue may have become durable.
        let kept = self.rng.below(self.writing.len() as u64 + 1);
        for (_, batch) in std::mem::take(&mut self.writing).into_iter().take(kept as usize) {
            self.rows.apply(batch);
        }
        self.unanswered.clear();
        self.undelivered.clear();
        self.resuming.clear();
        self.machine = None;
        self.begin();
    }

    fn begin(&mut self) {
        match self.rows.found() {
            Some(found) if found.record.status.is_final() => {}
            Some(found) => {
                let runs = found.record.status == ExecutionStatus::Running;
                self.machine = Some(DurableMachine::from_stored(self.spec(), found));
                if runs {
                    self.step(DurableInput::Wake { token: None });
                }
            }
            None => {
                let creation =
                    vec![Write::ExecutionStarted { name: None, execution: std::sync::Arc::new(record()) }];
                let fresh = Fresh { args: Vec::new(), env: Vec::new(), seed: 1, creation };
                self.machine = Some(DurableMachine::fresh(self.spec(), record(), fresh));
                let token = self.token();
                let wait = self.rng.below(2) == 0;
                self.step(DurableInput::Start { token, wait });
            }
        }
    }

    /// One random event.
    fn go(&mut self, may_crash: bool) {
        self.now.mono_ms += self.rng.below(4);
        self.now.unix_ms += 1;
        self.now.cpu_us += 1;
        self.leave();
        match self.rng.below(if may_crash { 26 } else { 20 }) {
            0..=4 => {
                if may_crash && self.rng.below(24) == 0 {
                    self.lose();
                } else if let Some((id, batch)) = self.writing.pop_front() {
                    self.rows.apply(batch);
                    self.step(DurableInput::Stored(id));
                }
            }
            5..=9 => {
                if self.dying {
                    self.exited(WorkerExitStatus::Signaled(9));
                } else if let Some(message) = self.sent.pop_front() {
                    self.step(DurableInput::Message(message));
                }
            }
            10 if may_crash && !self.dying && self.rng.below(4) == 0 => {
                if self.loading.take().is_some() {
                    let why = "none".to_owned();
                    self.step(DurableInput::NotLoaded { why, permanent: false });
                }
            }
            10..=12 => self.spawned(),
            13 => {
                if let Some(called) = self.calling.take() {
                    self.step(called);
                }
            }
            14 if self.has_items => self.emit(),
            14..=16 => self.submit(),
            17 => {
                self.now.mono_ms += 10;
                self.resume();
            }
            18 | 19 => {
                let due = self.machine.as_ref().and_then(|machine| machine.deadline(self.now));
                if due.is_some_and(|at| at <= self.now.mono_ms) {
                    self.step(DurableInput::Tick);
                }
            }
            20 => self.step(DurableInput::Pressure),
            // Not too often: a program is given up after repeated exits of its worker, as it should be.
            21 if self.worker.is_some() && self.rng.below(8) == 0 => {
                self.exited(WorkerExitStatus::KeeperLost);
            }
            22 if self.rng.below(12) == 0 && !self.is_leaving() => {
                self.stops += 1;
                self.step(DurableInput::Stop);
            }
            _ => {
                if self.rng.below(6) == 0 {
                    self.crash();
                }
            }
        }
    }

    fn is_leaving(&self) -> bool {
        self.machine.as_ref().is_some_and(DurableMachine::is_leaving)
    }

    /// A leaving machine is released once its worker has exited and every batch has its result; then its owner ends, and
    /// the execution is found again: by the alarm, or by the next supervisor.
    fn leave(&mut self) {
        if !self.is_leaving() {
            return;
        }
        let worker = self.worker.is_some() || self.loading.is_some();
        assert!(!worker || self.dying, "a worker is left behind: {:?}", self.machine);
        if !worker && self.writing.is_empty() {
            let machine = self.machine.as_ref();
            assert!(machine.is_some_and(DurableMachine::is_released), "it is never released: {machine:?}");
            let replied =
                self.unanswered.is_empty() && self.resuming.is_empty() && self.undelivered.is_empty();
            assert!(replied, "a caller never gets a reply: {machine:?}");
            self.begin();
        }
    }

    /// The store refuses its oldest batch; it may accept later ones.
    fn lose(&mut self) {
        if let Some((write, _)) = self.writing.pop_front() {
            self.lost += 1;
            let error = "the disk is full".to_owned();
            self.step(DurableInput::NotStored { write, why: Unstored::Failed, error });
        }
    }

    fn exited(&mut self, exit_status: WorkerExitStatus) {
        self.ends(DurableInput::Exited(exit_status));
    }

    /// The worker exits, and the machine gets this input.
    fn ends(&mut self, input: DurableInput) {
        (self.worker, self.loading, self.calling, self.dying) = (None, None, None, false);
        self.sent.clear();
        self.step(input);
    }

    /// Each worker ends with this input, until the program is given up.
    fn each_ends(&mut self, input: impl Fn() -> DurableInput) {
        for _ in 0..10_000 {
            if self.is_over() {
                return;
            }
            if self.worker.is_some() {
                self.ends(input());
            }
            self.go(false);
        }
    }

    fn spawned(&mut self) {
        let Some(from) = self.loading.take() else { return };
        if self.dying {
            self.exited(WorkerExitStatus::Signaled(9));
            return;
        }
        self.worker = Some(match from {
            LoadFrom::Beginning => Worker::new(self.has_items),
            LoadFrom::Checkpoint(seq) => {
                self.sent.push_back(FromDurable::Restored);
                Worker::restore(&self.rows.checkpoints.get(&seq).expect("stored").1)
            }
        });
        let small = self.rng.below(2) == 0;
        self.step(DurableInput::Loaded { small });
    }

    fn submit(&mut self) {
        let open = |task: &&ItemRow| task.ended_at.is_none() && task.kind == WaitKind::Question;
        let open: Vec<&ItemRow> = self.rows.tasks.iter().filter(open).collect();
        let several = open.len() > 1;
        let pending = (!open.is_empty()).then(|| open[self.rng.below(open.len() as u64) as usize].clone());
        let (Some(task), Some(_), false) = (pending, &self.machine, self.is_leaving()) else { return };
        self.submitted += 1;
        let answer = format!("a{}", self.submitted);
        let token = self.token();
        self.unanswered.insert(token.number(), (task.item, answer.clone()));
        let (answer, wait) = (SubmittedAnswer::Unchecked(GivenAnswer::Typed(answer)), self.rng.below(2) == 0);
        // Without an id the answer is for the only pending task, whatever is being stored.
        let named = several || self.rng.below(2) == 0;
        let task = named.then_some(task.id);
        self.step(DurableInput::Submit { token, task, answer, with: Vec::new(), wait });
    }

    /// A caller waits for the program's next rest.
    fn resume(&mut self) {
        if self.machine.is_some() && !self.is_leaving() && self.rng.below(2) == 0 {
            let token = self.token();
            self.resuming.insert(token);
            self.step(DurableInput::Wake { token: Some(token) });
        }
    }

    fn is_over(&self) -> bool {
        self.rows.record.as_ref().is_some_and(|record| record.status.is_final())
    }

    fn check(&self, seed: u64) {
        let record = self.rows.record.as_ref().expect("a row");
        assert_eq!(record.status, ExecutionStatus::Ok, "seed {seed}: {:?}", record.error);
        assert!(self.resuming.is_empty(), "seed {seed}: a caller never gets a reply");
        let used: Vec<String> = self.rows.tasks.iter().filter_map(|task| task.answer.clone()).collect();
        assert_eq!(used.len() as u64, TASKS, "seed {seed}");
        let result = record.result_json().unwrap_or_default();
        assert_eq!(
            result,
            format!("\"{}\"", used.join(",")),
            "seed {seed}: stored answers are the used ones"
        );
        let printed: Vec<&str> =
            self.rows.events.iter().map(|(_, text)| text.as_str()).filter(|text| !text.is_empty()).collect();
        assert_eq!(printed, used, "seed {seed}: output");
        for (item, answer) in &self.acknowledged {
            let task = self.rows.tasks.iter().find(|task| task.item == *item);
            let stored = task.and_then(|task| task.answer.as_ref());
            assert_eq!(stored, Some(answer), "seed {seed}: an acknowledged answer was lost");
        }
        assert_eq!(self.effects.len() as u64, TASKS / 2, "seed {seed}: effects under ids of their own");
        assert_eq!(self.rows.effects, TASKS / 2, "seed {seed}: an effect has one checkpoint");
        assert_eq!(self.rows.responses, REQUESTS, "seed {seed}: a response is stored once, with its record");
        assert_eq!(self.rows.checkpoints.values().next_back().expect("one").0, "pause", "seed {seed}");
    }
}

/// Runs one history to its end.
fn history(seed: u64) -> World {
    let mut world = World::new(seed);
    world.begin();
    for _ in 0..200_000 {
        if world.is_over() {
            world.check(seed);
            return world;
        }
        world.go(true);
    }
    panic!("seed {seed} does not end: {:?}", world.machine);
}

#[test]
fn every_answer_is_used_once_despite_any_crash() {
    let (mut crashes, mut stops, mut lost, mut resumed) = (0, 0, 0, 0);
    for seed in 0..600 {
        let world = history(seed);
        (crashes, stops, lost) = (crashes + world.crashes, stops + world.stops, lost + world.lost);
        resumed += world.resumed;
    }
    assert!(resumed > 1_000, "callers hardly waited: {resumed}");
    assert!(crashes > 1_000, "the model hardly crashed: {crashes}");
    assert!(stops > 500 && lost > 200, "the model hardly stopped ({stops}) or lost anything ({lost})");
}
