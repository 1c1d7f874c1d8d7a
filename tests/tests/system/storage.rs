//! A disk that reports errors or may not be written, under the real daemon: the caller gets an error, the record a mark,
//! and the daemon continues when the disk works again.

use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use vm_system_protocol::control::{
    ErrorCode, ExecList, ExecutionState, HealthGet, ListPage, OpError, SessionClose,
};
use vm_system_protocol::model::{ExecutionStatus, Session, SessionStatus, Settings};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::{Client, repl};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::skip;
use vm_system_tests::small_disk::SmallDisk;
use vm_system_tests::{as_both, watch};

as_both!(
    an_unwritable_state_directory_is_refused_by_name,
    a_start_on_a_full_disk_costs_no_session,
    a_start_without_an_inode_or_an_index_costs_no_session,
    a_start_on_a_full_disk_ends_sessions_when_there_is_space,
);

/// A process's processor time, in ticks of the kernel's clock (10 ms).
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process exists");
    // The name, the second field, is in parentheses and may contain spaces; the times are fields 14 and 15 (proc(5)).
    let after_the_name = stat.rsplit(')').next().expect("fields");
    after_the_name
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum()
}

/// Limits the size of files that a process writes (`None`: no limit): writes beyond `bytes` fail as on a broken disk.
fn limit_files(pid: u32, bytes: Option<u64>) -> bool {
    let soft = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let arguments = ["--pid", &pid.to_string(), &format!("--fsize={soft}:")];
    // As the daemon's user: a root without CAP_SYS_RESOURCE may not change another user's process.
    let mut prlimit = Command::new("setpriv");
    if User::can_be_switched() {
        let uid = UNPRIVILEGED_UID.to_string();
        prlimit.args(["--reuid", &uid, "--regid", &uid, "--clear-groups"]);
    }
    let limited = prlimit.arg("prlimit").args(arguments).status();
    limited.is_ok_and(|status| status.success())
}

/// Runs code with more output than the limited WAL can hold.
fn large(client: &mut Client, session: &Session) -> Result<ExecutionState, OpError> {
    client.op(repl(session, "for (let i = 0; i < 8; i++) console.log('x'.repeat(50_000))", true))
}

/// Makes files immutable until it is dropped, also for descriptors that are open: writes fail as on a disk that the kernel
/// has made read-only.
struct Frozen([PathBuf; 2]);

impl Frozen {
    fn change(&self, how: &str) -> bool {
        let changed = Command::new("chattr").arg(how).args(&self.0).output();
        changed.is_ok_and(|output| output.status.success())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.change("-i");
    }
}

#[test]
fn a_disk_that_turns_read_only_is_an_error_and_a_mark_and_heals() {
    let mut scene = Scene::with_settings(User::AsStarted, Settings::default());
    let session = scene.session();
    let [database, log] =
        ["state/vm-system.db", "state/vm-system.db-wal"].map(|name| scene.daemon.place.path(name));
    let frozen = Frozen([database, log]);
    if !frozen.change("+i") {
        drop(frozen);
        skip("chattr", "a disk that turns read-only needs chattr, and a file system and rights for it");
        return scene.end(&[&session]);
    }
    let mut messages = Vec::new();
    for _ in 0..2 {
        let error = scene.client.eval(&session, "1").expect_err("it cannot be stored");
        assert_eq!(error.code, ErrorCode::StorageUnavailable, "{error:?}");
        messages.push(error.message);
        // Executions that could not be stored are refused; reading continues.
        scene.client.session_record(&session);
    }
    drop(frozen);
    assert!(
        messages.iter().any(|text| text.contains("read-only") || text.contains("reports an error")),
        "{messages:?}"
    );
    heals(&mut scene, &session);
    scene.end(&[&session]);
}

#[test]
fn an_input_output_error_in_the_middle_is_an_error_and_a_mark_and_heals() {
    let mut scene = Scene::with_settings(User::AsStarted, Settings::default());
    let (session, closed) = (scene.session(), scene.session());
    let pid = scene.daemon.pid();
    if !limit_files(pid, None) {
        skip("prlimit", "an input/output error in the middle needs util-linux's prlimit");
        return scene.end(&[&session, &closed]);
    }
    // Writes fail at any position of the WAL.
    assert!(limit_files(pid, Some(1)));
    let error = large(&mut scene.client, &session).expect_err("it cannot be stored");
    assert_eq!(error.code, ErrorCode::StorageUnavailable, "{error:?}");
    // The error names the first lost write, not its consequences.
    assert!(error.message.contains("it ran, but"), "{error:?}");
    assert!(error.message.contains("the disk reports an error"), "{error:?}");
    let health = scene.client.op(HealthGet).expect_err("it cannot write");
    assert!(health.message.contains("the disk reports an error"), "{health:?}");
    let close = SessionClose { session: closed.id.to_string() };
    let error = scene.client.op(close).expect_err("its end cannot be stored");
    assert_eq!(error.code, ErrorCode::StorageUnavailable, "{error:?}");
    assert!(error.message.starts_with("the session is closed, but"), "{error:?}");
    // Reading continues, and sessions that could not be stored are refused.
    scene.client.session_record(&session);
    let (template, worktree) = (scene.template.clone(), scene.daemon.place.worktree());
    let refused = scene.client.session(&template, &worktree).expect_err("it cannot be stored");
    assert_eq!(refused.code, ErrorCode::StorageUnavailable, "{refused:?}");
    assert!(limit_files(pid, None));
    heals(&mut scene, &session);
    scene.client.wait_for(&closed, SessionStatus::Closed);
    scene.end(&[&session]);
}

