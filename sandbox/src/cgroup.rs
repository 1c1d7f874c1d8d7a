//! cgroup v2 (cgroups(7), and `cgroup-v2` of the kernel's documentation): the subtree of the hierarchy that is this daemon's
//! own, the groups in it, their limits and their processes. Decides no limit, and changes nothing outside of the subtree.
//!
//! A group with processes cannot pass controllers on to groups beneath it. So the daemon leaves the top of its subtree for a group
//! of its own, [`SUPERVISOR`]; all other groups lie beside that. Their names begin with [`ZYGOTES`] or [`OWNER_PREFIX`], and
//! nothing with another name is ever ended or removed.

use crate::namespaces::Ids;
use crate::oom_kills::OomKills;
use crate::pidfd::PidFd;
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, faccessat};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The group of the daemon itself. The name that a unit's `DelegateSubgroup=` must have, where one is set.
pub const SUPERVISOR: &str = "supervisor";
/// The group of processes that work for all owners.
pub const ZYGOTES: &str = "zygotes";
/// First part of the names of all other groups directly beneath the subtree's top.
pub const OWNER_PREFIX: &str = "owner-";
/// First part of the names of groups of one command each, beneath an owner's.
pub const COMMAND_PREFIX: &str = "command-";

/// The list of a group's processes; a pid that is written to it moves the process there.
const PROCESSES: &str = "cgroup.procs";
/// The controllers of the groups beneath.
const PASSED_ON: &str = "cgroup.subtree_control";
/// The files that a new user of a subtree must own (`/sys/kernel/cgroup/delegate`), besides the folder.
const HANDED_OVER: [&str; 3] = [PROCESSES, PASSED_ON, "cgroup.threads"];
/// The controllers that are of use.
const WANTED: [&str; 3] = ["cpu", "memory", "pids"];
/// Ends all processes of a group and of those beneath.
const KILL: &str = "cgroup.kill";
/// Larger than the file `cgroup.events` (bytes).
const EVENTS_BYTES: usize = 256;
/// How long the processes of a killed daemon are waited for.
const END: Duration = Duration::from_secs(1);
/// Where systemd notes that a group is its service's own (`Delegate=`).
const DELEGATED: [&std::ffi::CStr; 2] = [c"trusted.delegate", c"user.delegate"];
/// Weight of processor time of the daemon, of 1 to 10 000; a group has 100 otherwise.
const SUPERVISOR_WEIGHT: u32 = 10_000;

/// Why there is no subtree.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The service manager, or whoever started the daemon, has given it none.
    #[error("no cgroup is delegated to the daemon: {0}")]
    NotDelegated(String),
    /// Not a group.
    #[error("{} is not a folder of a cgroup v2 hierarchy", .0.display())]
    NotCgroup(PathBuf),
    /// Another process holds its lock.
    #[error("the cgroup {} is used by another daemon", .0.display())]
    InUse(PathBuf),
    /// It has processes or groups of others.
    #[error("the cgroup {} is not the daemon's alone: it has {what}", path.display())]
    Shared {
        path: PathBuf,
        /// A process or a group.
        what: String,
    },
    /// The kernel refused a step.
    #[error("cannot {what} the cgroup {}: {error}", path.display())]
    Io {
        /// The step.
        what: &'static str,
        path: PathBuf,
        error: io::Error,
    },
}

impl CgroupError {
    /// The remedy.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotDelegated(_) => {
                "start the daemon as a service with Delegate=yes, or name an empty cgroup as `subtree` of [cgroups]"
            }
            Self::NotCgroup(_) => {
                "`subtree` of [cgroups] names a folder beneath the mount point of type cgroup2"
            }
            Self::InUse(_) => {
                "each daemon needs a cgroup of its own: name another one as `subtree` of [cgroups]"
            }
            Self::Shared { .. } => "name an empty cgroup as `subtree` of [cgroups]",
            Self::Io { .. } => {
                "the cgroup and its files cgroup.procs and cgroup.subtree_control must belong to the daemon's user"
            }
        }
    }

    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { what, path, error }
    }
}

/// The controllers that groups have; without one its limits are not in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Controllers {
    pub cpu: bool,
    pub memory: bool,
    pub pids: bool,
}

impl Controllers {
    /// Their names, separated by spaces.
    pub fn names(self) -> String {
        let has = [self.cpu, self.memory, self.pids];
        let names: Vec<&str> =
            has.into_iter().zip(WANTED).filter_map(|(has, name)| has.then_some(name)).collect();
        names.join(" ")
    }

