//! The `fs` module beneath its directory handle: its results, and that no call reaches a file outside of the worktree. The tests
//! run without the jail: the path resolution must be sufficient.

mod common;

use common::ALL;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use vm_system_broker::fs as broker_fs;
use vm_system_protocol::broker::{DirEntry, FileKind, FileStat, FsReply, FsRequest};
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_READ_BYTES};
use vm_system_protocol::worker::HostError;

const SECRET: &str = "outside";

fn handle_request(worktree: &OwnedFd, request: &FsRequest) -> Result<FsReply, HostError> {
    broker_fs::handle_request(worktree, false, request.clone(), ALL)
}

/// `base/worktree` is the worktree; `base/secret` must never be read.
struct Fixture {
    base: TempDir,
    handle: OwnedFd,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(base.path().join("worktree")).expect("worktree");
        std::fs::write(base.path().join("secret"), SECRET).expect("secret");
        let handle = File::open(base.path().join("worktree")).expect("open").into();
        Self { base, handle }
    }

    fn path(&self, name: impl AsRef<Path>) -> std::path::PathBuf {
        self.base.path().join("worktree").join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::create_dir_all(self.path(name).parent().expect("parent")).expect("folders");
        std::fs::write(self.path(name), content).expect("write");
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, HostError> {
        match handle_request(&self.handle, &FsRequest::ReadFile { path: path.to_owned() })? {
            FsReply::Bytes(bytes) => Ok(bytes),
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, HostError> {
        match handle_request(&self.handle, &FsRequest::ReadDir { path: path.to_owned() })? {
            FsReply::Entries(entries) => Ok(entries),
            other => panic!("{other:?}"),
        }
    }

    fn stat(&self, path: &str, no_follow: bool) -> Result<FileStat, HostError> {
        match handle_request(&self.handle, &FsRequest::Stat { path: path.to_owned(), no_follow })? {
            FsReply::Stat(stat) => Ok(stat),
            other => panic!("{other:?}"),
        }
    }

    fn exists(&self, path: &str) -> bool {
        handle_request(&self.handle, &FsRequest::Exists { path: path.to_owned() }) == Ok(FsReply::Bool(true))
    }

    /// The error code that every call on this path returns; `exists` must return false.
    fn refused(&self, path: &str) -> String {
        assert!(!self.exists(path), "{path} exists");
        let read = self.read(path).expect_err("refused");
        for other in [self.list(path).map(drop), self.stat(path, false).map(drop)] {
            let shown = format!("'{path}'");
            let message = other.expect_err("refused").message;
            assert!(message.ends_with(&shown), "more than the script's own path in {message}");
        }
        read.code
    }
}

#[test]
fn contents_entries_and_metadata_match_the_files() {
    let fixture = Fixture::new();
    fixture.write("data/b.csv", b"1,2\n");
    fixture.write("data/a.bin", &[0, 255, 10]);
    fixture.write("empty", b"");
    symlink("data/b.csv", fixture.path("link")).expect("link");
    symlink("../data", fixture.path("data/self")).expect("link");

    assert_eq!(fixture.read("data/a.bin"), Ok(vec![0, 255, 10]));
    assert_eq!(fixture.read("empty"), Ok(vec![]));
    assert_eq!(fixture.read("link"), Ok(b"1,2\n".to_vec()));
    for same in ["./data//b.csv", "data/../data/b.csv", "data/self/b.csv", "data/self/../link"] {
        assert_eq!(fixture.read(same), Ok(b"1,2\n".to_vec()), "{same}");
    }
    let names: Vec<_> = fixture.list("data").expect("list").into_iter().map(|e| (e.name, e.kind)).collect();
    let expected = [("a.bin", FileKind::File), ("b.csv", FileKind::File), ("self", FileKind::Symlink)];
    assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(fixture.list(".").expect("root").len(), 3);

    let stat = fixture.stat("link", false).expect("stat");
    assert_eq!((stat.kind, stat.size), (FileKind::File, 4));
    assert_eq!(fixture.stat("link", true).expect("lstat").kind, FileKind::Symlink);
    assert_eq!(fixture.stat("data", false).expect("stat").kind, FileKind::Directory);
    let modified = std::fs::metadata(fixture.path("link")).expect("metadata").modified().expect("mtime");
    let since = modified.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    assert_eq!(u128::try_from(stat.mtime_ms), Ok(since.as_millis()));
    assert!(fixture.exists("data") && fixture.exists("link") && !fixture.exists("nothing"));
}

#[test]
fn errors_have_nodes_code_and_wording() {
    let fixture = Fixture::new();
    fixture.write("file", b"x");
    std::fs::create_dir(fixture.path("folder")).expect("folder");
    symlink("loop", fixture.path("loop")).expect("loop");
    let message = |result: Result<Vec<u8>, HostError>| result.expect_err("error").message;
    assert_eq!(message(fixture.read("no")), "ENOENT: no such file or directory, open 'no'");
    assert_eq!(message(fixture.read("")), "ENOENT: no such file or directory, open ''");
    assert_eq!(message(fixture.read("folder")), "EISDIR: illegal operation on a directory, open 'folder'");
    assert_eq!(message(fixture.read("file/x")), "ENOTDIR: not a directory, open 'file/x'");
    assert_eq!(message(fixture.read("loop")), "ELOOP: too many symbolic links encountered, open 'loop'");
    let listed = fixture.list("file").expect_err("no folder");
    assert_eq!(listed.message, "ENOTDIR: not a directory, scandir 'file'");
    let lstat = fixture.stat("no", true).expect_err("absent");
    assert_eq!(lstat.message, "ENOENT: no such file or directory, lstat 'no'");
    assert_eq!(fixture.read(&"n".repeat(300)).expect_err("long name").code, "ENAMETOOLONG");
    let long = fixture.read(&"n/".repeat(100_000)).expect_err("long path");
    assert!(long.code == "ENAMETOOLONG" && long.message.len() < 5_000, "{}", long.code);
}

#[test]
fn nothing_outside_of_the_worktree_is_reachable() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("folder")).expect("folder");
    let absolute = fixture.base.path().join("secret");
    symlink("../secret", fixture.path("up")).expect("link");
    symlink("../../secret", fixture.path("folder/up")).expect("link");
    symlink(&absolute, fixture.path("absolute")).expect("link");
    symlink("/", fixture.path("root")).expect("link");
    symlink("/proc/self/root", fixture.path("magic")).expect("link");
    symlink("..", fixture.path("parent")).expect("link");
    for path in [
        "..",
        "../secret",
        "../worktree/../secret",
        "folder/../../secret",
        "./../secret",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "up",
        "folder/up",
        "absolute",
        "root",
        "root/etc/passwd",
        "magic/etc/passwd",
        "parent/secret",
        "parent",
        &absolute.to_string_lossy(),
    ] {
        assert_eq!(fixture.refused(path), "EACCES", "{path}");
    }
    // `lstat` does not follow the link, which is inside.
    assert_eq!(fixture.stat("up", true).expect("lstat").kind, FileKind::Symlink);
}

