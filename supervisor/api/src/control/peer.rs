//! Which users may connect, and as which principal: the kernel reports the user (`SO_PEERCRED`; over TCP, socket diagnosis), never
//! a message. The mode of the Unix socket decides who can connect; over TCP membership of the same group is checked here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use vm_system_ops::Caller;
use vm_system_record::Owner;
use vm_system_runtime::shares::{Holder, Origin, ShareLimits, Shares};
use vm_system_sandbox::identity::Identity;

/// The uid that the kernel reports for users without a mapping in this user namespace (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_UID: u32 = 65_534;

/// How a peer is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket: its mode lets its owner and its group connect.
    Unix,
    /// TCP over loopback: every user of the machine can connect.
    Loopback,
}

/// The user as which a supervisor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnUser {
    /// A person, who is an administrator.
    Person(u32),
    /// The user of a service, as which also its brokers and commands run: no client. Root is none.
    Service(u32),
}

/// Which peers are accepted, and as which principal.
#[derive(Debug, Clone)]
pub struct PeerPolicy {
    /// The administrator besides root.
    administrator: Option<u32>,
    /// The user of a service.
    service: Option<u32>,
    /// Users that are never accepted, such as the workers' user: a process that has escaped from its jail must not reach an
    /// API.
    refused_uids: Vec<u32>,
    /// The group that may connect besides administrators (`socket_group`).
    group: Option<u32>,
    users: Arc<UserLookups>,
}

impl PeerPolicy {
    /// The policy of a supervisor with workers that run as `worker_uid`, and the group of its sockets.
    pub fn new(own_user: OwnUser, worker_uid: u32, group: Option<u32>) -> Self {
        let (administrator, service) = match own_user {
            OwnUser::Person(uid) => (Some(uid), None),
            OwnUser::Service(uid) => (None, Some(uid)),
        };
        let service_user = service.filter(|uid| *uid != 0);
        let refused = [Some(OVERFLOW_UID), Some(worker_uid), service_user].into_iter().flatten();
        let refused_uids = refused.filter(|uid| Some(*uid) != administrator).collect();
        Self { administrator, service, refused_uids, group, users: Arc::default() }
    }

    /// Whether a local user is an administrator: root, or the person who runs the supervisor.
    pub fn is_administrator(&self, uid: u32) -> bool {
        uid == 0 || Some(uid) == self.administrator
    }

    /// Whether a local user is never accepted.
    pub fn is_refused(&self, uid: u32) -> bool {
        self.refused_uids.contains(&uid)
    }

    /// Has the share of a local peer's connection before the peer is identified: an administrator is known without a lookup, and a user
    /// who was found before has a share apart from all that were not.
    pub fn holder(&self, uid: Option<u32>) -> Holder {
        match uid {
            Some(uid) if self.is_administrator(uid) && !self.is_refused(uid) => {
                Holder::Administrator(Owner::of_uid(uid))
            }
            Some(uid) if self.users.is_known(uid) => Holder::Owner(Owner::of_uid(uid)),
            Some(uid) => Holder::Unidentified(Origin::User(uid)),
            None => Holder::UNKNOWN,
        }
    }

    /// The caller for a peer's effective uid, or the reason of a refusal. Looks the uid up in the user database, without blocking
    /// the runtime.
    pub async fn judge(
        &self,
        api: &'static str,
        uid: Option<u32>,
        transport: Transport,
    ) -> Result<Caller, String> {
        let uid = uid.ok_or("the kernel does not report your user")?;
        if self.is_refused(uid) {
            if Some(uid) == self.service {
                return Err(format!(
                    "uid {uid} may not use this socket: the service, its brokers and its commands run as this user; root \
                     administers it (`service` in the file of --config)"
                ));
            }
            return Err(format!("uid {uid} may not use this socket"));
        }
        let owner = Owner::of_uid(uid);
        let caller = Caller { owner, admin: self.is_administrator(uid), api };
        if caller.admin {
            return Ok(caller);
        }
        // Refused whatever the user database says, so the lookup is skipped.
        if transport == Transport::Loopback && self.group.is_none() {
            return Err(format!("uid {uid} needs a token here: no `socket_group` is configured"));
        }
        // A user with subordinate ids has 65 536 uids, each of which would be an owner with its own quotas.
        let user = self.users.find(uid).await?.ok_or_else(|| format!("uid {uid} has no passwd entry"))?;
        match (transport, self.group) {
            (Transport::Loopback, Some(group)) if !user.is_member(group) => {
                Err(format!("uid {uid} is not a member of `socket_group`"))
            }
            _ => Ok(caller),
        }
    }
}

