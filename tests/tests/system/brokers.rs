//! The supervisor's brokers against real processes: honest ones, ones that exit, and ones that break the protocol in every
//! way. Each costs its caller an error with a reason, has no effect on others, and the next call gets a new process.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use vm_system_protocol::broker::{
    BrokerCall, BrokerReply, DatabaseReply, DatabaseRequest, DatabaseTerms, FsReply, FsRequest,
};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::limits::BROKER_QUEUE;
use vm_system_protocol::worker::HostError;
use vm_system_runtime::brokers::{AllowedCall, BrokerConfig, Brokers};
use vm_system_runtime::shares::Holder;
use vm_system_runtime::workspaces::{WorkspaceKey, WorkspaceLimits, Workspaces};
use vm_system_runtime::worktree::Worktree;
use vm_system_tests::place::User;
use vm_system_tests::rights::{WIDE, worktree};
use vm_system_tests::{program, watch};

struct Session {
    id: SessionId,
    folder: TempDir,
    worktree: Worktree,
}

impl Session {
    fn new(number: u8, behaviour: &str) -> Self {
        let folder = tempfile::tempdir().expect("tempdir");
        std::fs::write(folder.path().join("file"), [number]).expect("write");
        let session =
            Self { id: SessionId::from_bytes([number; 16]), worktree: worktree(folder.path()), folder };
        session.behave(behaviour);
        session
    }

    fn behave(&self, behaviour: &str) {
        std::fs::write(self.folder.path().join("behaviour"), behaviour).expect("write");
    }

    async fn read(&self, brokers: &Brokers) -> Result<FsReply, HostError> {
        self.call(brokers, FsRequest::ReadFile { path: "file".to_owned() }, false).await
    }

    async fn call(&self, brokers: &Brokers, request: FsRequest, write: bool) -> Result<FsReply, HostError> {
        let call = AllowedCall {
            execution: ExecutionId::from_bytes([1; 16]),
            request: BrokerCall::Fs { request, terms: WIDE },
            write,
            worktree: self.worktree.clone(),
            workspaces: Workspaces::default(),
            workspace: WorkspaceKey { owner: "owner".to_owned(), id: "workspace".to_owned() },
            holder: Holder::UNKNOWN,
        };
        match brokers.call(self.id, call).await? {
            BrokerReply::Fs(reply) => Ok(reply),
            other => panic!("{other:?}"),
        }
    }
}

fn config(deadline: Duration) -> BrokerConfig {
    BrokerConfig {
        program: program::path(program::HOSTILE_BROKER, User::AsStarted),
        start_deadline: deadline,
        call_deadline: deadline,
        ..BrokerConfig::default()
    }
}

fn brokers(deadline: Duration) -> Brokers {
    Brokers::new(config(deadline))
}

const PATIENT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_session_has_one_broker_and_sees_its_own_worktree() {
    let brokers = brokers(PATIENT);
    let (one, two) = (Session::new(1, ""), Session::new(2, ""));
    assert_eq!(brokers.live(), 0, "nothing is started before the first call");
    for _ in 0..3 {
        assert_eq!(one.read(&brokers).await, Ok(FsReply::Bytes(vec![1])));
        assert_eq!(two.read(&brokers).await, Ok(FsReply::Bytes(vec![2])));
    }
    assert_eq!(brokers.live(), 2);
    brokers.end(one.id);
    brokers.end(one.id);
    brokers.shutdown(PATIENT).await;
    assert_eq!(brokers.live(), 0);
    assert!(two.read(&brokers).await.expect_err("stopped").message.contains("stopping"));
}

