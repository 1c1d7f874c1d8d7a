//! Every filter of every list, page by page, beside a plain selection of all rows; and SQLite's plans of their statements.

use super::*;
use crate::Durability;
use crate::sqlite::open::first_connection;
use crate::sqlite::schema::SCHEMA;
use std::time::Duration;
use vm_system_protocol::control::Period;
use vm_system_protocol::ids::{ProgramId, SessionId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Cursor, ExecutionQuery, Owner};

const OWNERS: [&str; 3] = ["me", "they", "uid:7"];

/// A database in which each owner has two programs with many executions, of all statuses, some with names and starts at the same time;
/// and an execution of a session with such a name, and one that is being deleted.
fn filled() -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    let c =
        first_connection(&path, Durability::Normal, Duration::ZERO, None, &SCHEMA).expect("an empty folder");
    c.execute_batch(
        "INSERT INTO policies VALUES (zeroblob(32), '{}', 'me');
         INSERT INTO templates VALUES (zeroblob(16), 'me', 't', 'cvm', 1, '{}', 0, 0);
         INSERT INTO sessions (id, owner, template, policy, durable, workspace_id, base_commit_oid, worktree_path,
             status, created_at, runtime_meta)
             VALUES (zeroblob(16), 'me', zeroblob(16), zeroblob(32), 1, '', '', '', 'ready', 0, '{}');
         INSERT INTO executions (id, session, owner, name, kind, status, args, env, started_at)
             VALUES (x'ee000000000000000000000000000001', zeroblob(16), 'me', 'job', 'repl', 'ok', '[]', '{}', 5);",
    )
    .expect("rows of a schema of our own");
    for (number, owner) in OWNERS.iter().enumerate() {
        for program in 0..2 {
            let id = program_id(number, program);
            let (name, at) = (format!("p{program}"), i64::from(program) + 3);
            c.execute(
                "INSERT INTO programs VALUES (?1, ?2, ?3, 1, 1, ?4, 0)",
                rusqlite::params![id.as_bytes(), owner, name, at],
            )
            .expect("a new program");
            c.execute(
                "INSERT INTO program_versions VALUES (?1, 1, zeroblob(32), 1, 0, '', x'')",
                [id.as_bytes()],
            )
            .expect("its version");
        }
    }
    for number in 0..90 {
        insert(&c, number, i64::from(number) * 7 % 20);
    }
    c.execute_batch(
        "INSERT INTO staged SELECT id, 1, -1 FROM executions WHERE kind = 'program' ORDER BY started_at, id LIMIT 1",
    )
    .expect("a new mark");
    (folder, c)
}

fn program_id(owner: usize, program: u8) -> ProgramId {
    ProgramId::from_bytes([
        u8::try_from(owner).unwrap_or(9) + 1,
        program,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
    ])
}

/// An execution with two tasks, the second of which is pending while it waits.
fn insert(c: &Connection, number: u8, at: i64) {
    let owner = usize::from(number) % OWNERS.len();
    let status = ExecutionStatus::ALL[usize::from(number) / 3 % 6];
    let name = (status.is_final() && number.is_multiple_of(2)).then_some("job");
    // Not in the order of the times.
    let id = [number.wrapping_mul(37), number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    c.execute(
        "INSERT INTO executions (id, session, owner, name, kind, status, args, env, started_at)
         VALUES (?1, zeroblob(16), ?2, ?3, 'program', ?4, '[]', '{}', ?5)",
        rusqlite::params![id, OWNERS[owner], name, status.as_str(), at],
    )
    .expect("a new execution");
    c.execute(
        "INSERT INTO program_runs (execution, owner, program, version, started_at) VALUES (?1, ?2, ?3, 1, ?4)",
        rusqlite::params![id, OWNERS[owner], program_id(owner, number / 18 % 2).as_bytes(), at],
    )
    .expect("a program");
    let outcome = TaskState::ALL[usize::from(number) / 3 % 5 + 1];
    for checkpoint in 1..=2_u8 {
        let is_pending = checkpoint == 2 && status == ExecutionStatus::Waiting;
        let ended = (!is_pending).then_some(1);
        let outcome = (!is_pending).then_some(outcome.as_str());
        let mut task = id;
        task[14] = checkpoint;
        c.execute(
            "INSERT INTO items (id, execution, item, kind, owner, prompt, attempts, created_at, checkpoint, ended_at, outcome)
             VALUES (?1, ?2, ?5, 'question', ?3, '?', 0, ?4, ?5, ?6, ?7)",
            rusqlite::params![task, id, OWNERS[owner], at + i64::from(checkpoint), checkpoint, ended, outcome],
        )
        .expect("a new task");
        if is_pending {
            c.execute(
                "INSERT INTO open_items (id, execution, item, kind, owner, created_at)
                 VALUES (?1, ?2, ?5, 'question', ?3, ?4)",
                rusqlite::params![task, id, OWNERS[owner], at + i64::from(checkpoint), checkpoint],
            )
            .expect("a pending task");
        }
    }
}

fn scopes() -> Vec<Scope> {
    let mut scopes: Vec<_> = OWNERS.iter().map(|owner| Scope::Owner(Owner::new(owner))).collect();
    scopes.extend([Scope::All, Scope::Owner(Owner::new("nobody"))]);
    scopes
}

fn periods() -> Vec<Period> {
    let time = |at: i64| Some(Timestamp(at));
    let bounds = [None, time(4), time(11)];
    bounds.iter().flat_map(|since| bounds.map(|until| Period { since: *since, until })).collect()
}

fn is_in(period: Period, at: Timestamp) -> bool {
    period.since.is_none_or(|since| at >= since) && period.until.is_none_or(|until| at < until)
}

/// Reads a list in pages of a size; every page but the last is full.
fn in_pages<T>(
    size: u32,
    position: impl Fn(&T) -> Cursor,
    read: impl Fn(Page) -> Read<Vec<T>>,
) -> Vec<Cursor> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let Ok(page) = read(Page { limit: size, after }) else { panic!("a page cannot be read") };
        assert!(page.len() <= size as usize);
        all.extend(page.iter().map(&position));
        after = page.last().map(&position);
        if page.len() < size as usize {
            return all;
        }
    }
}

