//! The broker as the supervisor starts it: the jail is complete before the first request, file calls work in it, and the broker
//! exits with its channel.

mod common;

use common::ALL;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use vm_system_protocol::broker::{
    BrokerCall, BrokerReply, DatabaseReply, DatabaseRequest, DatabaseTerms, FileKind, FromBroker, FsReply,
    FsRequest, SqlParameters, SqlValue, ToBroker, WriteMode,
};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::{FS_READ_BYTES, HOST_MESSAGE_BYTES};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::process::{ExitStatus, spawn, wait_for};
use vm_system_sandbox::{inspect, landlock};

const PROGRAM: &str = env!("CARGO_BIN_EXE_broker_alone");

/// A supplementary group of a broker that root starts.
const GROUP: u32 = 4_711;

const SQL_TERMS: DatabaseTerms = DatabaseTerms {
    read_only: false,
    max_rows: 1_000_000,
    max_result_bytes: 32 << 20,
    max_database_bytes: 64 << 20,
    growth_bytes: u64::MAX,
    timeout_ms: 5_000,
};

struct Broker {
    channel: UnixStream,
    pid: u32,
}

impl Broker {
    fn start(worktree: &Path) -> Self {
        Self::start_for(&[], worktree)
    }

    fn start_for(needs: &[&str], folder: &Path) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("socketpair");
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("deadline");
        let folder = File::open(folder).expect("a folder");
        let descriptors = [theirs.as_fd(), folder.as_fd()];
        let owner = folder.metadata().expect("facts");
        // As a supervisor that is root passes it.
        let user = format!("user={}:{}:{GROUP}", owner.uid(), owner.gid());
        let user = nix::unistd::geteuid().is_root().then_some(user.as_str());
        let max_bytes = needs.contains(&"database").then_some("max-bytes=104857600");
        let arguments: Vec<&OsStr> =
            ["broker"].iter().chain(needs).copied().chain(user).chain(max_bytes).map(OsStr::new).collect();
        let pid = spawn(Path::new(PROGRAM), &arguments, &descriptors).expect("spawn");
        let mut broker = Self { channel: ours, pid };
        drop(theirs);
        assert_eq!(broker.receive(), FromBroker::Ready);
        broker
    }

    fn receive(&mut self) -> FromBroker {
        let mut len = [0; 4];
        self.channel.read_exact(&mut len).expect("length");
        let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
        self.channel.read_exact(&mut bytes).expect("message");
        decode(&bytes).expect("decodable")
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        self.channel.write_all(&(bytes.len() as u32).to_le_bytes()).expect("length");
        self.channel.write_all(bytes).expect("message");
    }

    fn try_call(&mut self, request: BrokerCall) -> Result<BrokerReply, HostError> {
        let call = ToBroker::Call { call: 7, execution: ExecutionId::from_bytes([1; 16]), request };
        self.send_bytes(&encode(&call, HOST_MESSAGE_BYTES).expect("encode"));
        match self.receive() {
            FromBroker::Reply { call: 7, reply } => reply,
            other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, request: FsRequest) -> FsReply {
        match self.try_call(BrokerCall::Fs { request, terms: ALL }).expect("allowed") {
            BrokerReply::Fs(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    fn sql(&mut self, sql: &str) -> Result<DatabaseReply, HostError> {
        let (database, sql) = ("main".to_owned(), sql.to_owned());
        let parameters = SqlParameters::Positional(Vec::new());
        let request = DatabaseRequest::Query { database, sql, parameters };
        match self.try_call(BrokerCall::Database { request, terms: SQL_TERMS })? {
            BrokerReply::Database(reply) => Ok(reply),
            other => panic!("{other:?}"),
        }
    }

    fn exit_status(self) -> ExitStatus {
        drop(self.channel);
        wait_for(self.pid).expect("wait")
    }
}

fn worktree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("tempdir");
    std::fs::write(folder.path().join("file"), "content").expect("write");
    folder
}

#[test]
fn file_calls_work_in_the_jail() {
    let folder = worktree();
    let mut broker = Broker::start(folder.path());
    for _ in 0..3 {
        let read = broker.call(FsRequest::ReadFile { path: "file".to_owned() });
        assert_eq!(read, FsReply::Bytes(b"content".to_vec()));
    }
    let FsReply::Entries(entries) = broker.call(FsRequest::ReadDir { path: ".".to_owned() }) else {
        panic!("no entries")
    };
    assert_eq!((entries[0].name.as_str(), entries[0].kind), ("file", FileKind::File));
    let FsReply::Stat(stat) = broker.call(FsRequest::Stat { path: "file".to_owned(), no_follow: false })
    else {
        panic!("no stat")
    };
    assert_eq!(stat.size, 7);
    assert_eq!(broker.call(FsRequest::Exists { path: "no".to_owned() }), FsReply::Bool(false));
    // The largest reply: buffers grow and shrink under the filter and the address-space limit.
    File::create(folder.path().join("large")).expect("create").set_len(FS_READ_BYTES as u64).expect("size");
    for _ in 0..2 {
        let FsReply::Bytes(bytes) = broker.call(FsRequest::ReadFile { path: "large".to_owned() }) else {
            panic!("no bytes")
        };
        assert_eq!(bytes.len(), FS_READ_BYTES);
    }
    assert_eq!(broker.exit_status(), ExitStatus::Exited(0));
}

#[test]
fn the_jail_is_complete_before_the_first_request() {
    let folder = worktree();
    let broker = Broker::start(folder.path());
    let status = inspect::status(broker.pid).expect("status");
    assert_eq!((status.seccomp, status.filters, status.no_new_privs), (2, 1, true));
    assert_eq!(status.capabilities, 0);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", broker.pid)).expect("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).expect("limit");
        line[26..].split_ascii_whitespace().next().map(str::to_owned)
    };
    assert_eq!(limit("Max file size").as_deref(), Some("0"));
    assert_eq!(limit("Max core file size").as_deref(), Some("0"));
    assert_eq!(limit("Max open files").as_deref(), Some("32"));
    assert_eq!(broker.exit_status(), ExitStatus::Exited(0));
}

