//! Owns which files a specifier may mean, by Node's rules and the template's resolver, and finds the first that exists. One host call
//! tries a list of candidates; what it says about files and packages is kept until files may have changed.

use super::bundle::LoadedBundle;
use super::exports::{self, Mapped, ResolveError};
use super::load::{coded_error, request_file};
use super::package::{PackageManifest, depends_on_package};
use super::{LoadedFile, LoadedText, neighbour};
use crate::engine::library;
use crate::engine::state::SharedState;
use rquickjs::{Ctx, Exception, Result};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use vm_system_protocol::worker::{HostError, HostReply, PackageFile, SourceFormat};
use vm_system_protocol::worktree_path::{folder, join};

/// Conditions of `exports` and `imports` that apply, beside `default`.
pub(super) const REQUIRE: &[&str] = &["node", "require", "module-sync"];
pub(super) const IMPORT: &[&str] = &["node", "import", "module-sync"];
/// Most folders above a file in which `node_modules` is looked for.
const LEVELS: usize = 64;
/// Most missing paths that are kept.
const ABSENT: usize = 20_000;

/// The files that an execution knows.
#[derive(Default)]
pub(super) struct KnownFiles {
    packages: HashMap<String, Rc<PackageManifest>>,
    /// The package that a folder belongs to.
    scopes: HashMap<String, Option<Rc<PackageManifest>>>,
    /// Paths without a file that could be loaded.
    absent: HashSet<String>,
}

/// The meaning of a specifier.
pub(super) enum FoundModule {
    /// The host sent the file.
    File(LoadedFile),
    /// A module of this path was loaded before.
    Loaded(String),
    /// Another name, which a package gave: a host module, a library or a package, seen from this file.
    Other { specifier: String, referrer: String },
}

struct ModuleCandidate {
    path: String,
    kind: CandidateKind,
}

#[derive(Clone)]
enum CandidateKind {
    File,
    /// The `package.json` of a folder that was named by its path.
    Folder(String),
    /// The `package.json` of a package in `node_modules`, and what was requested of it: empty, or with `/` before it.
    Package(String, String),
}

/// Whether a specifier is a path from the importing file.
pub(super) fn is_relative(specifier: &str) -> bool {
    [".", ".."].contains(&specifier) || ["./", "../"].iter().any(|start| specifier.starts_with(start))
}

/// A request to find a module.
pub(super) struct ModuleFinder<'a, 'js> {
    pub(super) ctx: &'a Ctx<'js>,
    pub(super) state: &'a SharedState,
    /// The importing file; empty for repl input.
    pub(super) referrer: &'a str,
    pub(super) import: bool,
    /// Whether a path is a module of this session already.
    pub(super) is_loaded: &'a dyn Fn(&str) -> bool,
}

