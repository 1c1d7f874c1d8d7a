//! Files that only their owner may read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Writes a file of mode 0600 in place of what has its name. After a crash or power loss it has the old content or the new one; what an
/// interrupted write leaves (the name with `.new` behind it) goes with the next.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Follows no link: it is created.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::replace;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn links_and_what_was_left_are_replaced_and_the_file_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("key"), folder.path().join("other"));
        std::fs::write(&other, "untouched").expect("written");
        symlink(&other, &path).expect("a link");
        symlink(&other, folder.path().join("key.new")).expect("a link");
        replace(&path, b"secret").expect("replaced");
        assert_eq!(std::fs::read(&path).expect("read"), b"secret");
        assert_eq!(std::fs::symlink_metadata(&path).expect("a file").mode() & 0o177_777, 0o100_600);
        assert_eq!(std::fs::read(&other).expect("read"), b"untouched");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}
