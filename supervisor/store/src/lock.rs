//! One supervisor per state directory and per database: advisory locks that the kernel drops with their holder.

use super::error::OpenError;
use super::sqlite::space::with_problem;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest content that is read (bytes).
const CONTENT_BYTES: u64 = 8_192;

/// Whether a process has exited but for threads that cannot: those keep its files, and its locks.
fn is_exiting(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state_of(&stat) == Some('Z')
}

/// The state in a line of `/proc/PID/stat`, after the name in parentheses, which may contain anything.
fn state_of(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The right to use a state directory, and a database, until it is dropped or the process ends. The files stay: removing them would
/// let two holders lock two different files of the same name.
#[derive(Debug)]
pub struct StoreLock {
    _state_dir: File,
    _database: Option<File>,
}

impl StoreLock {
    /// Takes `STATE_DIR/lock`, or returns who holds it. Its lines are the pid of the holder and the path of its socket, for the
    /// messages of others and for clients.
    pub fn acquire(state_dir: &Path, socket: Option<&Path>) -> Result<Self, OpenError> {
        let file = take(&state_dir.join("lock"), (state_dir, "--state-dir"), socket)?;
        Ok(Self { _state_dir: file, _database: None })
    }

    /// Takes `DATABASE-lock`, too: another supervisor may have the database open from another state directory. The path has no link.
    pub(super) fn with_database(self, database: &Path, socket: Option<&Path>) -> Result<Self, OpenError> {
        let folder = database.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            // Opening it says so.
            return Ok(self);
        }
        let mut lock = database.as_os_str().to_owned();
        lock.push("-lock");
        let file = take(Path::new(&lock), (database, "--db"), socket)?;
        Ok(Self { _database: Some(file), ..self })
    }
}

/// Locks the file of a lock, or returns who holds it, by its content.
fn take(
    path: &Path,
    (held, option): (&Path, &'static str),
    socket: Option<&Path>,
) -> Result<File, OpenError> {
    let unusable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => OpenError::Denied { path: path.to_owned() },
        _ => OpenError::Unusable {
            path: path.to_owned(),
            detail: format!("cannot be locked: {}", with_problem(path, &error)),
        },
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        // A pipe with this name would be waited for.
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
        .map_err(unusable)?;
    if !file.metadata().map_err(unusable)?.is_file() {
        return Err(OpenError::Unusable {
            path: path.to_owned(),
            detail: "cannot be locked: it is not a regular file".to_owned(),
        });
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Only for the message: a holder that has not written its pid yet is still a holder.
            let _ = (&mut file).take(CONTENT_BYTES).read_to_string(&mut text);
            let mut lines = text.lines();
            let pid = lines.next().and_then(|line| line.trim().parse().ok());
            return Err(OpenError::InUse {
                path: held.to_owned(),
                option,
                pid,
                socket: lines.next().map(PathBuf::from),
                exiting: pid.is_some_and(is_exiting),
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
    let _ =
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| file.write_all(&content));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{OpenError, StoreLock, is_exiting, state_of};
    use std::path::PathBuf;

    #[test]
    fn a_holder_that_was_killed_and_cannot_exit_is_named_as_such() {
        assert_eq!(state_of("7 (a) Z (b) S 1 7"), Some('S'));
        assert_eq!(state_of("7 (tokio) Z 1 7"), Some('Z'));
        assert!(!is_exiting(std::process::id()));
        let message = |exiting| {
            OpenError::InUse {
                path: PathBuf::from("/s"),
                option: "--state-dir",
                pid: Some(7),
                socket: None,
                exiting,
            }
            .to_string()
        };
        assert!(message(true).contains("(pid 7): that process was killed") && message(true).contains("FUSE"));
        assert_eq!(
            message(false),
            "/s is in use by another supervisor (pid 7): stop it first, or choose another --state-dir"
        );
    }

    #[test]
    fn a_pipe_or_a_link_in_place_of_the_lock_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = folder.path().join("lock");
        nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let refused = StoreLock::acquire(folder.path(), None).expect_err("a pipe").to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
        std::fs::remove_file(&lock).expect("removed");
        std::os::unix::fs::symlink(folder.path().join("other"), &lock).expect("a link");
        assert!(StoreLock::acquire(folder.path(), None).is_err());
        assert!(!folder.path().join("other").exists());
    }
}
