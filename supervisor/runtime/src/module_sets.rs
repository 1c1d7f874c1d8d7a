//! Modules that zygotes compile for the sessions of an owner. What a session loads is recorded during one execution; if it is much, a
//! zygote compiles it in the background, and the next sessions of the same scope are forked from that zygote.
//!
//! - A zygote compiles the texts and runs none. A session compares what it loads with what was compiled, so that a changed file is
//!   compiled as it is.
//! - The texts are those that the supervisor read for a session; nothing that a worker sends gets here.
//! - One session of a scope records at a time, and few of one owner; an owner's zygotes are started with pauses between them.

use super::libraries::Libraries;
use super::owner_jails::OwnerJails;
use crate::worktree::Worktree;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use vm_system_policy::EffectivePolicy;
use vm_system_policy::paths::PathRules;
use vm_system_protocol::limits::{MODULE_SET_BYTES, MODULE_SET_MIN_BYTES};
use vm_system_protocol::worker::SourceFormat;
use vm_system_record::{Owner, RecordedWorktree};
use vm_system_spawn::{
    LibrarySet, MODULE_SETS, ModuleSet, ModuleTexts, OWNER_MODULE_SETS, Spawner, WorkerKind,
};

/// Most sessions that record at a time.
const RECORDINGS_MAX: usize = 8;
/// Time between two starts of zygotes for one owner.
const PAUSE: Duration = Duration::from_secs(10);
/// The same after a zygote that failed to compile a set.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_mins(10);

/// Which sessions may share compiled modules: those that read the same files and change none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModuleScope {
    owner: Owner,
    worktree: Arc<RecordedWorktree>,
    load: PathRules,
    libraries: LibrarySet,
}

impl ModuleScope {
    /// The scope of a session with these rights; none if it may change files, because then it decides what the next session loads.
    pub(super) fn of(
        owner: &Owner,
        worktree: &Worktree,
        policy: &EffectivePolicy,
        libraries: &Libraries,
    ) -> Option<Self> {
        let Libraries::Installed(libraries) = libraries else { return None };
        if policy.may_write_files() || policy.exec.is_some() {
            return None;
        }
        Some(Self {
            owner: owner.clone(),
            worktree: Arc::clone(worktree.recorded()?),
            load: policy.load.clone()?,
            libraries: libraries.clone(),
        })
    }
}

/// The compiled modules of all owners.
#[derive(Debug)]
pub(super) struct ModuleSets {
    jails: Arc<OwnerJails>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// The one that was started last is the last.
    sets: Vec<(Arc<ModuleScope>, ModuleSet)>,
    /// Scopes that a session records, or that a zygote is started for.
    claimed: Vec<Arc<ModuleScope>>,
    /// When the next zygote of an owner may be started; past times are removed.
    next_start: HashMap<Owner, Instant>,
}

/// Texts that a session loads; dropping it without [`Recording::compile`] forgets them.
#[derive(Debug)]
pub(super) struct Recording {
    sets: Arc<ModuleSets>,
    scope: Arc<ModuleScope>,
    texts: ModuleTexts,
    bytes: usize,
}

