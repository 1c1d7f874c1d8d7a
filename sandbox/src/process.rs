//! Starting, replacing and ending processes. Forks only single-threaded processes; the supervisor uses [`spawn`].

mod sys;

pub(crate) use sys::clone_child;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The running program, also after its file was replaced.
pub const SELF: &str = "/proc/self/exe";

/// The first descriptor that [`spawn`] passes.
pub const FIRST_FD: i32 = 3;

/// Descriptors from this number on are closed before `main` of every program.
pub const MOST_INHERITED: i32 = sys::INHERITABLE.end;

/// Starts `program mode arguments…` in a new POSIX session: an environment of `TZ` alone, 0–2 on `/dev/null`, the given descriptors as
/// 3, 4, 5, …, default signal dispositions; no other descriptor of the caller is inherited.
/// Never runs code of the caller in the child (vfork-like), so it is safe in a multi-threaded process of any size.
pub fn spawn(program: &Path, arguments: &[&OsStr], descriptors: &[BorrowedFd<'_>]) -> io::Result<u32> {
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput);
    let program = text(program.as_os_str())?;
    let name = c"vm-system".to_owned();
    let texts = arguments.iter().map(|argument| text(argument)).collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&CStr> =
        std::iter::once(name.as_c_str()).chain(texts.iter().map(CString::as_c_str)).collect();
    // Copies above every target, so that mapping one descriptor cannot overwrite another's source.
    let first_free = FIRST_FD + descriptors.len() as i32 + 8;
    let copies =
        descriptors.iter().map(|fd| sys::duplicate(*fd, first_free)).collect::<io::Result<Vec<_>>>()?;
    let zone = time_zone();
    let environment: Vec<&CStr> = zone.iter().map(CString::as_c_str).collect();
    sys::posix_spawn(&sys::SpawnPlan {
        program: &program,
        arguments: &arguments,
        environment: &environment,
        descriptors: &copies,
    })
}

/// `TZ` of this process, as an entry of an environment: the local time of scripts is that of who started the program.
fn time_zone() -> Option<CString> {
    let value = std::env::var_os("TZ")?;
    CString::new([b"TZ=", value.as_bytes()].concat()).ok()
}

/// Takes ownership of a descriptor that this program was started with (3 to 63), once. `NotFound` for a descriptor that the
/// process opened itself.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    sys::take_inherited(number)
}

/// Closes every descriptor that this program was started with and that was not taken by [`inherited`].
pub fn close_inherited() {
    sys::close_inherited();
}

/// As [`close_inherited`], but for these numbers.
pub fn close_inherited_except(kept: &[i32]) {
    sys::close_inherited_except(kept);
}

/// Makes `target`'s number refer to `source`'s open file; the old open file of `target` is closed.
pub fn replace(target: &OwnedFd, source: &OwnedFd) -> io::Result<()> {
    sys::replace_fd(target, source.as_fd())
}

/// Replaces this program by itself with other arguments, an environment of `TZ` alone and the given descriptors kept.
pub fn exec_self(arguments: &[&str], kept: &[&OwnedFd]) -> io::Error {
    let exec = || -> io::Result<std::convert::Infallible> {
        for fd in kept {
            sys::set_close_on_exec(fd, false)?;
        }
        let text = |text: &str| CString::new(text).map_err(|_| io::ErrorKind::InvalidInput);
        let mut texts = vec![c"vm-system".to_owned()];
        for argument in arguments {
            texts.push(text(argument)?);
        }
        Ok(nix::unistd::execve(&text(SELF)?, &texts, time_zone().as_slice())?)
    };
    match exec() {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

/// The result of a fork, in the parent and in the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The process that forked, with the child's pid.
    Parent(u32),
    /// The new process.
    Child,
}

fn side(result: Option<u32>) -> Fork {
    result.map_or(Fork::Child, Fork::Parent)
}

/// Forks this single-threaded process; EBUSY if it has ever had another thread.
pub fn fork() -> io::Result<Fork> {
    sys::fork().map(side)
}

/// As [`fork`], but the child is a sibling: its parent is our parent. The only clone that a worker's filter allows.
pub fn fork_sibling() -> io::Result<Fork> {
    sys::clone_sibling().map(side)
}

/// Ends the process at once, without destructors.
pub fn exit_now(code: i32) -> ! {
    sys::exit_now(code)
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

impl ExitStatus {
    /// From the raw wait status of an exited process.
    pub fn from_wait_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Exited((status >> 8) & 0xff),
            signal => Self::Signaled(signal),
        }
    }
}

