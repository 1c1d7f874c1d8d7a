//! Resolution of imports to variables across modules.
//!
//! Owns: [`ImportTarget`], the search through `export … from` and `export *`. Must not: emit code.

use super::ProgramModule;
use super::record::{DEFAULT, Export, ImportedName};
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use std::collections::{BTreeMap, HashSet};

/// The target to which an import is bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum ImportTarget {
    /// A variable of a module
    Variable(usize, SymbolId),
    /// The value of a module's `export default` without a variable, or the value of a JSON file
    Default(usize),
    /// The namespace object of a module
    Namespace(usize),
}

/// The result of a search for an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resolution {
    Found(ImportTarget),
    /// Only a type of that name is exported
    Type,
    /// Several `export *` have different ones
    Ambiguous,
    Missing,
}

/// The export of a name.
fn search(
    modules: &[ProgramModule<'_>],
    module: usize,
    name: &str,
    visited: &mut HashSet<(usize, String)>,
) -> Resolution {
    // A cycle of `export … from` leads nowhere.
    if !visited.insert((module, name.to_owned())) {
        return Resolution::Missing;
    }
    let Some(code) = &modules[module].code else {
        let is_default = name == DEFAULT;
        return if is_default {
            Resolution::Found(ImportTarget::Default(module))
        } else {
            Resolution::Missing
        };
    };
    match code.record.exports.get(name) {
        Some(Export::Default) => return Resolution::Found(ImportTarget::Default(module)),
        Some(Export::From(from, imported, _)) => {
            return follow(modules, code.targets[*from], imported, visited);
        }
        Some(Export::Local(symbol)) => {
            if !code.parsed.scoping.symbol_flags(*symbol).intersects(SymbolFlags::Import) {
                return Resolution::Found(ImportTarget::Variable(module, *symbol));
            }
            let import = code.record.imports.iter().find(|import| import.symbol == *symbol);
            let followed =
                import.map(|import| follow(modules, code.targets[import.from], &import.imported, visited));
            return followed.unwrap_or(Resolution::Type);
        }
        None if code.record.types.contains(name) => return Resolution::Type,
        None if name == DEFAULT => return Resolution::Missing,
        None => {}
    }
    let mut found = Resolution::Missing;
    for star in &code.record.stars {
        match (found, search(modules, code.targets[*star], name, visited)) {
            (_, Resolution::Ambiguous) => return Resolution::Ambiguous,
            (Resolution::Found(one), Resolution::Found(other)) if one != other => {
                return Resolution::Ambiguous;
            }
            (Resolution::Missing, other) | (Resolution::Type, other @ Resolution::Found(_)) => found = other,
            _ => {}
        }
    }
    found
}

/// Finds the target of an import, or of `export … from`, of a module.
fn follow(
    modules: &[ProgramModule<'_>],
    module: usize,
    imported: &ImportedName,
    visited: &mut HashSet<(usize, String)>,
) -> Resolution {
    match imported {
        ImportedName::Name(name) => search(modules, module, name, visited),
        ImportedName::Namespace => Resolution::Found(ImportTarget::Namespace(module)),
    }
}

/// Finds the target of an import.
pub(super) fn of_import(modules: &[ProgramModule<'_>], module: usize, imported: &ImportedName) -> Resolution {
    follow(modules, module, imported, &mut HashSet::new())
}

/// The exports of a module that exist at run time, by name.
pub(super) fn all(modules: &[ProgramModule<'_>], module: usize) -> BTreeMap<String, ImportTarget> {
    let mut names = HashSet::new();
    let mut seen = HashSet::new();
    let mut left = vec![module];
    while let Some(next) = left.pop() {
        if !seen.insert(next) {
            continue;
        }
        match &modules[next].code {
            Some(code) => {
                let own = code.record.exports.keys().filter(|name| next == module || *name != DEFAULT);
                names.extend(own.cloned());
                left.extend(code.record.stars.iter().map(|star| code.targets[*star]));
            }
            None if next == module => {
                names.insert(DEFAULT.to_owned());
            }
            None => {}
        }
    }
    let found =
        names.into_iter().filter_map(|name| match search(modules, module, &name, &mut HashSet::new()) {
            Resolution::Found(target) => Some((name, target)),
            _ => None,
        });
    found.collect()
}
