//! A supervisor with few descriptors: it uses all that it may have, and refuses what does not fit by name. The limits are those of
//! this process, so all of it is one test.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::os::unix::net::UnixStream;
use vm_system_protocol::control::{ErrorCode, HealthGet};
use vm_system_protocol::model::Settings;
use vm_system_sandbox::identity::user_of;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::observe;
use vm_system_tests::place::User;

/// Descriptors of the daemon, and of this test.
const HARD: u64 = 256;
const SOFT: u64 = 64;
/// A uid without a passwd entry.
const NOBODY: u32 = 3_999_999_999;

/// Soft and hard limit of a process.
fn limits(pid: u32) -> (u64, u64) {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().expect("soft"), numbers.next().expect("hard"))
}

#[test]
fn all_descriptors_are_used_and_their_shortage_is_reported_as_such() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits");
    setrlimit(Resource::RLIMIT_NOFILE, SOFT, HARD.min(hard)).expect("lower ones");
    let daemon = Daemon::start(User::AsStarted);
    assert_eq!(limits(daemon.pid()), (HARD, HARD), "the soft limit is raised to the hard one");
    setrlimit(Resource::RLIMIT_NOFILE, HARD, HARD).expect("up to the hard one");
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &["fs", "database"]);
    let worktree = daemon.place.worktree();
    let mut sessions = vec![client.session(&template, &worktree).expect("session")];
    let mut refusals = 0;
    // Connections without a request take the rest, one more each time, so that the shortage occurs at each step of a creation.
    let mut idle = Vec::new();
    while refusals < 40 {
        match client.session(&template, &worktree) {
            Ok(session) => sessions.push(session),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::CapacityExceeded, "{error:?}");
                assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("LimitNOFILE")), "{error:?}");
                refusals += 1;
                if refusals % 2 == 0 {
                    client.close(&sessions.pop().expect("one that is live"));
                }
                if idle.len() < 20 {
                    idle.push(UnixStream::connect(daemon.place.socket()).expect("connect"));
                }
            }
        }
        assert!(sessions.len() < HARD as usize, "there is no limit");
    }
    assert!(sessions.len() > 10, "{} sessions", sessions.len());
    assert!(observe::descriptors(daemon.pid()) <= HARD as usize);
    drop(idle);
    // Other clients are accepted again.
    for session in &sessions {
        client.close(session);
    }
    let mut other = daemon.client();
    other.op(HealthGet).expect("health");
    let session = other.session(&template, &worktree).expect("session");
    assert_eq!(other.preview_of(&session, "6 * 7"), "42");
    drop((client, other));
    daemon.stop();
    // A user database that cannot be opened knows of nobody, and that is not said.
    assert_eq!(user_of(NOBODY), Ok(None));
    setrlimit(Resource::RLIMIT_NOFILE, 0, HARD).expect("a lower one");
    let looked_up = user_of(NOBODY);
    setrlimit(Resource::RLIMIT_NOFILE, HARD, HARD).expect("the hard one");
    assert_eq!(looked_up, Err(nix::errno::Errno::EMFILE));
}
