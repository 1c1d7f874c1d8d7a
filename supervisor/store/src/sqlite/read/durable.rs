//! Programs, tasks, checkpoints and pages.

use super::{
    Read, ReadError, Select, count, executions, maybe_moment, moment, pages, sessions, small, templates,
};
use crate::holds::next_fence;
use rusqlite::{Connection, Row};
use vm_system_protocol::ids::{ExecutionId, ProgramId, TaskId};
use vm_system_protocol::model::WaitingFor;
use vm_system_record::{
    CheckpointRow, Owner, Page, PageVersion, ProgramCode, ProgramRow, PromptBeginning, RUN_HEAD_STATE_BYTES,
    RunHead, RunRow, Scope, SessionRow, UsedLimits, VersionRow,
};
use vm_system_record::{ITEMS_FROM, ItemOutcome, ItemRow, MailRow, WaitKind};

pub(super) const PROGRAM: &str =
    "SELECT id, owner, name, is_active, programs.created_at, modified_at, programs.version,
    source_hash, format FROM programs
    JOIN program_versions ON program = id AND program_versions.version = programs.version";

pub(in crate::sqlite) fn program(
    c: &Connection,
    scope: &Scope,
    id: ProgramId,
) -> Read<Option<Box<ProgramRow>>> {
    let mut select = Select::new(PROGRAM);
    select.and_value("id =", id.as_bytes().to_vec()).and("is_active = 1").scope(scope);
    select.first_boxed(c, program_row)
}

pub(in crate::sqlite) fn program_by_name(
    c: &Connection,
    scope: &Scope,
    name: &str,
) -> Read<Option<Box<ProgramRow>>> {
    let mut select = Select::new(PROGRAM);
    select.and_value("name =", name.to_owned()).and("is_active = 1").scope(scope);
    select.newest_first("programs.created_at", Page::first(1));
    select.first_boxed(c, program_row)
}

pub(super) fn program_row(row: &Row<'_>) -> Read<ProgramRow> {
    Ok(ProgramRow {
        id: ProgramId::from_bytes(row.get(0)?),
        owner: Owner::new(row.get_ref(1)?.as_str().map_err(|_| ReadError::Damaged("program"))?),
        name: row.get(2)?,
        is_active: row.get(3)?,
        created_at: moment(row, 4)?,
        modified_at: moment(row, 5)?,
        version: small(row, 6, "program")?,
        source_hash: row.get(7)?,
        format: small(row, 8, "program")?,
    })
}

pub(in crate::sqlite) fn program_code(
    c: &Connection,
    id: ProgramId,
    version: u32,
) -> Read<Option<Box<ProgramCode>>> {
    let mut select = Select::new("SELECT source, format, code FROM program_versions");
    select.and_value("program =", id.as_bytes().to_vec()).and_value("version =", i64::from(version));
    select.first_boxed(c, |row| {
        Ok(ProgramCode { source: row.get(0)?, format: small(row, 1, "program")?, code: row.get(2)? })
    })
}

pub(in crate::sqlite) fn program_versions(
    c: &Connection,
    program: ProgramId,
    below: Option<u32>,
    limit: u32,
) -> Read<Vec<VersionRow>> {
    let mut select = Select::new("SELECT version, source_hash, format, created_at FROM program_versions");
    select.and_value("program =", program.as_bytes().to_vec());
    if let Some(below) = below {
        select.and_value("version <", i64::from(below));
    }
    newest_versions(c, select, limit)
}

pub(in crate::sqlite) fn versions_of_source(
    c: &Connection,
    program: ProgramId,
    source_hash: [u8; 32],
    limit: u32,
) -> Read<Vec<VersionRow>> {
    let mut select = Select::new(
        "SELECT version, source_hash, format, created_at FROM program_versions
         INDEXED BY program_versions_by_source",
    );
    select.and_value("program =", program.as_bytes().to_vec());
    select.and_value("source_hash =", source_hash.to_vec());
    newest_versions(c, select, limit)
}

