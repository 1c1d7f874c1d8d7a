//! Looks for executions that nothing would wake: there must be none, and whoever operates the daemon sees if there is one.
//!
//! One that waits is compared with its rows in one read (the store says what is wrong). One that runs has an owner task, or is claimed
//! within seconds: it is stuck if it had neither at two looks, which are far enough apart for that.

use super::Durables;
use super::live::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Owner, StoreError};

/// Time between two rounds.
const AGAIN: Duration = Duration::from_mins(5);
/// An execution that runs and has no owner task gets one within this time, also after failed starts of workers.
const CLAIMED_WITHIN: Duration = Duration::from_mins(3);
/// Executions of one read.
const ROWS: u32 = 256;
/// Executions that are kept with their reasons.
const KEPT: usize = 1_000;

/// An execution that nothing would wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckRun {
    pub execution: ExecutionId,
    pub owner: Owner,
    pub why: &'static str,
}

/// The findings of the last round.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    number: u64,
    /// Executions that run and had no owner task, with the time at which that was first seen.
    unowned: HashMap<ExecutionId, Instant>,
}

pub(super) async fn run(durables: Arc<Durables>) {
    let stop = durables.stop.clone();
    let forever = async {
        loop {
            tokio::time::sleep(AGAIN).await;
            // A store that cannot be read has an error of its own.
            if let Ok(found) = look(&durables).await {
                for StuckRun { execution, why, .. } in &found {
                    tracing::error!(%execution, why, "an execution is stuck");
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = forever => {}
    }
}

/// One round; the first of what it finds.
pub(super) async fn look(durables: &Durables) -> Result<Vec<StuckRun>, StoreError> {
    let (mut found, mut number, mut unowned) = (Vec::new(), 0, HashMap::new());
    let (mut behind, now) = (None, Instant::now());
    loop {
        let rows = durables.shared.store.unfinished_runs(behind, ROWS).await?;
        let is_last = rows.len() < ROWS as usize;
        behind = rows.last().map(|row| row.session);
        for row in rows {
            let why = if row.runs && !durables.has_owner_task(row.execution) {
                let since = *lock(&durables.stuck).unowned.get(&row.execution).unwrap_or(&now);
                unowned.insert(row.execution, since);
                let is_late = now.duration_since(since) >= CLAIMED_WITHIN;
                is_late.then_some("it is to run, and no owner task has taken it")
            } else {
                row.stuck
            };
            if let Some(why) = why {
                number += 1;
                if found.len() < KEPT {
                    found.push(StuckRun { execution: row.execution, owner: row.owner, why });
                }
            }
        }
        if is_last {
            *lock(&durables.stuck) = Stuck { number, unowned };
            return Ok(found);
        }
    }
}

impl Durables {
    /// Executions that nothing would wake, as of now.
    pub async fn stuck(&self) -> Result<Vec<StuckRun>, StoreError> {
        look(self).await
    }

    /// The number of them as of the last round, which is some minutes ago at most.
    pub fn stuck_number(&self) -> u64 {
        lock(&self.stuck).number
    }
}

/// The state of [`look`] between two rounds.
pub(super) type Findings = Mutex<Stuck>;
