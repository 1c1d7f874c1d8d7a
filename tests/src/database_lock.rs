//! SQLite's lock of writers, held by a test as another process would: the daemon cannot commit meanwhile, and its reads go on.

use crate::PATIENCE;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

/// The lock; released when it is dropped.
#[derive(Debug)]
pub struct DatabaseLock {
    index: File,
}

impl DatabaseLock {
    /// Waits until no commit is under way, and takes the lock.
    ///
    /// # Panics
    /// No daemon has opened the database.
    pub fn take(database: &Path) -> Self {
        Self::on_index(index_of(database))
    }

    /// Takes the lock right after the next commit that follows this action; with what the action returned.
    ///
    /// # Panics
    /// No daemon has opened the database, or nothing is committed.
    pub fn take_after_commit<T>(database: &Path, action: impl FnOnce() -> T) -> (Self, T) {
        let index = index_of(database);
        let before = commits(&index);
        let result = action();
        let begun = Instant::now();
        // Busy: the next commit may follow within some 100 µs.
        while commits(&index) == before {
            assert!(begun.elapsed() < PATIENCE, "nothing is committed");
            std::hint::spin_loop();
        }
        (Self::on_index(index), result)
    }

    /// Byte 120 of the log's index (`walformat.html`, section 2.3.1 of SQLite).
    fn on_index(index: File) -> Self {
        let lock = libc::flock {
            l_type: libc::F_WRLCK as _,
            l_whence: libc::SEEK_SET as _,
            l_start: 120,
            l_len: 1,
            l_pid: 0,
        };
        nix::fcntl::fcntl(&index, nix::fcntl::FcntlArg::F_SETLKW(&lock))
            .expect("it is free between two commits");
        Self { index }
    }
}

impl Drop for DatabaseLock {
    fn drop(&mut self) {
        // Closing would release it, too, unless the file was opened once more by this process.
        let unlock = libc::flock {
            l_type: libc::F_UNLCK as _,
            l_whence: libc::SEEK_SET as _,
            l_start: 120,
            l_len: 1,
            l_pid: 0,
        };
        let _ = nix::fcntl::fcntl(&self.index, nix::fcntl::FcntlArg::F_SETLK(&unlock));
    }
}

fn index_of(database: &Path) -> File {
    let mut name = database.as_os_str().to_owned();
    name.push("-shm");
    OpenOptions::new().read(true).write(true).open(name).expect("the daemon's index of its log")
}

/// The counter of commits in the header of the log's index (section 2.3.1).
fn commits(index: &File) -> [u8; 4] {
    let mut counter = [0; 4];
    index.read_exact_at(&mut counter, 8).expect("it has a header");
    counter
}