/// The lost execution is marked with the first commit that succeeds, and the session continues.
fn heals(scene: &mut Scene, session: &Session) {
    let marked = || -> Vec<_> {
        let list = ExecList::all(session.id.to_string(), ListPage::first(50));
        let Ok(executions) = scene.daemon.client().op(list) else { return Vec::new() };
        executions.into_iter().filter(|execution| execution.degraded && execution.status.is_final()).collect()
    };
    watch::wait_until(|| !marked().is_empty(), || "the lost execution is not marked".to_owned());
    assert_eq!(marked()[0].status, ExecutionStatus::Ok);
    scene.assert_usable(session);
}

/// Work of every kind that a daemon logs, then its end, with a log that cannot be written.
fn works_without_a_log(log: PathBuf, reader: Option<std::fs::File>) {
    let options = DaemonOptions { log: Some(log), ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    drop(reader);
    let mut scene = Scene::on_daemon(daemon, Settings::default());
    let session = scene.session();
    let mut http = scene.daemon.http();
    assert_eq!(http.post("/api/v1/templates", &json!({"name": "by-rest"})).status, 201);
    assert_eq!(http.post("/api/v1/templates", &json!({"name": 1})).status, 400);
    let keeper = scene.daemon.info().keeper_pid.expect("a keeper");
    PidFd::open(keeper).expect("alive").kill().expect("SIGKILL");
    scene.crashed(&session, "keeper_lost");
    let worktree = scene.daemon.place.worktree();
    let mut watch = watch::Watch::begin();
    let next = loop {
        match scene.client.session(&scene.template, &worktree) {
            Ok(session) => break session,
            Err(error) => watch.pause(|| format!("{error:?}")),
        }
    };
    scene.assert_usable(&next);
    scene.daemon.stop();
}

#[test]
fn a_log_on_a_full_disk_costs_the_log_and_nothing_else() {
    works_without_a_log("/dev/full".into(), None);
}

#[test]
fn log_without_a_reader_costs_the_log_and_nothing_else() {
    let place = TestDir::new(User::AsStarted);
    let pipe = place.path("log");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    // Open for reading and writing, so that opening does not wait for a reader.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("both ends");
    works_without_a_log(pipe, Some(reader));
}

/// A daemon with its state on a small file system, and the sessions `kept`, which has a variable, and `lost`, whose worker will be gone.
fn on_a_small_disk(user: User) -> Option<(Daemon, SmallDisk, [Session; 2])> {
    let place = TestDir::new(user);
    let disk = SmallDisk::mount(&place.path("state"), 24)?;
    place.give(&place.path("state"));
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    let [kept, lost] =
        [0; 2].map(|_| client.session(&template, &daemon.place.worktree()).expect("the disk has space"));
    client.eval(&kept, "globalThis.kept = 41").expect("the disk has space");
    Some((daemon, disk, [kept, lost]))
}

/// The next daemon adopts the session, and can use it as soon as there is space.
fn goes_on(daemon: Daemon, disk: &SmallDisk, [kept, lost]: &[Session; 2]) {
    disk.free();
    let mut client = daemon.client();
    watch::wait_until(|| client.eval(kept, "0").is_ok(), || "the store cannot write".to_owned());
    assert_eq!(client.preview_of(kept, "kept + 1"), "42");
    let ended = client.wait_for(lost, SessionStatus::Crashed);
    assert_eq!(ended.close_reason.as_deref(), Some("signal(SIGKILL)"), "its keeper knows");
    drop(client);
    daemon.stop();
}

mod cases {
    use super::*;

    pub(super) fn a_start_on_a_full_disk_costs_no_session(user: User) {
        let Some((daemon, disk, sessions)) = on_a_small_disk(user) else { return };
        let [kept, lost] = &sessions;
        let mut client = daemon.client();
        disk.fill();
        // The log has space of its own.
        watch::wait_until(|| large(&mut client, kept).is_err(), || "the store still writes".to_owned());
        let worker = client.inspect(lost).expect("live").pid;
        drop(client);
        let (place, _) = daemon.kill();
        PidFd::open(worker).expect("its keeper waits").kill().expect("SIGKILL");
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        assert_eq!(client.session_record(kept).status, SessionStatus::Ready);
        let error = client.eval(kept, "1").expect_err("nothing can be stored");
        assert_eq!(error.code, ErrorCode::StorageUnavailable, "{error:?}");
        drop(client);
        goes_on(daemon, &disk, &sessions);
    }

    /// Nobody knows more than that their workers are gone.
    pub(super) fn a_start_on_a_full_disk_ends_sessions_when_there_is_space(user: User) {
        let Some((daemon, disk, sessions)) = on_a_small_disk(user) else { return };
        let mut client = daemon.client();
        disk.fill();
        watch::wait_until(
            || large(&mut client, &sessions[0]).is_err(),
            || "the store still writes".to_owned(),
        );
        drop(client);
        let daemon = Daemon::start_with(daemon.kill_everything(), &DaemonOptions::default());
        disk.free();
        let mut client = daemon.client();
        for session in &sessions {
            let ended = client.wait_for(session, SessionStatus::Crashed);
            assert_eq!(ended.close_reason.as_deref(), Some("host_restart"));
        }
        drop(client);
        daemon.stop();
    }

    /// SQLite makes the index of the log anew, and a keeper's address is a new file and a socket.
    pub(super) fn a_start_without_an_inode_or_an_index_costs_no_session(user: User) {
        let Some((daemon, disk, sessions)) = on_a_small_disk(user) else { return };
        let worker = daemon.client().inspect(&sessions[1]).expect("live").pid;
        let (place, _) = daemon.kill();
        PidFd::open(worker).expect("its keeper waits").kill().expect("SIGKILL");
        std::fs::remove_file(place.path("state/vm-system.db-shm")).expect("it was killed");
        disk.fill();
        disk.use_up_inodes();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        assert_eq!(daemon.client().session_record(&sessions[0]).status, SessionStatus::Ready);
        goes_on(daemon, &disk, &sessions);
    }

    pub(super) fn an_unwritable_state_directory_is_refused_by_name(user: User) {
        let place = Daemon::start(user).stop();
        let state = place.path("state");
        if user == User::AsStarted && nix::unistd::geteuid().is_root() {
            // Root may write everywhere: only a read-only mount refuses.
            let flags = nix::mount::MsFlags::MS_BIND;
            if nix::mount::mount(Some(&state), &state, None::<&str>, flags, None::<&str>).is_err() {
                skip("mount", "a read-only state directory needs the right to mount");
                return;
            }
            let flags = flags | nix::mount::MsFlags::MS_REMOUNT | nix::mount::MsFlags::MS_RDONLY;
            nix::mount::mount(None::<&str>, &state, None::<&str>, flags, None::<&str>).expect("remount");
            let (place, log) = refused(place);
            nix::mount::umount2(&place.path("state"), nix::mount::MntFlags::MNT_DETACH).expect("unmount");
            assert!(log.contains("state/lock") && log.contains("Read-only file system"), "{log}");
            return;
        }
        for (path, mode) in [("state/vm-system.db", 0o400), ("state/lock", 0o400)] {
            let path = place.path(path);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
        }
        let (place, log) = refused(place);
        assert!(log.contains("state/lock: permission denied"), "{log}");
        let lock = place.path("state/lock");
        std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o600)).expect("chmod");
        let (_place, log) = refused(place);
        assert!(log.contains("vm-system.db") && log.contains("Permission denied"), "{log}");
    }

    fn refused(place: TestDir) -> (TestDir, String) {
        match Daemon::try_start(place, &DaemonOptions::default()) {
            Ok(daemon) => panic!("it started on what it cannot write:\n{}", daemon.log()),
            Err(refused) => refused,
        }
    }
}

