//! The paths that `fs.listFiles` gathers beneath a folder, within bounds of its own. CPU work without waiting: it runs where
//! threads may be kept busy. Must not know brokers.

use super::filter::Filter;
use serde_json::Value;
use vm_system_protocol::broker::{DirEntry, FileKind};
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_LIST_BYTES};

/// A list in progress.
#[derive(Debug)]
pub(super) struct Listing {
    /// Prefix of each path.
    root: String,
    recursive: bool,
    filter: Option<Filter>,
    /// Relative to the listed folder.
    found: Vec<String>,
    /// Folders still to be read.
    folders: Vec<String>,
    /// Total size of all entries of both, in their output form.
    bytes: usize,
}

impl Listing {
    pub(super) fn new(root: String, recursive: bool, filter: Option<Filter>) -> Self {
        Self { root, recursive, filter, found: Vec::new(), folders: vec![String::new()], bytes: 0 }
    }

    /// The folder to be read next, relative to the listed one; empty = the listed one.
    pub(super) fn next_folder(&mut self) -> Option<String> {
        self.folders.pop()
    }

    /// Adds the content of a folder. `None`: the list is too large.
    pub(super) fn take(mut self, folder: &str, entries: Vec<DirEntry>) -> Option<Self> {
        for entry in entries {
            let folders = match entry.kind {
                FileKind::Directory => self.recursive,
                FileKind::File => false,
                _ => continue,
            };
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            let fits = match &mut self.filter {
                Some(filter) => filter.fits(&path)?,
                None => true,
            };
            for (wanted, list) in [(folders, &mut self.folders), (fits, &mut self.found)] {
                if wanted {
                    self.bytes += self.root.len() + path.len();
                    if list.len() >= FS_DIR_ENTRIES || self.bytes > FS_LIST_BYTES {
                        return None;
                    }
                    list.push(path.clone());
                }
            }
        }
        Some(self)
    }

    /// All paths, a folder before its content: by the parts of the path, not by its bytes.
    pub(super) fn finish(mut self) -> Value {
        let root = self.root;
        self.found.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        self.found.into_iter().map(|path| Value::from(format!("{root}{path}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{DirEntry, FileKind, Filter, Listing};
    use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_LIST_BYTES};

    fn entries(kind: FileKind, names: impl Iterator<Item = String>) -> Vec<DirEntry> {
        names.map(|name| DirEntry { name, kind }).collect()
    }

    #[test]
    fn a_list_without_an_end_is_refused_before_it_is_large() {
        let deep = "d/".repeat(1_900);
        let most = FS_LIST_BYTES / deep.len() / 2;
        let names = || (0..=most).map(|i| i.to_string());
        for (kind, filter) in [(FileKind::File, None), (FileKind::Directory, Filter::new("nothing"))] {
            let listing = Listing::new(deep.clone(), true, filter);
            assert!(listing.take(&deep, entries(kind, names())).is_none(), "{kind:?}");
        }
        let many = entries(FileKind::File, (0..=FS_DIR_ENTRIES).map(|i| i.to_string()));
        assert!(Listing::new(String::new(), false, None).take("", many).is_none());
    }

    #[test]
    fn paths_are_sorted_by_their_parts() {
        let mut listing = Listing::new("/w/".to_owned(), true, None);
        assert_eq!(listing.next_folder().as_deref(), Some(""));
        let mut all = entries(FileKind::File, ["a.txt", "b"].map(str::to_owned).into_iter());
        all.extend(entries(FileKind::Directory, std::iter::once("a".to_owned())));
        all.extend(entries(FileKind::Symlink, std::iter::once("link".to_owned())));
        let mut listing = listing.take("", all).expect("few");
        let folder = listing.next_folder().expect("a folder");
        let inside = entries(FileKind::File, std::iter::once("x".to_owned()));
        let listing = listing.take(&folder, inside).expect("few");
        assert_eq!(listing.finish(), serde_json::json!(["/w/a", "/w/a/x", "/w/a.txt", "/w/b"]));
    }
}
