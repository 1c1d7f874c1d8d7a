//! Files agents as the supervisor uses them, with real processes: an honest one has exactly its user's rights, and one that exits,
//! stops or breaks the protocol costs its user's callers an error and nobody else anything. A separate test process, because it
//! counts its children and descriptors.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vm_system_record::RecordedWorktree;
use vm_system_runtime::files_agents::{FilesAgentConfig, FilesAgents};
use vm_system_runtime::worktree::{RootSettings, Roots, Worktree, WorktreeClient, WorktreeError};
use vm_system_sandbox::inspect;
use vm_system_spawn::files_agent::AgentStarter;
use vm_system_spawn::helper::{AgentRules, HelperProblem, SpawnHelper};
use vm_system_tests::other_user::OtherUser;
use vm_system_tests::place::User;
use vm_system_tests::{observe, program, skip, watch};

/// Users of every Linux, with passwd entries.
const ALICE: u32 = 1;
const BOB: u32 = 2;

const CAP: u64 = 100_000;
const PATIENT: Duration = Duration::from_secs(20);

const RULES: AgentRules = AgentRules {
    min_uid: 1,
    max_uid: u32::MAX,
    root_files: false,
    group: None,
    service_uid: u32::MAX,
    tokens: None,
    makes_namespaces: None,
};

/// Descriptors and children are those of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct World {
    _alone: MutexGuard<'static, ()>,
    folder: tempfile::TempDir,
    agents: FilesAgents,
    roots: Roots,
}

impl World {
    /// `None` where this machine cannot make processes of other users.
    fn new(program: &str, config: &FilesAgentConfig) -> Option<Self> {
        if !User::can_be_switched() {
            skip("root", "only root starts files agents of users");
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("chmod");
        let program = program::path(program, User::AsStarted);
        let rules = AgentRules { root_files: true, ..RULES };
        let helper = SpawnHelper::start(&program, &rules).expect("a helper");
        let agents = FilesAgents::new(AgentStarter::Helper(helper), config.clone());
        let settings = RootSettings { path: folder.path().to_owned(), ..RootSettings::default() };
        let roots = Roots::new(&[settings], Some(agents.clone())).expect("a root");
        Some(Self { _alone: alone, folder, agents, roots })
    }

    fn helper(&self) -> &SpawnHelper {
        self.agents.starter().helper().expect("agents of a helper")
    }

    /// A helper with other rules.
    fn use_rules(&mut self, rules: &AgentRules) {
        let program = program::path(program::PRODUCT, User::AsStarted);
        let helper = SpawnHelper::start(&program, rules).expect("a helper");
        self.agents = FilesAgents::new(AgentStarter::Helper(helper), FilesAgentConfig::default());
        let settings = RootSettings { path: self.folder.path().to_owned(), ..RootSettings::default() };
        self.roots = Roots::new(&[settings], Some(self.agents.clone())).expect("a root");
    }

    /// A folder of a user.
    fn folder(&self, name: &str, uid: u32, mode: u32) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("chmod");
        chown(&path, Some(uid), Some(uid)).expect("root may");
        path
    }

    async fn open(&self, path: &Path, client: WorktreeClient) -> Result<Worktree, WorktreeError> {
        let (path, roots) = (path.to_owned(), self.roots.clone());
        blocking(move || Worktree::open(&path, &roots, &client)).await
    }

    async fn read(&self, worktree: &Worktree, name: &'static str) -> Result<String, WorktreeError> {
        self.read_capped(worktree, name, CAP).await
    }

    async fn read_capped(
        &self,
        worktree: &Worktree,
        name: &'static str,
        cap: u64,
    ) -> Result<String, WorktreeError> {
        let worktree = worktree.clone();
        blocking(move || worktree.read_text(name, cap)).await
    }