/// The worker had an acknowledgement of the output that the store refused, so that it could continue: the next daemon does not take
/// that for a violation.
#[test]
fn a_session_whose_output_was_lost_goes_on_after_a_crash() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("session");
    let code = "const until = Date.now() + 2500; let printed = 0; while (Date.now() < until) { \
                console.log('x'.repeat(500)); printed++; const next = Date.now() + 5; while (Date.now() < next); } printed";
    let execution = client.start(&session, code);
    if !limit_files(daemon.pid(), Some(100_000)) {
        skip("prlimit", "the limits of another process cannot be changed");
        return;
    }
    let refused = || daemon.log().contains("the store cannot write");
    watch::wait_until(refused, || "the store still writes".to_owned());
    // The session prints further, and its output is refused, too: it does nothing else with its processor time.
    let worker = client.inspect(&session).expect("it lives").pid;
    let printed_until = processor_ticks(worker) + 30;
    watch::wait_until(
        || processor_ticks(worker) >= printed_until,
        || "the session does not go on".to_owned(),
    );
    drop(client);
    let (place, _) = daemon.kill();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let ended = client.until_final(&execution);
    let record = client.session_record(&session);
    assert_eq!(record.status, SessionStatus::Ready, "{:?}", record.close_reason);
    assert!(ended.degraded && ended.status == ExecutionStatus::Ok, "{ended:?}");
    let listed = daemon.cli(&["exec", "list", &session.id.to_string()]).ok();
    assert!(listed.contains("ok (degraded)"), "{listed}");
    assert_eq!(client.preview_of(&session, "printed > 100"), "true");
    drop(client);
    daemon.stop();
}
