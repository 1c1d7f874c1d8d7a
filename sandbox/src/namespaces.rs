//! User, pid, network, IPC, UTS, mount and cgroup namespaces. The same for root and for other users: inside, uid 0 is the service
//! user, and the user namespace is owned by the user that started the keeper, so that the supervisor may inspect processes and
//! set limits from outside.

use crate::identity::Identity;
use crate::process::{Fork, fork, wait_for};
use crate::step::{AtStep, JailStep, StepError};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// The user and group as which the jail runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Whether this process has root's user id.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Whether this process is root and may become other users: not in a user namespace that maps one id alone (`unshare -r`), where root is
/// an ordinary user outside.
pub fn may_become_others() -> bool {
    is_root() && fs::read_to_string("/proc/self/uid_map").map_or(true, |map| has_several(&map))
}

fn has_several(uid_map: &str) -> bool {
    let count = |line: &str| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok();
    uid_map.lines().filter_map(count).fold(0, u64::saturating_add) > 1
}

/// Whether this process is root and the user is mapped in its user namespace. In a user namespace that maps only this user
/// (`unshare -r`), root is already an ordinary user.
pub(crate) fn must_become(uid: u32) -> bool {
    if !is_root() {
        return false;
    }
    let Ok(map) = fs::read_to_string("/proc/self/uid_map") else { return true };
    maps(&map, uid)
}

/// Whether this process is the host's root, as far as this can be determined here. Even without capabilities such a process passes
/// all checks of the kernel for the id alone (switches in `/proc/sys`), and no limit of processes applies.
pub fn is_root_of_host() -> bool {
    let uid = nix::unistd::geteuid().as_raw();
    match fs::read_to_string("/proc/self/uid_map") {
        // An id that is not mapped outside is not root's.
        Ok(map) => outside(&map, uid) == Some(0),
        Err(_) => uid == 0,
    }
}

fn maps(uid_map: &str, uid: u32) -> bool {
    outside(uid_map, uid).is_some()
}

/// The id outside of the user namespace with this map.
fn outside(uid_map: &str, uid: u32) -> Option<u64> {
    uid_map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(outside)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return None;
        };
        let at = u64::from(uid).checked_sub(first).filter(|at| *at < count)?;
        outside.checked_add(at)
    })
}

/// The node name in a jail (`uname(2)`): that of the host is nobody's business there.
const NODE_NAME: &[u8] = b"localhost";

/// Enters a new user namespace in which uid 0 is `user` (as root) or ourselves, and then the other namespaces. The
/// pid namespace begins with the next fork. The user's supplementary groups stay in force. `given`: the user namespace was made for this
/// process's user ([`crate::user_namespace`]).
pub fn enter(user: impl Into<Identity>, given: Option<&OwnedFd>) -> Result<(), StepError> {
    let user = user.into();
    if let Some(given) = given {
        setns(given, CloneFlags::CLONE_NEWUSER).at_step(JailStep::UserNamespace)?;
    } else if must_become(user.ids.uid) {
        enter_as_root(&user)?;
    } else {
        enter_as_user()?;
    }
    let others = CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNS;
    unshare(others).at_step(JailStep::Namespaces)?;
    match crate::sys::set_host_name(NODE_NAME) {
        // The filter of a service manager refuses the call (`ProtectHostname=yes`): the name stays the host's, which is no wall.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
        result => result.map(drop).at_step(JailStep::Namespaces),
    }
}

/// Enters a cgroup namespace; fails where the host does not allow it.
pub fn enter_cgroup() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWCGROUP)?)
}

fn enter_as_user() -> Result<(), StepError> {
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER).at_step(JailStep::UserNamespace)?;
    // Before the map of groups, which the kernel refuses to an ordinary user otherwise: it could drop a group that denies it a file.
    fs::write("/proc/self/setgroups", "deny").at_step(JailStep::IdMap)?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).at_step(JailStep::IdMap)?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).at_step(JailStep::IdMap)
}

