//! Claims of executions that are to go on, in the order of two indexes: each call continues where the last one ended, so that a round
//! costs what it finds. Knows nothing of workers.

use super::SqliteStore;
use super::read;
use crate::{Lane, Urgency, clock};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, ClaimKind, ClaimedRun, LetGo, StoreError, Write};

/// Rows that are read at once.
const ROWS: u32 = 256;

/// The position of a round: the time (of those that are due) and the id of the last execution that was seen.
pub(super) type ClaimPosition = (Timestamp, ExecutionId);

const FIRST: ClaimPosition = (Timestamp(i64::MIN), ExecutionId::from_bytes([0; 16]));

/// Where the rounds are.
#[derive(Debug)]
pub(super) struct Rounds {
    due: Mutex<ClaimPosition>,
    of_ended: Mutex<ClaimPosition>,
    /// The time up to which the last round of those that are due has seen all.
    due_until: Mutex<Timestamp>,
    /// The supervisor before was killed, and its executions are still being claimed: it counts for each.
    counts_kills: Mutex<bool>,
}

impl Rounds {
    pub(super) fn new(was_killed: bool) -> Self {
        Self {
            due: Mutex::new(FIRST),
            of_ended: Mutex::new(FIRST),
            due_until: Mutex::new(FIRST.0),
            counts_kills: Mutex::new(was_killed),
        }
    }

    fn position(&self, which: ClaimKind) -> &Mutex<ClaimPosition> {
        match which {
            ClaimKind::Due => &self.due,
            ClaimKind::OfEnded => &self.of_ended,
        }
    }
}

fn get<T: Copy>(value: &Mutex<T>) -> T {
    *value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set<T>(place: &Mutex<T>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

impl SqliteStore {
    pub(super) async fn claim_some(
        &self,
        which: ClaimKind,
        limit: u32,
    ) -> Result<Vec<ClaimedRun>, StoreError> {
        let mut claimed = Vec::new();
        let done = self.claim_into(&mut claimed, which, limit).await;
        if let Err(error) = done {
            // Nobody learns of them.
            for run in claimed {
                self.holds.let_go(run.execution, run.fence, LetGo::Failed);
            }
            return Err(error);
        }
        Ok(claimed)
    }

    async fn claim_into(
        &self,
        claimed: &mut Vec<ClaimedRun>,
        which: ClaimKind,
        limit: u32,
    ) -> Result<(), StoreError> {
        let position = self.rounds.position(which);
        let until = clock::now();
        loop {
            let after = get(position);
            let readers = Arc::clone(&self.readers);
            let found =
                readers.read(Lane::System, move |c| read::claimable(c, which, after, until, ROWS)).await?;
            let is_last = found.len() < ROWS as usize;
            let mut last = after;
            for (at, execution) in found {
                if claimed.len() >= limit as usize {
                    break;
                }
                last = (at, execution);
                let fence = self.holds.claim(execution, Instant::now());
                claimed.extend(fence.map(|fence| ClaimedRun { execution, fence }));
            }
            let is_full = claimed.len() >= limit as usize;
            let is_over = is_last && !is_full;
            set(position, if is_over { FIRST } else { last });
            if is_over && which == ClaimKind::Due {
                set(&self.rounds.due_until, until);
            }
            if is_full || is_over {
                return self.count_kills(which, claimed, is_over).await;
            }
        }
    }

    /// A program that kills its supervisor would do so again and again: it is counted before it runs, in the first round of all.
    async fn count_kills(
        &self,
        which: ClaimKind,
        claimed: &[ClaimedRun],
        is_over: bool,
    ) -> Result<(), StoreError> {
        if which != ClaimKind::OfEnded || !get(&self.rounds.counts_kills) {
            return Ok(());
        }
        let executions: Vec<_> = claimed.iter().map(|claimed| claimed.execution).collect();
        if !executions.is_empty() {
            let batch = Batch::from(Write::RunsKilled { executions });
            self.queue.push(Lane::System, batch, Urgency::Now).await?.await?;
        }
        if is_over {
            set(&self.rounds.counts_kills, false);
        }
        Ok(())
    }

    /// Sleeps until an execution may be due.
    pub(super) async fn sleep_until_due(&self) {
        // Before the read: what is let go during it may be due before what it finds.
        self.holds.begin_sleep();
        // Behind the last round and not from now on: more may be due since.
        let until = get(&self.rounds.due_until);
        let next = Arc::clone(&self.readers)
            .read(Lane::System, move |c| read::first_wake(c, until))
            .await
            // The store is tried again after the usual pause.
            .unwrap_or_default();
        self.holds.sleep(clock::now(), next).await;
    }
}