    async fn end(self) {
        self.agents.shutdown(PATIENT).await;
        assert_eq!(self.agents.live(), 0);
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("no panic")
}

fn file(folder: &Path, name: &str, (uid, gid): (u32, u32), mode: u32) {
    let path = folder.join(name);
    std::fs::write(&path, name).expect("a file");
    chown(&path, Some(uid), Some(gid)).expect("root may");
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("chmod");
}

fn not_permitted(result: &Result<Worktree, WorktreeError>) -> bool {
    matches!(result, Err(WorktreeError::NotPermitted(_) | WorktreeError::UserNotPermitted(_)))
}

#[tokio::test]
async fn an_agent_has_exactly_the_rights_of_its_user() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let (user, other) = (WorktreeClient::User(ALICE), WorktreeClient::User(BOB));
    let open = world.folder("open", BOB, 0o755);
    let gid = nix::unistd::User::from_uid(ALICE.into()).expect("NSS").expect("a user").gid.as_raw();
    file(&open, "of-all", (BOB, BOB), 0o644);
    file(&open, "of-bob", (BOB, BOB), 0o600);
    file(&open, "of-alice", (ALICE, ALICE), 0o600);
    file(&open, "not-of-her-group", (BOB, gid), 0o604);
    std::fs::write(open.join("large"), vec![b'x'; 1 + CAP as usize]).expect("a file");
    std::fs::write(open.join("pieces"), vec![b'x'; CAP as usize]).expect("a file");
    // A folder that belongs to another user, and that her rights reach.
    let worktree = world.open(&open, user.clone()).await.expect("her rights suffice");
    for name in ["of-all", "of-alice"] {
        assert_eq!(world.read(&worktree, name).await.as_deref(), Ok(name));
    }
    for name in ["of-bob", "not-of-her-group"] {
        let read = world.read(&worktree, name).await;
        assert!(matches!(read, Err(WorktreeError::Unreadable(_))), "{name}: {read:?}");
    }
    assert!(matches!(world.read(&worktree, "none").await, Err(WorktreeError::NotFound(_))));
    let too_large = WorktreeError::TooLarge { path: "large".to_owned(), size: CAP + 1, cap: CAP };
    assert_eq!(world.read(&worktree, "large").await, Err(too_large));
    assert_eq!(world.read(&worktree, "pieces").await.expect("several pieces").len(), CAP as usize);
    // Folders that she may not search, and ways around the walk.
    let private = world.folder("private", BOB, 0o700);
    let below = world.folder("private/below", ALICE, 0o755);
    std::os::unix::fs::symlink(&private, world.folder.path().join("link")).expect("a link");
    let magic = PathBuf::from("/proc/self/root").join(private.strip_prefix("/").expect("absolute"));
    let dots = open.join("../private");
    for path in [&private, &below, &world.folder.path().join("link"), &magic, &dots, Path::new("/etc")] {
        let opened = world.open(path, user.clone()).await;
        assert!(not_permitted(&opened), "{path:?}: {opened:?}");
    }
    assert!(world.open(&private, other.clone()).await.is_ok(), "its owner's");
    // Root is a user like others, without capabilities; an administrator acts as another user.
    let root = world.open(&private, WorktreeClient::Administrator).await;
    assert!(not_permitted(&root), "{root:?}");
    let of_bob = WorktreeClient::AdministratorAs(BOB.to_string());
    assert!(world.open(&private, of_bob).await.is_ok());
    let token = |uid| WorktreeClient::Token { name: "ci".to_owned(), uid };
    assert!(world.open(&private, token(Some(BOB))).await.is_ok());
    assert!(not_permitted(&world.open(&private, token(Some(ALICE))).await));
    assert!(not_permitted(&world.open(&open, token(None)).await), "no root lists it");
    let nobody = world.open(&open, WorktreeClient::User(3_999_999_999)).await.expect_err("no passwd entry");
    assert!(
        matches!(&nobody, WorktreeError::OwnerGone(why) if why.contains("3999999999 has no passwd entry"))
    );
    assert_eq!(world.agents.live(), 3, "one for each user");
    world.end().await;
}

