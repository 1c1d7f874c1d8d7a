//! Pending items of a program: questions, timers and events for which it waits beside its pauses.
//!
//! An item is *open* until it is answered, or its time has come. Its answer is kept, in the order of acceptance, until a checkpoint whose
//! state has it: the program gets the answers that are there when it has nothing else to do. An event without an item that waits for it is
//! in the mailbox. The rules and their reasons: docs/decisions/031-answers-are-used-in-order.md.

use super::input::{DurableAction as Action, MAILBOX_BYTES, MAILBOX_EVENTS};
use super::machine::{COMMIT_MS, DurableMachine, HOLD_MS};
use super::options::{TIMEOUT_MAX_MS, item_id, new_item, task_of_pause};
use super::spent::Spent;
use super::state::{NextStep, Stage};
use super::stored::answer_of;
use crate::Now;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use vm_system_protocol::durable::{
    ANSWERS, ANSWERS_BYTES, AnsweredItem, CreatedItem, EVENT_NAME_BYTES, ItemContent, PENDING_ITEMS,
    PENDING_ITEMS_BYTES, PROMPT_BYTES, TaskAnswer,
};
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{DURABLE_PAGE_BYTES, DURABLE_ROW_BYTES};
use vm_system_protocol::model::{EventPayload, ExecutionStatus, WaitingFor};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ITEMS_FROM, ItemOutcome, ItemRow, MailRow, WaitKind, Write};

/// Text of the answers that an execution has and has not used (bytes): they are in the supervisor's memory.
const UNUSED_ANSWERS_BYTES: usize = 16 << 20;
/// Highest number of an item.
const MOST_ITEMS: u64 = ITEMS_FROM - 1;

/// Items of an execution that are of importance for it, and its mailbox.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// By their numbers.
    open: BTreeMap<u64, ItemRow>,
    /// The numbers of open items by their ids.
    numbers: HashMap<TaskId, u64>,
    /// How many open items there are of each kind.
    counts: WaitingFor,
    /// The times at which open items end by themselves.
    due: BTreeSet<(Timestamp, u64)>,
    /// Size of the texts of open items (bytes).
    bytes: u64,
    /// In the order of acceptance.
    answers: VecDeque<KeptAnswer>,
    /// Size of the texts of these answers (bytes).
    answer_bytes: usize,
    /// How many of the answers, from the first, the worker has.
    sent: usize,
    /// How many of these are applied in a state of which no checkpoint is made yet.
    applied: usize,
    /// Number of the last item.
    last: u64,
    /// Items from this one on are in a batch that is being written.
    unstored_from: Option<u64>,
    /// Since when the program has had nothing to do (Unix milliseconds), as long as that time has not restored limits.
    rest_since: Option<i64>,
    mailbox: VecDeque<MailRow>,
    pub(super) last_mail: u64,
    abandoned: bool,
}

/// An answer that is in no checkpoint yet.
#[derive(Debug)]
struct KeptAnswer {
    number: u64,
    answer: Option<TaskAnswer>,
    /// A person or an agent has given it: limits begin anew.
    renews: bool,
}

impl KeptAnswer {
    fn of_row(row: &ItemRow) -> Self {
        let number = row.item.saturating_sub(ITEMS_FROM);
        let answer = if row.kind == WaitKind::Timer { None } else { answer_of(row) };
        Self {
            number,
            answer,
            renews: row.kind == WaitKind::Question && row.outcome == Some(ItemOutcome::Answered),
        }
    }

    fn bytes(&self) -> usize {
        match &self.answer {
            None => 0,
            Some(TaskAnswer::Json(json)) => json.as_str().len(),
            Some(
                TaskAnswer::Text(text)
                | TaskAnswer::Failed(text)
                | TaskAnswer::Expired(text)
                | TaskAnswer::Wrong(text),
            ) => text.len(),
        }
    }
}

/// Size of the texts of an item that has not ended (bytes).
fn text_bytes(row: &ItemRow) -> u64 {
    let texts = [Some(&row.prompt), row.schema.as_ref(), row.fallback.as_ref(), row.name.as_ref()];
    texts.into_iter().flatten().map(|text| text.len() as u64).sum()
}

impl Items {
    /// Items as the store has them.
    pub(super) fn from_stored(items: Vec<ItemRow>, last: u64, mailbox: Vec<MailRow>) -> Self {
        let last_mail = mailbox.last().map_or(0, |mail| mail.seq);
        let mut found = Self { last, last_mail, mailbox: mailbox.into(), ..Self::default() };
        for row in items {
            if row.ended_at.is_none() {
                found.add_open(row);
            } else {
                found.add_answer(&row);
            }
        }
        found
    }

