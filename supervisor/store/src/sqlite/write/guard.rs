//! The condition of a batch: its writer holds the execution, and goes on from its newest checkpoint.

use super::int;
use crate::holds::Holds;
use crate::sqlite::failure::SqliteFailure;
use rusqlite::Connection;
use vm_system_record::{Guard, StoreError};

pub(super) fn check(c: &Connection, guard: &Guard, holds: &Holds) -> Result<(), SqliteFailure> {
    let (Guard::Held { execution, after, .. } | Guard::Take { execution, after, .. }) = guard;
    let newest: Option<i64> = c
        .prepare_cached("SELECT max(seq) FROM checkpoints WHERE execution = ?1")?
        .query_row([execution.as_bytes()], |row| row.get(0))?;
    // The checkpoint first: a batch that is refused for it takes nothing.
    if newest.unwrap_or(0) == int(*after) && holds.admits(guard) {
        Ok(())
    } else {
        Err(StoreError::Fenced.into())
    }
}
