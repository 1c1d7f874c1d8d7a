//! The only thread that writes: each turn takes all queued batches, commits once, then reports to all callers.
//!
//! A refused batch does not affect others: the turn is first tried as a whole (the usual case, no
//! savepoints), then with a savepoint for each batch, and, when the database itself fails, with a transaction for each.
//! The thread survives every failure; executions with lost writes are marked `degraded` with the next commit.

mod missing_file;
mod shared;
#[cfg(test)]
mod tests;

pub(super) use shared::WriterShared;

use super::background::Background;
use super::failure::{SqliteFailure, hopeless, is_damage, may_pass, poisoned, store_error};
use super::free_space::{DatabasePages, FreeSpace};
use super::in_use;
use super::open::copy_back_when_closed;
use super::quota_eviction::{QuotaEviction, size_of, sizes};
use super::saved_copy::SavedCopy;
use super::transaction::{Verdicts, all, alone, together, transaction};
use super::wal::Checkpoints;
use super::write::{ScanPosition, Written, prune_step};
use super::{DatabaseLocation, Durability};
use crate::admission::Admission;
use crate::clock;
use crate::holds::Holds;
use crate::queue::{Queue, QueuedBatch, Turn};
use crate::{DatabaseFault, Lane};
use rusqlite::Connection;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, KEPT_AFTER_END, Owner, PRUNE_EVERY, PRUNE_ROWS, Rejection, Retention, StoreError, Write, earlier,
};

/// Most remembered executions with lost writes; beyond it the oldest ids are dropped first.
const LOST_MAX: usize = 100_000;
/// Time between checks of the database's size.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Turns and batches that write less are measured with the next ones (bytes).
const PUBLISH_BYTES: usize = 64 << 10;
/// How long the background waits for the log to be copied back before it looks again.
const LOG_WAIT: Duration = Duration::from_millis(10);
/// The weight of a piece of the background for the size of the log (batches).
const BACKGROUND_BATCHES: usize = 16;
/// Without work the writer checks this often whether the database file is still there.
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// The retention scan starts over after this time: rows that were unfinished may have ended.
const PASS_AGAIN: Duration = Duration::from_hours(1);

pub(super) struct Writer {
    connection: Option<Connection>,
    checkpoints: Checkpoints,
    location: DatabaseLocation,
    retention: Retention,
    queue: Arc<Queue>,
    shared: Arc<WriterShared>,
    admission: Arc<Admission>,
    holds: Arc<Holds>,
    lost: BTreeSet<ExecutionId>,
    prune_at: Instant,
    /// The position of the retention scan, and when it began.
    position: ScanPosition,
    position_since: Instant,
    measure_at: Instant,
    /// The bytes that owners have written since their sums were last counted.
    uncounted: HashMap<Owner, usize>,
    eviction: QuotaEviction,
    background: Background,
    free_space: FreeSpace,
    /// The background has worked since all owners were last counted. Owners who are refused write nothing, and are not counted then.
    has_swept: bool,
    /// The database file is not where it was, as far as it was reported.
    missing: Option<DatabaseFault>,
    saved: SavedCopy,
    save_at: Instant,
}

