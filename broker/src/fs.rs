//! The `fs` module: files, folders and their metadata beneath one directory handle.
//!
//! - [`beneath`]: opening, with the kernel checking every step of the path
//! - [`read`]: contents of files and folders, with caps
//! - [`metadata`]: `stat`, `access`, `realpath`
//! - [`mod@write`]: contents of files
//! - [`change`]: folders, names, removal
//! - [`error`]: the kernel's errors in the form that scripts see
//!
//! Files with more than one name (hard links) are read like any other; they are not written to, since another of their
//! names may be outside of the worktree.

mod beneath;
mod change;
mod error;
mod metadata;
mod read;
mod write;

use beneath::WorktreePaths;
pub(crate) use error::host_error;
use nix::errno::Errno;
use nix::sys::stat::{FileStat as RawStat, SFlag};
use std::os::fd::OwnedFd;
use vm_system_protocol::broker::{FileKind, FsReply, FsRequest, FsTerms};
use vm_system_protocol::worker::HostError;

/// Carries out one request beneath `worktree`; in folders of other mounts only with `cross_mounts`.
pub fn handle_request(
    worktree: &OwnedFd,
    cross_mounts: bool,
    request: FsRequest,
    terms: FsTerms,
) -> Result<FsReply, HostError> {
    let paths = WorktreePaths { worktree, cross_mounts, terms };
    match request {
        FsRequest::ReadFile { path } => read::file(&paths, &path).map(FsReply::Bytes),
        FsRequest::ReadDir { path } => read::folder(&paths, &path).map(FsReply::Entries),
        FsRequest::Stat { path, no_follow } => {
            let call = if no_follow { "lstat" } else { "stat" };
            let stat = paths.stat(&path, !no_follow);
            stat.map(|stat| FsReply::Stat(metadata::describe(&stat)))
                .map_err(|errno| host_error(errno, call, &path))
        }
        FsRequest::Exists { path } => match paths.stat(&path, true) {
            Ok(_) => Ok(FsReply::Bool(true)),
            // An I/O error does not mean that the file does not exist.
            Err(Errno::EIO) => Err(host_error(Errno::EIO, "access", &path)),
            Err(_) => Ok(FsReply::Bool(false)),
        },
        FsRequest::Access { path, mode } => {
            named(metadata::access(&paths, &path, mode), "access", &path).map(|()| FsReply::Done)
        }
        FsRequest::RealPath { path } => {
            named(metadata::real_path(&paths, &path), "realpath", &path).map(|path| FsReply::Path(Some(path)))
        }
        FsRequest::Write { path, data, how, mode } => {
            named(write::file(&paths, &path, &data, how, mode), "open", &path).map(|()| FsReply::Done)
        }
        FsRequest::MakeDir { path, recursive: false, mode } => {
            let created = named(change::make_dir(&paths, &path, mode), "mkdir", &path);
            created.map(|()| FsReply::Path(Some(path)))
        }
        FsRequest::MakeDir { path, recursive: true, mode } => {
            named(change::make_dirs(&paths, &path, mode), "mkdir", &path).map(FsReply::Path)
        }
        FsRequest::RemoveFile { path } => {
            named(change::remove_file(&paths, &path), "unlink", &path).map(|()| FsReply::Done)
        }
        FsRequest::RemoveDir { path } => {
            named(change::remove_dir(&paths, &path), "rmdir", &path).map(|()| FsReply::Done)
        }
        FsRequest::Remove { path, recursive, force } => {
            named(change::remove(&paths, &path, recursive, force), "rm", &path).map(|()| FsReply::Done)
        }
        FsRequest::Rename { from, to } => {
            named(change::rename(&paths, &from, &to), "rename", &from).map(|()| FsReply::Done)
        }
        FsRequest::Copy { from, to, exclusive } => {
            named(write::copy(&paths, &from, &to, exclusive), "copyfile", &from).map(FsReply::Written)
        }
    }
}

fn named<T>(result: Result<T, Errno>, call: &str, path: &str) -> Result<T, HostError> {
    result.map_err(|errno| host_error(errno, call, path))
}

fn kind(stat: &RawStat) -> FileKind {
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => FileKind::File,
        SFlag::S_IFDIR => FileKind::Directory,
        SFlag::S_IFLNK => FileKind::Symlink,
        _ => FileKind::Other,
    }
}
