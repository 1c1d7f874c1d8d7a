//! The texts of a plan, as its files have them.
//!
//! Owns: which files a plan consists of, and how much of them there may be. Must not: open files itself, know permissions.

use super::{MOST_FILES, PLAN_BYTES, listed_files};
use std::path::Path;
use vm_system_protocol::control::PlanText;

/// Reads a plan and the files that it lists, relative to it. `read` gives the text of a file of at most so many bytes; a listed
/// file for which it has none is left out: the compiler of the plan reports it, with its line.
pub fn gather<E>(
    file: &str,
    mut read: impl FnMut(&Path, usize) -> Result<Option<String>, E>,
) -> Result<Option<PlanText>, E> {
    let path = Path::new(file);
    let Some(text) = read(path, PLAN_BYTES)? else { return Ok(None) };
    let mut left = PLAN_BYTES - text.len().min(PLAN_BYTES);
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut parts: Vec<(String, String)> = Vec::new();
    let listed = listed_files(&text);
    // One that lists more is refused whatever is in them.
    if listed.len() <= MOST_FILES {
        for name in listed {
            if parts.iter().any(|(known, _)| *known == name) {
                continue;
            }
            if let Some(text) = read(&folder.join(&name), left)? {
                left -= text.len().min(left);
                parts.push((name, text));
            }
        }
    }
    Ok(Some(PlanText { file: file.to_owned(), text, parts }))
}
