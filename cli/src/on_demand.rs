//! A user's daemon that is started on demand, once for several concurrent clients.
//!
//! A lock file next to the socket decides which client starts the daemon; the others wait for the lock and find it running. The
//! daemon leaves the terminal and process group of its starter, logs to its state directory, and exits when it is idle.

use crate::args::SandboxArg;
use crate::client::Connection;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::rights::FileAction;
use crate::target::DaemonTarget;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vm_system_spawn::{FULL_HINT, is_full};

/// Time within which the daemon must be reachable.
const PATIENCE: Duration = Duration::from_mins(1);
/// Interval between attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);
/// Log size above which the log is truncated (bytes).
const LOG_BYTES: u64 = 4 << 20;
/// Length of the log's end that an error shows (bytes).
const LOG_TAIL: u64 = 2_000;

/// The options with which the daemon is started.
#[derive(Debug)]
pub(crate) struct Starter {
    socket: PathBuf,
    state_dir: PathBuf,
    idle_exit: u32,
    sandbox: SandboxArg,
}

impl Starter {
    /// The daemon of this user, or the one whose state directory the flags name; none if there is no path for its state. Where only
    /// a socket is named, its daemon has a state directory that is not known here: another daemon must not take that socket.
    pub(crate) fn new(
        context: &Context,
        idle_exit: u32,
        sandbox: SandboxArg,
    ) -> Result<Option<Self>, CliError> {
        let (environment, global) = (&context.environment, &context.global);
        if global.state_dir.is_none() && environment.names_socket(global.socket.as_deref()) {
            return Ok(None);
        }
        let state_dir = global.state_dir.clone().or_else(|| environment.state_dir());
        let socket = environment.socket_to_serve(global.socket.as_deref(), global.state_dir.as_deref());
        let (Some(socket), Some(state_dir)) = (socket, state_dir) else { return Ok(None) };
        let absolute = |path: PathBuf| {
            std::path::absolute(&path)
                .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
        };
        Ok(Some(Self { socket: absolute(socket)?, state_dir: absolute(state_dir)?, idle_exit, sandbox }))
    }

    /// Starts the daemon, unless another process has done so meanwhile, and waits until it is ready. Blocks.
    fn start(&self, until: Instant) -> Result<(), CliError> {
        let cannot = |what: &Path, error: &io::Error| not_started("a daemon", what, error);
        for folder in self.socket.parent().into_iter().chain([self.state_dir.as_path()]) {
            if !folder.is_dir() {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(|error| cannot(folder, &error))?;
            }
        }
        let lock = self.socket.with_extension("start");
        let file = open_private(File::options().write(true).create(true).truncate(false), &lock);
        let file = file.map_err(|error| cannot(&lock, &error))?;
        let _lock = lock_until(file, until).map_err(|error| cannot(&lock, &error))?;
        if UnixStream::connect(&self.socket).is_ok() {
            return Ok(());
        }
        let serve = self.command().map_err(|error| cannot(Path::new("vm-system"), &error))?;
        let its_log = || format!("its log is {}", log_file(&self.state_dir).display());
        match launch(serve, &self.state_dir, until) {
            Ok(_) => Ok(()),
            // Another daemon has the socket, or is about to exit: tries again.
            Err(LaunchError::Exited(status, _)) if status.code() == Some(i32::from(exit::BUSY)) => {
                std::thread::sleep(PAUSE);
                Ok(())
            }
            Err(LaunchError::Exited(status, written)) => {
                let message = format!("a daemon did not start ({status}): {written}");
                Err(CliError::new(exit::INTERNAL, message).with_hint(its_log()))
            }
            Err(LaunchError::Io(what, error)) => Err(cannot(&what, &error)),
            Err(LaunchError::Late) => {
                let message = format!("a daemon at {} does not become ready", self.socket.display());
                Err(CliError::new(exit::BUSY, message).with_hint(its_log()))
            }
        }
    }

