//! The groups of owners in a cgroup subtree that the daemon was given: which process is in which, what becomes of them, and, where the
//! machine has the controllers, their limits.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vm_system_protocol::control::{SessionInspect, SessionKill};
use vm_system_protocol::model::{CapabilityKind, Session};
use vm_system_sandbox::cgroup::Controllers;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::repl;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::other_user::{OtherUser, shared_daemon_with};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::rights::Bench;
use vm_system_tests::{as_both, observe, skip, watch};

as_both!(
    every_process_is_in_its_owners_group,
    a_command_has_a_group_that_ends_with_it,
    a_daemon_uses_what_a_killed_one_has_left,
    a_session_survives_its_daemon_in_its_owners_group,
);

/// One subtree at a time: all have the same name, by which the next one finds what a killed test has left.
static SUBTREE: Mutex<()> = Mutex::new(());

/// A cgroup for one daemon.
struct Subtree {
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

fn write_all(group: &Path, file: &str, values: &[&str]) {
    for value in values {
        // The tests that need a missing file notice it.
        let _ = fs::write(group.join(file), value);
    }
}

impl Subtree {
    /// One that belongs to this user; `None`, and the test is skipped, where none can be made.
    fn make(user: User) -> Option<Self> {
        let alone = SUBTREE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = Self::find().and_then(|home| {
            let path = home.join(format!("vm-system-test-{}", std::process::id()));
            let made = path.is_dir() || fs::create_dir(&path).is_ok();
            let made =
                made && (path.join("supervisor").is_dir() || fs::create_dir(path.join("supervisor")).is_ok());
            write_all(&home, "cgroup.subtree_control", &["+cpu", "+memory", "+pids"]);
            made.then(|| Self { path, _alone: alone })
        });
        let Some(made) = made else {
            skip("cgroup-v2", "no cgroup v2 group can be made here");
            return None;
        };
        for group in ["", "supervisor"] {
            for file in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
                let file = made.path.join(group).join(file);
                chown(file, Some(user.uid()), Some(user.uid())).expect("chown");
            }
        }
        Some(made)
    }

    /// The group of this process in the v2 hierarchy.
    fn find() -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let (mount, source) = line.split_once(" - ")?;
            source.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4).map(PathBuf::from)).flatten()
        })?;
        Some(mount.join(membership(std::process::id())?.trim_start_matches('/')))
    }

    /// Starts a daemon that was placed in the subtree, as a service manager does it.
    fn start(&self, user: User) -> Bench {
        let arguments = vec!["--allow-exec".to_owned(), "sh=/bin/sh".to_owned()];
        let options = DaemonOptions { config: self.config(), arguments, ..self.placed() };
        Bench::with_modules(user, &["fs", "exec"], &options)
    }

    /// The configuration that names the subtree.
    fn config(&self) -> String {
        format!("[cgroups]\nsubtree = \"{}\"\n", self.path.display())
    }

    /// The options of a daemon that is started in the subtree.
    fn placed(&self) -> DaemonOptions {
        DaemonOptions { group: Some(self.path.join("supervisor")), ..DaemonOptions::default() }
    }

    /// The group of a process, relative to the subtree.
    fn group_of(&self, pid: u32) -> String {
        let group = membership(pid).unwrap_or_default();
        let name = self.path.file_name().expect("a name").to_string_lossy().into_owned();
        match group.split_once(&format!("{name}/")) {
            Some((_, group)) => group.to_owned(),
            None => format!("outside: {group}"),
        }
    }

    /// Names of groups directly beneath a group.
    fn groups(&self, group: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path.join(group)) else { return Vec::new() };
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn members(&self, group: &str) -> Vec<u32> {
        let pids = fs::read_to_string(self.path.join(group).join("cgroup.procs")).unwrap_or_default();
        pids.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Whether this machine has all controllers; otherwise the test is skipped.
    fn has_controllers(&self) -> bool {
        let names = fs::read_to_string(self.path.join("cgroup.controllers")).unwrap_or_default();
        let has = |name| names.split_whitespace().any(|there| there == name);
        let all = Controllers { cpu: has("cpu"), memory: has("memory"), pids: has("pids") }.are_complete();
        if !all {
            skip("cgroup-controllers", "cgroup v2 has not all controllers here");
        }
        all
    }
}

