//! Reads a program's source and the files that it imports: with the caller's rights, and only where the caller allows it.
//!
//! The imports are those that the compiler finds, so that a comment or a string is none. A file that does not exist, and a source
//! with an error, are reported by the compiler with their position.

use crate::commands::mcp::files::Files;
use crate::error::{CliError, exit};
use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use vm_system_api::mcp::FileRefusal;
use vm_system_cvm::{SourceFile, candidates, imports};
use vm_system_protocol::control::ProgramLoad;
use vm_system_protocol::program_source::PROGRAM_FILES;

/// Whether the name of a file says that it is TypeScript (true) or JavaScript (false).
pub(crate) fn language_of(path: &Path) -> Option<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("ts" | "mts" | "cts") => Some(true),
        Some("js" | "mjs" | "cjs") => Some(false),
        _ => None,
    }
}

/// A file that a program imports, and that was not read.
#[derive(Debug)]
pub(crate) struct RefusedImport {
    refusal: FileRefusal,
    file: PathBuf,
    importer: String,
    /// Of the import, from 1
    line: u32,
}

impl From<RefusedImport> for FileRefusal {
    fn from(refused: RefusedImport) -> Self {
        let RefusedImport { refusal, importer, line, .. } = refused;
        let with_place = |why: String| format!("{why}; {importer} imports it in line {line}");
        match refusal {
            FileRefusal::NotFound(why) => FileRefusal::NotFound(with_place(why)),
            FileRefusal::Denied(why) => FileRefusal::Denied(with_place(why)),
            FileRefusal::Unfit(why) => FileRefusal::Unfit(with_place(why)),
        }
    }
}

/// The text of a program with the source `source`, read from `path`, and the files that it imports. The program has no name yet.
/// `most`: bytes of all files together; `read` has the rights, and is given the most bytes of a file.
pub(crate) fn gather(
    path: &Path,
    source: String,
    most: usize,
    read: impl Fn(&Path, usize) -> Result<String, FileRefusal>,
) -> Result<ProgramLoad, RefusedImport> {
    let refused = |refusal, file: &Path, importer: &SourceFile, line| RefusedImport {
        refusal,
        file: file.to_owned(),
        importer: importer.name.clone(),
        line,
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let name =
        path.file_name().map_or_else(|| "program".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut seen = HashSet::from([name.clone()]);
    let mut has_imports = false;
    let mut left = most.saturating_sub(source.len());
    let mut list: Vec<SourceFile> = Vec::new();
    let mut queue = VecDeque::from([SourceFile { name, text: source }]);
    while let Some(importer) = queue.pop_front() {
        for import in imports(&importer) {
            has_imports = true;
            let Ok(names) = candidates(&importer.name, &import.specifier) else { continue };
            for name in names {
                if seen.contains(&name) {
                    break;
                }
                let at = folder.join(&name);
                if at.is_dir() {
                    continue;
                }
                match read(&at, left) {
                    Ok(text) => {
                        if seen.len() >= PROGRAM_FILES {
                            let why = format!("a program has at most {PROGRAM_FILES} files");
                            return Err(refused(FileRefusal::Unfit(why), &at, &importer, import.line));
                        }
                        left -= text.len();
                        seen.insert(name.clone());
                        queue.push_back(SourceFile { name, text });
                        break;
                    }
                    Err(FileRefusal::NotFound(_)) => {}
                    Err(other) => return Err(refused(other, &at, &importer, import.line)),
                }
            }
        }
        list.push(importer);
    }
    let entry = list.remove(0);
    let files = list.into_iter().map(|file| (file.name, file.text)).collect();
    let typescript = language_of(path);
    let file = has_imports.then_some(entry.name);
    Ok(ProgramLoad { name: String::new(), source: entry.text, typescript, file, files })
}

/// The files of a program that its user names: beneath the source's folder, or beneath `root`.
pub(crate) fn of_user(
    path: &Path,
    source: String,
    root: Option<&PathBuf>,
    most: usize,
) -> Result<ProgramLoad, CliError> {
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (root, is_named) = (root.map_or(beside, PathBuf::as_path), root.is_some());
    if is_named && !root.is_dir() {
        return Err(CliError::unfit(format!("{} is not a folder", root.display())));
    }
    let read = |file: &Path, most: usize| {
        let files =
            Files::new(vec![root.to_owned()]).map_err(|error| FileRefusal::Unfit(error.to_string()))?;
        files.read(file, most)
    };
    gather(path, source, most, read).map_err(|refused| match &refused.refusal {
        FileRefusal::Denied(_) => {
            let RefusedImport { file, importer, line, .. } = &refused;
            let (file, root) = (file.display(), root.display());
            let message = format!(
                "{file} cannot be read, or is outside of {root}; {importer} imports it in line {line}"
            );
            CliError::new(exit::NOT_PERMITTED, message)
                .with_hint("a program imports files of its own folder; --import-root DIR allows another one")
        }
        _ => CliError::unfit(FileRefusal::from(refused).to_string()),
    })
}
