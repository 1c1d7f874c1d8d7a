//! One connection with its limits, and the names in the workspace's folder.

use super::error::{from_sqlite, refused};
use super::{guard, sys};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, SFlag, fstat};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vm_system_protocol::broker::DatabaseTerms;
use vm_system_protocol::limits::{SQL_BYTES, SQL_PARAMETERS};
use vm_system_protocol::worker::HostError;

/// A database in memory.
const MEMORY: &str = ":memory:";
/// Most databases of one workspace.
const FILES: usize = 16;
/// Longest wait for a lock of another session (milliseconds).
const BUSY_MS: u64 = 1_000;
/// Instructions of SQLite's virtual machine between two checks of the deadline: well below a millisecond.
const INSTRUCTIONS: i32 = 2_000;
/// Memory that SQLite may use in this process (bytes).
const MEMORY_BYTES: u64 = 192 << 20;

/// An open database.
pub(super) struct OpenDatabase {
    pub(super) connection: Connection,
    pub(super) deadline: Arc<StatementDeadline>,
    terms: DatabaseTerms,
    /// Most pages, as SQLite has it now; none: not set yet.
    max_pages: Option<u64>,
    /// A statement of ours runs, for which the authorizer permits everything.
    own_statement: Arc<AtomicBool>,
}

/// The deadline of the running statement, which SQLite's progress handler checks.
pub(super) struct StatementDeadline {
    epoch: Instant,
    /// Microseconds since `epoch`.
    at: AtomicU64,
    passed: AtomicBool,
}

