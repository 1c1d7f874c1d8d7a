//! The kernel's errors in the form that scripts see: Node's code, Node's message, the script's path. Never a host path.

use nix::errno::Errno;
use vm_system_protocol::worker::HostError;

/// Longest part of a path in a message (bytes); the kernel refuses paths above 4096.
const SHOWN_BYTES: usize = 4096;

/// `ENOENT: no such file or directory, open 'data/x.csv'`.
pub(crate) fn host_error(errno: Errno, call: &str, path: &str) -> HostError {
    let (code, message) = match errno {
        Errno::ENOENT => ("ENOENT", "no such file or directory"),
        Errno::EACCES => ("EACCES", "permission denied"),
        // The host refuses the call, although the rights would allow it.
        Errno::EPERM => ("EPERM", "operation not permitted"),
        // The error of `openat2` for a path that would leave the directory or enter another mount, or for a link if links are not followed.
        Errno::EXDEV => (
            "EACCES",
            "permission denied (the path leaves the worktree; or it has a link where patterns limit the paths; or it enters another \
             mount: `cross_mounts` of its root)",
        ),
        Errno::ENODEV | Errno::ENXIO => ("EACCES", "permission denied (not a regular file)"),
        Errno::EMLINK => ("EACCES", "permission denied (the file has other names: hard links)"),
        Errno::EISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::ENOTDIR => ("ENOTDIR", "not a directory"),
        Errno::EEXIST => ("EEXIST", "file already exists"),
        Errno::ENOTEMPTY => ("ENOTEMPTY", "directory not empty"),
        Errno::EBUSY => ("EBUSY", "resource busy or locked"),
        Errno::EROFS => ("EROFS", "read-only file system"),
        Errno::ENOSPC => ("ENOSPC", "no space left on device"),
        Errno::EDQUOT => ("EDQUOT", "disk quota exceeded"),
        Errno::ELOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::ENAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::EFBIG => ("EFBIG", "file too large"),
        Errno::EINVAL => ("EINVAL", "invalid argument"),
        Errno::EAGAIN => ("EAGAIN", "resource temporarily unavailable"),
        Errno::EMFILE | Errno::ENFILE => ("EMFILE", "too many open files"),
        Errno::ENOMEM => ("ENOMEM", "not enough memory"),
        Errno::ETXTBSY => ("ETXTBSY", "text file is busy"),
        _ => ("EIO", "i/o error"),
    };
    let end = path.floor_char_boundary(SHOWN_BYTES);
    HostError { code: code.to_owned(), message: format!("{code}: {message}, {call} '{}'", &path[..end]) }
}

#[cfg(test)]
mod tests {
    use super::host_error;
    use nix::errno::Errno;

    #[test]
    fn call_and_path_are_behind_the_only_comma() {
        // Sessions put their own call and path there.
        for number in 1..=133 {
            let error = host_error(Errno::from_raw(number), "open", "a");
            assert_eq!(error.message.find(", "), error.message.rfind(", open 'a'"), "{}", error.message);
        }
    }
}
