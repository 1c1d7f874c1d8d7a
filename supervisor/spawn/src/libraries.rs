//! Installed libraries as bytes: where their sources lie, what they are called, which of them the original catalog has.
//!
//! Knows no verbs and no processes, and never parses a library: what a source does is found out in a zygote.
//!
//! Reading order:
//! - [`names`]: `id-version`, npm's names, names of global variables
//! - [`catalog`]: the libraries of the original
//! - [`shelf`]: sources by the hash of their content

mod catalog;
mod names;
mod shelf;
#[cfg(test)]
mod tests;

pub use catalog::{CATALOG, CatalogEntry, catalog_entry};
pub use names::{NameError, check_global, check_id, check_version, full_name};
pub use shelf::{Shelf, ShelfError, hex};