fn newest_versions(c: &Connection, mut select: Select, limit: u32) -> Read<Vec<VersionRow>> {
    select.paged = true;
    select.text(" ORDER BY version DESC LIMIT").value(i64::from(limit));
    select.rows(c, |row| {
        Ok(VersionRow {
            version: small(row, 0, "program")?,
            source_hash: row.get(1)?,
            format: small(row, 2, "program")?,
            created_at: moment(row, 3)?,
        })
    })
}

pub(in crate::sqlite) fn program_run(
    c: &Connection,
    execution: ExecutionId,
) -> Read<Option<(ProgramId, u32)>> {
    let mut select = Select::new("SELECT program, version FROM program_runs");
    select.and_value("execution =", execution.as_bytes().to_vec());
    select.first(c, |row| Ok((ProgramId::from_bytes(row.get(0)?), small(row, 1, "program run")?)))
}

pub(in crate::sqlite) fn current(c: &Connection, owner: &Owner, client: &str) -> Read<Option<ExecutionId>> {
    let mut select = Select::new("SELECT execution FROM current_executions");
    select.and_value("owner =", owner.as_str().to_owned()).and_value("client =", client.to_owned());
    select.first(c, |row| Ok(ExecutionId::from_bytes(row.get(0)?)))
}

pub(super) const TASK: &str =
    "SELECT id, owner, execution, prompt, schema, attempts, created_at, due_at, ended_at, answer,
    checkpoint, retries, fallback, outcome, first_attempt_at, last_attempt_at, item, kind, name, answer_seq, taken_at FROM items";

/// Of the items of an execution those that are tasks.
pub(super) const IS_QUESTION: &str = "kind = 'question'";

/// A statement for the oldest pending task of an execution: a look-up, however many items it has had. The execution is a value of both
/// parts: a condition that refers to the other part would be checked for each item.
fn oldest_pending(head: &str, execution: ExecutionId) -> Select {
    let mut select = Select::new(head);
    select.and_value("execution =", execution.as_bytes().to_vec());
    // Not `min(item)`, for which all open items would be read.
    select.and_value("item = (SELECT item FROM open_items WHERE execution =", execution.as_bytes().to_vec());
    select.text(" AND kind = 'question' ORDER BY item LIMIT 1)");
    select
}

/// As `executions::IS_NOT_BEING_DELETED`, of tasks.
pub(super) const IS_OF_NO_DELETION: &str =
    "NOT EXISTS (SELECT 1 FROM staged WHERE staged.execution = items.execution AND staged.bytes < 0)";

pub(in crate::sqlite) fn task(c: &Connection, scope: &Scope, id: TaskId) -> Read<Option<Box<ItemRow>>> {
    let mut select = Select::new(TASK);
    select.and_value("id =", id.as_bytes().to_vec()).and(IS_QUESTION).and(IS_OF_NO_DELETION).scope(scope);
    select.first_boxed(c, task_row)
}

pub(in crate::sqlite) fn pending_task(c: &Connection, execution: ExecutionId) -> Read<Option<Box<ItemRow>>> {
    oldest_pending(TASK, execution).first_boxed(c, task_row)
}

pub(in crate::sqlite) fn prompts(
    c: &Connection,
    scope: &Scope,
    executions: &[ExecutionId],
    bytes: u32,
) -> Read<Vec<PromptBeginning>> {
    let mut prompts = Vec::new();
    for execution in executions {
        let mut select = oldest_pending("SELECT prompt, id FROM items", *execution);
        select.scope(scope);
        let beginning = |row: &Row<'_>| {
            let prompt = row.get_ref(0)?.as_str().map_err(|_| ReadError::Damaged("task"))?;
            let text = prompt[..prompt.floor_char_boundary(bytes as usize)].to_owned();
            let task = TaskId::from_bytes(row.get(1)?);
            Ok(PromptBeginning { execution: *execution, task, text, full_bytes: prompt.len() })
        };
        prompts.extend(select.readable_rows(c, |_| 0, beginning)?);
    }
    Ok(prompts)
}

