//! The libraries that the original could download: their names are always accepted in templates, installed or not.

/// One library of the original catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogEntry {
    /// As on npm.
    pub id: &'static str,
    /// The original's version of it.
    pub version: &'static str,
    /// The global variable that it becomes, in any version.
    pub global: &'static str,
    /// The file of its package that needs no other file.
    pub file: &'static str,
}

impl CatalogEntry {
    /// `id-version`.
    pub fn name(&self) -> String {
        super::full_name(self.id, self.version)
    }
}

const fn entry(
    id: &'static str,
    version: &'static str,
    global: &'static str,
    file: &'static str,
) -> CatalogEntry {
    CatalogEntry { id, version, global, file }
}

/// Sorted by id.
pub const CATALOG: &[CatalogEntry] = &[
    entry("axios", "1.6.0", "axios", "dist/axios.min.js"),
    entry("dayjs", "1.11.10", "dayjs", "dayjs.min.js"),
    entry("lodash", "4.17.21", "_", "lodash.min.js"),
    entry("moment", "2.29.4", "moment", "min/moment.min.js"),
    entry("ramda", "0.29.0", "R", "dist/ramda.min.js"),
    // The rest of it needs React.
    entry("zustand", "4.4.7", "zustand", "umd/vanilla.production.js"),
];

/// The entry of this id or of this `id-version`.
pub fn catalog_entry(name: &str) -> Option<&'static CatalogEntry> {
    CATALOG.iter().find(|entry| entry.id == name || entry.name() == name)
}
