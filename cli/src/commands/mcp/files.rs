//! Files that an agent names: read with the agent's rights, only in the allowed folders.

use crate::error::CliError;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vm_system_api::mcp::FileRefusal;

/// Environment variable with more folders, separated by colons; its name is that of the original system.
const ENVIRONMENT: &str = "CVM_SANDBOX_PATHS";

/// The existing folders of the environment variable.
pub(super) fn of_environment() -> Vec<PathBuf> {
    let named = std::env::var_os(ENVIRONMENT).unwrap_or_default();
    // Missing folders are no error.
    std::env::split_paths(&named).filter(|path| path.is_absolute() && path.is_dir()).collect()
}

/// The folders.
#[derive(Debug)]
pub(crate) struct Files {
    roots: Vec<PathBuf>,
}

impl Files {
    /// The named folders, else the current one and those of the environment variable.
    pub(crate) fn new(named: Vec<PathBuf>) -> Result<Self, CliError> {
        let folders = if named.is_empty() {
            let mut folders = of_environment();
            folders.extend(std::env::current_dir());
            folders
        } else {
            named
        };
        let roots = folders
            .into_iter()
            .map(|path| std::fs::canonicalize(&path).map_err(|error| CliError::file(path.display(), &error)));
        Ok(Self { roots: roots.collect::<Result<_, _>>()? })
    }

    /// The text of a file.
    pub(crate) fn read(&self, path: &Path, most: usize) -> Result<String, FileRefusal> {
        let named = path.display().to_string();
        let refused = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileRefusal::NotFound(named.clone()),
            io::ErrorKind::PermissionDenied => FileRefusal::Denied(named.clone()),
            _ => FileRefusal::Unfit(format!("cannot read {named}: {error}")),
        };
        // The target of a link must be in a root; the link itself may be anywhere.
        let real = std::fs::canonicalize(path).map_err(|error| refused(&error))?;
        if !self.roots.iter().any(|root| real.starts_with(root)) {
            let message = format!("{named} (outside of the readable folders: see --allow-read)");
            return Err(FileRefusal::Denied(message));
        }
        // Opening a pipe must not block, and a link that was created meanwhile must not be followed.
        let file = File::options()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOFOLLOW)
            .open(&real)
            .map_err(|error| refused(&error))?;
        text_of(file, &named, most)
    }
}

/// The text of a file that was opened without blocking, if it is one.
pub(super) fn text_of(file: File, named: &str, most: usize) -> Result<String, FileRefusal> {
    let unreadable = |error: io::Error| FileRefusal::Unfit(format!("cannot read {named}: {error}"));
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(FileRefusal::Unfit(format!("{named} is not a regular file")));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > most {
        return Err(FileRefusal::Unfit(format!("{named} has more than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| FileRefusal::Unfit(format!("{named} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_files_beneath_the_folders_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("a.ts"), "hello").unwrap();
        std::fs::write(inner.join("b.bin"), b"\xff\xfe").unwrap();
        std::fs::write(outer.path().join("secret"), "no").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), inner.join("link")).unwrap();
        nix::unistd::mkfifo(&inner.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let files = Files::new(vec![inner.clone()]).unwrap();
        let read = |name: &str| files.read(&inner.join(name), 100);
        assert_eq!(read("a.ts"), Ok("hello".to_owned()));
        assert!(matches!(read("none"), Err(FileRefusal::NotFound(_))));
        assert!(matches!(read("link"), Err(FileRefusal::Denied(_))));
        assert!(matches!(read("../secret"), Err(FileRefusal::Denied(_))));
        for unfit in ["b.bin", "pipe", "."] {
            assert!(matches!(read(unfit), Err(FileRefusal::Unfit(_))), "{unfit}");
        }
        assert!(matches!(files.read(&inner.join("a.ts"), 4), Err(FileRefusal::Unfit(_))));
    }
}
