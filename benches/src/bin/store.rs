//! How fast the store records executions: one line per figure, FULL and NORMAL in one run.
//!
//! `cargo run --release -p vm-system-benches --bin store [-- FOLDER]`: the database is in FOLDER (default: the system's folder for
//! temporary files; name one on the disk that matters).

use anyhow::{Context, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;
use vm_system_benches::figure::{Figure, micros};
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Execution, ExecutionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, ExecutionQuery, Owner, Page, Scope, Write};
use vm_system_store::{Durability, StoreHandle, StoreOptions, open_sqlite};
use vm_system_tests::records;

/// Events of one execution.
const EVENTS: u64 = 4;
/// Duration of each load.
const RUN: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        for durability in [Durability::Full, Durability::Normal] {
            let place = folder_in(&folder)?;
            let result = measure(&place, durability).await;
            std::fs::remove_dir_all(&place)?;
            result?;
        }
        Ok(())
    })
}

fn folder_in(folder: &std::path::Path) -> Result<PathBuf> {
    let place = folder.join(format!("store-bench-{}", Uuid::now_v7()));
    std::fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(place)
}

async fn measure(place: &std::path::Path, durability: Durability) -> Result<()> {
    let store = open_sqlite(StoreOptions { durability, ..StoreOptions::new(place) })?;
    let session = session(&store).await?;
    let name = durability.as_str();
    for callers in [1, 8, 64, 512] {
        load(&store, session, name, callers).await?;
    }
    reads(&store, session, name).await?;
    store.shutdown().await;
    let bytes = std::fs::metadata(place.join("vm-system.db"))?.len();
    Figure::new(format!("store {name}: database at the end"), "MiB", vec![(bytes >> 20) as f64]).print(None);
    Ok(())
}

/// Each caller records executions one after the other, like a session: the start is queued, the end awaited.
async fn load(store: &StoreHandle, session: SessionId, name: &str, callers: usize) -> Result<()> {
    let until = Instant::now() + RUN;
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let mut ends_us = Vec::new();
            while Instant::now() < until {
                let id = ExecutionId::from_uuid(Uuid::now_v7());
                let started = Instant::now();
                store.submit_lazy(start(id, session)).await?;
                store.apply(end(id, session)).await?;
                ends_us.push(micros(started.elapsed()));
            }
            anyhow::Ok(ends_us)
        }));
    }
    let mut ends_us = Vec::new();
    for task in tasks {
        ends_us.extend(task.await??);
    }
    let rate = ends_us.len() as f64 / RUN.as_secs_f64();
    let what = format!("store {name}, {callers} callers");
    Figure::new(format!("{what}: executions of {EVENTS} events"), "1/s", vec![rate]).print(None);
    Figure::new(format!("{what}: start to committed end"), "us", ends_us).print(None);
    Ok(())
}

async fn reads(store: &StoreHandle, session: SessionId, name: &str) -> Result<()> {
    let rows = store.executions(&Scope::All, session, ExecutionQuery::default(), Page::first(1)).await?;
    let id = rows.first().context("there are executions")?.execution.id;
    let mut one_us = Vec::new();
    let mut list_us = Vec::new();
    for _ in 0..1_000 {
        let started = Instant::now();
        store.execution(&Scope::All, id).await?;
        one_us.push(micros(started.elapsed()));
        let started = Instant::now();
        store.executions(&Scope::All, session, ExecutionQuery::default(), Page::first(50)).await?;
        list_us.push(micros(started.elapsed()));
    }
    Figure::new(format!("store {name}: read one execution"), "us", one_us).print(None);
    Figure::new(format!("store {name}: list the newest 50"), "us", list_us).print(None);
    Ok(())
}

async fn session(store: &StoreHandle) -> Result<SessionId> {
    let id = SessionId::from_uuid(Uuid::now_v7());
    let template = TemplateId::from_uuid(Uuid::now_v7());
    store.apply(records::insert_session(&Owner::new("bench"), template, id)).await?;
    Ok(id)
}

/// Recent enough that retention deletes nothing during the measurement.
const NOW: Timestamp = Timestamp(i64::MAX / 2);

fn start(id: ExecutionId, session: SessionId) -> Write {
    Write::ExecutionStarted { name: None, execution: Arc::new(records::execution(id, session, NOW)) }
}

fn end(id: ExecutionId, session: SessionId) -> Batch {
    let event = |seq| records::line(id, seq, format!("line {seq} of the output"));
    let ended = Execution {
        status: ExecutionStatus::Ok,
        ended_at: Some(NOW),
        result: Some(vm_system_protocol::model::ResultValue::of_json(JsonText::from_untrusted(
            "[2,4,6]".to_owned(),
        ))),
        ..records::execution(id, session, NOW)
    };
    Batch(vec![
        Write::Events((1..=EVENTS).map(event).collect()),
        Write::WorkerSeq { session, seq: 1 },
        Write::ExecutionEnded(Arc::new(ended)),
    ])
}