    fn command(&self) -> io::Result<Command> {
        let mut serve = Command::new(std::env::current_exe()?);
        serve.arg("serve").arg("--background").arg("--socket").arg(&self.socket);
        serve.arg("--state-dir").arg(&self.state_dir);
        serve.arg("--idle-exit").arg(self.idle_exit.to_string());
        // Of root it is a person's own daemon. Without effect for others.
        serve.arg("--root-files");
        if self.sandbox == SandboxArg::NoUserns {
            serve.arg("--sandbox").arg("no-userns");
        }
        Ok(serve)
    }
}

/// A daemon in the background was not started, because of an error at this file, folder or program.
pub(crate) fn not_started(which: &str, what: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot start {which}: {}: {error}", what.display());
    let failed = CliError::new(exit::of_daemon_io(error), message).with_right(what, FileAction::Write, error);
    if is_full(error) { failed.with_hint(FULL_HINT) } else { failed }
}

/// Why a daemon in the background did not become ready.
#[derive(Debug)]
pub(crate) enum LaunchError {
    /// It was not started.
    Io(PathBuf, io::Error),
    /// It exited; with what it wrote to its log.
    Exited(ExitStatus, String),
    /// It runs and is not ready in time.
    Late,
}

/// The log of a daemon in the background.
pub(crate) fn log_file(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.log")
}

/// Starts a daemon in the background and waits until it is ready; returns its pid. It writes to the log file of its state
/// directory. Blocks.
pub(crate) fn launch(mut serve: Command, state_dir: &Path, until: Instant) -> Result<u32, LaunchError> {
    let failed = |what: &Path| {
        let what = what.to_owned();
        move |error| LaunchError::Io(what, error)
    };
    let folder = tempfile::tempdir().map_err(failed(Path::new("a temporary folder")))?;
    let notify = folder.path().join("notify");
    let ready = UnixDatagram::bind(&notify).map_err(failed(&notify))?;
    ready.set_read_timeout(Some(PAUSE)).map_err(failed(&notify))?;
    let log = log_file(state_dir);
    let (output, begin) = open_log(&log).map_err(failed(&log))?;
    let own = output.try_clone().map_err(failed(&log))?;
    serve.env("NOTIFY_SOCKET", &notify).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    let mut child = serve.spawn().map_err(failed(Path::new("vm-system")))?;
    let result = wait(&mut child, &ready, (&own, begin), until);
    // Reaps the child when it exits, as long as this process runs.
    std::thread::spawn(move || child.wait());
    result
}

/// Waits until the daemon reports that it is ready, or exits.
fn wait(
    child: &mut Child,
    ready: &UnixDatagram,
    (log, begin): (&File, u64),
    until: Instant,
) -> Result<u32, LaunchError> {
    let mut message = [0; 256];
    while Instant::now() < until {
        if let Ok(len) = ready.recv(&mut message)
            && message[..len].starts_with(b"READY=1")
        {
            return Ok(child.id());
        }
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Err(LaunchError::Exited(status, written(log, begin))),
            Err(error) => return Err(LaunchError::Io(PathBuf::from("the daemon's process"), error)),
        }
    }
    Err(LaunchError::Late)
}

/// Opens a log, which begins anew if it is long, and returns its length.
fn open_log(path: &Path) -> io::Result<(File, u64)> {
    let file = open_private(File::options().read(true).create(true).append(true), path)?;
    let len = file.metadata()?.len();
    let begins_anew = len > LOG_BYTES;
    if begins_anew {
        file.set_len(0)?;
    }
    Ok((file, if begins_anew { 0 } else { len }))
}

/// Opens a file for this user and the daemon alone. Its folder may belong to the daemon's user, who must not choose another file
/// for root to write: neither by a link nor by a second name, and nothing that blocks.
fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let refused =
        || io::Error::new(io::ErrorKind::InvalidInput, "it is a link or no regular file; remove it");
    let file = options.mode(0o600).custom_flags(flags.bits()).open(path).map_err(|error| {
        if matches!(error.raw_os_error(), Some(nix::libc::ELOOP | nix::libc::ENXIO)) {
            refused()
        } else {
            error
        }
    })?;
    let found = file.metadata()?;
    if found.is_file() && found.nlink() == 1 { Ok(file) } else { Err(refused()) }
}