impl ModuleFinder<'_, '_> {
    /// The file of a specifier that is neither a host module nor a library.
    pub(super) fn find(&self, specifier: &str) -> Result<FoundModule> {
        if self.bundle().is_none() && library::is_evaluating(self.state) {
            let message = format!(
                "Invalid module '{specifier}': a library finds other libraries of its template only."
            );
            return Err(coded_error(self.ctx, "MODULE_NOT_FOUND", &message));
        }
        if specifier.contains('\0') || specifier.len() > 4_096 {
            return Err(self.not_found(specifier, specifier));
        }
        if specifier.starts_with('#') {
            let scope = self.scope(folder(self.referrer))?;
            let mapped =
                exports::imported(scope.as_deref(), specifier, self.conditions(), self.shown_referrer());
            return match mapped.map_err(|error| self.throw(&error))? {
                Mapped::File(path) => self.exactly(&path),
                // A package, not another name of `imports`: these could name each other without end.
                Mapped::Specifier(other) if other.starts_with('#') => Err(self.not_found(&other, &other)),
                Mapped::Specifier(specifier) => {
                    let referrer = scope.map(|package| package.path()).unwrap_or_default();
                    Ok(FoundModule::Other { specifier, referrer })
                }
            };
        }
        if specifier.starts_with("node:") {
            let message = format!("No such built-in module: {specifier}");
            return Err(coded_error(self.ctx, "ERR_UNKNOWN_BUILTIN_MODULE", &message));
        }
        if let Some(path) = self.path_of_url(specifier)? {
            return self.exactly(&path);
        }
        let relative = is_relative(specifier);
        let mut list = VecDeque::new();
        if relative || specifier.starts_with('/') {
            self.paths(specifier, relative, &mut list)?;
        } else if let Some(found) = self.bare(specifier, &mut list)? {
            return Ok(found);
        }
        match self.search(specifier, list)? {
            Some(found) => Ok(found),
            None if relative => {
                let path = join(folder(self.referrer), specifier).unwrap_or_default();
                let neighbour = self.neighbour(specifier, &path);
                Err(self.missing(specifier, &path, neighbour))
            }
            None if specifier.starts_with('/')
                && !self.state.resolver.borrow().allow_absolute_repo_imports =>
            {
                let message = format!(
                    "Invalid module '{specifier}': it is no file beneath the worktree's own path, and imports from the \
                     worktree's root ('/…') are off (resolver.allow_absolute_repo_imports)"
                );
                Err(coded_error(self.ctx, "MODULE_NOT_ALLOWED", &message))
            }
            None => Err(self.not_found(specifier, specifier)),
        }
    }

    /// The library to which the importing file belongs. Its files find each other and no file of the worktree.
    pub(super) fn bundle(&self) -> Option<Rc<LoadedBundle>> {
        library::bundle_of(self.state, self.referrer)
    }

    /// The path of a `file:` URL, which begins at the worktree.
    fn path_of_url(&self, specifier: &str) -> Result<Option<String>> {
        if !self.import {
            return Ok(None);
        }
        let Some((scheme, rest)) = specifier.split_once(':') else { return Ok(None) };
        if scheme.len() < 2
            || !scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        {
            return Ok(None);
        }
        if scheme == "file" {
            let url = url::Url::parse(specifier).ok();
            let path = url.as_ref().and_then(|url| url.to_file_path().ok());
            let path = path.and_then(|path| join("", path.to_str()?));
            return path.map(Some).ok_or_else(|| self.not_found(specifier, rest));
        }
        let message = format!(
            "Only URLs with a scheme in: file and node are supported by the default ESM loader. Received protocol '{scheme}:'"
        );
        Err(coded_error(self.ctx, "ERR_UNSUPPORTED_ESM_URL_SCHEME", &message))
    }

    fn paths(&self, specifier: &str, relative: bool, list: &mut VecDeque<ModuleCandidate>) -> Result<()> {
        let is_folder = specifier.ends_with('/')
            || specifier.ends_with("/.")
            || specifier.ends_with("..")
            || specifier == ".";
        let mut bases = Vec::new();
        if relative && !self.referrer.is_empty() {
            let Some(path) = join(folder(self.referrer), specifier) else {
                let message = format!("Invalid module '{specifier}': it is outside the worktree");
                return Err(coded_error(self.ctx, "MODULE_OUTSIDE_WORKTREE", &message));
            };
            bases.push(path);
        } else if relative {
            // Of the input of a session, as its `fs`: the worktree first.
            bases.extend(join("", specifier));
        }
        if relative {
            bases.extend(self.beneath_roots(specifier));
        } else if self.state.resolver.borrow().allow_absolute_repo_imports {
            bases.extend(join("", specifier));
        } else {
            // Only as a path of the host, which the supervisor recognizes by its `/`.
            bases.extend(join("", specifier).filter(|path| !path.is_empty()).map(|path| format!("/{path}")));
        }
        bases.dedup();
        for path in bases {
            self.file_or_folder(&path, is_folder, true, list);
        }
        Ok(())
    }

