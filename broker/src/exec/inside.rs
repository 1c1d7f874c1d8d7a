//! Inside the command's namespaces: pid 1 builds the jail, starts the command, waits for it, and reports how it ended.
//! When pid 1 exits, the kernel kills all other processes of the namespace.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OpenHow, openat2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::CString;
use std::io::{PipeWriter, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use vm_system_protocol::broker::{ExecRequest, ExecTerms};
use vm_system_sandbox::beneath;
use vm_system_sandbox::command_root::{self, View};
use vm_system_sandbox::process::{self, ExitStatus, Fork};
use vm_system_sandbox::seccomp::{self, table_command};
use vm_system_sandbox::step::{AtStep as _, JailStep, StepError};
use vm_system_sandbox::{privileges, rlimit};

/// The first variables of every command's environment.
const ENVIRONMENT: &[&str] =
    &["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LANG=C.UTF-8"];

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    Exited(i32),
    Signaled(i32),
}

/// The report of pid 1 before it exits: a kind and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitReport {
    /// The command ran.
    Ended(CommandEnd),
    /// A step of building the jail failed: step and errno.
    Jail(StepError),
    /// The command could not be started: errno.
    Exec(i32),
    /// The folder that the script chose for the command could not be entered: errno.
    Folder(i32),
}

impl ExitReport {
    fn bytes(self) -> [u8; 6] {
        let (kind, step, number) = match self {
            Self::Ended(CommandEnd::Exited(code)) => (0, 0, code),
            Self::Ended(CommandEnd::Signaled(signal)) => (1, 0, signal),
            Self::Jail(StepError { step, errno }) => (2, step as u8, errno),
            Self::Exec(errno) => (3, 0, errno),
            Self::Folder(errno) => (4, 0, errno),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, step, a, b, c, d]
    }

    /// `None`: pid 1 was killed before it reported.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[kind, step, a, b, c, d] = bytes.get(..6)?.first_chunk::<6>()?;
        let number = i32::from_le_bytes([a, b, c, d]);
        Some(match kind {
            0 => Self::Ended(CommandEnd::Exited(number)),
            1 => Self::Ended(CommandEnd::Signaled(number)),
            2 => Self::Jail(StepError { step: JailStep::from_number(step)?, errno: number }),
            4 => Self::Folder(number),
            _ => Self::Exec(number),
        })
    }
}

/// Pid 1. `streams` are the command's input, output and errors.
pub(super) fn run(
    worktree: &OwnedFd,
    request: &ExecRequest,
    terms: &ExecTerms,
    streams: [OwnedFd; 3],
    mut status: PipeWriter,
) -> ! {
    let report = match walls(worktree, request, terms, &status) {
        Err(report) => report,
        Ok(()) => match process::fork() {
            Err(error) => ExitReport::Exec(error.raw_os_error().unwrap_or(libc::EIO)),
            Ok(Fork::Child) => {
                let errno = command(request, terms, &streams);
                let _ = status.write_all(&ExitReport::Exec(errno).bytes());
                process::exit_now(127)
            }
            Ok(Fork::Parent(pid)) => {
                drop(streams);
                match process::wait_for(pid) {
                    Ok(ExitStatus::Exited(code)) => ExitReport::Ended(CommandEnd::Exited(code)),
                    Ok(ExitStatus::Signaled(signal)) => ExitReport::Ended(CommandEnd::Signaled(signal)),
                    Err(error) => ExitReport::Exec(error.raw_os_error().unwrap_or(libc::EIO)),
                }
            }
        },
    };
    let _ = status.write_all(&report.bytes());
    process::exit_now(0)
}

fn walls(
    worktree: &OwnedFd,
    request: &ExecRequest,
    terms: &ExecTerms,
    status: &PipeWriter,
) -> Result<(), ExitReport> {
    let view = match (terms.read, terms.write) {
        (false, _) => View::Nothing,
        (true, false) => View::Read,
        (true, true) => View::ReadWrite,
    };
    let program = Path::new(&terms.program);
    command_root::build(worktree.as_fd(), view, program).at_step(JailStep::Root).map_err(ExitReport::Jail)?;
    if !request.folder.is_empty() {
        enter(&request.folder).map_err(|errno| ExitReport::Folder(errno as i32))?;
    }
    confine(terms, view, status).map_err(ExitReport::Jail)
}

