//! Records what SQLite writes, cuts and flushes, in order, for the whole process: the only unchecked code of this test.

use rusqlite::ffi;
use std::collections::HashMap;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// One of the files of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RecordedFile {
    Database,
    Log,
}

/// A change of a file.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Write {
        file: RecordedFile,
        at: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        file: RecordedFile,
        size: usize,
    },
    /// Everything before is on the disk.
    Flush {
        file: RecordedFile,
    },
}

#[derive(Default)]
struct Recorder {
    files: HashMap<usize, RecordedFile>,
    steps: Vec<Step>,
}

struct Original {
    vfs: *mut ffi::sqlite3_vfs,
    open: XOpen,
    /// Of the database and of the log: they differ in their locks.
    methods: [OnceLock<Methods>; 2],
}

/// The functions that SQLite calls for a file, and their replacements.
struct Methods {
    theirs: &'static ffi::sqlite3_io_methods,
    recording: &'static ffi::sqlite3_io_methods,
}

type XOpen = unsafe extern "C" fn(
    *mut ffi::sqlite3_vfs,
    *const c_char,
    *mut ffi::sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;

// SAFETY: SQLite's default VFS exists for the whole process and may be used by every thread.
unsafe impl Send for Original {}
// SAFETY: as above; the cells synchronise themselves.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

fn recorder() -> MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on every connection of this process is recorded.
pub(super) fn record() {
    // SAFETY: the default VFS is never freed; it is copied, and the copy lives for ever.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        assert!(!vfs.is_null(), "SQLite has a default VFS");
        let open = (*vfs).xOpen.expect("every VFS opens files");
        let original = Original { vfs, open, methods: [OnceLock::new(), OnceLock::new()] };
        assert!(ORIGINAL.set(original).is_ok(), "recorded once");
        let copy = Box::leak(Box::new(*vfs));
        copy.pNext = std::ptr::null_mut();
        copy.zName = c"recorder".as_ptr();
        copy.xOpen = Some(x_open);
        assert_eq!(ffi::sqlite3_vfs_register(copy, 1), ffi::SQLITE_OK);
    }
}

/// Forgets the steps so far.
pub(super) fn begin() {
    recorder().get_or_insert_default().steps.clear();
}

/// The number of steps so far.
pub(super) fn position() -> usize {
    recorder().as_ref().map_or(0, |recorder| recorder.steps.len())
}

/// Takes the steps.
pub(super) fn steps() -> Vec<Step> {
    recorder().as_mut().map(|recorder| std::mem::take(&mut recorder.steps)).unwrap_or_default()
}

fn original() -> &'static Original {
    ORIGINAL.get().expect("set before the VFS is registered")
}

/// SQLite's own methods of a file, which is among those that are recorded.
fn theirs(file: *mut ffi::sqlite3_file) -> &'static ffi::sqlite3_io_methods {
    let kind = recorder().as_ref().and_then(|recorder| recorder.files.get(&file.addr()).copied());
    let kind = kind.expect("its methods were replaced when it was opened");
    original().methods[kind as usize].get().expect("set before").theirs
}

fn add(file: *mut ffi::sqlite3_file, step: impl FnOnce(RecordedFile) -> Step) {
    let mut recorder = recorder();
    let recorder = recorder.get_or_insert_default();
    if let Some(kind) = recorder.files.get(&file.addr()) {
        let step = step(*kind);
        recorder.steps.push(step);
    }
}

unsafe extern "C" fn x_open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let original = original();
    // SAFETY: these are SQLite's own arguments, for its own function.
    let result = unsafe { (original.open)(original.vfs, name, file, flags, out_flags) };
    let kind = if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        RecordedFile::Database
    } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
        RecordedFile::Log
    } else {
        return result;
    };
    // SAFETY: after a success the file has methods, which are static.
    unsafe {
        if result == ffi::SQLITE_OK && !(*file).pMethods.is_null() {
            let found = &*(*file).pMethods;
            let methods = original.methods[kind as usize].get_or_init(|| {
                let mut recording = *found;
                recording.xWrite = Some(x_write);
                recording.xTruncate = Some(x_truncate);
                recording.xSync = Some(x_sync);
                Methods { theirs: found, recording: Box::leak(Box::new(recording)) }
            });
            assert!(std::ptr::eq(methods.theirs, found), "one kind of lock for all files of a kind");
            (*file).pMethods = std::ptr::from_ref(methods.recording);
            recorder().get_or_insert_default().files.insert(file.addr(), kind);
        }
    }
    result
}

unsafe extern "C" fn x_write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    amount: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    let length = usize::try_from(amount).unwrap_or(0);
    // SAFETY: SQLite gives so many bytes.
    let content = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec();
    let at_byte = usize::try_from(at).unwrap_or(0);
    add(file, |file| Step::Write { file, at: at_byte, bytes: content });
    // SAFETY: SQLite's own arguments, for its own function.
    unsafe { theirs(file).xWrite.expect("files are written")(file, bytes, amount, at) }
}

unsafe extern "C" fn x_truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let bytes = usize::try_from(size).unwrap_or(0);
    add(file, |file| Step::Truncate { file, size: bytes });
    // SAFETY: as above.
    unsafe { theirs(file).xTruncate.expect("files are cut")(file, size) }
}

unsafe extern "C" fn x_sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as above.
    let result = unsafe { theirs(file).xSync.expect("files are flushed")(file, flags) };
    // Behind the call: what it returned for is on the disk.
    add(file, |file| Step::Flush { file });
    result
}
