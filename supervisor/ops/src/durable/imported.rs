//! Stores an imported file: a program with its versions, or an execution with the program that it runs. All of it
//! appears with the last commit, under new ids; the owner is the importing caller.

use super::archive::{CheckpointPart, ExecutionPart, TaskPart, VersionPart};
use super::import::ImportFile;
use super::programs::format_of;
use super::{checked_name, refused};
use crate::errors::{invalid, not_found, stored};
use crate::{Ops, VerbCall};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use uuid::Uuid;
use vm_system_core::durable::{DurableRefusal, fresh_record, item_id, session_record, task_id};
use vm_system_protocol::control::{ErrorCode, ImportBegin, OpError, ProgramGet};
use vm_system_protocol::durable::{PENDING_ITEMS, PENDING_ITEMS_BYTES};
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Event, Execution, ExecutionStatus, Program, ResultValue, Run, SessionStatus,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_record::{
    Checkpoint, Entity, ITEMS_FROM, ItemOutcome, ItemRow, MailRow, NewProgramVersion, Owner, Rejection,
    Scope, StoreError, WaitKind, Write,
};

/// Versions of one source that are compared with the code of a file.
const SAME_SOURCE: u32 = 16;
/// A program's versions are written in batches of about so much (source and code), so that other owners are not kept waiting.
const BATCH_BYTES: usize = 1 << 20;

type Pages = BTreeMap<(u64, u64), Option<Vec<u8>>>;

impl Ops {
    /// Compiles every version anew: a file's code is not needed where no state refers to it.
    pub(super) async fn import_program(
        &self,
        call: &VerbCall<'_>,
        new: &ImportBegin,
        file: ImportFile,
    ) -> Result<Program, OpError> {
        let name = checked_name("program", new.name.as_deref().unwrap_or(&file.program))?.to_owned();
        let owner = &call.caller.owner;
        if file.versions.is_empty() {
            return Err(invalid("the file has no version of its program"));
        }
        if self.own_program(owner, &name).await?.is_some() {
            return Err(
                program_taken(&name).with_hint("import it under another name, or delete the other one")
            );
        }
        let (store, id) = (self.store_of(call), ProgramId::from_uuid(call.subject));
        let (mut writes, mut bytes) = (Vec::new(), 0);
        for version in file.versions {
            // The newest version is in the last batch, which shows the program.
            if bytes > BATCH_BYTES {
                store.apply(mem::take(&mut writes)).await.map_err(stored)?;
                bytes = 0;
            }
            let code = self.compile_exported(&version.source, &name, owner).await?;
            bytes += version.source.len() + code.len();
            writes.push(Write::ProgramImport(Box::new(program_version(owner, id, &name, version, code))));
        }
        writes.push(Write::ProgramImported { id });
        store.apply(writes).await.map_err(|error| match error {
            // Another request took the name first.
            StoreError::Rejected(Rejection::Conflict(Entity::Program)) => program_taken(&name),
            other => stored(other),
        })?;
        self.program_get(call, ProgramGet { program: call.subject.to_string(), version: None }).await
    }

    pub(super) async fn import_run(
        &self,
        call: &VerbCall<'_>,
        new: &ImportBegin,
        file: ImportFile,
    ) -> Result<Run, OpError> {
        let ImportFile {
            program, mut versions, execution, checkpoints, mut tasks, mail, events, pages, ..
        } = file;
        let (Some(from), Some(mut version)) = (execution, versions.pop()) else {
            return Err(invalid("the file has no execution, or not its program"));
        };
        consistent(&from, &checkpoints, &tasks)?;
        let name = new.name.as_deref().or(from.name.as_deref());
        let name = name.map(|name| checked_name("execution", name)).transpose()?.map(str::to_owned);
        self.is_no_id(call, name.as_deref()).await?;
        let worktree_path = new.worktree_path.clone().unwrap_or_default();
        let worktree = self.may_use(call, &worktree_path, new.as_user.clone()).await?;
        let (template, policy) = self.policy_of(call, new.template.as_deref()).await?;
        let code = version.code.take().map(|code| code.0).unwrap_or_default();
        if !checkpoints.is_empty() {
            // Every one, not only the newest: a branch may begin at any of them.
            let states = checkpoints.iter().map(|kept| (kept.seq, state_at(&pages, kept.seq)));
            let verdict = self.durables()?.verify(&call.caller.owner, &policy, code.clone(), states).await?;
            verdict.map_err(|(seq, why)| {
                invalid(format!("no worker can restore the state of checkpoint {seq} in the file: {why}"))
                    .with_hint("is it larger than the template's `max_state_mb`?")
            })?;
        }
        let (at, id) = (self.store.now(), ExecutionId::from_uuid(call.subject));
        let session = SessionId::from_uuid(Uuid::now_v7());
        let mut writes = vec![
            Write::SessionInsert {
                owner: call.caller.owner.clone(),
                session: Arc::new(session_record(session, template, &worktree_path, at)),
                policy: Arc::new(policy),
                worktree,
            },
            Write::ExecutionStarted {
                name,
                execution: Arc::new(record(id, session, &from, (&events, &tasks))),
            },
        ];
        let program = new.program_name.as_deref().unwrap_or(&program);
        let runs = self.program_of(&call.caller.owner, program, version, code, &mut writes).await?;
        writes.push(Write::ProgramRun { execution: id, program: runs.0, version: runs.1 });
        add_state(id, checkpoints, pages, &mut writes);
        let deadline = tasks.iter().any(|task| task.ended_at.is_none() && task.deadline.is_some());
        // The store counts answers in this order.
        tasks.sort_by_key(|task| task.item.as_ref().and_then(|item| item.answer_seq));
        writes.extend(tasks.into_iter().map(|task| Write::ItemInsert(Box::new(task_row(id, task)))));
        let mail = mail.into_iter().zip(1..).map(|(mail, seq)| {
            let (name, event) = (mail.name, mail.event.as_str().to_owned());
            Write::MailInsert { execution: id, mail: MailRow { seq, name, event, at: mail.at } }
        });
        writes.extend(mail);
        writes.push(Write::Events(
            events.into_iter().map(|event| Event { execution_id: id, ..event }).collect(),
        ));
        if from.status.is_final() {
            writes.push(Write::SessionEnd {
                id: session,
                status: SessionStatus::Closed,
                at,
                reason: CloseReason::Exited,
                last_error: from.error.as_ref().map(|error| error.message.clone()),
            });
        }
        self.store_of(call).apply(writes).await.map_err(|error| match error {
            StoreError::Rejected(Rejection::Conflict(Entity::Execution)) => {
                refused(&DurableRefusal::NameTaken, id)
            }
            // Another request took the program's name first.
            StoreError::Rejected(Rejection::Missing(Entity::Program)) => program_taken(program),
            other => stored(other),
        })?;
        if deadline {
            self.durables()?.wake(id);
        }
        let made = self.run_made(call, id).await?;
        made.ok_or_else(|| not_found(Entity::Execution, &id.to_string()))
    }