/// Most concurrent lookups: a directory server that does not respond blocks at most this many threads.
const LOOKUPS: usize = 8;
/// How long a lookup is cached: a change in the user or group database takes effect within this time.
const LOOKUP_AGE: Duration = Duration::from_secs(10);
/// Number of cached lookups above which old ones are dropped.
const LOOKUPS_CACHED: usize = 4_096;

/// A lookup has a result within this time, or the client is refused.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(5);

/// The result of a lookup: `None` if the user database has no entry.
type UserLookup = Arc<OnceCell<Option<Identity>>>;

/// A uid, and what the user database has of it.
#[derive(Debug)]
struct CachedLookup {
    since: Instant,
    result: UserLookup,
    /// An earlier lookup has found an entry.
    known: bool,
}

/// Lookups in the user database (NSS), which may block: few at a time, and one for concurrent requests for the same uid.
/// A user who has been found before has turns apart from all uids that nobody knows: with subordinate ids one person has 65 536.
#[derive(Debug)]
struct UserLookups {
    turns: Arc<Shares>,
    results: Mutex<HashMap<u32, CachedLookup>>,
}

impl Default for UserLookups {
    fn default() -> Self {
        let limits = ShareLimits { most: LOOKUPS, per_owner: LOOKUPS, reserved: 0 };
        Self { turns: Shares::new("lookups of users", "lookups", limits), results: Mutex::default() }
    }
}

impl UserLookups {
    /// The user of a uid; an error if there is no result, which is not cached.
    async fn find(&self, uid: u32) -> Result<Option<Identity>, String> {
        let (result, holder) = self.cached(uid);
        let lookup = || async {
            let turn = self.turns.wait(&holder, 1).await;
            // The turn is the thread's, for as long as the user database takes.
            let found = tokio::task::spawn_blocking(move || {
                let found = Identity::of_user(uid);
                drop(turn);
                found
            });
            match found.await {
                Ok(Ok(found)) => Ok(found),
                Ok(Err(error)) => Err(format!("uid {uid} cannot be looked up: {error}; try again later")),
                Err(error) => Err(format!("uid {uid} cannot be looked up: {error}")),
            }
        };
        match timeout(LOOKUP_DEADLINE, result.get_or_try_init(lookup)).await {
            Ok(found) => found.cloned(),
            Err(_) => Err(format!("the user database does not respond for uid {uid}; try again later")),
        }
    }

    /// Whether a lookup has found this user.
    fn is_known(&self, uid: u32) -> bool {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.get(&uid).is_some_and(|lookup| lookup.known || matches!(lookup.result.get(), Some(Some(_))))
    }

