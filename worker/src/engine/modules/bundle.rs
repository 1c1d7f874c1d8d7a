//! Owns the format of a library of several files: its own and those of the packages that it depends on, as they would be in a worktree
//! with `node_modules`. The client creates the text, and resolution reads files of it instead of the worktree's (`find`).

use super::LoadedFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vm_system_protocol::worker::{PackageFile, SourceFormat};
use vm_system_protocol::worktree_path::folder;

/// The first line of the text. No JavaScript begins with it.
const FIRST_LINE: &str = "vm-system library bundle 1\n";
/// Prefix of the paths of a bundle's files; no path of a worktree begins with it.
const PATH_PREFIX: &str = "bundle:";

/// A library of several files.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryBundle {
    /// The file that is the library.
    pub entry: String,
    /// Texts by path: `node_modules/NAME/…`.
    pub files: BTreeMap<String, String>,
}

impl LibraryBundle {
    /// The text that is installed.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{FIRST_LINE}{}", serde_json::to_string(self)?))
    }

    /// `None`: the text is no bundle.
    pub(in crate::engine) fn parse(text: &str) -> Option<Result<Self, String>> {
        let json = text.strip_prefix(FIRST_LINE)?;
        let bundle: Result<Self, _> = serde_json::from_str(json);
        Some(match bundle {
            Ok(bundle) if bundle.files.contains_key(&bundle.entry) => Ok(bundle),
            Ok(bundle) => Err(format!("the bundle has no file {}", bundle.entry)),
            Err(error) => Err(format!("the bundle cannot be read: {error}")),
        })
    }
}

/// The bundle of a library that is loaded.
#[derive(Debug)]
pub(in crate::engine) struct LoadedBundle {
    /// The beginning of the paths of the bundle's files.
    root: String,
    bundle: LibraryBundle,
}

impl LoadedBundle {
    pub(in crate::engine) fn new(library: &str, bundle: LibraryBundle) -> Self {
        Self { root: format!("{PATH_PREFIX}{library}/"), bundle }
    }

    /// Whether a path may be one of some bundle's files.
    pub(in crate::engine) fn is_path(path: &str) -> bool {
        path.starts_with(PATH_PREFIX)
    }

    /// Whether a path is beneath the root of this bundle, whether or not there is a file.
    pub(in crate::engine) fn covers(&self, path: &str) -> bool {
        path.starts_with(&self.root)
    }

    /// The path of the file that is the library.
    pub(in crate::engine) fn entry(&self) -> String {
        format!("{}{}", self.root, self.bundle.entry)
    }

    /// The referrer of the entry.
    pub(in crate::engine) fn referrer(&self) -> String {
        format!("{}library", self.root)
    }

    /// The first of these files that exists, and the `package.json` that applies to it, if that was requested.
    pub(super) fn first(
        &self,
        candidates: &[String],
        package: bool,
    ) -> Option<(LoadedFile, Option<PackageFile>)> {
        let (path, source) = candidates.iter().find_map(|path| Some((path, self.file(path)?)))?;
        let file = LoadedFile::new(path.clone(), source.to_owned(), format_of(path));
        Some((file, if package { self.package_of(path) } else { None }))
    }

    fn file(&self, path: &str) -> Option<&str> {
        self.bundle.files.get(path.strip_prefix(&self.root)?).map(String::as_str)
    }

    fn package_of(&self, path: &str) -> Option<PackageFile> {
        let path = manifest_of(path, |path| self.file(path).is_some())?;
        Some(PackageFile { source: self.file(&path)?.to_owned(), path })
    }
}

/// The `package.json` that applies to a file of a package: of the nearest folder that has one.
pub(super) fn manifest_of(path: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let mut level = folder(path);
    while !level.is_empty() && level.rsplit('/').next() != Some("node_modules") {
        let path = format!("{level}/package.json");
        if exists(&path) {
            return Some(path);
        }
        level = folder(level);
    }
    None
}

/// By the file's name; `find` reads the package's `type`.
fn format_of(path: &str) -> SourceFormat {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "mjs" => SourceFormat::Module,
        "json" => SourceFormat::Json,
        _ => SourceFormat::CommonJs,
    }
}
