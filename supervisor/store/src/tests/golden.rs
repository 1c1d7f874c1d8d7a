//! Databases of released versions, as SQL text in `golden/`: every later program opens them and finds what is in them.
//!
//! A new schema version: `VM_SYSTEM_BLESS=1` writes the file of that version; add it to [`GOLDEN`] and keep the others.

use super::fixture::{
    console, detail, ended, events, execution_id, execution_record, mine, options, owner, session_id,
    session_record, template_id,
};
use crate::sqlite::SCHEMA;
use crate::{StoreHandle, open_sqlite};
use rusqlite::Connection;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vm_system_protocol::control::ProgramStart;
use vm_system_protocol::ids::{CapabilityId, ProgramId, ScheduleId, StartupFileId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Capability, CapabilityKind, Engine, Event, EventPayload, Execution, ExecutionError, ExecutionKind,
    ExecutionStatus, FailedStart, JsType, LastCrash, LastRestart, LastRollback, LostCheckpoints, Metrics,
    Overlap, RestorationPlan, RestoredInputs, ResultValue, ScheduleRule, ScheduledStart, SessionCheckpoint,
    SessionFacts, SessionStatus, Settings, SkippedTime, StartupFile, StartupMode, TemplateDetail,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    AuditEntry, Batch, Checkpoint, ExecutionQuery, Fence, ITEMS_FROM, IdKind, Incarnation, ItemOutcome,
    ItemRow, KeyClaim, LibraryRow, MailRow, NewProgramVersion, Page, PolicySnapshot, ProgramQuery,
    RecordedWorktree, RunQuery, ScheduleChange, ScheduleRow, ScheduleSpec, ScheduleState, Scope,
    SessionQuery, SpentCalls, SpentLimits, TaskQuery, UsedLimits, WaitKind, Write,
};

mod program;

use program::{HOLDER, program_rows};

/// Each released schema version.
const GOLDEN: [u32; 2] = [20, 21];

pub(super) fn golden(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/tests/golden/v{version}.sql"))
}

/// Every setting, so that no default of a later program is in the rows.
const SETTINGS: &str = r#"{
    "limits": {"cpu_ms": 1, "wall_ms": 2, "mem_mb": 3, "max_events": 4, "max_output_kb": 5, "max_source_kb": 6,
        "max_steps": 7, "max_stack_depth": 8, "max_state_mb": 9},
    "resolver": {"roots": ["lib"], "extensions": [".js"], "allow_absolute_repo_imports": true},
    "runtime": {"esm": true, "strict": true, "console": false, "on_crash": "close", "ttl_s": 10, "idle_timeout_s": 11}}"#;

const PROGRAM: ProgramId = ProgramId::from_bytes([7; 16]);
const FIRST_TASK: TaskId = TaskId::from_bytes([8; 16]);
const LAST_TASK: TaskId = TaskId::from_bytes([9; 16]);

fn json(text: &str) -> JsonText {
    JsonText::from_untrusted(text.to_owned())
}

