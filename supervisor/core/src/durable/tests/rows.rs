//! The model's store: rows of one execution, and the invariants that hold after each batch.

use crate::durable::input::StoredExecution;
use std::collections::BTreeMap;
use vm_system_protocol::model::{EventPayload, Execution, ExecutionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{CheckpointRow, ITEMS_FROM, ItemOutcome, ItemRow, MailRow, UsedLimits, Write};

/// The stored rows.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredRows {
    pub(super) record: Option<Execution>,
    pub(super) checkpoints: BTreeMap<u64, (String, Vec<u8>)>,
    pub(super) tasks: Vec<ItemRow>,
    pub(super) mailbox: Vec<MailRow>,
    /// Answers so far.
    pub(super) inbox: u64,
    pub(super) events: Vec<(u64, String)>,
    /// All checkpoints of effects so far.
    pub(super) effects: u64,
    /// All records of requests so far.
    pub(super) responses: u64,
    pub(super) limits: UsedLimits,
}

impl StoredRows {
    pub(super) fn apply(&mut self, batch: Vec<Write>) {
        for write in batch {
            match write {
                Write::ExecutionStarted { execution, .. } => {
                    assert!(self.record.is_none(), "made twice");
                    self.record = Some((*execution).clone());
                }
                Write::Checkpoint(point) => {
                    self.effects += u64::from(point.cause == "effect");
                    let page = point.pages.into_iter().find(|(number, _)| *number == 0);
                    let bytes = page.and_then(|(_, bytes)| bytes).expect("the frame page");
                    assert!(self.checkpoints.insert(point.seq, (point.cause, bytes)).is_none());
                }
                Write::CheckpointCompact { keep_from, keep_bytes, .. } => {
                    assert_eq!(keep_bytes, None, "the model's states are small");
                    self.checkpoints.retain(|seq, _| *seq >= keep_from);
                }
                Write::CheckpointsTrim { .. } => {
                    let last =
                        self.checkpoints.iter().rfind(|(_, kept)| kept.0 == "pause").map(|(seq, _)| *seq);
                    self.checkpoints.retain(|seq, _| Some(*seq) <= last);
                }
                Write::ItemInsert(mut task) => {
                    let is_new = |known: &ItemRow| known.item != task.item && known.id != task.id;
                    assert!(self.tasks.iter().all(is_new), "the same task again");
                    let is_open_pause = |known: &ItemRow| known.is_pause() && known.ended_at.is_none();
                    assert!(!task.is_pause() || !self.tasks.iter().any(is_open_pause), "two pauses");
                    if task.ended_at.is_some() {
                        self.inbox += 1;
                        task.answer_seq = Some(self.inbox);
                    }
                    self.tasks.push(*task);
                }
                Write::ItemEnd { id, outcome, answer, at, taken_at, .. } => {
                    let task = self.tasks.iter_mut().find(|task| task.id == id).expect("a task");
                    assert!(task.ended_at.is_none(), "answered twice");
                    (task.outcome, task.answer, task.ended_at) = (Some(outcome), answer, Some(at));
                    task.taken_at = taken_at;
                    self.inbox += 1;
                    task.answer_seq = Some(self.inbox);
                }
                Write::ItemsTaken { items, checkpoint, .. } => {
                    for task in self.tasks.iter_mut().filter(|task| items.contains(&task.item)) {
                        assert_eq!(task.taken_at.replace(checkpoint), None, "taken twice");
                    }
                }
                Write::MailInsert { mail, .. } => self.mailbox.push(mail),
                Write::MailTake { seq, .. } => self.mailbox.retain(|mail| mail.seq != seq),
                Write::RunProgress { status, metrics, limits, .. } => {
                    let record = self.record.as_mut().expect("a row");
                    (record.status, record.metrics) = (status, metrics);
                    self.limits = *limits.expect("of a program");
                }
                Write::Events(events) => {
                    for event in events.iter() {
                        assert_eq!(event.seq, self.events.len() as u64 + 1, "a gap in the output");
                        let text = match &event.payload {
                            EventPayload::Console { text, .. } => text.clone(),
                            _ => String::new(),
                        };
                        self.responses += u64::from(matches!(event.payload, EventPayload::Http(_)));
                        self.events.push((event.seq, text));
                    }
                }
                Write::ExecutionEnded(execution) => self.record = Some((*execution).clone()),
                Write::ItemsWithdraw { at, .. } => {
                    for task in self.tasks.iter_mut().filter(|task| task.ended_at.is_none()) {
                        (task.outcome, task.ended_at) = (Some(ItemOutcome::Withdrawn), Some(at));
                    }
                }
                Write::SessionEnd { .. } => {}
                other => panic!("the model has no rows for {other:?}"),
            }
        }
        self.is_not_stuck();
    }

    /// An execution that has not ended is claimed by the next supervisor, or something that can end wakes it.
    fn is_not_stuck(&self) {
        let Some(record) = &self.record else { return };
        let rests = match self.checkpoints.values().next_back().map(|(cause, _)| cause.as_str()) {
            Some("pause" | "edit") => {
                self.tasks.iter().any(|task| task.is_pause() && task.ended_at.is_none())
            }
            Some("wait" | "wait_edit") => {
                let has_open = self.items().any(|item| item.ended_at.is_none());
                has_open && !self.items().any(|item| item.ended_at.is_some() && item.taken_at.is_none())
            }
            _ => false,
        };
        let waits = record.status == ExecutionStatus::Waiting;
        assert!(record.status.is_final() || waits == rests, "{:?}, but it rests: {rests}", record.status);
        let is_open = self.tasks.iter().any(|task| task.ended_at.is_none());
        assert!(!record.status.is_final() || !is_open, "an execution that has ended waits for something");
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &ItemRow> {
        self.tasks.iter().filter(|task| !task.is_pause())
    }

    pub(super) fn found(&self) -> Option<StoredExecution> {
        let record = self.record.clone()?;
        let checkpoint = self.checkpoints.last_key_value().map(|(seq, (cause, _))| CheckpointRow {
            seq: *seq,
            at: Timestamp(0),
            cause: cause.clone(),
            bytes: 0,
            unweighed: Some(0),
            written: 0,
        });
        let mut items: Vec<ItemRow> = self.items().filter(|item| item.taken_at.is_none()).cloned().collect();
        items.sort_by_key(|item| item.answer_seq);
        Some(StoredExecution {
            record,
            checkpoint,
            task: self.tasks.iter().rfind(|task| task.is_pause()).cloned(),
            items,
            last_item: self.items().map(|item| item.item - ITEMS_FROM).max().unwrap_or(0),
            mailbox: self.mailbox.clone(),
            limits: self.limits.clone(),
        })
    }
}
