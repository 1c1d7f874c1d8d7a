//! The database file as the kernel sees it: whether its path still names the file that is open. Never opens its content: closing a
//! descriptor of it would drop SQLite's locks (`fcntl(2)`); one that only names a file (`O_PATH`) has none.

use crate::DatabaseFault;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The file that was opened, whatever happens to its path.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    opened: File,
    identity: (u64, u64),
}

impl DatabaseFile {
    /// Of the file that the path names now.
    pub(super) fn named(path: &Path) -> io::Result<Self> {
        let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_PATH).open(path)?;
        let identity = identity(&opened.metadata()?);
        Ok(Self { path: path.to_owned(), opened, identity })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path names another file, or none: two queries of the kernel at most.
    pub(super) fn fault(&self) -> Option<DatabaseFault> {
        let is_replaced = match std::fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => return None,
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
