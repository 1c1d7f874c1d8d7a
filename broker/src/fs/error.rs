//! The kernel's errors as scripts know them: Node's code, Node's wording, the script's own path. Never a host path.

use nix::errno::Errno;
use vm_system_protocol::worker::HostError;

/// Longest part of a path in a message (bytes); the kernel takes none above 4096.
const SHOWN_BYTES: usize = 4096;

/// `ENOENT: no such file or directory, open 'data/x.csv'`.
pub(super) fn host_error(errno: Errno, call: &str, path: &str) -> HostError {
    let (code, words) = match errno {
        Errno::ENOENT => ("ENOENT", "no such file or directory"),
        Errno::EACCES | Errno::EPERM => ("EACCES", "permission denied"),
        // What `openat2` says of a path that would leave the directory.
        Errno::EXDEV => ("EACCES", "permission denied (the path leaves the worktree)"),
        Errno::ENODEV | Errno::ENXIO => ("EACCES", "permission denied (not a regular file)"),
        Errno::EISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::ENOTDIR => ("ENOTDIR", "not a directory"),
        Errno::ELOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::ENAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::EFBIG => ("EFBIG", "file too large"),
        Errno::EINVAL => ("EINVAL", "invalid argument"),
        Errno::EAGAIN => ("EAGAIN", "resource temporarily unavailable"),
        Errno::EMFILE | Errno::ENFILE => ("EMFILE", "too many open files"),
        Errno::ENOMEM => ("ENOMEM", "not enough memory"),
        _ => ("EIO", "i/o error"),
    };
    let end = path.floor_char_boundary(SHOWN_BYTES);
    HostError { code: code.to_owned(), message: format!("{code}: {words}, {call} '{}'", &path[..end]) }
}
