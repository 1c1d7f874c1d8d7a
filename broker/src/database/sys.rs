//! A SQLite VFS that leaves file names as they are. SQLite's default VFS makes every name absolute, and the kernel would then
//! have to walk through folders that this process cannot access; names relative to the working directory (the workspace's
//! folder) need no such walk. All other functions are those of the default VFS.

use rusqlite::{Connection, ffi};
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

/// The name of the VFS.
pub(super) const NAME: &CStr = c"workspace";

/// Registers the VFS, once for the process. `false`: SQLite has no default VFS.
pub(super) fn register() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| {
        // SAFETY: a null name means the default; the result is null or a structure that SQLite never frees.
        let default = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        // SAFETY: null or valid, see above; only read here, before any connection exists.
        let Some(default) = (unsafe { default.as_ref() }) else { return false };
        let ours = ffi::sqlite3_vfs {
            pNext: std::ptr::null_mut(),
            zName: NAME.as_ptr(),
            xFullPathname: Some(full_path_name),
            ..*default
        };
        // SQLite keeps the pointer for ever, so that the structure must never be freed.
        let ours: &'static mut ffi::sqlite3_vfs = Box::leak(Box::new(ours));
        // SAFETY: a valid structure that is never freed; not the default (0).
        unsafe { ffi::sqlite3_vfs_register(ours, 0) == ffi::SQLITE_OK }
    })
}

/// Copies the name. SQLite passes a NUL-terminated name and a buffer of `capacity` bytes.
unsafe extern "C" fn full_path_name(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    capacity: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated text that outlives the call.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if usize::try_from(capacity).is_ok_and(|capacity| name.len() <= capacity) {
        // SAFETY: `out` has `capacity` bytes, which was checked to be enough; the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast::<c_char>(), out, name.len()) };
        ffi::SQLITE_OK
    } else {
        ffi::SQLITE_CANTOPEN
    }
}

/// The modules of virtual tables that a connection keeps: stored in ordinary tables, or functions of their arguments. All others go,
/// whatever SQLite was built with: some (`dbstat`) can be read without being created, so that the authorizer sees no module.
const MODULES: [&CStr; 5] = [c"fts5", c"rtree", c"rtree_i32", c"json_each", c"json_tree"];

/// Removes all other modules from a connection.
pub(super) fn drop_modules(connection: &Connection) -> rusqlite::Result<()> {
    let mut kept = [std::ptr::null(); MODULES.len() + 1];
    for (kept, module) in kept.iter_mut().zip(MODULES) {
        *kept = module.as_ptr();
    }
    // SAFETY: an open connection that only this thread uses, and a list of texts with a null pointer at its end, which is only read.
    let result = unsafe { ffi::sqlite3_drop_modules(connection.handle(), kept.as_mut_ptr()) };
    if result == ffi::SQLITE_OK {
        Ok(())
    } else {
        Err(rusqlite::Error::SqliteFailure(ffi::Error::new(result), None))
    }
}
