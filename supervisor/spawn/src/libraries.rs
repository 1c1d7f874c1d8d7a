//! Installed libraries as bytes: where their sources are stored, their names, and the original catalog.
//!
//! Knows no verbs and no processes, and never parses a library: sources are evaluated only in a zygote.
//!
//! Reading order:
//! - [`names`]: `id-version`, npm's names, names of global variables
//! - [`catalog`]: the libraries of the original
//! - [`library_store`]: sources by the hash of their content

mod catalog;
mod library_store;
mod names;
#[cfg(test)]
mod tests;

pub use catalog::{CATALOG, CatalogEntry, catalog_entry};
pub use library_store::{LibraryStore, LibraryStoreError, hex};
pub use names::{NameError, check_global, check_id, check_version, full_name};
