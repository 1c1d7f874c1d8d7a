//! Programs of several files: ES modules and JSON, which become one unit.
//!
//! Reading order: this file (finding the files, order of evaluation), `paths` (which file an `import` names), `record` (imports and
//! exports of one module), `exports` (imports to variables), `code` (the top level that evaluates all modules).
//!
//! All variables that cross the border of a module, or that closures use, are slots of one scope cell around all modules: an import
//! is the slot of the exported variable. Owns: the graph of the modules. Must not: read files.

mod code;
mod exports;
mod paths;
mod record;

pub(super) use code::CurrentModule;
pub use paths::candidates;

use super::parse::{self, Goal, Parsed};
use super::unsupported::RefusedUse;
use super::{CompileError, CompileErrorKind, CompileErrors, CompileOptions, Compiler, unsupported};
use crate::builtins::generations::GlobalNames;
use crate::program::{SourceFileStart, Unit};
use crate::pure::json::JsonScanner;
use exports::{ImportTarget, Resolution};
use oxc_allocator::Allocator;
use paths::SourceKind;
use record::{Export, ImportedName, ModuleRecord, Request};
use std::collections::{HashMap, HashSet};

/// A file of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// Relative to the folder of the entry: `lib/tax.ts`
    pub name: String,
    pub text: String,
}

/// An `import` of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileImport {
    pub specifier: String,
    /// Line, from 1
    pub line: u32,
}

/// A file that the program reaches.
pub(super) struct ProgramModule<'a> {
    name: &'a str,
    source: &'a str,
    /// Offset of its text in the unit's source
    start: u32,
    /// None: JSON
    code: Option<ModuleCode<'a>>,
}

pub(super) struct ModuleCode<'a> {
    parsed: Parsed<'a>,
    record: ModuleRecord,
    /// The module of each request
    targets: Vec<usize>,
}

/// The files that a file imports. Nothing for a text that does not compile: compiling it reports the errors.
pub fn imports(file: &SourceFile) -> Vec<FileImport> {
    let typescript = match paths::kind_of(&file.name) {
        Ok(SourceKind::Json) => return Vec::new(),
        Ok(SourceKind::JavaScript) => Some(false),
        Ok(SourceKind::TypeScript) => Some(true),
        Err(_) => None,
    };
    // Most programs have one file.
    if !file.text.contains("import") && !file.text.contains("export") {
        return Vec::new();
    }
    let of_language = |typescript: bool| {
        let allocator = Allocator::default();
        let parsed = parse::parse(&allocator, &file.text, typescript, Goal::Program).ok()?;
        let requests = ModuleRecord::read(&parsed, typescript).requests;
        // In the order of the source: each line is counted once.
        let (mut line, mut from) = (1, 0);
        let imports = requests.into_iter().map(|request| {
            let at = request.at.saturating_sub(parse::STRICT.len() as u32) as usize;
            line += file.text.get(from..at).unwrap_or_default().matches('\n').count() as u32;
            from = from.max(at);
            FileImport { specifier: request.specifier, line }
        });
        Some(imports.collect())
    };
    match typescript {
        Some(typescript) => of_language(typescript),
        None => of_language(false).or_else(|| of_language(true)),
    }
    .unwrap_or_default()
}

/// Compiles a module, which was parsed, with the files that it imports.
pub(super) fn compile<'a>(
    allocator: &'a Allocator,
    entry: (Parsed<'a>, &'a str),
    others: &'a [SourceFile],
    options: &'a CompileOptions,
    prelude: &HashMap<String, u32>,
    names: Option<&GlobalNames>,
) -> Result<Unit, CompileErrors> {
    let mut graph = Graph { allocator, files: others, modules: Vec::new(), errors: Vec::new() };
    graph.add(&options.filename, entry.1, Some((entry.0, options.typescript)));
    graph.load();
    let Graph { mut modules, mut errors, .. } = graph;
    let links = if errors.is_empty() { link(&modules, &mut errors) } else { Links::default() };
    if !errors.is_empty() {
        return Err(reported(errors, others, &options.filename));
    }
    links.mark(&mut modules);
    let Some(entry) = &modules[0].code else { return Err(CompileErrors(Vec::new())) };
    let mut compiler = Compiler::of_modules(&modules, entry, prelude);
    compiler.unit.filename.clone_from(&options.filename);
    if modules.len() > 1 {
        let starts = modules.iter().map(|m| SourceFileStart { name: m.name.to_owned(), start: m.start });
        compiler.unit.files = starts.collect();
    }
    compiler.refuse_uses(&modules, names);
    compiler.modules(&modules, &links);
    compiler.finish().map_err(|errors| reported(errors, others, &options.filename))
}

/// The errors of the entry first; without the file's name if there is one file.
fn reported(mut errors: Vec<CompileError>, others: &[SourceFile], entry: &str) -> CompileErrors {
    if others.is_empty() {
        for error in &mut errors {
            error.file = None;
        }
    }
    errors.sort_by_key(|error| {
        let file = error.file.clone().filter(|file| file != entry);
        (file, error.line, error.column)
    });
    errors.truncate(super::ERRORS);
    CompileErrors(errors)
}