    /// The lookup of a uid that is in progress or cached, or a new one, and who has the turn for it.
    fn cached(&self, uid: u32) -> (UserLookup, Holder) {
        let now = Instant::now();
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.len() >= LOOKUPS_CACHED {
            results.retain(|_, lookup| !lookup.result.initialized() || now - lookup.since < LOOKUP_AGE);
        }
        let new = || CachedLookup { since: now, result: Arc::default(), known: false };
        let lookup = results.entry(uid).or_insert_with(new);
        if let Some(found) = lookup.result.get() {
            lookup.known = found.is_some();
            if now - lookup.since >= LOOKUP_AGE {
                (lookup.since, lookup.result) = (now, Arc::default());
            }
        }
        let holder = if lookup.known { Holder::Owner(Owner::of_uid(uid)) } else { Holder::UNKNOWN };
        (Arc::clone(&lookup.result), holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user of every Linux system, and a uid without a user; neither is the supervisor's.
    const DAEMON: u32 = 1;
    const NO_ENTRY: u32 = 3_999_999_999;

    #[tokio::test]
    async fn root_and_the_person_who_runs_the_supervisor_are_administrators_and_others_are_not() {
        let policy = PeerPolicy::new(OwnUser::Person(990), 990, None);
        for (uid, admin) in [(0, true), (990, true), (DAEMON, false)] {
            let caller = Caller { owner: Owner::of_uid(uid), admin, api: "control" };
            assert_eq!(policy.judge("control", Some(uid), Transport::Unix).await, Ok(caller));
        }
    }

    #[tokio::test]
    async fn workers_and_unknown_peers_are_refused() {
        let policy = PeerPolicy::new(OwnUser::Service(0), 777, None);
        let refused = Err("uid 777 may not use this socket".to_owned());
        assert_eq!(policy.judge("control", Some(777), Transport::Unix).await, refused);
        for uid in [Some(OVERFLOW_UID), None, Some(NO_ENTRY)] {
            assert!(policy.judge("control", uid, Transport::Unix).await.is_err(), "{uid:?}");
        }
    }

    #[tokio::test]
    async fn the_user_of_a_service_is_refused_and_root_administers_it() {
        for service in [990, OVERFLOW_UID, DAEMON] {
            let policy = PeerPolicy::new(OwnUser::Service(service), service, Some(service));
            for transport in [Transport::Unix, Transport::Loopback] {
                let refused = policy.judge("control", Some(service), transport).await.expect_err("a service");
                assert!(refused.contains("may not use this socket: the service"), "{refused}");
                let root = policy.judge("control", Some(0), transport).await;
                assert!(root.is_ok_and(|caller| caller.admin), "{service}");
            }
            assert_eq!(policy.holder(Some(service)), Holder::Unidentified(Origin::User(service)));
        }
        // A service of root, with workers of another user.
        let policy = PeerPolicy::new(OwnUser::Service(0), 777, None);
        assert!(policy.judge("control", Some(0), Transport::Unix).await.is_ok_and(|caller| caller.admin));
    }

    #[tokio::test]
    async fn lookups_of_one_user_are_shared_and_concurrent_ones_are_bounded() {
        let lookups = UserLookups::default();
        let (first, second) = (lookups.cached(DAEMON).0, lookups.cached(DAEMON).0);
        assert!(Arc::ptr_eq(&first, &second));
        assert!(lookups.find(DAEMON).await.expect("NSS works").is_some());
        assert!(first.initialized(), "the shared lookup is done");
        // A user that is known has turns apart from uids that are not.
        assert_eq!(lookups.cached(DAEMON).1, Holder::Owner(Owner::new("uid:1")));
        assert_eq!(lookups.cached(NO_ENTRY).1, Holder::UNKNOWN);
        assert_eq!((lookups.is_known(DAEMON), lookups.is_known(NO_ENTRY)), (true, false));
        // All turns are taken: a new lookup waits, a cached one does not.
        let other = Holder::Administrator(Owner::new("other"));
        let held: Vec<_> = (0..LOOKUPS).map(|_| lookups.turns.take(&other).expect("a turn")).collect();
        let mut waits = Box::pin(lookups.find(NO_ENTRY));
        assert!(is_pending_at_once(waits.as_mut()).await, "no turn is free");
        assert!(lookups.find(DAEMON).await.expect("cached").is_some());
        drop(held);
        assert_eq!(waits.await, Ok(None));
    }

    /// Whether a future is not ready at once.
    async fn is_pending_at_once<F: Future + Unpin>(mut future: F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut future).poll(context).is_pending())
        })
        .await
    }

    #[tokio::test]
    async fn over_tcp_only_administrators_and_members_of_the_group_are_accepted() {
        let user = Identity::of_user(DAEMON).expect("NSS works").expect("a system user");
        let (member, outsider) = (user.ids.gid, 3_999_999_999);
        for (group, accepted) in [(Some(member), true), (Some(outsider), false), (None, false)] {
            let policy = PeerPolicy::new(OwnUser::Person(990), 777, group);
            assert_eq!(
                policy.judge("control", Some(DAEMON), Transport::Loopback).await.is_ok(),
                accepted,
                "{group:?}"
            );
            assert!(policy.judge("control", Some(990), Transport::Loopback).await.is_ok());
            assert!(policy.judge("control", Some(DAEMON), Transport::Unix).await.is_ok());
        }
    }
}
