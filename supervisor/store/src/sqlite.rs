//! The SQLite store: opens a database file, and starts the threads that own its connections.
//!
//! One writer thread (`writer.rs`), a few read-only connections (`readers.rs`), one checkpoint thread (`wal.rs`).

mod background;
mod backup;
mod check;
mod check_file;
mod claims;
mod commit_count;
mod database_file;
mod failure;
mod free_space;
mod in_use;
mod long_reads;
pub(super) mod new_database;
mod open;
mod quota_eviction;
mod read;
mod read_turns;
mod readers;
mod recovery;
mod saved_copy;
mod schedule_sleep;
mod schema;
mod second_look;
pub(super) mod space;
mod sqlite_reads;
mod transaction;
mod wal;
mod wal_check;
mod write;
mod writer;

use super::admission::Admission;
use super::clock;
use super::error::OpenError;
use super::handle::Ticket;
use super::holds::{self, Holds};
use super::lock::StoreLock;
use super::queue::Queue;
use super::temporary::TemporaryFolder;
use super::{BoxFuture, DatabaseFault, Lane, SessionWatch, Store, StoreHandle, StoreStatus, Urgency};
use check::CheckMode;
#[cfg(test)]
pub(super) use check::STORED_BYTES;
pub use check_file::check_file;
use claims::Rounds;
use database_file::DatabaseFile;
use failure::may_pass;
use long_reads::{LongRead, LongReads};
use readers::Readers;
use recovery::path_beside;
pub(super) use schema::{SCHEMA, StoreSchema};
use second_look::Look;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use uuid::Uuid;
use vm_system_protocol::control::{CheckFinding, CheckReport};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, ClaimKind, ClaimedRun, Fence, Incarnation, LetGo, Owner, Retention, StoreError,
};
use writer::{PublishedState, Writer, WriterShared};

/// The faults that a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Power loss: every commit is on the disk before it is acknowledged.
    #[default]
    Full,
    /// A crash of the supervisor; a power loss may lose the last commits.
    Normal,
    /// Nothing: the database ends with its process.
    Off,
}

impl Durability {
    /// `full`, `normal` or `off`, as SQLite's `synchronous` and the status call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Folder of the lock file, and of the database by default. Created (0700) if missing.
    pub state_dir: PathBuf,
    /// Where the supervisor listens; the lock file names it.
    pub socket: Option<PathBuf>,
    /// The database file; none = `vm-system.db` in the state directory.
    pub database: Option<PathBuf>,
    /// The faults that a commit survives.
    pub durability: Durability,
    /// How long to wait for another process that has the database locked.
    pub busy_timeout: Duration,
    /// Which rows are deleted when.
    pub retention: Retention,
    /// Open a database of whose log acknowledged records are lost; the log is kept.
    pub accepts_damage: bool,
}

impl StoreOptions {
    /// Makes the state directory, if it is missing, and takes its lock and that of the database: nobody else uses them from here on.
    pub fn lock(&self) -> Result<StoreLock, OpenError> {
        open::make_folder(&self.state_dir)?;
        StoreLock::acquire(&self.state_dir, self.socket.as_deref())?
            .with_database(&self.path(), self.socket.as_deref())
    }

    /// The defaults: full durability, 5 s busy timeout.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            socket: None,
            database: None,
            durability: Durability::Full,
            busy_timeout: Duration::from_secs(5),
            retention: Retention::default(),
            accepts_damage: false,
        }
    }

    /// The database file. A link is followed once, here: the lock, the log and all else are beside the file that it names, and another
    /// supervisor that opens this file by another name finds them.
    fn path(&self) -> PathBuf {
        open::follow_links(self.database.clone().unwrap_or_else(|| self.state_dir.join("vm-system.db")))
    }
}

/// Opens, checks and migrates the database, and starts its threads. Blocks on the disk.
pub fn open_sqlite(options: StoreOptions) -> Result<StoreHandle, OpenError> {
    let lock = options.lock()?;
    open_locked_sqlite(options, lock)
}

/// As [`open_sqlite`], with [`StoreOptions::lock`] of the same options.
pub fn open_locked_sqlite(options: StoreOptions, lock: StoreLock) -> Result<StoreHandle, OpenError> {
    Ok(StoreHandle::new(Arc::new(SqliteStore::open(options, lock, None, &SCHEMA)?)))
}

