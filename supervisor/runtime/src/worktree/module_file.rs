//! Reads files of the worktree for `require` and `import`: the first candidate of a worker's list that exists and may be loaded, and
//! the `package.json` that applies to it. The worker decides which files a specifier may mean, and reads the JSON.

use super::open::{Found, Worktree, WorktreeError, text};
use super::path::clean_relative;
use vm_system_core::module_format;
use vm_system_policy::paths::{CleanPath, PathBudget, PathRules, PathTooLong};
use vm_system_protocol::worker::{HostError, PackageFile, SourceFormat};
use vm_system_protocol::worktree_path;

/// Most candidates of one request; the others are not tried.
const TRIES: usize = 1_000;

/// A file of the worktree that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFile {
    /// Relative to the worktree: the module's identity.
    pub path: String,
    /// The file's text.
    pub source: String,
    pub format: SourceFormat,
    /// If it was requested and exists.
    pub package: Option<PackageFile>,
}

/// A request for a module.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Relative to the worktree, from a worker.
    pub candidates: &'a [String],
    /// `import` (true) or `require` (false).
    pub import: bool,
    /// The `package.json` that applies to the file is read, too.
    pub package: bool,
    /// `.js` files are modules.
    pub esm: bool,
    /// Largest source (bytes).
    pub cap: u64,
    /// The files that may be loaded; `None`: no files.
    pub load: Option<&'a PathRules>,
}

/// Finds and reads a module. Blocks. The error is what the script sees.
pub fn first_existing(worktree: &Worktree, wanted: Wanted<'_>) -> Result<ModuleFile, HostError> {
    let rules = wanted.load.ok_or_else(not_among_paths)?;
    let mut left_out = false;
    // One for all: a thread cannot be stopped, so its work is bounded.
    let mut budget = PathBudget::candidates();
    for candidate in wanted.candidates.iter().take(TRIES) {
        // From the worker, which may be hostile.
        let Ok(path) = clean_relative(candidate) else { continue };
        match read(worktree, &path, rules, wanted.cap, &mut budget)? {
            ReadFile::Text(source) => {
                let format = module_format(&path, wanted.import, wanted.esm);
                let package = if wanted.package {
                    package_of(worktree, &path, rules, wanted.cap, &mut budget)?
                } else {
                    None
                };
                return Ok(ModuleFile { path, source, format, package });
            }
            ReadFile::NotCovered => left_out = true,
            ReadFile::Nothing => {}
        }
    }
    Err(if left_out { not_among_paths() } else { not_found() })
}

enum ReadFile {
    Text(String),
    Nothing,
    /// The template does not permit this path.
    NotCovered,
}

fn read(
    worktree: &Worktree,
    path: &str,
    rules: &PathRules,
    cap: u64,
    budget: &mut PathBudget,
) -> Result<ReadFile, HostError> {
    // As for `fs`: where patterns are in force, a link would give a file another name.
    let links = rules.is_everything();
    if !links {
        let Some(clean) = CleanPath::parse(path) else { return Ok(ReadFile::NotCovered) };
        let too_long = |why: PathTooLong| error("MODULE_NOT_ALLOWED", why.to_string());
        if !rules.covers(&clean, budget).map_err(too_long)? {
            return Ok(ReadFile::NotCovered);
        }
    }
    match worktree.look(path, links, cap) {
        Ok(Found::File(bytes)) => text(bytes, path).map(ReadFile::Text).map_err(|error| unusable(&error)),
        Ok(Found::Folder | Found::Nothing) => Ok(ReadFile::Nothing),
        Err(error) => Err(unusable(&error)),
    }
}

/// The nearest `package.json` in the folder of a file and above; a folder `node_modules` belongs to no package.
fn package_of(
    worktree: &Worktree,
    file: &str,
    rules: &PathRules,
    cap: u64,
    budget: &mut PathBudget,
) -> Result<Option<PackageFile>, HostError> {
    let mut folder = worktree_path::folder(file);
    loop {
        if folder == "node_modules" || folder.ends_with("/node_modules") {
            return Ok(None);
        }
        let path =
            if folder.is_empty() { "package.json".to_owned() } else { format!("{folder}/package.json") };
        if let ReadFile::Text(source) = read(worktree, &path, rules, cap, budget)? {
            return Ok(Some(PackageFile { path, source }));
        }
        if folder.is_empty() {
            return Ok(None);
        }
        folder = worktree_path::folder(folder);
    }
}

fn not_found() -> HostError {
    error("MODULE_NOT_FOUND", "there is no such file".to_owned())
}

fn not_among_paths() -> HostError {
    let why = "no such file among the paths that the template permits to read (capability fs read)";
    error("MODULE_NOT_ALLOWED", why.to_owned())
}

fn unusable(failure: &WorktreeError) -> HostError {
    let code = match failure {
        WorktreeError::InvalidPath(_)
        | WorktreeError::NotPermitted(_)
        | WorktreeError::UserNotPermitted(_) => "MODULE_NOT_ALLOWED",
        WorktreeError::NotFound(_) => "MODULE_NOT_FOUND",
        WorktreeError::TooLarge { .. } => "EFBIG",
        WorktreeError::Unreadable(_)
        | WorktreeError::Worktree(_)
        | WorktreeError::NoSuchUser(_)
        | WorktreeError::RootRemoved(_)
        | WorktreeError::OwnerGone(_) => "EACCES",
        WorktreeError::Short(_) | WorktreeError::Unavailable(_) | WorktreeError::HelperExited(_) => "EAGAIN",
    };
    error(code, failure.to_string())
}

fn error(code: &str, message: String) -> HostError {
    HostError { code: code.to_owned(), message }
}