    fn add_open(&mut self, row: ItemRow) {
        let number = row.item.saturating_sub(ITEMS_FROM);
        self.bytes += text_bytes(&row);
        self.due.extend(row.deadline.map(|at| (at, number)));
        self.numbers.insert(row.id, number);
        *self.count_of(row.kind) += 1;
        self.open.insert(number, row);
    }

    fn add_answer(&mut self, row: &ItemRow) {
        let answer = KeptAnswer::of_row(row);
        self.answer_bytes += answer.bytes();
        self.answers.push_back(answer);
    }

    /// Whether an answer of this size may be kept until it is used; one alone always may.
    pub(super) fn has_space_for(&self, answer: usize) -> bool {
        self.answer_bytes == 0 || self.answer_bytes.saturating_add(answer) <= UNUSED_ANSWERS_BYTES
    }

    /// Removes an item that ends.
    fn close(&mut self, number: u64) -> Option<ItemRow> {
        let row = self.open.remove(&number)?;
        self.bytes = self.bytes.saturating_sub(text_bytes(&row));
        self.numbers.remove(&row.id);
        *self.count_of(row.kind) -= 1;
        if let Some(at) = row.deadline {
            self.due.remove(&(at, number));
        }
        Some(row)
    }

    fn count_of(&mut self, kind: WaitKind) -> &mut u32 {
        match kind {
            WaitKind::Question => &mut self.counts.questions,
            WaitKind::Timer => &mut self.counts.timers,
            WaitKind::Event => &mut self.counts.events,
        }
    }

    /// Questions that clients can see, oldest first.
    pub(super) fn questions(&self) -> impl Iterator<Item = &ItemRow> {
        let stored = self.unstored_from.unwrap_or(u64::MAX);
        self.open.range(..stored).map(|(_, row)| row).filter(|row| row.kind == WaitKind::Question)
    }

    /// The number of an open question with this id.
    pub(super) fn number_of(&self, task: TaskId) -> Option<u64> {
        let stored = self.unstored_from.unwrap_or(u64::MAX);
        let number = self.numbers.get(&task).copied().filter(|number| *number < stored)?;
        self.open.get(&number).is_some_and(|row| row.kind == WaitKind::Question).then_some(number)
    }

    pub(super) fn get(&self, number: u64) -> Option<&ItemRow> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ItemRow> {
        self.open.get_mut(&number)
    }

    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether an item waits for an event.
    pub(super) fn has_event(&self) -> bool {
        self.counts.events > 0
    }

    /// Whether something is left to wait for, besides what the state has already.
    pub(super) fn are_awaited(&self) -> bool {
        self.has_open() || self.answers.len() > self.applied
    }

    /// Whether there are answers that no state has.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The earliest time at which an open item ends by itself, and its number.
    pub(super) fn next_due(&self) -> Option<(Timestamp, u64)> {
        self.due.first().copied()
    }

    /// The execution has ended, and there are items whose answers it has not used.
    pub(super) fn are_abandoned(&self) -> bool {
        self.abandoned
    }

    /// The execution ends: no item is open any more.
    pub(super) fn drop_open(&mut self) {
        self.abandoned = self.are_awaited();
        (self.open, self.due, self.bytes, self.unstored_from) = Default::default();
        (self.numbers, self.counts) = Default::default();
    }

    /// Answers that a worker had are lost with it.
    pub(super) fn forget_sent(&mut self) {
        (self.sent, self.applied) = (0, 0);
    }

    /// All items are stored that clients could not see.
    pub(super) fn are_stored(&mut self) {
        self.unstored_from = None;
    }

    /// The program rests from now on.
    pub(super) fn begin_rest(&mut self, at: i64) {
        self.rest_since = Some(at);
    }