pub(in crate::sqlite) fn program_counts(c: &Connection, scope: &Scope) -> Read<(u64, u64)> {
    let mut programs = Select::new("SELECT count(*) FROM programs");
    programs.and("is_active = 1").scope(scope);
    let mut runs = Select::new("SELECT count(*) FROM executions INDEXED BY executions_of_programs");
    runs.and("kind = 'program'").scope(scope);
    let mut deleted = Select::new(
        "SELECT count(*) FROM staged CROSS JOIN program_runs ON program_runs.execution = staged.execution",
    );
    deleted.and("staged.bytes < 0").scope(scope);
    let number = |select: &Select| select.first(c, |row| count(row, 0)).map(Option::unwrap_or_default);
    Ok((number(&programs)?, number(&runs)?.saturating_sub(number(&deleted)?)))
}

pub(super) fn task_weight(task: &ItemRow) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    256 + task.prompt.len() + text(&task.schema) + text(&task.fallback) + text(&task.answer)
}

pub(super) fn run_weight(run: &RunRow) -> usize {
    executions::weight(&run.row.execution)
}

pub(super) fn task_row(row: &Row<'_>) -> Read<ItemRow> {
    Ok(ItemRow {
        id: TaskId::from_bytes(row.get(0)?),
        owner: Owner::new(row.get_ref(1)?.as_str().map_err(|_| ReadError::Damaged("task"))?),
        execution: ExecutionId::from_bytes(row.get(2)?),
        prompt: row.get(3)?,
        schema: row.get(4)?,
        attempts: u32::try_from(count(row, 5)?).unwrap_or(u32::MAX),
        created_at: moment(row, 6)?,
        deadline: maybe_moment(row, 7)?,
        ended_at: maybe_moment(row, 8)?,
        answer: row.get(9)?,
        checkpoint: count(row, 10)?,
        retries: row.get(11)?,
        fallback: row.get(12)?,
        outcome: match row.get::<_, Option<String>>(13)? {
            Some(text) => Some(ItemOutcome::from_text(&text).ok_or(ReadError::Damaged("task"))?),
            None => None,
        },
        first_attempt_at: maybe_moment(row, 14)?,
        last_attempt_at: maybe_moment(row, 15)?,
        item: count(row, 16)?,
        kind: {
            let kind = row.get_ref(17)?.as_str().map_err(|_| ReadError::Damaged("task"))?;
            WaitKind::from_text(kind).ok_or(ReadError::Damaged("task"))?
        },
        name: row.get(18)?,
        answer_seq: row.get::<_, Option<i64>>(19)?.map(i64::cast_unsigned),
        taken_at: row.get::<_, Option<i64>>(20)?.map(i64::cast_unsigned),
    })
}

pub(in crate::sqlite) fn task_of(
    c: &Connection,
    execution: ExecutionId,
    at: Option<u64>,
) -> Read<Option<Box<ItemRow>>> {
    let mut select = Select::new(TASK);
    let last = at.unwrap_or(ITEMS_FROM).min(ITEMS_FROM);
    select.and_value("execution =", execution.as_bytes().to_vec()).and_value("item <=", last.cast_signed());
    select.text(" ORDER BY item DESC LIMIT 1");
    select.first_boxed(c, task_row)
}

/// Of a program: what it waits for, and the answers that it has not used, in their order.
fn pending_items(c: &Connection, execution: ExecutionId) -> Read<Vec<ItemRow>> {
    let id = || execution.as_bytes().to_vec();
    let mut open = Select::new(TASK);
    open.and_value("execution =", id())
        .and_value("item IN (SELECT item FROM open_items WHERE execution =", id());
    // In no order: they are found by their numbers.
    open.and_value("item >", ITEMS_FROM.cast_signed()).text(")");
    let mut items = open.rows(c, task_row)?;
    items.extend(untaken(execution).rows(c, task_row)?);
    Ok(items)
}