#[test]
fn a_nul_in_a_path_is_an_error_and_does_not_end_the_name() {
    let fixture = Fixture::new();
    fixture.write("file", b"x");
    for path in ["file\0", "file\0.txt", "\0", "folder/\0/../file"] {
        assert_eq!(fixture.refused(path), "EINVAL", "{path:?}");
    }
}

#[test]
fn links_of_proc_are_not_followed_even_if_proc_is_in_the_worktree() {
    let handle: OwnedFd = File::open("/proc").expect("/proc").into();
    for path in ["self/root/etc/passwd", "self/cwd/Cargo.toml", "self/exe", "self/fd/0"] {
        let refused =
            handle_request(&handle, &FsRequest::ReadFile { path: path.to_owned() }).expect_err(path);
        assert!(["EACCES", "ELOOP"].contains(&refused.code.as_str()), "{path}: {refused:?}");
    }
}

#[test]
fn pipes_sockets_and_devices_are_refused_without_being_opened() {
    let fixture = Fixture::new();
    nix::unistd::mkfifo(&fixture.path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("fifo");
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).expect("socket");
    for path in ["fifo", "socket"] {
        let error = fixture.read(path).expect_err("refused");
        assert_eq!(error.message, format!("EACCES: permission denied (not a regular file), open '{path}'"));
        assert_eq!(fixture.stat(path, false).expect("stat").kind, FileKind::Other);
    }
    let devices: OwnedFd = File::open("/dev").expect("/dev").into();
    for path in ["zero", "null", "random"] {
        let error =
            handle_request(&devices, &FsRequest::ReadFile { path: path.to_owned() }).expect_err("device");
        assert_eq!(error.code, "EACCES", "{path}");
    }
}