#[test]
fn a_broker_of_root_becomes_its_user_without_capabilities() {
    if !nix::unistd::geteuid().is_root() {
        vm_system_testkit::skip("root", "only root can give files to another user");
        return;
    }
    let folder = worktree();
    let private = folder.path().join("private");
    std::fs::write(&private, "root's own").expect("write");
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    std::os::unix::fs::chown(folder.path(), Some(65_534), Some(65_534)).expect("chown");
    let mut broker = Broker::start(folder.path());
    assert_eq!(inspect::status(broker.pid).expect("status").uid, 65_534);
    broker.call(FsRequest::ReadFile { path: "file".to_owned() });
    let request = FsRequest::ReadFile { path: "private".to_owned() };
    let error = broker.try_call(BrokerCall::Fs { request, terms: ALL }).expect_err("was read");
    assert_eq!(error.code, "EACCES");
    // Readable for all but the members of its group; the owner is a member.
    std::os::unix::fs::chown(&private, Some(0), Some(GROUP)).expect("chown");
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o604)).expect("chmod");
    let request = FsRequest::ReadFile { path: "private".to_owned() };
    let error = broker.try_call(BrokerCall::Fs { request, terms: ALL }).expect_err("was read");
    assert_eq!(error.code, "EACCES");
    assert_eq!(broker.exit_status(), ExitStatus::Exited(0));
}

#[test]
fn a_broker_of_root_without_a_user_argument_does_not_start() {
    if !nix::unistd::geteuid().is_root() {
        vm_system_testkit::skip("root", "only root becomes another user");
        return;
    }
    let (ours, theirs) = UnixStream::pair().expect("socketpair");
    let folder = worktree();
    let folder = File::open(folder.path()).expect("worktree");
    let pid =
        spawn(Path::new(PROGRAM), &[OsStr::new("broker")], &[theirs.as_fd(), folder.as_fd()]).expect("spawn");
    drop((ours, theirs));
    assert_eq!(wait_for(pid).expect("wait"), ExitStatus::Exited(2));
}

#[test]
fn the_broker_exits_on_request_and_on_an_invalid_message() {
    let folder = worktree();
    let mut broker = Broker::start(folder.path());
    broker.send_bytes(&encode(&ToBroker::Shutdown, HOST_MESSAGE_BYTES).expect("encode"));
    assert_eq!(wait_for(broker.pid).expect("wait"), ExitStatus::Exited(0));
    for bytes in [&[9_u8, 9, 9][..], &[], &[0; 40]] {
        let mut broker = Broker::start(folder.path());
        broker.send_bytes(bytes);
        assert_eq!(wait_for(broker.pid).expect("wait"), ExitStatus::Exited(1));
    }
    let mut broker = Broker::start(folder.path());
    broker.channel.write_all(&u32::MAX.to_le_bytes()).expect("a length above the cap");
    assert_eq!(wait_for(broker.pid).expect("wait"), ExitStatus::Exited(1));
}

#[test]
fn without_a_supervisor_the_broker_exits_at_once() {
    let program = |arguments: &[&str]| {
        std::process::Command::new(PROGRAM).args(arguments).output().expect("run").status.code()
    };
    assert_eq!(program(&["broker"]), Some(2));
    assert_eq!(program(&[]), Some(2));
}

/// Landlock is the second wall, in case `openat2` is ever called without its flags.
#[test]
fn landlock_is_in_force_if_the_kernel_has_it() {
    if landlock::abi() == 0 {
        vm_system_testkit::skip("landlock", "no Landlock in this kernel");
        return;
    }
    let folder = worktree();
    let outside = worktree();
    let exit_status = std::thread::scope(|scope| {
        // In a separate thread: a Landlock domain cannot be left.
        let confined = scope.spawn(|| {
            vm_system_sandbox::privileges::deny_write_execute().expect("prctl works");
            nix::sys::prctl::set_no_new_privs().expect("no_new_privs");
            let handle = File::open(folder.path()).expect("worktree");
            landlock::restrict(&[(handle.as_fd(), landlock::Access::Read)]).expect("restrict");
            let inside = File::open(folder.path().join("file")).is_ok();
            let write = File::options().write(true).open(folder.path().join("file")).is_err();
            (inside, write, File::open(outside.path().join("file")).is_err())
        });
        confined.join().expect("thread")
    });
    assert_eq!(exit_status, (true, true, true));
}

