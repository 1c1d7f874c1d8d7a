//! Whose records go first when the database is too large: those of the owner who takes most of it. An owner who takes less
//! than the average keeps what it has, however much others take with what still runs.

use rusqlite::Connection;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use vm_system_record::Owner;

/// Everything is added up again after this time; meanwhile what was forgotten is subtracted.
const ADD_UP_EVERY: Duration = Duration::from_mins(1);
/// At most this part of the writer's time goes into adding up, and into looking where nothing has ended.
const PART: u32 = 100;
/// What a row says of itself counts up to this (bytes): one that is wrong makes nobody's sum unreadable.
const SAID_MAX: u64 = 1 << 40;
/// What an execution takes besides its texts, its output and its state, roughly (bytes); a line of output an eighth of it.
const ROW_BYTES: u64 = 1024;

/// What each owner takes.
#[derive(Debug, Default)]
pub(super) struct Heaviest {
    owners: Vec<Owned>,
    add_up_at: Option<Instant>,
    /// Since when somebody's are being forgotten.
    asked_at: Option<Instant>,
    /// Where nothing had ended, it is looked again then: it may cost a look at everything that has not.
    look_again_at: Option<Instant>,
}

#[derive(Debug)]
struct Owned {
    owner: Owner,
    bytes: u64,
    /// Nothing that has ended was left when it was looked for.
    bare: bool,
}

impl Heaviest {
    /// Whose ended records are to be forgotten next; nobody's, if those who take most have none left.
    pub(super) fn next(&mut self, c: &Connection, now: Instant) -> Result<Option<Owner>, rusqlite::Error> {
        if self.add_up_at.is_none_or(|at| now >= at) {
            self.owners = add_up(c)?;
            self.add_up_at = Some(now + (now.elapsed() * PART).max(ADD_UP_EVERY));
        }
        let total = self.owners.iter().fold(0_u64, |sum, owned| sum.saturating_add(owned.bytes));
        let average = total / (self.owners.len() as u64).max(1);
        let heaviest = self.owners.iter().filter(|owned| !owned.bare && owned.bytes >= average);
        let heaviest = heaviest.max_by_key(|owned| owned.bytes).map(|owned| owned.owner.clone());
        if heaviest.is_none() && self.look_again_at.is_none_or(|at| now >= at) {
            // At the next look more may have ended.
            self.owners.iter_mut().for_each(|owned| owned.bare = false);
        }
        self.asked_at = Some(now);
        Ok(heaviest)
    }

    /// Rows of an owner went, and with them so many bytes.
    pub(super) fn forgotten(&mut self, owner: &Owner, rows: u64, bytes: u64) {
        if let Some(owned) = self.owners.iter_mut().find(|owned| owned.owner == *owner) {
            owned.bytes = owned.bytes.saturating_sub(bytes);
            owned.bare = rows == 0;
        }
        if let Some(asked_at) = self.asked_at.filter(|_| rows == 0) {
            self.look_again_at = Some(Instant::now() + asked_at.elapsed() * PART);
        }
    }
}

/// Looks at every execution, checkpoint, question and version of a program, not at what they consist of.
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
        let rows = statement.query_map([ROW_BYTES.cast_signed(), SAID_MAX.cast_signed()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?))
        })?;
        for row in rows {
            let (owner, bytes) = row?;
            let sum = sums.entry(owner).or_default();
            // What is below zero counts nothing.
            *sum = sum.saturating_add(bytes as u64);
        }
    }
    let owned = |(owner, bytes): (String, u64)| Owned { owner: Owner::new(owner), bytes, bare: false };
    Ok(sums.into_iter().map(owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{ADD_UP_EVERY, Heaviest};
    use crate::sqlite::read::costs::filled;
    use std::time::Instant;
    use vm_system_record::Owner;

    #[test]
    fn what_a_row_says_of_itself_makes_nobodys_sum_unreadable() {
        let (_folder, c) = filled();
        let wrong = "UPDATE executions SET output_bytes = 9223372036854775807 WHERE owner = 'me'";
        c.execute_batch(wrong).expect("rows of a schema of our own");
        let next = Heaviest::default().next(&c, Instant::now()).expect("it can be added up");
        assert_eq!(next, Some(Owner::new("me")));
    }

    #[test]
    fn answers_and_versions_weigh_too() {
        for weight in [
            "UPDATE tasks SET answer = printf('%.50000000c', 'x') WHERE owner = 'me' AND created_at = 1",
            "UPDATE program_versions SET code = zeroblob(50000000)
                 WHERE program IN (SELECT id FROM programs WHERE owner = 'me')",
        ] {
            let (_folder, c) = filled();
            let heaviest = |c| Heaviest::default().next(c, Instant::now()).expect("it can be added up");
            assert_eq!(heaviest(&c), Some(Owner::new("they")));
            c.execute_batch(weight).expect("rows of a schema of our own");
            assert_eq!(heaviest(&c), Some(Owner::new("me")), "{weight}");
        }
    }

    #[test]
    fn who_has_nothing_left_that_ended_is_looked_at_again_only_after_a_while() {
        let (_folder, c) = filled();
        let (mut heaviest, begin) = (Heaviest::default(), Instant::now());
        let they = Owner::new("they");
        assert_eq!(heaviest.next(&c, begin).expect("readable"), Some(they.clone()));
        heaviest.forgotten(&they, 0, 0);
        for _ in 0..3 {
            assert_eq!(heaviest.next(&c, begin).expect("readable"), None);
        }
        // Everything is added up anew by then, too.
        let later = begin + 100 * ADD_UP_EVERY;
        assert_eq!(heaviest.next(&c, later).expect("readable"), Some(they));
    }
}