    /// Whether all limits are in force.
    pub const fn are_complete(self) -> bool {
        self.cpu && self.memory && self.pids
    }

    /// Each that a group can pass on.
    fn pass_on(group: &Path) -> Self {
        let available = available(group);
        let pass = |name: &str| {
            available.split_whitespace().any(|controller| controller == name)
                && fs::write(group.join(PASSED_ON), format!("+{name}")).is_ok()
        };
        Self { cpu: pass("cpu"), memory: pass("memory"), pids: pass("pids") }
    }
}

/// One limit of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupLimit {
    /// Share of the processors when they are short, against the groups beside it (1 to 10 000).
    CpuWeight(u32),
    /// Memory of all processes together (bytes); above it the kernel ends one of them.
    MemoryBytes(u64),
    /// Processes and threads.
    Processes(u32),
    /// When the kernel ends a process of the group for lack of memory, it ends all of them.
    EndsTogether,
}

/// The subtree of one daemon. The daemon is in [`SUPERVISOR`] beneath it.
#[derive(Debug)]
pub struct CgroupSubtree {
    path: PathBuf,
    controllers: Controllers,
    /// This process was in [`SUPERVISOR`] when it was started.
    started_beneath: bool,
    /// Excludes other daemons.
    _lock: File,
}

impl CgroupSubtree {
    /// Takes the subtree that the service manager has delegated to this process: the cgroup that it is in, alone, and moves this
    /// process. To be called before other processes are started.
    pub fn delegated() -> Result<Self, CgroupError> {
        let own = own_group()?;
        let top = match own.parent().filter(|_| own.ends_with(SUPERVISOR)) {
            Some(parent) if is_changeable(parent) => parent.to_owned(),
            _ => own,
        };
        let path = top.display();
        if !is_changeable(&top) {
            return Err(CgroupError::NotDelegated(format!("it may not change {path}")));
        }
        if !available(&top).split_whitespace().any(|name| WANTED.contains(&name)) {
            return Err(CgroupError::NotDelegated(format!(
                "{path} has none of the controllers cpu, memory and pids"
            )));
        }
        // Root may change every group, also those that a service manager uses itself.
        let is_marked = || DELEGATED.iter().any(|name| sys::has_attribute(&top, name));
        if nix::unistd::geteuid().is_root() && !is_marked() {
            return Err(CgroupError::NotDelegated(format!("{path} is not marked as the service's own")));
        }
        match Self::claim(top) {
            Err(CgroupError::Shared { path, what }) => {
                Err(CgroupError::NotDelegated(format!("{} has {what}", path.display())))
            }
            claimed => claimed,
        }
    }

    /// Takes the cgroup at this path, which is created if it does not exist, and moves this process. To be called before other
    /// processes are started.
    pub fn claim_at(path: &Path) -> Result<Self, CgroupError> {
        let parent = path.parent().filter(|_| path.is_absolute());
        if !parent.is_some_and(is_cgroup) || path.components().any(|part| part.as_os_str() == "..") {
            return Err(CgroupError::NotCgroup(path.to_owned()));
        }
        make_folder(path).map_err(CgroupError::io("make", path))?;
        Self::claim(path.to_owned())
    }

    fn claim(path: PathBuf) -> Result<Self, CgroupError> {
        let lock = File::open(&path).map_err(CgroupError::io("open", &path))?;
        lock.try_lock().map_err(|_| CgroupError::InUse(path.clone()))?;
        refuse_others(&path)?;
        let started_beneath = own_group().is_ok_and(|group| group == path.join(SUPERVISOR));
        let own = Cgroup::make(path.join(SUPERVISOR)).map_err(CgroupError::io("make a group in", &path))?;
        own.add_this_process().map_err(CgroupError::io("move this process into", &own.path))?;
        let controllers = Controllers::pass_on(&path);
        if controllers.cpu {
            let weighed = own.limit(CgroupLimit::CpuWeight(SUPERVISOR_WEIGHT));
            weighed.map_err(CgroupError::io("set the weight of", &own.path))?;
        }
        Ok(Self { path, controllers, started_beneath, _lock: lock })
    }

