//! An isolated environment for a test: a folder, environment variables, and the binary, without access to the machine's own
//! daemon, home or settings.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vm_system_sandbox::pidfd::PidFd;

/// Longest wait of a test for an expected event.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The environment of a test.
pub(crate) struct TestEnvironment {
    dir: tempfile::TempDir,
}

impl TestEnvironment {
    pub(crate) fn new() -> Self {
        let env = Self { dir: tempfile::tempdir().unwrap() };
        // A daemon of root becomes another user.
        std::fs::set_permissions(env.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["home", "work"] {
            std::fs::create_dir(env.path(folder)).unwrap();
        }
        env
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The current folder of commands.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("state").join("control.sock")
    }

    /// Writes a file into the current folder of commands.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A program in this environment.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let bin = binary();
        let mut command = Command::new(program);
        let path = std::env::join_paths([bin.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")]);
        command
            .env_clear()
            .env("PATH", path.unwrap())
            .env("HOME", self.path("home"))
            .env("VM_SYSTEM_SOCKET", self.socket())
            .env("VM_SYSTEM_USER", "65534")
            .env("LANG", "C.UTF-8")
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The binary with arguments.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(binary());
        command.args(args);
        command
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        Run::from_output(&self.command(args).output().unwrap())
    }

    /// Runs the binary to its end with something on stdin.
    #[track_caller]
    pub(crate) fn run_with_stdin<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> Run {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        Run::from_output(&child.wait_with_output().unwrap())
    }

    /// Starts a daemon with this environment's state directory; it is ready.
    pub(crate) fn serve(&self) -> Daemon {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, args: &[&str]) -> Daemon {
        static DAEMONS: AtomicU32 = AtomicU32::new(0);
        let place = self.path(&format!("notify-{}", DAEMONS.fetch_add(1, Ordering::Relaxed)));
        let notify = UnixDatagram::bind(&place).unwrap();
        notify.set_read_timeout(Some(DEADLINE)).unwrap();
        let log = std::fs::File::create(self.path("log")).unwrap();
        let child = self
            .command(["serve", "--durability", "normal", "--state-dir"])
            .arg(self.path("state"))
            .args(["--root-files"])
            .args(args)
            .env("NOTIFY_SOCKET", place)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut daemon = Daemon { child, notify, log: self.path("log") };
        let notice = daemon.next_notice();
        assert_eq!(notice, "READY=1", "{}", daemon.log());
        daemon
    }

    /// Creates a session of a new template with `fs`; returns its id.
    #[track_caller]
    pub(crate) fn session(&self) -> String {
        self.session_of(&[])
    }

    #[track_caller]
    pub(crate) fn session_of(&self, template_args: &[&str]) -> String {
        let name = format!("t{}", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
        let mut create = vec!["-q", "template", "create", "--name", &name, "--module", "fs"];
        create.extend(template_args);
        let template = self.run(create).ok();
        let work = self.work();
        let args = ["-q", "session", "create", "--workspace-id", "w", "--base-commit", "c", "--template-id"];
        let session = Run::from_output(
            &self.command(args).arg(template.trim()).arg("--worktree-path").arg(work).output().unwrap(),
        );
        session.ok().trim().to_owned()
    }
}

/// The binary, which cargo builds with the tests of its package. Not by `CARGO_BIN_EXE_…`: a variable with a hyphen does
/// not survive compiler wrappers that are shell scripts.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).expect("target/<profile>/deps/<test>").join("vm-system")
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn from_output(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Stdout of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// Stderr of a command that must have failed with this exit code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stderr
    }
}

/// A daemon; stopped when it goes out of scope.
pub(crate) struct Daemon {
    child: Child,
    notify: UnixDatagram,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The daemon's next notification to the service manager.
    pub(crate) fn next_notice(&mut self) -> String {
        let mut buffer = [0; 256];
        match self.notify.recv(&mut buffer) {
            Ok(read) => String::from_utf8_lossy(&buffer[..read]).into_owned(),
            Err(error) => panic!("no notice: {error}\n{}", self.log()),
        }
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        signal_child(&self.child, signal);
    }

    /// Waits for the exit.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(nix::sys::signal::Signal::SIGTERM);
            self.wait();
        }
        if std::thread::panicking() {
            eprintln!("the daemon's log:\n{}", self.log());
        }
    }
}

pub(crate) fn signal_child(child: &Child, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

/// Waits for a child's exit, and kills it at the deadline.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let ended = ends(&PidFd::open(child.id()).unwrap());
    if !ended {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    assert!(ended, "it did not end");
    status
}

/// Waits until a process has ended; false if it still runs at the deadline.
pub(crate) fn ends(process: &PidFd) -> bool {
    let until = Instant::now() + DEADLINE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap();
        match poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(found) => return found > 0,
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}
