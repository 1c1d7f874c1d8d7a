//! Histories of a program that waits for many things at once: questions, timers and events beside its pauses and effects. Checked: each
//! answer is used once, in the order in which it was accepted, whatever crashes; an acknowledged one is never lost; the numbers and ids of
//! items do not change; an execution that has not ended can always go on.

use super::{World, json};
use crate::durable::{DurableInput, DurableMachine, EventWrites, Fresh, RunToken};
use std::collections::BTreeSet;
use vm_system_protocol::durable::{
    AnsweredItem, Cause, CreatedItem, End, FromDurable, HostCall, ItemContent, StatePage, Stop, TaskAnswer,
    ToDurable,
};
use vm_system_protocol::model::ExecutionStatus;
use vm_system_record::{ITEMS_FROM, ItemOutcome, ItemRow, Write};

/// Items of the model's program; it does not wait for the last two of them.
const ITEMS: u64 = 14;
/// Items that it creates at once in the beginning.
const FIRST: u64 = 4;

/// The model's program: it has some items at a time, and creates another one for each that is answered. After each fifth answer it pauses,
/// after each seventh it requests an effect.
#[derive(Debug, Clone, Default)]
pub(super) struct ItemProgram {
    /// Numbers and answers in the order of their use; 0: of a pause.
    log: Vec<(u64, String)>,
    last: u64,
    open: BTreeSet<u64>,
    applied: u32,
    /// Between two rests: what it does next.
    step: u8,
}

fn content(number: u64) -> ItemContent {
    match number % 3 {
        0 => ItemContent::Timer { duration_ms: 3 * number },
        1 => ItemContent::Question { prompt: format!("question {number}"), options: None },
        _ => ItemContent::Event { name: "e".to_owned(), timeout_ms: None, fallback: None },
    }
}

impl ItemProgram {
    pub(super) fn page(&self) -> Vec<u8> {
        let log: Vec<String> = self.log.iter().map(|(number, answer)| format!("{number}={answer}")).collect();
        let open: Vec<String> = self.open.iter().map(u64::to_string).collect();
        format!("items|{}|{}|{}|{}", log.join(","), self.last, open.join(","), self.step).into_bytes()
    }

    pub(super) fn restore(page: &str) -> Option<Self> {
        let mut parts = page.strip_prefix("items|")?.split('|');
        let mut part = || parts.next().expect("the model's own");
        let entry = |entry: &str| {
            let (number, answer) = entry.split_once('=').expect("the model's own");
            (number.parse().expect("a number"), answer.to_owned())
        };
        let some = |text: &&str| !text.is_empty();
        let log = part().split(',').filter(some).map(entry).collect();
        let last = part().parse().expect("a number");
        let open = part().split(',').filter(some).map(|number| number.parse().expect("a number")).collect();
        let step = part().parse().expect("a number");
        Some(Self { log, last, open, applied: 0, step })
    }

    fn create(&mut self, count: u64) -> Vec<FromDurable> {
        let until = (self.last + count).min(ITEMS);
        let items: Vec<CreatedItem> = (self.last + 1..=until)
            .map(|number| CreatedItem { number, at_us: 0, content: content(number) })
            .collect();
        self.last = until;
        self.open.extend(items.iter().map(|item| item.number));
        if items.is_empty() { Vec::new() } else { vec![FromDurable::Items(items)] }
    }

    fn stop(&mut self, cause: Cause) -> Vec<FromDurable> {
        let applied = std::mem::take(&mut self.applied);
        let stop = Stop { cause, cpu_us: 1, heap_bytes: 1, applied };
        let page = StatePage { number: 0, bytes: self.page() };
        vec![FromDurable::Pages(vec![page]), FromDurable::Checkpoint(Box::new(stop))]
    }

