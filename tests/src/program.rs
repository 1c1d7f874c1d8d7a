//! Paths of the binaries: beside the test's own, built with it. For a user who cannot read the build folder they are copied
//! once.

use crate::place::User;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use tempfile::TempDir;

/// The product: the binary `vm-system`, under the name that it has in this package.
pub const PRODUCT: &str = "vm-system-under-test";
/// The product with a worker that breaks the protocol.
pub const HOSTILE_WORKER: &str = "hostile-worker";
/// A broker that misbehaves in the way that a file of its worktree names.
pub const HOSTILE_BROKER: &str = "hostile-broker";
/// A files agent that misbehaves in the way that the name of a worktree says.
pub const HOSTILE_FILES_AGENT: &str = "hostile-files-agent";
/// A command of `exec` that tries to get out of its jail.
pub const COMMAND_PROBE: &str = "command-probe";
/// The product on a host that forbids `openat2`, if one of these files exists.
pub const WITHOUT_OPENAT2: &str = "without-openat2";
/// The product on a host that refuses user namespaces to users.
pub const WITHOUT_USER_NAMESPACES: &str = "without-user-namespaces";
/// File in the current folder: the error number of `openat2` for all processes.
pub const HOST_REFUSES: &str = "host-refuses";
/// File in the worktree: the error number of `openat2` for brokers.
pub const BROKER_REFUSES: &str = "broker-refuses";

/// A crowd of connections that one user holds.
pub const CROWD: &str = "crowd";

/// The path of one of this package's binaries that `user` can execute.
pub fn path(name: &str, user: User) -> PathBuf {
    let test = std::env::current_exe().expect("path of the test");
    // A test is in target/<profile>/deps, a benchmark in target/<profile>.
    let folder = test.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).expect("target/<profile>");
    let program = folder.join(name);
    assert!(program.exists(), "{} is not built: run the whole package's tests", program.display());
    if user == User::AsStarted || reachable(&program) { program } else { copied(&program, name) }
}

/// The product as another build of it, whose keepers say that they speak this protocol version.
pub fn of_other_build(protocol: u32) -> &'static str {
    static PATCHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let program = path(PRODUCT, User::AsStarted);
    let copy = copied(&program, &format!("speaks-{protocol}"));
    let mut patched = PATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if !patched.contains(&copy) {
        // The linker's note: its owner's name, and the id.
        let mut bytes = std::fs::read(&copy).expect("the copy");
        let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
        let at = bytes.windows(note.len()).position(|window| window == note).expect("a build id");
        bytes[at + note.len()] ^= 0xff;
        std::fs::write(&copy, bytes).expect("the copy");
        patched.push(copy.clone());
    }
    Box::leak(copy.to_string_lossy().into_owned().into_boxed_str())
}

/// Whether all users may reach the file and execute it.
fn reachable(program: &Path) -> bool {
    let may = |path: &Path| path.metadata().is_ok_and(|found| found.permissions().mode() & 0o1 != 0);
    program.ancestors().all(may)
}

fn copied(program: &Path, name: &str) -> PathBuf {
    static COPIES: OnceLock<(TempDir, Mutex<()>)> = OnceLock::new();
    let (folder, once) = COPIES.get_or_init(|| {
        let folder = tempfile::Builder::new().prefix("vm-system-bin-").tempdir().expect("temporary folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        (folder, Mutex::new(()))
    });
    let _once = once.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = folder.path().join(name);
    if !copy.exists() {
        std::fs::copy(program, &copy).expect("copy of the program");
    }
    copy
}
