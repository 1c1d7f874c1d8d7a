//! A user's daemon that is started on demand, once for several concurrent clients.
//!
//! A lock file next to the socket decides which client starts the daemon; the others wait for the lock and find it running. The
//! daemon leaves the terminal and process group of its starter, logs to its state directory, and exits when it is idle.

use crate::args::SandboxArg;
use crate::client::Connection;
use crate::context::Context;
use crate::error::{CliError, exit};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time within which the daemon must be reachable.
const PATIENCE: Duration = Duration::from_mins(1);
/// Interval between attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);
/// Log size above which the log is truncated (bytes).
const LOG_BYTES: u64 = 4 << 20;
/// Length of the log's end that an error shows (bytes).
const LOG_TAIL: u64 = 600;

/// The options with which the daemon is started.
#[derive(Debug)]
pub(crate) struct Starter {
    socket: PathBuf,
    state_dir: PathBuf,
    idle_exit: u32,
    sandbox: SandboxArg,
}

impl Starter {
    /// The daemon of this user, or the one that the flags name; none if there is no path for its state.
    pub(crate) fn new(
        context: &Context,
        idle_exit: u32,
        sandbox: SandboxArg,
    ) -> Result<Option<Self>, CliError> {
        let (environment, global) = (&context.environment, &context.global);
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
        let cannot = |what: &Path, error: &dyn std::fmt::Display| {
            CliError::new(exit::INTERNAL, format!("cannot start a daemon: {}: {error}", what.display()))
        };
        for folder in self.socket.parent().into_iter().chain([self.state_dir.as_path()]) {
            if !folder.is_dir() {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(|error| cannot(folder, &error))?;
            }
        }
        let lock = self.socket.with_extension("start");
        let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&lock);
        let file = file.map_err(|error| cannot(&lock, &error))?;
        let _lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| cannot(&lock, &error))?;
        if UnixStream::connect(&self.socket).is_ok() {
            return Ok(());
        }
        let folder = tempfile::tempdir().map_err(|error| cannot(Path::new("a temporary folder"), &error))?;
        let notify = folder.path().join("notify");
        let ready = UnixDatagram::bind(&notify).map_err(|error| cannot(&notify, &error))?;
        ready.set_read_timeout(Some(PAUSE)).map_err(|error| cannot(&notify, &error))?;
        let log = self.state_dir.join("daemon.log");
        let output = open_log(&log).map_err(|error| cannot(&log, &error))?;
        let mut child =
            self.spawn(&notify, output).map_err(|error| cannot(Path::new("vm-system"), &error))?;
        let result = self.wait(&mut child, &ready, &log, until);
        // Reaps the child when it exits, as long as this process runs.
        std::thread::spawn(move || child.wait());
        result
    }

    fn spawn(&self, notify: &Path, log: File) -> io::Result<Child> {
        let mut serve = Command::new(std::env::current_exe()?);
        serve.arg("serve").arg("--detach").arg("--socket").arg(&self.socket);
        serve.arg("--state-dir").arg(&self.state_dir);
        serve.arg("--idle-exit").arg(self.idle_exit.to_string());
        if self.sandbox == SandboxArg::NoUserns {
            serve.arg("--sandbox").arg("no-userns");
        }
        serve.env("NOTIFY_SOCKET", notify).current_dir("/");
        serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()
    }

    /// Waits until the daemon reports that it is ready, or exits.
    fn wait(
        &self,
        child: &mut Child,
        ready: &UnixDatagram,
        log: &Path,
        until: Instant,
    ) -> Result<(), CliError> {
        let mut message = [0; 256];
        while Instant::now() < until {
            if let Ok(len) = ready.recv(&mut message)
                && message[..len].starts_with(b"READY=1")
            {
                return Ok(());
            }
            match child.try_wait() {
                Ok(None) => {}
                // Another daemon has the socket, or is about to exit: tries again.
                Ok(Some(status)) if status.code() == Some(i32::from(exit::BUSY)) => {
                    std::thread::sleep(PAUSE);
                    return Ok(());
                }
                Ok(Some(status)) => {
                    let message = format!("a daemon did not start ({status}): {}", tail(log));
                    return Err(CliError::new(exit::INTERNAL, message)
                        .with_hint(format!("its log is {}", log.display())));
                }
                Err(error) => return Err(CliError::internal(format!("cannot wait for a daemon: {error}"))),
            }
        }
        Err(CliError::new(exit::BUSY, format!("a daemon at {} does not become ready", self.socket.display()))
            .with_hint(format!("its log is {}", log.display())))
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    let begin_anew = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES);
    let mut options = File::options();
    options.create(true).mode(0o600);
    if begin_anew {
        options.write(true).truncate(true)
    } else {
        options.append(true)
    };
    options.open(path)
}

/// The end of a log.
fn tail(path: &Path) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(LOG_TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default()
}

/// Connects to a supervisor; starts one if none is reachable.
pub(crate) async fn connect(places: &[PathBuf], starter: &Arc<Starter>) -> Result<Connection, CliError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let error = match Connection::open(places).await {
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