    /// The cause that stops it before it waits for its items.
    fn interruption(&mut self) -> Option<Cause> {
        let used = self.log.iter().filter(|(number, _)| *number > 0).count();
        if used as u64 + 2 >= ITEMS {
            let log: Vec<String> =
                self.log.iter().map(|(number, answer)| format!("{number}={answer}")).collect();
            return Some(Cause::Ended(End::Ok { result: json(&format!("\"{}\"", log.join(","))) }));
        }
        let step = std::mem::replace(&mut self.step, 1);
        let effect = HostCall { name: "writeFile".to_owned(), args: json("[]") };
        match step {
            0 if used > 0 && used % 5 == 0 => {
                // The state in the store waits for the answer.
                Some(Cause::Pause { prompt: format!("pause {used}"), options: None })
            }
            0 if used > 0 && used % 7 == 0 => {
                self.step = 0;
                Some(Cause::Effect(effect))
            }
            0 if used > 0 && used % 3 == 0 => Some(Cause::Steps),
            _ => None,
        }
    }

    /// Runs until it waits for something that it does not have.
    fn go_on(&mut self, answers: &[AnsweredItem]) -> Vec<FromDurable> {
        let mut answers = answers.iter();
        let mut sent = if self.last == 0 { self.create(FIRST) } else { Vec::new() };
        loop {
            if let Some(cause) = self.interruption() {
                sent.extend(self.stop(cause));
                return sent;
            }
            let Some(AnsweredItem { number, answer }) = answers.next() else { break };
            assert!(self.open.remove(number), "item {number} has an answer already, or is none");
            let answer = match answer {
                None => "time".to_owned(),
                Some(TaskAnswer::Text(text)) => text.clone(),
                Some(TaskAnswer::Json(json)) => json.as_str().to_owned(),
                Some(other) => panic!("the model has no such answer: {other:?}"),
            };
            self.log.push((*number, answer));
            (self.applied, self.step) = (self.applied + 1, 0);
            sent.extend(self.create(1));
        }
        sent.extend(self.stop(Cause::Wait));
        sent
    }

    pub(super) fn on_message(&mut self, order: &ToDurable) -> Vec<FromDurable> {
        match order {
            ToDurable::Start { .. } => {
                self.step = 1;
                let mut sent = self.stop(Cause::Started);
                sent.extend(self.go_on(&[]));
                sent
            }
            ToDurable::Answers { answers, .. } => self.go_on(answers),
            ToDurable::Answer { answer: TaskAnswer::Text(text), .. } => {
                self.log.push((0, text.clone()));
                self.go_on(&[])
            }
            ToDurable::HostResult { .. } => {
                self.step = 1;
                self.go_on(&[])
            }
            ToDurable::Continue { .. } => self.go_on(&[]),
            other => panic!("the model does not handle {other:?}"),
        }
    }
}

impl World {
    /// A client sends an event.
    pub(super) fn emit(&mut self) {
        let is_enough = self.rows.items().filter(|item| item.name.is_some()).count() < self.delivered.len();
        if self.machine.is_none() || self.is_leaving() || is_enough {
            return;
        }
        self.submitted += 1;
        let event = format!("{}", self.submitted);
        let token = self.token();
        self.undelivered.insert(token.number(), event.clone());
        let with = EventWrites { kept: Some(Vec::new()), ..EventWrites::default() };
        let (name, event) = ("e".to_owned(), json(&event));
        self.step(DurableInput::Emit { token, name, event, with });
    }

    fn check_items(&self, seed: u64) {
        let record = self.rows.record.as_ref().expect("a row");
        assert_eq!(record.status, ExecutionStatus::Ok, "seed {seed}: {:?}", record.error);
        let result = record.result_json().unwrap_or_default();
        let mut used: Vec<&ItemRow> =
            self.rows.items().filter(|item| item.outcome != Some(ItemOutcome::Withdrawn)).collect();
        used.sort_by_key(|item| item.answer_seq);
        let text = |item: &&ItemRow| {
            let answer = item.answer.clone().unwrap_or_else(|| "time".to_owned());
            format!("{}={answer}", item.item - ITEMS_FROM)
        };
        let log: Vec<&str> = result.trim_matches('"').split(',').collect();
        let by_items: Vec<&str> = log.iter().copied().filter(|entry| !entry.starts_with("0=")).collect();
        let accepted: Vec<String> = used.iter().map(text).take(by_items.len()).collect();
        let taken = used.iter().filter(|item| item.taken_at.is_some()).count();
        assert_eq!(taken, by_items.len(), "seed {seed}: answers that the program has used are not abandoned");
        assert_eq!(
            by_items, accepted,
            "seed {seed}: answers are used in the order in which they were accepted"
        );
        for (item, answer) in &self.acknowledged {
            let stored = self.rows.tasks.iter().find(|task| task.item == *item);
            assert_eq!(
                stored.and_then(|task| task.answer.as_ref()),
                Some(answer),
                "seed {seed}: a lost answer"
            );
        }
        for event in &self.delivered {
            let stored = used.iter().any(|item| item.answer.as_ref() == Some(event));
            let kept = self.rows.mailbox.iter().any(|mail| mail.event == *event);
            assert!(stored || kept, "seed {seed}: the event {event} was lost");
        }
        assert_eq!(self.rows.items().count() as u64, ITEMS, "seed {seed}: each item has one row");
        assert!(
            self.resuming.is_empty() && self.unanswered.is_empty(),
            "seed {seed}: a caller never gets a reply"
        );
    }
}