/// Blocks until this child exits, and reaps it.
pub fn wait_for(pid: u32) -> io::Result<ExitStatus> {
    loop {
        match sys::wait(pid as i32, false) {
            Ok(Some(reaped)) => return Ok(ExitStatus::from_wait_status(reaped.wait_status)),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// An exited child (`wait4(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapedChild {
    pub pid: u32,
    /// Raw: see [`ExitStatus::from_wait_status`].
    pub wait_status: i32,
    /// CPU time that it used (milliseconds).
    pub cpu_ms: u64,
    /// The most resident memory that it had, with pages that it shared (KiB).
    pub peak_memory_kib: u64,
}

/// Reaps one exited child if there is one.
pub fn reap() -> Option<ReapedChild> {
    sys::wait(-1, true).ok().flatten()
}

/// Readable when a child has exited.
#[derive(Debug)]
pub struct ChildExits(SignalFd);

impl ChildExits {
    /// Blocks SIGCHLD and receives it through this descriptor.
    pub fn watch() -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
        Ok(Self(SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Consumes the pending signals; then call [`reap`] until there is no exited child.
    pub fn drain(&self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for ChildExits {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A new POSIX session (if this process does not lead one already), umask 077, and default actions where `std` or the parent
/// installed handlers: with std's SIGSEGV handler a crash would call `rt_sigaction` and look like a seccomp kill. SIGPIPE stays ignored, as
/// std leaves it: a peer that is gone is an error of one write, and no end of a process that serves others.
pub fn settle() -> io::Result<()> {
    match nix::unistd::setsid() {
        Ok(_) | Err(nix::errno::Errno::EPERM) => {}
        Err(error) => return Err(error.into()),
    }
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        sys::default_action(signal)?;
    }
    Ok(())
}

/// As [`settle`], for a program that is executed next: an ignored signal stays ignored in it, and programs expect that SIGPIPE ends them.
pub fn settle_for_program() -> io::Result<()> {
    settle()?;
    sys::default_action(libc::SIGPIPE)
}

/// Makes this process the first choice of the kernel's out-of-memory killer; inherited by every child.
pub fn die_first_of_memory_shortage() -> io::Result<()> {
    std::fs::write("/proc/self/oom_score_adj", "1000")
}

/// Makes libc read the time zone while this process can still open files: the first local-time `Date` would open `/etc/localtime`.
pub fn load_time_zone() {
    sys::tzset();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn wait_statuses_are_decoded() {
        assert_eq!(ExitStatus::from_wait_status(0x0300), ExitStatus::Exited(3));
        assert_eq!(ExitStatus::from_wait_status(9), ExitStatus::Signaled(9));
        assert_eq!(ExitStatus::from_wait_status(31 | 0x80), ExitStatus::Signaled(31));
    }

    #[test]
    fn descriptors_that_this_process_opened_are_not_inherited() {
        let file = std::fs::File::open("/dev/null").expect("open");
        for number in [0, file.as_raw_fd(), 64, -1] {
            assert_eq!(inherited(number).map_err(|error| error.kind()).err(), Some(io::ErrorKind::NotFound));
        }
        close_inherited();
        assert!(file.metadata().is_ok(), "still open");
    }

    #[test]
    fn a_process_with_threads_is_not_forked() {
        std::thread::spawn(|| {
            assert_eq!(fork().map_err(|error| error.raw_os_error()), Err(Some(libc::EBUSY)));
            assert_eq!(fork_sibling().map_err(|error| error.raw_os_error()), Err(Some(libc::EBUSY)));
        })
        .join()
        .expect("refused");
    }

    #[test]
    fn a_spawned_program_has_only_the_given_descriptors_and_arguments() {
        let (ours, theirs) = crate::socket::pair().expect("socketpair");
        let script =
            "exec 1>&3; env | cut -d= -f1 | sort; readlink /proc/self/fd/0; exec ls -1 /proc/self/fd";
        let pid = spawn(Path::new("/bin/sh"), &[OsStr::new("-c"), OsStr::new(script)], &[theirs.as_fd()])
            .expect("spawn");
        drop(theirs);
        let mut seen = String::new();
        let mut buffer = [0; 4096];
        loop {
            let got = crate::socket::receive(&ours, &mut buffer, crate::socket::Wait::Yes).expect("receive");
            if got.len == 0 {
                break;
            }
            seen.push_str(&String::from_utf8_lossy(&buffer[..got.len]));
        }
        assert_eq!(wait_for(pid).expect("wait"), ExitStatus::Exited(0));
        // PWD and its like are the shell's own; 4 is the directory that is being listed.
        assert_eq!(
            seen.replace("OLDPWD\n", "").replace("SHLVL\n", "").replace("_\n", ""),
            "PWD\n/dev/null\n0\n1\n2\n3\n4\n"
        );
    }
}
