//! Pages that a step of a program writes: one for each table and index that gets a row, and no more.

use super::fixture::{console, execution_id, execution_record, on_disk, owner, running};
use rusqlite::Connection;
use std::sync::Arc;
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::model::{Execution, ExecutionKind, ExecutionStatus, Metrics};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    AuditEntry, Checkpoint, Guard, ItemOutcome, ItemRow, Owner, SpentLimits, UsedLimits, WaitKind, Write,
};

/// The tables and indexes of [`step`]: the row of the execution, five of the items, checkpoint, page, event, two of the audit log, the
/// counter of the owner.
const PAGES: i64 = 12;
/// Two more indexes have an entry if there is a deadline: those of due items, and of wake-ups.
const PAGES_WITH_DEADLINE: i64 = PAGES + 2;

fn task_id(seq: u64) -> TaskId {
    TaskId::from_bytes([u8::try_from(seq).expect("few"); 16])
}

/// An answer and the next question, in one batch.
fn step(seq: u64, deadline: Option<i64>, guard: Guard) -> Vec<Write> {
    let (execution, at) = (execution_id(2), Timestamp(5_000));
    let (pages, cause) = (vec![(0, Some(vec![seq as u8; 9]))], "pause".to_owned());
    let end = |seq| Write::ItemEnd {
        execution,
        id: task_id(seq),
        outcome: ItemOutcome::Answered,
        answer: Some("yes".to_owned()),
        at,
        taken_at: None,
    };
    let question = ItemRow {
        id: task_id(seq),
        owner: Owner::new(""),
        execution,
        prompt: "why?".to_owned(),
        schema: None,
        attempts: 0,
        created_at: at,
        deadline: deadline.map(Timestamp),
        ended_at: None,
        answer: None,
        outcome: None,
        item: seq,
        kind: WaitKind::Question,
        name: None,
        answer_seq: None,
        taken_at: None,
        checkpoint: seq,
        retries: None,
        fallback: None,
        first_attempt_at: None,
        last_attempt_at: None,
    };
    let mut writes = vec![Write::Guard(guard)];
    writes.extend((seq > 1).then(|| end(seq - 1)));
    let spent = SpentLimits { wall_ms: seq, cpu_us: seq, ..SpentLimits::default() };
    writes.extend([
        Write::Events([console(2, seq)].into()),
        Write::Checkpoint(Box::new(Checkpoint {
            execution,
            seq,
            at,
            cause,
            pages,
            unweighed: None,
            written: 0,
        })),
        Write::ItemInsert(Box::new(question)),
        Write::RunProgress {
            id: execution,
            status: ExecutionStatus::Waiting,
            metrics: Metrics { events: seq, output_bytes: 10 * seq, ..Metrics::default() },
            limits: Some(Box::new(UsedLimits { spent, exits: 0, kills: 0 })),
        },
        Write::Audit(Box::new(AuditEntry {
            at,
            owner: owner(1),
            api: "rest".to_owned(),
            verb: "task submit".to_owned(),
            subject: "t".to_owned(),
            outcome: "ok".to_owned(),
        })),
    ]);
    writes
}

/// Frames of the log, after all of it was copied back: those of the last commits.
fn frames(c: &Connection) -> i64 {
    let frames = c.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| Ok((row.get(0)?, row.get(1)?)));
    let (is_busy, frames): (bool, i64) = frames.expect("nobody else writes");
    assert!(!is_busy);
    frames
}

#[tokio::test]
async fn step_writes_one_page_for_each_table_and_index_that_gets_a_row() {
    for (deadline, most) in [(None, PAGES), (Some(1 << 50), PAGES_WITH_DEADLINE)] {
        let disk = on_disk();
        disk.store.apply(running()).await.expect("new");
        let record = Execution {
            kind: ExecutionKind::Program,
            status: ExecutionStatus::Waiting,
            ..execution_record(2, 1)
        };
        let started = Write::ExecutionStarted { name: None, execution: Arc::new(record) };
        disk.store.apply(started).await.expect("new");
        let (execution, fence) = (execution_id(2), disk.store.first_fence());
        let database = Connection::open(disk.folder.path().join("vm-system.db")).expect("readable");
        for seq in 1..8 {
            frames(&database);
            let after = seq - 1;
            let guard = match seq {
                1 => Guard::Take { execution, fence, after },
                _ => Guard::Held { execution, fence, after },
            };
            disk.store.apply(step(seq, deadline, guard)).await.expect("it waits");
            let pages = frames(&database);
            assert!(pages <= most, "step {seq}: {pages} pages");
            assert!(seq == 1 || pages == most, "step {seq}: {pages} pages");
        }
        disk.store.shutdown().await;
    }
}