struct Graph<'a> {
    allocator: &'a Allocator,
    files: &'a [SourceFile],
    modules: Vec<ProgramModule<'a>>,
    errors: Vec<CompileError>,
}

impl<'a> Graph<'a> {
    /// Adds a module; one that was parsed already is given with its language.
    fn add(&mut self, name: &'a str, source: &'a str, parsed: Option<(Parsed<'a>, bool)>) -> usize {
        let start = self.modules.last().map_or(0, |last| last.start + last.source.len() as u32);
        let code = parsed.or_else(|| self.parsed(name, source)).map(|(parsed, typescript)| {
            let record = ModuleRecord::read(&parsed, typescript);
            ModuleCode { parsed, record, targets: Vec::new() }
        });
        self.modules.push(ProgramModule { name, source, start, code });
        self.modules.len() - 1
    }

    /// None for JSON, and for a file with errors.
    fn parsed(&mut self, name: &str, source: &str) -> Option<(Parsed<'a>, bool)> {
        let kind = paths::kind_of(name);
        if kind == Ok(SourceKind::Json) {
            if let Err((at, why)) = check_json(json_text(source)) {
                self.errors.push(CompileError::new(source, at, &why).in_file(name));
            }
            return None;
        }
        let typescript = kind == Ok(SourceKind::TypeScript);
        match parse::parse(self.allocator, source, typescript, Goal::Module) {
            Ok(parsed) => Some((parsed, typescript)),
            Err(errors) => {
                self.errors.extend(errors.into_iter().map(|error| error.in_file(name)));
                None
            }
        }
    }

    /// Adds all files that the first module reaches.
    fn load(&mut self) {
        let files = self.files;
        let by_name: HashMap<&str, &'a SourceFile> =
            files.iter().map(|file| (file.name.as_str(), file)).collect();
        let mut known: HashMap<&str, usize> = HashMap::from([(self.modules[0].name, 0)]);
        let mut next = 0;
        while next < self.modules.len() {
            let (importer, source) = (self.modules[next].name, self.modules[next].source);
            let requests = match &mut self.modules[next].code {
                Some(code) => std::mem::take(&mut code.record.requests),
                None => Vec::new(),
            };
            let mut targets = Vec::new();
            for request in &requests {
                let named = match file_of(importer, request, &known, &by_name) {
                    Ok(name) => name,
                    Err((kind, why)) => {
                        self.errors.push(error_at((importer, source), request.at, &why).of_kind(kind));
                        importer
                    }
                };
                let target = match known.get(named) {
                    Some(&target) => target,
                    None => {
                        let file = by_name[named];
                        let target = self.add(&file.name, &file.text, None);
                        known.insert(&file.name, target);
                        target
                    }
                };
                targets.push(target);
            }
            if let Some(code) = &mut self.modules[next].code {
                code.record.requests = requests;
                code.targets = targets;
                for RefusedUse { at, kind, message } in std::mem::take(&mut code.record.errors) {
                    self.errors.push(error_at((importer, source), at, &message).of_kind(kind));
                }
            }
            next += 1;
        }
    }
}

/// The name of the file that a request names; `known` have been added already.
fn file_of<'a>(
    importer: &str,
    request: &Request,
    known: &HashMap<&'a str, usize>,
    files: &HashMap<&'a str, &'a SourceFile>,
) -> Result<&'a str, (CompileErrorKind, String)> {
    let invalid = |why: String| (CompileErrorKind::Invalid, why);
    let candidates = paths::candidates(importer, &request.specifier)
        .map_err(|why| (CompileErrorKind::Unsupported, why))?;
    let found = candidates.iter().find_map(|name| {
        let known = known.get_key_value(name.as_str()).map(|(name, _)| *name);
        known.or_else(|| files.get_key_value(name.as_str()).map(|(name, _)| *name))
    });
    let name = found.ok_or_else(|| {
        let shown: String = request.specifier.chars().take(200).collect();
        invalid(format!("there is no file for `import` of `{shown}`"))
    })?;
    match paths::kind_of(name) {
        Ok(kind) if request.json && kind != SourceKind::Json => {
            Err(invalid(format!("`{name}` is not JSON: remove `with {{ type: 'json' }}`")))
        }
        // The entry may have any name.
        Err(why) if known.get(name) != Some(&0) => Err(invalid(why)),
        _ => Ok(name),
    }
}

/// An error at an offset of a file's AST.
fn error_at((name, source): (&str, &str), at: u32, why: &str) -> CompileError {
    CompileError::new(source, at.saturating_sub(parse::STRICT.len() as u32), why).in_file(name)
}

/// The text of a JSON file without a byte order mark.
fn json_text(source: &str) -> &str {
    source.trim_start_matches('\u{feff}')
}

/// Byte offset and message of the first error in a JSON text.
fn check_json(source: &str) -> Result<(), (u32, String)> {
    let units: Vec<u16> = source.encode_utf16().collect();
    let mut scanner = JsonScanner::new(units.as_slice());
    loop {
        match scanner.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(error) => {
                let before = units.get(..error.position).unwrap_or(&units);
                let at =
                    char::decode_utf16(before.iter().copied()).flatten().map(char::len_utf8).sum::<usize>();
                return Err((at as u32, error.problem.to_string()));
            }
        }
    }
}

