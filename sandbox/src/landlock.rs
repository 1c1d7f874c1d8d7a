//! Landlock: no file system (or only named directories), no TCP, and at newer ABIs no signals and no abstract sockets
//! across the wall. By hand: a wall is what this project exists for, and the caller decides what a kernel without a right of it means,
//! while `landlock` leaves such rights out by itself.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// File-system rights by ABI: 13 at ABI 1, then REFER, TRUNCATE, `IOCTL_DEV`.
const fn fs_rights(abi: u32) -> u64 {
    match abi {
        0 => 0,
        1 => (1 << 13) - 1,
        2 => (1 << 14) - 1,
        3 | 4 => (1 << 15) - 1,
        _ => (1 << 16) - 1,
    }
}

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
const READ: u64 = READ_FILE | (1 << 3);
/// Writing, truncating, removing and creating files and directories; no devices, sockets or pipes, no execution.
const WRITE: u64 = WRITE_FILE | (1 << 4) | (1 << 5) | (1 << 7) | (1 << 8) | (1 << 13) | TRUNCATE;

const MAKE_FIFO: u64 = 1 << 10;
const MAKE_SYM: u64 = 1 << 12;
/// The rights that a rule of a file may have.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const BIND_TCP: u64 = 0b01;
const NET_RIGHTS: u64 = 0b11;
const SCOPES: u64 = 0b11;

/// The kernel's ABI version, 0 without Landlock.
pub fn abi() -> u32 {
    sys::landlock_abi()
}

/// The restrictions in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domain {
    /// The kernel's ABI; 0: nothing is in force.
    pub abi: u32,
}

impl Domain {
    /// Whether signals and abstract sockets are scoped.
    pub fn scoped(self) -> bool {
        self.abi >= 6
    }
}

/// The access beneath a directory, or to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading files and listing directories.
    Read,
    /// Also creating, changing and removing files and directories.
    ReadWrite,
    /// Reading and executing: programs and libraries.
    Execute,
    /// All of the above, and creating symbolic links: the worktree of a command.
    Work,
    /// Reading and changing, with symbolic links and named pipes, but no execution: a command's own files.
    Scratch,
    /// Reading and writing a device.
    Device,
}

impl Access {
    const fn rights(self) -> u64 {
        match self {
            Self::Read => READ,
            Self::ReadWrite => READ | WRITE,
            Self::Execute => READ | EXECUTE,
            Self::Work => READ | WRITE | EXECUTE | MAKE_SYM,
            Self::Scratch => READ | WRITE | MAKE_SYM | MAKE_FIFO,
            Self::Device => WRITE_FILE | READ_FILE | IOCTL_DEV,
        }
    }
}

/// Restricts the calling process to the `allowed` directories and files. Needs `no_new_privs`. On a kernel without Landlock the result is
/// ABI 0 and no error: the caller decides whether that is sufficient.
pub fn restrict(allowed: &[(BorrowedFd<'_>, Access)]) -> io::Result<Domain> {
    let abi = abi();
    if abi == 0 {
        return Ok(Domain { abi });
    }
    let fs = fs_rights(abi);
    let (net, scoped) = (if abi >= 4 { NET_RIGHTS } else { 0 }, if abi >= 6 { SCOPES } else { 0 });
    let ruleset = sys::landlock_ruleset(fs, net, scoped, words(abi))?;
    for (path, access) in allowed {
        let is_folder = nix::sys::stat::fstat(path)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let possible = if is_folder { fs } else { fs & OF_FILES };
        sys::landlock_allow(ruleset.as_fd(), *path, access.rights() & possible)?;
    }
    sys::landlock_restrict(ruleset.as_fd())?;
    Ok(Domain { abi })
}

/// Restricts the calling process to connections that it makes: no file, and no TCP port to listen at. Needs `no_new_privs`.
pub fn restrict_to_connections() -> io::Result<Domain> {
    let abi = abi();
    if abi == 0 {
        return Ok(Domain { abi });
    }
    let (net, scoped) = (if abi >= 4 { BIND_TCP } else { 0 }, if abi >= 6 { SCOPES } else { 0 });
    let ruleset = sys::landlock_ruleset(fs_rights(abi), net, scoped, words(abi))?;
    sys::landlock_restrict(ruleset.as_fd())?;
    Ok(Domain { abi })
}

/// Words of the attribute that the ABI knows.
const fn words(abi: u32) -> usize {
    match abi {
        ..4 => 1,
        4 | 5 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_grow_with_the_abi_and_writing_never_includes_devices_or_execution() {
        assert_eq!(fs_rights(7), 0xffff);
        assert_eq!(fs_rights(1), 0x1fff);
        let (make_char, make_sock, make_block) = (1 << 6, 1 << 9, 1 << 11);
        let broker = Access::Read.rights() | Access::ReadWrite.rights();
        assert_eq!(broker & (EXECUTE | make_char | make_sock | MAKE_FIFO | make_block | MAKE_SYM), 0);
        let command = [Access::Execute, Access::Work, Access::Scratch, Access::Device];
        for access in command {
            assert_eq!(access.rights() & (make_char | make_sock | make_block), 0, "{access:?}");
        }
        assert_eq!(Access::Work.rights() & MAKE_FIFO, 0, "a process of the host that opens a pipe waits");
        assert_eq!(Access::Scratch.rights() & EXECUTE, 0);
    }
}
