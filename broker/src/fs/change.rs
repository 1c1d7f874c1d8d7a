//! Creating, renaming and removing. Every change is made in an open folder, by a single name in it: the kernel never walks a
//! path of the script while it changes something.

use super::beneath::WorktreePaths;
use super::{kind, read};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, openat2, renameat2};
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use vm_system_protocol::broker::FileKind;

fn bits(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o777)
}

/// Creates one folder.
pub(super) fn make_dir(paths: &WorktreePaths<'_>, path: &str, mode: u32) -> Result<(), Errno> {
    let (folder, name) = match paths.parent(path) {
        Err(Errno::EBUSY) => return Err(Errno::EEXIST),
        parent => parent?,
    };
    mkdirat(&folder, name, bits(mode))
}

/// Creates a folder with its parents; returns the first one that did not exist.
pub(super) fn make_dirs(paths: &WorktreePaths<'_>, path: &str, mode: u32) -> Result<Option<String>, Errno> {
    let mut first = None;
    let names = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let mut level = 0;
    for end in names {
        let upto = &path[..end];
        let last = upto.rsplit('/').next().unwrap_or("");
        if last.is_empty() && end != path.len() {
            continue;
        }
        level += 1;
        match paths.stat(upto.trim_end_matches('/'), true) {
            Ok(stat) if kind(&stat) == FileKind::Directory => continue,
            Ok(_) if end == path.len() => return Err(Errno::EEXIST),
            Ok(_) => return Err(Errno::ENOTDIR),
            // The session may use the first levels of the path, but has no right to create them.
            Err(Errno::ENOENT) if level <= paths.terms.existing_levels => return Err(Errno::EACCES),
            Err(Errno::ENOENT) if !upto.is_empty() => {}
            Err(error) => return Err(error),
        }
        match make_dir(paths, upto, mode) {
            Ok(()) if first.is_none() => first = Some(upto.trim_end_matches('/').to_owned()),
            // Another process created it in the meantime.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(first)
}

/// Removes anything but a folder.
pub(super) fn remove_file(paths: &WorktreePaths<'_>, path: &str) -> Result<(), Errno> {
    let (folder, name) = paths.parent(path)?;
    if path.ends_with('/') {
        return Err(Errno::ENOTDIR);
    }
    unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)
}

/// Removes an empty folder.
pub(super) fn remove_dir(paths: &WorktreePaths<'_>, path: &str) -> Result<(), Errno> {
    let (folder, name) = paths.parent(path)?;
    unlinkat(&folder, name, UnlinkatFlags::RemoveDir)
}

/// Removes a file or a folder.
pub(super) fn remove(
    paths: &WorktreePaths<'_>,
    path: &str,
    recursive: bool,
    force: bool,
) -> Result<(), Errno> {
    let absent_is_fine = |result| match result {
        Err(Errno::ENOENT) if force => Ok(()),
        result => result,
    };
    let removed = paths.parent(path).and_then(|(folder, name)| {
        let stat = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if kind(&stat) != FileKind::Directory {
            return unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir);
        }
        if !recursive {
            return Err(Errno::EISDIR);
        }
        if paths.terms.tree {
            clear(&open_folder(&folder, name)?, paths.terms.max_entries as usize)?;
        }
        match unlinkat(&folder, name, UnlinkatFlags::RemoveDir) {
            // The session has no right to the folder's content.
            Err(Errno::ENOTEMPTY) if !paths.terms.tree => Err(Errno::EACCES),
            result => result,
        }
    });
    absent_is_fine(removed)
}

/// Opens a folder by its name in another one; refuses a link.
fn open_folder<P: nix::NixPath + ?Sized>(folder: &OwnedFd, name: &P) -> Result<OwnedFd, Errno> {
    let flags =
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let how =
        OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(folder.as_fd(), name, how)
}

/// Removes the contents of a folder of any depth: deeper folders are first moved up into `top`, so that two descriptors
/// suffice and each entry is touched at most twice.
fn clear(top: &OwnedFd, most: usize) -> Result<(), Errno> {
    let mut left = most;
    let mut moved_up = 0_u64;
    loop {
        let entries = read::entries(reopen(top)?, left.max(1))?;
        if entries.is_empty() {
            return Ok(());
        }
        for (name, kind) in entries {
            left = left.checked_sub(1).ok_or(Errno::EFBIG)?;
            if kind == FileKind::Directory {
                clear_folder(top, &name, &mut left, &mut moved_up)?;
            } else {
                gone(unlinkat(top, name.as_c_str(), UnlinkatFlags::NoRemoveDir))?;
            }
        }
    }
}

fn clear_folder(top: &OwnedFd, name: &CString, left: &mut usize, moved_up: &mut u64) -> Result<(), Errno> {
    let folder = open_folder(top, name.as_c_str())?;
    for (inner, kind) in read::entries(reopen(&folder)?, (*left).max(1))? {
        *left = left.checked_sub(1).ok_or(Errno::EFBIG)?;
        if kind != FileKind::Directory {
            gone(unlinkat(&folder, inner.as_c_str(), UnlinkatFlags::NoRemoveDir))?;
            continue;
        }
        loop {
            *moved_up += 1;
            let new = format!(".removed-{moved_up}");
            match renameat2(&folder, inner.as_c_str(), top, new.as_str(), RenameFlags::RENAME_NOREPLACE) {
                Err(Errno::EEXIST) => {}
                result => break gone(result)?,
            }
        }
    }
    gone(unlinkat(top, name.as_c_str(), UnlinkatFlags::RemoveDir))
}

/// A second handle of a folder, with its listing at the beginning.
fn reopen(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_folder(folder, ".")
}

/// Treats a missing entry as removed: another process removed it in the meantime.
fn gone(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::ENOENT) => Ok(()),
        result => result,
    }
}

/// Renames a file or a folder.
pub(super) fn rename(paths: &WorktreePaths<'_>, from: &str, to: &str) -> Result<(), Errno> {
    let (old_folder, old) = paths.parent(from)?;
    let (new_folder, new) = paths.parent(to)?;
    let stat = fstatat(&old_folder, old, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if kind(&stat) == FileKind::Directory && !paths.terms.tree {
        // The session has no right to the folder's content.
        return Err(Errno::EACCES);
    }
    renameat2(&old_folder, old, &new_folder, new, RenameFlags::empty())
}
