//! The operator's settings of users, for a daemon that root starts: the user that it becomes, and those who may have files agents.

use super::error::DaemonError;
use std::path::PathBuf;
use vm_system_sandbox::identity::{Identity, user_named};

/// The user that a daemon of root becomes unless another one is named.
pub const SERVICE_USER: &str = "vm-system";

/// The settings of users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserConfig {
    /// The user that a daemon becomes after root has started it: a name or a number; none: [`SERVICE_USER`].
    pub user: Option<String>,
    /// Users from this uid on may have files agents, but for the reserved numbers of no people; others only as members of `socket_group` or by a token.
    pub min_uid: u32,
    /// The last one of them.
    pub max_uid: u32,
    /// Worktrees are also used as root, without capabilities.
    pub root_files: bool,
    /// Not started as root: the folder of the sockets at which a service manager starts files agents (`vm-files@UID.socket`).
    pub agent_sockets: Option<PathBuf>,
}

impl Default for UserConfig {
    fn default() -> Self {
        Self { user: None, min_uid: 1_000, max_uid: u32::MAX - 1, root_files: false, agent_sockets: None }
    }
}

impl UserConfig {
    /// The user that the daemon becomes, with all groups.
    pub(super) fn service_user(&self) -> Result<Identity, DaemonError> {
        let name = self.user.as_deref().unwrap_or(SERVICE_USER);
        let no_user = |detail: String| DaemonError::NoUser {
            name: name.to_owned(),
            detail,
            is_default: self.user.is_none(),
        };
        let failed = |error: std::io::Error| no_user(error.to_string());
        let uid = match name.parse() {
            Ok(uid) => Some(uid),
            Err(_) => user_named(name).map_err(|errno| failed(errno.into()))?.map(|user| user.uid.as_raw()),
        };
        let found = uid.map(Identity::of_user).transpose().map_err(failed)?.flatten();
        match found {
            None => Err(no_user("there is no such user".to_owned())),
            Some(user) if user.ids.uid == 0 || user.is_member(0) => {
                Err(no_user("it has the rights of root".to_owned()))
            }
            Some(user) => Ok(user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_user_exists_and_is_not_root() {
        let user =
            |name: &str| UserConfig { user: Some(name.to_owned()), ..UserConfig::default() }.service_user();
        assert_eq!(user("65534").expect("on every Linux").ids.uid, 65_534);
        for (name, why) in
            [("root", "root"), ("0", "root"), ("3999999999", "no such user"), ("no-such", "no such")]
        {
            let error = user(name).expect_err(name).to_string();
            assert!(error.contains(why) && error.contains(name), "{error}");
        }
    }
}