/// The targets of the imports of all modules, and the order of evaluation.
#[derive(Default)]
struct Links {
    /// Of each module, in the order of its record's imports; none for a type
    imports: Vec<Vec<Option<ImportTarget>>>,
    /// Modules with a namespace object, with its names
    namespaces: Vec<(usize, Vec<(String, ImportTarget)>)>,
    /// Modules with code, each after those that it imports, as far as cycles allow
    order: Vec<usize>,
}

fn link(modules: &[ProgramModule<'_>], errors: &mut Vec<CompileError>) -> Links {
    let mut links = Links { order: order(modules), ..Links::default() };
    let mut namespaces = HashSet::new();
    for module in modules {
        let mut targets = Vec::new();
        let mut report = |at: u32, why: &str| errors.push(error_at((module.name, module.source), at, why));
        if let Some(code) = &module.code {
            for import in &code.record.imports {
                let from = code.targets[import.from];
                let specifier = &code.record.requests[import.from].specifier;
                let found = exports::of_import(modules, from, &import.imported);
                targets.push(match found {
                    Resolution::Found(target) => Some(target),
                    Resolution::Type => {
                        let mut uses = code.parsed.scoping.get_resolved_references(import.symbol);
                        if uses.any(|reference| reference.is_value() && !reference.is_type()) {
                            let name = code.parsed.scoping.symbol_name(import.symbol);
                            report(import.at, &format!("`{name}` is a type, and used as a value"));
                        }
                        None
                    }
                    other => {
                        report(import.at, &no_export(modules, from, specifier, &import.imported, other));
                        None
                    }
                });
            }
            for export in code.record.exports.values() {
                let Export::From(request, imported, at) = export else { continue };
                let from = code.targets[*request];
                let specifier = &code.record.requests[*request].specifier;
                match exports::of_import(modules, from, imported) {
                    Resolution::Found(_) | Resolution::Type => {}
                    other => report(*at, &no_export(modules, from, specifier, imported, other)),
                }
            }
        }
        namespaces.extend(targets.iter().flatten().filter_map(namespace));
        links.imports.push(targets);
    }
    // The names of a namespace may be namespaces.
    let mut left: Vec<usize> = namespaces.iter().copied().collect();
    while let Some(module) = left.pop() {
        let names: Vec<(String, ImportTarget)> = exports::all(modules, module).into_iter().collect();
        for (_, target) in &names {
            left.extend(namespace(target).filter(|inner| namespaces.insert(*inner)));
        }
        links.namespaces.push((module, names));
    }
    links.namespaces.sort_by_key(|(module, _)| *module);
    links
}

fn namespace(target: &ImportTarget) -> Option<usize> {
    match target {
        ImportTarget::Namespace(module) => Some(*module),
        _ => None,
    }
}

fn no_export(
    modules: &[ProgramModule<'_>],
    module: usize,
    specifier: &str,
    imported: &ImportedName,
    resolution: Resolution,
) -> String {
    let ImportedName::Name(name) = imported else { return String::new() };
    if resolution == Resolution::Ambiguous {
        return format!("`{name}` is ambiguous: several `export *` of `{specifier}` have it");
    }
    let hint = match &modules[module].code {
        None => "; a JSON file has a default export only: `import data from …`".to_owned(),
        Some(_) => unsupported::similar(name, exports::all(modules, module).keys()),
    };
    format!("`{specifier}` has no export `{name}`{hint}")
}

/// Post-order of the imports, in the order of the source.
fn order(modules: &[ProgramModule<'_>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; modules.len()];
    let mut path = vec![(0, 0)];
    seen[0] = true;
    while let Some((module, next)) = path.last_mut() {
        let targets = modules[*module].code.as_ref().map_or(&[][..], |code| &code.targets);
        match targets.get(*next) {
            Some(&target) => {
                *next += 1;
                if !std::mem::replace(&mut seen[target], true) {
                    path.push((target, 0));
                }
            }
            None => {
                order.push(*module);
                path.pop();
            }
        }
    }
    order.retain(|module| modules[*module].code.is_some());
    order
}

impl Links {
    /// Marks the variables that need a slot of the shared scope cell, and the imports, which may be used before their
    /// initialisation.
    fn mark(&self, modules: &mut [ProgramModule<'_>]) {
        let imported = self.imports.iter().flatten().flatten();
        let named = self.namespaces.iter().flat_map(|(_, names)| names.iter().map(|(_, target)| target));
        for target in imported.chain(named) {
            if let ImportTarget::Variable(module, symbol) = target
                && let Some(code) = &mut modules[*module].code
            {
                code.parsed.facts.captured.insert(*symbol);
            }
        }
        for module in modules.iter_mut() {
            let Some(code) = &mut module.code else { continue };
            code.parsed.facts.checked.extend(code.record.imports.iter().map(|import| import.symbol));
        }
    }
}
