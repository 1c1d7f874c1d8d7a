//! The read part of the `fs` module: files, folders and facts beneath one directory handle. Never writes.
//!
//! - [`beneath`]: opening, with the kernel checking every step of the path
//! - [`read`]: contents of files and folders, with caps
//! - [`error`]: the kernel's errors as scripts know them

mod beneath;
mod error;
mod read;

use nix::errno::Errno;
use nix::sys::stat::{FileStat as RawStat, SFlag};
use std::os::fd::OwnedFd;
use vm_system_protocol::broker::{FileKind, FileStat, FsReply, FsRequest};
use vm_system_protocol::worker::HostError;

/// Carries out one request beneath `worktree`.
pub fn answer(worktree: &OwnedFd, request: &FsRequest) -> Result<FsReply, HostError> {
    match request {
        FsRequest::ReadFile { path } => read::file(worktree, path).map(FsReply::Bytes),
        FsRequest::ReadDir { path } => read::folder(worktree, path).map(FsReply::Entries),
        FsRequest::Stat { path, no_follow } => {
            let call = if *no_follow { "lstat" } else { "stat" };
            let stat = beneath::stat(worktree, path, !no_follow);
            stat.map(|stat| FsReply::Stat(describe(&stat)))
                .map_err(|errno| error::host_error(errno, call, path))
        }
        FsRequest::Exists { path } => match beneath::stat(worktree, path, true) {
            Ok(_) => Ok(FsReply::Bool(true)),
            // A broken disk is not an absent file.
            Err(Errno::EIO) => Err(error::host_error(Errno::EIO, "access", path)),
            Err(_) => Ok(FsReply::Bool(false)),
        },
    }
}

fn describe(stat: &RawStat) -> FileStat {
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

fn kind(stat: &RawStat) -> FileKind {
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => FileKind::File,
        SFlag::S_IFDIR => FileKind::Directory,
        SFlag::S_IFLNK => FileKind::Symlink,
        _ => FileKind::Other,
    }
}
