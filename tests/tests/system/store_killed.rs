//! The store's guarantee, with a real kill: rows that were acknowledged before a SIGKILL exist after it, without a gap.
//!
//! The test starts its own binary as the process that writes and prints each number once it is acknowledged.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::model::Event;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Owner, Retention, Write};
use vm_system_store::{Durability, StoreHandle, StoreOptions, open_sqlite};
use vm_system_tests::records;

/// The path and the durability for the second process.
const FOLDER: &str = "STORE_KILLED_FOLDER";
const DURABILITY: &str = "STORE_KILLED_DURABILITY";

fn open(folder: &Path, durability: Durability) -> StoreHandle {
    let retention = Retention { max_age: None, ..Retention::default() };
    open_sqlite(StoreOptions { durability, retention, ..StoreOptions::new(folder) })
        .expect("the folder is ours")
}

fn execution_id() -> ExecutionId {
    ExecutionId::from_bytes([3; 16])
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be created")
}

#[test]
fn acknowledged_writes_survive_a_sigkill_at_any_moment() {
    for (durability, kill_after) in [1, 2, 17, 60, 140]
        .into_iter()
        .flat_map(|lines| [(Durability::Full, lines), (Durability::Normal, lines)])
    {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let acknowledged = write_until_killed(folder.path(), durability, kill_after);
        let store = open(folder.path(), durability);
        let events = runtime().block_on(async {
            let events = store.events(execution_id(), 0, 0).await.expect("readable");
            store.shutdown().await;
            events
        });
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "no gap");
        assert!(numbers.len() as u64 >= acknowledged, "{acknowledged} acknowledged, {} there", numbers.len());
    }
}

/// The last number that the other process printed before it was killed.
fn write_until_killed(folder: &Path, durability: Durability, kill_after: usize) -> u64 {
    let program = std::env::current_exe().expect("this test is a file");
    let mut child = Command::new(program)
        .args(["--exact", "store_killed::process_that_writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .env(DURABILITY, durability.as_str())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test can be started again");
    let output = child.stdout.take().expect("it is a pipe");
    let mut printed = Vec::new();
    for line in BufReader::new(output).lines() {
        // Lines of the test harness are no numbers.
        if let Some(number) = line.expect("text").strip_prefix("acknowledged ") {
            printed.push(number.parse().expect("a number"));
            if printed.len() == kill_after {
                child.kill().expect("it runs");
            }
        }
    }
    child.wait().expect("it was killed");
    assert!(printed.len() >= kill_after, "it wrote until it was killed");
    printed.last().copied().unwrap_or(0)
}

/// The second process of the test above; does nothing when started otherwise.
#[test]
fn process_that_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let full = std::env::var(DURABILITY).is_ok_and(|text| text == "full");
    let store = open(Path::new(&folder), if full { Durability::Full } else { Durability::Normal });
    runtime().block_on(async {
        store.apply(first()).await.expect("an empty database");
        for seq in 1.. {
            let pair: Arc<[Event]> = [event(2 * seq - 1), event(2 * seq)].into();
            store.apply(Write::Events(pair)).await.expect("the limit is not reached");
            println!("acknowledged {}", 2 * seq);
        }
    });
}

fn event(seq: u64) -> Event {
    records::line(execution_id(), seq, "x".repeat(200))
}

fn first() -> Batch {
    let (template, session) = (TemplateId::from_bytes([1; 16]), SessionId::from_bytes([2; 16]));
    let mut writes = records::insert_session(&Owner::new("o"), template, session);
    let execution = Arc::new(records::execution(execution_id(), session, Timestamp(1)));
    writes.push(Write::ExecutionStarted { name: None, execution });
    Batch(writes)
}
