//! The broker as the supervisor starts it: the walls are up before the first request, files still answer, and it ends
//! with its channel.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use vm_system_protocol::broker::{FileKind, FromBroker, FsReply, FsRequest, ToBroker};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::limits::{FS_READ_BYTES, HOST_MESSAGE_BYTES};
use vm_system_sandbox::process::{Ending, spawn, wait_for};
use vm_system_sandbox::{inspect, landlock};

const PROGRAM: &str = env!("CARGO_BIN_EXE_broker_alone");

struct Broker {
    channel: UnixStream,
    pid: u32,
}

impl Broker {
    fn start(worktree: &Path) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("socketpair");
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("deadline");
        let folder = File::open(worktree).expect("worktree");
        let descriptors = [theirs.as_fd(), folder.as_fd()];
        let pid = spawn(Path::new(PROGRAM), &[OsStr::new("broker")], &descriptors).expect("spawn");
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

    fn call(&mut self, request: FsRequest) -> FsReply {
        let bytes = encode(&ToBroker::Call { call: 7, request }, HOST_MESSAGE_BYTES).expect("encode");
        self.send_bytes(&bytes);
        match self.receive() {
            FromBroker::Reply { call: 7, reply } => reply.expect("allowed"),
            other => panic!("{other:?}"),
        }
    }

    fn ending(self) -> Ending {
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
fn files_answer_behind_all_walls() {
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
    // The largest answer: buffers grow and shrink under the filter and the address-space limit.
    File::create(folder.path().join("large")).expect("create").set_len(FS_READ_BYTES as u64).expect("size");
    for _ in 0..2 {
        let FsReply::Bytes(bytes) = broker.call(FsRequest::ReadFile { path: "large".to_owned() }) else {
            panic!("no bytes")
        };
        assert_eq!(bytes.len(), FS_READ_BYTES);
    }
    assert_eq!(broker.ending(), Ending::Exited(0));
}

#[test]
fn walls_are_seen_from_outside_before_the_first_request() {
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
    assert_eq!(broker.ending(), Ending::Exited(0));
}

#[test]
fn a_broker_of_root_is_the_worktrees_owner_and_has_no_capability() {
    if !nix::unistd::geteuid().is_root() {
        println!("SKIPPED: only root can give files to somebody else");
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
    broker.send_bytes(&encode(&ToBroker::Call { call: 1, request }, HOST_MESSAGE_BYTES).expect("encode"));
    let FromBroker::Reply { reply: Err(error), .. } = broker.receive() else { panic!("was read") };
    assert_eq!(error.code, "EACCES");
    assert_eq!(broker.ending(), Ending::Exited(0));
}

#[test]
fn it_ends_when_told_and_when_a_message_is_none() {
    let folder = worktree();
    let mut broker = Broker::start(folder.path());
    broker.send_bytes(&encode(&ToBroker::Shutdown, HOST_MESSAGE_BYTES).expect("encode"));
    assert_eq!(wait_for(broker.pid).expect("wait"), Ending::Exited(0));
    for bytes in [&[9_u8, 9, 9][..], &[], &[0; 40]] {
        let mut broker = Broker::start(folder.path());
        broker.send_bytes(bytes);
        assert_eq!(wait_for(broker.pid).expect("wait"), Ending::Exited(1));
    }
    let mut broker = Broker::start(folder.path());
    broker.channel.write_all(&u32::MAX.to_le_bytes()).expect("a length above the cap");
    assert_eq!(wait_for(broker.pid).expect("wait"), Ending::Exited(1));
}

#[test]
fn started_by_hand_it_says_so_and_does_nothing() {
    let program = |arguments: &[&str]| {
        std::process::Command::new(PROGRAM).args(arguments).output().expect("run").status.code()
    };
    assert_eq!(program(&["broker"]), Some(2));
    assert_eq!(program(&[]), Some(2));
}

/// Landlock is what holds if the filter's `openat2` is ever used without its flags.
#[test]
fn landlock_is_in_force_where_the_kernel_has_it() {
    if landlock::abi() == 0 {
        println!("SKIPPED: this kernel has no Landlock");
        return;
    }
    let folder = worktree();
    let outside = worktree();
    let ending = std::thread::scope(|scope| {
        // A thread of its own: the domain is for ever.
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
    assert_eq!(ending, (true, true, true));
}
