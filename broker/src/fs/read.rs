//! Contents of files and folders, within the caps.

use super::beneath::WorktreePaths;
use super::error::host_error;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use vm_system_protocol::broker::{DirEntry, FileKind};
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_READ_BYTES};
use vm_system_protocol::worker::HostError;

/// All bytes of a regular file.
pub(super) fn file(paths: &WorktreePaths<'_>, path: &str) -> Result<Vec<u8>, HostError> {
    let cap = paths.terms.max_file_bytes.min(FS_READ_BYTES as u64);
    let (file, stat) = paths.regular_file(path).map_err(|errno| host_error(errno, "open", path))?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let too_large = || host_error(Errno::EFBIG, "read", path);
    if size > cap {
        return Err(too_large());
    }
    // The size is a hint: the file may grow while it is read, and files of `/proc` report 0.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let read = File::from(file).take(cap + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        host_error(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)), "read", path)
    })?;
    if bytes.len() as u64 > cap { Err(too_large()) } else { Ok(bytes) }
}

/// The entries of a folder, sorted by name.
pub(super) fn folder(paths: &WorktreePaths<'_>, path: &str) -> Result<Vec<DirEntry>, HostError> {
    let most = (paths.terms.max_entries as usize).min(FS_DIR_ENTRIES);
    let listed = paths.folder(path).and_then(|folder| entries(folder, most));
    let mut raw = listed.map_err(|errno| host_error(errno, "scandir", path))?;
    raw.sort_by(|(one, _), (other, _)| one.cmp(other));
    let described =
        raw.into_iter().map(|(name, kind)| DirEntry { name: name.to_string_lossy().into_owned(), kind });
    Ok(described.collect())
}

/// At most `most` entries of an open folder, unsorted; more are an error.
pub(super) fn entries(folder: OwnedFd, most: usize) -> Result<Vec<(CString, FileKind)>, Errno> {
    let mut folder = Dir::from_fd(folder)?;
    let mut raw = Vec::new();
    for entry in folder.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if raw.len() == most {
            return Err(Errno::EFBIG);
        }
        raw.push((name.to_owned(), entry.file_type()));
    }
    let described = raw.into_iter().map(|(name, kind)| {
        let kind = match kind {
            Some(Type::File) => FileKind::File,
            Some(Type::Directory) => FileKind::Directory,
            Some(Type::Symlink) => FileKind::Symlink,
            Some(_) => FileKind::Other,
            // Some file systems do not report the kind; an entry that was removed in the meantime is of kind `Other`.
            None => fstatat(&folder, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
                .map_or(FileKind::Other, |stat| super::kind(&stat)),
        };
        (name, kind)
    });
    Ok(described.collect())
}
