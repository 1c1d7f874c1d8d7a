//! The groups of owners in the daemon's cgroup subtree: which process is in which, and their limits.
//!
//! ```text
//!  subtree ── supervisor          the daemon
//!          ── zygotes             keeper, zygotes, workers without an owner: a page is charged to who touches it first
//!          ── owner-uid:1000      weight and limits of one owner; it exists while it is used
//!               ── processes      workers and brokers
//!               ── command-7      one command of `exec`; it ends as a whole
//! ```
//! A process is moved from outside, before it gets anything of its owner. A move blocks, some milliseconds if the last one is not
//! recent (the kernel then waits for a grace period of RCU), so it is done on the blocking pool, and prestarted workers are moved before they are needed. What cannot
//! be moved is not used.

use super::control::lock;
use super::oom::OomWatch;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use vm_system_sandbox::cgroup::{COMMAND_PREFIX, Cgroup, CgroupLimit, CgroupSubtree, OWNER_PREFIX, ZYGOTES};
use vm_system_sandbox::oom_kills::OomKills;
use vm_system_sandbox::pidfd::PidFd;

/// The longest encoded name of an owner; a folder's name may have 255 bytes.
const NAME_BYTES: usize = 200;
/// How long killed processes are waited for before their group is removed.
const END: Duration = Duration::from_secs(1);
/// Weight of the zygotes' processor time: they work for all owners, of which each has 100.
const ZYGOTES_WEIGHT: u32 = 1_000;

/// The resources that one owner may use at a time. A limit is in force if its controller is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerLimits {
    /// Share of the processors when they are short (1 to 10 000), against other owners.
    pub cpu_weight: u32,
    /// Memory of all of its processes together (bytes).
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: u32,
    /// Memory of one command of `exec` with all processes that it starts (bytes).
    pub command_memory_bytes: Option<u64>,
}

impl Default for OwnerLimits {
    fn default() -> Self {
        Self { cpu_weight: 100, memory_bytes: None, processes: 4_096, command_memory_bytes: None }
    }
}

/// The groups of owners, or the reason why there are none.
#[derive(Debug, Clone)]
pub enum Cgroups {
    /// They have none; the reason.
    Unused(String),
    Used(OwnerGroups),
}

impl Cgroups {
    /// The groups, if there are any.
    pub const fn groups(&self) -> Option<&OwnerGroups> {
        match self {
            Self::Unused(_) => None,
            Self::Used(groups) => Some(groups),
        }
    }
}

/// The groups of all owners. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OwnerGroups(Arc<OwnerGroupTable>);

#[derive(Debug)]
struct OwnerGroupTable {
    subtree: CgroupSubtree,
    zygotes: Cgroup,
    limits: OwnerLimits,
    /// By the owner's name. An entry is removed with its group.
    live: Mutex<HashMap<String, Weak<OwnerGroup>>>,
    /// Locked while groups of owners are made or removed; names of those that had processes when they were to be removed.
    changing: Mutex<Vec<String>>,
    commands: AtomicU64,
}

impl OwnerGroups {
    /// Makes the group of the zygotes. Blocks.
    pub fn new(subtree: CgroupSubtree, limits: OwnerLimits) -> io::Result<Self> {
        let zygotes = subtree.group(ZYGOTES)?;
        if subtree.controllers().cpu {
            zygotes.limit(CgroupLimit::CpuWeight(ZYGOTES_WEIGHT))?;
        }
        Ok(Self(Arc::new(OwnerGroupTable {
            subtree,
            zygotes,
            limits,
            live: Mutex::default(),
            changing: Mutex::default(),
            commands: AtomicU64::new(1),
        })))
    }

    /// Where it is.
    pub fn subtree(&self) -> &CgroupSubtree {
        &self.0.subtree
    }

    pub(super) fn zygotes(&self) -> BorrowedFd<'_> {
        self.0.zygotes.as_fd()
    }

    /// The group of an owner; it stays while the result, or a process that was added, is held.
    pub async fn group_of(&self, owner: &str) -> io::Result<Arc<OwnerGroup>> {
        if let Some(group) = self.0.live(owner) {
            return Ok(group);
        }
        let (groups, owner) = (Arc::clone(&self.0), owner.to_owned());
        blocking(move || OwnerGroupTable::make(&groups, owner)).await
    }
}

impl OwnerGroupTable {
    fn live(&self, owner: &str) -> Option<Arc<OwnerGroup>> {
        lock(&self.live).get(owner).and_then(Weak::upgrade)
    }

