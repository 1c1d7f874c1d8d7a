//! Metadata of paths: `stat`, `access`, `realpath`.

use super::beneath::WorktreePaths;
use super::kind;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, readlinkat};
use nix::sys::stat::{FileStat as RawStat, fstat};
use nix::unistd::{AccessFlags, faccessat};
use std::collections::VecDeque;
use vm_system_protocol::broker::{FileKind, FileStat};

/// Most links that are followed in one path, as in the kernel.
const LINKS: usize = 40;

/// Metadata in the form for scripts.
pub(super) fn describe(stat: &RawStat) -> FileStat {
    let milliseconds = |seconds: i64, nanoseconds: i64| {
        seconds.saturating_mul(1000).saturating_add(nanoseconds.div_euclid(1_000_000))
    };
    FileStat {
        kind: kind(stat),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode,
        mtime_ms: milliseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ms: milliseconds(stat.st_ctime, stat.st_ctime_nsec),
        atime_ms: milliseconds(stat.st_atime, stat.st_atime_nsec),
    }
}

/// Checks that this process's user has this access to a path; `mode` as in `access(2)`.
pub(super) fn access(paths: &WorktreePaths<'_>, path: &str, mode: u32) -> Result<(), Errno> {
    let mode = i32::try_from(mode).ok().and_then(AccessFlags::from_bits).ok_or(Errno::EINVAL)?;
    let handle = paths.path(path, true)?;
    faccessat(&handle, "", mode, AtFlags::AT_EMPTY_PATH | AtFlags::AT_EACCESS)
}

/// The path without links, `.` and `..`, relative to the worktree. The result can be outdated at once; the kernel checks the path
/// again when it is used.
pub(super) fn real_path(paths: &WorktreePaths<'_>, path: &str) -> Result<String, Errno> {
    // The kernel refuses a path that leaves the worktree or does not exist.
    paths.path(path, true)?;
    let mut left: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    let mut names: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                names.pop().ok_or(Errno::EXDEV)?;
                continue;
            }
            _ => names.push(name),
        }
        let handle = paths.path(&names.join("/"), false)?;
        if kind(&fstat(&handle)?) != FileKind::Symlink {
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(Errno::ELOOP);
        }
        let target = readlinkat(&handle, "")?.into_string().map_err(|_| Errno::EINVAL)?;
        if target.starts_with('/') {
            return Err(Errno::EXDEV);
        }
        names.pop();
        for name in target.rsplit('/') {
            left.push_front(name.to_owned());
        }
    }
    Ok(if names.is_empty() { ".".to_owned() } else { names.join("/") })
}