    async fn own_program(&self, owner: &Owner, name: &str) -> Result<Option<ProgramId>, OpError> {
        let scope = Scope::Owner(owner.clone());
        Ok(self.store.program_by_name(&scope, name).await.map_err(stored)?.map(|row| row.id))
    }

    /// The importer's program with the same code; a new one where the name is free. The newest version, which is the one that
    /// is started, has the file's source; code that differs from it becomes an older version that only the execution uses.
    async fn program_of(
        &self,
        owner: &Owner,
        name: &str,
        version: VersionPart,
        code: Vec<u8>,
        writes: &mut Vec<Write>,
    ) -> Result<(ProgramId, u32), OpError> {
        let name = checked_name("program", name)?;
        let Some(known) = self.own_program(owner, name).await? else {
            let id = ProgramId::from_uuid(Uuid::now_v7());
            let compiled = self.compile_exported(&version.source, name, owner).await?;
            let own = (compiled != code).then(|| {
                let (source, created_at) = (version.source.clone(), version.created_at);
                let (source_hash, format) = (version.source_hash.clone(), version.format);
                let newest = VersionPart { version: 2, source, source_hash, created_at, format, code: None };
                Write::ProgramVersion(Box::new(program_version(owner, id, name, newest, compiled)))
            });
            writes.push(Write::ProgramVersion(Box::new(program_version(owner, id, name, version, code))));
            writes.extend(own);
            return Ok((id, 1));
        };
        let hash = Sha256::digest(version.source.as_bytes()).into();
        for same in self.store.versions_of_source(known, hash, SAME_SOURCE).await.map_err(stored)? {
            let found = self.store.program_code(known, same.version).await.map_err(stored)?;
            if found.is_some_and(|found| found.code == code) {
                return Ok((known, same.version));
            }
        }
        Err(program_taken(name)
            .with_hint("choose another name for the execution's program: `--program-name`"))
    }
}

fn program_taken(name: &str) -> OpError {
    OpError::new(ErrorCode::Conflict, format!("there is another program {name:?}"))
}

fn program_version(
    owner: &Owner,
    id: ProgramId,
    name: &str,
    version: VersionPart,
    code: Vec<u8>,
) -> NewProgramVersion {
    NewProgramVersion {
        owner: owner.clone(),
        id,
        name: name.to_owned(),
        source_hash: Sha256::digest(version.source.as_bytes()).into(),
        format: format_of(&version.source),
        source: version.source,
        code,
        at: version.created_at,
    }
}

