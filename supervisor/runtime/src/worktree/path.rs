//! Paths as text, without access to files.

use super::open::WorktreeError;
use vm_system_protocol::worktree_path::join;

/// Longest accepted path (bytes); the kernel's own limit.
const PATH_BYTES: usize = 4_096;

/// `./a//b.js` → `a/b.js`. Absolute, blank, with `..` or NUL: [`WorktreeError::InvalidPath`].
pub fn clean_relative(path: &str) -> Result<String, WorktreeError> {
    let refuse = |why: &str| Err(WorktreeError::InvalidPath(format!("{path:?} {why}")));
    if path.len() > PATH_BYTES {
        return Err(WorktreeError::InvalidPath(format!("a path of {} bytes is too long", path.len())));
    }
    if path.trim().is_empty() {
        return Err(WorktreeError::InvalidPath("the path is empty".to_owned()));
    }
    if path.contains('\0') {
        return refuse("contains a NUL character");
    }
    if path.starts_with('/') {
        return refuse("is absolute; paths are relative to the session's worktree");
    }
    match join("", path) {
        _ if path.split('/').any(|name| name == "..") => refuse("contains '..'"),
        Some(clean) if !clean.is_empty() => Ok(clean),
        _ => refuse("names no file"),
    }
}
