//! Sources of libraries by the hash of their content: the source under a name never changes, so that a reader gets a complete
//! source also while it is replaced or removed.
//!
//! In the state directory: `libraries/<sha256>.js`, folder 0700, files 0600; a file is complete when it has its name.

use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use vm_system_protocol::limits::LIBRARY_BYTES;
use vm_system_sandbox::private_file;

/// A store of library sources. Cheap to clone. Its calls block.
#[derive(Debug, Clone)]
pub struct LibraryStore(Storage);

#[derive(Debug, Clone)]
enum Storage {
    Folder(PathBuf),
    Memory(Arc<Mutex<HashMap<[u8; 32], String>>>),
}

/// Why a source cannot be read or stored. Names no paths: clients see these texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryStoreError {
    /// The file is missing.
    #[error("its file is missing")]
    Missing,
    /// The file differs from what was installed.
    #[error("its file was changed after it was installed")]
    Changed,
    /// The file cannot be read or written.
    #[error("its file cannot be used: {0}")]
    Io(String),
}

impl From<io::Error> for LibraryStoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            kind => Self::Io(kind.to_string()),
        }
    }
}

/// Lower-case hexadecimal digits of a hash.
pub fn hex(hash: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl LibraryStore {
    /// Sources in the state directory.
    pub fn open(state_dir: &Path) -> Result<Self, io::Error> {
        let folder = state_dir.join("libraries");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        Ok(Self(Storage::Folder(folder)))
    }

    /// Sources in memory, for this process only.
    pub fn in_memory() -> Self {
        Self(Storage::Memory(Arc::default()))
    }

    /// Stores a source; durable when this returns.
    pub fn put(&self, source: &str) -> Result<[u8; 32], LibraryStoreError> {
        let hash: [u8; 32] = Sha256::digest(source.as_bytes()).into();
        match &self.0 {
            Storage::Folder(folder) => {
                private_file::replace(&folder.join(file_name(&hash)), source.as_bytes())?;
            }
            Storage::Memory(sources) => {
                sources.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, source.to_owned());
            }
        }
        Ok(hash)
    }

    /// The source with this hash; an error if it was changed.
    pub fn get(&self, hash: &[u8; 32]) -> Result<String, LibraryStoreError> {
        let source = match &self.0 {
            Storage::Folder(folder) => read_capped(&folder.join(file_name(hash)))?,
            Storage::Memory(sources) => {
                let sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
                sources.get(hash).cloned().ok_or(LibraryStoreError::Missing)?.into_bytes()
            }
        };
        let found: [u8; 32] = Sha256::digest(&source).into();
        if found != *hash {
            return Err(LibraryStoreError::Changed);
        }
        String::from_utf8(source).map_err(|_| LibraryStoreError::Changed)
    }

    /// Removes a source; an absent one is no error.
    pub fn remove(&self, hash: &[u8; 32]) -> Result<(), LibraryStoreError> {
        match &self.0 {
            Storage::Folder(folder) => match std::fs::remove_file(folder.join(file_name(hash))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            },
            Storage::Memory(sources) => {
                sources.lock().unwrap_or_else(PoisonError::into_inner).remove(hash);
                Ok(())
            }
        }
    }

    /// Removes the files whose hash is not in `known`, which a crash may leave.
    pub fn sweep(&self, known: &HashSet<[u8; 32]>) -> Result<(), LibraryStoreError> {
        let Storage::Folder(folder) = &self.0 else { return Ok(()) };
        let names: HashSet<String> = known.iter().map(file_name).collect();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let ours = entry.file_name().to_str().is_some_and(is_ours);
            if ours && !entry.file_name().to_str().is_some_and(|name| names.contains(name)) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn file_name(hash: &[u8; 32]) -> String {
    format!("{}.js", hex(hash))
}

/// `<64 digits>.js` or the temporary `<64 digits>.js.new`; other files are left alone.
fn is_ours(name: &str) -> bool {
    let stem = name.strip_suffix(".new").unwrap_or(name).strip_suffix(".js");
    stem.is_some_and(|stem| stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn read_capped(path: &Path) -> Result<Vec<u8>, LibraryStoreError> {
    // Does not block on a FIFO.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(LibraryStoreError::Changed),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(LibraryStoreError::Changed);
    }
    let mut bytes = Vec::new();
    file.take(LIBRARY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LIBRARY_BYTES { Err(LibraryStoreError::Changed) } else { Ok(bytes) }
}
