//! Reads the texts of a plan from its files.
//!
//! Owns: which files a plan consists of, and how much of them there may be. Must not: open files itself, know permissions.

use super::{FILE_NAME_BYTES, MOST_FILES, PLAN_BYTES, listed_files};
use std::collections::HashSet;
use std::path::Path;
use vm_system_protocol::control::PlanCheck;

/// Reads a plan and the files that it lists, relative to it. `read` returns the text of a file up to a number of bytes; a listed
/// file without a text is left out: the compiler of the plan reports it with its line.
pub fn gather<E>(
    file: &str,
    mut read: impl FnMut(&Path, usize) -> Result<Option<String>, E>,
) -> Result<Option<PlanCheck>, E> {
    let path = Path::new(file);
    let Some(text) = read(path, PLAN_BYTES)? else { return Ok(None) };
    let mut left = PLAN_BYTES - text.len().min(PLAN_BYTES);
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut parts: Vec<(String, String)> = Vec::new();
    let listed = listed_files(&text);
    // A plan that lists more files is refused anyway.
    if listed.len() <= MOST_FILES {
        let mut seen = HashSet::new();
        for name in listed {
            if name.len() > FILE_NAME_BYTES || !seen.insert(name.clone()) {
                continue;
            }
            if let Some(text) = read(&folder.join(&name), left)? {
                left -= text.len().min(left);
                parts.push((name, text));
            }
        }
    }
    Ok(Some(PlanCheck { file: file.to_owned(), text, parts }))
}