/// Items that have ended and are in no state, in the order of their answers.
fn untaken(execution: ExecutionId) -> Select {
    let mut select = Select::new(&format!("{TASK} INDEXED BY items_untaken"));
    // The text of the partial index, which is used for no other.
    select.and_value("execution =", execution.as_bytes().to_vec());
    select.and("ended_at IS NOT NULL AND taken_at IS NULL AND item >= 1099511627776");
    select.text(" ORDER BY answer_seq");
    select
}

pub(in crate::sqlite) fn abandoned(c: &Connection, execution: ExecutionId, limit: u32) -> Read<Vec<ItemRow>> {
    let mut select = untaken(execution);
    select.paged = true;
    select.text(" LIMIT").value(i64::from(limit));
    select.readable_rows(c, task_weight, task_row)
}

pub(in crate::sqlite) fn items_at(
    c: &Connection,
    execution: ExecutionId,
    checkpoint: u64,
) -> Read<Vec<ItemRow>> {
    let checkpoint = checkpoint.cast_signed();
    let mut select = Select::new(TASK);
    select
        .and_value("execution =", execution.as_bytes().to_vec())
        .and_value("item >", ITEMS_FROM.cast_signed());
    select
        .and_value("checkpoint <=", checkpoint)
        .and_value("coalesce(taken_at, 9223372036854775807) >", checkpoint);
    select.text(" ORDER BY item");
    select.rows(c, task_row)
}

pub(in crate::sqlite) fn waiting_for(c: &Connection, execution: ExecutionId) -> Read<WaitingFor> {
    let mut select = Select::new("SELECT kind, count(*) FROM open_items");
    select.and_value("execution =", execution.as_bytes().to_vec()).text(" GROUP BY kind");
    let mut waiting = WaitingFor::default();
    select.each(c, |row| {
        let kind = row.get_ref(0)?.as_str().map_err(|_| ReadError::Damaged("task"))?;
        let number = small(row, 1, "task")?;
        match WaitKind::from_text(kind).ok_or(ReadError::Damaged("task"))? {
            WaitKind::Question => waiting.questions = number,
            WaitKind::Timer => waiting.timers = number,
            WaitKind::Event => waiting.events = number,
        }
        Ok(true)
    })?;
    let mut wake = Select::new("SELECT wake_at FROM executions");
    wake.and_value("id =", execution.as_bytes().to_vec());
    waiting.wakes_at = wake.first(c, |row| maybe_moment(row, 0))?.flatten();
    Ok(waiting)
}

pub(in crate::sqlite) fn event_waiters(
    c: &Connection,
    owner: &Owner,
    name: &str,
    behind: Option<ExecutionId>,
    limit: u32,
) -> Read<Vec<ExecutionId>> {
    let mut select = Select::new("SELECT DISTINCT execution FROM open_items INDEXED BY open_items_of_events");
    select
        .and("kind = 'event'")
        .and_value("owner =", owner.as_str().to_owned())
        .and_value("name =", name.to_owned());
    if let Some(behind) = behind {
        select.and_value("execution >", behind.as_bytes().to_vec());
    }
    select.paged = true;
    select.text(" ORDER BY execution LIMIT").value(i64::from(limit));
    select.rows(c, |row| Ok(ExecutionId::from_bytes(row.get(0)?)))
}

fn last_item(c: &Connection, execution: ExecutionId) -> Read<u64> {
    let mut select = Select::new("SELECT item FROM items");
    select
        .and_value("execution =", execution.as_bytes().to_vec())
        .and_value("item >", ITEMS_FROM.cast_signed());
    select.text(" ORDER BY item DESC LIMIT 1");
    Ok(select.first(c, |row| count(row, 0))?.map_or(0, |item| item - ITEMS_FROM))
}

pub(in crate::sqlite) fn mailbox(c: &Connection, execution: ExecutionId) -> Read<Vec<MailRow>> {
    let mut select = Select::new("SELECT seq, name, event, at FROM mailbox");
    select.and_value("execution =", execution.as_bytes().to_vec()).text(" ORDER BY seq");
    select.rows(c, |row| {
        Ok(MailRow { seq: count(row, 0)?, name: row.get(1)?, event: row.get(2)?, at: moment(row, 3)? })
    })
}

