//! Opening: permissions, pragmas, checks of the file.

use super::failure::{READ_ERROR, is_read_error, store_error};
use super::free_space::{DatabasePages, has_pointer_maps};
use super::recovery::path_beside;
use super::schema::{APPLICATION_ID, StoreSchema, foreign};
use super::{Durability, commit_count, new_database, space};
use crate::error::OpenError;
use nix::fcntl::OFlag;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt as _, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vm_system_record::StoreError;

/// Statements that each connection keeps prepared.
const STATEMENTS: usize = 128;
/// Databases up to this size are checked when they are opened (bytes); larger ones while they are in use.
const FULL_CHECK_BYTES: u64 = 16 << 20;
/// Databases without pointer maps are written anew up to this size of what is used (bytes): less than a second.
const REWRITTEN_BYTES: u64 = 64 << 20;
/// Space of the log that is kept for reuse when a checkpoint has emptied it (bytes).
const WAL_KEPT_BYTES: u32 = 32 << 20;
/// The header of a database file, its beginning, and where the application id is.
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const APPLICATION_ID_AT: std::ops::Range<usize> = 68..72;
/// Size of a new log (bytes): larger than it usually is between two checkpoints (`wal.rs`).
pub(super) const WAL_FILLED_BYTES: u64 = 6 << 20;

pub(super) fn make_folder(path: &Path) -> Result<(), OpenError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => OpenError::Denied { path: path.to_owned() },
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            OpenError::NotAFolder { path: path.to_owned() }
        }
        _ => OpenError::Unusable { path: path.to_owned(), detail: space::with_problem(path, &error) },
    })?;
    let about = std::fs::metadata(path)
        .map_err(|error| OpenError::Unusable { path: path.to_owned(), detail: error.to_string() })?;
    let own = nix::unistd::geteuid().as_raw();
    match not_private(about.uid(), about.mode(), own) {
        Some(why) => Err(OpenError::NotPrivate { path: path.to_owned(), why }),
        None => Ok(()),
    }
}

/// Links in a chain that are followed, as by the kernel.
const LINKS: usize = 40;

/// The file that a chain of links leads to, whether it exists or not.
pub(super) fn follow_links(mut path: PathBuf) -> PathBuf {
    for _ in 0..LINKS {
        if let Ok(real) = std::fs::canonicalize(&path) {
            return real;
        }
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let Ok(target) = std::fs::read_link(&path) else {
            // A file that does not exist yet.
            return match (std::fs::canonicalize(folder), path.file_name()) {
                (Ok(folder), Some(name)) => folder.join(name),
                _ => path,
            };
        };
        path = folder.join(target);
    }
    path
}

/// Refuses what is no file, which could be waited for without end, and a database of another program, before anything is changed.
pub(super) fn refuse_foreign_file(path: &Path) -> Result<(), OpenError> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    if !found.is_file() {
        return Err(OpenError::Unusable {
            path: path.to_owned(),
            detail: "it is not a regular file".to_owned(),
        });
    }
    // A new database may have its number in the log alone.
    let has_log = std::fs::metadata(path_beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let mut header = [0; HEADER_BYTES];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut header, 0));
    if !has_log
        && read.is_ok()
        && header.starts_with(MAGIC)
        && header[APPLICATION_ID_AT] != APPLICATION_ID.to_be_bytes()
    {
        return Err(foreign(path));
    }
    Ok(())
}

/// Why another user than `own` and root may replace the files of a folder.
fn not_private(owner: u32, mode: u32, own: u32) -> Option<String> {
    if owner != own && owner != 0 {
        return Some(format!("belongs to uid {owner}, and the supervisor runs as uid {own}"));
    }
    (mode & 0o022 != 0)
        .then(|| format!("has the mode {:04o}, with which others may write to it", mode & 0o7777))
}

