//! Decides which owner's ended records are deleted first when the database exceeds its quota: those of the largest owner. An
//! owner below the average keeps its records, even if others store much with executions that still run. Deletes nothing itself.

use rusqlite::Connection;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use vm_system_record::Owner;

/// The sums are computed again after this time; meanwhile deleted bytes are subtracted.
const ADD_UP_EVERY: Duration = Duration::from_mins(1);
/// At most 1/`PART` of the writer's time is spent on the sums, and on searches that find no ended records.
const PART: u32 = 100;
/// Cap of a size that is stored in a row (bytes): a damaged row overflows no sum.
const REPORTED_MAX: u64 = 1 << 40;
/// Approximate size of an execution besides its texts, output and state (bytes); of a line of output, an eighth.
const ROW_BYTES: u64 = 1024;

/// The stored bytes of each owner.
#[derive(Debug, Default)]
pub(super) struct QuotaEviction {
    owners: Vec<Owned>,
    add_up_at: Option<Instant>,
    /// When the deletion of an owner's records began.
    chosen_at: Option<Instant>,
    /// After a search without ended records, the time of the next one: it may read every row that has not ended.
    next_sum_at: Option<Instant>,
}

#[derive(Debug)]
struct Owned {
    owner: Owner,
    bytes: u64,
    /// The last search found no ended records.
    bare: bool,
}

impl QuotaEviction {
    /// The owner with the ended records to be deleted next; `None` if the largest owners have none left.
    pub(super) fn next(&mut self, c: &Connection, now: Instant) -> Result<Option<Owner>, rusqlite::Error> {
        if self.add_up_at.is_none_or(|at| now >= at) {
            self.owners = add_up(c)?;
            self.add_up_at = Some(now + (now.elapsed() * PART).max(ADD_UP_EVERY));
        }
        let total = self.owners.iter().fold(0_u64, |sum, owned| sum.saturating_add(owned.bytes));
        let average = total / (self.owners.len() as u64).max(1);
        let largest = self.owners.iter().filter(|owned| !owned.bare && owned.bytes >= average);
        let largest = largest.max_by_key(|owned| owned.bytes).map(|owned| owned.owner.clone());
        if largest.is_none() && self.next_sum_at.is_none_or(|at| now >= at) {
            // More records may have ended by the next search.
            self.owners.iter_mut().for_each(|owned| owned.bare = false);
        }
        self.chosen_at = Some(now);
        Ok(largest)
    }

    /// `rows` rows of an owner with this many bytes were deleted.
    pub(super) fn forgotten(&mut self, owner: &Owner, rows: u64, bytes: u64) {
        if let Some(owned) = self.owners.iter_mut().find(|owned| owned.owner == *owner) {
            owned.bytes = owned.bytes.saturating_sub(bytes);
            owned.bare = rows == 0;
        }
        if let Some(chosen_at) = self.chosen_at.filter(|_| rows == 0) {
            self.next_sum_at = Some(Instant::now() + chosen_at.elapsed() * PART);
        }
    }
}

/// Reads every execution, checkpoint, task and version of a program, not their contents.
fn add_up(c: &Connection) -> Result<Vec<Owned>, rusqlite::Error> {
    let mut sums: HashMap<String, u64> = HashMap::new();
    for sql in [
        "SELECT owner, total(min(output_bytes, ?2) + octet_length(args) + octet_length(env)
             + coalesce(octet_length(input), 0) + coalesce(octet_length(result), 0)
             + ?1 + ?1 / 8 * min(events, 1000000000)) FROM executions GROUP BY owner",
        "SELECT owner, total(min(bytes, ?2)) + 0 * ?1 FROM checkpoints CROSS JOIN executions ON id = execution
             GROUP BY owner",
        "SELECT owner, total(coalesce(octet_length(answer), 0) + coalesce(octet_length(schema), 0)) + 0 * (?1 + ?2)
             FROM tasks GROUP BY owner",
        "SELECT owner, total(octet_length(source) + octet_length(code)) + 0 * (?1 + ?2)
             FROM program_versions CROSS JOIN programs ON id = program GROUP BY owner",
    ] {
        let mut statement = c.prepare_cached(sql)?;
        let rows = statement.query_map([ROW_BYTES.cast_signed(), REPORTED_MAX.cast_signed()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?))
        })?;
        for row in rows {
            let (owner, bytes) = row?;
            let sum = sums.entry(owner).or_default();
            // A negative size counts as zero.
            *sum = sum.saturating_add(bytes as u64);
        }
    }
    let owned = |(owner, bytes): (String, u64)| Owned { owner: Owner::new(owner), bytes, bare: false };
    Ok(sums.into_iter().map(owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{ADD_UP_EVERY, QuotaEviction};
    use crate::sqlite::read::costs::filled;
    use std::time::Instant;
    use vm_system_record::Owner;

    #[test]
    fn a_damaged_size_overflows_no_sum() {
        let (_folder, c) = filled();
        let wrong = "UPDATE executions SET output_bytes = 9223372036854775807 WHERE owner = 'me'";
        c.execute_batch(wrong).expect("rows of a schema of our own");
        let next = QuotaEviction::default().next(&c, Instant::now()).expect("it can be added up");
        assert_eq!(next, Some(Owner::new("me")));
    }

    #[test]
    fn answers_and_versions_count_too() {
        for weight in [
            "UPDATE tasks SET answer = printf('%.50000000c', 'x') WHERE owner = 'me' AND created_at = 1",
            "UPDATE program_versions SET code = zeroblob(50000000)
                 WHERE program IN (SELECT id FROM programs WHERE owner = 'me')",
        ] {
            let (_folder, c) = filled();
            let largest = |c| QuotaEviction::default().next(c, Instant::now()).expect("it can be added up");
            assert_eq!(largest(&c), Some(Owner::new("they")));
            c.execute_batch(weight).expect("rows of a schema of our own");
            assert_eq!(largest(&c), Some(Owner::new("me")), "{weight}");
        }
    }

    #[test]
    fn an_owner_without_ended_records_is_searched_again_only_after_a_while() {
        let (_folder, c) = filled();
        let (mut largest, begin) = (QuotaEviction::default(), Instant::now());
        let they = Owner::new("they");
        assert_eq!(largest.next(&c, begin).expect("readable"), Some(they.clone()));
        largest.forgotten(&they, 0, 0);
        for _ in 0..3 {
            assert_eq!(largest.next(&c, begin).expect("readable"), None);
        }
        // By then the sums are computed again, too.
        let later = begin + 100 * ADD_UP_EVERY;
        assert_eq!(largest.next(&c, later).expect("readable"), Some(they));
    }
}