const ANEW: WriteMode = WriteMode { create: true, exclusive: false, truncate: true, append: false };

/// Every call that changes something is made under the filter and Landlock.
fn change_everything(broker: &mut Broker) {
    let text = |text: &str| text.to_owned();
    let write =
        |path: &str, data: Vec<u8>, how| FsRequest::Write { path: text(path), data, how, mode: 0o644 };
    for request in [
        write("new", b"one".to_vec(), ANEW),
        write("new", b"two".to_vec(), WriteMode { truncate: false, append: true, ..ANEW }),
        FsRequest::MakeDir { path: text("a/b/c"), recursive: true, mode: 0o755 },
        write("a/b/c/deep", vec![7; 3 << 20], ANEW),
        FsRequest::Copy { from: text("new"), to: text("a/copy"), exclusive: true },
        FsRequest::Rename { from: text("a/copy"), to: text("a/moved") },
        FsRequest::RealPath { path: text("a/../new") },
        FsRequest::Access { path: text("new"), mode: 6 },
        FsRequest::RemoveFile { path: text("new") },
        FsRequest::MakeDir { path: text("empty"), recursive: false, mode: 0o755 },
        FsRequest::RemoveDir { path: text("empty") },
        FsRequest::Remove { path: text("a"), recursive: true, force: false },
        FsRequest::ReadDir { path: text(".") },
    ] {
        broker.call(request);
    }
}

#[test]
fn files_are_changed_in_the_jail_if_the_session_may_write() {
    let folder = worktree();
    let mut broker = Broker::start_for(&["write"], folder.path());
    change_everything(&mut broker);
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("list").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(broker.exit_status(), ExitStatus::Exited(0));
}

/// The policy refuses such a call; if it ever does not, the filter and Landlock do.
#[test]
fn a_broker_for_reading_cannot_write() {
    let folder = worktree();
    let mut broker = Broker::start(folder.path());
    let request = FsRequest::Write { path: "file".to_owned(), data: b"x".to_vec(), how: ANEW, mode: 0o644 };
    let call = ToBroker::Call {
        call: 7,
        execution: ExecutionId::from_bytes([1; 16]),
        request: BrokerCall::Fs { request, terms: ALL },
    };
    broker.send_bytes(&encode(&call, HOST_MESSAGE_BYTES).expect("encode"));
    let exit_status = wait_or_refusal(broker);
    assert!(exit_status, "neither refused nor killed");
    assert_eq!(std::fs::read(folder.path().join("file")).expect("read"), b"content");
}

/// True if the call was refused, or the broker was killed for it.
fn wait_or_refusal(mut broker: Broker) -> bool {
    let mut len = [0; 4];
    if broker.channel.read_exact(&mut len).is_err() {
        return wait_for(broker.pid).expect("wait") == ExitStatus::Signaled(31);
    }
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    broker.channel.read_exact(&mut bytes).expect("message");
    let refused = matches!(decode(&bytes), Ok(FromBroker::Reply { reply: Err(_), .. }));
    refused && broker.exit_status() == ExitStatus::Exited(0)
}

#[test]
fn database_calls_work_in_the_jail() {
    let workspace = tempfile::tempdir().expect("tempdir");
    for round in 0..2 {
        let mut broker = Broker::start_for(&["database"], workspace.path());
        let request = FsRequest::Exists { path: ".".to_owned() };
        let error = broker.try_call(BrokerCall::Fs { request, terms: ALL }).expect_err("another broker's");
        assert_eq!(error.code, "EBROKER");
        if round == 0 {
            broker.sql("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)").expect("create");
        }
        broker.sql("BEGIN").expect("begin");
        for _ in 0..3 {
            broker.sql("INSERT INTO t (b) VALUES (randomblob(300000))").expect("insert");
        }
        broker.sql("COMMIT").expect("commit");
        broker.sql("BEGIN").expect("begin");
        broker.sql("DELETE FROM t").expect("delete");
        broker.sql("ROLLBACK").expect("roll back");
        broker.sql("CREATE INDEX IF NOT EXISTS i ON t (b)").expect("index");
        broker.sql("SELECT b FROM t ORDER BY b, a").expect("sort");
        let error = broker.sql("ATTACH '/etc/passwd' AS x").expect_err("attach");
        assert_eq!(error.code, "SQLITE_AUTH", "{error:?}");
        let counted = broker.sql("SELECT count(*) AS n FROM t").expect("count");
        let DatabaseReply::Rows { columns, values } = counted else { panic!("{counted:?}") };
        assert_eq!((columns, values), (vec!["n".to_owned()], vec![SqlValue::Integer(3 * (round + 1))]));
        assert_eq!(broker.exit_status(), ExitStatus::Exited(0));
    }
}
