//! Where a keeper waits for another supervisor: a socket, and the token that its supervisor must present, in a folder that only the
//! daemon's user can enter. A worker reaches neither: it sees no file and has no call to connect.
//!
//! The folder holds spare files, with which an address can be made where the file system has no space and no inode left: a daemon
//! that cannot make one cannot start, and the sessions of the one before it would end.

use super::error::is_full;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vm_system_sandbox::socket;

const SOCKET: &str = "sock";
const TOKEN: &str = "token";
const SPARE: &str = "spare";
/// A daemon that starts makes two addresses, and the next one gives them back when its keepers have ended. Each takes a file with space
/// for the token, and an inode for the socket.
const SPARES: usize = 8;

/// The files of one keeper.
#[derive(Debug, Clone)]
pub(super) struct KeeperAddress {
    /// Without its extension.
    path: PathBuf,
}

impl KeeperAddress {
    /// Chooses an address and stores a new token.
    pub(super) fn new(folder: &Path) -> io::Result<(Self, [u8; 32])> {
        let mut token = [0; 32];
        getrandom::fill(&mut token)?;
        let number = getrandom::u64()?;
        let address = Self { path: folder.join(format!("{number:016x}")) };
        match write_new(&address.file(TOKEN), &token) {
            Ok(()) => {
                for spare in spares(folder) {
                    // Without space for it there may be others.
                    let _ = write_new(&spare, &[0; 32]);
                }
            }
            Err(error) if is_full(&error) => address
                .use_spare(folder, &token)
                .ok_or_else(|| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?,
            Err(error) => return Err(error),
        }
        Ok((address, token))
    }

    /// Stores the token in a spare file, which has its space: nobody else can take that.
    fn use_spare(&self, folder: &Path, token: &[u8; 32]) -> Option<()> {
        spares(folder).find_map(|spare| {
            let mut file = fs::OpenOptions::new().write(true).open(&spare).ok()?;
            file.write_all(token).and_then(|()| fs::rename(&spare, self.file(TOKEN))).ok()
        })
    }

    /// The addresses that are in a folder.
    pub(super) fn all(folder: &Path) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == TOKEN) {
                all.push(Self { path: path.with_extension("") });
            }
        }
        Ok(all)
    }

    pub(super) fn bind(&self) -> io::Result<OwnedFd> {
        let path = self.file(SOCKET);
        let bound = socket::bind_at(&path).or_else(|error| {
            let folder = path.parent().filter(|_| is_full(&error));
            match folder.and_then(|folder| spares(folder).find(|spare| fs::remove_file(spare).is_ok())) {
                // The socket takes the inode of a spare, since a full disk may have none left.
                Some(_) => socket::bind_at(&path),
                None => Err(error),
            }
        });
        bound.inspect_err(|_| self.remove())
    }

    pub(super) fn connect(&self) -> io::Result<OwnedFd> {
        socket::connect_to(&self.file(SOCKET))
    }

    pub(super) fn token(&self) -> io::Result<[u8; 32]> {
        let mut token = [0; 32];
        fs::File::open(self.file(TOKEN))?.read_exact(&mut token)?;
        Ok(token)
    }

    /// Removes the files; what is left is removed by the next supervisor. The token's becomes a spare if one is missing.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(self.file(SOCKET));
        let token = self.file(TOKEN);
        let missing = token.parent().and_then(|folder| spares(folder).find(|spare| !spare.exists()));
        let _ = match missing {
            Some(spare) => fs::rename(&token, spare),
            None => fs::remove_file(&token),
        };
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }
}

/// The paths of the spare files.
fn spares(folder: &Path) -> impl Iterator<Item = PathBuf> {
    (0..SPARES).map(|number| folder.join(number.to_string()).with_extension(SPARE))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}
