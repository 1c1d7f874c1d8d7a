//! A file system for SQLite (`sqlite3_vfs`) that delegates to SQLite's own, except for write-ahead logs, which are our
//! [`super::Log`]s. Contains only this translation.

use super::Log;
use crate::Durability;
use rusqlite::ffi::{
    SQLITE_CANTOPEN, SQLITE_FULL, SQLITE_IOCAP_POWERSAFE_OVERWRITE, SQLITE_IOERR_FSTAT, SQLITE_IOERR_FSYNC,
    SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE, SQLITE_NOTFOUND,
    SQLITE_OK, SQLITE_OPEN_CREATE, SQLITE_OPEN_READONLY, SQLITE_OPEN_READWRITE, SQLITE_OPEN_WAL,
    sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

const FULL: &CStr = c"vm-system-full";
const NORMAL: &CStr = c"vm-system-normal";
/// SQLite's default sector size (bytes).
const SECTOR_BYTES: c_int = 4_096;

/// Data of a registered file system.
struct Ours {
    parent: *mut sqlite3_vfs,
    grows_ahead: bool,
}

/// Starts with the fields of every open file of SQLite.
#[repr(C)]
struct LogFile {
    base: sqlite3_file,
    log: *mut Log,
}

/// The name of the file system for connections that write. `None`: SQLite's own is sufficient, or ours could not be registered.
pub(in super::super) fn vfs(durability: Durability) -> Option<&'static CStr> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED.get_or_init(|| register(FULL, true) && register(NORMAL, false));
    match durability {
        Durability::Full => registered.then_some(FULL),
        Durability::Normal => registered.then_some(NORMAL),
        Durability::Off => None,
    }
}

fn register(name: &'static CStr, grows_ahead: bool) -> bool {
    // SAFETY: null means the default file system; the result is never freed.
    let parent = unsafe { sqlite3_vfs_find(std::ptr::null()) };
    if parent.is_null() {
        return false;
    }
    let ours = Box::new(Ours { parent, grows_ahead });
    // SAFETY: checked above, and SQLite changes only the link of a registered file system.
    let mut vfs = unsafe { *parent };
    // All other methods are the parent's: those of its Unix file systems do not depend on the file system that they are called
    // for.
    vfs.xOpen = Some(open);
    vfs.zName = name.as_ptr();
    vfs.pNext = std::ptr::null_mut();
    vfs.pAppData = Box::into_raw(ours).cast();
    vfs.szOsFile = vfs.szOsFile.max(c_int::try_from(size_of::<LogFile>()).unwrap_or(c_int::MAX));
    // SAFETY: the structure and its targets are never freed; 0: it does not become the default.
    unsafe { sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 0) == SQLITE_OK }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the structure that `register` created.
    let ours = unsafe { &*(*vfs).pAppData.cast::<Ours>() };
    if flags & SQLITE_OPEN_WAL == 0 || name.is_null() {
        // SAFETY: the parent is registered for ever; the arguments are passed unchanged.
        return unsafe {
            match (*ours.parent).xOpen {
                Some(open) => open(ours.parent, name, file, flags, out_flags),
                None => SQLITE_CANTOPEN,
            }
        };
    }
    // SAFETY: SQLite's names end with a zero and live as long as the file.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    // SAFETY: SQLite allocated `szOsFile` bytes, a `LogFile`. Without methods SQLite does not close a file that failed to open.
    unsafe { (*file).pMethods = std::ptr::null() };
    let Ok(log) = Log::open(path, flags & SQLITE_OPEN_CREATE != 0, ours.grows_ahead) else {
        return SQLITE_CANTOPEN;
    };
    // SAFETY: as above; the pointer is SQLite's and aligned like all its allocations.
    unsafe {
        let file = file.cast::<LogFile>();
        if !out_flags.is_null() {
            *out_flags = if log.is_writable {
                flags
            } else {
                flags & !(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_READONLY
            };
        }
        (*file).log = Box::into_raw(Box::new(log));
        (*file).base.pMethods = &raw const METHODS;
    }
    SQLITE_OK
}

/// The log behind an open file.
///
/// # Safety
/// `file` was opened by [`open`] as a log and is not closed. A connection uses its files on one thread at a time.
unsafe fn log<'a>(file: *mut sqlite3_file) -> &'a mut Log {
    // SAFETY: the caller's promise.
    unsafe { &mut *(*file.cast::<LogFile>()).log }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: created by `Box::into_raw` in `open`; SQLite closes a file once.
    let mut log = unsafe { Box::from_raw((*file.cast::<LogFile>()).log) };
    code(log.write_gathered(), SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    bytes: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: an open log; SQLite's buffer has this many bytes, and they are initialised here first.
    let (log, buffer) = unsafe {
        into.cast::<u8>().write_bytes(0, usize::try_from(bytes).unwrap_or(0));
        (log(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), usize::try_from(bytes).unwrap_or(0)))
    };
    match log.read(buffer, u64::try_from(offset).unwrap_or(0)) {
        Ok(read) if read == buffer.len() => SQLITE_OK,
        Ok(_) => SQLITE_IOERR_SHORT_READ,
        Err(error) => code(Err(error), SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    bytes: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: an open log; SQLite's buffer has this many bytes.
    let (log, bytes) = unsafe {
        (log(file), std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(bytes).unwrap_or(0)))
    };
    code(log.write(bytes, u64::try_from(offset).unwrap_or(0)), SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, bytes: sqlite3_int64) -> c_int {
    // SAFETY: an open log.
    let log = unsafe { log(file) };
    code(log.truncate(u64::try_from(bytes).unwrap_or(0)), SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: an open log.
    code(unsafe { log(file) }.sync(), SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    // SAFETY: an open log.
    match unsafe { log(file) }.size() {
        Ok(bytes) => {
            // SAFETY: SQLite's pointer for the result.
            unsafe { *size = sqlite3_int64::try_from(bytes).unwrap_or(sqlite3_int64::MAX) };
            SQLITE_OK
        }
        Err(error) => code(Err(error), SQLITE_IOERR_FSTAT),
    }
}

/// Logs are locked through the log's index, never directly.
unsafe extern "C" fn lock(_file: *mut sqlite3_file, _level: c_int) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_file: *mut sqlite3_file, is_locked: *mut c_int) -> c_int {
    // SAFETY: SQLite's pointer for the result.
    unsafe { *is_locked = 0 };
    SQLITE_OK
}

unsafe extern "C" fn file_control(_file: *mut sqlite3_file, _op: c_int, _argument: *mut c_void) -> c_int {
    SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut sqlite3_file) -> c_int {
    SECTOR_BYTES
}

unsafe extern "C" fn device_characteristics(_file: *mut sqlite3_file) -> c_int {
    SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

/// SQLite's error code; `otherwise` if the disk is not full.
fn code(result: io::Result<()>, otherwise: c_int) -> c_int {
    match result {
        Ok(()) => SQLITE_OK,
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            SQLITE_FULL
        }
        Err(_) => otherwise,
    }
}
