//! ptrace(2) and a filter whose matches stop the process for its tracer. Decides nothing.

use libc::{c_int, c_uint, c_void, sock_filter, sock_fprog};
use std::io;
use std::ptr::null_mut;

/// Why a traced process has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceStop {
    /// It tries to make a user namespace.
    NewUserNamespace,
    /// A new process is traced, too.
    Attached,
    /// It gets this signal.
    Signal(c_int),
    /// SIGSTOP and its like: it stays stopped until SIGCONT.
    OfJobControl,
    Ended,
}

fn check(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Traces a process and all that it starts.
pub(crate) fn seize(pid: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: reads no memory; the options are passed as a number.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, null_mut::<c_void>(), options as *mut c_void) })
}

/// Waits for the next stop; `None`: nothing is traced any more.
pub(crate) fn next_stop() -> io::Result<Option<(c_int, TraceStop)>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if pid < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ECHILD) { Ok(None) } else { Err(error) };
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(Some((pid, TraceStop::Ended)));
    }
    let signal = libc::WSTOPSIG(status);
    Ok(Some((
        pid,
        match status >> 16 {
            libc::PTRACE_EVENT_SECCOMP => TraceStop::NewUserNamespace,
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => TraceStop::OfJobControl,
            0 => TraceStop::Signal(signal),
            _ => TraceStop::Attached,
        },
    )))
}

/// Continues it, with a signal unless 0.
pub(crate) fn resume(pid: c_int, signal: c_int) -> io::Result<()> {
    // SAFETY: reads no memory; the signal is passed as a number.
    check(unsafe { libc::ptrace(libc::PTRACE_CONT, pid, null_mut::<c_void>(), signal as *mut c_void) })
}

/// Leaves it stopped.
pub(crate) fn listen(pid: c_int) -> io::Result<()> {
    // SAFETY: reads no memory.
    check(unsafe { libc::ptrace(libc::PTRACE_LISTEN, pid, null_mut::<c_void>(), null_mut::<c_void>()) })
}

/// Makes the call in which it has stopped fail with EPERM.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fail_call(pid: c_int) -> io::Result<()> {
    let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::uninit();
    // SAFETY: the kernel writes the whole structure, or fails.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, null_mut::<c_void>(), registers.as_mut_ptr()) })?;
    // SAFETY: written by the call before.
    let mut registers = unsafe { registers.assume_init() };
    registers.orig_rax = u64::MAX;
    registers.rax = i64::from(-libc::EPERM).cast_unsigned();
    // SAFETY: the structure outlives the call.
    check(unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, null_mut::<c_void>(), &raw const registers) })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn fail_call(_pid: c_int) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// From now on this process and its descendants stop for their tracer when they make a user namespace. For root.
pub(crate) fn report_new_user_namespaces() -> io::Result<()> {
    const NUMBER_AT: c_uint = 0;
    const FIRST_ARGUMENT_AT: c_uint = 16;
    let op = |code: c_uint, jt: u8, jf: u8, k: c_uint| sock_filter { code: code as u16, jt, jf, k };
    let (load, equals, masks, returns) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let mut program = [
        op(load, 0, 0, NUMBER_AT),
        op(equals, 1, 0, libc::SYS_unshare as c_uint),
        op(equals, 0, 3, libc::SYS_clone as c_uint),
        op(load, 0, 0, FIRST_ARGUMENT_AT),
        op(masks, 0, 1, libc::CLONE_NEWUSER as c_uint),
        op(returns, 0, 0, libc::SECCOMP_RET_TRACE),
        op(returns, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, with its true length.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
}
