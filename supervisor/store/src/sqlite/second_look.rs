//! Judges damage by looking again. A disk that fails to read (`EIO`) looks like damage: SQLite reports it as `SQLITE_CORRUPT` (`vdbe.c` has
//! `SQLITE_IOERR_CORRUPTFS` for it) or as a finding of its checks. So damage is what two looks find, each on a connection of its own and
//! so without cached pages, while every byte of the file and its log can be read.

use super::failure::READ_ERROR;
use super::recovery::path_beside;
use crate::error::OpenError;
use nix::errno::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;
use vm_system_record::StoreError;

/// Between the looks (milliseconds): a disk that is out of order for a second is waited for.
const PAUSES_MS: [u64; 4] = [100, 200, 400, 800];
/// Bytes that are read at once: a page, as SQLite does.
const READ_BYTES: usize = 4_096;

/// The finding of a look at a database, or of several.
#[derive(Debug)]
pub(super) enum Look<T> {
    /// No damage.
    Done(T),
    /// A finding that looks like damage, and the result if it is that.
    Damaged { what: String, result: T },
    /// The disk reports an error.
    Unreadable(String),
}

/// Looks until nothing is found, or the same twice while everything can be read, as `read` shows. `pause` is false when there is no more
/// time.
pub(super) fn look_again<T>(
    mut look: impl FnMut() -> Look<T>,
    read: impl Fn() -> io::Result<()>,
    pause: impl Fn(Duration) -> bool,
) -> Look<T> {
    let mut before = None;
    let mut found = look();
    for time in PAUSES_MS {
        let what = match &found {
            Look::Done(_) => break,
            Look::Unreadable(_) => None,
            Look::Damaged { what, .. } => Some(what.clone()),
        };
        match read() {
            // The same twice, with a disk that reads: that is damage, and not a passing fault.
            Ok(()) if what.is_some() && what == before => return found,
            Ok(()) => before = what,
            Err(_) => before = None,
        }
        if !pause(Duration::from_millis(time)) {
            break;
        }
        found = look();
    }
    // A disk that fails to read makes sound pages look damaged.
    if let Look::Damaged { .. } = found
        && let Err(error) = read()
    {
        return Look::Unreadable(read_error(&error));
    }
    found
}

/// [`look_again`] of a store in use: `look` fails as `Corrupt` where there may be damage.
pub(super) fn attempt<T>(
    mut work: impl FnMut() -> Result<T, StoreError>,
    read: impl Fn() -> io::Result<()>,
    pause: impl Fn(Duration) -> bool,
) -> Look<Result<T, StoreError>> {
    look_again(|| Look::from_work(work()), read, pause)
}

impl<T> Look<Result<T, StoreError>> {
    /// The finding of work in a store.
    pub(super) fn from_work(result: Result<T, StoreError>) -> Self {
        match result {
            Err(StoreError::Corrupt(what)) => {
                Self::Damaged { what: what.clone(), result: Err(StoreError::Corrupt(what)) }
            }
            Err(StoreError::Unavailable(why)) if why == READ_ERROR => Self::Unreadable(why),
            result => Self::Done(result),
        }
    }
}

/// [`look_again`] of a database that no connection of this process has open but for those of `open`.
pub(super) fn opened<T>(path: &Path, mut open: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
    opened_and_examined(path, || match open() {
        Err(OpenError::Corrupt { path, detail }) => {
            Look::Damaged { what: detail.clone(), result: Err(OpenError::Corrupt { path, detail }) }
        }
        Err(OpenError::ReadError { detail, .. }) => Look::Unreadable(detail),
        result => Look::Done(result),
    })
}

/// As [`opened`], where a result may show damage, too.
pub(super) fn opened_and_examined<T>(
    path: &Path,
    look: impl FnMut() -> Look<Result<T, OpenError>>,
) -> Result<T, OpenError> {
    let pause = |time| {
        tracing::warn!(path = %path.display(), "the database is damaged, or its disk fails to read: it is looked at again");
        std::thread::sleep(time);
        true
    };
    match look_again(look, || read_files(path), pause) {
        Look::Done(result) | Look::Damaged { result, .. } => result,
        Look::Unreadable(detail) => Err(OpenError::ReadError { path: path.to_owned(), detail }),
    }
}

/// Reads a database and its log to the end. No connection of this process may have them open: SQLite's locks would be dropped.
fn read_files(path: &Path) -> io::Result<()> {
    read_to_the_end(&File::open(path)?, &|| true)?;
    read_log(path, &|| true)
}

/// Reads the log of a database to the end. SQLite has no locks on it.
pub(super) fn read_log(database: &Path, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    match File::open(path_beside(database, "-wal")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        log => read_to_the_end(&log?, go_on),
    }
}

pub(super) fn read_to_the_end(file: &File, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let mut buffer = [0; READ_BYTES];
    let mut at = 0;
    while go_on() {
        match file.read_at(&mut buffer, at) {
            Ok(0) => return Ok(()),
            Ok(bytes) => at += bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// The message about a file that the kernel cannot read.
pub(super) fn read_error(error: &io::Error) -> String {
    if is_eio(error) { READ_ERROR.to_owned() } else { format!("the file cannot be read: {error}") }
}

/// Whether the disk failed.
pub(in crate::sqlite) fn is_eio(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

#[cfg(test)]
mod tests {
    use super::{Look, PAUSES_MS, look_again};
    use std::cell::{Cell, RefCell};
    use std::io;

    /// The verdict after these findings, where an empty one is none, and these results of reading everything.
    fn verdict(findings: &[&str], readable: &[bool]) -> (String, usize) {
        let (looks, reads) = (Cell::new(0), RefCell::new(readable.iter()));
        let look = || {
            let found = findings[looks.get().min(findings.len() - 1)];
            looks.set(looks.get() + 1);
            if found.is_empty() {
                Look::Done(())
            } else {
                Look::Damaged { what: found.to_owned(), result: () }
            }
        };
        let read = || match reads.borrow_mut().next() {
            Some(false) => Err(io::Error::from_raw_os_error(nix::libc::EIO)),
            _ => Ok(()),
        };
        let text = match look_again(look, read, |_| true) {
            Look::Done(()) => "done".to_owned(),
            Look::Damaged { what, .. } => what,
            Look::Unreadable(why) => why,
        };
        (text, looks.get())
    }

    #[test]
    fn damage_is_found_twice_while_everything_can_be_read() {
        assert_eq!(verdict(&[""], &[]), ("done".to_owned(), 1));
        assert_eq!(verdict(&["a", ""], &[]), ("done".to_owned(), 2));
        assert_eq!(verdict(&["a"], &[]), ("a".to_owned(), 2));
        assert_eq!(verdict(&["a", "b", "b", "c"], &[]), ("b".to_owned(), 3));
        // A read error between the two explains both.
        assert_eq!(verdict(&["a", "a", ""], &[false]), ("done".to_owned(), 3));
        assert_eq!(verdict(&["a"], &[false, false, true, true]), ("a".to_owned(), 4));
        let (why, looks) = verdict(&["a"], &[false; 9]);
        assert!(why.contains("EIO") && looks == PAUSES_MS.len() + 1, "{why} {looks}");
        // Another finding at each look, and nothing that the disk fails to read.
        assert_eq!(verdict(&["a", "b", "c", "d", "e", "f"], &[]), ("e".to_owned(), 5));
    }
}