/// As [`open_sqlite`], as a program of another schema does.
#[cfg(test)]
pub(super) fn open_with_schema(
    options: StoreOptions,
    schema: &StoreSchema,
) -> Result<StoreHandle, OpenError> {
    let lock = options.lock()?;
    Ok(StoreHandle::new(Arc::new(SqliteStore::open(options, lock, None, schema)?)))
}

/// Opens an empty database that ends with this process, in a private folder beneath `$TMPDIR` (else `/tmp`). No retention,
/// no flushes. The folder of a killed process stays until the same user opens another temporary database.
pub fn open_temporary() -> Result<StoreHandle, OpenError> {
    let folder = TemporaryFolder::make()?;
    let retention = Retention { max_age: None, key_life: Duration::MAX, ..Retention::default() };
    let options = StoreOptions { durability: Durability::Off, retention, ..StoreOptions::new(folder.path()) };
    let lock = options.lock()?;
    Ok(StoreHandle::new(Arc::new(SqliteStore::open(options, lock, Some(folder), &SCHEMA)?)))
}

/// Parameters of connections that write.
struct DatabaseLocation {
    file: Arc<DatabaseFile>,
    durability: Durability,
    busy_timeout: Duration,
}

impl DatabaseLocation {
    /// A connection to the file that was opened first, never to another one of the same name.
    fn connect(&self) -> Result<rusqlite::Connection, rusqlite::Error> {
        let same = || match self.file.fault() {
            None => Ok(()),
            Some(fault) => {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
                Err(rusqlite::Error::SqliteFailure(code, Some(fault.to_string())))
            }
        };
        // Before, so that no log is made beside the one in use; after, in case the file was replaced meanwhile.
        same()?;
        let open = || open::writable(self.file.path(), self.durability, self.busy_timeout);
        let connection = match open() {
            Err(error) if may_pass(&error) => open()?,
            opened => opened?,
        };
        same().map(|()| connection)
    }
}

/// Between damage that a statement meets and the second look.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// Most time between two looks at a damaged database.
const LONGEST_PAUSE: Duration = Duration::from_mins(30);

struct SqliteStore {
    queue: Arc<Queue>,
    admission: Arc<Admission>,
    readers: Arc<Readers>,
    long_reads: Arc<LongReads>,
    shared: Arc<WriterShared>,
    file: Arc<DatabaseFile>,
    durability: Durability,
    writer: Mutex<Option<JoinHandle<()>>>,
    holds: Arc<Holds>,
    rounds: Rounds,
    incarnation: Incarnation,
}

impl SqliteStore {
    /// `folder` is the state directory if it is to be removed with the store.
    fn open(
        options: StoreOptions,
        lock: StoreLock,
        folder: Option<TemporaryFolder>,
        schema: &StoreSchema,
    ) -> Result<Self, OpenError> {
        let path = options.path();
        let StoreOptions { durability, busy_timeout, retention, accepts_damage, .. } = options;
        open::refuse_foreign_file(&path)?;
        let saved = path_beside(&path, saved_copy::ENDING);
        if saved.exists() {
            let is_replaced = path.exists();
            return Err(OpenError::Deleted { path, saved, is_replaced });
        }
        backup::remove_rest(&path);
        let mut log =
            second_look::opened(&path, || recovery::before_opening(&path, durability, accepts_damage))?;
        let connect = |commits, log| {
            second_look::opened(&path, || {
                let connection =
                    space::connect_with_reserve(&path, durability, busy_timeout, commits, schema)?;
                recovery::after_opening(&connection, &path, log).map(|()| connection)
            })
        };
        let connection = match connect(commit_count::in_file(&path), log) {
            Err(OpenError::OlderLog { than, .. }) if accepts_damage => {
                log = recovery::put_aside(&path, &than)?;
                connect(None, log)?
            }
            connected => connected?,
        };
        // Before the mark of this process.
        let was_killed = in_use::is_marked(&connection);
        let holds = Arc::<Holds>::default();
        let file = DatabaseFile::named(&path)
            .map_err(|error| OpenError::Unusable { path: path.clone(), detail: error.to_string() })?;
        let file = Arc::new(file);
        let admission = Arc::new(Admission::new(retention.clone()));
        let queue = Arc::new(Queue::new(Arc::clone(&admission)));
        let shared = Arc::new(WriterShared::default());
        let location = DatabaseLocation { file: Arc::clone(&file), durability, busy_timeout };
        let published = PublishedState {
            shared: Arc::clone(&shared),
            admission: Arc::clone(&admission),
            holds: Arc::clone(&holds),
        };
        let writer = Writer::new(connection, location, retention, Arc::clone(&queue), published)
            .map_err(|error| unusable(&path, &error))?;
        let last = Abandon(Arc::clone(&queue));
        let (marked, is_marked) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let _last = last;
                // Here, where nothing but the end of the process comes between it and the end of `run`, which takes the mark away.
                writer.mark();
                drop(marked);
                writer.run();
                // The lock is released after the last access to the database.
                drop(folder);
                drop(lock);
            })
            .map_err(|error| OpenError::Unusable { path: path.clone(), detail: error.to_string() })?;
        // The end of the connection: no reader holds the mark back from the file, and no commit is before it.
        let _ = is_marked.recv();
        let long_reads = Arc::new(LongReads::new(Arc::clone(&file), busy_timeout));
        let (reads, weak) = (Arc::clone(&long_reads), Arc::downgrade(&shared));
        // Cannot fail: it is set here alone.
        let _ = shared.look_again.set(Box::new(move || {
            if let Some(shared) = weak.upgrade() {
                look_again(&reads, &shared);
            }
        }));
        if open::is_checked_later(&path) {
            check_later(&long_reads, &shared);
        }
        Ok(Self {
            queue,
            admission,
            readers: Arc::new(Readers::new(Arc::clone(&file), busy_timeout, Arc::clone(&shared))),
            long_reads,
            shared,
            file,
            durability,
            writer: Mutex::new(Some(thread)),
            holds,
            rounds: Rounds::new(was_killed),
            incarnation: Incarnation(Uuid::new_v4().into_bytes()),
        })
    }
}