#[test]
fn files_above_the_cap_are_refused_and_sparse_files_are_read() {
    let fixture = Fixture::new();
    let huge = File::create(fixture.path("huge")).expect("create");
    huge.set_len(1 << 40).expect("sparse");
    assert_eq!(fixture.read("huge").expect_err("huge").code, "EFBIG");
    huge.set_len(FS_READ_BYTES as u64 + 1).expect("sparse");
    assert_eq!(fixture.read("huge").expect_err("one above").code, "EFBIG");
    huge.set_len(FS_READ_BYTES as u64).expect("sparse");
    assert_eq!(fixture.read("huge").expect("at the cap").len(), FS_READ_BYTES);
}

#[test]
fn files_of_reported_size_0_are_read_completely() {
    let handle: OwnedFd = File::open("/proc/self").expect("/proc/self").into();
    let reply = handle_request(&handle, &FsRequest::ReadFile { path: "status".to_owned() }).expect("status");
    let FsReply::Bytes(bytes) = reply else { panic!("{reply:?}") };
    assert!(bytes.starts_with(b"Name:"));
}

#[test]
fn folders_above_the_cap_are_refused() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("many")).expect("folder");
    for number in 0..=FS_DIR_ENTRIES {
        std::fs::hard_link(fixture.base.path().join("secret"), fixture.path(format!("many/{number}")))
            .map_or_else(
                // File systems bound the links of one file.
                |_| drop(File::create(fixture.path(format!("many/{number}"))).expect("create")),
                |()| (),
            );
    }
    assert_eq!(fixture.list("many").expect_err("one above").code, "EFBIG");
    std::fs::remove_file(fixture.path("many/0")).expect("remove");
    assert_eq!(fixture.list("many").expect("at the cap").len(), FS_DIR_ENTRIES);
}

#[test]
fn deep_folders_are_read_up_to_the_longest_path() {
    let fixture = Fixture::new();
    let mut path = String::new();
    let mut depth = fixture.handle.try_clone().expect("handle");
    for _ in 0..3_000 {
        nix::sys::stat::mkdirat(&depth, "d", nix::sys::stat::Mode::S_IRWXU).expect("mkdirat");
        let flags = nix::fcntl::OFlag::O_DIRECTORY | nix::fcntl::OFlag::O_CLOEXEC;
        depth = nix::fcntl::openat(&depth, "d", flags, nix::sys::stat::Mode::empty()).expect("openat");
        path.push_str("d/");
    }
    assert!(fixture.exists(&path[..4_000]));
    assert_eq!(fixture.read(&path).expect_err("6 000 bytes").code, "ENAMETOOLONG");
}

