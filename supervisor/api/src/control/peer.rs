//! Which processes may connect, and as whom: the kernel names their user (`SO_PEERCRED`, or its table of sockets over TCP),
//! never a message. Over the Unix socket its mode has decided already who connects; over TCP the same group is asked here.

use vm_system_ops::Caller;
use vm_system_record::Owner;
use vm_system_sandbox::identity::Identity;

/// The kernel's name for every user of a foreign user namespace (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_UID: u32 = 65_534;

/// How a peer is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket: its mode lets the owner and its group connect.
    Unix,
    /// TCP over loopback: every user of the machine can connect.
    Loopback,
}

/// Which peers are accepted, and as whom.
#[derive(Debug, Clone)]
pub struct PeerPolicy {
    own_uid: u32,
    /// Users that are never accepted, such as the one that workers run as: a process that got out of its jail must not reach
    /// an API.
    refused_uids: Vec<u32>,
    /// The group that may connect besides administrators (`socket_group`).
    group: Option<u32>,
}

impl PeerPolicy {
    /// For a supervisor that runs as `own_uid`, with workers that run as `worker_uid`, and the group of its sockets.
    pub fn new(own_uid: u32, worker_uid: u32, group: Option<u32>) -> Self {
        let refused_uids = [OVERFLOW_UID, worker_uid].into_iter().filter(|uid| *uid != own_uid).collect();
        Self { own_uid, refused_uids, group }
    }

    /// Whether a user of this machine administers the supervisor: root, and the user that it runs as.
    pub fn is_administrator(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own_uid
    }

    /// The caller behind a peer's effective uid, or why it is refused. Asks the user database, without blocking the runtime.
    pub async fn judge(
        &self,
        api: &'static str,
        uid: Option<u32>,
        transport: Transport,
    ) -> Result<Caller, String> {
        let uid = uid.ok_or("the kernel does not name your user")?;
        if self.refused_uids.contains(&uid) {
            return Err(format!("uid {uid} may not use this socket"));
        }
        let owner = Owner::new(format!("uid:{uid}"));
        let caller = Caller { owner, admin: self.is_administrator(uid), api };
        if caller.admin {
            return Ok(caller);
        }
        let group = self.group;
        let known = tokio::task::spawn_blocking(move || judge_user(uid, group, transport)).await;
        known.map_err(|error| format!("your user cannot be looked up: {error}"))??;
        Ok(caller)
    }
}

/// Whether a user that is no administrator may connect. Blocks.
fn judge_user(uid: u32, group: Option<u32>, transport: Transport) -> Result<(), String> {
    let user = Identity::of_user(uid).map_err(|error| format!("uid {uid} cannot be looked up: {error}"))?;
    // With subordinate ids one person has 65 536 uids: each would be an owner with shares of its own.
    let user = user.ok_or_else(|| format!("uid {uid} has no passwd entry"))?;
    match (transport, group) {
        (Transport::Unix, _) => Ok(()),
        (Transport::Loopback, Some(group)) if user.is_member(group) => Ok(()),
        (Transport::Loopback, Some(_)) => Err(format!("uid {uid} is not a member of `socket_group`")),
        (Transport::Loopback, None) => {
            Err(format!("uid {uid} needs a token here: no `socket_group` is configured"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every Linux has these users; none is the supervisor's here.
    const DAEMON: u32 = 1;
    const NO_ENTRY: u32 = 3_999_999_999;

    #[tokio::test]
    async fn root_and_the_supervisors_own_user_are_administrators_and_others_are_not() {
        let policy = PeerPolicy::new(990, 990, None);
        for (uid, admin) in [(0, true), (990, true), (DAEMON, false)] {
            let caller = Caller { owner: Owner::new(format!("uid:{uid}")), admin, api: "control" };
            assert_eq!(policy.judge("control", Some(uid), Transport::Unix).await, Ok(caller));
        }
    }

    #[tokio::test]
    async fn workers_and_unknown_peers_are_refused() {
        let policy = PeerPolicy::new(0, 777, None);
        let refused = Err("uid 777 may not use this socket".to_owned());
        assert_eq!(policy.judge("control", Some(777), Transport::Unix).await, refused);
        for uid in [Some(OVERFLOW_UID), None, Some(NO_ENTRY)] {
            assert!(policy.judge("control", uid, Transport::Unix).await.is_err(), "{uid:?}");
        }
    }

    #[tokio::test]
    async fn over_tcp_only_administrators_and_members_of_the_group_are_taken() {
        let user = Identity::of_user(DAEMON).expect("NSS answers").expect("a system user");
        let (member, outsider) = (user.ids.gid, 3_999_999_999);
        for (group, taken) in [(Some(member), true), (Some(outsider), false), (None, false)] {
            let policy = PeerPolicy::new(990, 777, group);
            assert_eq!(
                policy.judge("control", Some(DAEMON), Transport::Loopback).await.is_ok(),
                taken,
                "{group:?}"
            );
            assert!(policy.judge("control", Some(990), Transport::Loopback).await.is_ok());
            assert!(policy.judge("control", Some(DAEMON), Transport::Unix).await.is_ok());
        }
    }
}
