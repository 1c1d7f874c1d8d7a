//! A copy of a database whose file was deleted while it is open: a connection still reads all of it, and nobody else does.

use super::in_use;
use super::recovery::path_beside;
use rusqlite::Connection;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The suffix that the name of a copy has.
pub(super) const ENDING: &str = ".saved";

/// The copy beside the path that the database had.
#[derive(Debug)]
pub(super) struct SavedCopy {
    path: PathBuf,
    /// This process made it, and may replace it.
    is_ours: bool,
}

impl SavedCopy {
    pub(super) fn of_database(database: &Path) -> Self {
        Self { path: path_beside(database, ENDING), is_ours: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this process has made it.
    pub(super) fn is_made(&self) -> bool {
        self.is_ours
    }

    /// Writes everything that is committed. A copy that an earlier process left is not replaced.
    pub(super) fn save(&mut self, connection: &Connection) -> io::Result<()> {
        // An operator may need the earlier copy: it may be the only content of another database.
        if !self.is_ours && self.path.try_exists()? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is an earlier copy"));
        }
        let new = path_beside(&self.path, ".new");
        let saved = self.write(connection, &new);
        if saved.is_err() {
            // The error that matters is the first one.
            let _ = std::fs::remove_file(&new);
        }
        self.is_ours |= saved.is_ok();
        saved
    }

    fn write(&self, connection: &Connection, new: &Path) -> io::Result<()> {
        // Flushed before the rename: after a power cut the name means the earlier copy or a whole one.
        copy_into(connection, new)?.sync_all()?;
        std::fs::rename(new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The folder, too: the new name is in it.
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// Writes everything that is committed into a file of our own, which is not flushed yet.
pub(super) fn copy_into(connection: &Connection, new: &Path) -> io::Result<File> {
    let name = new.to_str().ok_or_else(|| io::Error::other("its path is no UTF-8"))?;
    // SQLite writes into an empty file, which is private before it has content.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(new)?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(io::Error::other)?;
    // A marked database without its log would be refused, and a copy has no log.
    in_use::unmark_copy(new).map_err(io::Error::other)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::SavedCopy;
    use rusqlite::Connection;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn copy_is_private_and_replaces_only_a_copy_of_its_own_process() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let database = folder.path().join("t.db");
        let connection = Connection::open(&database).expect("a new database");
        connection
            .execute_batch("PRAGMA journal_mode = wal; PRAGMA user_version = 11; CREATE TABLE t (a); CREATE TABLE meta (key)")
            .expect("new");
        std::fs::remove_file(&database).expect("ours");
        let mut saved = SavedCopy::of_database(&database);
        for rows in 1..=2 {
            connection.execute("INSERT INTO t VALUES (1)", []).expect("the file is still open");
            saved.save(&connection).expect("the folder is ours");
            let copy = Connection::open(saved.path()).expect("a database");
            let found = copy.query_row(
                "SELECT count(*), (SELECT user_version FROM pragma_user_version) FROM t",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            );
            assert_eq!(found, Ok((rows, 11)));
        }
        let mode = std::fs::metadata(saved.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = std::fs::read(saved.path()).expect("there");
        SavedCopy::of_database(&database).save(&connection).expect_err("it is of another process");
        assert_eq!(std::fs::read(saved.path()).expect("there"), before);
        assert!(!folder.path().join("t.db.saved.new").exists());
    }
}