/// Root maps another id than its own: the map must be written from the parent namespace, by a helper child that stays there.
fn enter_as_root(user: &Identity) -> Result<(), StepError> {
    let service = user.ids;
    // Before the user namespace: in it no group of the host can be set.
    set_groups(user)?;
    let (mut unshared, mut unshared_writer) = io::pipe().at_step(JailStep::IdMap)?;
    let me = std::process::id();
    let helper = match fork().at_step(JailStep::IdMap)? {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            drop(unshared_writer);
            crate::process::exit_now(write_maps(&mut unshared, me, service));
        }
    };
    drop(unshared);
    let entered = unshare(CloneFlags::CLONE_NEWUSER).at_step(JailStep::UserNamespace);
    if entered.is_ok() {
        unshared_writer.write_all(b"1").at_step(JailStep::IdMap)?;
    }
    drop(unshared_writer);
    let mapped = wait_for(helper).at_step(JailStep::IdMap)?;
    entered?;
    match mapped {
        crate::process::ExitStatus::Exited(0) => {}
        crate::process::ExitStatus::Exited(errno) => return Err(StepError { step: JailStep::IdMap, errno }),
        crate::process::ExitStatus::Signaled(_) => {
            return Err(StepError { step: JailStep::IdMap, errno: libc::EIO });
        }
    }
    setresgid(Gid::from_raw(0), Gid::from_raw(0), Gid::from_raw(0)).at_step(JailStep::ServiceUser)?;
    setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).at_step(JailStep::ServiceUser)
}

/// The helper: waits for the unshare, writes both maps; its exit code is 0 or an errno.
fn write_maps(unshared: &mut impl Read, pid: u32, service: Ids) -> i32 {
    let mut write = || -> io::Result<()> {
        unshared.read_exact(&mut [0])?;
        fs::write(format!("/proc/{pid}/uid_map"), format!("0 {} 1", service.uid))?;
        fs::write(format!("/proc/{pid}/gid_map"), format!("0 {} 1", service.gid))
    };
    match write() {
        Ok(()) => 0,
        // The parent's unshare failed, and the parent reports why.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Without user namespaces: root becomes the service user for good; other users stay the same. The process's files in `/proc` are
/// made accessible again, so that the supervisor may inspect it and set limits from outside.
pub fn become_service_user(service: Ids) -> Result<(), StepError> {
    if !must_become(service.uid) {
        return Ok(());
    }
    become_ordinary_user(&service.into())
}

/// Root becomes a user whose processes trace each other.
pub(crate) fn become_ordinary_user(user: &Identity) -> Result<(), StepError> {
    become_user(user)?;
    // The change made the process undumpable, and its files in /proc unwritable.
    nix::sys::prctl::set_dumpable(true).at_step(JailStep::ServiceUser)
}

/// Without user namespaces: root becomes another user for good; other users, and a process without a user to become, stay the same.
/// From then on no process of that user can trace this one, whatever the host's setting for changed ids.
pub fn become_untraced(user: Option<Identity>) -> Result<(), StepError> {
    if let Some(user) = user.filter(|user| must_become(user.ids.uid)) {
        become_user(&user)?;
    }
    nix::sys::prctl::set_dumpable(false).at_step(JailStep::ServiceUser)
}

fn set_groups(user: &Identity) -> Result<(), StepError> {
    let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&groups).at_step(JailStep::ServiceUser)
}

fn become_user(user: &Identity) -> Result<(), StepError> {
    let (uid, gid) = (Uid::from_raw(user.ids.uid), Gid::from_raw(user.ids.gid));
    set_groups(user)?;
    setresgid(gid, gid, gid).at_step(JailStep::ServiceUser)?;
    setresuid(uid, uid, uid).at_step(JailStep::ServiceUser)
}

/// Forbids user namespaces beneath this one. Where `/proc/sys` is read-only, only the chroot of [`crate::root`] prevents them.
pub fn forbid_nested() -> io::Result<()> {
    fs::write("/proc/sys/user/max_user_namespaces", "0")
}

/// Tries what must be refused inside the jail.
pub(crate) fn enter_nested() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWUSER)?)
}

#[cfg(test)]
mod tests {
    use super::{has_several, maps, outside};

    #[test]
    fn the_service_user_must_be_mapped() {
        assert!(maps("         0          0 4294967295\n", 65534));
        assert!(maps("0 1000 1\n1 100000 65536\n", 65534));
        assert!(!maps("0 1000 1\n", 65534));
        assert!(!maps("", 0) && !maps("nonsense", 0));
        assert!(
            has_several("         0          0 4294967295\n") && has_several("0 1000 1\n1 100000 65536\n")
        );
        assert!(!has_several("0 1000 1\n"));
    }

    #[test]
    fn root_of_a_user_namespace_is_not_root_outside() {
        assert_eq!(outside("         0          0 4294967295\n", 0), Some(0));
        assert_eq!(outside("0 1000 1\n1 100000 65536\n", 0), Some(1000));
        assert_eq!(outside("0 1000 1\n1 100000 65536\n", 65534), Some(165_533));
        assert_eq!(outside("5 0 1\n", 5), Some(0), "root by another number");
        assert_eq!(outside("0 1000 1\n", 1), None);
    }
}
