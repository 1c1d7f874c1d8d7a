//! The `fs` module beneath its directory handle: what it gives, and that nothing outside of the worktree answers.
//! These run without the jail around them: each must hold by the way files are opened alone.

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

fn answer(worktree: &OwnedFd, request: &FsRequest) -> Result<FsReply, HostError> {
    broker_fs::answer(worktree, false, request.clone(), ALL)
}

/// `base/worktree` is the worktree; `base/secret` must never be seen.
struct Place {
    base: TempDir,
    handle: OwnedFd,
}

impl Place {
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
        match answer(&self.handle, &FsRequest::ReadFile { path: path.to_owned() })? {
            FsReply::Bytes(bytes) => Ok(bytes),
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, HostError> {
        match answer(&self.handle, &FsRequest::ReadDir { path: path.to_owned() })? {
            FsReply::Entries(entries) => Ok(entries),
            other => panic!("{other:?}"),
        }
    }

    fn stat(&self, path: &str, no_follow: bool) -> Result<FileStat, HostError> {
        match answer(&self.handle, &FsRequest::Stat { path: path.to_owned(), no_follow })? {
            FsReply::Stat(stat) => Ok(stat),
            other => panic!("{other:?}"),
        }
    }

    fn exists(&self, path: &str) -> bool {
        answer(&self.handle, &FsRequest::Exists { path: path.to_owned() }) == Ok(FsReply::Bool(true))
    }

    /// The code of every call that names this path; `exists` must say no.
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
fn files_folders_and_facts_are_what_is_there() {
    let place = Place::new();
    place.write("data/b.csv", b"1,2\n");
    place.write("data/a.bin", &[0, 255, 10]);
    place.write("empty", b"");
    symlink("data/b.csv", place.path("link")).expect("link");
    symlink("../data", place.path("data/self")).expect("link");

    assert_eq!(place.read("data/a.bin"), Ok(vec![0, 255, 10]));
    assert_eq!(place.read("empty"), Ok(vec![]));
    assert_eq!(place.read("link"), Ok(b"1,2\n".to_vec()));
    for same in ["./data//b.csv", "data/../data/b.csv", "data/self/b.csv", "data/self/../link"] {
        assert_eq!(place.read(same), Ok(b"1,2\n".to_vec()), "{same}");
    }
    let names: Vec<_> = place.list("data").expect("list").into_iter().map(|e| (e.name, e.kind)).collect();
    let expected = [("a.bin", FileKind::File), ("b.csv", FileKind::File), ("self", FileKind::Symlink)];
    assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(place.list(".").expect("root").len(), 3);

    let stat = place.stat("link", false).expect("stat");
    assert_eq!((stat.kind, stat.size), (FileKind::File, 4));
    assert_eq!(place.stat("link", true).expect("lstat").kind, FileKind::Symlink);
    assert_eq!(place.stat("data", false).expect("stat").kind, FileKind::Directory);
    let modified = std::fs::metadata(place.path("link")).expect("metadata").modified().expect("mtime");
    let since = modified.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    assert_eq!(u128::try_from(stat.mtime_ms), Ok(since.as_millis()));
    assert!(place.exists("data") && place.exists("link") && !place.exists("nothing"));
}

#[test]
fn errors_have_nodes_code_and_wording() {
    let place = Place::new();
    place.write("file", b"x");
    std::fs::create_dir(place.path("folder")).expect("folder");
    symlink("loop", place.path("loop")).expect("loop");
    let message = |result: Result<Vec<u8>, HostError>| result.expect_err("error").message;
    assert_eq!(message(place.read("no")), "ENOENT: no such file or directory, open 'no'");
    assert_eq!(message(place.read("")), "ENOENT: no such file or directory, open ''");
    assert_eq!(message(place.read("folder")), "EISDIR: illegal operation on a directory, open 'folder'");
    assert_eq!(message(place.read("file/x")), "ENOTDIR: not a directory, open 'file/x'");
    assert_eq!(message(place.read("loop")), "ELOOP: too many symbolic links encountered, open 'loop'");
    let listed = place.list("file").expect_err("no folder");
    assert_eq!(listed.message, "ENOTDIR: not a directory, scandir 'file'");
    let lstat = place.stat("no", true).expect_err("absent");
    assert_eq!(lstat.message, "ENOENT: no such file or directory, lstat 'no'");
    assert_eq!(place.read(&"n".repeat(300)).expect_err("long name").code, "ENAMETOOLONG");
    let long = place.read(&"n/".repeat(100_000)).expect_err("long path");
    assert!(long.code == "ENAMETOOLONG" && long.message.len() < 5_000, "{}", long.code);
}

#[test]
fn nothing_outside_of_the_worktree_answers() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).expect("folder");
    let absolute = place.base.path().join("secret");
    symlink("../secret", place.path("up")).expect("link");
    symlink("../../secret", place.path("folder/up")).expect("link");
    symlink(&absolute, place.path("absolute")).expect("link");
    symlink("/", place.path("root")).expect("link");
    symlink("/proc/self/root", place.path("magic")).expect("link");
    symlink("..", place.path("parent")).expect("link");
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
        assert_eq!(place.refused(path), "EACCES", "{path}");
    }
    // What is not followed may be looked at: the link is inside.
    assert_eq!(place.stat("up", true).expect("lstat").kind, FileKind::Symlink);
}