pub(in crate::sqlite) fn items_of_run(
    c: &Connection,
    execution: ExecutionId,
    after: u64,
    limit: u32,
) -> Read<Vec<ItemRow>> {
    let mut select = Select::new(TASK);
    select.and_value("execution =", execution.as_bytes().to_vec());
    select.and_value("item >", i64::try_from(after).unwrap_or(i64::MAX));
    select.paged = true;
    select.text(" ORDER BY item LIMIT").value(i64::from(limit));
    select.readable_rows(c, task_weight, task_row)
}

pub(in crate::sqlite) fn page_versions(
    c: &Connection,
    execution: ExecutionId,
    after: Option<(u64, u64)>,
    bytes: usize,
) -> Read<Vec<PageVersion>> {
    let mut select = Select::new("SELECT page, checkpoint, bytes FROM state_pages");
    select.and_value("execution =", execution.as_bytes().to_vec());
    if let Some((page, checkpoint)) = after {
        let stored = |number| i64::try_from(number).unwrap_or(i64::MAX);
        select
            .and("(page, checkpoint) > (")
            .value(stored(page))
            .text(",")
            .value(stored(checkpoint))
            .text(")");
    }
    select.paged = true;
    select.text(" ORDER BY page, checkpoint");
    let (mut versions, mut left_bytes) = (Vec::new(), bytes);
    select.each(c, |row| {
        let version: PageVersion = (count(row, 0)?, count(row, 1)?, row.get(2)?);
        // Rows cost, too.
        left_bytes = left_bytes.saturating_sub(64 + version.2.as_ref().map_or(0, Vec::len));
        versions.push(version);
        Ok(left_bytes > 0)
    })?;
    Ok(versions)
}

/// Columns and tables of [`run_row`].
fn run_columns() -> String {
    let columns = executions::COLUMNS
        .replacen("SELECT id, owner, name,", "SELECT executions.id, executions.owner, executions.name,", 1)
        .replacen(" FROM executions", "", 1)
        .replacen("started_at", "executions.started_at", 1);
    format!(
        "{columns}, program, program_runs.version, programs.name, programs.is_active FROM program_runs
         CROSS JOIN executions ON executions.id = program_runs.execution
         CROSS JOIN programs ON programs.id = program_runs.program"
    )
}

fn run_row(row: &Row<'_>) -> Read<RunRow> {
    Ok(RunRow {
        waiting_for: WaitingFor::default(),
        row: executions::execution_row(row)?,
        program: ProgramId::from_bytes(row.get(executions::WIDTH)?),
        version: small(row, executions::WIDTH + 1, "program run")?,
        program_name: if row.get(executions::WIDTH + 3)? { row.get(executions::WIDTH + 2)? } else { None },
    })
}

pub(in crate::sqlite) fn run_by_id(c: &Connection, scope: &Scope, id: ExecutionId) -> Read<Vec<RunRow>> {
    Ok(one_run(c, scope, id)?.into_iter().collect())
}

pub(in crate::sqlite) fn run_by_name(c: &Connection, owner: &Owner, name: &str) -> Read<Vec<RunRow>> {
    match executions::execution_by_name(c, owner, name)? {
        Some(row) => run_by_id(c, &Scope::All, row.execution.id),
        None => Ok(Vec::new()),
    }
}

pub(super) fn one_run(c: &Connection, scope: &Scope, id: ExecutionId) -> Read<Option<RunRow>> {
    let mut select = Select::new(&run_columns());
    select.and(executions::IS_NOT_BEING_DELETED).and_value("execution =", id.as_bytes().to_vec());
    if let Scope::Owner(owner) = scope {
        select.and_value("program_runs.owner =", owner.as_str().to_owned());
    }
    let Some(mut run) = select.first(c, run_row)? else { return Ok(None) };
    if !run.row.execution.status.is_final() {
        run.waiting_for = waiting_for(c, id)?;
    }
    Ok(Some(run))
}

