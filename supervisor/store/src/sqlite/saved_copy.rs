//! A copy of a database whose file was deleted while it is open: a connection still reads all of it, and nobody else does.

use super::recovery::beside;
use rusqlite::Connection;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What the name of a copy adds to that of the database.
pub(super) const ENDING: &str = ".saved";

/// The copy beside the path that the database had.
#[derive(Debug)]
pub(super) struct SavedCopy {
    path: PathBuf,
    /// This process made it, and may replace it.
    is_ours: bool,
}

impl SavedCopy {
    pub(super) fn of(database: &Path) -> Self {
        Self { path: beside(database, ENDING), is_ours: false }
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
        if !self.is_ours && self.path.try_exists()? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is an earlier copy"));
        }
        let new = beside(&self.path, ".new");
        let saved = self.write(connection, &new);
        if saved.is_err() {
            // The error that matters is the first one.
            let _ = std::fs::remove_file(&new);
        }
        self.is_ours |= saved.is_ok();
        saved
    }

    fn write(&self, connection: &Connection, new: &Path) -> io::Result<()> {
        let name = new.to_str().ok_or_else(|| io::Error::other("its path is no UTF-8"))?;
        // SQLite writes into an empty file, which is private before it has content.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(new)?;
        connection.execute("VACUUM INTO ?1", [name]).map_err(io::Error::other)?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}