    fn make(self: &Arc<Self>, owner: String) -> io::Result<Arc<OwnerGroup>> {
        let mut left = lock(&self.changing);
        if let Some(group) = self.live(&owner) {
            return Ok(group);
        }
        let folder = folder_name(&owner);
        left.retain(|name| *name != folder);
        let (limits, controllers) = (&self.limits, self.subtree.controllers());
        let group = self.subtree.group(&folder)?;
        if controllers.cpu {
            group.limit(CgroupLimit::CpuWeight(limits.cpu_weight))?;
        }
        if controllers.pids {
            group.limit(CgroupLimit::Processes(limits.processes))?;
        }
        if let (true, Some(bytes)) = (controllers.memory, limits.memory_bytes) {
            group.limit(CgroupLimit::MemoryBytes(bytes))?;
        }
        // Weights among the processes of one owner are of no use, and each level takes time at every switch.
        group.pass_on(vm_system_sandbox::cgroup::Controllers { cpu: false, ..controllers })?;
        let processes = group.child("processes")?;
        let oom = group.oom_kills().map(|kills| Arc::new(OomWatch::counting(Some(kills))));
        let made = OwnerGroup {
            groups: Arc::clone(self),
            owner: owner.clone(),
            group,
            processes,
            oom,
            left: Mutex::default(),
        };
        let made = Arc::new(made);
        lock(&self.live).insert(owner, Arc::downgrade(&made));
        Ok(made)
    }

    /// Removes the group of an owner that is not used any more, and those that could not be removed earlier.
    fn discard(&self, owner: &str) {
        let mut left = lock(&self.changing);
        if self.live(owner).is_some() {
            return;
        }
        lock(&self.live).remove(owner);
        left.push(folder_name(owner));
        left.retain(|name| {
            let removed = self.subtree.group(name).and_then(|group| group.remove());
            removed.inspect_err(|error| tracing::debug!(%error, name, "a group is not removed yet")).is_err()
        });
    }
}

/// The group of one owner.
#[derive(Debug)]
pub struct OwnerGroup {
    groups: Arc<OwnerGroupTable>,
    owner: String,
    group: Cgroup,
    processes: Cgroup,
    /// None without the memory controller.
    oom: Option<Arc<OomWatch>>,
    /// Groups of commands that had processes when they were to be removed.
    left: Mutex<Vec<Cgroup>>,
}

impl OwnerGroup {
    /// Moves a process, without its children, into the group.
    pub async fn add(self: &Arc<Self>, process: PidFd) -> io::Result<()> {
        let group = Arc::clone(self);
        blocking(move || group.processes.add(&process)).await
    }

    /// Makes a group for a command and moves a process, which will start it, into that.
    pub async fn add_command(self: &Arc<Self>, process: PidFd) -> io::Result<CommandGroup> {
        let group = Arc::clone(self);
        blocking(move || group.command(&process)).await
    }

    fn command(self: &Arc<Self>, process: &PidFd) -> io::Result<CommandGroup> {
        lock(&self.left).retain(|left| left.end(Duration::ZERO).is_err());
        let number = self.groups.commands.fetch_add(1, Ordering::Relaxed);
        let leaf = self.group.child(&format!("{COMMAND_PREFIX}{number}"))?;
        let made = CommandGroup { leaf, owner: Arc::clone(self) };
        match made.fill(process) {
            Ok(()) => Ok(made),
            Err(error) => {
                made.end();
                Err(error)
            }
        }
    }

    /// For the keeper of a jail of this owner.
    pub(super) fn processes(&self) -> BorrowedFd<'_> {
        self.processes.as_fd()
    }

    /// The watch that reports that the kernel has ended a process of the owner for lack of memory.
    pub(super) const fn oom(&self) -> Option<&Arc<OomWatch>> {
        self.oom.as_ref()
    }
}

impl Drop for OwnerGroup {
    fn drop(&mut self) {
        let (groups, owner) = (Arc::clone(&self.groups), std::mem::take(&mut self.owner));
        in_background(move || {
            if let Ok(group) = groups.subtree.group(&folder_name(&owner)) {
                // The group's last processes may have been killed just now: a group with a process cannot be removed.
                let _ = group.wait_until_empty(END);
            }
            groups.discard(&owner);
        });
    }
}

/// The group of one command; to be ended by [`Self::end`].
#[derive(Debug)]
pub struct CommandGroup {
    leaf: Cgroup,
    owner: Arc<OwnerGroup>,
}