#[tokio::test]
async fn a_recorded_worktree_is_opened_by_the_rule_of_its_creation() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let path = world.folder("hers", ALICE, 0o700);
    file(&path, "file", (ALICE, ALICE), 0o600);
    let user = |uid| nix::unistd::User::from_uid(uid).expect("NSS").expect("a user").name;
    let first = world.open(&path, WorktreeClient::AdministratorAs(ALICE.to_string())).await.expect("hers");
    let recorded = RecordedWorktree::clone(first.recorded().expect("not the operator's"));
    let expected = RecordedWorktree {
        uid: ALICE,
        user: Some(user(ALICE.into())),
        root: world.folder.path().to_string_lossy().into_owned(),
        beneath: "hers".to_owned(),
        handle: recorded.handle.clone(),
    };
    assert_eq!(recorded, expected);
    let again = async |recorded: &RecordedWorktree, client: WorktreeClient| {
        let (recorded, roots) = (recorded.clone(), world.roots.clone());
        blocking(move || Worktree::open_recorded(&recorded, &roots, &client)).await
    };
    let token = |uid| WorktreeClient::Token { name: "ci".to_owned(), uid };
    let administrator = || WorktreeClient::Administrator;
    for client in [administrator(), WorktreeClient::User(ALICE), token(Some(ALICE))] {
        let worktree = again(&recorded, client.clone()).await.expect("the same rights");
        assert_eq!(world.read(&worktree, "file").await.as_deref(), Ok("file"), "{client:?}");
        assert_eq!(worktree.recorded(), first.recorded());
        assert_eq!(worktree.permits(&world.roots, &client), Ok(()));
    }
    // An owner that has lost the user's rights: a former administrator, a token with another uid or without one, a revoked token.
    for client in [WorktreeClient::User(BOB), token(Some(BOB)), token(None), WorktreeClient::Revoked] {
        let refused = again(&recorded, client.clone()).await;
        assert!(not_permitted(&refused), "{client:?}: {refused:?}");
        // The same holds for a session that is live.
        let refused = first.permits(&world.roots, &client);
        assert!(
            matches!(refused, Err(WorktreeError::NotPermitted(_) | WorktreeError::UserNotPermitted(_))),
            "{client:?}: {refused:?}"
        );
    }
    // Another person has the uid, or nobody has it.
    let other_name = RecordedWorktree { user: Some("former".to_owned()), ..recorded.clone() };
    let nobody = RecordedWorktree { uid: 3_999_999_999, ..recorded.clone() };
    let now = user(ALICE.into());
    for (gone, why) in [
        (&other_name, format!("uid {ALICE} was the user former and is the user {now} now")),
        (&nobody, format!("uid 3999999999 ({now}) has no passwd entry any more")),
    ] {
        let error = again(gone, administrator()).await.expect_err("not the user of the record");
        assert!(matches!(&error, WorktreeError::OwnerGone(text) if text.contains(&why)), "{error}");
    }
    // Without the root, whatever other roots there are.
    let removed = RecordedWorktree { root: "/".to_owned(), ..recorded.clone() };
    let error = again(&removed, administrator()).await.expect_err("no such root");
    assert!(
        matches!(&error, WorktreeError::RootRemoved(text) if text.contains("beneath the root /,")),
        "{error}"
    );
    // Another folder at the same place: used if the recorded user may.
    std::fs::rename(&path, world.folder.path().join("moved")).expect("renamed");
    world.folder("hers", BOB, 0o700);
    assert!(not_permitted(&again(&recorded, administrator()).await), "its owner has no meaning");
    chown(&path, Some(ALICE), Some(ALICE)).expect("root may");
    let replaced = again(&recorded, administrator()).await.expect("hers again");
    if recorded.handle.is_some() {
        assert_ne!(replaced.recorded().expect("recorded").handle, recorded.handle);
    } else {
        skip("file handles", "this file system has none");
    }
    world.end().await;
}

#[tokio::test]
async fn agent_that_its_user_kills_is_replaced_and_worktrees_stay_usable() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let [hers, his] = [("alice", ALICE), ("bob", BOB)].map(|(name, uid)| {
        let folder = world.folder(name, uid, 0o700);
        file(&folder, "file", (uid, uid), 0o600);
        folder
    });
    let worktree = world.open(&hers, WorktreeClient::User(ALICE)).await.expect("hers");
    let other = world.open(&his, WorktreeClient::User(BOB)).await.expect("his");
    for round in 0..3 {
        let agents = observe::descendants(std::process::id());
        let mut agents = agents.iter().filter_map(|agent| agent.pid().ok());
        let of_alice = agents.find(|pid| inspect::status(*pid).is_ok_and(|status| status.uid == ALICE));
        let pid = of_alice.expect("her agent").to_string();
        // Stopped with a call in progress, then killed: by the user, who may signal its own process.
        let signal = |name: &str| {
            let alice = OtherUser { uid: ALICE, gid: ALICE };
            let done = alice.command(Path::new("/bin/kill")).args([name, &pid]).status().expect("kill");
            assert!(done.success(), "{name}");
        };
        signal("-STOP");
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("not reaped");
        watch::until_async(|| stat().contains(") T "), "the agent is not stopped").await;
        let reading = world.read(&worktree, "file");
        tokio::pin!(reading);
        let pending = tokio::time::timeout(Duration::from_millis(50), &mut reading).await;
        assert!(pending.is_err(), "the agent is stopped");
        assert_eq!(world.read(&other, "file").await.as_deref(), Ok("file"), "others do not wait");
        signal("-KILL");
        let error = reading.await.expect_err("the agent has exited");
        assert!(matches!(&error, WorktreeError::Unavailable(why) if why.contains("it exited")), "{error}");
        assert_eq!(world.read(&worktree, "file").await.as_deref(), Ok("file"), "round {round}");
    }
    world.end().await;
}

