//! Verbs of checkpoints: listing, inspecting, changing variables, rewinding, forking.

use super::{checked_name, refused};
use crate::errors::{invalid, not_found, stored};
use crate::{Ops, VerbCall};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;
use vm_system_core::durable::{DurableRefusal, fresh_record, item_id, session_record};
use vm_system_protocol::control::{
    CheckpointList, ErrorCode, OpError, RunFork, RunRewind, StateGet, StateSet,
};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::input::json_for_script;
use vm_system_protocol::model::{
    CheckpointInfo, ConsoleLevel, Event, EventPayload, ExecutionStatus, Metrics, ProgramState, Run,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Checkpoint, CheckpointRow, Entity, ITEMS_FROM, ItemOutcome, ItemRow, Rejection, RunRow, Scope,
    StoreError, Write, is_rest,
};
use vm_system_store::StoreHandle;

/// Largest value of a variable (bytes of JSON).
const VALUE_BYTES: usize = 8 << 20;

impl Ops {
    pub(crate) async fn checkpoint_list(
        &self,
        call: &VerbCall<'_>,
        CheckpointList { execution: reference }: CheckpointList,
    ) -> Result<Vec<CheckpointInfo>, OpError> {
        let id = self.run(call, &reference).await?.row.execution.id;
        let rows = self.reads_of(call.caller).checkpoints(id).await.map_err(stored)?;
        let shown = rows.into_iter().map(|row| CheckpointInfo {
            seq: row.seq,
            at: row.at,
            cause: row.cause,
            bytes: row.bytes,
        });
        Ok(shown.collect())
    }

    pub(crate) async fn state_get(
        &self,
        call: &VerbCall<'_>,
        StateGet { execution: reference, checkpoint }: StateGet,
    ) -> Result<ProgramState, OpError> {
        let id = self.run(call, &reference).await?.row.execution.id;
        let (seq, _) = self.checkpoint(call, id, checkpoint).await?;
        let state = self.durables()?.look(id, seq).await;
        // Pages are deleted only with their checkpoints: of one that does not exist any more, some may have been gone already.
        if self.run_by_id(call, id).await?.is_none() {
            return Err(not_found(Entity::Execution, &reference));
        }
        let stored = self.reads_of(call.caller).checkpoints(id).await.map_err(stored)?;
        if !stored.iter().any(|row| row.seq == seq) {
            return Err(no_checkpoint(seq, &stored));
        }
        Ok(state?)
    }

    pub(crate) async fn state_set(
        &self,
        call: &VerbCall<'_>,
        StateSet { execution: reference, name, value, frame }: StateSet,
    ) -> Result<Run, OpError> {
        let (id, identity) = self.identity(call, &reference).await?;
        if value.as_str().len() > VALUE_BYTES {
            return Err(invalid(format!("the value has more than {VALUE_BYTES} bytes")));
        }
        json_for_script(value.as_str()).map_err(|why| {
            invalid(format!("the value cannot be set: {why}"))
                .with_hint("the value is JSON; a string needs quotes: '\"like this\"'")
        })?;
        let frame = if let Some(frame) = frame {
            frame
        } else {
            let (seq, _) = self.checkpoint(call, id, None).await?;
            self.durables()?.look(id, seq).await?.frame_with(&name)
        };
        let result = self.durables()?.set(id, frame, name, value).await.map_err(|why| match why {
            DurableRefusal::NotPending | DurableRefusal::Ended => OpError::new(
                ErrorCode::TaskNotPending,
                "variables can only be changed while an execution waits",
            )
            .with_details(&serde_json::json!({ "execution_id": id })),
            why => refused(&why, id),
        });
        self.audit(call, id, &result).await;
        self.run_reply(call, result?, &identity).await
    }

    pub(crate) async fn run_rewind(
        &self,
        call: &VerbCall<'_>,
        RunRewind { execution: reference, checkpoint }: RunRewind,
    ) -> Result<Run, OpError> {
        let old = self.run(call, &reference).await?;
        self.check_quota(call)?;
        self.durables()?.admit(&call.caller.owner)?;
        let old_id = old.row.execution.id;
        let name = old.row.name.clone();
        let (seq, cause) = self.sound_checkpoint(call, old_id, Some(checkpoint)).await?;
        let mut writes = vec![Write::ExecutionUnname { id: old_id }];
        let from = BranchPoint::new(seq, cause);
        let (id, rests) = self.branch(call, &old, name, from, &mut writes).await?;
        let result = self.end_old(old_id, self.store_of(call), writes).await;
        self.audit(call, old_id, &result).await;
        result?;
        self.begin_branch(call, id, rests).await
    }

