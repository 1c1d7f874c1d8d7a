//! Who is at the other end: the kernel says so (`SO_PEERCRED`), never a message.
//!
//! Who may connect at all is decided before, by the modes of the socket and of its folder.

use super::Caller;

/// The kernel's name for every user of a foreign user namespace (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_UID: u32 = 65_534;

/// Which peers are taken, and as whom.
#[derive(Debug, Clone)]
pub struct PeerPolicy {
    /// The user that the supervisor runs as.
    pub own_uid: u32,
    /// Users that are never taken, such as the one that workers run as: one that got out of its jail must not find an
    /// open door.
    pub refused_uids: Vec<u32>,
}

impl PeerPolicy {
    /// Takes everybody whom the socket's mode lets in, except the users of workers.
    pub fn new(own_uid: u32, worker_uid: u32) -> Self {
        let refused_uids = [OVERFLOW_UID, worker_uid].into_iter().filter(|uid| *uid != own_uid).collect();
        Self { own_uid, refused_uids }
    }

    /// The caller behind a peer's effective uid, or why it is not taken.
    pub fn judge(&self, uid: Option<u32>) -> Result<Caller, String> {
        let Some(uid) = uid else {
            return Err("the kernel does not say who you are".to_owned());
        };
        if self.refused_uids.contains(&uid) {
            return Err(format!("uid {uid} may not use this socket"));
        }
        Ok(Caller { owner: format!("uid:{uid}"), admin: uid == 0 || uid == self.own_uid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_supervisors_own_user_are_admins_and_others_are_not() {
        let policy = PeerPolicy::new(990, 990);
        assert_eq!(policy.judge(Some(0)), Ok(Caller { owner: "uid:0".to_owned(), admin: true }));
        assert_eq!(policy.judge(Some(990)), Ok(Caller { owner: "uid:990".to_owned(), admin: true }));
        assert_eq!(policy.judge(Some(1000)), Ok(Caller { owner: "uid:1000".to_owned(), admin: false }));
    }

    #[test]
    fn workers_and_unknown_peers_are_refused() {
        let policy = PeerPolicy::new(0, 777);
        assert_eq!(policy.judge(Some(777)), Err("uid 777 may not use this socket".to_owned()));
        assert!(policy.judge(Some(OVERFLOW_UID)).is_err());
        assert!(policy.judge(None).is_err());
    }
}