#[tokio::test]
async fn every_violation_ends_the_agent_and_only_its_user_gets_an_error() {
    let short = FilesAgentConfig {
        late: Duration::from_millis(20),
        ping_deadline: Duration::from_millis(100),
        ..FilesAgentConfig::default()
    };
    let Some(world) = World::new(program::HOSTILE_FILES_AGENT, &short) else { return };
    let other =
        world.open(&world.folder.path().join("honest"), WorktreeClient::User(BOB)).await.expect("honest");
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
    let mut before = None;
    let behaviours = [
        ("exits", "it exited"),
        ("replies to no call", "a reply to no call"),
        ("replies with another kind", "a reply of another kind"),
        ("greets twice", "a second greeting"),
        ("sends garbage", "undecodable"),
        ("sends half a message", "undecodable"),
        ("sends too much", "too long or has descriptors"),
        ("sends a descriptor", ""),
        ("sends a process", ""),
        ("ends an unknown process", "the end of an unknown process"),
        ("starts an unknown process", "a reply to no call"),
        ("never replies", "it does not respond"),
        ("sends empty pieces", "content above the cap"),
        ("sends more than the cap", "content above the cap"),
        ("sends a larger file", "a reply of another kind"),
    ];
    for (index, (behaviour, reason)) in behaviours.into_iter().enumerate() {
        // No user fails more often than agents are restarted.
        let group = index / 4;
        let client = WorktreeClient::User(3 + group as u32);
        let failed = match world.open(&world.folder.path().join(behaviour), client.clone()).await {
            Ok(worktree) => world.read_capped(&worktree, "file", 1_000).await.map(drop),
            Err(error) => Err(error),
        };
        let error = failed.expect_err(behaviour);
        let why = error.to_string();
        assert!(matches!(error, WorktreeError::Unavailable(_)) && why.contains(reason), "{behaviour}: {why}");
        watch::until_async(|| world.agents.live() == 1 + group, behaviour).await;
        assert_eq!(world.read(&other, "file").await.as_deref(), Ok("fake"), "{behaviour}");
        if index % 4 == 0 {
            before = None;
        }
        let now = descriptors();
        assert_eq!(now, *before.get_or_insert(now), "{behaviour}");
        let honest = world.open(&world.folder.path().join("honest"), client).await.expect(behaviour);
        assert_eq!(world.read(&honest, "file").await.as_deref(), Ok("fake"), "after {behaviour}");
    }
    world.end().await;
}

#[tokio::test]
async fn agent_that_fails_again_and_again_is_not_started_for_ever_and_an_idle_one_ends() {
    let idle = FilesAgentConfig { idle: Duration::from_millis(50), ..FilesAgentConfig::default() };
    let Some(world) = World::new(program::HOSTILE_FILES_AGENT, &idle) else { return };
    let open =
        async |name: &str, uid| world.open(&world.folder.path().join(name), WorktreeClient::User(uid)).await;
    for _ in 0..5 {
        assert!(open("exits", ALICE).await.is_err());
    }
    let error = open("honest", ALICE).await.expect_err("too often").to_string();
    assert!(error.contains("failed 5 times within a minute"), "{error}");
    for _ in 0..3 {
        drop(open("honest", BOB).await.expect("an idle end is no failure"));
        watch::until_async(|| world.agents.live() == 0, "an idle agent runs").await;
    }
    world.end().await;
}

/// The children of the helper without its standby, which is a fork of it.
fn agents_of(helper: u32) -> Vec<vm_system_sandbox::pidfd::PidFd> {
    let is_standby = |process: &vm_system_sandbox::pidfd::PidFd| {
        process.pid().is_ok_and(|pid| command_line(pid) == command_line(helper))
    };
    observe::descendants(helper).into_iter().filter(|process| !is_standby(process)).collect()
}

/// The standby of the helper.
fn standby_of(helper: u32) -> Option<vm_system_sandbox::pidfd::PidFd> {
    let is_standby = |process: &vm_system_sandbox::pidfd::PidFd| {
        process.pid().is_ok_and(|pid| command_line(pid) == command_line(helper))
    };
    observe::descendants(helper).into_iter().find(is_standby)
}