fn run_position(run: &RunRow) -> Cursor {
    Cursor { at: run.row.execution.started_at, id: *run.row.execution.id.as_bytes() }
}

fn task_position(task: &ItemRow) -> Cursor {
    Cursor { at: task.created_at, id: *task.id.as_bytes() }
}

fn all_runs(c: &Connection) -> Vec<RunRow> {
    let mut select = Select::new("SELECT id FROM executions");
    select.and("kind = 'program'").and(executions::IS_NOT_BEING_DELETED);
    let Ok(ids) = select.rows(c, |row| Ok(ExecutionId::from_bytes(row.get(0)?))) else { panic!("readable") };
    ids.into_iter().filter_map(|id| durable::one_run(c, &Scope::All, id).ok().flatten()).collect()
}

#[test]
fn executions_of_programs_are_those_of_the_filter_on_pages_of_any_size() {
    let (_folder, c) = filled();
    let all = all_runs(&c);
    assert_eq!(all.len(), 89);
    let statuses = std::iter::once(None).chain(ExecutionStatus::ALL.iter().copied().map(Some));
    let (mut lists, mut found) = (0, 0);
    for status in statuses {
        for program in [None, Some(program_id(0, 0)), Some(program_id(1, 1))] {
            for name in [None, Some("job".to_owned()), Some("other".to_owned())] {
                for (period, scope) in periods()
                    .into_iter()
                    .flat_map(|period| scopes().into_iter().map(move |scope| (period, scope)))
                {
                    let filter = RunQuery { status, program, name: name.clone(), period };
                    let belongs = |run: &&RunRow| {
                        scope.sees(&run.row.owner)
                            && status.is_none_or(|status| run.row.execution.status == status)
                            && program.is_none_or(|program| run.program == program)
                            && name.as_ref().is_none_or(|name| run.row.name.as_ref() == Some(name))
                            && is_in(period, run.row.execution.started_at)
                    };
                    let mut expected: Vec<_> = all.iter().filter(belongs).map(run_position).collect();
                    expected.sort_unstable_by(|a, b| b.cmp(a));
                    for size in [1, 4, 200] {
                        let read = in_pages(size, run_position, |page| runs(&c, &scope, &filter, page));
                        assert_eq!(read, expected, "{scope:?} {filter:?} in pages of {size}");
                    }
                    (lists, found) = (lists + 1, found + expected.len());
                }
            }
        }
    }
    assert!(lists > 2_000 && found > 2_000, "{found} rows in {lists} lists");
}

