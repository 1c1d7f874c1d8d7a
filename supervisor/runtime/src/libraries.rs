//! The installed libraries that the names of a template mean.

use vm_system_record::LibraryRow;
use vm_system_spawn::libraries::{CATALOG, CatalogEntry};
use vm_system_spawn::{Library, LibrarySet};

/// The libraries of a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Libraries {
    /// All of them are installed.
    Installed(LibrarySet),
    /// This library is not installed (`id-version`): the session cannot be created.
    Missing(String),
}

impl Libraries {
    /// The installed libraries with these names of a template.
    pub fn find_installed(names: &[String], installed: &[LibraryRow]) -> Self {
        let library = |name: &String| {
            let row = row_of(name, installed).ok_or_else(|| full_library_name(name, installed))?;
            let LibraryRow { name, id, global, hash, .. } = row.clone();
            Ok(Library { name, id, global, hash })
        };
        match names.iter().map(library).collect::<Result<Vec<_>, String>>() {
            Ok(libraries) => Self::Installed(LibrarySet::new(libraries)),
            Err(missing) => Self::Missing(missing),
        }
    }
}

/// `lodash` → `lodash-4.17.21`, for the ids of the catalog.
pub fn catalog_name(id: &str) -> Option<String> {
    CATALOG.iter().find(|entry| entry.id == id).map(CatalogEntry::name)
}

/// The installed library that a template's name means: for an id of the catalog its version there, otherwise the only one.
fn row_of<'a>(name: &str, rows: &'a [LibraryRow]) -> Option<&'a LibraryRow> {
    let of_catalog = catalog_name(name);
    let full = of_catalog.as_deref().unwrap_or(name);
    let exact = rows.iter().find(|row| row.name == full);
    exact.or_else(|| {
        let mut versions = rows.iter().filter(|row| row.id == name);
        versions.next().filter(|_| of_catalog.is_some() && versions.next().is_none())
    })
}

/// `id-version` of what a template's name means, installed or not.
pub fn full_library_name(name: &str, rows: &[LibraryRow]) -> String {
    let installed = row_of(name, rows).map(|row| row.name.clone());
    installed.or_else(|| catalog_name(name)).unwrap_or_else(|| name.to_owned())
}