/// Removes a group and those beneath, once they are empty.
fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    watch::wait_until(
        || fs::remove_dir(group).is_ok() || !group.exists(),
        || format!("{} is not empty", group.display()),
    );
}

impl Drop for Subtree {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        remove(&self.path);
    }
}

/// The v2 group of a process, as `/proc` names it.
fn membership(pid: u32) -> Option<String> {
    let memberships = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    memberships.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

fn pid_of(bench: &mut Bench, session: &Session) -> u32 {
    bench.client.inspect(session).expect("a worker").pid
}

mod cases {
    use super::*;

    /// The client's group: the test is the client, whatever user the daemon is.
    fn owner() -> String {
        format!("owner-uid:{}", User::AsStarted.uid())
    }

    pub(super) fn every_process_is_in_its_owners_group(user: User) {
        let Some(subtree) = Subtree::make(user) else { return };
        let mut bench = subtree.start(user);
        let processes = format!("{}/processes", owner());
        assert_eq!(subtree.group_of(bench.daemon.pid()), "supervisor");
        let info = bench.daemon.info();
        assert_eq!(subtree.group_of(info.keeper_pid.expect("a keeper")), "zygotes");
        for zygote in info.zygotes {
            assert_eq!(subtree.group_of(zygote.pid), "zygotes");
        }
        // The first worker is forked for the session, later ones were prestarted; a fork inherits its group.
        let sessions: Vec<Session> = (0..3).map(|_| bench.session()).collect();
        for session in &sessions {
            assert_eq!(bench.eval(session, "6 * 7"), "42");
            let pid = pid_of(&mut bench, session);
            assert_eq!(subtree.group_of(pid), processes);
        }
        let forked = bench.client.fork(&sessions[0], 1).expect("a fork").remove(0);
        let pid = pid_of(&mut bench, &forked);
        assert_eq!(subtree.group_of(pid), processes);

        bench.daemon.place.write("a.txt", "text");
        assert_eq!(bench.eval(&sessions[0], "require('fs').readFileSync('a.txt', 'utf8')"), "'text'");
        for broker in observe::brokers(bench.daemon.pid()) {
            assert_eq!(subtree.group_of(broker.pid().expect("it runs")), processes);
        }
        let members = subtree.members(&processes);
        assert!(members.len() >= 5, "four workers and a broker: {members:?}");

        let report = bench.daemon.cli(&["ops", "doctor"]).ok();
        let row = report.lines().find(|line| line.contains("cgroups of owners")).expect("a row").to_owned();
        assert!(row.contains(&subtree.path.display().to_string()), "{row}");
        bench.end();
        assert_eq!(subtree.members(&processes), [0_u32; 0], "no process is left");
    }

    pub(super) fn a_command_has_a_group_that_ends_with_it(user: User) {
        let Some(subtree) = Subtree::make(user) else { return };
        let mut bench = subtree.start(user);
        bench.use_files_unprivileged();
        bench.row(CapabilityKind::Module, "exec", r#"{"commands":["sh"],"timeout_ms":50000}"#);
        let pipe = bench.daemon.place.worktree().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o644)).expect("a pipe");
        let Some(session) = bench.session_with_commands() else { return bench.end() };
        let owner = owner();
        let commands = || {
            let mut groups = subtree.groups(&owner);
            groups.retain(|name| name.starts_with("command-"));
            groups
        };
        watch::wait_until(|| commands().is_empty(), || "the group of the first command stays".to_owned());

        // Two processes: the shell and what it starts.
        let code = "require('exec').run('sh', ['-c', 'cat pipe | cat']).stdout";
        let request = bench.client.send(repl(&session, code, true));
        let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("the command reads");
        let groups = commands();
        assert_eq!(groups.len(), 1, "{groups:?}");
        let members = subtree.members(&format!("{owner}/{}", groups[0]));
        assert!(members.len() >= 3, "the starter, the shell and two programs: {members:?}");
        writer.write_all(b"done").expect("written");
        drop(writer);
        bench.client.response(request).1.expect("a response");
        watch::wait_until(|| commands().is_empty(), || "the group of the command stays".to_owned());

        // A session that is killed takes its command along.
        let request = bench.client.send(repl(&session, code, true));
        let writer = fs::OpenOptions::new().write(true).open(&pipe).expect("the command reads");
        let group = format!("{owner}/{}", commands().remove(0));
        let mut second = bench.daemon.client();
        second.op(SessionKill { session: session.id.to_string(), signal: 9 }).expect("killed");
        watch::wait_until(|| subtree.members(&group).is_empty(), || "the command continues".to_owned());
        drop(writer);
        let _ = bench.client.response(request);
        watch::wait_until(|| commands().is_empty(), || "the group of the command stays".to_owned());
        bench.end();
    }

    pub(super) fn a_session_survives_its_daemon_in_its_owners_group(user: User) {
        let Some(subtree) = Subtree::make(user) else { return };
        let mut bench = subtree.start(user);
        let session = bench.session();
        bench.eval(&session, "globalThis.kept = 41");
        let worker = bench.client.inspect(&session).expect("live").pid;
        drop(bench.client);
        let (place, _) = bench.daemon.kill();
        let options = DaemonOptions { config: subtree.config(), ..subtree.placed() };
        let daemon = Daemon::start_with(place, &options);
        let mut client = daemon.client();
        assert_eq!(client.preview_of(&session, "kept + 1"), "42");
        assert_eq!(subtree.group_of(worker), format!("{}/processes", owner()));
        client.close(&session);
        watch::wait_until(|| !subtree.groups("").contains(&owner()), || "the group stays".to_owned());
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_daemon_uses_what_a_killed_one_has_left(user: User) {
        let Some(subtree) = Subtree::make(user) else { return };
        let mut bench = subtree.start(user);
        let session = bench.session();
        let worker = pid_of(&mut bench, &session);

        // A second daemon cannot have the same one.
        let options = DaemonOptions { config: subtree.config(), ..DaemonOptions::default() };
        let refused = Daemon::try_start(TestDir::new(user), &options);
        let (_, log) = refused.expect_err("it is in use");
        assert!(log.contains("is used by another daemon"), "{log}");

        drop(bench.client);
        let place = bench.daemon.kill_everything();
        assert!(!observe::is_alive(worker));
        assert!(subtree.groups("").contains(&owner()), "nothing has removed it");
        drop(place);
        let mut bench = subtree.start(user);
        let groups = subtree.groups("");
        assert!(!groups.contains(&owner()), "removed at the start: {groups:?}");
        let session = bench.session();
        assert_eq!(bench.eval(&session, "1"), "1");
        bench.end();
    }
}

#[test]
fn a_cgroup_that_the_operator_names_is_used_or_the_daemon_does_not_start() {
    let refusal = |config: &str| {
        let options = DaemonOptions { config: config.to_owned(), ..DaemonOptions::default() };
        let refused = Daemon::try_start(TestDir::new(User::AsStarted), &options);
        refused.map(Daemon::stop).expect_err("refused").1
    };
    let log = refusal("[cgroups]\nsubtree = \"/tmp/vm-system-no-cgroup\"");
    assert!(log.contains("/tmp/vm-system-no-cgroup is not a folder of a cgroup v2 hierarchy"), "{log}");
    let log = refusal("[cgroups]\nsubtree = \"off\"\nowner_memory_mb = 64");
    assert!(log.contains("`owner_memory_mb` of [cgroups] needs the controller memory"), "{log}");
}

/// A daemon of root with two other users, each with a session, in a subtree with these limits.
fn two_owners(limits: &str) -> Option<(Subtree, Daemon, tempfile::TempDir)> {
    if !User::can_be_switched() {
        skip("root", "other users need root");
        return None;
    }
    let subtree = Subtree::make(User::AsStarted)?;
    if !subtree.has_controllers() {
        return None;
    }
    let config = subtree.config() + limits;
    let (daemon, worktrees) = shared_daemon_with(&config, &["--allow-exec", "sh=/bin/sh"], subtree.placed());
    Some((subtree, daemon, worktrees))
}

/// A session of this user from its own template, which may run commands.
fn session(daemon: &Daemon, worktrees: &tempfile::TempDir, user: OtherUser) -> String {
    let limits = ["--mem-mb", "512", "--wall-ms", "60000"];
    user.cli(
        daemon,
        &[&["template", "create", "--name", "theirs", "--module", "exec"], limits.as_slice()].concat(),
    )
    .ok();
    let row = ["template", "add-capability", "theirs", "--kind", "module", "--name", "exec", "--enabled"];
    let terms = ["--config", r#"{"commands":["sh"],"timeout_ms":50000,"processes":4096}"#];
    user.cli(daemon, &[row.as_slice(), &terms].concat()).ok();
    let folder = user.folder(worktrees.path().join(user.uid.to_string()));
    user.session(daemon, &folder).ok().trim().to_owned()
}

/// The output of a command of the shell, or the error's message.
fn shell(daemon: &Daemon, user: OtherUser, session: &str, script: &str) -> String {
    let code = format!(
        "try {{ require('exec').run('sh', ['-c', {script:?}]).stdout }} catch (error) {{ error.message }}"
    );
    user.cli(daemon, &["exec", "repl", session, &code]).ok()
}

#[test]
fn memory_of_an_owner_is_limited_and_others_are_not_affected() {
    let Some((subtree, daemon, worktrees)) = two_owners("owner_memory_mb = 128\nowner_processes = 77\n")
    else {
        return;
    };
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let (of_greedy, of_other) = (session(&daemon, &worktrees, greedy), session(&daemon, &worktrees, other));
    let group = format!("owner-uid:{}", greedy.uid);
    let value = |file: &str| fs::read_to_string(subtree.path.join(&group).join(file)).expect("ours");
    assert_eq!(value("memory.max").trim(), (128 << 20).to_string());
    assert_eq!(value("pids.max").trim(), "77");
    assert_eq!(value("cpu.weight").trim(), "100");

    let code = "const kept = []; for (;;) kept.push(new Uint8Array(1 << 20).fill(1))";
    let output = greedy.cli(&daemon, &["exec", "repl", &of_greedy, code]);
    let seen = format!("{output:?}");
    assert!(seen.contains("killed(out_of_memory)"), "{seen}");
    let output = other.cli(&daemon, &["exec", "repl", &of_other, "6 * 7"]).ok();
    assert!(output.contains("42"), "{output}");
    daemon.stop();
}

#[test]
fn with_a_keeper_per_owner_each_has_a_jail_in_its_group() {
    if !User::can_be_switched() {
        return skip("root", "other users need root");
    }
    let Some(subtree) = Subtree::make(User::AsStarted) else { return };
    let config = "keeper_per_owner = true\n".to_owned() + &subtree.config();
    let (daemon, worktrees) = shared_daemon_with(&config, &["--allow-exec", "sh=/bin/sh"], subtree.placed());
    let users = [OtherUser::named("bin"), OtherUser::named("sys")];
    let mut client = daemon.client();
    let mut jails = Vec::new();
    for user in users {
        let id = session(&daemon, &worktrees, user);
        assert!(user.cli(&daemon, &["exec", "repl", &id, "6 * 7"]).ok().contains("42"));
        let seen = client.op(SessionInspect { session: id.clone() }).expect("a worker");
        let group = format!("owner-uid:{}/processes", user.uid);
        assert_eq!(subtree.group_of(seen.pid), group);
        let keeper = vm_system_sandbox::inspect::status(seen.pid).expect("a worker").ppid;
        assert_eq!(subtree.group_of(keeper), group, "the keeper and all that it starts");
        assert_ne!(Some(keeper), daemon.info().keeper_pid);
        let namespace = |name: &str| seen.namespaces.iter().find(|line| line.starts_with(name)).cloned();
        jails.push((id, keeper, namespace("pid=").expect("its own"), namespace("user=").expect("its own")));
    }
    let [(_, first, first_pid, first_user), (other, second, second_pid, second_user)] = &jails[..] else {
        panic!("two sessions");
    };
    assert!(first != second && first_pid != second_pid && first_user != second_user);
    // The end of one jail is no matter of the other, and its owner gets another one.
    PidFd::open(*first).and_then(|keeper| keeper.kill()).expect("killed");
    watch::wait_until(|| !observe::is_alive(*first), || "the keeper lives".to_owned());
    assert!(users[1].cli(&daemon, &["exec", "repl", other, "6 * 7"]).ok().contains("42"));
    let folder = worktrees.path().join(users[0].uid.to_string());
    let mut again = String::new();
    watch::wait_until(
        || {
            let created = users[0].session(&daemon, &folder);
            again = created.stdout;
            created.code == Some(0)
        },
        || "the owner gets no other jail".to_owned(),
    );
    assert!(users[0].cli(&daemon, &["exec", "repl", again.trim(), "6 * 7"]).ok().contains("42"));
    daemon.stop();
    for user in users {
        assert_eq!(subtree.members(&format!("owner-uid:{}/processes", user.uid)), [0_u32; 0]);
    }
}

#[test]
fn a_delegated_subtree_is_used_without_a_setting() {
    if !User::can_be_switched() {
        return skip("root", "a subtree for another user needs root");
    }
    let row_of = |user: User| {
        let subtree = Subtree::make(user)?;
        if !subtree.has_controllers() {
            return None;
        }
        let mut bench = Bench::with_modules(user, &["fs"], &subtree.placed());
        let session = bench.session();
        let pid = pid_of(&mut bench, &session);
        let group = subtree.group_of(pid);
        let report = bench.daemon.cli(&["ops", "doctor"]).ok();
        bench.end();
        let row = report.lines().find(|line| line.contains("cgroups of owners")).expect("a row").to_owned();
        Some((group, row))
    };
    let Some((group, row)) = row_of(User::Unprivileged) else { return };
    assert!(group.starts_with("owner-uid:") && row.contains("cpu memory pids"), "{group}: {row}");
    // Root may change every group; that proves nothing.
    let (group, row) = row_of(User::AsStarted).expect("the same machine");
    assert!(group.starts_with("supervisor") && row.contains("not marked"), "{group}: {row}");
}

#[test]
fn a_command_with_too_much_memory_ends_as_a_whole() {
    let Some((subtree, daemon, worktrees)) = two_owners("command_memory_mb = 48\n") else { return };
    let user = OtherUser::named("bin");
    let session = session(&daemon, &worktrees, user);
    assert!(shell(&daemon, user, &session, "echo ok").contains("ok"));
    // `tail` keeps what it reads; the shell alone would go on after its end.
    let said = shell(
        &daemon,
        user,
        &session,
        "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; echo goes on",
    );
    assert!(said.contains("ENOMEM") && !said.contains("goes on"), "{said}");
    assert!(shell(&daemon, user, &session, "echo again").contains("again"));
    let group = format!("owner-uid:{}", user.uid);
    watch::wait_until(|| subtree.groups(&group) == ["processes"], || format!("{:?}", subtree.groups(&group)));
    daemon.stop();
}

#[test]
fn processes_of_an_owner_are_bounded_and_others_have_theirs() {
    let Some((subtree, daemon, worktrees)) = two_owners("owner_processes = 40\n") else { return };
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let (of_greedy, of_other) = (session(&daemon, &worktrees, greedy), session(&daemon, &worktrees, other));
    // A shell that cannot fork ends; its background processes are counted before.
    let script = "i=0; while [ $i -lt 100 ]; do sleep 40 & i=$((i+1)); echo $i; done; echo all";
    let said = shell(&daemon, greedy, &of_greedy, script);
    assert!(said.contains("10") && !said.contains("all") && !said.contains("40"), "{said}");
    let events = fs::read_to_string(subtree.path.join(format!("owner-uid:{}/pids.events", greedy.uid)));
    assert!(!events.expect("ours").contains("max 0"), "the limit was reached");
    assert!(shell(&daemon, other, &of_other, "echo fine").contains("fine"));
    daemon.stop();
}
