//! One supervisor per state directory: an advisory lock that the kernel drops with its holder.

use super::error::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest content that is read (bytes).
const CONTENT_BYTES: u64 = 8_192;

/// The right to use a state directory, until it is dropped or the process ends. The file stays: removing it would let two
/// holders lock two different files of the same name.
#[derive(Debug)]
pub struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Takes `STATE_DIR/lock`, or returns who holds it. Its lines are the pid of the holder and the path of its socket, for the
    /// messages of others and for clients.
    pub fn acquire(state_dir: &Path, socket: Option<&Path>) -> Result<Self, OpenError> {
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
                let _ = (&mut file).take(CONTENT_BYTES).read_to_string(&mut text);
                let mut lines = text.lines();
                return Err(OpenError::InUse {
                    path: state_dir.to_owned(),
                    pid: lines.next().and_then(|line| line.trim().parse().ok()),
                    socket: lines.next().map(PathBuf::from),
                });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // As above: a full disk must not keep a supervisor from starting.
        let mut content = format!("{}\n", std::process::id()).into_bytes();
        if let Some(socket) = socket {
            content.extend(socket.as_os_str().as_bytes());
            content.push(b'\n');
        }
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(&content));
        Ok(Self { _file: file })
    }
}