pub(in crate::sqlite) fn run_head(c: &Connection, execution: ExecutionId) -> Read<Option<Box<RunHead>>> {
    let Some(row) = executions::execution(c, &Scope::All, execution)? else { return Ok(None) };
    let Some((program, version)) = program_run(c, execution)? else { return Ok(None) };
    let session = row.execution.session_id;
    let damaged = || ReadError::Damaged("execution");
    let policy = sessions::session_policy(c, session)?.ok_or_else(damaged)?;
    let SessionRow { session, worktree, .. } =
        *sessions::session(c, &Scope::All, session)?.ok_or_else(damaged)?;
    let checkpoint = last_checkpoint(c, execution)?.pop();
    let state = match &checkpoint {
        Some(last) => complete(pages::state_part(c, execution, last.seq, None, RUN_HEAD_STATE_BYTES)?),
        None => None,
    };
    Ok(Some(Box::new(RunHead {
        execution: row.execution,
        program,
        version,
        owner: row.owner,
        worktree_path: session.worktree_path,
        worktree,
        policy,
        template: templates::template(c, &Scope::All, session.template_id)?.map(|row| *row),
        checkpoint,
        task: task_of(c, execution, None)?.map(|row| *row),
        items: pending_items(c, execution)?,
        last_item: last_item(c, execution)?,
        mailbox: mailbox(c, execution)?,
        limits: used_limits(c, execution)?,
        fence: next_fence(),
        state,
    })))
}

fn used_limits(c: &Connection, execution: ExecutionId) -> Read<UsedLimits> {
    let mut select = Select::new("SELECT spent, exits, kills FROM executions");
    select.and_value("id =", execution.as_bytes().to_vec());
    let limits = select.first(c, |row| {
        let text = row.get_ref(0)?.as_str_or_null().map_err(|_| ReadError::Damaged("execution"))?;
        let spent =
            text.map(serde_json::from_str).transpose().map_err(|_| ReadError::Damaged("execution"))?;
        let [exits, kills] = [small(row, 1, "execution")?, small(row, 2, "execution")?];
        Ok(UsedLimits { spent: spent.unwrap_or_default(), exits, kills })
    })?;
    Ok(limits.unwrap_or_default())
}

/// All pages of a state; none if there may be more than these.
fn complete(pages: Vec<(u64, Vec<u8>)>) -> Option<Vec<(u64, Vec<u8>)>> {
    let bytes: usize = pages.iter().map(|(_, page)| page.len()).sum();
    (bytes < RUN_HEAD_STATE_BYTES).then_some(pages)
}

pub(in crate::sqlite) fn last_checkpoint(c: &Connection, execution: ExecutionId) -> Read<Vec<CheckpointRow>> {
    let mut select = Select::new("SELECT seq, at, cause, bytes, unweighed, written FROM checkpoints");
    select.and_value("execution =", execution.as_bytes().to_vec()).text(" ORDER BY seq DESC LIMIT 1");
    select.rows(c, checkpoint_row)
}

fn checkpoint_row(row: &Row<'_>) -> Read<CheckpointRow> {
    let unweighed: Option<i64> = row.get(4)?;
    Ok(CheckpointRow {
        seq: count(row, 0)?,
        at: moment(row, 1)?,
        cause: row.get(2)?,
        bytes: count(row, 3)?,
        unweighed: unweighed.and_then(|bytes| u64::try_from(bytes).ok()),
        written: count(row, 5)?,
    })
}

pub(in crate::sqlite) fn checkpoints(c: &Connection, execution: ExecutionId) -> Read<Vec<CheckpointRow>> {
    let mut select = Select::new("SELECT seq, at, cause, bytes, unweighed, written FROM checkpoints");
    // One that is being deleted is not whole.
    select
        .and_value("execution =", execution.as_bytes().to_vec())
        .text(" AND cause <> 'dropped' ORDER BY seq");
    select.rows(c, checkpoint_row)
}