#[test]
fn tasks_are_those_of_the_filter_on_pages_of_any_size() {
    let (_folder, c) = filled();
    let mut select = Select::new(TASK);
    select.and(durable::IS_OF_NO_DELETION);
    let Ok(all) = select.rows(&c, durable::task_row) else { panic!("readable") };
    let programs: std::collections::HashMap<_, _> =
        all_runs(&c).into_iter().map(|run| (run.row.execution.id, run.program)).collect();
    let execution = all[20].execution;
    let statuses = std::iter::once(None).chain(TaskState::ALL.iter().copied().map(Some));
    let mut found = 0;
    for status in statuses {
        for program in [None, Some(program_id(0, 0)), Some(program_id(1, 1))] {
            for execution in [None, Some(execution)] {
                for (period, scope) in periods()
                    .into_iter()
                    .flat_map(|period| scopes().into_iter().map(move |scope| (period, scope)))
                {
                    let filter = TaskQuery { status, execution, program, period };
                    let state = |task: &ItemRow| {
                        task.outcome.map_or(TaskState::Pending, vm_system_record::ItemOutcome::state)
                    };
                    let belongs = |task: &&ItemRow| {
                        scope.sees(&task.owner)
                            && status.is_none_or(|status| state(task) == status)
                            && program.is_none_or(|program| programs.get(&task.execution) == Some(&program))
                            && execution.is_none_or(|execution| task.execution == execution)
                            && is_in(period, task.created_at)
                    };
                    let mut expected: Vec<_> = all.iter().filter(belongs).map(task_position).collect();
                    expected.sort_unstable();
                    if execution.is_none() && status != Some(TaskState::Pending) {
                        expected.reverse();
                    }
                    for size in [1, 4, 200] {
                        let read = in_pages(size, task_position, |page| tasks(&c, &scope, filter, page));
                        assert_eq!(read, expected, "{scope:?} {filter:?} in pages of {size}");
                    }
                    found += expected.len();
                }
            }
        }
    }
    assert!(found > 3_000, "{found} rows");
}

#[test]
fn programs_and_executions_of_a_session_are_those_of_the_filter() {
    let (_folder, c) = filled();
    let position = |program: &ProgramRow| Cursor { at: program.created_at, id: *program.id.as_bytes() };
    let Ok(all) = programs(&c, &Scope::All, &ProgramQuery::default(), Page::ALL) else { panic!("readable") };
    assert_eq!(all.len(), 6);
    for (period, scope) in
        periods().into_iter().flat_map(|period| scopes().into_iter().map(move |scope| (period, scope)))
    {
        for name in [None, Some("p1".to_owned()), Some("other".to_owned())] {
            let belongs = |program: &&ProgramRow| {
                scope.sees(&program.owner)
                    && name.as_ref().is_none_or(|name| program.name == *name)
                    && is_in(period, program.created_at)
            };
            let expected: Vec<_> = all.iter().filter(belongs).map(position).collect();
            let filter = ProgramQuery { name: name.clone(), period };
            let read = in_pages(1, position, |page| programs(&c, &scope, &filter, page));
            assert_eq!(read, expected, "{scope:?} {filter:?}");
        }
    }
    let session = SessionId::from_bytes([0; 16]);
    let position = |row: &vm_system_record::ExecutionRow| Cursor {
        at: row.execution.started_at,
        id: *row.execution.id.as_bytes(),
    };
    let list = |filter, page| executions::executions(&c, &Scope::All, session, filter, page);
    let Ok(all) = list(ExecutionQuery::default(), Page::ALL) else { panic!("readable") };
    assert_eq!(all.len(), 90);
    for status in std::iter::once(None).chain(ExecutionStatus::ALL.iter().copied().map(Some)) {
        for period in periods() {
            let filter = ExecutionQuery { status, period };
            let belongs = |row: &&vm_system_record::ExecutionRow| {
                status.is_none_or(|status| row.execution.status == status)
                    && is_in(period, row.execution.started_at)
            };
            let expected: Vec<_> = all.iter().filter(belongs).map(position).collect();
            assert_eq!(in_pages(7, position, |page| list(filter, page)), expected, "{filter:?}");
        }
    }
}

#[test]
fn rows_that_appear_between_two_pages_neither_repeat_nor_hide_others() {
    let (_folder, c) = filled();
    for status in [None, Some(ExecutionStatus::Ok)] {
        for scope in scopes() {
            let filter = RunQuery { status, ..RunQuery::default() };
            let expected = in_pages(200, run_position, |page| runs(&c, &scope, &filter, page));
            c.execute_batch("SAVEPOINT pages").expect("idle");
            let (mut seen, mut after, mut number) = (Vec::new(), None, 90);
            loop {
                let Ok(page) = runs(&c, &scope, &filter, Page { limit: 3, after }) else {
                    panic!("readable")
                };
                let Some(last) = page.last() else { break };
                after = Some(run_position(last));
                seen.extend(page.iter().map(run_position));
                // Newer ones of each owner and status, as in a daemon in use.
                for _ in 0..6 {
                    if number == 250 {
                        break;
                    }
                    insert(&c, number, 1_000 + i64::from(number));
                    number += 1;
                }
            }
            assert_eq!(seen, expected, "{scope:?} {filter:?}");
            c.execute_batch("ROLLBACK TO pages; RELEASE pages").expect("begun");
        }
    }
}

