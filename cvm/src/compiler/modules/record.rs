//! The imports and exports of one module, read from its AST.
//!
//! Owns: [`ModuleRecord`], and which imports of TypeScript exist at run time. Must not: know other modules.

use super::super::CompileErrorKind;
use super::super::facts::bound_names;
use super::super::parse::Parsed;
use super::super::unsupported::RefusedUse;
use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, ExportNamedDeclaration, ImportDeclaration,
    ImportDeclarationSpecifier, Statement, WithClause,
};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;
use oxc_syntax::symbol::SymbolId;
use std::collections::{HashMap, HashSet};

/// A request for another file, in the order of the source.
#[derive(Debug)]
pub(super) struct Request {
    pub specifier: String,
    /// Source offset of the specifier
    pub at: u32,
    /// `with { type: 'json' }`
    pub json: bool,
}

/// The part of a module that is imported.
#[derive(Clone, Debug)]
pub(super) enum ImportedName {
    /// `import { name }`
    Name(String),
    /// `import * as name`
    Namespace,
}

/// An import of a binding.
#[derive(Debug)]
pub(super) struct Import {
    pub symbol: SymbolId,
    pub imported: ImportedName,
    /// Index of the request
    pub from: usize,
    pub at: u32,
}

/// An export that has a name.
#[derive(Debug)]
pub(super) enum Export {
    /// A variable of the module, which may be an import
    Local(SymbolId),
    /// The value of `export default` that has no variable
    Default,
    /// `export { name } from` and `export * as name from`: index of the request, what, and source offset
    From(usize, ImportedName, u32),
}

/// The imports and exports of a module.
#[derive(Debug, Default)]
pub(super) struct ModuleRecord {
    pub requests: Vec<Request>,
    pub imports: Vec<Import>,
    pub exports: HashMap<String, Export>,
    /// Indices of the requests of `export * from`
    pub stars: Vec<usize>,
    /// Names of exported types: they do not exist at run time
    pub types: HashSet<String>,
    /// Source offsets with the reason why the module does not compile
    pub errors: Vec<RefusedUse>,
}

impl ModuleRecord {
    pub(super) fn read(parsed: &Parsed<'_>, typescript: bool) -> ModuleRecord {
        let mut record = ModuleRecord::default();
        for statement in &parsed.program.body {
            match statement {
                Statement::ImportDeclaration(d) => record.import(d, &parsed.scoping, typescript),
                Statement::ExportDeclaration(d) => record.declaration(&d.declaration),
                Statement::ExportNamedDeclaration(d) => record.names(d, &parsed.scoping, typescript),
                Statement::ExportFromDeclaration(d) => {
                    let names = d.specifiers.iter();
                    let types = names.clone().filter(|s| d.export_kind.is_type() || s.export_kind.is_type());
                    record.types.extend(types.map(|s| s.exported.name().to_string()));
                    if d.export_kind.is_type() {
                        continue;
                    }
                    let from = record.request(&d.source.value, d.source.span.start, d.with_clause.as_deref());
                    for s in names.filter(|s| !s.export_kind.is_type()) {
                        let name = ImportedName::Name(s.local.name().to_string());
                        let export = Export::From(from, name, s.span.start);
                        record.exports.insert(s.exported.name().to_string(), export);
                    }
                }
                Statement::ExportAllDeclaration(d) if !d.export_kind.is_type() => {
                    let from = record.request(&d.source.value, d.source.span.start, d.with_clause.as_deref());
                    match &d.exported {
                        Some(name) => {
                            let export = Export::From(from, ImportedName::Namespace, name.span().start);
                            record.exports.insert(name.name().to_string(), export);
                        }
                        None => record.stars.push(from),
                    }
                }
                Statement::ExportDefaultDeclaration(d) => {
                    let id = match &d.declaration {
                        ExportDefaultDeclarationKind::FunctionDeclaration(f) if f.body.is_none() => continue,
                        ExportDefaultDeclarationKind::FunctionDeclaration(f) => f.id.as_ref(),
                        ExportDefaultDeclarationKind::ClassDeclaration(c) => c.id.as_ref(),
                        ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => {
                            record.types.insert(DEFAULT.to_owned());
                            continue;
                        }
                        _ => None,
                    };
                    let symbol = id.and_then(|id| id.symbol_id.get());
                    record.exports.insert(DEFAULT.to_owned(), symbol.map_or(Export::Default, Export::Local));
                }
                _ => {}
            }
        }
        record
    }

