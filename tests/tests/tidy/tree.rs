//! The repository's text files, as paths from its root with `/` between names.

use std::fs;
use std::path::Path;

/// Folders that are not checked: builds, git's data, generated data.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts", "node_modules", "test262-suite"];

/// One file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// Whether the path is in one of these folders.
    pub(crate) fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Lines with their numbers from 1, without comments.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().filter_map(|(index, line)| {
            let code = line.split("//").next().unwrap_or(line);
            (!code.trim().is_empty()).then_some((index + 1, code))
        })
    }

    /// The first line of a Rust file's test code; `usize::MAX` without any.
    pub(crate) fn tests_from(&self) -> usize {
        if self.path.contains("/tests/") || self.path.ends_with("/tests.rs") {
            return 1;
        }
        let marked = self.text.lines().position(|line| line.trim_start().starts_with("#[cfg(test)]"));
        marked.map_or(usize::MAX, |index| index + 1)
    }
}

/// The files that the rules check.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<SourceFile>,
}

impl Tree {
    /// The repository that this test belongs to.
    pub(crate) fn of_the_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent");
        let mut files = Vec::new();
        collect(root, root, &mut files);
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Self { files }
    }

    /// A tree of example files.
    pub(crate) fn of_files(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), text: (*text).into() };
        Self { files: files.iter().map(file).collect() }
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| Path::new(&file.path).extension().is_some_and(|end| end == "rs"))
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).expect("readable folder").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("file type");
        if SKIPPED.contains(&name.as_str()) {
            // In a second work tree, `.git` is a file.
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, files);
        } else if kind.is_file() {
            // Files that are not text have no rules.
            if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
                files.push(SourceFile { path, text });
            }
        }
    }
}