/// Takes a lock; an error if another process holds it for too long.
fn lock_until(mut file: File, until: Instant) -> io::Result<Flock<File>> {
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((returned, Errno::EWOULDBLOCK)) if Instant::now() < until => file = returned,
            Err((_, Errno::EWOULDBLOCK)) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds it"));
            }
            Err((_, errno)) => return Err(errno.into()),
        }
        std::thread::sleep(PAUSE);
    }
}

/// The end of what was written to a log after its first `begin` bytes.
fn written(log: &File, begin: u64) -> String {
    let read = || {
        let mut file = log.try_clone()?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(len.saturating_sub(LOG_TAIL))))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default()
}

/// Connects to a supervisor; starts one if none is reachable.
pub(crate) async fn connect(target: &DaemonTarget, starter: &Arc<Starter>) -> Result<Connection, CliError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let error = match Connection::open(target).await {
            Ok(connection) => return Ok(connection),
            Err(error) if matches!(error.exit_code(), exit::NO_DAEMON | exit::BUSY) => error,
            Err(error) => return Err(error),
        };
        if Instant::now() >= until {
            return Err(error);
        }
        if error.exit_code() == exit::BUSY {
            // Another process listens there, so that no daemon is started.
            tokio::time::sleep(PAUSE).await;
        }
        let starter = Arc::clone(starter);
        let started = tokio::task::spawn_blocking(move || starter.start(until)).await;
        started.map_err(|error| CliError::internal(format!("starting a daemon failed: {error}")))??;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_log_that_is_a_link_a_second_name_or_a_pipe_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (other, log) = (folder.path().join("other"), folder.path().join("daemon.log"));
        std::fs::write(&other, "kept").expect("a file");
        symlink(&other, &log).expect("a link");
        assert!(open_log(&log).is_err(), "a link");
        std::fs::remove_file(&log).expect("ours");
        symlink(folder.path().join("absent"), &log).expect("a link");
        assert!(open_log(&log).is_err() && !folder.path().join("absent").exists(), "a link to nothing");
        std::fs::remove_file(&log).expect("ours");
        std::fs::hard_link(&other, &log).expect("a second name");
        assert!(open_log(&log).is_err(), "a second name");
        std::fs::remove_file(&log).expect("ours");
        nix::unistd::mkfifo(&log, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert!(open_log(&log).is_err(), "a pipe");
        std::fs::remove_file(&log).expect("ours");
        assert_eq!(std::fs::read_to_string(&other).expect("kept"), "kept");
        assert_eq!(open_log(&log).expect("a new log").1, 0);
    }

    #[test]
    fn a_full_file_system_is_named_with_what_it_may_lack() {
        let full = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        let error = format!("{:?}", not_started("the daemon", Path::new("/s/daemon.log"), &full));
        assert!(error.contains("/s/daemon.log") && error.contains("df -i"), "{error}");
    }

    #[test]
    fn a_long_log_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("daemon.log");
        std::fs::write(&log, vec![b'x'; LOG_BYTES as usize + 1]).expect("a file");
        let (file, begin) = open_log(&log).expect("ours");
        assert_eq!((file.metadata().expect("open").len(), begin), (0, 0));
    }

    #[test]
    fn a_lock_that_another_process_holds_is_waited_for_until_the_deadline() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.start");
        let open =
            || open_private(File::options().write(true).create(true).truncate(false), &path).expect("ours");
        let held = lock_until(open(), Instant::now()).expect("free");
        assert_eq!(lock_until(open(), Instant::now()).expect_err("held").kind(), io::ErrorKind::TimedOut);
        drop(held);
        assert!(lock_until(open(), Instant::now()).is_ok());
    }
}