    /// A worker has stopped, and has dropped the answers that it had not applied.
    pub(super) fn note_applied(&mut self, applied: u32, waits: bool) -> Result<(), &'static str> {
        let applied = self.applied + applied as usize;
        // A program that waits has got all answers: it would get the same ones for ever.
        if applied > self.sent || waits && applied < self.sent {
            return Err("a wrong number of applied answers");
        }
        (self.applied, self.sent) = (applied, applied);
        Ok(())
    }

    /// The answers that are sent next.
    fn next_answers(&mut self) -> Vec<&KeptAnswer> {
        let first = self.applied;
        let mut bytes = 0;
        let is_in = |kept: &&KeptAnswer| {
            let is_first = bytes == 0;
            bytes += 64 + kept.bytes();
            is_first || bytes <= ANSWERS_BYTES
        };
        let next: Vec<&KeptAnswer> =
            self.answers.iter().skip(first).take(ANSWERS).take_while(is_in).collect();
        self.sent = first + next.len();
        next
    }

    /// The oldest open item that waits for an event of this name.
    pub(super) fn waiter(&self, name: &str) -> Option<u64> {
        let waits = |row: &ItemRow| row.kind == WaitKind::Event && row.name.as_deref() == Some(name);
        self.open.iter().find(|(_, row)| waits(row)).map(|(number, _)| *number)
    }

    /// Keeps an event until it is awaited; false: the mailbox is full.
    pub(super) fn add_mail(&mut self, mail: MailRow) -> bool {
        let bytes = |mail: &MailRow| mail.name.len() + mail.event.len();
        let all = self.mailbox.iter().map(bytes).sum::<usize>() + bytes(&mail);
        if self.mailbox.len() >= MAILBOX_EVENTS || all > MAILBOX_BYTES {
            return false;
        }
        self.last_mail = mail.seq;
        self.mailbox.push_back(mail);
        true
    }

    /// Takes the oldest event of this name.
    fn take_mail(&mut self, name: &str) -> Option<MailRow> {
        let position = self.mailbox.iter().position(|mail| mail.name == name)?;
        self.mailbox.remove(position)
    }
}

impl DurableMachine {
    /// The program has nothing to do until a client, a time or an event comes.
    pub(super) fn is_at_rest(&self) -> bool {
        match self.next {
            NextStep::Pause => true,
            NextStep::Items => !self.items.has_answers(),
            _ => false,
        }
    }

    /// The status as it is stored at a rest, or while something is to be done.
    pub(super) fn progress_status(&self) -> ExecutionStatus {
        if self.is_at_rest() { ExecutionStatus::Waiting } else { ExecutionStatus::Running }
    }

    /// The question of the pause at which the program waits.
    pub(super) fn pending_pause(&self) -> Option<&ItemRow> {
        self.task.as_ref().filter(|_| self.next == NextStep::Pause)
    }

