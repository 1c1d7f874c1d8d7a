//! A small file system for the state directory of a daemon, which a test fills and frees.

use crate::skip;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Enough for the state of every test that uses one.
const INODES: u32 = 4_096;

/// Unmounted when it is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts an empty one over a folder; none, and a skipped test, where mounting is not permitted.
    pub fn mount(over: &Path, megabytes: u32) -> Option<Self> {
        let size = format!("mode=0755,size={megabytes}m,nr_inodes={INODES}");
        let options = Some(size.as_str());
        if mount(Some("tmpfs"), over, Some("tmpfs"), MsFlags::empty(), options).is_err() {
            skip("mount", "mounting a small file system is not permitted here");
            return None;
        }
        Some(Self { path: over.to_owned() })
    }

    /// Nothing more can be written to it until [`Self::free`].
    pub fn fill(&self) {
        let mut ballast = File::create(self.ballast()).expect("an empty file needs no block");
        for piece in [vec![0; 65_536], vec![0; 4_096]] {
            let full = loop {
                if let Err(error) = ballast.write_all(&piece) {
                    break error;
                }
            };
            assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
        }
    }

    /// No file can be made on it until [`Self::free`].
    pub fn use_up_inodes(&self) {
        let folder = self.inodes();
        std::fs::create_dir(&folder).expect("an inode for the folder");
        let full = (0..INODES).find_map(|name| File::create(folder.join(name.to_string())).err());
        assert_eq!(full.expect("fewer are free").kind(), io::ErrorKind::StorageFull);
    }

    /// Gives the disk's space back.
    pub fn free(&self) {
        std::fs::remove_file(self.ballast()).expect("it is filled");
        let _ = std::fs::remove_dir_all(self.inodes());
    }

    fn inodes(&self) -> PathBuf {
        self.path.join("inodes")
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: after a failed test files are open.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
    }
}
