//! A copy of the database while it is in use: everything that was committed when it begins, in a file without a name, which ends
//! with its descriptor. Where it goes from there is its reader's matter.

use super::failure::{may_pass, store_error};
use super::long_reads::LongRead;
use super::recovery::path_beside;
use super::saved_copy::copy_into;
use nix::sys::statvfs::statvfs;
use rusqlite::Connection;
use std::fs::File;
use std::io;
use std::path::Path;
use vm_system_record::StoreError;

/// The suffix that the name of a copy has while it is written.
const ENDING: &str = ".backup";
/// Space that a copy leaves free for the database itself (bytes).
const LEFT_FREE_BYTES: u64 = 64 << 20;

/// Writes a copy beside the database and returns it without a name.
pub(super) fn copy(read: &LongRead<'_>, database: &Path) -> Result<File, StoreError> {
    let path = path_beside(database, ENDING);
    enough_space(&read.connection, database)?;
    // The statement writes another database only; the connection itself was opened for reading.
    read.connection.pragma_update(None, "query_only", false).map_err(|error| store_error(&error))?;
    let copied = copy_into(&read.connection, &path).and_then(|_written| File::open(&path));
    // Removed while it is open: the copy goes with its last descriptor, also if this process is killed.
    let removed = std::fs::remove_file(&path);
    let cannot = |error: io::Error| match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(read) if may_pass(read) => store_error(read),
        _ => StoreError::Unavailable(format!("the copy cannot be written: {error}")),
    };
    let file = copied.map_err(cannot)?;
    removed.map_err(cannot)?;
    Ok(file)
}

/// Removes what a killed process has left of a copy.
pub(super) fn remove_rest(database: &Path) {
    let path = path_beside(database, ENDING);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "the rest of a backup cannot be removed");
        }
        _ => {}
    }
}

/// A copy must not use up the space of the database: its writes would fail.
fn enough_space(connection: &Connection, database: &Path) -> Result<(), StoreError> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
    let unknown =
        |error: nix::Error| StoreError::Unavailable(format!("the free space is not known: {error}"));
    let system = statvfs(folder.unwrap_or(Path::new("."))).map_err(unknown)?;
    let free = system.blocks_available().saturating_mul(system.fragment_size());
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count").map_err(|error| store_error(&error))?;
    let size = number("page_size").map_err(|error| store_error(&error))?;
    // An upper bound: the copy has no free pages.
    let needed = u64::try_from(pages.saturating_mul(size)).unwrap_or(u64::MAX);
    if free < needed.saturating_add(LEFT_FREE_BYTES) {
        return Err(StoreError::Unavailable(format!(
            "a copy needs up to {} MiB beside the database, where {} MiB are free",
            (needed + LEFT_FREE_BYTES) >> 20,
            free >> 20
        )));
    }
    Ok(())
}