    /// A specifier seen from the folders of the template's resolver, or from the worktree.
    fn beneath_roots(&self, specifier: &str) -> Vec<String> {
        let resolver = self.state.resolver.borrow();
        if resolver.roots.is_empty() {
            return join("", specifier).into_iter().collect();
        }
        let roots = resolver.roots.iter().filter_map(|root| join("", root));
        roots.filter_map(|root| join(&root, specifier)).collect()
    }

    /// A package of `node_modules`, the package of the importing file itself, or a path beneath the resolver's roots.
    fn bare(&self, specifier: &str, list: &mut VecDeque<ModuleCandidate>) -> Result<Option<FoundModule>> {
        let names = if specifier.starts_with('@') { 2 } else { 1 };
        let end = specifier.match_indices('/').nth(names - 1).map_or(specifier.len(), |(at, _)| at);
        let (name, rest) = specifier.split_at(end);
        let from = folder(self.referrer);
        if let Some(package) = self.scope(from)?
            && package.name.as_deref() == Some(name)
            && let Some(exports) = &package.exports
        {
            return self.exported(&package, exports, rest).map(Some);
        }
        let mut level = from;
        for _ in 0..LEVELS {
            if level != "node_modules" && !level.ends_with("/node_modules") {
                let modules = if level.is_empty() {
                    "node_modules".to_owned()
                } else {
                    format!("{level}/node_modules")
                };
                if let (Some(package), Some(path)) = (join(&modules, name), join(&modules, specifier)) {
                    let kind = CandidateKind::Package(package.clone(), rest.to_owned());
                    list.push_back(ModuleCandidate { path: format!("{package}/package.json"), kind });
                    self.file_or_folder(&path, specifier.ends_with('/'), !rest.is_empty(), list);
                }
            }
            if level.is_empty() {
                break;
            }
            level = folder(level);
        }
        for path in self.beneath_roots(specifier) {
            self.file_or_folder(&path, specifier.ends_with('/'), true, list);
        }
        Ok(None)
    }

    /// The file itself, with each extension, and as a folder with an index. `package`: the folder may have a `package.json`.
    fn file_or_folder(
        &self,
        path: &str,
        is_folder: bool,
        package: bool,
        list: &mut VecDeque<ModuleCandidate>,
    ) {
        let mut file = |path: String| list.push_back(ModuleCandidate { path, kind: CandidateKind::File });
        if !is_folder && !path.is_empty() {
            file(path.to_owned());
            self.extensions(path).for_each(&mut file);
        }
        if package {
            let name =
                if path.is_empty() { "package.json".to_owned() } else { format!("{path}/package.json") };
            list.push_back(ModuleCandidate { path: name, kind: CandidateKind::Folder(path.to_owned()) });
        }
        self.indexes(path, list);
    }

    fn indexes(&self, folder: &str, list: &mut VecDeque<ModuleCandidate>) {
        let index = if folder.is_empty() { "index".to_owned() } else { format!("{folder}/index") };
        list.extend(self.extensions(&index).map(|path| ModuleCandidate { path, kind: CandidateKind::File }));
    }

    fn extensions(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        if LoadedBundle::is_path(path) {
            // Not those of the template: a library means the same in all of them.
            return Vec::from(["js", "json"].map(|end| format!("{path}.{end}"))).into_iter().chain(None);
        }
        let resolver = self.state.resolver.borrow();
        let json = (!self.import
            && !resolver.extensions.iter().any(|known| known.trim_start_matches('.') == "json"))
        .then(|| format!("{path}.json"));
        let of_template: Vec<String> =
            resolver.extensions.iter().map(|end| format!("{path}.{}", end.trim_start_matches('.'))).collect();
        of_template.into_iter().chain(json)
    }