/// Runs one history to its end.
fn history(seed: u64) -> World {
    let mut world = World::new(seed);
    world.has_items = true;
    world.begin();
    for _ in 0..200_000 {
        if world.is_over() && world.writing.is_empty() {
            world.check_items(seed);
            return world;
        }
        world.go(true);
    }
    panic!("seed {seed} does not end: {:?}", world.machine);
}

#[test]
fn every_answer_is_used_once_in_its_order_despite_any_crash() {
    let (mut crashes, mut stops, mut lost, mut delivered) = (0, 0, 0, 0);
    for seed in 0..600 {
        let world = history(seed);
        (crashes, stops, lost) = (crashes + world.crashes, stops + world.stops, lost + world.lost);
        delivered += world.delivered.len();
    }
    assert!(delivered > 1_000, "hardly an event was acknowledged: {delivered}");
    assert!(crashes > 1_000, "the model hardly crashed: {crashes}");
    assert!(stops > 300 && lost > 100, "the model hardly stopped ({stops}) or lost anything ({lost})");
}

/// A caller that waits, and a program that sleeps for so long after its start; whether the caller has its reply.
fn is_answered_while_it_sleeps(duration_ms: u64) -> bool {
    let mut world = World::new(1);
    world.has_items = true;
    let creation =
        vec![Write::ExecutionStarted { name: None, execution: std::sync::Arc::new(super::record()) }];
    let fresh = Fresh { args: Vec::new(), env: Vec::new(), seed: 1, creation };
    world.machine = Some(DurableMachine::fresh(world.spec(), super::record(), fresh));
    world.step(DurableInput::Start { token: RunToken::new(1), wait: true });
    world.resuming.insert(RunToken::new(1));
    world.spawned();
    world.sent.clear();
    let item = CreatedItem { number: 1, at_us: 0, content: ItemContent::Timer { duration_ms } };
    world.step(DurableInput::Message(FromDurable::Items(vec![item])));
    for message in ItemProgram::default().stop(Cause::Wait) {
        world.step(DurableInput::Message(message));
    }
    while let Some((write, batch)) = world.writing.pop_front() {
        world.rows.apply(batch);
        world.step(DurableInput::Stored(write));
    }
    world.resumed == 1
}

#[test]
fn callers_wait_for_a_sleep_that_ends_soon_and_for_no_long_one() {
    assert!(!is_answered_while_it_sleeps(59_000));
    assert!(is_answered_while_it_sleeps(61_000));
}

#[test]
fn answers_that_are_not_used_have_a_largest_size() {
    let mut world = World::new(1);
    world.has_items = true;
    world.begin();
    while !world.rows.items().any(|item| item.name.is_none() && item.ended_at.is_none()) {
        world.go(false);
    }
    let Some(machine) = &mut world.machine else { panic!("it waits") };
    let open = machine.items.questions().next().cloned().expect("a question");
    let number = machine.items.number_of(open.id).expect("it is open");
    machine.accept_item(number, ItemOutcome::Answered, Some("x".repeat(10 << 20)), world.now);
    assert!(machine.items.has_space_for(5 << 20) && !machine.items.has_space_for((6 << 20) + 1));
}
