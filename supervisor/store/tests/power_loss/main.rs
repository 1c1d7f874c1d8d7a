//! A power loss at random instants under load: what was acknowledged under `full` is there, the database opens, and its check finds
//! nothing. Of what was written since the last flush of a file, any sectors reach the disk.

mod sys;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use sys::{RecordedFile, Step};
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, Metrics, Session,
    SessionFacts, SessionStatus, Settings, Template, TemplateDetail,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Owner, PolicySnapshot, Retention, Write};
use vm_system_store::{StoreHandle, StoreOptions, check_file, open_sqlite};
use vm_system_testkit::SeededRandom;

const SECTOR_BYTES: usize = 512;
/// Commits under load; with their output enough for several checkpoints of the log.
const COMMITS: u64 = 800;
/// Power losses of each seed.
const LOSSES: usize = 24;
const SEEDS: u64 = 4;

fn session() -> SessionId {
    SessionId::from_bytes([2; 16])
}

fn execution() -> ExecutionId {
    ExecutionId::from_bytes([3; 16])
}

fn open(folder: &Path) -> StoreHandle {
    let retention = Retention { max_age: None, key_life: Duration::MAX, ..Retention::default() };
    open_sqlite(StoreOptions { retention, ..StoreOptions::new(folder) }).expect("the database opens")
}

