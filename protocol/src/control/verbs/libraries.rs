//! Verbs of installed libraries.

use crate::codec::{Decode, Encode};

/// The installed libraries, and those of the original catalog that are not installed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LibraryCatalog;

/// Install a library for every template. Administrators only: its code runs in their users' sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LibraryInstall {
    /// The name in `require` and `import`, as on npm.
    pub id: String,
    pub version: String,
    /// The global variable; absent: as in the original catalog, else none.
    pub global: Option<String>,
    /// One JavaScript file without relative imports: a script (UMD, `CommonJS`, IIFE) or an ES module.
    pub source: String,
    /// Install it although it may not load by itself, such as one that needs another library of its template.
    pub unchecked: bool,
}

/// Remove an installed library; existing sessions keep it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LibraryRemove {
    /// `id-version`, or `id` if one version is installed.
    pub name: String,
}

/// Compare installed libraries with the hashes that were recorded when they were installed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LibraryVerify {
    /// Only this library.
    pub name: Option<String>,
}
