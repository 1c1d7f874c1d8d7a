//! The users for which the spawn helper starts agents. Plain data of the operator, passed once as arguments; decides about one uid,
//! with what the user database says of it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use vm_system_sandbox::identity::Identity;

/// Which users may have an agent: those from `min_uid` to `max_uid`, members of the socket's group, and the users of tokens. Never the
/// service user, whose rights the supervisor has anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRules {
    /// The first uid of people.
    pub min_uid: u32,
    /// The last one.
    pub max_uid: u32,
    /// Root's own files are used, too: without capabilities, but root's id alone can change the machine's own files.
    pub root_files: bool,
    /// The group that may connect.
    pub group: Option<u32>,
    /// The user that the supervisor becomes.
    pub service_uid: u32,
    /// The file of tokens, of which only the users are read.
    pub tokens: Option<PathBuf>,
    /// The host refuses user namespaces to users: the helper makes them, for jails of the service user with this group and for commands
    /// of the agents' users.
    pub makes_namespaces: Option<u32>,
}

const MIN_UID: &str = "min-uid=";
const MAX_UID: &str = "max-uid=";
const ROOT_FILES: &str = "root-files";
const GROUP: &str = "group=";
const SERVICE: &str = "service=";
const TOKENS: &str = "tokens=";
const NAMESPACES: &str = "namespaces=";

impl AgentRules {
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![
            OsString::from(format!("{MIN_UID}{}", self.min_uid)),
            OsString::from(format!("{MAX_UID}{}", self.max_uid)),
            OsString::from(format!("{SERVICE}{}", self.service_uid)),
        ];
        if self.root_files {
            arguments.push(OsString::from(ROOT_FILES));
        }
        arguments.extend(self.group.map(|group| OsString::from(format!("{GROUP}{group}"))));
        arguments.extend(self.makes_namespaces.map(|group| OsString::from(format!("{NAMESPACES}{group}"))));
        arguments.extend(self.tokens.as_ref().map(|path| {
            let mut argument = OsString::from(TOKENS);
            argument.push(path);
            argument
        }));
        arguments
    }

    /// `None`: not its arguments.
    pub(super) fn from_arguments(arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut min_uid, mut service_uid) = (None, None);
        let mut rules = Self {
            min_uid: u32::MAX,
            max_uid: 0,
            root_files: false,
            group: None,
            service_uid: 0,
            tokens: None,
            makes_namespaces: None,
        };
        for argument in arguments {
            let value = |prefix: &str| {
                argument
                    .as_bytes()
                    .strip_prefix(prefix.as_bytes())
                    .map(|rest| OsString::from_vec(rest.to_vec()))
            };
            let number = |prefix: &str| value(prefix)?.to_str()?.parse::<u32>().ok();
            if argument == ROOT_FILES {
                rules.root_files = true;
            } else if let Some(number) = number(MIN_UID) {
                min_uid = Some(number);
            } else if let Some(number) = number(MAX_UID) {
                rules.max_uid = number;
            } else if let Some(number) = number(SERVICE) {
                service_uid = Some(number);
            } else if let Some(number) = number(GROUP) {
                rules.group = Some(number);
            } else if let Some(number) = number(NAMESPACES) {
                rules.makes_namespaces = Some(number);
            } else if let Some(path) = value(TOKENS) {
                rules.tokens = Some(PathBuf::from(path));
            } else {
                return None;
            }
        }
        Some(Self { min_uid: min_uid?, service_uid: service_uid?, ..rules })
    }

    /// Whether this user may have an agent. `is_of_token` reads the file of tokens, only where it matters.
    pub(super) fn allow(&self, user: &Identity, is_of_token: impl FnOnce() -> bool) -> bool {
        match user.ids.uid {
            0 => self.root_files,
            uid if uid == self.service_uid => false,
            uid => {
                let is_person = (self.min_uid..=self.max_uid).contains(&uid) && !is_reserved(uid);
                is_person || self.group.is_some_and(|group| user.is_member(group)) || is_of_token()
            }
        }
    }
}

/// Uids that have a passwd entry and are no people: `nobody` as the kernel and network file systems use it, -1 of 16 bits, and the dynamic
/// users of systemd.
const fn is_reserved(uid: u32) -> bool {
    matches!(uid, 61_184..=65_519 | 65_534 | 65_535)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_sandbox::namespaces::Ids;

    fn rules() -> AgentRules {
        let tokens = Some(PathBuf::from(OsString::from_vec(b"/etc/\xff=t".to_vec())));
        AgentRules {
            min_uid: 1000,
            max_uid: 4_000_000_000,
            root_files: false,
            group: Some(7),
            service_uid: 1500,
            tokens,
            makes_namespaces: None,
        }
    }

    #[test]
    fn rules_are_passed_as_arguments() {
        let others = AgentRules { root_files: true, group: None, tokens: None, ..rules() };
        for rules in [rules(), others, AgentRules { makes_namespaces: Some(1500), ..rules() }] {
            assert_eq!(AgentRules::from_arguments(rules.to_arguments().into_iter()), Some(rules));
        }
        for wrong in [&["min-uid=1"][..], &["service=1"], &["min-uid=-1", "service=1"], &["other"]] {
            let arguments = wrong.iter().copied().map(OsString::from);
            assert_eq!(AgentRules::from_arguments(arguments), None, "{wrong:?}");
        }
    }

    #[test]
    fn people_members_and_users_of_tokens_have_agents_and_the_service_user_and_root_have_none() {
        let user = |uid, groups: &[u32]| Identity { ids: Ids { uid, gid: uid }, groups: groups.to_vec() };
        let no_token = || false;
        let rules = rules();
        assert!(rules.allow(&user(1000, &[]), no_token) && rules.allow(&user(4_000_000_000, &[]), no_token));
        assert!(!rules.allow(&user(999, &[]), no_token) && !rules.allow(&user(4_000_000_001, &[]), no_token));
        for reserved in [61_184, 65_519, 65_534, 65_535] {
            assert!(!rules.allow(&user(reserved, &[]), no_token), "{reserved}");
            assert!(
                rules.allow(&user(reserved, &[7]), no_token) && rules.allow(&user(reserved, &[]), || true)
            );
        }
        assert!(rules.allow(&user(61_183, &[]), no_token) && rules.allow(&user(65_520, &[]), no_token));
        assert!(rules.allow(&user(999, &[7]), no_token) && rules.allow(&user(7, &[]), no_token));
        assert!(rules.allow(&user(999, &[]), || true));
        for uid in [0, 1500] {
            assert!(!rules.allow(&user(uid, &[7]), || true), "{uid}");
        }
        let rules = AgentRules { root_files: true, ..rules };
        assert!(rules.allow(&user(0, &[]), no_token) && !rules.allow(&user(1500, &[]), || true));
    }
}
