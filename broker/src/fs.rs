//! The `fs` module: files, folders and facts beneath one directory handle.
//!
//! - [`beneath`]: opening, with the kernel checking every step of the path
//! - [`read`]: contents of files and folders, with caps
//! - [`facts`]: what a path is and where it leads
//! - [`mod@write`]: contents of files
//! - [`change`]: folders, names, removal
//! - [`error`]: the kernel's errors as scripts know them
//!
//! Files with more than one name (hard links) are read like any other; they are not written to, since another of their
//! names may be outside of the worktree.

mod beneath;
mod change;
mod error;
mod facts;
mod read;
mod write;

use beneath::Place;
use error::host_error;
use nix::errno::Errno;
use nix::sys::stat::{FileStat as RawStat, SFlag};
use std::os::fd::OwnedFd;
use vm_system_protocol::broker::{FileKind, FsReply, FsRequest, FsTerms};
use vm_system_protocol::worker::HostError;

/// Carries out one request beneath `worktree`; in folders of other mounts only with `cross_mounts`.
pub fn answer(
    worktree: &OwnedFd,
    cross_mounts: bool,
    request: FsRequest,
    terms: FsTerms,
) -> Result<FsReply, HostError> {
    let place = Place { worktree, cross_mounts, terms };
    match request {
        FsRequest::ReadFile { path } => read::file(&place, &path).map(FsReply::Bytes),
        FsRequest::ReadDir { path } => read::folder(&place, &path).map(FsReply::Entries),
        FsRequest::Stat { path, no_follow } => {
            let call = if no_follow { "lstat" } else { "stat" };
            let stat = place.stat(&path, !no_follow);
            stat.map(|stat| FsReply::Stat(facts::describe(&stat)))
                .map_err(|errno| host_error(errno, call, &path))
        }
        FsRequest::Exists { path } => match place.stat(&path, true) {
            Ok(_) => Ok(FsReply::Bool(true)),
            // A broken disk is not an absent file.
            Err(Errno::EIO) => Err(host_error(Errno::EIO, "access", &path)),
            Err(_) => Ok(FsReply::Bool(false)),
        },
        FsRequest::Access { path, mode } => {
            named(facts::access(&place, &path, mode), "access", &path).map(|()| FsReply::Done)
        }
        FsRequest::RealPath { path } => {
            named(facts::real_path(&place, &path), "realpath", &path).map(|path| FsReply::Path(Some(path)))
        }
        FsRequest::Write { path, data, how, mode } => {
            named(write::file(&place, &path, &data, how, mode), "open", &path).map(|()| FsReply::Done)
        }
        FsRequest::MakeDir { path, recursive: false, mode } => {
            let made = named(change::make_dir(&place, &path, mode), "mkdir", &path);
            made.map(|()| FsReply::Path(Some(path)))
        }
        FsRequest::MakeDir { path, recursive: true, mode } => {
            named(change::make_dirs(&place, &path, mode), "mkdir", &path).map(FsReply::Path)
        }
        FsRequest::RemoveFile { path } => {
            named(change::remove_file(&place, &path), "unlink", &path).map(|()| FsReply::Done)
        }
        FsRequest::RemoveDir { path } => {
            named(change::remove_dir(&place, &path), "rmdir", &path).map(|()| FsReply::Done)
        }
        FsRequest::Remove { path, recursive, force } => {
            named(change::remove(&place, &path, recursive, force), "rm", &path).map(|()| FsReply::Done)
        }
        FsRequest::Rename { from, to } => {
            named(change::rename(&place, &from, &to), "rename", &from).map(|()| FsReply::Done)
        }
        FsRequest::Copy { from, to, exclusive } => {
            named(write::copy(&place, &from, &to, exclusive), "copyfile", &from).map(FsReply::Written)
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