    /// Ends and removes groups of a daemon that was killed: all, or, if its jails are kept, those of its commands and those without
    /// processes. Blocks; what does not end in time stays.
    pub fn end_left(&self, keeps_jails: bool) -> Result<(), CgroupError> {
        let read = |group: &Path| groups_in(group).map_err(CgroupError::io("read", group));
        let mut left = Vec::new();
        for name in read(&self.path)? {
            let group = self.path.join(&name);
            match name.as_str() {
                SUPERVISOR => {}
                _ if keeps_jails => {
                    let leaves = read(&group)?.into_iter().filter(|name| name.starts_with(COMMAND_PREFIX));
                    left.extend(leaves.map(|name| (group.join(name), true)));
                    left.push((group, false));
                }
                _ => left.push((group, true)),
            }
        }
        for (group, ends) in &left {
            if *ends {
                let _ = fs::write(group.join(KILL), "1");
            }
        }
        let deadline = Instant::now() + END;
        for (group, ends) in left {
            let until = if ends { deadline } else { Instant::now() };
            let _ = wait_until_empty(&group, until).and_then(|()| remove_group(&group));
        }
        Ok(())
    }

    /// Whether the service manager started this process in [`SUPERVISOR`] (`DelegateSubgroup=`), or can start the next one at the top
    /// because no controller is passed on from there: processes that outlive this one do not keep the next one from starting.
    pub const fn permits_successor(&self) -> bool {
        self.started_beneath || !(self.controllers.cpu || self.controllers.memory || self.controllers.pids)
    }

    /// Gives the subtree to another user, which can then make groups in it, limit them and move processes between them; the limits
    /// of the subtree itself stay its parent's. For a daemon of root, before it becomes that user.
    pub fn hand_over(&self, user: Ids) -> io::Result<()> {
        // Groups of a killed daemon that have not ended are included.
        let groups = groups_in(&self.path)?.into_iter().map(|name| self.path.join(name));
        for group in groups.chain([self.path.clone()]) {
            chown(&group, Some(user.uid), Some(user.gid))?;
            for file in HANDED_OVER {
                chown(group.join(file), Some(user.uid), Some(user.gid))?;
            }
        }
        Ok(())
    }

    /// A group directly beneath the top, made if there is none; its name is [`ZYGOTES`] or begins with [`OWNER_PREFIX`].
    pub fn group(&self, name: &str) -> io::Result<Cgroup> {
        if is_ours(name) {
            Cgroup::make(self.path.join(name))
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// The controllers of its groups.
    pub const fn controllers(&self) -> Controllers {
        self.controllers
    }

    /// The group's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A group of the subtree.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    /// Open for writing: the rights to move processes here are those of the process that opened it.
    processes: File,
}

impl Cgroup {
    fn make(path: PathBuf) -> io::Result<Self> {
        make_folder(&path)?;
        let processes = OpenOptions::new().write(true).open(path.join(PROCESSES))?;
        Ok(Self { path, processes })
    }

    /// A group beneath this one, made if there is none.
    pub fn child(&self, name: &str) -> io::Result<Self> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\n']) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Self::make(self.path.join(name))
    }

    /// Gives groups beneath it these controllers. It must have no processes of its own then.
    pub fn pass_on(&self, controllers: Controllers) -> io::Result<()> {
        let names: Vec<String> =
            controllers.names().split_whitespace().map(|name| format!("+{name}")).collect();
        if names.is_empty() { Ok(()) } else { fs::write(self.path.join(PASSED_ON), names.join(" ")) }
    }

    pub fn limit(&self, limit: CgroupLimit) -> io::Result<()> {
        let (file, value) = match limit {
            CgroupLimit::CpuWeight(weight) => ("cpu.weight", u64::from(weight)),
            CgroupLimit::MemoryBytes(bytes) => ("memory.max", bytes),
            CgroupLimit::Processes(count) => ("pids.max", u64::from(count)),
            CgroupLimit::EndsTogether => ("memory.oom.group", 1),
        };
        fs::write(self.path.join(file), value.to_string())
    }

    /// Moves a process with all of its threads; its children stay where they are. ESRCH if it has exited. Takes microseconds if the
    /// previous move on this machine is recent, and otherwise as long as the kernel waits for all processors (5 to 15 ms).
    pub fn add(&self, process: &PidFd) -> io::Result<()> {
        self.write_pid(process.pid()?)?;
        // It was moved by pid: this check makes sure that the pid was still its own. A signal could not be sent to processes of other
        // users, which agents of users start.
        process.pid().map(drop)
    }

    fn add_this_process(&self) -> io::Result<()> {
        self.write_pid(std::process::id())
    }

    fn write_pid(&self, pid: u32) -> io::Result<()> {
        self.processes.write_at(pid.to_string().as_bytes(), 0).map(drop)
    }

    /// The kernel's count of processes that it has ended here for lack of memory; none without that controller.
    pub fn oom_kills(&self) -> Option<OomKills> {
        OomKills::of_group(&self.path)
    }

    /// Ends all processes in it, and removes it with the groups beneath. Blocks until they have exited; an error if they do not in
    /// time.
    pub fn end(&self, patience: Duration) -> io::Result<()> {
        fs::write(self.path.join(KILL), "1")?;
        self.wait_until_empty(patience)?;
        self.remove()
    }

    /// Blocks until no process is in it or in the groups beneath; an error if that takes longer.
    pub fn wait_until_empty(&self, patience: Duration) -> io::Result<()> {
        wait_until_empty(&self.path, Instant::now() + patience)
    }

    /// Removes it, with the groups beneath. An error (EBUSY) if there is a process in one of them.
    pub fn remove(&self) -> io::Result<()> {
        remove_group(&self.path)
    }
}

impl AsFd for Cgroup {
    /// For [`join`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.processes.as_fd()
    }
}

