//! Owns paths of modules as texts: relative to the worktree, with `/` between names. Reads no files.

use super::folder_of;

/// Whether the kind of a file depends on its package's `type`.
pub(super) fn depends_on_package(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_none_or(|(_, extension)| extension == "js")
}

/// The folder of a file; empty for one at the top.
pub(super) fn folder(path: &str) -> &str {
    match folder_of(path) {
        "." => "",
        folder => folder,
    }
}

/// `relative` seen from the folder `base`, both relative to the worktree; `None` if it leaves the worktree. Empty and `.` names
/// vanish, `..` goes up.
pub(super) fn join(base: &str, relative: &str) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in base.split('/').chain(relative.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}