    /// When an open item ends by itself, or the pause.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        let pause = self.pending_pause().and_then(|task| task.deadline);
        let item = self.items.next_due().map(|(at, _)| at);
        [pause, item].into_iter().flatten().min()
    }

    /// Pending questions that clients can see, the one of the pause first.
    pub(super) fn visible_questions(&self) -> impl Iterator<Item = &ItemRow> {
        self.pending_pause().into_iter().chain(self.items.questions())
    }

    /// The visible part of that for which the execution waits.
    pub fn waiting_for(&self) -> WaitingFor {
        if self.ended || self.record.status.is_final() {
            return WaitingFor::default();
        }
        let mut waiting = self.items.counts;
        waiting.questions += u32::from(self.pending_pause().is_some());
        waiting.wakes_at = self.wakes_at();
        waiting
    }

    /// Items that the worker reports.
    pub(super) fn gather_items(&mut self, items: Vec<CreatedItem>) -> Result<(), &'static str> {
        let mut last = self.gathered.items.last().map_or(self.items.last, |item| item.number);
        for item in items {
            let bytes = item.content.bytes();
            let is_json = |json: &Option<JsonText>| json.as_ref().is_none_or(JsonText::is_valid);
            let fits = match &item.content {
                ItemContent::Question { options, .. } => is_json(options),
                ItemContent::Timer { duration_ms } => *duration_ms <= TIMEOUT_MAX_MS,
                ItemContent::Event { name, timeout_ms, fallback } => {
                    let is_time = timeout_ms.is_none_or(|time| time <= TIMEOUT_MAX_MS);
                    name.len() <= EVENT_NAME_BYTES && is_time && is_json(fallback)
                }
                ItemContent::Refused { .. } => true,
            };
            // Behind those of its state, and no larger than those of an honest worker.
            if item.number <= last || item.number > MOST_ITEMS || !fits || bytes > PROMPT_BYTES {
                return Err("an impossible item");
            }
            last = item.number;
            self.gathered.item_bytes += bytes as u64;
            self.gathered.items.push(item);
            let pending = self.items.open.len() + self.items.answers.len() + self.gathered.items.len();
            // Answers that the state has are no longer pending for the worker.
            if pending - self.items.applied.min(pending) > PENDING_ITEMS as usize + self.items.sent {
                return Err("more pending items than permitted");
            }
            let bytes = DURABLE_PAGE_BYTES * self.gathered.items.len() as u64 + self.gathered.item_bytes;
            if self.gathered.page_bytes.saturating_add(bytes) > self.state_most() {
                return Err("a state that is too large");
            }
        }
        Ok(())
    }

    /// Whether the gathered items do not fit into the record of the execution.
    pub(super) fn items_fill_record(&self) -> bool {
        let questions = self.gathered.items.iter();
        let questions = questions.filter(|item| matches!(item.content, ItemContent::Question { .. }));
        let bytes: u64 = questions.map(|item| item.content.bytes() as u64 + DURABLE_ROW_BYTES).sum();
        bytes > 0 && bytes > self.record_left()
    }

    /// The rows of the gathered items, for the next checkpoint.
    pub(super) fn add_items(&mut self, now: Now) {
        self.gathered.item_bytes = 0;
        let checkpoint = self.seq + 1;
        let begun = self.clock.began.unix_ms;
        for CreatedItem { number, at_us, content } in std::mem::take(&mut self.gathered.items) {
            self.items.last = number;
            self.items.unstored_from = self.items.unstored_from.or(Some(number));
            let at = begun.saturating_add(i64::try_from(at_us / 1_000).unwrap_or(i64::MAX));
            // The worker's clock is not trusted: its time is kept within the segment.
            let at = Timestamp(at.min(now.unix_ms).max(begun.min(now.unix_ms)));
            let (row, mail) = self.item_row(number, content, at, checkpoint);
            if row.kind == WaitKind::Question && row.ended_at.is_none() {
                let event = EventPayload::Task { task_id: row.id, prompt: row.prompt.clone() };
                self.gathered.events.push((at_us, event));
                self.record.metrics.output_bytes += text_bytes(&row) - row.prompt.len() as u64;
            }
            self.writes.unwritten.push(Write::ItemInsert(Box::new(row.clone())));
            if let Some(seq) = mail {
                self.writes.unwritten.push(Write::MailTake { execution: self.spec.execution, seq });
            }
            if row.ended_at.is_none() {
                self.items.add_open(row);
            } else {
                self.items.add_answer(&row);
            }
        }
    }

    /// The row of an item, and the event that it takes from the mailbox at once.
    fn item_row(
        &mut self,
        number: u64,
        content: ItemContent,
        at: Timestamp,
        checkpoint: u64,
    ) -> (ItemRow, Option<u64>) {
        let execution = self.spec.execution;
        let key = (ITEMS_FROM + number, item_id(execution, number));
        let row = |kind| new_item(execution, key, kind, at, checkpoint);
        let behind = |ms: u64| Timestamp(at.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)));
        let refused = |kind, why: String| ItemRow {
            ended_at: Some(at),
            outcome: Some(ItemOutcome::Failed),
            answer: Some(why),
            ..row(kind)
        };
        if self.items.bytes + content.bytes() as u64 > PENDING_ITEMS_BYTES {
            let kind = if matches!(content, ItemContent::Event { .. }) {
                WaitKind::Event
            } else {
                WaitKind::Question
            };
            let most = PENDING_ITEMS_BYTES >> 20;
            return (
                refused(kind, format!("the texts of pending questions and events have more than {most} MiB")),
                None,
            );
        }
        match content {
            ItemContent::Question { prompt, options } => {
                match task_of_pause(execution, checkpoint, prompt, options.as_ref(), at) {
                    Ok(task) => (ItemRow { item: key.0, id: key.1, ..task }, None),
                    Err(why) => (refused(WaitKind::Question, why), None),
                }
            }
            ItemContent::Timer { duration_ms } => {
                (ItemRow { deadline: Some(behind(duration_ms)), ..row(WaitKind::Timer) }, None)
            }
            ItemContent::Event { name, timeout_ms, fallback } => {
                let fallback = fallback.map(|json| json.as_str().to_owned());
                let mail = self.items.take_mail(&name);
                let row = ItemRow {
                    name: Some(name),
                    deadline: timeout_ms.map(behind),
                    fallback,
                    ended_at: mail.as_ref().map(|_| at),
                    outcome: mail.as_ref().map(|_| ItemOutcome::Answered),
                    ..row(WaitKind::Event)
                };
                let seq = mail.as_ref().map(|mail| mail.seq);
                (ItemRow { answer: mail.map(|mail| mail.event), ..row }, seq)
            }
            ItemContent::Refused { why } => (refused(WaitKind::Question, why), None),
        }
    }

    /// The answers in the state of this checkpoint are taken with it.
    pub(super) fn take_answers(&mut self, checkpoint: u64) {
        let taken: Vec<KeptAnswer> = self.items.answers.drain(..self.items.applied).collect();
        let bytes: usize = taken.iter().map(KeptAnswer::bytes).sum();
        self.items.answer_bytes = self.items.answer_bytes.saturating_sub(bytes);
        let mut taken: HashSet<u64> = taken.iter().map(|kept| ITEMS_FROM + kept.number).collect();
        self.items.forget_sent();
        if taken.is_empty() {
            return;
        }
        let execution = self.spec.execution;
        let items_of_ids: HashMap<TaskId, u64> =
            taken.iter().map(|item| (item_id(execution, item - ITEMS_FROM), *item)).collect();
        // One write for an answer that is in the same batch.
        for write in &mut self.writes.unwritten {
            match write {
                Write::ItemEnd { id, taken_at, .. } => {
                    if let Some(item) = items_of_ids.get(id) {
                        *taken_at = Some(checkpoint);
                        taken.remove(item);
                    }
                }
                Write::ItemInsert(row) if taken.remove(&row.item) => row.taken_at = Some(checkpoint),
                _ => {}
            }
        }
        if !taken.is_empty() {
            let mut items: Vec<u64> = taken.into_iter().collect();
            items.sort_unstable();
            self.writes.unwritten.push(Write::ItemsTaken { execution, items, checkpoint });
        }
    }

    /// Ends an item; its answer is given to the program when that has nothing else to do.
    pub(super) fn accept_item(
        &mut self,
        number: u64,
        outcome: ItemOutcome,
        answer: Option<String>,
        now: Now,
    ) {
        let Some(mut row) = self.items.close(number) else { return };
        let at = Timestamp(now.unix_ms);
        (row.outcome, row.ended_at) = (Some(outcome), Some(at));
        row.answer.clone_from(&answer);
        let (execution, id) = (row.execution, row.id);
        self.writes.unwritten.push(Write::ItemEnd { execution, id, outcome, answer, at, taken_at: None });
        self.items.add_answer(&row);
        // Stored with the checkpoint that has it, but soon. A worker for a small state is started within this time.
        let soon = if matches!(self.stage, Stage::Cold | Stage::Exiting) { HOLD_MS } else { COMMIT_MS };
        self.writes.commit_at = self.writes.commit_at.or(Some(now.mono_ms + soon));
        self.record.status = self.progress_status();
    }

    /// Has the program go on with its answers, if it has nothing else to do.
    pub(super) fn use_answers(&mut self, now: Now, actions: &mut Vec<Action>) {
        let waits = self.next == NextStep::Items && self.items.has_answers();
        if !waits || self.ended || self.released || !self.writes.writing.is_empty() {
            return;
        }
        match self.stage {
            Stage::Warm(_) => self.go_on(now, actions),
            Stage::Cold => self.spawn(now, actions),
            _ => {}
        }
    }

    /// An item has ended on request: the program goes on, also in a machine that was about to be released.
    pub(super) fn item_ended(&mut self, now: Now, actions: &mut Vec<Action>) {
        if self.stage == Stage::Cold && !self.is_at_rest() {
            self.spawn(now, actions);
        } else {
            self.use_answers(now, actions);
        }
    }

    /// The answers to send, after accounting for the limits that they restore.
    pub(super) fn answers_to_send(&mut self, now: Now) -> Vec<AnsweredItem> {
        let next = self.items.next_answers();
        let renews = next.iter().any(|kept| kept.renews);
        let answers = next
            .iter()
            .map(|kept| AnsweredItem { number: kept.number, answer: kept.answer.clone() })
            .collect();
        let since = self.items.rest_since.take();
        if renews {
            self.count_from(Spent::default());
        } else if let Some(since) = since {
            // Counted once for the execution, however many items have ended.
            self.give_back(u64::try_from(now.unix_ms.saturating_sub(since)).unwrap_or(0));
        }
        answers
    }

    /// Ends the items that are due.
    pub(super) fn expire_items(&mut self, now: Now) {
        while let Some((at, number)) = self.items.next_due().filter(|(at, _)| at.0 <= now.unix_ms) {
            let Some(row) = self.items.get(number) else {
                self.items.due.remove(&(at, number));
                continue;
            };
            let (outcome, answer) = if row.kind == WaitKind::Timer {
                (ItemOutcome::Expired, None)
            } else {
                let (outcome, answer) = super::answers::when_due(row);
                (outcome, Some(answer))
            };
            self.accept_item(number, outcome, answer, now);
        }
    }
}