fn open_process(pid: u32) -> vm_system_sandbox::pidfd::PidFd {
    vm_system_sandbox::pidfd::PidFd::open(pid).expect("it runs")
}

fn command_line(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

#[tokio::test]
async fn the_helper_keeps_three_capabilities_and_starts_agents_of_allowed_users_alone() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let status = inspect::status(world.helper().pid()).expect("it runs");
    // KILL, SETGID, SETUID.
    assert_eq!((status.uid, status.capabilities, status.bounding), (0, 0xe0, 0xe0));
    assert_eq!((status.no_new_privs, status.seccomp), (true, 2));
    let folder = world.folder("open", ALICE, 0o755);
    for user in [WorktreeClient::User(ALICE), WorktreeClient::Administrator] {
        world.open(&folder, user.clone()).await.unwrap_or_else(|error| panic!("{user:?}: {error}"));
    }
    let agents = agents_of(world.helper().pid());
    let mut uids = Vec::new();
    for agent in &agents {
        let status = inspect::status(agent.pid().expect("not reaped")).expect("it runs");
        assert_eq!((status.capabilities, status.no_new_privs), (0, true));
        uids.push(status.uid);
    }
    uids.sort_unstable();
    assert_eq!(uids, [0, ALICE]);
    world.end().await;
    observe::all_end(&agents);

    let rules = [
        (AgentRules { min_uid: 2, ..RULES }, ALICE, "below `min_uid`"),
        (AgentRules { service_uid: ALICE, ..RULES }, ALICE, "below `min_uid`"),
        (RULES, 0, "does not use files as root"),
    ];
    for (rules, uid, why) in rules {
        let Some(mut world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
        world.use_rules(&rules);
        let folder = world.folder("open", ALICE, 0o755);
        for _ in 0..6 {
            // However often: a refusal is no failure of an agent.
            let refused = world.open(&folder, WorktreeClient::AdministratorAs(uid.to_string())).await;
            let error = refused.expect_err("not allowed");
            assert!(matches!(&error, WorktreeError::UserNotPermitted(text) if text.contains(why)), "{error}");
        }
        assert!(world.open(&folder, WorktreeClient::User(BOB)).await.is_ok(), "another user");
        world.end().await;
    }
    let gid = nix::unistd::User::from_uid(ALICE.into()).expect("NSS").expect("a user").gid.as_raw();
    let Some(mut world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    world.use_rules(&AgentRules { min_uid: 1000, group: Some(gid), ..RULES });
    let folder = world.folder("open", ALICE, 0o755);
    assert!(world.open(&folder, WorktreeClient::User(ALICE)).await.is_ok(), "a member of the group");
    assert!(not_permitted(&world.open(&folder, WorktreeClient::User(BOB)).await), "no member");
    world.end().await;
}

#[tokio::test]
async fn a_helper_that_does_not_respond_is_named_until_it_responds_again() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let folder = world.folder("open", ALICE, 0o755);
    world.open(&folder, WorktreeClient::User(ALICE)).await.expect("hers");
    let helper = world.helper().clone();
    let process = vm_system_sandbox::pidfd::PidFd::open(helper.pid()).expect("it runs");
    process.signal(nix::libc::SIGSTOP).expect("root may");
    let refused = world.open(&folder, WorktreeClient::User(BOB)).await.expect_err("no agent is started");
    let why = refused.to_string();
    assert!(matches!(refused, WorktreeError::Unavailable(_)), "{why}");
    assert!(why.contains("spawn helper") && why.contains("did not respond within"), "{why}");
    assert_eq!(helper.problem(), Some(HelperProblem::Silent));
    // Users with an agent do not notice.
    world.open(&folder, WorktreeClient::User(ALICE)).await.expect("hers");
    // The helper's standby continues it.
    watch::until_async(|| helper.problem().is_none(), "late replies are noticed").await;
    world.open(&folder, WorktreeClient::User(BOB)).await.expect("an agent");
    world.end().await;
}

#[tokio::test]
async fn folders_of_other_mounts_are_used_with_the_users_rights_unless_a_root_forbids_it() {
    let Some(mut world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    // A mount of its own wherever it is, with files, unlike `/proc`.
    let mounted = Path::new("/dev/shm");
    world.roots = Roots::new(&[], Some(world.agents.clone())).expect("the root of all");
    world.open(mounted, WorktreeClient::User(ALICE)).await.expect("every user may");
    let private = world.folder("private", BOB, 0o700);
    assert!(not_permitted(&world.open(&private, WorktreeClient::User(ALICE)).await), "not with her rights");
    let settings = RootSettings { path: PathBuf::from("/"), ..RootSettings::default() };
    world.roots = Roots::new(&[settings], Some(world.agents.clone())).expect("a root");
    let refused = world.open(mounted, WorktreeClient::User(ALICE)).await.expect_err("another mount");
    assert!(
        matches!(&refused, WorktreeError::NotPermitted(why) if why.contains("`cross_mounts`")),
        "{refused}"
    );
    world.end().await;
}

#[tokio::test]
async fn helper_that_is_killed_is_replaced_by_its_standby_again_and_again() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let folder = world.folder("open", ALICE, 0o755);
    let helper = world.helper().clone();
    let rights = |pid| {
        inspect::status(pid)
            .map(|status| (status.capabilities, status.bounding, status.uid))
            .expect("it runs")
    };
    let first = rights(helper.pid());
    world.open(&folder, WorktreeClient::User(ALICE)).await.expect("an agent");
    for _ in 0..3 {
        let before = helper.pid();
        watch::wait_until(|| standby_of(before).is_some(), || "the helper has no standby".to_owned());
        let agents = agents_of(before);
        vm_system_sandbox::pidfd::PidFd::open(before).expect("it runs").kill().expect("root may");
        observe::all_end(&agents);
        watch::until_async(|| helper.pid() != before, "the next helper is noticed").await;
        // The ends of its agents are noticed one by one.
        let mut watch = watch::Watch::begin();
        while let Err(error) = world.open(&folder, WorktreeClient::User(ALICE)).await {
            assert!(!error.to_string().contains("restart the daemon"), "{error}");
            watch.pause_async(|| error.to_string()).await;
        }
        world.open(&folder, WorktreeClient::User(BOB)).await.expect("an agent of the next helper");
        assert_eq!(helper.problem(), None);
        assert_eq!(rights(helper.pid()), first);
    }
    // A standby that is killed is replaced, too.
    let standby = standby_of(helper.pid()).expect("a standby");
    standby.kill().expect("root may");
    observe::all_end(&[standby]);
    watch::wait_until(|| standby_of(helper.pid()).is_some(), || "the helper has no standby".to_owned());
    let left = [standby_of(helper.pid()).expect("seen a moment ago"), open_process(helper.pid())];
    world.end().await;
    // The last one: both end with it.
    drop(helper);
    blocking(move || observe::all_end(&left)).await;
}

#[tokio::test]
async fn agents_end_with_their_helper_also_when_they_are_stopped_and_no_other_is_started() {
    let Some(world) = World::new(program::PRODUCT, &FilesAgentConfig::default()) else { return };
    let folder = world.folder("open", ALICE, 0o755);
    file(&folder, "file", (ALICE, ALICE), 0o644);
    let worktree = world.open(&folder, WorktreeClient::User(ALICE)).await.expect("hers");
    world.open(&folder, WorktreeClient::User(BOB)).await.expect("open");
    let helper = world.helper().clone();
    let agents = agents_of(helper.pid());
    assert_eq!(agents.len(), 2);
    for agent in &agents {
        agent.signal(nix::libc::SIGSTOP).expect("root may");
    }
    watch::wait_until(|| standby_of(helper.pid()).is_some(), || "the helper has no standby".to_owned());
    let standby = standby_of(helper.pid()).expect("seen a moment ago");
    // Both at once: neither can replace the other.
    let process = vm_system_sandbox::pidfd::PidFd::open(helper.pid()).expect("it runs");
    process.signal(nix::libc::SIGSTOP).expect("root may");
    standby.kill().expect("root may");
    process.kill().expect("root may");
    observe::all_end(&agents);
    let error = world.read(&worktree, "file").await.expect_err("no agent");
    // The end of the agent or of the helper is noticed first.
    assert!(matches!(&error, WorktreeError::Unavailable(_) | WorktreeError::HelperExited(_)), "{error}");
    watch::until_async(|| helper.problem() == Some(HelperProblem::Exited), "the exit is noticed").await;
    let error = world.open(&folder, WorktreeClient::User(3)).await.expect_err("no helper");
    assert!(error.to_string().contains("the spawn helper has exited; restart the daemon"), "{error}");
    world.end().await;
}
