//! Where a keeper waits for another supervisor: a socket, and the token that its supervisor must present, in a folder that only the
//! daemon's user can enter. A worker reaches neither: it sees no file and has no call to connect.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vm_system_sandbox::socket;

const SOCKET: &str = "sock";
const TOKEN: &str = "token";

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
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(address.file(TOKEN))?;
        file.write_all(&token)?;
        Ok((address, token))
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
        socket::bind_at(&self.file(SOCKET)).inspect_err(|_| self.remove())
    }

    pub(super) fn connect(&self) -> io::Result<OwnedFd> {
        socket::connect_to(&self.file(SOCKET))
    }

    pub(super) fn token(&self) -> io::Result<[u8; 32]> {
        let mut token = [0; 32];
        fs::File::open(self.file(TOKEN))?.read_exact(&mut token)?;
        Ok(token)
    }

    /// Removes the files; what is left is removed by the next supervisor.
    pub(super) fn remove(&self) {
        for extension in [SOCKET, TOKEN] {
            let _ = fs::remove_file(self.file(extension));
        }
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }
}