    /// The first candidate that exists.
    fn search(&self, specifier: &str, mut list: VecDeque<ModuleCandidate>) -> Result<Option<FoundModule>> {
        let bundle = self.bundle();
        loop {
            if let Some(bundle) = &bundle {
                list.retain(|candidate| bundle.covers(&candidate.path));
            }
            {
                let table = self.state.modules.borrow();
                list.retain(|candidate| !table.known.absent.contains(&candidate.path));
            }
            let Some(first) = list.front() else { return Ok(None) };
            if matches!(first.kind, CandidateKind::File) && (self.is_loaded)(&first.path) {
                return Ok(Some(FoundModule::Loaded(first.path.clone())));
            }
            let known = match &first.kind {
                CandidateKind::Folder(folder) | CandidateKind::Package(folder, _) => {
                    self.state.modules.borrow().known.packages.get(folder).cloned()
                }
                CandidateKind::File => None,
            };
            if let Some(package) = known
                && let Some(first) = list.pop_front()
            {
                if let Some(found) = self.expand(&package, &first.kind, &mut list)? {
                    return Ok(Some(found));
                }
                continue;
            }
            let Some((file, package)) = self.request(specifier, &list)? else {
                self.absent(list.into_iter());
                return Ok(None);
            };
            let exact = list.iter().position(|candidate| candidate.path == file.path);
            // A path of the host beneath the worktree: the reply has the path from the worktree.
            let beneath = || {
                let is_end =
                    |path: &str| path.strip_suffix(&file.path).is_some_and(|begin| begin.ends_with('/'));
                list.iter().position(|candidate| is_end(&candidate.path))
            };
            let Some(at) = exact.or_else(beneath) else { return Ok(None) };
            let rest = list.split_off(at + 1);
            let hit = list.pop_back();
            self.absent(std::mem::replace(&mut list, rest).into_iter());
            match hit.map(|hit| hit.kind) {
                Some(kind @ (CandidateKind::Folder(_) | CandidateKind::Package(..))) => {
                    let package = self.parsed(&file.path, &file.source)?;
                    if let Some(found) = self.expand(&package, &kind, &mut list)? {
                        return Ok(Some(found));
                    }
                }
                _ => return self.typed(file, package).map(FoundModule::File).map(Some),
            }
        }
    }

    /// Puts what a package means before the other candidates, or finds what it exports.
    fn expand(
        &self,
        package: &PackageManifest,
        kind: &CandidateKind,
        list: &mut VecDeque<ModuleCandidate>,
    ) -> Result<Option<FoundModule>> {
        let mut first = VecDeque::new();
        match kind {
            CandidateKind::Package(_, rest) if package.exports.is_some() => {
                let Some(exports) = &package.exports else { return Ok(None) };
                return self.exported(package, exports, rest).map(Some);
            }
            CandidateKind::Package(folder, rest) if !rest.is_empty() => {
                if let Some(path) = join(folder, rest) {
                    self.file_or_folder(&path, rest.ends_with('/'), true, &mut first);
                }
            }
            CandidateKind::Package(folder, _) | CandidateKind::Folder(folder) => {
                let main = package.main.as_ref().and_then(|main| join(folder, main));
                if let Some(main) = main.filter(|main| main != folder) {
                    self.file_or_folder(&main, false, false, &mut first);
                }
                self.indexes(folder, &mut first);
            }
            CandidateKind::File => {}
        }
        first.append(list);
        *list = first;
        Ok(None)
    }

    fn exported(
        &self,
        package: &PackageManifest,
        exports: &exports::PackageTarget,
        rest: &str,
    ) -> Result<FoundModule> {
        let importer = self.import.then(|| self.shown_referrer());
        let mapped = exports::exported(package, exports, &format!(".{rest}"), self.conditions(), importer);
        match mapped.map_err(|error| self.throw(&error))? {
            Mapped::File(path) => self.exactly(&path),
            Mapped::Specifier(specifier) => Ok(FoundModule::Other { specifier, referrer: package.path() }),
        }
    }