impl StatementDeadline {
    fn new() -> Self {
        Self { epoch: Instant::now(), at: AtomicU64::new(u64::MAX), passed: AtomicBool::new(false) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Begins a call that may take at most `time`.
    pub(super) fn begin(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.at.store(self.now().saturating_add(time), Ordering::Relaxed);
        self.passed.store(false, Ordering::Relaxed);
    }

    /// Whether the deadline has passed; then the statement is interrupted.
    fn is_over(&self) -> bool {
        let over = self.now() >= self.at.load(Ordering::Relaxed);
        if over {
            self.passed.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Whether the deadline has interrupted a statement since [`Self::begin`].
    pub(super) fn has_passed(&self) -> bool {
        self.passed.load(Ordering::Relaxed)
    }
}

impl OpenDatabase {
    /// Opens a database; creates its file if that does not exist and the terms allow writing.
    pub(super) fn new(database: &str, has_folder: bool, terms: DatabaseTerms) -> Result<Self, HostError> {
        let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = if database == MEMORY {
            flags |= OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            Connection::open_in_memory_with_flags(flags)
        } else {
            if !has_folder || !sys::register() {
                let why = "this session has no folder for database files; use ':memory:'";
                return Err(refused("SQLITE_CANTOPEN", why));
            }
            let is_there = is_database(database)?;
            if !is_there && !terms.read_only && databases()? >= FILES {
                let why = format!("the workspace has {FILES} databases already");
                return Err(refused("ERR_DATABASE_LIMIT", &why));
            }
            flags |= if terms.read_only {
                OpenFlags::SQLITE_OPEN_READ_ONLY
            } else {
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
            };
            Connection::open_with_flags_and_vfs(database, flags, sys::NAME)
        };
        let (deadline, own_statement) = (Arc::new(StatementDeadline::new()), Arc::<AtomicBool>::default());
        let connection = connection.map_err(|error| from_sqlite(&error, &deadline, terms))?;
        deadline.begin(Duration::from_millis(u64::from(terms.timeout_ms)));
        configure(&connection, &deadline, &own_statement, terms)
            .map_err(|error| from_sqlite(&error, &deadline, terms))?;
        Ok(Self { connection, deadline, terms, max_pages: None, own_statement })
    }

    /// Whether the database was opened with these limits.
    pub(super) fn fits(&self, terms: DatabaseTerms) -> bool {
        (self.terms.read_only, self.terms.max_database_bytes, self.terms.max_result_bytes)
            == (terms.read_only, terms.max_database_bytes, terms.max_result_bytes)
    }

    /// Sets the most pages for a call: what the rights permit, and no more than it may grow by. Costs nothing while the rights are
    /// the lower limit.
    pub(super) fn limit_growth(&mut self, terms: DatabaseTerms) -> Result<(), HostError> {
        let is_limited = terms.growth_bytes < terms.max_database_bytes
            && !self.connection.path().is_none_or(str::is_empty);
        if terms.read_only || (!is_limited && self.max_pages == Some(u64::MAX)) {
            return Ok(());
        }
        self.deadline.begin(Duration::from_millis(u64::from(terms.timeout_ms)));
        self.own_statement.store(true, Ordering::Relaxed);
        let set = self.set_max_pages(terms, is_limited);
        self.own_statement.store(false, Ordering::Relaxed);
        set.map_err(|error| from_sqlite(&error, &self.deadline, terms))
    }

    fn set_max_pages(&mut self, terms: DatabaseTerms, is_limited: bool) -> rusqlite::Result<()> {
        let page_bytes = page_bytes(&self.connection)?;
        let permitted = terms.max_database_bytes / page_bytes;
        let growth = if is_limited {
            let pages: i64 = self.connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            u64::try_from(pages).unwrap_or(0).saturating_add(terms.growth_bytes / page_bytes)
        } else {
            u64::MAX
        };
        // SQLite takes no less than the present number.
        let most = permitted.min(growth).max(1);
        self.connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(()))?;
        self.max_pages = Some(growth);
        Ok(())
    }

    /// Rolls back an open transaction; `false`: the rollback failed, and the connection must be closed.
    pub(super) fn roll_back(&mut self) -> bool {
        if self.connection.is_autocommit() {
            return true;
        }
        self.deadline.begin(Duration::from_secs(5));
        let _ = self.connection.execute_batch("ROLLBACK");
        self.connection.is_autocommit()
    }
}

fn configure(
    connection: &Connection,
    deadline: &Arc<StatementDeadline>,
    own_statement: &Arc<AtomicBool>,
    terms: DatabaseTerms,
) -> rusqlite::Result<()> {
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
    ] {
        connection.set_db_config(config, value)?;
    }
    let value_bytes = i32::try_from(terms.max_result_bytes).unwrap_or(i32::MAX);
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, value_bytes.max(SQL_BYTES as i32)),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES as i32),
        (Limit::SQLITE_LIMIT_COLUMN, 500),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, SQL_PARAMETERS as i32),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.busy_timeout(Duration::from_millis(BUSY_MS.min(u64::from(terms.timeout_ms))))?;
    let over = Arc::clone(deadline);
    connection.progress_handler(INSTRUCTIONS, Some(move || over.is_over()))?;
    connection.execute_batch(&format!(
        "PRAGMA hard_heap_limit = {MEMORY_BYTES}; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;
         PRAGMA cell_size_check = ON; PRAGMA cache_size = -8192; PRAGMA foreign_keys = ON;
         PRAGMA synchronous = FULL;"
    ))?;
    if !terms.read_only {
        // Of a new database, so that `PRAGMA incremental_vacuum` returns its free pages to the file system.
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        // A rollback journal and no WAL: several brokers use the file, and they share no memory.
        connection.query_row("PRAGMA journal_mode = TRUNCATE", [], |_| Ok(()))?;
    }
    sys::drop_modules(connection)?;
    let own_statement = Arc::clone(own_statement);
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if own_statement.load(Ordering::Relaxed) { Authorization::Allow } else { guard::authorize(context) }
    }))
}

fn page_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or(4_096).max(512))
}

/// Whether a regular file of this name exists. Only brokers write to the folder, so any other kind of file, or a file with
/// several hard links, is an error.
fn is_database(name: &str) -> Result<bool, HostError> {
    match stat(name) {
        Ok(stat) if is_regular(&stat) && stat.st_nlink == 1 => Ok(true),
        Err(Errno::ENOENT) => Ok(false),
        _ => Err(refused("SQLITE_CANTOPEN", "the file of this name is not a database")),
    }
}

fn is_regular(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
}

fn stat(name: &str) -> Result<FileStat, Errno> {
    fstat(&beneath(name, OFlag::O_PATH | OFlag::O_NOFOLLOW)?)
}

fn beneath(name: &str, flags: OFlag) -> Result<std::os::fd::OwnedFd, Errno> {
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_BENEATH);
    openat2(AT_FDCWD, name, how)
}

/// The number of the workspace's databases.
fn databases() -> Result<usize, HostError> {
    let count = || -> Result<usize, Errno> {
        let mut folder = Dir::from_fd(beneath(".", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?)?;
        let mut count = 0;
        for entry in folder.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            count += usize::from(!name.starts_with(b".") && !name.ends_with(b"-journal"));
        }
        Ok(count)
    };
    count().map_err(|_| refused("SQLITE_CANTOPEN", "the workspace's folder cannot be read"))
}