/// Checks relations between records.
pub(super) fn consistent(
    from: &ExecutionPart,
    checkpoints: &[CheckpointPart],
    tasks: &[TaskPart],
) -> Result<(), OpError> {
    let is_open = |task: &&TaskPart| task.ended_at.is_none();
    let pending = tasks.iter().any(|task| is_open(&task));
    let fits = match from.status {
        ExecutionStatus::Waiting => {
            let waits = match checkpoints.last().map(|last| last.cause.as_str()) {
                Some("pause" | "edit") => tasks.iter().filter(is_open).any(|task| task.item.is_none()),
                // A pause has its answer behind its checkpoint, and an answer of an item that is not used would have made it run.
                Some("wait" | "wait_edit") => {
                    let fits = |task: &TaskPart| match &task.item {
                        None => task.ended_at.is_some(),
                        Some(item) => task.ended_at.is_none() || item.taken_at.is_some(),
                    };
                    pending && tasks.iter().all(fits)
                }
                _ => false,
            };
            waits && from.ended_at.is_none()
        }
        ExecutionStatus::Running => false,
        _ => !pending && from.ended_at.is_some(),
    };
    let newest = checkpoints.last().map_or(0, |last| last.seq);
    let args = from.args.to_value().is_some_and(|args| args.is_array());
    let env = from.env.to_value().is_some_and(|env| env.is_object());
    // Of an ended one the states may be gone that its tasks came from.
    let known = from.status.is_final() || tasks.iter().all(|task| task.checkpoint <= newest);
    let open_items = || tasks.iter().filter(is_open).filter(|task| task.item.is_some());
    let json = |json: &Option<JsonText>| json.as_ref().map_or(0, |json| json.as_str().len());
    let texts =
        open_items().map(|task| (task.prompt.len() + json(&task.schema) + json(&task.fallback)) as u64);
    let few = open_items().count() <= PENDING_ITEMS as usize && texts.sum::<u64>() <= 2 * PENDING_ITEMS_BYTES;
    if fits && args && env && known && few {
        return Ok(());
    }
    Err(invalid("the parts of the file contradict each other"))
}

/// The pages of the state at a checkpoint: of each, the newest version until then.
fn state_at(pages: &Pages, seq: u64) -> BTreeMap<u64, &[u8]> {
    let mut state = BTreeMap::new();
    for ((page, _), bytes) in pages.iter().filter(|((_, since), _)| *since <= seq) {
        match bytes {
            Some(bytes) => state.insert(*page, bytes.as_slice()),
            None => state.remove(page),
        };
    }
    state
}

fn record(
    id: ExecutionId,
    session: SessionId,
    from: &ExecutionPart,
    (events, tasks): (&[Event], &[TaskPart]),
) -> Execution {
    let mut record =
        fresh_record(id, session, from.status, from.args.clone(), from.env.clone(), from.started_at);
    record.ended_at = from.ended_at;
    record.result = from.result.clone().map(ResultValue::of_json);
    record.error.clone_from(&from.error);
    record.metrics = from.metrics;
    // The next event gets the next number.
    record.metrics.events = events.len() as u64;
    // The size of the record is measured, not read from the file: it decides what may be added, and who uses most.
    let options = |json: &Option<JsonText>| json.as_ref().map_or(0, |json| json.as_str().len() as u64);
    let output: u64 = events.iter().map(|event| event.payload.output_bytes()).sum();
    let task_bytes: u64 = tasks.iter().map(|task| options(&task.schema) + options(&task.fallback)).sum();
    record.metrics.output_bytes = output + task_bytes;
    record
}

/// Versions of pages that are older than every checkpoint in the file belong to the first one.
fn add_state(id: ExecutionId, checkpoints: Vec<CheckpointPart>, pages: Pages, writes: &mut Vec<Write>) {
    let mut shares: Vec<BTreeMap<u64, Option<Vec<u8>>>> =
        checkpoints.iter().map(|_| BTreeMap::new()).collect();
    for ((page, checkpoint), bytes) in pages {
        let place = checkpoints.partition_point(|kept| kept.seq < checkpoint);
        if let Some(share) = shares.get_mut(place) {
            share.insert(page, bytes);
        }
    }
    writes.extend(checkpoints.into_iter().zip(shares).map(|(kept, pages)| {
        Write::Checkpoint(Box::new(Checkpoint {
            execution: id,
            seq: kept.seq,
            at: kept.at,
            cause: kept.cause,
            pages: pages.into_iter().collect(),
            unweighed: None,
            written: 0,
        }))
    }));
}

fn task_row(execution: ExecutionId, task: TaskPart) -> ItemRow {
    let text = |json: JsonText| json.as_str().to_owned();
    let item = task.item;
    let number = item.as_ref().map(|item| item.number);
    ItemRow {
        id: number.map_or_else(|| task_id(execution, task.checkpoint), |number| item_id(execution, number)),
        item: number.map_or(task.checkpoint, |number| ITEMS_FROM + number),
        kind: item.as_ref().and_then(|item| WaitKind::from_text(&item.kind)).unwrap_or(WaitKind::Question),
        taken_at: item.as_ref().and_then(|item| item.taken_at),
        name: item.and_then(|item| item.name),
        answer_seq: None,
        owner: Owner::new(""),
        execution,
        prompt: task.prompt,
        schema: task.schema.map(text),
        attempts: task.attempts,
        created_at: task.created_at,
        deadline: task.deadline,
        ended_at: task.ended_at,
        // Unknown outcomes cannot occur: the file was checked.
        outcome: task.outcome.as_deref().and_then(ItemOutcome::from_text),
        answer: task.answer,
        checkpoint: task.checkpoint,
        retries: task.retries,
        fallback: task.fallback.map(text),
        first_attempt_at: task.first_attempt_at,
        last_attempt_at: task.last_attempt_at,
    }
}
