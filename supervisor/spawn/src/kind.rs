//! Worker kinds: the preloaded engine, and the libraries and compiled modules that a worker is forked with. The kind decides which zygote
//! forks it.

use super::error::{LibraryError, SpawnError};
use crate::libraries::LibraryStore;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vm_system_protocol::limits::LIBRARY_SET_BYTES;

/// Engine, libraries and compiled modules of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WorkerKind {
    /// The engine of sessions with these libraries, and modules that it need not compile.
    Session(LibrarySet, Option<ModuleSet>),
    /// The durable engine.
    Program,
}

impl WorkerKind {
    /// A session without libraries.
    pub fn plain() -> Self {
        Self::session(LibrarySet::default())
    }

    /// A session with these libraries.
    pub fn session(libraries: LibrarySet) -> Self {
        Self::Session(libraries, None)
    }

    /// The owner of all workers of this kind, if it is for one.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Session(_, Some(modules)) => Some(modules.owner()),
            _ => None,
        }
    }

    /// Number of its compiled modules.
    pub fn modules(&self) -> usize {
        match self {
            Self::Session(_, Some(modules)) => modules.texts().len(),
            _ => 0,
        }
    }

    /// Whether the permanent zygotes are of this kind.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Session(libraries, None) if libraries.is_empty())
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        match self {
            Self::Session(..) => "quickjs",
            Self::Program => "cvm",
        }
    }

    /// `id-version` of each of its libraries.
    pub fn libraries(&self) -> Vec<String> {
        match self {
            Self::Session(libraries, _) => libraries.names(),
            Self::Program => Vec::new(),
        }
    }
}

impl fmt::Display for WorkerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(libraries, modules) => {
                f.write_str("sessions")?;
                let mut parts = libraries.names();
                parts.extend(modules.as_ref().map(|set| format!("compiled modules ({})", set.texts().len())));
                if parts.is_empty() { Ok(()) } else { write!(f, " with {}", parts.join(", ")) }
            }
            Self::Program => f.write_str("durable programs"),
        }
    }
}

/// `CommonJS` modules that sessions of one owner load from one worktree, compiled in their zygote. Equal to its clones only; cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct ModuleSet(Arc<OwnedModules>);

#[derive(Debug)]
struct OwnedModules {
    owner: String,
    texts: ModuleTexts,
}

/// The texts of modules by their paths, relative to the worktree.
pub type ModuleTexts = HashMap<String, Arc<str>>;

impl ModuleSet {
    /// The modules of an owner.
    pub fn new(owner: &str, texts: ModuleTexts) -> Self {
        Self(Arc::new(OwnedModules { owner: owner.to_owned(), texts }))
    }

    fn owner(&self) -> &str {
        &self.0.owner
    }

    /// All of them.
    pub fn texts(&self) -> &ModuleTexts {
        &self.0.texts
    }

    /// Whether the module with this path has this text.
    pub fn has(&self, path: &str, source: &str) -> bool {
        self.0.texts.get(path).is_some_and(|text| **text == *source)
    }
}

impl PartialEq for ModuleSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ModuleSet {}

impl Hash for ModuleSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// An installed library by the hash of its source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Library {
    /// `id-version`.
    pub name: String,
    /// The name by which `require` and `import` find the library.
    pub id: String,
    /// The global variable that it becomes.
    pub global: Option<String>,
    /// SHA-256 of its source.
    pub hash: [u8; 32],
}

/// The libraries of a session, sorted by name. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LibrarySet(Arc<[Library]>);

impl LibrarySet {
    /// A set, in any order.
    pub fn new(mut libraries: Vec<Library>) -> Self {
        libraries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Self(libraries.into())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `id-version` of each.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|library| library.name.clone()).collect()
    }

    /// Their sources, as they were installed.
    pub(super) async fn sources(
        &self,
        library_store: &LibraryStore,
    ) -> Result<Vec<(Library, String)>, SpawnError> {
        let (libraries, library_store) = (Arc::clone(&self.0), library_store.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = 0;
            let read = libraries.iter().map(|library| {
                let name = library.name.clone();
                let source = library_store.get(&library.hash).map_err(|error| LibraryError::Corrupt {
                    name: name.clone(),
                    problem: error.to_string(),
                })?;
                bytes += source.len();
                if bytes > LIBRARY_SET_BYTES {
                    let message = format!(
                        "the libraries of its template have more than {LIBRARY_SET_BYTES} bytes together"
                    );
                    return Err(LibraryError::Failed { name, message });
                }
                Ok((library.clone(), source))
            });
            read.collect::<Result<Vec<_>, _>>()
        });
        match read.await {
            Ok(read) => Ok(read?),
            Err(error) => Err(SpawnError::Io { what: "read libraries", error: std::io::Error::other(error) }),
        }
    }
}
