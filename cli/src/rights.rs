//! Which right of the file system is missing, for hints.

use std::io;
use std::path::Path;

/// The way in which a command uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read,
    /// Also makes what is not there.
    Write,
}

/// The first folder or file on the way to `path` of which this user lacks a right, and which; none if it cannot be found.
pub(crate) fn missing_right(path: &Path, action: FileAction) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let user = nix::unistd::geteuid();
    let needs = |right: &str, of: &str, path: &Path| {
        format!("the user with the uid {user} needs the right {right} of the {of} {}", path.display())
    };
    let denied =
        |path: &Path| path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    // `.` is looked up in the folder itself.
    if let Some(closed) = folders.iter().find(|folder| folder.is_dir() && denied(&folder.join("."))) {
        return Some(needs("x (to enter it)", "folder", closed));
    }
    let (right, verb) = match action {
        FileAction::Read => ("r", "read"),
        FileAction::Write => ("w", "change"),
    };
    let right = format!("{right} (to {verb} it)");
    match path.metadata() {
        Ok(found) => Some(needs(&right, if found.is_dir() { "folder" } else { "file" }, &path)),
        Err(_) if action == FileAction::Write => {
            let folder = folders.iter().rev().find(|folder| folder.is_dir())?;
            Some(needs(&right, "folder", folder))
        }
        Err(_) => None,
    }
}