/// A large database is checked while it is in use: a check before the start would take too long.
fn check_later(long_reads: &Arc<LongReads>, shared: &Arc<WriterShared>) {
    let (long_reads, shared) = (Arc::clone(long_reads), Arc::clone(shared));
    let work = move || match long_reads.look_again(quick_look) {
        Look::Done(Ok(())) => tracing::info!("the structure of the database was checked"),
        Look::Damaged { what, .. } => shared.suspect(&what),
        Look::Done(Err(StoreError::Closed)) => {}
        Look::Done(Err(error)) => {
            tracing::warn!(%error, "the structure of the database cannot be checked");
        }
        Look::Unreadable(error) => tracing::warn!(error, "the structure of the database cannot be checked"),
    };
    // Without the thread, damage is reported when a query meets it.
    let _ = std::thread::Builder::new().name("store-check".to_owned()).spawn(work);
}

/// The first damage of the structure is an error of this kind.
fn quick_look(read: &LongRead<'_>) -> Result<(), StoreError> {
    match check::quick(&read.connection, &|| read.go_on())? {
        None => Ok(()),
        Some(damage) => Err(StoreError::Corrupt(damage)),
    }
}

/// Examines the database after a pause, and again after longer ones, until it is in order: SQLite reports a read error of the disk
/// (`EIO`) as damage.
fn look_again(long_reads: &Arc<LongReads>, shared: &Arc<WriterShared>) {
    let (long_reads, shared) = (Arc::clone(long_reads), Arc::clone(shared));
    let work = move || {
        let mut pause = FIRST_PAUSE;
        while long_reads.pause(pause) {
            match long_reads.look_again(quick_look) {
                Look::Done(Ok(())) => return shared.is_in_order(),
                Look::Damaged { what, .. } => drop(shared.set_fault(DatabaseFault::Damaged(what))),
                Look::Unreadable(why) => drop(shared.set_fault(DatabaseFault::Unreadable(why))),
                Look::Done(Err(error)) => tracing::warn!(%error, "the database cannot be examined"),
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    };
    // Without the thread the report stays.
    let _ = std::thread::Builder::new().name("store-check".to_owned()).spawn(work);
}

/// Closes the queue when the writer ends, so that no caller waits for ever. After a panic the process aborts: a supervisor
/// without a writer cannot work, and a new one finds every acknowledged commit.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
        self.0.abandon();
    }
}

fn unusable(path: &Path, error: &StoreError) -> OpenError {
    OpenError::Unusable { path: path.to_owned(), detail: error.to_string() }
}

async fn off_the_reactor<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(StoreError::Unavailable("it was interrupted".to_owned())))
}

