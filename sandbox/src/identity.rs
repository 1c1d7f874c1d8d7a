//! A user as the kernel judges file access: user id, primary group, supplementary groups. Looked up in the passwd and group
//! databases (NSS), passed to a child process as one argument. Decides no access itself.

use crate::namespaces::Ids;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User, getegid, geteuid, getgrouplist, getgroups};
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::str::FromStr;

/// Most supplementary groups of a process (`NGROUPS_MAX`).
const GROUPS: usize = 65_536;

/// A user with all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// User and primary group.
    pub ids: Ids,
    /// Supplementary groups, as `initgroups` sets them at a login. Never dropped if the user's files are used: a file of mode
    /// 0604 is closed to the members of its group, and would be open to a process without groups.
    pub groups: Vec<u32>,
}

impl From<Ids> for Identity {
    /// Without supplementary groups: for a service user that owns no files.
    fn from(ids: Ids) -> Self {
        Self { ids, groups: Vec::new() }
    }
}

impl Identity {
    /// The user of a passwd entry with its groups; `None`: there is no entry. Blocks: NSS may read files or query a service.
    pub fn of_user(uid: u32) -> io::Result<Option<Self>> {
        let Some(user) = user_of(uid)? else { return Ok(None) };
        let name = CString::new(user.name).map_err(|_| io::ErrorKind::InvalidData)?;
        let groups = getgrouplist(&name, user.gid)?.into_iter().map(Gid::as_raw).collect();
        Ok(Some(Self { ids: Ids { uid, gid: user.gid.as_raw() }, groups }))
    }

    /// The identity of this process.
    pub fn of_this_process() -> io::Result<Self> {
        let ids = Ids { uid: geteuid().as_raw(), gid: getegid().as_raw() };
        Ok(Self { ids, groups: getgroups()?.into_iter().map(Gid::as_raw).collect() })
    }

    /// Whether the user has the rights of a group.
    pub fn is_member(&self, gid: u32) -> bool {
        self.ids.gid == gid || self.groups.contains(&gid)
    }
}

/// The passwd entry of a uid; `None`: there is none. Blocks as [`Identity::of_user`] does.
pub fn user_of(uid: u32) -> nix::Result<Option<User>> {
    looked_up(|| User::from_uid(Uid::from_raw(uid)))
}

/// The passwd entry of a name, as [`user_of`].
pub fn user_named(name: &str) -> nix::Result<Option<User>> {
    looked_up(|| User::from_name(name))
}

/// A result of the user database that is final: it reports "no entry" also where it could open none of its files.
fn looked_up(lookup: impl FnOnce() -> nix::Result<Option<User>>) -> nix::Result<Option<User>> {
    can_open()?;
    let found = lookup()?;
    if found.is_none() {
        can_open()?;
    }
    Ok(found)
}

/// An error if a file could not be opened for lack of descriptors or memory.
fn can_open() -> nix::Result<()> {
    let error = File::open("/etc/passwd").err().and_then(|error| error.raw_os_error());
    match error.map(Errno::from_raw) {
        Some(short @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM)) => Err(short),
        // Without this file others have the users.
        _ => Ok(()),
    }
}

/// The uid of a user's name; the error says that there is none, or why it is not known. Blocks as [`Identity::of_user`] does.
pub fn uid_of_name(name: &str) -> Result<u32, String> {
    match user_named(name) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err(format!("there is no user `{name}`")),
        Err(errno) => Err(format!("user `{name}`: {}", errno.desc())),
    }
}

/// `uid:gid:group,group,…`: the argument of a child process.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.ids.uid, self.ids.gid)?;
        for (index, group) in self.groups.iter().enumerate() {
            write!(f, "{}{group}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Identity {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let number = |text: &str| text.parse::<u32>().map_err(|_| io::ErrorKind::InvalidInput);
        let mut parts = text.splitn(3, ':');
        let (Some(uid), Some(gid), Some(groups)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let groups = groups.split(',').filter(|group| !group.is_empty());
        let groups = groups.map(number).take(GROUPS).collect::<Result<_, _>>()?;
        Ok(Self { ids: Ids { uid: number(uid)?, gid: number(gid)? }, groups })
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, Ids};

    #[test]
    fn an_identity_is_parsed_from_its_argument_form() {
        for groups in [vec![], vec![4], vec![4, 20, 4_000_000_000]] {
            let identity = Identity { ids: Ids { uid: 1000, gid: 100 }, groups };
            assert_eq!(identity.to_string().parse::<Identity>().expect("its own form"), identity);
        }
        for malformed in ["", "1", "1:2", "a:2:", "1:2:x", "-1:2:", "1:2:3,x"] {
            assert!(malformed.parse::<Identity>().is_err(), "{malformed:?}");
        }
    }

    #[test]
    fn root_has_a_passwd_entry_and_an_unused_id_has_none() {
        let root = Identity::of_user(0).expect("NSS works").expect("root is everywhere");
        assert!(root.is_member(0) && !root.is_member(3_999_999_999));
        assert_eq!(Identity::of_user(3_999_999_999).expect("NSS works"), None);
    }
}