/// Creates or opens the database, checks it and migrates it to the newest schema. `commits` is the count of commits in the file alone.
pub(super) fn first_connection(
    path: &Path,
    durability: Durability,
    busy_timeout: Duration,
    commits: Option<i64>,
    schema: &StoreSchema,
) -> Result<Connection, OpenError> {
    // Before SQLite opens it: the log and the index inherit the permissions of the file.
    let is_new = make_private(path)?;
    if is_new {
        new_database::write(path, schema.new, durability)?;
    }
    // A database of another mode, such as a saved copy: beside it, SQLite uses a log that is there without recording the mode in the
    // file, which could not be opened without that log.
    let has_log_mode = has_log_mode(path);
    let fills = durability == Durability::Full;
    if fills && has_log_mode {
        fill_log(path);
    }
    let judged = |error: &rusqlite::Error| judge(path, error);
    let connect = || writable(path, durability, busy_timeout).map_err(|error| judged(&error));
    let mut connection = connect()?;
    // Before the check: the file of another program, or of a later version, is refused by its name and not as damaged.
    let found = schema.identify(&connection, path)?;
    if let Some(missing) = commit_count::missing_from_log(commits, &connection) {
        let log = path_beside(path, "-wal");
        return Err(OpenError::OlderLog { path: log, than: path.to_owned(), commits: Some(missing) });
    }
    // Before anything is written.
    if !is_new {
        check(&connection, path)?;
    }
    // Behind the check: a migration of a damaged database could not be undone.
    if found != schema.version() {
        schema.migrate(&mut connection, found).map_err(|error| judged(&error))?;
    }
    if !is_new {
        make_shrinkable(&connection, path);
    }
    // The file has its mode only when the log was copied back, so it is closed and opened once more.
    if fills && !has_log_mode {
        let closed = copy_back_when_closed(&connection);
        drop(connection);
        closed.map_err(|error| judged(&error))?;
        fill_log(path);
        connection = connect()?;
    }
    Ok(connection)
}

/// The file is 0600 before SQLite opens it; its log and index files inherit these permissions. Returns whether it is empty.
fn make_private(path: &Path) -> Result<bool, OpenError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .and_then(|file| {
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(file.metadata()?.len() == 0)
        })
        .map_err(|error| OpenError::Unusable {
            path: path.to_owned(),
            detail: space::with_problem(path, &error),
        })
}

/// Whether the file's header says that it has a log (`wal`): bytes 18 and 19 of the format.
pub(super) fn has_log_mode(path: &Path) -> bool {
    let mut versions = [0; 2];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut versions, 18));
    read.is_ok() && versions == [2, 2]
}

/// Gives an empty log its size: where each commit is flushed, overwriting a file is faster than enlarging it. Zeros are not a valid
/// log, so SQLite begins it anew. Without the space for it only speed is lost.
fn fill_log(path: &Path) {
    let filled = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path_beside(path, "-wal"))
        .and_then(|log| {
            if log.metadata()?.len() > 0 {
                return Ok(());
            }
            // In small pieces: after a large buffer is freed, glibc keeps more free memory (mallopt(3), M_MMAP_THRESHOLD).
            let zeros = [0; 16 << 10];
            let filled =
                (0..WAL_FILLED_BYTES).step_by(zeros.len()).try_for_each(|at| log.write_all_at(&zeros, at));
            filled.or_else(|_| log.set_len(0))?;
            // Flushed now: otherwise the first commits would flush all of these zeros.
            log.sync_all()?;
            // SQLite flushes the folder of a log that it makes itself.
            File::open(path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")))?
                .sync_all()
        });
    if let Err(error) = filled {
        tracing::debug!(%error, "the store's log keeps its size");
    }
}

/// A connection that may write. Closing it leaves the log as it is: a start that is refused has changed nothing, and the database
/// may be marked as one in use, whose log must be there (`in_use.rs`).
pub(super) fn writable(
    path: &Path,
    durability: Durability,
    busy_timeout: Duration,
) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    // First: each error from here on closes the connection.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    common(&connection, busy_timeout)?;
    // Before the mode, so that without durability a file is not flushed when its mode changes.
    connection.pragma_update(None, "synchronous", durability.as_str())?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Checkpoints are made by `wal.rs`, never inside a caller's commit.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    Ok(connection)
}