    /// The file of this path and no other.
    pub(super) fn exactly(&self, path: &str) -> Result<FoundModule> {
        let list = VecDeque::from([ModuleCandidate { path: path.to_owned(), kind: CandidateKind::File }]);
        self.search(path, list)?.ok_or_else(|| self.no_file(path))
    }

    /// The package that a folder belongs to.
    fn scope(&self, folder_path: &str) -> Result<Option<Rc<PackageManifest>>> {
        if let Some(known) = self.state.modules.borrow().known.scopes.get(folder_path) {
            return Ok(known.clone());
        }
        let mut list = VecDeque::new();
        let mut level = folder_path;
        while level != "node_modules" && !level.ends_with("/node_modules") {
            let path =
                if level.is_empty() { "package.json".to_owned() } else { format!("{level}/package.json") };
            list.push_back(ModuleCandidate { path, kind: CandidateKind::File });
            if level.is_empty() {
                break;
            }
            level = folder(level);
        }
        let mut package = None;
        if !list.is_empty() {
            let candidates: Vec<String> = list.into_iter().map(|candidate| candidate.path).collect();
            if let Some(bundle) = self.bundle() {
                let found = bundle.first(&candidates, false);
                package =
                    found.map(|(file, _)| PackageFile { path: file.path, source: file.source.into_string() });
            // One that may not be read counts as missing.
            } else if let HostReply::Module { path, source, .. } =
                request_file(self.ctx, self.state, candidates, self.import, false)?
            {
                package = Some(PackageFile { path, source });
            }
        }
        self.keep_scope(folder_path, package)
    }

    /// Keeps the package of a folder and of those between both.
    fn keep_scope(
        &self,
        folder_path: &str,
        file: Option<PackageFile>,
    ) -> Result<Option<Rc<PackageManifest>>> {
        let package = file.map(|file| self.parsed(&file.path, &file.source)).transpose()?;
        let top = package.as_ref().map(|package| package.folder.clone()).unwrap_or_default();
        let mut table = self.state.modules.borrow_mut();
        let mut level = folder_path;
        loop {
            table.known.scopes.insert(level.to_owned(), package.clone());
            if level == top || level.is_empty() || level == "node_modules" || level.ends_with("/node_modules")
            {
                break;
            }
            level = folder(level);
        }
        Ok(package)
    }

    fn parsed(&self, path: &str, source: &str) -> Result<Rc<PackageManifest>> {
        let folder = folder(path);
        if let Some(known) = self.state.modules.borrow().known.packages.get(folder) {
            return Ok(known.clone());
        }
        let package = PackageManifest::parse(folder, source).map(Rc::new);
        let package = package.ok_or_else(|| {
            let message = format!("Invalid package config {path}.");
            coded_error(self.ctx, "ERR_INVALID_PACKAGE_CONFIG", &message)
        })?;
        self.state.modules.borrow_mut().known.packages.insert(folder.to_owned(), package.clone());
        Ok(package)
    }

    /// A file with the kind that its package gives it.
    fn typed(&self, file: LoadedFile, package: Option<PackageFile>) -> Result<LoadedFile> {
        let from = folder(&file.path);
        if !depends_on_package(&file.path) {
            return Ok(file);
        }
        let known = self.state.modules.borrow().known.scopes.get(from).cloned();
        let package = match known {
            Some(known) => known,
            None => self.keep_scope(from, package)?,
        };
        let is_module = package.is_some_and(|package| package.is_module);
        let format = if is_module { SourceFormat::Module } else { file.format };
        Ok(LoadedFile { format, ..file })
    }

