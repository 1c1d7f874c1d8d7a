//! The in-memory twin of the SQLite store: same batches, same answers, same refusals, nothing on disk.
//!
//! For simulations and tests. Its lists scan and sort; it is no database.

mod apply;
mod read;
mod table;

use super::batch::{Applied, Batch};
use super::error::StoreError;
use super::handle::{StoreHandle, Ticket};
use super::query::{Answer, Query};
use super::rows::{
    AuditEntry, CheckpointRow, ExecutionRow, KeyRow, LibraryRow, Owner, PolicySnapshot, ProgramCode,
    SessionRow, TaskRow, TemplateRow,
};
use super::{BoxFuture, Store, StoreStatus, Urgency};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use table::Table;
use tokio::sync::{oneshot, watch};
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TaskId, TemplateId};
use vm_system_protocol::model::Event;
use vm_system_protocol::time::Timestamp;

/// A store in memory, and the switch that makes it fail.
pub fn open_memory() -> (StoreHandle, MemoryFaults) {
    let store = Arc::new(MemoryStore::default());
    (StoreHandle::new(Arc::clone(&store) as Arc<dyn Store>), MemoryFaults(store))
}

/// Makes an in-memory store fail as a full or broken disk would.
#[derive(Clone)]
pub struct MemoryFaults(Arc<MemoryStore>);

impl MemoryFaults {
    /// From now on every batch is `Unavailable(why)`; none = works again.
    pub fn set(&self, why: Option<&str>) {
        self.0.inner().fault = why.map(str::to_owned);
    }
    /// From now on every query is `Unavailable(why)`; none = works again.
    pub fn set_reading(&self, why: Option<&str>) {
        self.0.inner().read_fault = why.map(str::to_owned);
    }
    /// Whether batches wait for room in the queue, as they do behind a slow disk.
    pub fn set_full(&self, full: bool) {
        self.0.1.send_replace(full);
    }
    /// Whether the status says that the quota is exceeded.
    pub fn set_over_quota(&self, over: bool) {
        self.0.inner().over_quota = over;
    }
}

#[derive(Default)]
struct MemoryStore(Mutex<Inner>, watch::Sender<bool>);

#[derive(Default)]
struct Inner {
    tables: Tables,
    lost: BTreeSet<ExecutionId>,
    fault: Option<String>,
    read_fault: Option<String>,
    over_quota: bool,
    closed: bool,
}

#[derive(Clone)]
struct Template {
    row: TemplateRow,
    is_active: bool,
}

#[derive(Clone)]
struct Session {
    row: SessionRow,
    policy: Arc<PolicySnapshot>,
}

#[derive(Clone)]
struct Program {
    owner: Owner,
    name: String,
    is_active: bool,
    version: u32,
    created_at: Timestamp,
    modified_at: Timestamp,
}

#[derive(Clone)]
struct Version {
    source_hash: [u8; 32],
    created_at: Timestamp,
    code: ProgramCode,
}

#[derive(Default)]
struct Tables {
    templates: Table<TemplateId, Template>,
    libraries: Table<String, LibraryRow>,
    sessions: Table<SessionId, Session>,
    executions: Table<ExecutionId, ExecutionRow>,
    events: Table<(ExecutionId, u64), Event>,
    programs: Table<ProgramId, Program>,
    versions: Table<(ProgramId, u32), Version>,
    runs: Table<ExecutionId, (ProgramId, u32)>,
    tasks: Table<TaskId, TaskRow>,
    checkpoints: Table<(ExecutionId, u64), CheckpointRow>,
    pages: Table<(ExecutionId, u64, u64), Option<Vec<u8>>>,
    currents: Table<(Owner, String), (ExecutionId, Timestamp)>,
    keys: Table<(Owner, String), KeyRow>,
    audit: Table<u64, AuditEntry>,
    meta: Table<String, Vec<u8>>,
}

impl Tables {
    /// The same for every table, so that none can be forgotten in one of the two.
    fn settle(&mut self, keep: bool) {
        macro_rules! each {
            ($($table:ident),+) => {
                $(if keep { self.$table.commit() } else { self.$table.roll_back() })+
            };
        }
        each!(
            templates,
            libraries,
            sessions,
            executions,
            events,
            programs,
            versions,
            runs,
            tasks,
            checkpoints,
            pages,
            currents,
            keys,
            audit,
            meta
        );
    }
}

impl Inner {
    fn apply(&mut self, batch: &Batch) -> Result<Applied, StoreError> {
        if self.closed {
            return Err(StoreError::Closed);
        }
        if let Some(why) = &self.fault {
            self.lost.extend(batch.incomplete());
            return Err(StoreError::Unavailable(why.clone()));
        }
        for id in std::mem::take(&mut self.lost) {
            // Gone with the batch that would have made it: nothing to mark.
            let _ = self.tables.degrade(id);
        }
        self.tables.settle(true);
        let mut rows = 0;
        for write in &batch.0 {
            match self.tables.apply(write) {
                Ok(changed) => rows += changed,
                Err(error) => {
                    self.tables.settle(false);
                    return Err(error);
                }
            }
        }
        self.tables.settle(true);
        Ok(Applied { rows })
    }
}

impl MemoryStore {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn submit(&self, batch: Batch, _urgency: Urgency) -> BoxFuture<'_, Result<Ticket, StoreError>> {
        Box::pin(async move {
            // It cannot fail: the sender is right here.
            let _ = self.1.subscribe().wait_for(|full| !full).await;
            let result = self.inner().apply(&batch);
            if result == Err(StoreError::Closed) {
                return Err(StoreError::Closed);
            }
            let (done, ticket) = oneshot::channel();
            // The receiver is right here.
            let _ = done.send(result);
            Ok(Ticket(ticket))
        })
    }

    fn read(&self, query: Query) -> BoxFuture<'_, Result<Answer, StoreError>> {
        Box::pin(async move {
            let inner = self.inner();
            match &inner.read_fault {
                _ if inner.closed => Err(StoreError::Closed),
                Some(why) => Err(StoreError::Unavailable(why.clone())),
                None => Ok(inner.tables.answer(&query)),
            }
        })
    }

    fn status(&self) -> StoreStatus {
        let inner = self.inner();
        StoreStatus {
            durability: "memory",
            over_quota: inner.over_quota,
            failing: inner.fault.clone(),
            ..StoreStatus::default()
        }
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.inner().closed = true })
    }
}