fn template() -> TemplateDetail {
    let mut detail = detail(1, "t");
    detail.settings = serde_json::from_str::<Settings>(SETTINGS).expect("settings");
    detail.template.exposed_modules = vec!["fs".to_owned()];
    detail.template.libraries = vec!["dayjs-1".to_owned()];
    detail.capabilities = vec![Capability {
        id: CapabilityId::from_bytes([4; 16]),
        vm_id: template_id(1),
        kind: CapabilityKind::Module,
        name: "fs".to_owned(),
        enabled: true,
        config: json(r#"{"read":["**"]}"#),
    }];
    detail.startup_files = vec![StartupFile {
        id: StartupFileId::from_bytes([5; 16]),
        vm_id: template_id(1),
        path: "start.js".to_owned(),
        order_index: -1,
        mode: StartupMode::Import,
    }];
    detail
}

fn worktree() -> Arc<RecordedWorktree> {
    Arc::new(RecordedWorktree {
        uid: 1_000,
        user: Some("alice".to_owned()),
        root: "/".to_owned(),
        beneath: "w".to_owned(),
        handle: Some(vec![1, 0, 0, 0, 9]),
    })
}

/// Every fact that is stored.
fn facts() -> SessionFacts {
    let checkpoint = SessionCheckpoint {
        number: 2,
        name: Some("c".to_owned()),
        created_at: Timestamp(3_100),
        heap_bytes: 7,
    };
    SessionFacts {
        forked_from: Some(session_id(8)),
        restored_from: Some(session_id(9)),
        restoration: Some(RestorationPlan { inputs: 3, not_repeated: 1 }),
        restored: Some(RestoredInputs { inputs: 3, not_repeated: 1, different: 2 }),
        generation: Some(3),
        last_checkpoint: Some(2),
        checkpoints: Some(vec![checkpoint]),
        checkpoints_lost: Some(LostCheckpoints::with_supervisor(1)),
        rollback: Some(LastRollback {
            at: Timestamp(3_200),
            checkpoint: Some(2),
            reason: "request".to_owned(),
            generation: 2,
            copy: Some(session_id(7)),
            lacks: Some("a file that was written".to_owned()),
            recoveries: vec![Timestamp(3_200)],
        }),
        restart: Some(LastRestart {
            at: Timestamp(3_300),
            reason: CloseReason::KeeperLost.to_string(),
            reported: true,
            generation: 3,
            recoveries: vec![Timestamp(3_200), Timestamp(3_300)],
        }),
        crash: Some(LastCrash {
            reason: CloseReason::KeeperLost.to_string(),
            execution_id: Some(execution_id(2)),
            cpu_ms: Some(6),
            peak_memory_kib: Some(4_096),
        }),
        drain_at: Some(Timestamp(6_000)),
        restore: None,
    }
}

/// A session of scripts that has ended, with two executions: one with every kind of output, and one that failed.
fn script_rows() -> Vec<Write> {
    let mut session = session_record(1, 1);
    session.name = Some("s".to_owned());
    session.runtime_meta = facts();
    let payloads = [
        EventPayload::InputEcho { text: "1 + 2".to_owned() },
        EventPayload::Value(ResultValue {
            kind: JsType::Number,
            preview: "3".to_owned(),
            json: Some(json("3")),
            truncated: false,
            full_bytes: None,
        }),
        EventPayload::Exception {
            message: "Error: no".to_owned(),
            stack: "at a.js:1".to_owned(),
            code: None,
            truncated: false,
            full_bytes: None,
        },
        EventPayload::Stdout { text: "out".to_owned() },
        EventPayload::Task { task_id: FIRST_TASK, prompt: "go on?".to_owned() },
    ];
    let output = (2..).zip(payloads).map(|(seq, payload)| Event { payload, ..console(1, seq) });
    let file = Execution {
        kind: ExecutionKind::RunFile,
        input: None,
        path: Some("a.js".to_owned()),
        ..execution_record(2, 1)
    };
    let failed = Execution {
        status: ExecutionStatus::Error,
        ended_at: Some(Timestamp(4_002)),
        error: Some(ExecutionError {
            exit_code: Some(7),
            ..ExecutionError::new("EXCEPTION", "no").because(Some("because".to_owned()))
        }),
        degraded: true,
        ..file.clone()
    };
    let (started, failed) = (Arc::new(execution_record(1, 1)), Arc::new(failed));
    let end = Write::SessionEnd {
        id: session_id(1),
        status: SessionStatus::Crashed,
        at: Timestamp(5_000),
        reason: CloseReason::KeeperLost,
        last_error: Some("the keeper is lost".to_owned()),
    };
    let policy = Arc::new(PolicySnapshot::from(&template()));
    vec![
        Write::SessionInsert {
            owner: owner(1),
            session: Arc::new(session),
            policy,
            worktree: Some(worktree()),
        },
        Write::WorkerSeq { session: session_id(1), seq: 12 },
        Write::ExecutionStarted { name: Some("e".to_owned()), execution: started },
        events(1, [1]),
        Write::Events(output.collect()),
        ended(1, 1),
        Write::ExecutionStarted { name: None, execution: Arc::new(file) },
        Write::ExecutionEnded(failed),
        end,
    ]
}

const SCHEDULE: ScheduleId = ScheduleId::from_bytes([10; 16]);

/// A schedule with a value for every field, which waits for the end of the program's execution.
fn schedule_rows() -> Vec<Write> {
    let rule = ScheduleRule {
        cron: Some("0 3 * * *".to_owned()),
        every_ms: Some(1_000),
        time_zone: "UTC".to_owned(),
        overlap: Overlap::Queue,
        jitter_ms: 500,
    };
    let start = ProgramStart {
        program: "p".to_owned(),
        name: Some("nightly".to_owned()),
        args: vec!["a".to_owned()],
        env: vec![("KEY".to_owned(), "value".to_owned())],
        template: Some(template_id(1).to_string()),
        worktree_path: Some("/w".to_owned()),
        as_user: Some("alice".to_owned()),
        wait: false,
    };
    let row = ScheduleRow {
        id: SCHEDULE,
        owner: owner(1),
        name: "s".to_owned(),
        created_at: Timestamp(4_000),
        revision: 0,
        next_at: Some(Timestamp(10_000)),
        spec: ScheduleSpec { rule, start },
        state: ScheduleState::default(),
    };
    let scheduled_for = Timestamp(10_000);
    let state = ScheduleState {
        queued_for: Some(Timestamp(20_000)),
        last: Some(ScheduledStart { execution_id: execution_id(3), scheduled_for, late_ms: 7 }),
        skipped: Some(SkippedTime { scheduled_for, reason: "because".to_owned() }),
        error: Some(FailedStart {
            scheduled_for,
            at: Timestamp(10_100),
            code: "PROGRAM_NOT_FOUND".to_owned(),
            message: "no".to_owned(),
        }),
    };
    let change = ScheduleChange {
        id: SCHEDULE,
        revision: 0,
        next_at: Some(Timestamp(30_000)),
        due_at: Some(Timestamp(30_400)),
        waits_for: Some(execution_id(3)),
        state,
    };
    vec![
        Write::ScheduleInsert { schedule: Box::new(row), due_at: Some(Timestamp(10_200)) },
        Write::ScheduleChange(Box::new(change)),
    ]
}

/// A row in every table, and a value in every column.
fn rows() -> Batch {
    let mut writes = vec![
        Write::LibraryInstall(Box::new(LibraryRow {
            name: "dayjs-1".to_owned(),
            id: "dayjs".to_owned(),
            version: "1".to_owned(),
            global: Some("dayjs".to_owned()),
            hash: [3; 32],
            bytes: 1_234,
            installed_at: Timestamp(500),
        })),
        Write::TemplateInsert { owner: owner(1), detail: Box::new(template()) },
    ];
    writes.extend(script_rows());
    writes.extend(program_rows());
    writes.extend(schedule_rows());
    writes.extend([
        Write::KeyClaim(Box::new(KeyClaim {
            owner: owner(1),
            key: "k".to_owned(),
            request_hash: [1; 32],
            subject: [2; 16],
            at: Timestamp(100),
            expired_before: Timestamp(0),
            reply: Some(vec![1, 2, 3]),
            holder: HOLDER,
        })),
        Write::Audit(Box::new(AuditEntry {
            at: Timestamp(200),
            owner: owner(1),
            api: "rest".to_owned(),
            verb: "template create".to_owned(),
            subject: "t".to_owned(),
            outcome: "ok".to_owned(),
        })),
        Write::MetaSet { key: "m".to_owned(), value: Some(vec![9]) },
    ]);
    Batch(writes)
}

/// The result of a read, as text with the name of the read.
macro_rules! texts_of {
    ($store:ident: $($read:ident($($argument:expr),*),)*) => {
        vec![$(
            format!("{}: {:#?}", stringify!($read($($argument),*)), $store.$read($($argument),*).await.expect("readable")),
        )*]
    };
}

/// Everything in [`rows`] that a database of this version has, read in every way.
async fn content(store: &StoreHandle, version: u32) -> Vec<String> {
    let (all, page) = (&Scope::All, Page::ALL);
    let (scripts, durable) =
        (&SessionQuery::default(), &SessionQuery { durable: true, ..SessionQuery::default() });
    let of_program = &RunQuery { program: Some(PROGRAM), ..RunQuery::default() };
    let (from, to) = ([0; 16], [255; 16]);
    let (mine, owner, run) = (&mine(), &owner(1), execution_id(3));
    let mut head = store.run_head(run).await.expect("readable").expect("it waits");
    // Another one for each reader.
    head.fence = Fence(0);
    if version < 21 {
        head.limits = UsedLimits::default();
        (head.items, head.mailbox, head.last_item) = (Vec::new(), Vec::new(), 0);
    }
    let mut lists = Vec::new();
    for filter in [RunQuery::default(), of_program.clone()] {
        let mut runs = store.runs(mine, &filter, page).await.expect("readable");
        for run in runs.iter_mut().filter(|_| version < 21) {
            run.waiting_for.events = 0;
        }
        lists.push(format!("{runs:#?}"));
    }
    let mut texts = texts_of!(store:
        libraries(),
        templates(all, page),
        sessions(mine, scripts, page),
        sessions(mine, durable, page),
        session_policy(session_id(1)),
        session_policy(session_id(2)),
        session_events(session_id(1), 0, 100),
        executions(all, session_id(1), ExecutionQuery::default(), page),
        execution_by_name(owner, "e"),
        events(execution_id(1), 0, 0),
        ids(mine, IdKind::Execution, from, to, 100),
        programs(all, &ProgramQuery::default(), page),
        program_versions(PROGRAM, None, 100),
        program_code(PROGRAM, 1),
        checkpoints(run),
        state(run, 1),
        page_versions(run, None, usize::MAX),
        task(all, FIRST_TASK),
        tasks(all, TaskQuery::PENDING, page),
        tasks(all, TaskQuery::default(), page),
        current(owner, "agent"),
        audit(all, None, 100),
        meta("m"),
    );
    let mut key = store.key(owner, "k").await.expect("readable").expect("it is claimed");
    if version < 21 {
        key.holder = None;
    }
    if version >= 21 {
        texts.extend(texts_of!(store:
            schedule(all, SCHEDULE),
            schedule_by_name(owner, "s"),
            schedules(mine, page),
            due_schedules((Timestamp(0), SCHEDULE), Timestamp(30_400), 10),
        ));
    }
    texts.extend([format!("{head:#?}"), format!("{key:?}")]);
    texts.extend(lists);
    texts
}

/// A store with these rows, in this folder.
async fn written(folder: &Path) -> StoreHandle {
    let store = open_sqlite(options(folder)).expect("an empty folder can be opened");
    store.apply(rows()).await.expect("new");
    store
}

fn database(folder: &Path) -> Connection {
    Connection::open(folder.join("vm-system.db")).expect("readable")
}

pub(super) fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).expect("SQL of ours");
    let rows = statement.query_map([], |row| row.get(0)).expect("readable");
    rows.collect::<Result<_, _>>().expect("texts")
}