impl Store for SqliteStore {
    fn submit(
        &self,
        lane: Lane,
        batch: Batch,
        urgency: Urgency,
    ) -> BoxFuture<'_, Result<Ticket, StoreError>> {
        Box::pin(self.queue.push(lane, batch, urgency))
    }

    fn is_full(&self, owner: &Owner) -> bool {
        self.admission.is_full(owner)
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The lock of the database allows one process: whatever other one was there has ended.
    fn is_live(&self, other: Incarnation) -> bool {
        other == self.incarnation
    }

    fn claim(&self, which: ClaimKind, limit: u32) -> BoxFuture<'_, Result<Vec<ClaimedRun>, StoreError>> {
        Box::pin(self.claim_some(which, limit))
    }

    fn wakes(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.sleep_until_due())
    }

    fn schedule_wakes(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.sleep_until_a_schedule_is_due())
    }

    fn first_fence(&self) -> Fence {
        holds::next_fence()
    }

    fn expect(&self, execution: ExecutionId, fence: Fence) {
        self.holds.expect(execution, fence);
    }

    fn let_go(&self, execution: ExecutionId, fence: Fence, left: LetGo) {
        self.holds.let_go(execution, fence, left);
    }

    fn status(&self) -> StoreStatus {
        StoreStatus {
            durability: self.durability.as_str(),
            queued_batches: self.queue.len(),
            bytes_used: self.shared.bytes_used(),
            bytes_free: self.shared.bytes_free(),
            gives_back: self.shared.gives_back(),
            over_quota: self.shared.over_quota(),
            failing: self.shared.failing(),
            disk_problem: self.shared.disk_problem(),
            fault: self.shared.fault().or_else(|| self.file.fault()),
            stalled_since: self.shared.stalled_since(),
        }
    }

    fn watch_session(&self, session: SessionId) -> SessionWatch {
        self.shared.watches.watch(session)
    }

    fn backup(&self) -> BoxFuture<'_, Result<File, StoreError>> {
        let (reads, file) = (Arc::clone(&self.long_reads), Arc::clone(&self.file));
        let shared = Arc::clone(&self.shared);
        let work = move || match reads.look_again(|read| backup::copy(read, file.path())) {
            Look::Done(copied) => copied,
            Look::Unreadable(why) => Err(StoreError::Unavailable(why)),
            Look::Damaged { what, result } => {
                shared.suspect(&what);
                result
            }
        };
        Box::pin(async move { off_the_reactor(work).await })
    }

    fn check(&self) -> BoxFuture<'_, Result<CheckReport, StoreError>> {
        let (reads, file) = (Arc::clone(&self.long_reads), Arc::clone(&self.file));
        let shared = Arc::clone(&self.shared);
        let work = move || {
            let look = || {
                let checked = reads.run(|read| {
                    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
                    let bytes = size(file.path()) + size(&path_beside(file.path(), "-wal"));
                    let mut report = CheckReport { ok: true, bytes, ..CheckReport::default() };
                    check::examine(&read.connection, CheckMode::EachTable, &|| read.go_on(), &mut report)?;
                    Ok(report)
                });
                match checked {
                    Ok(report) => match check::of_the_disk(&report) {
                        Some(what) => Look::Damaged { what, result: Ok(report) },
                        None => Look::Done(Ok(report)),
                    },
                    failed => Look::from_work(failed),
                }
            };
            let read = || file.read_to_the_end(&|| !reads.is_closed());
            match second_look::look_again(look, read, |time| reads.pause(time)) {
                Look::Done(checked) => checked,
                Look::Unreadable(why) => Err(StoreError::Unavailable(why)),
                Look::Damaged { result, .. } => {
                    let is_of_structure = |finding: &&CheckFinding| finding.check == check::STRUCTURE;
                    let damage =
                        result.iter().find_map(|report| report.findings.iter().find(is_of_structure));
                    if let Some(damage) = damage {
                        shared.suspect(&damage.detail);
                    }
                    result
                }
            }
        };
        Box::pin(async move { off_the_reactor(work).await })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.queue.close();
            let long_reads = Arc::clone(&self.long_reads);
            let _ = tokio::task::spawn_blocking(move || long_reads.close()).await;
            self.readers.close().await;
            let thread = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread {
                // Waits for at most one turn and one checkpoint; a panic of the thread was reported by the runtime.
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer commits the queued batches and ends by itself.
        self.queue.close();
        self.long_reads.interrupt();
    }
}