#[test]
fn names_that_are_not_utf8_are_shown_with_replacements() {
    let fixture = Fixture::new();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    std::fs::write(fixture.path(name), b"x").expect("write");
    fixture.write("gut\u{00e4}", b"y");
    let names: Vec<_> = fixture.list(".").expect("list").into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["bad\u{fffd}", "gut\u{00e4}"]);
    assert_eq!(fixture.read("gut\u{00e4}"), Ok(b"y".to_vec()));
}

#[test]
fn a_removed_worktree_is_empty() {
    let fixture = Fixture::new();
    fixture.write("file", b"x");
    std::fs::remove_dir_all(fixture.path("")).expect("remove");
    assert_eq!(fixture.read("file").expect_err("gone").code, "ENOENT");
    assert!(!fixture.exists("file"));
}

#[test]
fn an_unreadable_file_is_refused_to_those_who_may_not_read_it() {
    let fixture = Fixture::new();
    fixture.write("private", b"x");
    std::fs::set_permissions(fixture.path("private"), std::fs::Permissions::from_mode(0o000)).expect("chmod");
    // Root can read it here; inside the jail it has no capability (see jailed.rs).
    if !nix::unistd::geteuid().is_root() {
        assert_eq!(fixture.read("private").expect_err("mode 000").code, "EACCES");
    }
}

/// While a thread exchanges a link between the inside and the outside, no read may ever return the outside.
#[test]
fn a_link_exchanged_during_the_check_never_leads_outside() {
    let fixture = Fixture::new();
    fixture.write("inside/secret", b"inside");
    symlink("inside", fixture.path("now")).expect("link");
    symlink("..", fixture.path("out")).expect("link");
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for target in ["..", "inside"] {
                    let next = fixture.path("next");
                    symlink(target, &next).expect("link");
                    std::fs::rename(&next, fixture.path("now")).expect("exchange");
                }
            }
        });
        // Continues until both results were seen often, so that the exchange happened during reads.
        while inside < 500 || refused < 500 {
            match fixture.read("now/secret") {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    inside += 1;
                }
                Err(error) => {
                    assert!(["EACCES", "EAGAIN"].contains(&error.code.as_str()), "{error:?}");
                    refused += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The same for a folder that is moved out of the worktree while `..` is walked inside of it.
#[test]
fn a_folder_moved_out_during_the_walk_never_leads_outside() {
    let fixture = Fixture::new();
    fixture.write("a/b/c/file", b"inside");
    std::fs::write(fixture.base.path().join("file"), SECRET).expect("secret");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (here, there) = (fixture.path("a/b"), fixture.base.path().join("moved"));
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(&here, &there).expect("out");
                std::fs::rename(&there, &here).expect("back");
            }
        });
        let mut seen = 0;
        while seen < 2_000 {
            match fixture.read("a/b/c/../../../a/b/c/../c/file") {
                Ok(bytes) => assert_eq!(bytes, b"inside"),
                Err(error) => {
                    assert!(["ENOENT", "EACCES", "EAGAIN"].contains(&error.code.as_str()), "{error:?}");
                }
            }
            assert_ne!(fixture.read("a/b/../../file").ok(), Some(SECRET.into()));
            seen += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_file_that_becomes_a_pipe_during_the_check_never_blocks() {
    let fixture = Fixture::new();
    fixture.write("file", b"inside");
    nix::unistd::mkfifo(&fixture.path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("fifo");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for source in ["fifo", "file"] {
                    let next = fixture.path("next");
                    std::fs::hard_link(fixture.path(source), &next).expect("link");
                    std::fs::rename(&next, fixture.path("now")).expect("exchange");
                    // A rename to another link of the same inode keeps the source.
                    let _ = std::fs::remove_file(&next);
                }
            }
        });
        let (mut read, mut refused) = (0, 0);
        while read < 200 || refused < 200 {
            match fixture.read("now") {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    read += 1;
                }
                Err(error) if error.code == "ENOENT" => {}
                Err(error) => {
                    assert_eq!(error.code, "EACCES", "{error:?}");
                    refused += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