fn schema(connection: &Connection) -> Vec<String> {
    texts(connection, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'trigger', rowid")
}

/// The fields of all stored JSON texts, by their columns.
fn fields(connection: &Connection) -> Vec<String> {
    let mut all = Vec::new();
    for table in tables(connection) {
        for column in texts(connection, &format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!(
                "WITH texts (content) AS
                     (SELECT {column} FROM {table} WHERE typeof({column}) = 'text' AND json_valid({column}))
                 SELECT DISTINCT '{table}.{column} ' || field.fullkey FROM texts, json_tree(content) AS field ORDER BY 1"
            );
            all.extend(texts(connection, &sql));
        }
    }
    all
}

/// A database as SQL text: the output of `.dump` in SQLite's shell, with our two numbers of the header.
pub(super) fn dump(connection: &Connection) -> String {
    let number =
        |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect("a number");
    let mut text = format!(
        "PRAGMA application_id = {};\nPRAGMA user_version = {};\n",
        number("application_id"),
        number("user_version")
    );
    // Triggers come last: they have counted these rows.
    let (triggers, rest): (Vec<_>, Vec<_>) =
        schema(connection).into_iter().partition(|sql| sql.starts_with("CREATE TRIGGER"));
    for sql in rest {
        let _ = writeln!(text, "{sql};");
    }
    for table in tables(connection) {
        let columns =
            texts(connection, &format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"));
        let values = columns.join(" || ', ' || ");
        for row in texts(connection, &format!("SELECT {values} FROM {table} ORDER BY 1")) {
            let _ = writeln!(text, "INSERT INTO {table} VALUES ({row});");
        }
    }
    for sql in triggers {
        let _ = writeln!(text, "{sql};");
    }
    text
}

pub(super) fn tables(connection: &Connection) -> Vec<String> {
    texts(
        connection,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )
}

#[tokio::test]
async fn database_of_every_released_version_is_opened_with_all_that_is_in_it() {
    let fresh = tempfile::tempdir().expect("a temporary folder can be made");
    let written = written(fresh.path()).await;
    for version in GOLDEN {
        let expected = content(&written, version).await;
        let sql = std::fs::read_to_string(golden(version)).expect("a golden database");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        database(folder.path()).execute_batch(&sql).expect("a database of a release");
        let store = open_sqlite(options(folder.path())).expect("a released version");
        for (found, expected) in content(&store, version).await.iter().zip(&expected) {
            assert_eq!(found, expected, "version {version}");
        }
        store.apply(events(3, [1])).await.expect("it can be written");
        store.shutdown().await;
    }
    written.shutdown().await;
}

#[tokio::test]
async fn schema_of_a_released_version_never_changes() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    written(folder.path()).await.shutdown().await;
    let fresh = database(folder.path());
    if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
        // A mark that only an interrupted write leaves.
        let mark = "INSERT INTO staged VALUES (?1, 3, 72)";
        fresh.execute(mark, [execution_id(3).as_bytes()]).expect("a row of a schema of our own");
        std::fs::write(golden(SCHEMA.version()), dump(&fresh)).expect("the source is writable");
    }
    assert_eq!(GOLDEN[GOLDEN.len() - 1], SCHEMA.version(), "the newest version has no golden database");
    let sql = std::fs::read_to_string(golden(SCHEMA.version())).expect("a golden database");
    let golden = Connection::open_in_memory().expect("memory");
    golden.execute_batch(&sql).expect("a database of a release");
    assert_eq!(schema(&fresh), schema(&golden), "a change of the schema is a new version");
    assert_eq!(fields(&fresh), fields(&golden), "another field in a stored text is a new version");
    let mut empty = Vec::new();
    for table in tables(&golden) {
        for column in texts(&golden, &format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!("SELECT 1 FROM {table} WHERE {column} IS NOT NULL");
            if !golden.prepare(&sql).and_then(|mut statement| statement.exists([])).expect("SQL of ours") {
                empty.push(format!("{table}.{column}"));
            }
        }
    }
    assert_eq!(empty, [""; 0], "columns without a value in the golden database");
}
