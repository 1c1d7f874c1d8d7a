//! One command with a clean environment, a user and a deadline.

use crate::PATIENCE;
use crate::place::{TestDir, UNPRIVILEGED_UID, User};
use crate::program;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use vm_system_sandbox::pidfd::PidFd;

/// Exit code and output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Standard output of a command that must succeed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// Standard error of a command that must fail with this code.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stderr
    }
}

/// A command in a test's folder: with its user, its home, the worktree as current folder, and no other environment.
pub fn command(place: &TestDir, program: &str) -> Command {
    command_of(place, program::path(program, place.user))
}

/// As [`command`], for a program by its path.
pub fn command_of(place: &TestDir, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", place.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("NO_COLOR", "1")
        .env("VM_SYSTEM_SOCKET", place.socket())
        .env("VM_SYSTEM_USER", UNPRIVILEGED_UID.to_string())
        .current_dir(place.worktree())
        .stdin(Stdio::null());
    if place.user == User::Unprivileged {
        command.uid(UNPRIVILEGED_UID).gid(UNPRIVILEGED_UID);
    }
    command
}

/// One command of the CLI.
pub fn vm_system(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    run(command(place, program::PRODUCT).args(arguments), "")
}

/// Runs a command to its end, with `input` on its stdin.
pub fn run(command: &mut Command, input: &str) -> CommandOutput {
    let what = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let stdin = child.stdin.take();
    if let Some(mut stdin) = stdin {
        // Fails if the command does not read its stdin: no failure of the test.
        let _ = stdin.write_all(input.as_bytes());
    }
    let stdout = gather(child.stdout.take());
    let stderr = gather(child.stderr.take());
    let code = wait(&mut child, PATIENCE).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("{what} does not end");
    });
    CommandOutput { code, stdout: stdout.join().expect("reader"), stderr: stderr.join().expect("reader") }
}

fn gather(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).expect("readable");
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end of a child; its exit code, or `None` if it still runs at the deadline.
pub fn wait(child: &mut Child, deadline: Duration) -> Option<Option<i32>> {
    let pidfd = PidFd::open(child.id()).expect("our own child");
    readable(&pidfd, deadline).then(|| child.wait().expect("ended").code())
}

/// The lines of a stream, read on a thread: a test waits for each of them no longer than [`PATIENCE`].
pub fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // Fails once the test no longer reads.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Reads up to a line that contains this text, and returns that line.
#[track_caller]
pub fn line_with(lines: &Receiver<String>, text: &str) -> String {
    loop {
        let line =
            lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{text:?} never comes: {error}"));
        if line.contains(text) {
            return line;
        }
    }
}

/// Waits until a process has ended; false if it still runs at the deadline.
pub fn readable(pidfd: &PidFd, deadline: Duration) -> bool {
    let until = Instant::now() + deadline;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Arguments from any kind of text.
pub fn arguments<S: AsRef<OsStr>>(list: &[S]) -> impl Iterator<Item = &OsStr> {
    list.iter().map(AsRef::as_ref)
}
