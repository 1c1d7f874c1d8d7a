//! A database file or log that is deleted or moved while it is open: reported, and its content saved.

use super::Writer;
use crate::DatabaseFault;
use std::time::{Duration, Instant};

/// A deleted database that cannot be saved is tried again after this time.
const SAVE_AGAIN: Duration = Duration::from_mins(1);

impl Writer {
    /// Reports, once, that the database file is missing, or that it is back; saves the content of a deleted one.
    pub(super) fn watch(&mut self, now: Instant) {
        let fault = self.location.file.fault();
        let is_log = |fault: &Option<DatabaseFault>| matches!(fault, Some(DatabaseFault::LogMissing { .. }));
        if is_log(&fault) && is_log(&self.missing) {
            if let Some(DatabaseFault::LogMissing { is_copied: false }) = fault {
                self.copy_all_back();
            }
            return;
        }
        if fault != self.missing {
            let path = self.location.file.path().display();
            if let Some(fault) = &fault {
                tracing::error!(path = %path, hint = fault.hint(), "{fault}");
            } else {
                tracing::warn!(path = %path, "the database file and its log are back");
            }
            self.missing = fault;
            self.location.file.note_log_copied(false);
            if is_log(&self.missing) {
                self.copy_all_back();
            }
        }
        let is_deleted = matches!(self.missing, Some(DatabaseFault::Deleted { .. }));
        if is_deleted && !self.saved.is_made() && now >= self.save_at {
            self.save();
            self.save_at = now + SAVE_AGAIN;
        }
    }

    /// The file of the database has no name any more: this process alone can still read it.
    pub(super) fn save(&mut self) {
        let Some(connection) = &self.connection else { return };
        let result = self.saved.save(connection);
        let (copy, pid) = (self.saved.path().display(), std::process::id());
        match result {
            Ok(()) => tracing::error!(
                copy = %copy,
                "the content of the deleted database was saved: stop the supervisor, then rename the copy to the database"
            ),
            Err(error) => tracing::error!(
                copy = %copy,
                %error,
                "the content of the deleted database cannot be saved, which is tried again every minute; copies of the descriptors \
                 in /proc/{pid}/fd that `ls -l` shows as the deleted database and its -wal file have it too"
            ),
        }
    }

    /// The log has no name, so the next process would not find it: everything goes into the database file, at each turn again.
    /// Waits for readers as for locks; a start after a kill before that finds the index of the log, and refuses.
    pub(super) fn copy_all_back(&self) {
        let Some(connection) = &self.connection else { return };
        let copied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        let is_copied = match copied {
            Ok(is_busy) => !is_busy,
            Err(error) => {
                tracing::error!(%error, "the log of the database has no name, and cannot be copied into the database file");
                false
            }
        };
        let file = &self.location.file;
        let before = file.fault();
        file.note_log_copied(is_copied);
        if is_copied && before == Some(DatabaseFault::LogMissing { is_copied: false }) {
            tracing::warn!(path = %file.path().display(), "the content of the log was copied into the database file");
        }
    }
}