#[test]
fn a_nul_in_a_path_is_an_error_and_ends_no_name_early() {
    let place = Place::new();
    place.write("file", b"x");
    for path in ["file\0", "file\0.txt", "\0", "folder/\0/../file"] {
        assert_eq!(place.refused(path), "EINVAL", "{path:?}");
    }
}

#[test]
fn links_of_proc_are_not_followed_even_where_proc_is_in_the_worktree() {
    let handle: OwnedFd = File::open("/proc").expect("/proc").into();
    for path in ["self/root/etc/passwd", "self/cwd/Cargo.toml", "self/exe", "self/fd/0"] {
        let refused = answer(&handle, &FsRequest::ReadFile { path: path.to_owned() }).expect_err(path);
        assert!(["EACCES", "ELOOP"].contains(&refused.code.as_str()), "{path}: {refused:?}");
    }
}

#[test]
fn pipes_sockets_and_devices_are_refused_without_being_opened() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("fifo");
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).expect("socket");
    for path in ["fifo", "socket"] {
        let error = place.read(path).expect_err("refused");
        assert_eq!(error.message, format!("EACCES: permission denied (not a regular file), open '{path}'"));
        assert_eq!(place.stat(path, false).expect("stat").kind, FileKind::Other);
    }
    let devices: OwnedFd = File::open("/dev").expect("/dev").into();
    for path in ["zero", "null", "random"] {
        let error = answer(&devices, &FsRequest::ReadFile { path: path.to_owned() }).expect_err("device");
        assert_eq!(error.code, "EACCES", "{path}");
    }
}

#[test]
fn files_above_the_cap_are_refused_and_sparse_ones_cost_nothing() {
    let place = Place::new();
    let huge = File::create(place.path("huge")).expect("create");
    huge.set_len(1 << 40).expect("sparse");
    assert_eq!(place.read("huge").expect_err("huge").code, "EFBIG");
    huge.set_len(FS_READ_BYTES as u64 + 1).expect("sparse");
    assert_eq!(place.read("huge").expect_err("one above").code, "EFBIG");
    huge.set_len(FS_READ_BYTES as u64).expect("sparse");
    assert_eq!(place.read("huge").expect("at the cap").len(), FS_READ_BYTES);
}

#[test]
fn files_that_claim_no_size_are_read_whole() {
    let handle: OwnedFd = File::open("/proc/self").expect("/proc/self").into();
    let reply = answer(&handle, &FsRequest::ReadFile { path: "status".to_owned() }).expect("status");
    let FsReply::Bytes(bytes) = reply else { panic!("{reply:?}") };
    assert!(bytes.starts_with(b"Name:"));
}

#[test]
fn folders_above_the_cap_are_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path("many")).expect("folder");
    for number in 0..=FS_DIR_ENTRIES {
        std::fs::hard_link(place.base.path().join("secret"), place.path(format!("many/{number}")))
            .map_or_else(
                // File systems bound the links of one file.
                |_| drop(File::create(place.path(format!("many/{number}"))).expect("create")),
                |()| (),
            );
    }
    assert_eq!(place.list("many").expect_err("one above").code, "EFBIG");
    std::fs::remove_file(place.path("many/0")).expect("remove");
    assert_eq!(place.list("many").expect("at the cap").len(), FS_DIR_ENTRIES);
}