/// Moves this process into a group, given as the descriptor of [`Cgroup`] that was passed to it.
pub fn join(group: OwnedFd) -> io::Result<()> {
    // By pid 0 the kernel means the writing process.
    File::from(group).write_at(b"0", 0).map(drop)
}

/// The folder of the cgroup of this process in the v2 hierarchy.
fn own_group() -> Result<PathBuf, CgroupError> {
    let none = || CgroupError::NotDelegated("this machine has no cgroup v2 hierarchy".to_owned());
    let memberships = fs::read_to_string("/proc/self/cgroup").map_err(|_| none())?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|_| none())?;
    own_folder(&memberships, &mounts).ok_or_else(none)
}

fn own_folder(memberships: &str, mounts: &str) -> Option<PathBuf> {
    let group = memberships.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        // proc_pid_mountinfo(5): the type follows a separator, because the fields before that vary in number.
        let (mount, source) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let beneath = Path::new(group).strip_prefix(root).ok().filter(|_| source.starts_with("cgroup2 "))?;
        Some(Path::new(point).join(beneath))
    })
}

/// Names of the controllers that a group can pass on.
fn available(group: &Path) -> String {
    fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default()
}

fn is_cgroup(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC)
}

/// Whether this process may make groups there and move processes.
fn is_changeable(group: &Path) -> bool {
    let may_write =
        |path: &Path| faccessat(nix::fcntl::AT_FDCWD, path, AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok();
    is_cgroup(group) && may_write(group) && HANDED_OVER.iter().all(|file| may_write(&group.join(file)))
}

fn is_ours(name: &str) -> bool {
    [SUPERVISOR, ZYGOTES].contains(&name) || name.starts_with(OWNER_PREFIX)
}

/// An error if there is a process besides this one in the group itself, or a group in it that no daemon of this kind has made.
fn refuse_others(group: &Path) -> Result<(), CgroupError> {
    let shared = |what| Err(CgroupError::Shared { path: group.to_owned(), what });
    let read = |error| CgroupError::io("read", group)(error);
    let own = std::process::id().to_string();
    let processes = fs::read_to_string(group.join(PROCESSES)).map_err(read)?;
    if let Some(other) = processes.lines().find(|pid| *pid != own) {
        return shared(format!("the process {other}"));
    }
    match groups_in(group).map_err(read)?.into_iter().find(|name| !is_ours(name)) {
        Some(other) => shared(format!("the group {other}")),
        None => Ok(()),
    }
}

/// Names of the groups directly beneath.
fn groups_in(group: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn wait_until_empty(group: &Path, deadline: Instant) -> io::Result<()> {
    let events = File::open(group.join("cgroup.events"))?;
    let mut text = [0; EVENTS_BYTES];
    loop {
        let read = events.read_at(&mut text, 0)?;
        if String::from_utf8_lossy(&text[..read]).lines().any(|line| line == "populated 0") {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        // The kernel reports a change of the file since it was last read.
        let mut changes = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
        match poll(&mut changes, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Err(Errno::EINTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn remove_group(group: &Path) -> io::Result<()> {
    for name in groups_in(group)? {
        remove_group(&group.join(name))?;
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests;
