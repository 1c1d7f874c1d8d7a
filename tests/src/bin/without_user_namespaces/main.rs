//! The product on a host that refuses user namespaces to users, as Debian does with `kernel.unprivileged_userns_clone=0`: only a
//! process with `CAP_SYS_ADMIN` on the host makes any. Started by root, a tracer decides about each attempt by the capabilities of its
//! process, as that kernel does; started by another user, a filter refuses all. Not a jail: it exists for tests.

mod sys;

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use sys::TraceStop;
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::seccomp;
use vm_system_sandbox::seccomp::bpf::{Check, FilterAction, FilterRow, Number};
use vm_system_tests::program::PRODUCT;

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).collect()) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("the product could not be started: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<OsString>) -> io::Result<std::convert::Infallible> {
    let product = std::env::current_exe()?.with_file_name(PRODUCT);
    if nix::unistd::geteuid().is_root() {
        be_traced()?;
    } else {
        nix::sys::prctl::set_no_new_privs()?;
        seccomp::install_refusals(&[refusal(libc::SYS_unshare), refusal(libc::SYS_clone)])?;
    }
    Err(Command::new(product).args(arguments).exec())
}

const MAKES_A_USER_NAMESPACE: &[Check] =
    &[Check::Masked(0, libc::CLONE_NEWUSER as u32, libc::CLONE_NEWUSER as u32)];

const fn refusal(number: Number) -> FilterRow {
    FilterRow {
        number,
        name: "a user namespace",
        when: MAKES_A_USER_NAMESPACE,
        action: FilterAction::Fail(libc::EPERM as u16),
        reason: "the host refuses it to users",
    }
}

/// Starts a child that traces this process and all of its descendants.
fn be_traced() -> io::Result<()> {
    let (mut attached, mut attached_writer) = io::pipe()?;
    let me = std::process::id();
    match process::fork()? {
        Fork::Child => {
            drop(attached);
            let traced = sys::seize(me).and_then(|()| attached_writer.write_all(b"1")).and_then(|()| trace());
            process::exit_now(i32::from(traced.is_err()))
        }
        Fork::Parent(_) => {
            drop(attached_writer);
            attached.read_exact(&mut [0])?;
            sys::report_new_user_namespaces()
        }
    }
}

/// Until no traced process is left.
fn trace() -> io::Result<()> {
    while let Some((pid, stop)) = sys::next_stop()? {
        let resumed = match stop {
            TraceStop::NewUserNamespace if !may_make(pid) => {
                sys::fail_call(pid).and_then(|()| sys::resume(pid, 0))
            }
            TraceStop::NewUserNamespace | TraceStop::Attached => sys::resume(pid, 0),
            TraceStop::Signal(signal) => sys::resume(pid, signal),
            TraceStop::OfJobControl => sys::listen(pid),
            TraceStop::Ended => Ok(()),
        };
        // A process that was killed meanwhile.
        if let Err(error) = resumed
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Whether the process has `CAP_SYS_ADMIN` in our user namespace.
fn may_make(pid: i32) -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/user")).ok();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0);
    effective & SYS_ADMIN != 0 && namespace(&pid.to_string()) == namespace("self")
}