impl ModuleSets {
    pub(super) fn new(jails: Arc<OwnerJails>) -> Arc<Self> {
        Arc::new(Self { jails, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The modules that a zygote of this jail has compiled for the scope. One that has exited is started again, for the next session.
    pub(super) fn ready(self: &Arc<Self>, scope: &Arc<ModuleScope>, jail: &Spawner) -> Option<ModuleSet> {
        let set = self.set_of(scope)?;
        if jail.has_zygote(&WorkerKind::Session(scope.libraries.clone(), Some(set.clone()))) {
            return Some(set);
        }
        // Without new texts the set's own ones are compiled.
        if let Some(recording) = self.record(scope) {
            recording.start();
        }
        None
    }

    fn set_of(&self, scope: &ModuleScope) -> Option<ModuleSet> {
        self.table().sets.iter().find(|(known, _)| **known == *scope).map(|(_, set)| set.clone())
    }

    /// Permits a session to record, unless another one of its scope does, or its owner must wait.
    fn record(self: &Arc<Self>, scope: &Arc<ModuleScope>) -> Option<Recording> {
        self.table().claim(scope, Instant::now()).then(|| Recording {
            sets: Arc::clone(self),
            scope: Arc::clone(scope),
            texts: ModuleTexts::new(),
            bytes: 0,
        })
    }
}

impl Table {
    fn claim(&mut self, scope: &Arc<ModuleScope>, now: Instant) -> bool {
        self.next_start.retain(|_, at| *at > now);
        let of_owner = self.claimed.iter().filter(|claimed| claimed.owner == scope.owner).count();
        let is_free = !self.next_start.contains_key(&scope.owner)
            && self.claimed.len() < RECORDINGS_MAX
            && of_owner < OWNER_MODULE_SETS
            && !self.claimed.contains(scope);
        if is_free {
            self.claimed.push(Arc::clone(scope));
        }
        is_free
    }

    /// A set in place of the scope's earlier one; the oldest make room.
    fn put(&mut self, scope: &Arc<ModuleScope>, set: ModuleSet) {
        self.sets.retain(|(known, _)| known != scope);
        let of_owner = |(known, _): &(Arc<ModuleScope>, ModuleSet)| known.owner == scope.owner;
        if self.sets.iter().filter(|known| of_owner(known)).count() >= OWNER_MODULE_SETS
            && let Some(oldest) = self.sets.iter().position(of_owner)
        {
            self.sets.remove(oldest);
        }
        if self.sets.len() >= MODULE_SETS {
            self.sets.remove(0);
        }
        self.sets.push((Arc::clone(scope), set));
    }
}

impl Recording {
    /// Adds a module that the session has loaded; one that exceeds the size of a set is left out.
    fn add(&mut self, path: &str, source: impl Into<Arc<str>> + AsRef<str>) {
        let bytes = self.bytes + source.as_ref().len();
        if bytes <= MODULE_SET_BYTES && !self.texts.contains_key(path) {
            self.texts.insert(path.to_owned(), source.into());
            self.bytes = bytes;
        }
    }

    /// Has a zygote compile the texts in the background, if they are worth it.
    fn compile(self) {
        if self.bytes >= MODULE_SET_MIN_BYTES {
            self.start();
        }
    }

    fn start(mut self) {
        let scope = Arc::clone(&self.scope);
        // What was compiled before and is not replaced stays, as far as it fits.
        for (path, source) in self.sets.set_of(&scope).iter().flat_map(ModuleSet::texts) {
            self.add(path, Arc::clone(source));
        }
        let set = ModuleSet::new(scope.owner.as_str(), std::mem::take(&mut self.texts));
        self.sets.table().next_start.insert(scope.owner.clone(), Instant::now() + PAUSE);
        tokio::spawn(async move {
            let kind = WorkerKind::Session(scope.libraries.clone(), Some(set.clone()));
            let prepared = match self.sets.jails.of(&scope.owner).await {
                Ok(jails) => jails.present().prepare_kind(&kind).await,
                Err(error) => Err(error),
            };
            let mut table = self.sets.table();
            match prepared {
                Ok(()) => table.put(&scope, set),
                Err(error) => {
                    tracing::warn!(owner = scope.owner.as_str(), %error, "modules were not compiled for the next sessions");
                    table.next_start.insert(scope.owner.clone(), Instant::now() + PAUSE_AFTER_FAILURE);
                }
            }
        });
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.sets.table().claimed.retain(|claimed| !Arc::ptr_eq(claimed, &self.scope));
    }
}

/// The compiled modules of one session, and what it loads besides.
#[derive(Debug, Default)]
pub(super) struct SessionModules {
    pub(super) scope: Option<Arc<ModuleScope>>,
    /// Those that its worker was forked with.
    pub(super) set: Option<ModuleSet>,
    recording: Option<Recording>,
}

impl SessionModules {
    /// A module that the session has loaded, and that its zygote has not compiled.
    pub(super) fn loaded(&mut self, sets: &Arc<ModuleSets>, path: &str, source: &str, format: SourceFormat) {
        let Some(scope) = &self.scope else { return };
        if format != SourceFormat::CommonJs {
            return;
        }
        if self.recording.is_none() {
            self.recording = sets.record(scope);
        }
        if let Some(recording) = &mut self.recording {
            recording.add(path, source);
        }
    }

    /// The end of an execution.
    pub(super) fn execution_ended(&mut self) {
        if let Some(recording) = self.recording.take() {
            recording.compile();
        }
    }
}
