//! The folder of a database that ends with its process: private, removed at the end, and swept by a later process if this one was
//! killed. Knows nothing of the content.

use super::error::OpenError;
use super::lock::StoreLock;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the folders' names.
const PREFIX: &str = "vm-system-run-";
/// A folder of this age with a free lock is left over. A younger one may be about to be locked by its process.
const SWEEP_AGE: Duration = Duration::from_mins(1);

/// A folder in `$TMPDIR`, removed when this value is dropped.
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub(super) fn make() -> Result<Self, OpenError> {
        Self::make_in(&std::env::temp_dir(), SWEEP_AGE)
    }

    fn make_in(parent: &Path, sweep_age: Duration) -> Result<Self, OpenError> {
        sweep(parent, sweep_age);
        let path = parent.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| OpenError::NoTemporaryFolder {
            path: parent.to_owned(),
            detail: error.to_string(),
        })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "a temporary folder was not removed");
        }
    }
}

/// Removes the folders of killed processes of the same user. Folders that cannot be read or removed are left to the next process.
fn sweep(parent: &Path, age: Duration) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let ours =
        entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    for path in ours.map(|entry| entry.path()) {
        if is_old_folder_of_ours(&path, age)
            // Held until the folder is deleted: two sweeps do not work on the same folder.
            && let Ok(_lock) = StoreLock::acquire(&path, None)
        {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn is_old_folder_of_ours(path: &Path, age: Duration) -> bool {
    // Without following links: another user may have created one.
    let Ok(found) = std::fs::symlink_metadata(path) else { return false };
    let is_old = found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age));
    found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw() && is_old
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, SWEEP_AGE, StoreLock, TemporaryFolder};
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    #[test]
    fn folder_is_private_and_removed_with_its_value() {
        let parent = tempfile::tempdir().expect("a temporary folder can be made");
        let folder = TemporaryFolder::make_in(parent.path(), SWEEP_AGE).expect("writable");
        let path = folder.path().to_owned();
        std::fs::write(path.join("file"), "x").expect("ours");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folder_of_a_killed_process_is_removed_and_folder_of_a_running_one_is_not() {
        let parent = tempfile::tempdir().expect("a temporary folder can be made");
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).expect("ours");
            std::fs::write(path.join("lock"), "").expect("ours");
            path
        };
        let (left, used, other) =
            (make(&format!("{PREFIX}left")), make(&format!("{PREFIX}used")), make("other"));
        let _lock = StoreLock::acquire(&used, None).expect("the lock is free");
        let young = TemporaryFolder::make_in(parent.path(), SWEEP_AGE).expect("writable");
        assert!(left.exists(), "its process may be about to lock it");
        let _lock_of_young = StoreLock::acquire(young.path(), None).expect("the lock is free");
        let _next = TemporaryFolder::make_in(parent.path(), Duration::ZERO).expect("writable");
        assert_eq!(
            [left, used, other, young.path().to_owned()].map(|path| path.exists()),
            [false, true, true, true]
        );
    }

    #[test]
    fn a_link_with_such_a_name_is_left_alone() {
        let parent = tempfile::tempdir().expect("a temporary folder can be made");
        let target = tempfile::tempdir().expect("a temporary folder can be made");
        std::os::unix::fs::symlink(target.path(), parent.path().join(format!("{PREFIX}link"))).expect("ours");
        let _folder = TemporaryFolder::make_in(parent.path(), Duration::ZERO).expect("writable");
        assert!(target.path().exists());
        assert_eq!(std::fs::read_dir(target.path()).expect("readable").count(), 0, "no lock was made in it");
    }
}