/// SQLite's plans of the statements that read the parts of a list.
fn plans(c: &Connection, list: &MergedList) -> Vec<String> {
    let mut plans: Vec<String> = Vec::new();
    for part in &list.parts {
        let select = list.select("EXPLAIN QUERY PLAN SELECT", part, None, 1);
        let lines = select.rows(c, |row| Ok(row.get::<_, String>(3)?));
        plans.push(lines.unwrap_or_else(|_| panic!("it cannot be prepared")).swap_remove(0));
    }
    plans.dedup();
    plans
}

#[test]
fn every_list_is_searched_in_the_index_that_leaves_least_to_filter() {
    let (_folder, c) = filled();
    let me = Scope::Owner(Owner::new("me"));
    let page = Page { limit: 1, after: Some(Cursor { at: Timestamp(9), id: [0; 16] }) };
    let program = Some(program_id(0, 0));
    let named = || Some("job".to_owned());
    let (ok, waiting) = (Some(ExecutionStatus::Ok), Some(ExecutionStatus::Waiting));
    let none = RunQuery::default;
    let by_status = "SEARCH executions USING COVERING INDEX executions_of_programs \
        (owner=? AND status=? AND (started_at,id)<(?,?))";
    let of_program = "SEARCH program_runs USING COVERING INDEX program_runs_by_program \
        (program=? AND (started_at,execution)<(?,?))";
    let by_name =
        "SEARCH executions USING INDEX executions_by_name (owner=? AND name=? AND (started_at,id)<(?,?))";
    for (scope, filter, wanted) in [
        (&me, none(), by_status),
        (&Scope::All, none(), by_status),
        (&me, RunQuery { status: ok, ..none() }, by_status),
        (&me, RunQuery { status: waiting, program, ..none() }, by_status),
        (&Scope::All, RunQuery { status: ok, program, ..none() }, of_program),
        (&Scope::All, RunQuery { program, ..none() }, of_program),
        (&me, RunQuery { name: named(), status: ok, program, ..none() }, by_name),
        (&Scope::All, RunQuery { name: named(), ..none() }, by_name),
    ] {
        let Ok(list) = run_list(&c, scope, &filter, page) else { panic!("readable") };
        assert_eq!(plans(&c, &list), [wanted], "{scope:?} {filter:?}");
    }
    let ended = "SEARCH items USING INDEX items_ended (owner=? AND outcome=? AND (created_at,id)<(?,?))";
    let any_pending =
        "SEARCH items USING COVERING INDEX open_items_by_owner (owner=? AND (created_at,id)<(?,?))";
    let pending = "SEARCH items USING COVERING INDEX open_items_by_owner (owner=? AND (created_at,id)>(?,?))";
    let expired = TaskQuery { status: Some(TaskState::Expired), ..TaskQuery::default() };
    for (scope, filter, wanted) in [
        (&me, TaskQuery::PENDING, vec![pending]),
        (&Scope::All, TaskQuery::PENDING, vec![pending]),
        (&me, expired, vec![ended]),
        (&me, TaskQuery { program, ..TaskQuery::default() }, vec![any_pending, ended]),
    ] {
        let Ok(list) = task_list(&c, scope, &filter, page) else { panic!("readable") };
        assert_eq!(plans(&c, &list), wanted, "{scope:?} {filter:?}");
    }
    let first = |select: &Select| {
        let lines = select.rows(&c, |row| Ok(row.get::<_, String>(3)?));
        lines.unwrap_or_else(|_| panic!("it cannot be prepared")).swap_remove(0)
    };
    for (scope, name, wanted) in [
        (&me, None, "programs_by_owner (owner=? AND (created_at,id)<(?,?))"),
        (&me, named(), "programs_name (owner=? AND name=?)"),
        (&Scope::All, None, "programs_by_time ((created_at,id)<(?,?))"),
        (&Scope::All, named(), "programs_by_name (name=? AND (created_at,id)<(?,?))"),
    ] {
        let filter = ProgramQuery { name, ..ProgramQuery::default() };
        let select = program_list(&format!("EXPLAIN QUERY PLAN {PROGRAM}"), scope, &filter, page);
        assert_eq!(first(&select), format!("SEARCH programs USING INDEX {wanted}"), "{scope:?} {filter:?}");
    }
}