impl CommandGroup {
    fn fill(&self, process: &PidFd) -> io::Result<()> {
        let (leaf, groups) = (&self.leaf, &self.owner.groups);
        if groups.subtree.controllers().memory {
            leaf.limit(CgroupLimit::EndsTogether)?;
            if let Some(bytes) = groups.limits.command_memory_bytes {
                leaf.limit(CgroupLimit::MemoryBytes(bytes))?;
            }
        }
        leaf.add(process)
    }

    /// Whether the kernel has ended the command for lack of memory.
    pub fn ran_out_of_memory(&self) -> bool {
        let kills = self.leaf.oom_kills().as_ref().map(OomKills::count);
        kills.is_some_and(|kills| kills.is_ok_and(|count| count > 0))
    }

    /// Ends the command with all that it has started; does not wait for that.
    pub fn end(self) {
        let Self { leaf, owner } = self;
        in_background(move || {
            // A command that has not exited by then is removed with a later command, or with the owner's group.
            if leaf.end(END).is_err() {
                lock(&owner.left).push(leaf);
            }
        });
    }
}

/// The groups of a jail's workers.
#[derive(Debug)]
pub(super) enum JailGroups {
    None,
    /// Of all owners: each worker is moved.
    OfOwners(OwnerGroups),
    /// The jail is one owner's: its keeper is in the group, so everything that it starts is, too.
    Own(Arc<OwnerGroup>),
}

impl JailGroups {
    /// Of a jail of this owner, or of all.
    pub(super) async fn open(cgroups: &Cgroups, owner: Option<&str>) -> io::Result<Self> {
        Ok(match (cgroups, owner) {
            (Cgroups::Unused(_), _) => Self::None,
            (Cgroups::Used(groups), None) => Self::OfOwners(groups.clone()),
            (Cgroups::Used(groups), Some(owner)) => Self::Own(groups.group_of(owner).await?),
        })
    }

    /// For the keeper, which moves itself there.
    pub(super) fn of_keeper(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::None => None,
            Self::OfOwners(groups) => Some(groups.zygotes()),
            Self::Own(group) => Some(group.processes()),
        }
    }

    /// Whether a worker belongs to one owner before it is assigned.
    pub(super) const fn are_of_owners(&self) -> bool {
        matches!(self, Self::OfOwners(_))
    }

    /// The group of an owner, whose workers are in it already.
    pub(super) async fn of_owner(&self, owner: &str) -> io::Result<Option<Arc<OwnerGroup>>> {
        match self {
            Self::None => Ok(None),
            Self::Own(group) => Ok(Some(Arc::clone(group))),
            Self::OfOwners(groups) => groups.group_of(owner).await.map(Some),
        }
    }

    /// Has a new worker be in its owner's group.
    pub(super) async fn add(&self, owner: &str, worker: &PidFd) -> io::Result<Option<Arc<OwnerGroup>>> {
        let group = self.of_owner(owner).await?;
        // In a jail of one owner it is there already.
        if let (Self::OfOwners(_), Some(group)) = (self, &group) {
            group.add(worker.try_clone()?).await?;
        }
        Ok(group)
    }
}

/// The folder of an owner's group: readable for usual names, and never that of another owner.
fn folder_name(owner: &str) -> String {
    let mut name = String::from(OWNER_PREFIX);
    for byte in owner.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'-' | b'_' => name.push(char::from(byte)),
            _ => drop(write!(name, "%{byte:02X}")),
        }
    }
    if name.len() > NAME_BYTES {
        name.truncate(NAME_BYTES / 2);
        name.push('~');
        for byte in Sha256::digest(owner.as_bytes()) {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// On the blocking pool. Where no runtime runs any more, the process ends, and the next daemon does it.
fn in_background(work: impl FnOnce() + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn_blocking(work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owner_has_a_folder_of_its_own() {
        assert_eq!(folder_name("uid:1000"), "owner-uid:1000");
        assert_eq!(folder_name("../x\n"), "owner-%2E%2E%2Fx%0A");
        assert_ne!(folder_name("a/b"), folder_name("a%2Fb"));
        let (long, longer) = ("ü".repeat(100), "ü".repeat(101));
        for name in [&long, &longer] {
            assert!(folder_name(name).len() <= NAME_BYTES, "{name}");
        }
        assert_ne!(folder_name(&long), folder_name(&longer));
    }
}
