//! The rows of a program in the golden databases: an execution that waits, with tasks, events and checkpoints.

use super::*;

fn task(id: TaskId, checkpoint: u64) -> Write {
    Write::ItemInsert(Box::new(ItemRow {
        id,
        owner: owner(1),
        execution: execution_id(3),
        prompt: "go on?".to_owned(),
        schema: Some(r#"{"type":"boolean"}"#.to_owned()),
        attempts: 0,
        created_at: Timestamp(4_000),
        deadline: Some(Timestamp(9_000)),
        ended_at: None,
        outcome: None,
        answer: None,
        item: checkpoint,
        kind: WaitKind::Question,
        name: None,
        answer_seq: None,
        taken_at: None,
        checkpoint,
        retries: Some(3),
        fallback: Some("false".to_owned()),
        first_attempt_at: None,
        last_attempt_at: None,
    }))
}

/// An event for which the program has waited, or waits.
fn event(number: u64, taken_at: Option<u64>) -> Write {
    let Write::ItemInsert(question) = task(TaskId::from_bytes([20 + number as u8; 16]), 1) else {
        panic!("a task is an item")
    };
    Write::ItemInsert(Box::new(ItemRow {
        item: ITEMS_FROM + number,
        kind: WaitKind::Event,
        name: Some("paid".to_owned()),
        prompt: String::new(),
        schema: None,
        retries: None,
        ended_at: taken_at.map(|_| Timestamp(4_350)),
        outcome: taken_at.map(|_| ItemOutcome::Answered),
        answer: taken_at.map(|_| "[6]".to_owned()),
        taken_at,
        ..*question
    }))
}

fn checkpoint(seq: u64, pages: Vec<(u64, Option<Vec<u8>>)>) -> Write {
    let (execution, at) = (execution_id(3), Timestamp(4_000));
    let cause = "pause".to_owned();
    let (unweighed, written) = (Some(100 * seq), 20 * seq);
    Write::Checkpoint(Box::new(Checkpoint { execution, seq, at, cause, pages, unweighed, written }))
}

pub(super) const HOLDER: Incarnation = Incarnation([5; 16]);

/// A use of every limit.
fn limits() -> UsedLimits {
    let fs = SpentCalls { calls: 5, denied: 6, refused: 7, bytes_in: 8, bytes_out: 9 };
    let calls = [("fs".to_owned(), fs)].into();
    UsedLimits {
        spent: SpentLimits { wall_ms: 1, cpu_us: 2, events: 3, output_bytes: 4, calls },
        exits: 2,
        kills: 1,
    }
}

/// An execution of a program that waits for the answer to its second task.
pub(super) fn program_rows() -> Vec<Write> {
    let session = vm_system_protocol::model::Session { engine: Engine::Cvm, ..session_record(2, 1) };
    let policy = Arc::new(PolicySnapshot { engine: Engine::Cvm, ..PolicySnapshot::from(&template()) });
    let run = Execution { kind: ExecutionKind::Program, ..execution_record(3, 2) };
    vec![
        Write::ProgramVersion(Box::new(NewProgramVersion {
            id: PROGRAM,
            owner: owner(1),
            name: "p".to_owned(),
            source: "CC('go on?')".to_owned(),
            source_hash: [6; 32],
            format: 1,
            code: vec![0, 1, 255],
            at: Timestamp(3_000),
        })),
        Write::SessionInsert {
            owner: owner(1),
            session: Arc::new(session),
            policy,
            worktree: Some(worktree()),
        },
        Write::SessionReady { id: session_id(2) },
        Write::ExecutionStarted { name: Some("run".to_owned()), execution: Arc::new(run) },
        Write::ProgramRun { execution: execution_id(3), program: PROGRAM, version: 1 },
        checkpoint(1, vec![(0, Some(vec![1; 8])), (1, Some(vec![2; 8]))]),
        task(FIRST_TASK, 1),
        Write::TaskAttempt { execution: execution_id(3), id: FIRST_TASK, at: Timestamp(4_100) },
        Write::TaskAttempt { execution: execution_id(3), id: FIRST_TASK, at: Timestamp(4_200) },
        Write::ItemEnd {
            execution: execution_id(3),
            id: FIRST_TASK,
            outcome: ItemOutcome::Answered,
            answer: Some("true".to_owned()),
            at: Timestamp(4_300),
            taken_at: None,
        },
        checkpoint(2, vec![(0, Some(vec![3; 8])), (1, None)]),
        task(LAST_TASK, 2),
        event(1, Some(2)),
        event(2, None),
        Write::MailInsert {
            execution: execution_id(3),
            mail: MailRow { seq: 4, name: "paid".to_owned(), event: "[7]".to_owned(), at: Timestamp(4_400) },
        },
        Write::RunProgress {
            id: execution_id(3),
            status: ExecutionStatus::Waiting,
            metrics: Metrics { duration_ms: 5, cpu_ms: 4, ..Metrics::default() },
            limits: Some(Box::new(limits())),
        },
        Write::CurrentSet {
            owner: owner(1),
            client: "agent".to_owned(),
            execution: execution_id(3),
            at: Timestamp(4_000),
        },
    ]
}
