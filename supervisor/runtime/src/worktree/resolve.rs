//! Which file of the worktree a `require` or `import` means (`rest.md`, Objects: resolver), among those that may be loaded.

use super::open::{Found, Worktree, WorktreeError, text};
use super::path::{folder_of, join};
use vm_system_core::module_format;
use vm_system_policy::paths::{CleanPath, PathRules};
use vm_system_protocol::model::Resolver;
use vm_system_protocol::worker::{HostError, SourceFormat};

/// Longest accepted specifier (bytes).
const SPECIFIER_BYTES: usize = 4_096;
/// Most files that are tried for one specifier.
const TRIES: usize = 1_000;

/// The file that a specifier means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Relative to the worktree: the module's identity.
    pub path: String,
    /// Its text.
    pub source: String,
    pub format: SourceFormat,
}

/// A request for a module.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// As written in the source.
    pub specifier: &'a str,
    /// The requesting file, relative to the worktree; empty for repl input.
    pub referrer: &'a str,
    /// `import` (true) or `require` (false).
    pub import: bool,
    /// `.js` files are modules.
    pub esm: bool,
    /// Largest source (bytes).
    pub cap: u64,
    /// The files that may be loaded; `None`: no files.
    pub load: Option<&'a PathRules>,
}

/// Finds and reads a module. Blocks. The error is what the script sees.
pub fn resolve(worktree: &Worktree, resolver: &Resolver, wanted: Wanted<'_>) -> Result<Resolved, HostError> {
    let specifier = wanted.specifier;
    if specifier.is_empty() || specifier.len() > SPECIFIER_BYTES || specifier.contains('\0') {
        return Err(not_found(specifier, ""));
    }
    if wanted.referrer.len() > SPECIFIER_BYTES {
        return Err(not_found(specifier, ""));
    }
    let rules = wanted.load.ok_or_else(|| not_among_paths(specifier))?;
    let bases = bases(resolver, wanted)?;
    search(worktree, resolver, wanted, (rules, bases))
}

fn search(
    worktree: &Worktree,
    resolver: &Resolver,
    wanted: Wanted<'_>,
    (rules, bases): (&PathRules, Vec<String>),
) -> Result<Resolved, HostError> {
    let specifier = wanted.specifier;
    // As for `fs`: where patterns are in force, a link would give a file another name.
    let links = rules.is_everything();
    let (mut tries, mut left_out) = (0, false);
    for base in bases {
        let Some(path) = join(&base, specifier) else { continue };
        for candidate in candidates(&path, specifier, resolver) {
            tries += 1;
            if tries > TRIES {
                return Err(not_found(specifier, wanted.referrer));
            }
            if !links && CleanPath::of(&candidate).is_none_or(|path| !rules.cover(&path)) {
                left_out = true;
                continue;
            }
            match worktree.look(&candidate, links, wanted.cap) {
                Ok(Found::File(bytes)) => {
                    let source = text(bytes, &candidate).map_err(|error| unusable(&error))?;
                    let format = module_format(&candidate, wanted.import, wanted.esm);
                    return Ok(Resolved { path: candidate, source, format });
                }
                Ok(Found::Folder | Found::Nothing) => {}
                Err(error) => return Err(unusable(&error)),
            }
        }
    }
    Err(if left_out { not_among_paths(specifier) } else { not_found(specifier, wanted.referrer) })
}

/// The folders from which a specifier is looked up, in order.
fn bases(resolver: &Resolver, wanted: Wanted<'_>) -> Result<Vec<String>, HostError> {
    let specifier = wanted.specifier;
    if specifier.starts_with('/') {
        return if resolver.allow_absolute_repo_imports {
            Ok(vec![String::new()])
        } else {
            let why =
                "imports from the worktree's root ('/…') are off (resolver.allow_absolute_repo_imports)";
            Err(error("MODULE_NOT_ALLOWED", format!("Invalid module '{specifier}': {why}")))
        };
    }
    let relative =
        ["./", "../"].iter().any(|start| specifier.starts_with(start)) || [".", ".."].contains(&specifier);
    let mut bases = Vec::with_capacity(resolver.roots.len() + 1);
    if relative && !wanted.referrer.is_empty() {
        // The referrer comes from the worker; `join` keeps it inside the worktree.
        bases.extend(join("", folder_of(wanted.referrer)));
        if bases.iter().all(|base| join(base, specifier).is_none()) {
            let why = "it is outside the worktree";
            return Err(error("MODULE_NOT_ALLOWED", format!("Invalid module '{specifier}': {why}")));
        }
    }
    if resolver.roots.is_empty() {
        bases.push(String::new());
    }
    bases.extend(resolver.roots.iter().filter_map(|root| join("", root)));
    bases.dedup();
    Ok(bases)
}

/// The file itself, with each extension, and as a folder with an index.
fn candidates<'a>(
    path: &'a str,
    specifier: &str,
    resolver: &'a Resolver,
) -> impl Iterator<Item = String> + use<'a> {
    let is_folder = specifier.ends_with('/') || path.is_empty();
    let file = (!is_folder).then(|| path.to_owned());
    let extensions = resolver.extensions.iter().map(move |extension| with_extension(path, extension));
    let index = if path.is_empty() { "index".to_owned() } else { format!("{path}/index") };
    let indexes = resolver.extensions.iter().map(move |extension| with_extension(&index, extension));
    file.into_iter().chain(extensions.filter(move |_| !is_folder)).chain(indexes)
}

fn with_extension(path: &str, extension: &str) -> String {
    match extension.strip_prefix('.') {
        Some(_) => format!("{path}{extension}"),
        None => format!("{path}.{extension}"),
    }
}

fn not_found(specifier: &str, referrer: &str) -> HostError {
    let shown: String = specifier.chars().take(200).collect();
    let from = if referrer.is_empty() { String::new() } else { format!(" (required by {referrer})") };
    error("MODULE_NOT_FOUND", format!("Invalid module '{shown}': there is no such file or module{from}"))
}

fn not_among_paths(specifier: &str) -> HostError {
    let shown: String = specifier.chars().take(200).collect();
    let why = "no such file among the paths that the template permits to read (capability fs read)";
    error("MODULE_NOT_ALLOWED", format!("Invalid module '{shown}': {why}"))
}

fn unusable(failure: &WorktreeError) -> HostError {
    let code = match failure {
        WorktreeError::InvalidPath(_) | WorktreeError::NotPermitted(_) => "MODULE_NOT_ALLOWED",
        WorktreeError::NotFound(_) => "MODULE_NOT_FOUND",
        WorktreeError::TooLarge { .. } => "EFBIG",
        WorktreeError::Unreadable(_)
        | WorktreeError::Worktree(_)
        | WorktreeError::RootRemoved(_)
        | WorktreeError::OwnerGone(_) => "EACCES",
        WorktreeError::Unavailable(_) => "EAGAIN",
    };
    error(code, format!("Cannot load module: {failure}"))
}

fn error(code: &str, message: String) -> HostError {
    HostError { code: code.to_owned(), message }
}
