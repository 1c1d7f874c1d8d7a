//! Landlock: no file system (or only named directories), no TCP, and at newer ABIs no signals and no abstract sockets
//! across the wall.

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

const READ: u64 = (1 << 2) | (1 << 3);
/// Writing, truncating, removing and creating files and directories; no devices, sockets or pipes, no execution.
const WRITE: u64 = (1 << 1) | (1 << 4) | (1 << 5) | (1 << 7) | (1 << 8) | (1 << 13) | (1 << 14);

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

/// The access beneath a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading files and listing directories.
    Read,
    /// Also creating, changing and removing files and directories.
    ReadWrite,
}

/// Restricts the calling process to the `allowed` directories. Needs `no_new_privs`. On a kernel without Landlock the result is
/// ABI 0 and no error: the caller decides whether that is sufficient.
pub fn restrict(allowed: &[(BorrowedFd<'_>, Access)]) -> io::Result<Domain> {
    let abi = abi();
    if abi == 0 {
        return Ok(Domain { abi });
    }
    let fs = fs_rights(abi);
    let (net, scoped) = (if abi >= 4 { NET_RIGHTS } else { 0 }, if abi >= 6 { SCOPES } else { 0 });
    let words = match abi {
        ..4 => 1,
        4 | 5 => 2,
        _ => 3,
    };
    let ruleset = sys::landlock_ruleset(fs, net, scoped, words)?;
    for (directory, access) in allowed {
        let rights = match access {
            Access::Read => READ,
            Access::ReadWrite => READ | WRITE,
        };
        sys::landlock_allow(ruleset.as_fd(), *directory, rights & fs)?;
    }
    sys::landlock_restrict(ruleset.as_fd())?;
    Ok(Domain { abi })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_grow_with_the_abi_and_writing_never_includes_devices_or_execution() {
        assert_eq!(fs_rights(7), 0xffff);
        assert_eq!(fs_rights(1), 0x1fff);
        let (execute, make_char, make_sock, make_fifo, make_block, make_sym) =
            (1 << 0, 1 << 6, 1 << 9, 1 << 10, 1 << 11, 1 << 12);
        assert_eq!((READ | WRITE) & (execute | make_char | make_sock | make_fifo | make_block | make_sym), 0);
    }
}
