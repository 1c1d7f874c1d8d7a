//! Makes reads of chosen files fail with `EIO`, for SQLite and for Rust: both call the functions of the C library by their names, which are
//! these. The only unchecked code of this test.

use nix::errno::Errno;
use nix::libc::{SYS_pread64, c_int, c_void, off_t, off64_t, size_t, ssize_t, syscall};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which reads of a file fail.
struct FailingReads {
    file: PathBuf,
    /// Reads that succeed first.
    passing: usize,
    /// Reads that fail after them.
    failing: usize,
}

static FAILING: Mutex<Vec<FailingReads>> = Mutex::new(Vec::new());

fn failing() -> MutexGuard<'static, Vec<FailingReads>> {
    FAILING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// After `passing` reads of a file, `failing` fail, in all threads.
pub(super) fn fail(file: &Path, passing: usize, failing_reads: usize) {
    failing().push(FailingReads { file: file.to_owned(), passing, failing: failing_reads });
}

/// From now on all reads of a file succeed; returns whether all that were to fail did.
pub(super) fn heal(file: &Path) -> bool {
    let mut failing = failing();
    let is_used_up = failing.iter().all(|reads| reads.file != file || reads.failing == 0);
    failing.retain(|reads| reads.file != file);
    is_used_up
}

fn fails(descriptor: c_int) -> bool {
    let mut failing = failing();
    if failing.is_empty() {
        return false;
    }
    let file = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
    let Some(reads) = failing.iter_mut().find(|reads| reads.file == file) else { return false };
    if reads.passing > 0 {
        reads.passing -= 1;
        return false;
    }
    let is_failing = reads.failing > 0;
    reads.failing = reads.failing.saturating_sub(1);
    is_failing
}

fn read(descriptor: c_int, buffer: *mut c_void, bytes: size_t, at: i64) -> ssize_t {
    if fails(descriptor) {
        Errno::EIO.set();
        return -1;
    }
    // SAFETY: the arguments are those of the caller, who has this buffer.
    let read = unsafe { syscall(SYS_pread64, descriptor, buffer, bytes, at) };
    ssize_t::try_from(read).unwrap_or(-1)
}

// SAFETY: it does what the function of the C library does, which it replaces in this process.
#[unsafe(no_mangle)]
extern "C" fn pread(descriptor: c_int, buffer: *mut c_void, bytes: size_t, at: off_t) -> ssize_t {
    read(descriptor, buffer, bytes, at)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn pread64(descriptor: c_int, buffer: *mut c_void, bytes: size_t, at: off64_t) -> ssize_t {
    read(descriptor, buffer, bytes, at)
}
