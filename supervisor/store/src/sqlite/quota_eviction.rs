//! Decides which owner's ended records are deleted first when the database exceeds its quota: those of the largest owner. An
//! owner below the average keeps its records, even if others store much with executions that still run. Deletes nothing itself.

use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use vm_system_record::Owner;

/// The sizes are read again after this time; meanwhile deleted bytes are subtracted.
const READ_EVERY: Duration = Duration::from_secs(1);
/// At most 1/`PART` of the writer's time is spent on searches that find no ended records.
const PART: u32 = 100;

/// The stored bytes of each owner.
#[derive(Debug, Default)]
pub(super) struct QuotaEviction {
    owners: Vec<(Owner, u64)>,
    read_at: Option<Instant>,
    /// The last search found no ended records of these owners.
    bare: HashSet<Owner>,
    /// When the deletion of an owner's records began.
    chosen_at: Option<Instant>,
    /// After a search without ended records, the time of the next one: it may read every row that has not ended.
    next_search_at: Option<Instant>,
}

impl QuotaEviction {
    /// The owner with the ended records to be deleted next: one of the largest if the database is too large, or one that stores more
    /// than `mark` bytes. `None` if these have no more ended records.
    pub(super) fn next(
        &mut self,
        c: &Connection,
        (too_large, mark): (bool, u64),
        now: Instant,
    ) -> Result<Option<Owner>, rusqlite::Error> {
        if self.next_search_at.is_some_and(|at| now >= at) {
            // More records may have ended.
            self.bare.clear();
            self.next_search_at = None;
        }
        self.read(c, now)?;
        let total = self.owners.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        // Owners below the average lose nothing to a database that others have filled.
        let average = total / (self.owners.len() as u64).max(1);
        let chosen = |bytes: u64| (too_large && bytes >= average) || bytes > mark;
        let largest =
            self.owners.iter().filter(|(owner, bytes)| chosen(*bytes) && !self.bare.contains(owner));
        self.chosen_at = Some(now);
        Ok(largest.max_by_key(|(_, bytes)| *bytes).map(|(owner, _)| owner.clone()))
    }

    /// The owner that stores most.
    pub(super) fn largest(&mut self, c: &Connection, now: Instant) -> Option<Owner> {
        // Without the sizes nobody is the largest: the reserve of the quota is there for all.
        let _ = self.read(c, now);
        self.owners.iter().max_by_key(|(_, bytes)| *bytes).map(|(owner, _)| owner.clone())
    }

    fn read(&mut self, c: &Connection, now: Instant) -> Result<(), rusqlite::Error> {
        if self.read_at.is_none_or(|at| now >= at) {
            self.owners = sizes(c)?;
            self.read_at = Some(now + READ_EVERY);
        }
        Ok(())
    }

    /// `rows` rows of an owner with this many bytes were deleted.
    pub(super) fn forgotten(&mut self, owner: &Owner, rows: u64, bytes: u64) {
        if let Some((_, size)) = self.owners.iter_mut().find(|(other, _)| other == owner) {
            // Adjusted until the sums are read again, which reads them for all owners.
            *size = size.saturating_sub(bytes);
        }
        if rows == 0 {
            self.bare.insert(owner.clone());
            self.next_search_at = self.chosen_at.map(|at| Instant::now() + at.elapsed() * PART);
        }
    }
}

/// The counters of all owners, which the triggers of the schema keep.
pub(super) fn sizes(c: &Connection) -> Result<Vec<(Owner, u64)>, rusqlite::Error> {
    let mut statement = c.prepare_cached("SELECT owner, bytes FROM owners WHERE owner <> '(commits)'")?;
    let rows = statement.query_map([], |row| {
        // A negative size counts as zero.
        let bytes = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        Ok((Owner::new(row.get::<_, String>(0)?), bytes))
    })?;
    rows.collect()
}

/// The counter of one owner.
pub(super) fn size_of(c: &Connection, owner: &Owner) -> Result<u64, rusqlite::Error> {
    let mut statement = c.prepare_cached("SELECT bytes FROM owners WHERE owner = ?1")?;
    let bytes: Option<i64> = statement.query_row([owner.as_str()], |row| row.get(0)).optional()?;
    Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{QuotaEviction, READ_EVERY};
    use crate::sqlite::read::costs::{filled, recount};
    use std::time::Instant;
    use vm_system_record::Owner;

    /// The database is too large.
    const ALL: (bool, u64) = (true, u64::MAX);

    #[test]
    fn a_damaged_size_overflows_no_sum() {
        let (_folder, c) = filled();
        let wrong = "UPDATE executions SET output_bytes = 9223372036854775807 WHERE owner = 'me'";
        c.execute_batch(wrong).expect("rows of a schema of our own");
        recount(&c);
        let next = QuotaEviction::default().next(&c, ALL, Instant::now()).expect("it can be added up");
        assert_eq!(next, Some(Owner::new("me")));
    }

    #[test]
    fn answers_and_versions_count_too() {
        for weight in [
            "UPDATE items SET answer = printf('%.50000000c', 'x') WHERE owner = 'me' AND created_at = 1",
            "UPDATE program_versions SET code = zeroblob(50000000)
                 WHERE program IN (SELECT id FROM programs WHERE owner = 'me')",
        ] {
            let (_folder, c) = filled();
            let largest =
                |c| QuotaEviction::default().next(c, ALL, Instant::now()).expect("it can be added up");
            assert_eq!(largest(&c), Some(Owner::new("they")));
            c.execute_batch(weight).expect("rows of a schema of our own");
            recount(&c);
            assert_eq!(largest(&c), Some(Owner::new("me")), "{weight}");
        }
    }

    #[test]
    fn an_owner_without_ended_records_is_searched_again_only_after_a_while() {
        let (_folder, c) = filled();
        let (mut largest, begin) = (QuotaEviction::default(), Instant::now());
        let they = Owner::new("they");
        assert_eq!(largest.next(&c, ALL, begin).expect("readable"), Some(they.clone()));
        largest.forgotten(&they, 0, 0);
        for _ in 0..3 {
            assert_eq!(largest.next(&c, ALL, begin).expect("readable"), None);
        }
        // By then the sums are computed again, too.
        let later = begin + 100 * READ_EVERY;
        assert_eq!(largest.next(&c, ALL, later).expect("readable"), Some(they));
    }
}
