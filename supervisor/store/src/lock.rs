//! One supervisor per state directory: an advisory lock that the kernel drops with its holder.

use super::error::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The right to use a state directory, until it is dropped or the process ends. The file stays: removing it would let two
/// holders lock two different files of the same name.
#[derive(Debug)]
pub struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Takes `STATE_DIR/lock`, or returns who holds it.
    pub fn acquire(state_dir: &Path) -> Result<Self, OpenError> {
        let path = state_dir.join("lock");
        let unusable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => OpenError::Denied { path: path.clone() },
            _ => OpenError::Unusable { path: path.clone(), detail: format!("cannot be locked: {error}") },
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Only for the message: a holder that has not written its pid yet is still a holder.
                let _ = (&mut file).take(32).read_to_string(&mut text);
                return Err(OpenError::InUse { path: state_dir.to_owned(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // As above: a full disk must not keep a supervisor from starting.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}