/// State that the writer shares with other threads.
pub(super) struct PublishedState {
    pub(super) shared: Arc<WriterShared>,
    pub(super) admission: Arc<Admission>,
    pub(super) holds: Arc<Holds>,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        location: DatabaseLocation,
        retention: Retention,
        queue: Arc<Queue>,
        PublishedState { shared, admission, holds }: PublishedState,
    ) -> Result<Self, StoreError> {
        let checkpoints = Checkpoints::start(&location, &queue).map_err(|error| store_error(&error))?;
        let now = Instant::now();
        let saved = SavedCopy::of_database(location.file.path());
        let free_space = FreeSpace::new(&connection);
        shared.gives_back.store(free_space.is_possible(), Ordering::Relaxed);
        let mut writer = Self {
            connection: Some(connection),
            checkpoints,
            location,
            retention,
            queue,
            shared,
            admission,
            holds,
            lost: BTreeSet::new(),
            prune_at: now,
            position: ScanPosition::default(),
            position_since: now,
            measure_at: now,
            uncounted: HashMap::new(),
            eviction: QuotaEviction::default(),
            background: Background::default(),
            free_space,
            has_swept: false,
            missing: None,
            saved,
            save_at: now,
        };
        writer.measure();
        writer.count_all();
        Ok(writer)
    }

    /// Marks the database as in use, until [`Self::run`] ends.
    pub(super) fn mark(&self) {
        self.connection.iter().for_each(|connection| in_use::mark(connection, &self.location));
    }

    pub(super) fn run(mut self) {
        loop {
            let is_behind = match &self.connection {
                Some(connection) => self.checkpoints.is_behind(connection),
                None => false,
            };
            let mut idle = self.prune_at.saturating_duration_since(Instant::now()).min(WATCH_EVERY);
            if let Some(at) = self.free_space.next_at() {
                idle = idle.min(at.saturating_duration_since(Instant::now()));
            }
            if self.background.has_work() {
                // Background work writes to the log, too: while that is too long, it waits like large batches.
                idle = if is_behind { idle.min(LOG_WAIT) } else { Duration::ZERO };
            }
            let turn = self.queue.take(idle, is_behind);
            self.shared.set_busy(true);
            let is_idle = matches!(turn, Turn::Idle);
            match turn {
                Turn::Work(jobs) => self.turn(jobs),
                Turn::Idle => {}
                Turn::Closed => break,
            }
            self.maintain(is_idle);
            self.shared.set_busy(false);
        }
        if let Some(DatabaseFault::Deleted { .. }) = self.location.file.fault() {
            // The copy has everything since the first copy, too.
            self.save();
        }
        // First: the thread must not copy at the same time as the last copy below.
        self.checkpoints.stop();
        if let Some(connection) = self.connection
            && self.location.durability != Durability::Off
        {
            let copied = in_use::copy_back_and_unmark(&connection);
            if let Err(failure) = copied.and_then(|()| Ok(copy_back_when_closed(&connection).map(drop)?)) {
                tracing::warn!(error = %failure.into_store_error(), "the store's log could not be emptied");
            }
        }
    }

    fn turn(&mut self, jobs: Vec<QueuedBatch>) {
        let batches = jobs.len();
        let content_bytes = jobs.iter().map(QueuedBatch::turn_bytes).sum();
        // One commit for all: a sync of the disk costs the same for one batch as for many.
        let verdicts = self.commit(&jobs);
        if let Some(DatabaseFault::LogMissing { .. }) = self.missing {
            // Before the callers learn that it is stored.
            self.copy_all_back();
        }
        // Before the callers get their results: the next commit marks the executions of lost batches.
        self.remember_lost(&jobs, &verdicts);
        self.publish(&jobs, content_bytes);
        // The last first: a caller waits for its batches in order, and when the first one is reported, the results of
        // all others of this turn exist too. Otherwise it would be woken for each of them.
        for (mut job, verdict) in jobs.into_iter().zip(verdicts).rev() {
            let verdict = self.within_limits(&mut job, verdict);
            self.background.note_written(&job.batch, &job.progress, &verdict);
            match verdict {
                Ok(Written::All(applied)) => {
                    self.wake_watches(&job.batch);
                    self.shared.schedules.committed(&job.batch);
                    job.finish(Ok(applied));
                }
                Ok(Written::Part(progress)) => self.queue.put_back(job, progress),
                Err(error) => job.finish(Err(error)),
            }
        }
        if let Some(connection) = &self.connection {
            self.checkpoints.after_commit(connection, batches, content_bytes);
        }
    }

    /// Wakes clients that wait for events of the sessions that a batch was about.
    fn wake_watches(&self, batch: &Batch) {
        let watches = &self.shared.watches;
        // Finding the sessions of executions takes queries, for clients that are rarely there.
        if !watches.is_used() {
            return;
        }
        for session in batch.0.iter().flat_map(Write::sessions) {
            watches.changed(session);
        }
        // Such a batch names the execution alone.
        let changed = batch.0.iter().filter_map(|write| match write {
            Write::ExecutionStatus { id, .. } | Write::RunProgress { id, .. } => Some(*id),
            _ => None,
        });
        for session in changed.filter_map(|id| self.session_of(id)) {
            watches.changed(session);
        }
    }

    fn session_of(&self, execution: ExecutionId) -> Option<SessionId> {
        let sql = "SELECT session FROM executions WHERE id = ?1";
        let mut statement = self.connection.as_ref()?.prepare_cached(sql).ok()?;
        statement.query_row([execution.as_bytes()], |row| row.get(0)).map(SessionId::from_bytes).ok()
    }

    /// Ends a copy in pieces above a limit: how large the state is was not known before.
    fn within_limits(
        &self,
        job: &mut QueuedBatch,
        verdict: Result<Written, StoreError>,
    ) -> Result<Written, StoreError> {
        match (verdict, job.lane()) {
            (Ok(Written::Part(progress)), Lane::Owner(owner)) if job.is_copy() => {
                match self.admission.exceeded(owner) {
                    Some(limit) => {
                        // Kept: the background must know that a part of the state is written.
                        job.progress = progress;
                        Err(StoreError::Rejected(Rejection::Limit(limit)))
                    }
                    None => Ok(Written::Part(progress)),
                }
            }
            (verdict, _) => verdict,
        }
    }

    /// Publishes the sums of what is stored, before the callers learn that it is: what they send next is judged by it.
    fn publish(&mut self, jobs: &[QueuedBatch], content_bytes: usize) {
        for job in jobs {
            if let Lane::Owner(owner) = job.lane() {
                let written = self.uncounted.entry(owner.clone()).or_default();
                // An estimate is enough while it is small: counting what an owner stores is a query.
                *written += job.turn_bytes();
                if *written >= PUBLISH_BYTES {
                    self.count(owner);
                }
            }
        }
        if content_bytes >= PUBLISH_BYTES {
            self.measure();
        }
    }

    /// Reads what an owner stores.
    fn count(&mut self, owner: &Owner) {
        self.uncounted.remove(owner);
        if let Some(connection) = &self.connection
            && let Ok(bytes) = size_of(connection, owner)
        {
            self.admission.stored(owner, bytes);
            if bytes > self.retention.owner_prune_bytes() {
                // A quota does not wait for the next step of the retention by age.
                self.prune_at = Instant::now();
            }
        }
    }

    /// Reads what each owner stores.
    fn count_all(&self) {
        let Some(connection) = &self.connection else { return };
        match sizes(connection) {
            Ok(sizes) => sizes.iter().for_each(|(owner, bytes)| self.admission.stored(owner, *bytes)),
            Err(error) => tracing::error!(%error, "it is not known what each owner stores"),
        }
    }

    fn commit(&mut self, jobs: &[QueuedBatch]) -> Verdicts {
        // Opened again with the next batch: the cause of the failure may be gone.
        if self.connection.is_none() {
            match self.location.connect() {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => return all(jobs, &self.failed(&error)),
            }
        }
        let Some(connection) = &self.connection else {
            return all(jobs, &StoreError::Closed);
        };
        match together(connection, jobs, (&self.lost, &self.holds)) {
            Ok(verdicts) => {
                self.succeeded(&verdicts);
                verdicts
            }
            // Each batch alone, on a new connection: the page may be readable again, and if not, only its own batch fails.
            Err(error) if may_pass(&error) => {
                tracing::warn!(%error, "a write met a page that cannot be read: it is tried again");
                self.connection = None;
                self.singly(jobs)
            }
            // Another attempt would fail in the same way, and all batches behind it would wait.
            Err(error) if hopeless(&error) || jobs.len() == 1 => all(jobs, &self.failed(&error)),
            Err(error) => {
                self.failed(&error);
                self.singly(jobs)
            }
        }
    }

    /// The database failed in the turn: finds the batch at which it did.
    fn singly(&mut self, jobs: &[QueuedBatch]) -> Verdicts {
        let mut verdicts = Verdicts::with_capacity(jobs.len());
        for job in jobs {
            let result = match &self.connection {
                Some(connection) => {
                    together(connection, std::slice::from_ref(job), (&self.lost, &self.holds))
                }
                None => self.location.connect().and_then(|connection| {
                    let connection = self.connection.insert(connection);
                    together(connection, std::slice::from_ref(job), (&self.lost, &self.holds))
                }),
            };
            match result {
                Ok(mut verdict) => {
                    self.succeeded(&verdict);
                    verdicts.append(&mut verdict);
                }
                Err(error) => verdicts.push(Err(self.failed(&error))),
            }
        }
        verdicts
    }

    /// The commit succeeded. If all batches were refused or changed nothing, nothing was written: that shows
    /// nothing about the ability to write.
    fn succeeded(&mut self, verdicts: &Verdicts) {
        let has_written = |verdict: &Result<Written, _>| match verdict {
            Ok(Written::All(applied)) => applied.rows > 0,
            Ok(Written::Part(_)) => true,
            Err(_) => false,
        };
        if !verdicts.iter().any(has_written) {
            return;
        }
        // This commit has written the marks.
        self.lost.clear();
        if self.shared.failing().is_some() {
            tracing::info!("the store can write again");
            self.shared.set_failing(None);
        }
    }

    fn failed(&mut self, error: &rusqlite::Error) -> StoreError {
        let mut reported = store_error(error);
        if is_damage(error) {
            reported = self.shared.suspected("a write met an invalid page", reported);
        }
        if self.shared.failing().is_none() {
            tracing::error!(%error, "the store cannot write");
        }
        self.shared.set_failing(Some(reported.to_string()));
        // After some errors a connection refuses everything: the next turn opens a new one.
        if poisoned(error) {
            self.connection = None;
        }
        self.drop_stuck();
        reported
    }

    fn note_damage(&self, error: &rusqlite::Error) {
        if is_damage(error) {
            self.shared.suspect("a write met an invalid page");
        }
    }

    /// Drops a connection with a transaction that could not be rolled back: it would refuse every later one.
    fn drop_stuck(&mut self) {
        self.connection.take_if(|connection| !connection.is_autocommit());
    }

    fn remember_lost(&mut self, jobs: &[QueuedBatch], verdicts: &Verdicts) {
        for (job, verdict) in jobs.iter().zip(verdicts) {
            if matches!(verdict, Err(StoreError::Unavailable(_) | StoreError::Corrupt(_))) {
                self.lost.extend(job.batch.incomplete());
            }
        }
        // The oldest first: ids grow with time, and old executions are likely to have ended.
        while self.lost.len() > LOST_MAX {
            self.lost.pop_first();
        }
    }

    /// Does a bounded part of the background work.
    fn maintain(&mut self, is_idle: bool) {
        let now = Instant::now();
        if now >= self.measure_at {
            let size = self.measure();
            if is_idle {
                self.cut(size);
            }
            for owner in std::mem::take(&mut self.uncounted).into_keys() {
                self.count(&owner);
            }
            if std::mem::take(&mut self.has_swept) {
                self.count_all();
            }
            self.watch(now);
            self.measure_at = now + MEASURE_EVERY;
            if self.shared.bytes_used() > self.retention.prune_above_bytes {
                self.prune_at = now;
            }
        }
        if let Some(connection) = &self.connection
            && self.background.has_work()
            && !self.checkpoints.is_behind(connection)
        {
            self.has_swept = true;
            // A small transaction of its own: the batches that come meanwhile are next.
            let piece = transaction(connection, |c| self.background.piece(c));
            match piece {
                Ok(()) => self.checkpoints.after_commit(connection, BACKGROUND_BATCHES, 0),
                Err(failure) => {
                    // Tried again behind the next batch that needs it, or at the next start.
                    tracing::warn!(error = %failure.into_store_error(), "the store could not delete old states");
                    self.background.give_up();
                    self.drop_stuck();
                }
            }
        }
        if is_idle {
            self.give_back(now);
        }
        if now < self.prune_at {
            return;
        }
        let more = self.prune();
        // If there is more, the next step runs after the next turn or pause, not before waiting callers.
        self.prune_at = Instant::now() + if more { Duration::from_millis(10) } else { PRUNE_EVERY };
    }

    /// Makes the database a little smaller, if there is much free in it and nothing else to do.
    fn give_back(&mut self, now: Instant) {
        let Some(connection) = &self.connection else { return };
        // Moving pages writes as much as it frees: not while the log is long, or more pages are about to become free.
        if self.background.has_work() || self.checkpoints.is_behind(connection) {
            return;
        }
        match self.free_space.piece(connection, now) {
            Ok(0) => {}
            Ok(pages) => {
                let bytes = usize::try_from(pages).unwrap_or(usize::MAX).saturating_mul(4_096);
                self.checkpoints.after_commit(connection, 1, bytes);
            }
            Err(failure) => {
                if let SqliteFailure::Database(error) = &failure {
                    self.note_damage(error);
                }
                tracing::warn!(error = %failure.into_store_error(), "free space of the database file is not given back");
                self.drop_stuck();
            }
        }
    }

    /// Copies the rest of the log if the file is larger than the database: SQLite cuts the file when all of the log is copied.
    fn cut(&self, size: DatabasePages) {
        let Some(connection) = &self.connection else { return };
        let on_disk = std::fs::metadata(self.location.file.path()).map_or(0, |file| file.len());
        if self.missing.is_none() && self.free_space.next_at().is_none() && on_disk > size.bytes() {
            self.checkpoints.copy_rest(connection);
        }
    }

    fn prune(&mut self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let now = clock::now();
        if self.position_since.elapsed() >= PASS_AGAIN {
            (self.position, self.position_since) = (ScanPosition::default(), Instant::now());
        }
        let (before, keys_before) = (self.retention.cutoff(now), earlier(now, self.retention.key_life));
        let position = self.position;
        let step = transaction(connection, |c| prune_step(c, before, keys_before, PRUNE_ROWS, position));
        match step.and_then(|step| Ok((step, self.relieve(now)?))) {
            Ok((step, relieved)) => {
                self.position = step.position;
                if step.rows > 0 || relieved {
                    self.background.has_deleted();
                    self.after_pruning();
                }
                step.more || relieved
            }
            Err(failure) => {
                // Retried at the next time; callers get the error of their own batches.
                if let SqliteFailure::Database(error) = &failure {
                    self.note_damage(error);
                }
                tracing::warn!(error = %failure.into_store_error(), "the store could not delete old records");
                self.drop_stuck();
                false
            }
        }
    }

    /// While the database is too large, deletes some records of its largest owner; returns whether there may be more to do.
    fn relieve(&mut self, now: Timestamp) -> Result<bool, SqliteFailure> {
        let before = self.shared.bytes_used();
        let Some(connection) = &self.connection else { return Ok(false) };
        let marks = (before > self.retention.prune_above_bytes, self.retention.owner_prune_bytes());
        let Some(owner) = self.eviction.next(connection, marks, Instant::now())? else { return Ok(false) };
        let too_much = marks.0 || size_of(connection, &owner)? > self.retention.owner_quota_bytes;
        let ended_before = if too_much { now } else { earlier(now, KEPT_AFTER_END) };
        let step = Write::PruneOwner { owner: owner.clone(), before: ended_before, max_rows: PRUNE_ROWS };
        let rows = alone(connection, &Batch::from(step))?;
        self.count(&owner);
        self.measure();
        self.eviction.forgotten(&owner, rows, before.saturating_sub(self.shared.bytes_used()));
        Ok(true)
    }

    fn after_pruning(&mut self) {
        if let Some(connection) = &self.connection {
            self.checkpoints.after_commit(connection, PRUNE_ROWS as usize, 0);
        }
        self.measure();
    }

    fn measure(&mut self) -> DatabasePages {
        let Some(connection) = &self.connection else { return DatabasePages::default() };
        let size = DatabasePages::measure(connection);
        let bytes = size.used_bytes();
        self.free_space.measured(size, Instant::now());
        self.shared.set_disk_problem(super::space::problem(self.location.file.path()));
        self.shared.bytes_free.store(size.free_bytes(), Ordering::Relaxed);
        self.shared.bytes_used.store(bytes, Ordering::Relaxed);
        self.shared.over_quota.store(bytes > self.retention.quota_bytes, Ordering::Relaxed);
        let almost_full = bytes > self.retention.quota_bytes / 8 * 7;
        let largest = if almost_full { self.eviction.largest(connection, Instant::now()) } else { None };
        self.admission.measured(bytes, largest);
        size
    }
}