    /// Stores a branch together with the end of the execution from which it is.
    pub(super) async fn end_old(
        &self,
        old: ExecutionId,
        store: StoreHandle,
        writes: Vec<Write>,
    ) -> Result<(), OpError> {
        match self.durables()?.cancel(old, writes.clone()).await {
            Ok(_) => Ok(()),
            // The execution has ended: the rows can be written directly.
            Err(DurableRefusal::Ended) => store.apply(writes).await.map(|_| ()).map_err(branch_refused(old)),
            Err(why) => Err(refused(&why, old)),
        }
    }

    pub(crate) async fn run_fork(
        &self,
        call: &VerbCall<'_>,
        RunFork { execution: reference, checkpoint, name }: RunFork,
    ) -> Result<Run, OpError> {
        let name = match &name {
            Some(name) => Some(checked_name("execution", name)?.to_owned()),
            None => None,
        };
        self.is_no_id(call, name.as_deref()).await?;
        let old = self.run(call, &reference).await?;
        self.check_quota(call)?;
        self.durables()?.admit(&call.caller.owner)?;
        let (seq, cause) = self.sound_checkpoint(call, old.row.execution.id, checkpoint).await?;
        let mut writes = Vec::new();
        let from = BranchPoint::new(seq, cause);
        let (id, rests) = self.branch(call, &old, name, from, &mut writes).await?;
        let result = self.store_of(call).apply(writes).await.map(|_| ()).map_err(branch_refused(id));
        self.audit(call, old.row.execution.id, &result).await;
        result?;
        self.begin_branch(call, id, rests).await
    }

    /// A new execution at a checkpoint: loads it if it continues by itself, now or when its task's deadline has passed. As at a
    /// start, the response follows when it has a task or has ended.
    pub(super) async fn begin_branch(
        &self,
        call: &VerbCall<'_>,
        id: ExecutionId,
        rests: bool,
    ) -> Result<Run, OpError> {
        if rests {
            // It may have a deadline.
            self.durables()?.wake(id);
        } else {
            // An execution that does not continue now (no worker, the supervisor stops) is retried: its row has its status.
            if let Err(error) = self.durables()?.resume(id).await {
                tracing::info!(execution = %id, %error, "an execution does not continue yet");
            }
        }
        match self.run_made(call, id).await? {
            Some(reply) => Ok(reply),
            None => Err(not_found(Entity::Execution, &id.to_string())),
        }
    }

