//! Supervision of a running command: writes its input, keeps its output up to the cap, and kills all its processes at the
//! deadline, at too much output, or when the supervisor closes the channel.

use super::inside::{CommandEnd, ExitReport};
use super::{Started, reply};
use crate::channel::SupervisorChannel;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use vm_system_protocol::broker::{ExecReply, ExecRequest, ExecTerms};
use vm_system_sandbox::process;

/// Size of one read (bytes).
const PIECE_BYTES: usize = 64 * 1024;
/// Time after the command's end for the kernel to kill its other processes and to close the pipes.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    #[error(transparent)]
    Jail(vm_system_sandbox::step::StepError),
    #[error("the operator's program cannot be started: {}", io::Error::from_raw_os_error(*.0))]
    Exec(i32),
    /// The folder that the script chose.
    #[error("the folder of the option `cwd`: {}", .0.desc())]
    Folder(Errno),
    #[error("the command cannot be supervised: {0}")]
    Io(#[from] io::Error),
    #[error("the supervisor closed the channel")]
    Abandoned,
}

impl From<Errno> for WatchError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// An output pipe of the command, or the pipe of pid 1's report.
struct Stream<T> {
    pipe: Option<T>,
    kept: Vec<u8>,
    most: usize,
}

impl<T: Read> Stream<T> {
    fn new(pipe: T, most: usize) -> Self {
        Self { pipe: Some(pipe), kept: Vec::new(), most }
    }

    /// Reads the available bytes; `false`: more than the cap.
    fn read(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        let Some(pipe) = &mut self.pipe else { return Ok(true) };
        let read = pipe.read(piece)?;
        if read == 0 {
            self.pipe = None;
        }
        let capacity = self.most - self.kept.len();
        self.kept.extend_from_slice(&piece[..read.min(capacity)]);
        Ok(read <= capacity)
    }
}

/// Supervises a command until all its processes have exited.
pub(super) fn supervise(
    channel: &SupervisorChannel,
    started: Started,
    request: &ExecRequest,
    terms: &ExecTerms,
) -> Result<ExecReply, WatchError> {
    let Started { pid, input, output, errors, status } = started;
    let most = usize::try_from(terms.max_output_bytes).unwrap_or(usize::MAX);
    fcntl(&input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let mut input = (!request.input.is_empty()).then_some(input);
    let mut left = request.input.as_slice();
    let (mut output, mut errors) = (Stream::new(output, most), Stream::new(errors, most));
    let mut status = Stream::new(status, 6);
    let mut until = Instant::now() + Duration::from_millis(u64::from(terms.timeout_ms));
    let (mut timed_out, mut truncated, mut abandoned, mut killed) = (false, false, false, false);
    let mut piece = vec![0; PIECE_BYTES];
    while output.pipe.is_some() || errors.pipe.is_some() || status.pipe.is_some() {
        let ready = wait(
            channel,
            input.as_ref(),
            [output.pipe.as_ref(), errors.pipe.as_ref(), status.pipe.as_ref()],
            until,
        )?;
        if ready.input {
            left = feed(&mut input, left);
        }
        let mut fits = true;
        for (stream, ready) in
            [(&mut output, ready.output), (&mut errors, ready.errors), (&mut status, ready.status)]
        {
            if ready {
                fits &= stream.read(&mut piece)?;
            }
        }
        truncated |= !fits;
        abandoned |= ready.hung_up;
        let over = Instant::now() >= until;
        if over && killed {
            break;
        }
        timed_out |= over && status.pipe.is_some();
        if (over || truncated || abandoned) && !killed {
            // Pid 1 of the namespace: the kernel then kills all other processes in it.
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
            (killed, until) = (true, Instant::now() + DRAIN_TIME);
        }
        if status.pipe.is_none() && !killed {
            (killed, until) = (true, Instant::now() + DRAIN_TIME);
        }
    }
    process::wait_for(pid)?;
    if abandoned {
        return Err(WatchError::Abandoned);
    }
    let end = match ExitReport::from_bytes(&status.kept) {
        Some(ExitReport::Ended(end)) => end,
        Some(ExitReport::Jail(error)) => return Err(WatchError::Jail(error)),
        Some(ExitReport::Exec(errno)) => return Err(WatchError::Exec(errno)),
        Some(ExitReport::Folder(errno)) => return Err(WatchError::Folder(Errno::from_raw(errno))),
        // Killed, by this process or by the kernel.
        None => CommandEnd::Signaled(libc::SIGKILL),
    };
    Ok(reply(end, output.kept, errors.kept, timed_out, truncated))
}

/// Writes as much as the pipe accepts; closes the pipe when all is written or the reading end is closed.
fn feed<'a>(input: &mut Option<io::PipeWriter>, left: &'a [u8]) -> &'a [u8] {
    let Some(pipe) = input else { return left };
    match pipe.write(left) {
        Ok(written) => {
            let left = &left[written..];
            if left.is_empty() {
                *input = None;
            }
            left
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => left,
        Err(_) => {
            *input = None;
            &[]
        }
    }
}

/// The pipes that are ready.
#[derive(Default)]
struct Ready {
    input: bool,
    output: bool,
    errors: bool,
    status: bool,
    hung_up: bool,
}

fn wait<T: AsFd>(
    channel: &SupervisorChannel,
    input: Option<&io::PipeWriter>,
    pipes: [Option<&T>; 3],
    until: Instant,
) -> Result<Ready, WatchError> {
    let mut polled = vec![PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    let mut slots = [None; 4];
    if let Some(input) = input {
        slots[0] = Some(polled.len());
        polled.push(PollFd::new(input.as_fd(), PollFlags::POLLOUT));
    }
    for (index, pipe) in pipes.iter().enumerate() {
        if let Some(pipe) = pipe {
            slots[index + 1] = Some(polled.len());
            polled.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
        }
    }
    let left = until.saturating_duration_since(Instant::now());
    let timeout = PollTimeout::try_from(left.as_millis().min(60_000) as u64 + 1).unwrap_or(PollTimeout::MAX);
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let any = |place: Option<usize>| place.is_some_and(|place| polled[place].any().unwrap_or(false));
    Ok(Ready {
        input: any(slots[0]),
        output: any(slots[1]),
        errors: any(slots[2]),
        status: any(slots[3]),
        hung_up: polled[0].any().unwrap_or(false),
    })
}