/// Enters a folder of the worktree, which is the working directory: as for files of `fs`, no step of the path leaves it.
fn enter(folder: &str) -> nix::Result<()> {
    let how = OpenHow::new().flags(beneath::FOLDER).resolve(beneath::beneath_only(true));
    nix::unistd::fchdir(openat2(AT_FDCWD, folder, how)?)
}

fn confine(terms: &ExecTerms, view: View, status: &PipeWriter) -> Result<(), StepError> {
    let program = Path::new(&terms.program);
    let seconds = u64::from(terms.timeout_ms).div_ceil(1_000) + 1;
    rlimit::command(terms.memory_bytes, u64::from(terms.processes), seconds).at_step(JailStep::Rlimits)?;
    // Before Landlock, which needs `no_new_privs`: `drop_all` sets it.
    privileges::drop_all().at_step(JailStep::Privileges)?;
    // In force where the kernel has it, as `ops doctor` reports.
    command_root::restrict(view, program).at_step(JailStep::Landlock)?;
    // Last: a change of credentials clears the death signal.
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).at_step(JailStep::Signals)?;
    // The parent may have exited before the line above; then nothing else would end this process.
    if is_read(status).at_step(JailStep::Signals)? {
        Ok(())
    } else {
        Err(Errno::EPIPE).at_step(JailStep::Signals)
    }
}

/// Whether the other end is still open.
fn is_read(pipe: &impl AsFd) -> nix::Result<bool> {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO)?;
    Ok(!polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR)))
}

/// Executes the command; returns the errno if that fails.
fn command(request: &ExecRequest, terms: &ExecTerms, streams: &[OwnedFd; 3]) -> i32 {
    let text = |text: &str| CString::new(text).map_err(|_| nix::errno::Errno::EINVAL);
    let prepare = || -> Result<std::convert::Infallible, i32> {
        let raw = |error: nix::errno::Errno| error as i32;
        let code = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        process::settle_for_program().map_err(code)?;
        nix::sys::stat::umask(nix::sys::stat::Mode::S_IWGRP | nix::sys::stat::Mode::S_IWOTH);
        nix::unistd::dup2_stdin(&streams[0]).map_err(raw)?;
        nix::unistd::dup2_stdout(&streams[1]).map_err(raw)?;
        nix::unistd::dup2_stderr(&streams[2]).map_err(raw)?;
        let program = text(&terms.program).map_err(raw)?;
        let name = Path::new(&terms.program).file_name().and_then(|name| name.to_str()).unwrap_or("command");
        let arguments = std::iter::once(name).chain(request.arguments.iter().map(String::as_str));
        let arguments = arguments.map(text).collect::<Result<Vec<_>, _>>().map_err(raw)?;
        let requested = request.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let environment = ENVIRONMENT.iter().map(|variable| (*variable).to_owned()).chain(requested);
        let environment =
            environment.map(|variable| text(&variable)).collect::<Result<Vec<_>, _>>().map_err(raw)?;
        seccomp::install_for_program(&table_command::rows()).map_err(code)?;
        nix::unistd::execve(&program, &arguments, &environment).map_err(raw)
    };
    match prepare() {
        Err(errno) => errno,
        Ok(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_reading_end_is_detected() {
        let (reader, writer) = std::io::pipe().expect("pipe");
        assert_eq!(is_read(&writer), Ok(true));
        drop(reader);
        assert_eq!(is_read(&writer), Ok(false));
    }

    #[test]
    fn exit_reports_are_unchanged_by_encoding_and_decoding() {
        for status in [
            ExitReport::Ended(CommandEnd::Exited(3)),
            ExitReport::Ended(CommandEnd::Signaled(9)),
            ExitReport::Jail(StepError { step: JailStep::Root, errno: 1 }),
            ExitReport::Folder(18),
            ExitReport::Exec(2),
        ] {
            assert_eq!(ExitReport::from_bytes(&status.bytes()), Some(status));
        }
        assert_eq!(ExitReport::from_bytes(&[]), None);
        assert_eq!(ExitReport::from_bytes(&[2, 200, 0, 0, 0, 0]), None);
    }
}