fn rows() -> Batch {
    let template_id = TemplateId::from_bytes([1; 16]);
    let detail = TemplateDetail {
        template: Template {
            id: template_id,
            name: "t".to_owned(),
            engine: Engine::Quickjs,
            is_active: true,
            exposed_modules: Vec::new(),
            libraries: Vec::new(),
            created_at: Timestamp(1),
            updated_at: Timestamp(1),
            built_in: false,
        },
        settings: Settings::default(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    };
    let policy = Arc::new(PolicySnapshot::from(&detail));
    let record = Session {
        id: session(),
        name: None,
        template_id,
        vm_id: template_id,
        workspace_id: "w".to_owned(),
        base_commit_oid: "c".to_owned(),
        worktree_path: "/w".to_owned(),
        status: SessionStatus::Starting,
        created_at: Timestamp(2),
        closed_at: None,
        last_error: None,
        close_reason: None,
        runtime_meta: SessionFacts::default(),
        engine: Engine::Quickjs,
        execution_id: None,
        owner: None,
    };
    let started = Execution {
        id: execution(),
        session_id: session(),
        kind: ExecutionKind::Repl,
        input: Some("1".to_owned()),
        path: None,
        args: JsonText::empty_object(),
        env: JsonText::empty_object(),
        status: ExecutionStatus::Running,
        started_at: Timestamp(3),
        ended_at: None,
        result: None,
        error: None,
        metrics: Metrics::default(),
        degraded: false,
        events: None,
        owner: None,
    };
    let owner = Owner::new("o");
    Batch(vec![
        Write::TemplateInsert { owner: owner.clone(), detail: Box::new(detail) },
        Write::SessionInsert { owner, session: Arc::new(record), policy, worktree: None },
        Write::SessionReady { id: session() },
        Write::ExecutionStarted { name: None, execution: Arc::new(started) },
    ])
}

fn line(seq: u64, length: usize) -> Write {
    let payload = EventPayload::console(ConsoleLevel::Log, "x".repeat(length));
    Write::Events([Event { execution_id: execution(), seq, ts: Timestamp(4), payload }].into())
}

/// The files of a database, as they would be on the disk.
#[derive(Clone, Default)]
struct Disk {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Disk {
    fn read(folder: &Path) -> Self {
        let read = |name| std::fs::read(folder.join(name)).unwrap_or_default();
        Self { database: read("vm-system.db"), log: read("vm-system.db-wal") }
    }

    fn write(&self, folder: &Path) {
        std::fs::write(folder.join("vm-system.db"), &self.database).expect("writable");
        std::fs::write(folder.join("vm-system.db-wal"), &self.log).expect("writable");
    }

    fn file(&mut self, file: RecordedFile) -> &mut Vec<u8> {
        match file {
            RecordedFile::Database => &mut self.database,
            RecordedFile::Log => &mut self.log,
        }
    }

    /// Applies a step; of one that was not flushed, only some sectors.
    fn apply(&mut self, step: &Step, torn: Option<&mut SeededRandom>) {
        match step {
            Step::Flush { .. } => {}
            Step::Truncate { file, size } => {
                if torn.is_none_or(|random| random.one_in(2)) {
                    self.file(*file).resize(*size, 0);
                }
            }
            Step::Write { file, at, bytes } => {
                let content = self.file(*file);
                let end = at + bytes.len();
                let mut put = |from: usize, to: usize| {
                    if content.len() < to {
                        content.resize(to, 0);
                    }
                    content[from..to].copy_from_slice(&bytes[from - at..to - at]);
                };
                let Some(random) = torn else { return put(*at, end) };
                let mut from = *at;
                while from < end {
                    let to = ((from / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                    if random.one_in(2) {
                        put(from, to);
                    }
                    from = to;
                }
            }
        }
    }

    /// The files that a power loss after these steps may leave.
    fn state_after(&self, steps: &[Step], random: &mut SeededRandom) -> Self {
        let flushed = |wanted: RecordedFile| {
            let is_flush = |step: &Step| matches!(step, Step::Flush { file } if *file == wanted);
            steps.iter().rposition(is_flush).unwrap_or(0)
        };
        let last = [flushed(RecordedFile::Database), flushed(RecordedFile::Log)];
        let mut disk = self.clone();
        for (number, step) in steps.iter().enumerate() {
            let file = match step {
                Step::Write { file, .. } | Step::Truncate { file, .. } | Step::Flush { file } => *file,
            };
            let is_safe = number < last[usize::from(file == RecordedFile::Log)];
            disk.apply(step, if is_safe { None } else { Some(random) });
        }
        disk
    }
}

/// Writes under load; the disk at the beginning, the steps, and after which step each number was acknowledged.
async fn load(folder: &Path, random: &mut SeededRandom) -> (Disk, Vec<Step>, Vec<(usize, u64)>) {
    let store = open(folder);
    store.apply(rows()).await.expect("new");
    store.shutdown().await;
    let store = open(folder);
    // Nothing is written between the two: the store has nothing to do yet.
    let base = Disk::read(folder);
    sys::begin();
    let mut acknowledged = Vec::new();
    let mut next = 1;
    while next <= COMMITS {
        // Several at a time share a commit.
        let together = 1 + random.below(3);
        let mut tickets = Vec::new();
        for seq in next..next + together {
            let length = 100 + random.index(60_000);
            tickets.push((seq, store.submit(line(seq, length)).await.expect("the store accepts it")));
        }
        for (seq, ticket) in tickets {
            ticket.await.expect("it is written");
            acknowledged.push((sys::position(), seq));
        }
        next += together;
    }
    let steps = sys::steps();
    store.shutdown().await;
    (base, steps, acknowledged)
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_power_loss_at_any_instant() {
    sys::record();
    for seed in 1..=SEEDS {
        let random = &mut SeededRandom::new(seed);
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (base, steps, acknowledged) = load(folder.path(), random).await;
        let checkpoints =
            steps.iter().filter(|step| matches!(step, Step::Flush { file: RecordedFile::Database }));
        assert!(checkpoints.count() > 0, "seed {seed}: the log was never copied back");
        for _ in 0..LOSSES {
            let instant = random.index(steps.len() + 1);
            let promised =
                acknowledged.iter().filter(|(at, _)| *at <= instant).map(|(_, seq)| *seq).max().unwrap_or(0);
            let after = tempfile::tempdir().expect("a temporary folder can be made");
            base.state_after(&steps[..instant], random).write(after.path());
            let store = open(after.path());
            let events = store.events(execution(), 0, 0).await.expect("readable");
            let about = format!("seed {seed}, after step {instant} of {}", steps.len());
            let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
            assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{about}");
            assert!(numbers.len() as u64 >= promised, "{about}: {} of {promised}", numbers.len());
            store.apply(line(numbers.len() as u64 + 1, 10)).await.expect("it can be written");
            store.shutdown().await;
            let report = check_file(&after.path().join("vm-system.db")).expect("readable");
            assert!(report.ok, "{about}: {report:?}");
        }
    }
}