#[tokio::test]
async fn errors_of_the_file_system_are_no_failures_of_the_broker() {
    let brokers = brokers(PATIENT);
    let session = Session::new(1, "");
    for _ in 0..20 {
        let request = FsRequest::ReadFile { path: "../up".to_owned() };
        let error = session.call(&brokers, request, false).await.expect_err("refused");
        assert_eq!(error.code, "EACCES");
    }
    assert_eq!(session.read(&brokers).await, Ok(FsReply::Bytes(vec![1])));
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn every_violation_has_its_reason_and_harms_no_other_session() {
    let brokers = brokers(PATIENT);
    let sibling = Session::new(1, "");
    assert!(sibling.read(&brokers).await.is_ok());
    for (behaviour, reason) in [
        ("exits at once", "is not available: it ended"),
        ("cannot be jailed", "could not be jailed: the wall is too low"),
        ("answers before a call", "a reply before a call"),
        ("without walls", "seccomp is not in force"),
        ("exits in a call", "was ended: it ended"),
        ("sends garbage", "broke the protocol: undecodable"),
        ("announces too much", "broke the protocol: message of 4294967295 bytes"),
        ("answers another call", "a reply to another call"),
        ("answers another kind", "a reply of another kind"),
        ("answers ready", "broke the protocol: no reply"),
    ] {
        let session = Session::new(2, behaviour);
        let error = session.read(&brokers).await.expect_err(behaviour);
        assert_eq!(error.code, "EBROKER", "{behaviour}: {error:?}");
        assert!(error.message.contains(reason), "{behaviour}: {}", error.message);
        assert_eq!(brokers.live(), 1, "{behaviour}: killed and reaped before the caller gets the error");
        session.behave("");
        assert_eq!(session.read(&brokers).await, Ok(FsReply::Bytes(vec![2])), "after {behaviour}");
        assert_eq!(sibling.read(&brokers).await, Ok(FsReply::Bytes(vec![1])));
        brokers.end(session.id);
        until_live(&brokers, 1).await;
    }
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn a_broker_that_is_late_is_killed_at_its_deadline() {
    // A loaded machine may start a broker in more than SHORT, so each deadline is short on its own.
    let brokers = Brokers::new(BrokerConfig { call_deadline: SHORT, ..config(PATIENT) });
    for behaviour in ["never answers", "announces and waits"] {
        let session = Session::new(1, behaviour);
        let error = session.read(&brokers).await.expect_err(behaviour);
        assert_eq!(error.code, "ETIMEDOUT", "{error:?}");
        assert_eq!(brokers.live(), 0);
        brokers.end(session.id);
    }
    brokers.shutdown(PATIENT).await;

    let brokers = Brokers::new(BrokerConfig { start_deadline: SHORT, ..config(PATIENT) });
    let session = Session::new(1, "never ready");
    let error = session.read(&brokers).await.expect_err("never ready");
    assert!(error.message.contains("did not reply within 300 ms"), "{error:?}");
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn a_broker_that_writes_more_than_its_workspace_may_take_is_ended() {
    let place = tempfile::tempdir().expect("tempdir");
    let limits = WorkspaceLimits { per_owner: 1, workspace_bytes: 1 << 20, owner_bytes: 1 << 20 };
    let workspaces = Workspaces::new(Some(place.path().join("workspaces")), limits);
    let workspace = WorkspaceKey { owner: "owner".to_owned(), id: "workspace".to_owned() };
    let config = config(PATIENT);
    for (number, behaviour) in [(1, "writes in a call"), (2, "writes after a call")] {
        let brokers = Brokers::new(config.clone());
        let session = Session::new(number, "");
        let open = workspaces.open(&workspace, config.service_ids).expect("opened").expect("a folder");
        let folder =
            std::fs::read_link(format!("/proc/self/fd/{}", open.folder().as_raw_fd())).expect("a path");
        std::fs::write(folder.join("behaviour"), behaviour).expect("written");
        // The hostile process of root gives up its capabilities and stays root.
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).expect("chmod");
        drop(open);
        let call = || {
            let terms = DatabaseTerms {
                read_only: false,
                max_rows: 1,
                max_result_bytes: 1,
                max_database_bytes: 1 << 20,
                growth_bytes: 1 << 20,
                timeout_ms: 1_000,
            };
            let request = DatabaseRequest::Configure { database: "main".to_owned() };
            let call = AllowedCall {
                execution: ExecutionId::from_bytes([1; 16]),
                request: BrokerCall::Database { request, terms },
                write: false,
                worktree: session.worktree.clone(),
                workspaces: workspaces.clone(),
                workspace: workspace.clone(),
                holder: Holder::UNKNOWN,
            };
            brokers.call(session.id, call)
        };
        if behaviour == "writes in a call" {
            let error = HostError::from(call().await.expect_err(behaviour));
            assert!(error.message.contains("[databases]"), "{error:?}");
        } else {
            assert_eq!(call().await, Ok(BrokerReply::Database(DatabaseReply::Done)));
            brokers.execution_ended(session.id);
        }
        until_live(&brokers, 0).await;
        let error = match workspaces.open(&workspace, config.service_ids) {
            Ok(Some(open)) => open.usage().refusal(),
            other => panic!("{other:?}"),
        };
        assert!(error.message.contains("KiB of 1024 KiB"), "{error:?}");
        std::fs::remove_dir_all(&folder).expect("removed");
        brokers.shutdown(PATIENT).await;
    }
}

#[tokio::test]
async fn a_broker_that_fails_again_and_again_is_not_started_for_ever() {
    let brokers = brokers(PATIENT);
    let session = Session::new(1, "exits in a call");
    for _ in 0..5 {
        let error = session.read(&brokers).await.expect_err("exits");
        assert!(error.message.contains("it ended"), "{error:?}");
    }
    session.behave("");
    let error = session.read(&brokers).await.expect_err("too often");
    assert!(error.message.contains("failed 5 times within a minute"), "{error:?}");
    let other = Session::new(2, "");
    assert!(other.read(&brokers).await.is_ok(), "another session's broker is not concerned");
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn calls_above_the_queue_are_refused_and_the_others_get_replies() {
    let brokers = brokers(PATIENT);
    let session = Arc::new(Session::new(1, ""));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (brokers, session) = (brokers.clone(), Arc::clone(&session));
        calls.spawn(async move { session.read(&brokers).await });
    }
    let results = calls.join_all().await;
    let (completed, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert!(completed.len() >= BROKER_QUEUE && !refused.is_empty());
    assert!(refused.iter().all(|result| result.as_ref().is_err_and(|error| error.code == "EAGAIN")));
    assert!(session.read(&brokers).await.is_ok());
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn end_of_a_session_fails_pending_calls_and_kills_the_broker() {
    let brokers = brokers(PATIENT);
    let session = Arc::new(Session::new(1, "never answers"));
    let waiting = tokio::spawn({
        let (brokers, session) = (brokers.clone(), Arc::clone(&session));
        async move { session.read(&brokers).await }
    });
    watch::until_async(|| brokers.live() > 0, "no broker is started").await;
    brokers.end(session.id);
    let error = waiting.await.expect("no panic").expect_err("ended");
    assert!(error.message.contains("the session has ended"), "{error:?}");
    until_live(&brokers, 0).await;
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn an_idle_broker_ends_and_the_next_call_starts_another() {
    let brokers = Brokers::new(BrokerConfig { idle: Duration::from_millis(1), ..config(PATIENT) });
    let session = Session::new(1, "");
    for _ in 0..3 {
        assert!(session.read(&brokers).await.is_ok());
        until_live(&brokers, 0).await;
    }
    brokers.shutdown(PATIENT).await;
}

#[tokio::test]
async fn other_rights_need_another_process_behind_other_walls() {
    let brokers = brokers(PATIENT);
    let session = Session::new(1, "");
    let writing = true;
    let write = || FsRequest::MakeDir { path: "made".to_owned(), recursive: true, mode: 0o755 };
    assert!(session.read(&brokers).await.is_ok());
    assert!(session.call(&brokers, write(), writing).await.is_ok(), "the right to write came with new walls");
    assert!(session.read(&brokers).await.is_ok());
    // A call that the supervisor lets pass by mistake: the walls of a reading broker stop it.
    assert!(session.call(&brokers, write(), false).await.is_ok(), "it is there already");
    let more = FsRequest::MakeDir { path: "more".to_owned(), recursive: false, mode: 0o755 };
    let error = session.call(&brokers, more, false).await.expect_err("no right");
    assert!(error.message.contains("Signaled(31)") || error.message.contains("it ended"), "{error:?}");
    assert!(!session.folder.path().join("more").exists());
    assert_eq!(brokers.live(), 0);
    brokers.shutdown(PATIENT).await;
}

/// Waits until `left` brokers are running.
async fn until_live(brokers: &Brokers, left: usize) {
    watch::until_async(|| brokers.live() == left, "a broker outlives its session").await;
}