/// Closing a connection copies the log into the file and removes it, if it is the last one.
pub(super) fn copy_back_when_closed(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
}

/// A connection that may only read.
pub(super) fn read_only(path: &Path, busy_timeout: Duration) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE,
    )?;
    common(&connection, busy_timeout)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn common(connection: &Connection, busy_timeout: Duration) -> Result<(), rusqlite::Error> {
    // First: the statements below may meet the lock of another connection.
    connection.busy_timeout(busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    // Plans do not depend on bound values: otherwise SQLite compiles a statement again for each value that may have
    // mattered, which is most of the cost of a small query.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A damaged schema must not run code of its own.
    connection.pragma_update(None, "trusted_schema", false)
}

/// Writes a database without pointer maps anew, such as one that was read from a dump, if that takes no more than a moment: then it gives
/// its free pages back.
fn make_shrinkable(connection: &Connection, path: &Path) {
    let rewritten = has_pointer_maps(connection).and_then(|is_shrinkable| {
        if is_shrinkable {
            return Ok(());
        }
        let used = DatabasePages::measure(connection).used_bytes();
        if used > REWRITTEN_BYTES || !space::has_space(path, 4 * used) {
            tracing::info!(
                path = %path.display(),
                used,
                "free space of the database file is used again, but not given back: it has no pointer maps, and is too large, or the disk \
                 too full, to be written anew at the start (docs/durable-state.md)"
            );
            return Ok(());
        }
        connection.execute_batch("PRAGMA auto_vacuum = incremental; VACUUM; PRAGMA wal_checkpoint(PASSIVE)")
    });
    if let Err(error) = rewritten {
        tracing::warn!(%error, path = %path.display(), "free space of the database file is not given back");
    }
}

/// Whether the database is too large to be checked before it is used.
pub(super) fn is_checked_later(path: &Path) -> bool {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len()) > FULL_CHECK_BYTES
}

fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    if is_checked_later(path) {
        return Ok(());
    }
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| judge(path, &error))?;
    if verdict == "ok" { Ok(()) } else { Err(OpenError::Corrupt { path: path.to_owned(), detail: verdict }) }
}

/// The error of a start, for the operator. About one that a disk may have caused, a second look decides (`second_look.rs`).
pub(super) fn judge(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Locked { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            OpenError::Corrupt { path, detail: "damaged".to_owned() }
        }
        _ if is_read_error(error) => OpenError::ReadError { path, detail: READ_ERROR.to_owned() },
        _ => match store_error(error) {
            StoreError::Corrupt(detail) => OpenError::Corrupt { path, detail },
            other => {
                let detail = space::with_problem(&path, &other);
                OpenError::Unusable { path, detail }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{WAL_FILLED_BYTES, first_connection};
    use crate::Durability;
    use crate::sqlite::schema::SCHEMA;
    use std::time::Duration;

    #[test]
    fn log_that_is_flushed_with_each_commit_has_its_size_before_the_first_one() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let log = folder.path().join("s.db-wal");
        let size = || std::fs::metadata(&log).expect("a log").len();
        for _ in 0..2 {
            let path = folder.path().join("s.db");
            let connection = first_connection(&path, Durability::Full, Duration::ZERO, None, &SCHEMA)
                .expect("an empty folder");
            assert_eq!(size(), WAL_FILLED_BYTES);
            connection.execute_batch("INSERT INTO meta VALUES (hex(randomblob(8)), x'')").expect("our table");
            assert_eq!(size(), WAL_FILLED_BYTES, "a commit writes into it");
        }
        let path = folder.path().join("s.db");
        let connection = first_connection(&path, Durability::Full, Duration::ZERO, None, &SCHEMA)
            .expect("our own database");
        let rows = connection.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0));
        assert_eq!(rows, Ok(2));
    }
}
