//! The database file and its log as the kernel sees them: whether their paths still name the files that are open. Never opens its content: closing a
//! descriptor of it would drop SQLite's locks (`fcntl(2)`); one that only names a file (`O_PATH`) has none.

use super::open;
use super::recovery::path_beside;
use super::second_look;
use crate::DatabaseFault;
use rusqlite::Connection;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use vm_system_record::StoreError;

/// The file that was opened, whatever happens to its path.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    opened: File,
    identity: (u64, u64),
    log_path: PathBuf,
    log_identity: (u64, u64),
    /// The content of a log without a name is in the database file.
    is_log_copied: AtomicBool,
    /// Open for reading, once that was needed, as long as this value: closing it drops SQLite's locks.
    content: OnceLock<File>,
    /// Held by the one that reads: of two that open it at once, one would be closed.
    opening: Mutex<()>,
}

impl DatabaseFile {
    /// Of the file that the path names now, while a connection has its log open.
    pub(super) fn named(path: &Path) -> io::Result<Self> {
        let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_PATH).open(path)?;
        let found = identity(&opened.metadata()?);
        let log_path = path_beside(path, "-wal");
        // While a connection has it open, no other file gets its number.
        let log_identity = identity(&std::fs::metadata(&log_path)?);
        let is_log_copied = AtomicBool::new(false);
        let (path, content) = (path.to_owned(), OnceLock::new());
        Ok(Self {
            path,
            opened,
            identity: found,
            log_path,
            log_identity,
            is_log_copied,
            content,
            opening: Mutex::default(),
        })
    }

    /// Reads the file and its log as the kernel has them, unless `go_on` ends that: an error is the disk's.
    pub(super) fn read_to_the_end(&self, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        let _turn = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let content = if let Some(content) = self.content.get() {
            content
        } else {
            let opened = File::open(&self.path)?;
            if identity(&opened.metadata()?) != self.identity {
                return Ok(());
            }
            self.content.get_or_init(|| opened)
        };
        second_look::read_to_the_end(content, go_on)?;
        second_look::read_log(&self.path, go_on)
    }

    /// To be called after each attempt to copy a log without a name into the database file, and with false when the log is back.
    pub(super) fn note_log_copied(&self, is_copied: bool) {
        self.is_log_copied.store(is_copied, Ordering::Relaxed);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A connection for queries to the file that the writer has open.
    pub(super) fn reader(
        &self,
        busy_timeout: Duration,
        failed: impl FnOnce(rusqlite::Error) -> StoreError,
    ) -> Result<Connection, StoreError> {
        let fault = || self.fault().map_or(Ok(()), |fault| Err(StoreError::Unavailable(fault.to_string())));
        fault()?;
        let connection = open::read_only(&self.path, busy_timeout);
        fault()?;
        connection.map_err(failed)
    }

    /// A connection that is opened now would make a new log beside the one that the others use.
    fn log_fault(&self) -> Option<DatabaseFault> {
        let is_missing = match std::fs::metadata(&self.log_path) {
            Ok(found) => identity(&found) != self.log_identity,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        is_missing
            .then(|| DatabaseFault::LogMissing { is_copied: self.is_log_copied.load(Ordering::Relaxed) })
    }

    /// The fault if the path names another file, or none: two queries of the kernel at most.
    pub(super) fn fault(&self) -> Option<DatabaseFault> {
        let is_replaced = match std::fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => return self.log_fault(),
            Ok(_) => true,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                false
            }
            // Whatever this is, the file that is open may be there.
            Err(_) => return None,
        };
        let has_name = self.opened.metadata().is_ok_and(|file| file.nlink() > 0);
        Some(match (is_replaced, has_name) {
            (_, true) => DatabaseFault::Moved { is_replaced },
            (_, false) => DatabaseFault::Deleted { is_replaced },
        })
    }
}

/// Device and inode.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}