    /// The number of the request for a specifier.
    fn request(&mut self, specifier: &str, at: u32, with: Option<&WithClause<'_>>) -> usize {
        let mut json = false;
        for attribute in with.iter().flat_map(|with| &with.with_entries) {
            let (key, value) = (attribute.key.as_arena_str(), attribute.value.value.as_str());
            if key == "type" && value == "json" {
                json = true;
            } else {
                let message = format!("`with {{ {key}: '{value}' }}` is not supported: use `type: 'json'`");
                let (at, kind) = (attribute.span.start, CompileErrorKind::Unsupported);
                self.errors.push(RefusedUse { at, kind, message });
            }
        }
        self.requests.push(Request { specifier: specifier.to_owned(), at, json });
        self.requests.len() - 1
    }

    fn import(&mut self, d: &ImportDeclaration<'_>, scoping: &Scoping, typescript: bool) {
        if d.phase.is_some() {
            let message = "`import source` and `import defer` are not supported".to_owned();
            let (at, kind) = (d.span.start, CompileErrorKind::Invalid);
            self.errors.push(RefusedUse { at, kind, message });
        }
        if d.import_kind.is_type() {
            return;
        }
        let list = d.specifiers.iter().flatten();
        let used: Vec<_> = list.filter_map(|s| imported(s, scoping, typescript)).collect();
        // TypeScript: an import that is used only for its types does not exist at run time.
        if used.is_empty() && d.specifiers.as_ref().is_some_and(|list| !list.is_empty()) {
            return;
        }
        let from = self.request(&d.source.value, d.source.span.start, d.with_clause.as_deref());
        let imports = used.into_iter().map(|(symbol, imported, at)| Import { symbol, imported, from, at });
        self.imports.extend(imports);
    }

    /// `export const a = 1`, `export function f() {}`, `export interface T {}`
    fn declaration(&mut self, declaration: &Declaration<'_>) {
        let id = match declaration {
            Declaration::VariableDeclaration(d) if !d.declare => {
                for v in &d.declarations {
                    bound_names(&v.id, &mut |id| {
                        if let Some(symbol) = id.symbol_id.get() {
                            self.exports.insert(id.name.to_string(), Export::Local(symbol));
                        }
                    });
                }
                return;
            }
            Declaration::FunctionDeclaration(f) if f.body.is_some() => f.id.as_ref(),
            Declaration::ClassDeclaration(c) if !c.declare => c.id.as_ref(),
            Declaration::TSEnumDeclaration(e) if !e.declare => Some(&e.id),
            other => {
                let name = other.id().map(|id| id.name.to_string());
                self.types.extend(name.filter(|_| !matches!(other, Declaration::FunctionDeclaration(_))));
                return;
            }
        };
        if let Some(id) = id
            && let Some(symbol) = id.symbol_id.get()
        {
            self.exports.insert(id.name.to_string(), Export::Local(symbol));
        }
    }

    /// `export { a, b as c }`
    fn names(&mut self, d: &ExportNamedDeclaration<'_>, scoping: &Scoping, typescript: bool) {
        let root = scoping.root_scope_id();
        for s in &d.specifiers {
            let (local, exported) = (s.local.name(), s.exported.name().to_string());
            let symbol = scoping.get_binding(root, local.as_str().into());
            let is_type = |symbol: SymbolId| typescript && !scoping.symbol_flags(symbol).is_value();
            if d.export_kind.is_type() || s.export_kind.is_type() || symbol.is_some_and(is_type) {
                self.types.insert(exported);
            } else if let Some(symbol) = symbol {
                self.exports.insert(exported, Export::Local(symbol));
            } else {
                let message = format!("`{local}` is not defined in this file");
                let (at, kind) = (s.span.start, CompileErrorKind::Undefined);
                self.errors.push(RefusedUse { at, kind, message });
            }
        }
    }
}

/// The name of a default export.
pub(super) const DEFAULT: &str = "default";

/// The symbol, what it is bound to, and the source offset; none if only the type is imported.
fn imported(
    specifier: &ImportDeclarationSpecifier<'_>,
    scoping: &Scoping,
    typescript: bool,
) -> Option<(SymbolId, ImportedName, u32)> {
    let (local, imported) = match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(s) if s.import_kind.is_type() => return None,
        ImportDeclarationSpecifier::ImportSpecifier(s) => {
            (&s.local, ImportedName::Name(s.imported.name().to_string()))
        }
        ImportDeclarationSpecifier::ImportDefaultSpecifier(s) => {
            (&s.local, ImportedName::Name(DEFAULT.to_owned()))
        }
        ImportDeclarationSpecifier::ImportNamespaceSpecifier(s) => (&s.local, ImportedName::Namespace),
    };
    let symbol = local.symbol_id.get()?;
    let mut uses = scoping.get_resolved_references(symbol);
    let is_used = !typescript || uses.any(|reference| reference.is_read() || reference.is_write());
    is_used.then(|| (symbol, imported, specifier.span().start))
}