    /// The writes that create an execution from a checkpoint of another one; its id, and whether it does not
    /// continue by itself.
    pub(super) async fn branch(
        &self,
        call: &VerbCall<'_>,
        old: &RunRow,
        name: Option<String>,
        point: BranchPoint,
        writes: &mut Vec<Write>,
    ) -> Result<(ExecutionId, bool), OpError> {
        let BranchPoint { seq, cause, mut answers, edited } = point;
        let from = &old.row.execution;
        let id = ExecutionId::from_uuid(call.subject);
        let session = self.store.session(&Scope::All, from.session_id).await.map_err(stored)?;
        let policy = self.reads_of(call.caller).session_policy(from.session_id).await.map_err(stored)?;
        let (Some(session), Some(policy)) = (session, policy) else {
            return Err(not_found(Entity::Execution, &from.id.to_string()));
        };
        let (at, store) = (self.store.now(), self.reads_of(call.caller));
        let is_pause = is_pause(&cause);
        let (mut items, mut answered) = (Vec::new(), Vec::new());
        for old_item in self.items_of_checkpoint(call, from.id, (seq, &cause)).await? {
            let of_old = old_item.id;
            let (item, task) = if old_item.is_pause() {
                (seq, TaskId::from_uuid(Uuid::now_v7()))
            } else {
                (old_item.item, item_id(id, old_item.item - ITEMS_FROM))
            };
            let row = ItemRow { id: task, item, checkpoint: seq, ..anew(old_item, id, at) };
            match answers.iter_mut().find(|(task, _)| *task == of_old) {
                Some((task, _)) => {
                    *task = row.id;
                    answered.push(row);
                }
                None => items.push(row),
            }
        }
        // The store counts answers in the order of these writes.
        for (task, answer) in answers {
            let row = answered.extract_if(.., |row| row.id == task).next();
            items.extend(row.map(|row| ItemRow {
                ended_at: Some(at),
                outcome: Some(ItemOutcome::Answered),
                answer: Some(answer),
                ..row
            }));
        }
        if is_rest(&cause) && items.is_empty() {
            return Err(invalid(format!(
                "nothing is stored of what checkpoint {seq} waits for: no execution can continue from there"
            )));
        }
        let waits = (is_pause && items.iter().all(|item| !item.is_pause() || item.ended_at.is_none()))
            || (!is_pause && is_rest(&cause) && items.iter().all(|item| item.ended_at.is_none()));
        let mail = store.mailbox(from.id).await.map_err(stored)?;
        let session_id = SessionId::from_uuid(Uuid::now_v7());
        let status = if waits { ExecutionStatus::Waiting } else { ExecutionStatus::Running };
        let record = fresh_record(id, session_id, status, from.args.clone(), from.env.clone(), at);
        let old_session = session.session;
        let made = session_record(session_id, old_session.template_id, &old_session.worktree_path, at);
        // The same folder with the rights of the same user.
        let (owner, worktree) = (old.row.owner.clone(), session.worktree);
        writes.push(Write::SessionInsert { owner, session: Arc::new(made), policy, worktree });
        writes.push(Write::ExecutionStarted { name, execution: Arc::new(record) });
        writes.push(Write::ProgramRun { execution: id, program: old.program, version: old.version });
        writes.push(Write::CheckpointCopy { from: from.id, checkpoint: seq, to: id, at });
        if let Some(EditedState { pages, written }) = edited {
            let cause = if is_pause { "edit" } else { "wait_edit" }.to_owned();
            let pages = pages.into_iter().collect();
            let edit = Checkpoint { execution: id, seq: seq + 1, at, cause, pages, unweighed: None, written };
            writes.push(Write::Checkpoint(Box::new(edit)));
        }
        let origin = Event {
            execution_id: id,
            seq: 1,
            ts: at,
            payload: EventPayload::System {
                message: format!(
                    "a branch of execution {} at checkpoint {seq}: the output before it is that execution's",
                    from.id
                ),
                level: ConsoleLevel::Info,
                code: None,
            },
        };
        let output_bytes = origin.payload.output_bytes();
        writes.push(Write::Events(Arc::from([origin])));
        let metrics = Metrics { events: 1, output_bytes, ..Metrics::default() };
        writes.push(Write::RunProgress { id, status, metrics, limits: None });
        writes.extend(items.into_iter().map(|item| Write::ItemInsert(Box::new(item))));
        writes.extend(mail.into_iter().map(|mail| Write::MailInsert { execution: id, mail }));
        Ok((id, waits))
    }

    /// The question of the pause at a checkpoint, and the pending items there, as they are stored now.
    pub(super) async fn items_of_checkpoint(
        &self,
        call: &VerbCall<'_>,
        execution: ExecutionId,
        (seq, cause): (u64, &str),
    ) -> Result<Vec<ItemRow>, OpError> {
        let store = self.reads_of(call.caller);
        let mut items = Vec::new();
        if is_pause(cause) {
            let question = store.task_of(execution, Some(seq)).await.map_err(stored)?;
            items.push(*question.ok_or_else(|| no_checkpoint(seq, &[]))?);
        }
        items.extend(store.items_at(execution, seq).await.map_err(stored)?);
        Ok(items)
    }

