//! Modules that zygotes compile for the sessions of an owner. What a session loads is recorded during one execution; if it is much, a
//! zygote compiles it in the background, and the next sessions of the same scope are forked from that zygote.
//!
//! - A zygote compiles the texts and runs none. What a session loads is compared with what was compiled, so that a changed file is
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
/// Longest path of a recorded module: it is sent to the zygote in one packet.
const PATH_BYTES: usize = 1024;
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
    pub(super) fn of_session(
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
    table: Mutex<SetTable>,
}

#[derive(Debug, Default)]
struct SetTable {
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

    fn table(&self) -> MutexGuard<'_, SetTable> {
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

impl SetTable {
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

    /// A set in place of the scope's earlier one; the oldest are removed.
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
        // Modules that were compiled before and are not replaced stay, as far as they fit.
        for (path, source) in self.sets.set_of(&scope).iter().flat_map(ModuleSet::texts) {
            self.add(path, Arc::clone(source));
        }
        let set = ModuleSet::new(scope.owner.as_str(), std::mem::take(&mut self.texts));
        self.sets.table().next_start.insert(scope.owner.clone(), Instant::now() + PAUSE);
        tokio::spawn(async move {
            let kind = WorkerKind::Session(scope.libraries.clone(), Some(set.clone()));
            let prepared = match self.sets.jails.jails_of(&scope.owner).await {
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
    /// The modules with which its worker was forked.
    pub(super) set: Option<ModuleSet>,
    recording: Option<Recording>,
}

impl SessionModules {
    /// A module that the session has loaded, and that its zygote has not compiled.
    pub(super) fn loaded(&mut self, sets: &Arc<ModuleSets>, path: &str, source: &str, format: SourceFormat) {
        let Some(scope) = &self.scope else { return };
        if format != SourceFormat::CommonJs || path.len() > PATH_BYTES {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(owner: &str, folder: &str) -> Arc<ModuleScope> {
        let worktree = RecordedWorktree {
            uid: 0,
            user: None,
            root: "/".to_owned(),
            beneath: folder.to_owned(),
            handle: None,
        };
        Arc::new(ModuleScope {
            owner: Owner::new(owner),
            worktree: Arc::new(worktree),
            load: PathRules::everything(),
            libraries: LibrarySet::default(),
        })
    }

    fn set(owner: &str) -> ModuleSet {
        ModuleSet::new(owner, ModuleTexts::new())
    }

    #[test]
    fn one_session_of_a_scope_records_and_an_owner_waits_between_starts() {
        let (mut table, begin) = (SetTable::default(), Instant::now());
        assert!(table.claim(&scope("a", "1"), begin));
        assert!(!table.claim(&scope("a", "1"), begin), "another session of this scope");
        assert!(table.claim(&scope("a", "2"), begin));
        assert!(!table.claim(&scope("a", "3"), begin), "the owner records enough");
        assert!(table.claim(&scope("b", "1"), begin));
        table.claimed.clear();
        table.next_start.insert(scope("a", "1").owner.clone(), begin + PAUSE);
        assert!(!table.claim(&scope("a", "1"), begin));
        assert!(table.claim(&scope("b", "1"), begin), "other owners do not wait");
        assert!(table.claim(&scope("a", "1"), begin + PAUSE));
        assert!(table.next_start.is_empty(), "what is past is removed");
    }

    #[test]
    fn all_owners_together_record_in_few_sessions() {
        let mut table = SetTable::default();
        let claimed =
            (0..2 * RECORDINGS_MAX).filter(|n| table.claim(&scope(&n.to_string(), "1"), Instant::now()));
        assert_eq!(claimed.count(), RECORDINGS_MAX);
    }

    #[test]
    fn a_set_replaces_that_of_its_scope_and_the_oldest_are_removed() {
        let mut table = SetTable::default();
        let folders = |table: &SetTable| {
            let of = |(scope, _): &(Arc<ModuleScope>, ModuleSet)| {
                format!("{}{}", scope.owner.as_str(), scope.worktree.beneath)
            };
            table.sets.iter().map(of).collect::<Vec<_>>()
        };
        table.put(&scope("b", "1"), set("b"));
        for folder in ["1", "2", "1", "3"] {
            table.put(&scope("a", folder), set("a"));
        }
        assert_eq!(folders(&table), ["b1", "a1", "a3"], "two of an owner");
        for owner in 0..MODULE_SETS - 2 {
            table.put(&scope(&owner.to_string(), ""), set(""));
        }
        assert_eq!(folders(&table)[..2], ["a1", "a3"], "the oldest of all is removed");
        assert_eq!(table.sets.len(), MODULE_SETS);
    }
}