#[test]
fn deep_folders_are_read_up_to_the_longest_path() {
    let place = Place::new();
    let mut path = String::new();
    let mut depth = place.handle.try_clone().expect("handle");
    for _ in 0..3_000 {
        nix::sys::stat::mkdirat(&depth, "d", nix::sys::stat::Mode::S_IRWXU).expect("mkdirat");
        let flags = nix::fcntl::OFlag::O_DIRECTORY | nix::fcntl::OFlag::O_CLOEXEC;
        depth = nix::fcntl::openat(&depth, "d", flags, nix::sys::stat::Mode::empty()).expect("openat");
        path.push_str("d/");
    }
    assert!(place.exists(&path[..4_000]));
    assert_eq!(place.read(&path).expect_err("6 000 bytes").code, "ENAMETOOLONG");
}

#[test]
fn names_that_are_not_utf8_are_shown_with_replacements() {
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    std::fs::write(place.path(name), b"x").expect("write");
    place.write("gut\u{00e4}", b"y");
    let names: Vec<_> = place.list(".").expect("list").into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["bad\u{fffd}", "gut\u{00e4}"]);
    assert_eq!(place.read("gut\u{00e4}"), Ok(b"y".to_vec()));
}

#[test]
fn a_removed_worktree_has_nothing_in_it() {
    let place = Place::new();
    place.write("file", b"x");
    std::fs::remove_dir_all(place.path("")).expect("remove");
    assert_eq!(place.read("file").expect_err("gone").code, "ENOENT");
    assert!(!place.exists("file"));
}

#[test]
fn an_unreadable_file_is_refused_to_those_who_may_not_read_it() {
    let place = Place::new();
    place.write("private", b"x");
    std::fs::set_permissions(place.path("private"), std::fs::Permissions::from_mode(0o000)).expect("chmod");
    // Root reads it all the same here; inside the jail it has no capability (see jailed.rs).
    if !nix::unistd::geteuid().is_root() {
        assert_eq!(place.read("private").expect_err("mode 000").code, "EACCES");
    }
}

/// While a thread exchanges a link between the inside and the outside, no read may ever give the outside.
#[test]
fn a_link_exchanged_during_the_check_never_gives_the_outside() {
    let place = Place::new();
    place.write("inside/secret", b"inside");
    symlink("inside", place.path("now")).expect("link");
    symlink("..", place.path("out")).expect("link");
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for target in ["..", "inside"] {
                    let next = place.path("next");
                    symlink(target, &next).expect("link");
                    std::fs::rename(&next, place.path("now")).expect("exchange");
                }
            }
        });
        // Goes on until both sides were seen often, so that the exchange really happened under the reads.
        while inside < 500 || refused < 500 {
            match place.read("now/secret") {
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
fn a_folder_moved_out_during_the_walk_never_gives_the_outside() {
    let place = Place::new();
    place.write("a/b/c/file", b"inside");
    std::fs::write(place.base.path().join("file"), SECRET).expect("secret");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (here, there) = (place.path("a/b"), place.base.path().join("moved"));
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(&here, &there).expect("out");
                std::fs::rename(&there, &here).expect("back");
            }
        });
        let mut seen = 0;
        while seen < 2_000 {
            match place.read("a/b/c/../../../a/b/c/../c/file") {
                Ok(bytes) => assert_eq!(bytes, b"inside"),
                Err(error) => {
                    assert!(["ENOENT", "EACCES", "EAGAIN"].contains(&error.code.as_str()), "{error:?}");
                }
            }
            assert_ne!(place.read("a/b/../../file").ok(), Some(SECRET.into()));
            seen += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_file_that_becomes_a_pipe_during_the_check_never_blocks() {
    let place = Place::new();
    place.write("file", b"inside");
    nix::unistd::mkfifo(&place.path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("fifo");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for source in ["fifo", "file"] {
                    let next = place.path("next");
                    std::fs::hard_link(place.path(source), &next).expect("link");
                    std::fs::rename(&next, place.path("now")).expect("exchange");
                    // A rename onto the same inode leaves the source in place.
                    let _ = std::fs::remove_file(&next);
                }
            }
        });
        let (mut read, mut refused) = (0, 0);
        while read < 200 || refused < 200 {
            match place.read("now") {
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
