//! Paths of files as texts: relative to the worktree, with `/` between names. No I/O.

/// In the message of a refused change where no right to change files exists: clients recognize it and say how to get the right.
pub const NO_CHANGES: &str = "no path may be changed";

/// `relative` seen from the folder `base`, both relative to the worktree; `None` if it leaves the worktree. Empty and `.` names
/// vanish, `..` goes up.
pub fn join(base: &str, relative: &str) -> Option<String> {
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

/// The folder of a file; empty for one at the top.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
