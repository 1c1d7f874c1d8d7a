//! Contents of files, within the caps.

use super::beneath::{WorktreePaths, expect_file};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat as RawStat, Mode, fstat};
use nix::unistd::ftruncate;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use vm_system_protocol::broker::WriteMode;

/// Size of one copy step (bytes).
const PIECE_BYTES: usize = 256 * 1024;

/// Writes `data` to a regular file.
pub(super) fn file(
    paths: &WorktreePaths<'_>,
    path: &str,
    data: &[u8],
    how: WriteMode,
    mode: u32,
) -> Result<(), Errno> {
    let (file, stat) = open(paths, path, how, mode)?;
    let there = if how.truncate { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
    let begin = if how.append { there } else { 0 };
    let end = begin.saturating_add(data.len() as u64);
    if end.max(there) > paths.terms.max_file_bytes {
        return Err(Errno::EFBIG);
    }
    if how.truncate && stat.st_size > 0 {
        ftruncate(file.as_fd(), 0)?;
    }
    let mut file = File::from(file);
    if how.append {
        file.seek(SeekFrom::End(0)).map_err(errno)?;
    }
    file.write_all(data).map_err(errno)
}

/// Opens a regular file for writing, without truncating it: nothing is changed before its kind is known. Opening a pipe would
/// block and opening a device can have effects, so an existing file is checked before it is opened, and again after.
fn open(
    paths: &WorktreePaths<'_>,
    path: &str,
    how: WriteMode,
    mode: u32,
) -> Result<(OwnedFd, RawStat), Errno> {
    match paths.stat(path, !how.exclusive) {
        Ok(_) if how.exclusive => return Err(Errno::EEXIST),
        Ok(stat) => writable(&stat)?,
        Err(Errno::ENOENT) if how.create => {}
        Err(error) => return Err(error),
    }
    let mut flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    flags.set(OFlag::O_CREAT, how.create);
    flags.set(OFlag::O_EXCL, how.create && how.exclusive);
    let mode = if how.create { Mode::from_bits_truncate(mode & 0o777) } else { Mode::empty() };
    let file = paths.open(path, flags, mode)?;
    let stat = fstat(&file)?;
    writable(&stat)?;
    Ok((file, stat))
}

/// Refuses anything but a regular file with one hard link. Another link may be outside of the worktree, where nothing may be
/// changed.
fn writable(stat: &RawStat) -> Result<(), Errno> {
    expect_file(stat)?;
    if stat.st_nlink > 1 { Err(Errno::EMLINK) } else { Ok(()) }
}

/// Copies a regular file; returns its size.
pub(super) fn copy(paths: &WorktreePaths<'_>, from: &str, to: &str, exclusive: bool) -> Result<u64, Errno> {
    let (source, source_stat) = paths.regular_file(from)?;
    let how = WriteMode { create: true, exclusive, truncate: true, append: false };
    if u64::try_from(source_stat.st_size).unwrap_or(0) > paths.terms.max_file_bytes {
        return Err(Errno::EFBIG);
    }
    let (target, stat) = open(paths, to, how, source_stat.st_mode)?;
    if (stat.st_dev, stat.st_ino) == (source_stat.st_dev, source_stat.st_ino) {
        return Ok(0);
    }
    ftruncate(target.as_fd(), 0)?;
    let (mut source, mut target) = (File::from(source), File::from(target));
    let mut piece = vec![0; PIECE_BYTES];
    let mut copied = 0_u64;
    loop {
        let read = source.read(&mut piece).map_err(errno)?;
        if read == 0 {
            return Ok(copied);
        }
        copied += read as u64;
        // The file may grow while it is copied.
        if copied > paths.terms.max_file_bytes {
            return Err(Errno::EFBIG);
        }
        target.write_all(&piece[..read]).map_err(errno)?;
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the signature that `map_err` requires")]
fn errno(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