    /// Requests the first candidate that exists.
    fn request(
        &self,
        specifier: &str,
        list: &VecDeque<ModuleCandidate>,
    ) -> Result<Option<(LoadedFile, Option<PackageFile>)>> {
        let candidates: Vec<String> = list.iter().map(|candidate| candidate.path.clone()).collect();
        let package = {
            let table = self.state.modules.borrow();
            list.iter().any(|candidate| {
                matches!(candidate.kind, CandidateKind::File)
                    && depends_on_package(&candidate.path)
                    && !table.known.scopes.contains_key(folder(&candidate.path))
            })
        };
        if let Some(bundle) = self.bundle() {
            return Ok(bundle.first(&candidates, package));
        }
        match request_file(self.ctx, self.state, candidates, self.import, package)? {
            HostReply::Module { path, source, format, package } => {
                Ok(Some((LoadedFile::new(path, source, format), package)))
            }
            HostReply::Compiled { path, format, package } => {
                let compiled = self.state.compiled.borrow().source_of(&path).map(LoadedText::Compiled);
                let unknown = "the host's reply names a module that was not compiled";
                let source = compiled.ok_or_else(|| coded_error(self.ctx, "EIO", unknown))?;
                Ok(Some((LoadedFile { path, source, format }, package)))
            }
            HostReply::Failed(HostError { code, .. }) if code == "MODULE_NOT_FOUND" => Ok(None),
            HostReply::Failed(HostError { code, message }) => {
                // A module that could not be read may exist or not.
                let what = if code == "MODULE_NOT_ALLOWED" { "Invalid" } else { "Cannot load" };
                Err(coded_error(self.ctx, &code, &format!("{what} module '{specifier}': {message}")))
            }
            _ => Err(coded_error(self.ctx, "EIO", "the host's reply does not match the request")),
        }
    }

    fn absent(&self, candidates: impl Iterator<Item = ModuleCandidate>) {
        let mut table = self.state.modules.borrow_mut();
        if table.known.absent.len() > ABSENT {
            table.known.absent.clear();
        }
        table.known.absent.extend(candidates.map(|candidate| candidate.path));
    }

    fn conditions(&self) -> &'static [&'static str] {
        if self.import { IMPORT } else { REQUIRE }
    }

    pub(super) fn shown_referrer(&self) -> &str {
        if self.referrer.is_empty() { super::REPL_NAME } else { self.referrer }
    }

    /// The specifier of the file beside a missing one that was probably meant.
    fn neighbour(&self, specifier: &str, path: &str) -> Option<String> {
        let mut ends = neighbour::candidates(specifier, path);
        {
            let table = self.state.modules.borrow();
            ends.retain(|(path, _)| !path.starts_with(['.', '/']) && !table.known.absent.contains(path));
        }
        if ends.is_empty() {
            return None;
        }
        let candidates: Vec<String> = ends.iter().map(|(path, _)| path.clone()).collect();
        if let Some(bundle) = self.bundle() {
            let (file, _) = bundle.first(&candidates, false)?;
            return ends.into_iter().find(|(known, _)| *known == file.path).map(|(_, specifier)| specifier);
        }
        match request_file(self.ctx, self.state, candidates, self.import, false) {
            Ok(HostReply::Module { path, .. } | HostReply::Compiled { path, .. }) => {
                ends.into_iter().find(|(known, _)| *known == path).map(|(_, specifier)| specifier)
            }
            Ok(_) => {
                self.state.modules.borrow_mut().known.absent.extend(ends.into_iter().map(|(path, _)| path));
                None
            }
            Err(_) => {
                // The script was stopped, which its next instruction finds.
                drop(self.ctx.catch());
                None
            }
        }
    }

    fn throw(&self, error: &ResolveError) -> rquickjs::Error {
        if !error.is_type_error {
            return coded_error(self.ctx, error.code, &error.message);
        }
        let thrown = Exception::throw_type(self.ctx, &error.message);
        let value = self.ctx.catch();
        if let Some(object) = value.as_object() {
            let _ = object.set("code", error.code);
        }
        drop(thrown);
        self.ctx.throw(value)
    }
}
