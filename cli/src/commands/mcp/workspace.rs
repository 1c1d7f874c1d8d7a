//! The data of an agent's working folder, in its subfolder `.vm-system`. Read and written with the agent's rights; symbolic
//! links in place of that subfolder or its files are never followed, because the working folder may be an untrusted checkout.

use crate::commands::mcp::files::text_of;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use vm_system_api::mcp::FileRefusal;

const FOLDER: &str = ".vm-system";

/// The data of one working folder.
#[derive(Debug)]
pub(super) struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    /// The data of `folder`. The subfolder is created when the first file is stored.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The text of a file of at most `most` bytes; `None` if it does not exist.
    pub(super) fn kept(&self, name: &str, most: usize) -> Result<Option<String>, FileRefusal> {
        let refused = |error: io::Error| refusal(&self.named(name), &error);
        let data = match self.data(false) {
            Ok(data) => data,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(refused(error.into())),
        };
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        match openat(&data, name, flags, Mode::empty()) {
            Ok(file) => text_of(File::from(file), &self.named(name), most).map(Some),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(refused(error.into())),
        }
    }

    /// Stores a text; the previous one is kept as a backup. Returns the file's path.
    pub(super) fn keep(&self, name: &str, text: &str, most: usize) -> Result<String, FileRefusal> {
        let before = self.kept(name, most)?;
        let refused = |error: io::Error| refusal(&self.named(name), &error);
        let data = self.data(true).map_err(|error| refused(error.into()))?;
        if let Some(before) = before.filter(|before| before != text) {
            write(&data, &format!("{name}.bak"), &before).map_err(refused)?;
        }
        write(&data, name, text).map_err(refused)?;
        Ok(self.named(name))
    }

    fn named(&self, name: &str) -> String {
        self.folder.join(FOLDER).join(name).display().to_string()
    }

    fn data(&self, make: bool) -> Result<OwnedFd, Errno> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let folder = nix::fcntl::open(&self.folder, flags, Mode::empty())?;
        if make {
            match mkdirat(&folder, FOLDER, Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error),
            }
        }
        openat(&folder, FOLDER, flags | OFlag::O_NOFOLLOW, Mode::empty())
    }
}

/// Writes a file atomically.
fn write(data: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let fresh = format!(".{name}.{}", uuid::Uuid::new_v4());
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(data, fresh.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(data.as_fd(), fresh.as_str(), data.as_fd(), name)?));
    if written.is_err() {
        // A leftover temporary file is harmless, so its removal may fail.
        let _ = unlinkat(data, fresh.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    written
}

fn refusal(named: &str, error: &io::Error) -> FileRefusal {
    match Errno::from_raw(error.raw_os_error().unwrap_or_default()) {
        Errno::EACCES | Errno::EPERM | Errno::EROFS => FileRefusal::Denied(named.to_owned()),
        Errno::ELOOP | Errno::ENOTDIR => FileRefusal::Denied(format!("{named} (a link is in its place)")),
        _ => FileRefusal::Unfit(format!("cannot use {named}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_previous_text_is_kept_as_a_backup() {
        let place = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(place.path().to_owned());
        assert_eq!(workspace.kept("a.json", 100), Ok(None));
        let path = workspace.keep("a.json", "one", 100).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        workspace.keep("a.json", "two", 100).unwrap();
        assert_eq!(workspace.kept("a.json", 100), Ok(Some("two".to_owned())));
        assert_eq!(workspace.kept("a.json.bak", 100), Ok(Some("one".to_owned())));
        assert!(matches!(workspace.kept("a.json", 2), Err(FileRefusal::Unfit(_))));
        assert_eq!(std::fs::read_dir(place.path().join(FOLDER)).unwrap().count(), 2);
    }

    #[test]
    fn links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join("a.json"), "secret").unwrap();
        std::os::unix::fs::symlink(other.path(), place.path().join(FOLDER)).unwrap();
        let workspace = Workspace::new(place.path().to_owned());
        assert!(matches!(workspace.kept("a.json", 100), Err(FileRefusal::Denied(_))));
        assert!(matches!(workspace.keep("a.json", "x", 100), Err(FileRefusal::Denied(_))));
        std::fs::remove_file(place.path().join(FOLDER)).unwrap();
        std::fs::create_dir(place.path().join(FOLDER)).unwrap();
        std::os::unix::fs::symlink(other.path().join("a.json"), place.path().join(FOLDER).join("a.json"))
            .unwrap();
        assert!(matches!(workspace.kept("a.json", 100), Err(FileRefusal::Denied(_))));
        assert!(matches!(workspace.keep("a.json", "x", 100), Err(FileRefusal::Denied(_))));
        assert_eq!(std::fs::read_to_string(other.path().join("a.json")).unwrap(), "secret");
    }
}
