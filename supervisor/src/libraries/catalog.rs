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
}

impl CatalogEntry {
    /// `id-version`.
    pub fn name(&self) -> String {
        super::full_name(self.id, self.version)
    }
}

const fn entry(id: &'static str, version: &'static str, global: &'static str) -> CatalogEntry {
    CatalogEntry { id, version, global }
}

/// Sorted by id.
pub const CATALOG: &[CatalogEntry] = &[
    entry("axios", "1.6.0", "axios"),
    entry("dayjs", "1.11.10", "dayjs"),
    entry("lodash", "4.17.21", "_"),
    entry("moment", "2.29.4", "moment"),
    entry("ramda", "0.29.0", "R"),
    entry("zustand", "4.4.7", "zustand"),
];

/// The entry of this id or of this `id-version`.
pub fn catalog_entry(name: &str) -> Option<&'static CatalogEntry> {
    CATALOG.iter().find(|entry| entry.id == name || entry.name() == name)
}
