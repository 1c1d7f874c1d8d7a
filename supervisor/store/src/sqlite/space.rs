//! Space that is kept back, so that a database can be opened on a full file system, and what is wrong with a file system.
//!
//! SQLite makes the index of the log (`-shm`) anew when the first connection opens a database. Where there is no space for it the
//! supervisor could not start, although its log has the space of the next records, and live sessions of an earlier one would end.

use super::Durability;
use super::open::first_connection;
use super::recovery::path_beside;
use super::schema::StoreSchema;
use crate::error::OpenError;
use nix::fcntl::OFlag;
use nix::sys::statvfs::{FsFlags, statvfs};
use rusqlite::Connection;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Size of the file that is kept: the index of a log of 64 MiB (bytes).
const RESERVE_BYTES: usize = 128 << 10;

/// As [`first_connection`], with the space that is kept back if it is needed.
pub(super) fn connect_with_reserve(
    path: &Path,
    durability: Durability,
    busy_timeout: Duration,
    commits: Option<i64>,
    schema: &StoreSchema,
) -> Result<Connection, OpenError> {
    let connect = || first_connection(path, durability, busy_timeout, commits, schema);
    let connection = match connect() {
        // SQLite uses its space: no other process can take it before.
        Err(OpenError::Unusable { .. })
            if fs::rename(path_beside(path, "-reserve"), path_beside(path, "-shm")).is_ok() =>
        {
            tracing::warn!(path = %path.display(), "the database is opened with the space that is kept for a full file system");
            connect()?
        }
        connected => connected?,
    };
    if durability != Durability::Off {
        keep_reserve(path);
    }
    Ok(connection)
}

/// Makes the file if it is missing. Without the space for it there may be some later.
fn keep_reserve(database: &Path) {
    let path = path_beside(database, "-reserve");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    if let Ok(mut file) = options.open(&path)
        && let Err(error) = file.write_all(&vec![0; RESERVE_BYTES])
    {
        tracing::debug!(%error, "no space is kept for a full file system");
        let _ = fs::remove_file(&path);
    }
}

/// Whether the file system of a file has so much space (bytes).
pub(super) fn has_space(path: &Path, bytes: u64) -> bool {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    statvfs(folder).is_ok_and(|system| {
        system.blocks_available().saturating_mul(system.fragment_size()) >= bytes.saturating_add(64 << 20)
    })
}

/// An error of a file that cannot be used, with what is wrong with its file system.
pub(crate) fn with_problem(path: &Path, error: &dyn Display) -> String {
    match problem(path) {
        Some(problem) => format!("{error}; {problem}"),
        None => error.to_string(),
    }
}

/// The fault of the file system of a file that cannot be used, and the remedy.
pub(super) fn problem(path: &Path) -> Option<String> {
    // The folder may be one that could not be made.
    let folders =
        path.ancestors().skip(1).map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
    let system = folders.into_iter().find_map(|folder| statvfs(folder).ok())?;
    if system.flags().contains(FsFlags::ST_RDONLY) {
        return Some(
            "its file system is read-only: remount it for writing, after a check if it was damaged"
                .to_owned(),
        );
    }
    // Some have no table of inodes: they report none at all.
    if system.files() > 0 && system.files_available() == 0 {
        return Some(
            "its file system has no inode left: delete files there, or give it more inodes".to_owned(),
        );
    }
    let free = system.blocks_available().saturating_mul(system.fragment_size());
    (free < RESERVE_BYTES as u64).then(|| {
        format!("its file system is full ({free} bytes are free): delete files there, or enlarge it")
    })
}
