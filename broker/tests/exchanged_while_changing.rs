//! A link that is exchanged between the inside and the outside while the `fs` module writes, creates folders, moves, copies
//! and removes: nothing outside of the worktree is ever changed. Runs without the jail: the path resolution must be sufficient.

mod common;

use common::ALL;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use vm_system_broker::fs as broker_fs;
use vm_system_protocol::broker::{FsReply, FsRequest, WriteMode};
use vm_system_protocol::worker::HostError;

/// Each kind of change is repeated until this many succeeded and this many were refused, which shows that the link was exchanged
/// during the calls.
const OFTEN: usize = 100;

const SECRET: &str = "outside";

/// `base/worktree/now` is a link to `base` or to `base/worktree/inside`; both contain the same names.
struct Fixture {
    base: TempDir,
    handle: OwnedFd,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("tempdir");
        let inside = base.path().join("worktree/inside");
        std::fs::create_dir_all(&inside).expect("worktree");
        for folder in [base.path(), &inside] {
            refill(folder);
        }
        symlink("inside", base.path().join("worktree/now")).expect("link");
        let handle = File::open(base.path().join("worktree")).expect("open").into();
        Self { base, handle }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join("worktree").join(name)
    }

    fn request(&self, request: FsRequest) -> Result<FsReply, HostError> {
        broker_fs::handle_request(&self.handle, false, request, ALL)
    }

    /// Exchanges the link until `stop` is set.
    fn exchange(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            for target in ["..", "inside"] {
                let next = self.path("next");
                symlink(target, &next).expect("link");
                std::fs::rename(&next, self.path("now")).expect("exchange");
            }
        }
    }

    /// Asserts that the outside is unchanged.
    fn assert_untouched(&self, after: &str) {
        let base = self.base.path();
        let names: BTreeSet<String> = std::fs::read_dir(base)
            .expect("list")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        let made = ["file", "folder", "tree", "worktree"].map(str::to_owned);
        assert_eq!(names, BTreeSet::from(made), "after {after}");
        for file in ["file", "tree/deep/file"] {
            assert_eq!(std::fs::read_to_string(base.join(file)).expect(file), SECRET, "after {after}");
        }
    }
}

/// Creates the files and folders that are overwritten, moved and removed.
fn refill(folder: &Path) {
    std::fs::create_dir_all(folder.join("tree/deep")).expect("folders");
    std::fs::create_dir_all(folder.join("folder")).expect("folder");
    for file in ["file", "tree/deep/file"] {
        std::fs::write(folder.join(file), SECRET).expect("file");
    }
}

fn changes() -> Vec<(&'static str, FsRequest)> {
    let text = str::to_owned;
    let how = WriteMode { create: true, exclusive: false, truncate: true, append: false };
    let write =
        |path: &str, how| FsRequest::Write { path: text(path), data: b"changed".to_vec(), how, mode: 0o644 };
    let append = WriteMode { create: false, truncate: false, append: true, ..how };
    let make = |path: &str, recursive| FsRequest::MakeDir { path: text(path), recursive, mode: 0o755 };
    let rename = |from: &str, to: &str| FsRequest::Rename { from: text(from), to: text(to) };
    vec![
        ("writing a new file", write("now/new", how)),
        ("overwriting a file", write("now/file", how)),
        ("appending to a file", write("now/file", append)),
        ("making a folder", make("now/made", false)),
        ("making folders", make("now/made/deep/er", true)),
        ("moving in", rename("inside/file", "now/moved")),
        ("moving over", rename("inside/file", "now/tree/deep/file")),
        ("moving out", rename("now/file", "taken")),
        ("moving a folder out", rename("now/tree", "taken-tree")),
        ("copying in", FsRequest::Copy { from: text("inside/file"), to: text("now/copy"), exclusive: false }),
        ("removing a file", FsRequest::RemoveFile { path: text("now/file") }),
        ("removing a folder", FsRequest::RemoveDir { path: text("now/folder") }),
        ("removing a tree", FsRequest::Remove { path: text("now/tree"), recursive: true, force: false }),
    ]
}

#[test]
fn nothing_outside_is_changed_while_a_link_is_exchanged() {
    let fixture = Fixture::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Stops the other thread even if a check below fails.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stop = Stop(&stop);
        scope.spawn(|| fixture.exchange(&stop));
        for (what, request) in changes() {
            let (mut done, mut refused) = (0, 0);
            while done < OFTEN || refused < OFTEN {
                match fixture.request(request.clone()) {
                    Ok(_) => done += 1,
                    Err(error) => {
                        let code = error.code.as_str();
                        assert!(["EACCES", "EAGAIN"].contains(&code), "{what}: {error:?}");
                        refused += 1;
                    }
                }
                clean(&fixture);
            }
            fixture.assert_untouched(what);
        }
    });
}

/// Restores the inside to its state before a change.
fn clean(fixture: &Fixture) {
    for made in ["inside/new", "inside/moved", "inside/copy", "taken"] {
        let _ = std::fs::remove_file(fixture.path(made));
    }
    for made in ["inside/made", "taken-tree"] {
        let _ = std::fs::remove_dir_all(fixture.path(made));
    }
    refill(&fixture.path("inside"));
}