    /// As [`Self::checkpoint`], of one that a worker can restore. A branch of another would take an answer, and fail; a rewinding
    /// would also have ended the execution that is there.
    pub(super) async fn sound_checkpoint(
        &self,
        call: &VerbCall<'_>,
        id: ExecutionId,
        wanted: Option<u64>,
    ) -> Result<(u64, String), OpError> {
        let (seq, cause) = self.checkpoint(call, id, wanted).await?;
        self.durables()?.verify_stored(id, seq).await?.map_err(|why| {
            invalid(format!(
                "the stored state of checkpoint {seq} is damaged, no worker can restore it: {why}"
            ))
            .with_hint("use another one of those that `vm-system program checkpoints` lists")
        })?;
        Ok((seq, cause))
    }

    /// Number and cause of a stored checkpoint; without a number, of the last one.
    async fn checkpoint(
        &self,
        call: &VerbCall<'_>,
        id: ExecutionId,
        wanted: Option<u64>,
    ) -> Result<(u64, String), OpError> {
        let store = self.reads_of(call.caller);
        let rows = match wanted {
            Some(_) => store.checkpoints(id).await,
            None => store.last_checkpoint(id).await,
        };
        let rows = rows.map_err(stored)?;
        let found = rows.iter().find(|row| wanted.is_none_or(|seq| row.seq == seq));
        let row = found.ok_or_else(|| match wanted {
            Some(seq) => no_checkpoint(seq, &rows),
            None => OpError::new(ErrorCode::NotFound, "the execution has no checkpoint")
                .with_hint("one that ended without a pause keeps its result and its output only"),
        })?;
        if wanted.is_some() && row.cause == "end" {
            return Err(invalid("the execution has ended at this checkpoint: it cannot continue from there"));
        }
        Ok((row.seq, row.cause.clone()))
    }
}

/// The state of a checkpoint with other values of variables.
pub(super) struct EditedState {
    /// Changed pages by number; none: the page is removed.
    pub(super) pages: BTreeMap<u64, Option<Vec<u8>>>,
    /// Bytes that the program had written to files.
    pub(super) written: u64,
}

/// Where a branch begins, and in what it differs from the execution from which it is.
pub(super) struct BranchPoint {
    pub(super) seq: u64,
    pub(super) cause: String,
    /// By the ids of that execution's tasks, in the order in which the branch gets them.
    pub(super) answers: Vec<(TaskId, String)>,
    pub(super) edited: Option<EditedState>,
}

impl BranchPoint {
    fn new(seq: u64, cause: String) -> Self {
        Self { seq, cause, answers: Vec::new(), edited: None }
    }
}

/// Whether a checkpoint with this cause waits for the answer of a pause.
fn is_pause(cause: &str) -> bool {
    matches!(cause, "pause" | "edit")
}

/// The error of a branch that was not stored.
pub(super) fn branch_refused(id: ExecutionId) -> impl Fn(StoreError) -> OpError {
    move |error| match error {
        StoreError::Rejected(Rejection::Conflict(Entity::Execution)) => {
            refused(&DurableRefusal::NameTaken, id)
        }
        other => stored(other),
    }
}

/// An item of an execution for a branch of it, which waits from now on, as long as the execution was to wait at first. A wrong one stays
/// wrong.
pub(super) fn anew(row: ItemRow, execution: ExecutionId, at: Timestamp) -> ItemRow {
    let is_refused = !row.is_pause() && row.outcome == Some(ItemOutcome::Failed) && row.attempts == 0;
    let waiting = ItemRow {
        execution,
        attempts: 0,
        created_at: at,
        deadline: row.deadline.map(|deadline| Timestamp(at.0 + (deadline.0 - row.created_at.0).max(0))),
        answer_seq: None,
        taken_at: None,
        first_attempt_at: None,
        last_attempt_at: None,
        ..row
    };
    if is_refused { waiting } else { ItemRow { ended_at: None, outcome: None, answer: None, ..waiting } }
}

/// `stored` are those that exist, in order.
fn no_checkpoint(seq: u64, stored: &[CheckpointRow]) -> OpError {
    let range = match stored {
        [] => String::new(),
        [first, .., last] => format!(": those from {} to {} are stored", first.seq, last.seq),
        [one] => format!(": only {} is stored", one.seq),
    };
    OpError::new(ErrorCode::NotFound, format!("there is no checkpoint {seq}{range}"))
        .with_hint("`vm-system program checkpoints` lists the stored checkpoints")
}
