//! Whose records go first when the database is too large: those of the owner who takes most of it. An owner who takes less
//! than the average keeps what it has, however much others take with what still runs.

use crate::store::rows::Owner;
use rusqlite::Connection;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Everything is added up again after this time; meanwhile what was forgotten is subtracted.
const ADD_UP_EVERY: Duration = Duration::from_mins(1);
/// At most this part of the writer's time goes into adding up.
const PART: u32 = 100;
/// What an execution takes besides its texts, its output and its state, roughly (bytes).
const ROW_BYTES: u64 = 1024;

/// What each owner takes.
#[derive(Debug, Default)]
pub(super) struct Heaviest {
    owners: Vec<Owned>,
    add_up_at: Option<Instant>,
}

#[derive(Debug)]
struct Owned {
    owner: Owner,
    bytes: u64,
    /// Nothing that has ended is left.
    bare: bool,
}

impl Heaviest {
    /// Whose ended records are to be forgotten next; nobody's, if those who take most have none left.
    pub(super) fn next(&mut self, c: &Connection, now: Instant) -> Result<Option<Owner>, rusqlite::Error> {
        if self.add_up_at.is_none_or(|at| now >= at) {
            self.owners = add_up(c)?;
            self.add_up_at = Some(now + (now.elapsed() * PART).max(ADD_UP_EVERY));
        }
        let total: u64 = self.owners.iter().map(|owned| owned.bytes).sum();
        let average = total / (self.owners.len() as u64).max(1);
        let heaviest = self.owners.iter().filter(|owned| !owned.bare && owned.bytes >= average);
        let heaviest = heaviest.max_by_key(|owned| owned.bytes).map(|owned| owned.owner.clone());
        if heaviest.is_none() {
            // At the next look more may have ended.
            self.owners.iter_mut().for_each(|owned| owned.bare = false);
        }
        Ok(heaviest)
    }

    /// Rows of an owner went, and with them so many bytes.
    pub(super) fn forgotten(&mut self, owner: &Owner, rows: u64, bytes: u64) {
        if let Some(owned) = self.owners.iter_mut().find(|owned| owned.owner == *owner) {
            owned.bytes = owned.bytes.saturating_sub(bytes);
            owned.bare = rows == 0;
        }
    }
}

/// Looks at every execution and every checkpoint, not at what they consist of.
fn add_up(c: &Connection) -> Result<Vec<Owned>, rusqlite::Error> {
    let mut sums: HashMap<String, u64> = HashMap::new();
    for sql in [
        "SELECT owner, sum(output_bytes + octet_length(args) + octet_length(env) + coalesce(octet_length(input), 0)
             + coalesce(octet_length(result), 0) + ?1) FROM executions GROUP BY owner",
        "SELECT owner, sum(bytes) + 0 * ?1 FROM checkpoints CROSS JOIN executions ON id = execution GROUP BY owner",
    ] {
        let mut statement = c.prepare_cached(sql)?;
        let rows = statement.query_map([ROW_BYTES.cast_signed()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        for row in rows {
            let (owner, bytes) = row?;
            *sums.entry(owner).or_default() += u64::try_from(bytes).unwrap_or(0);
        }
    }
    let owned = |(owner, bytes): (String, u64)| Owned { owner: Owner::new(owner), bytes, bare: false };
    Ok(sums.into_iter().map(owned).collect())
}
