//! The product on a host that forbids `openat2`, as systemd's `RestrictSUIDSGID=yes` and old seccomp profiles of containers do:
//! the call fails with the error number in a file of the current folder. Brokers read a file of their worktree instead, so that
//! the call can be forbidden to brokers only. Without the file nothing is forbidden.

use std::process::ExitCode;
use vm_system_sandbox::seccomp;
use vm_system_sandbox::seccomp::bpf::{FilterAction, FilterRow};
use vm_system_tests::program::{BROKER_REFUSES, HOST_REFUSES};

fn main() -> ExitCode {
    let is_broker = std::env::args().nth(1).as_deref() == Some(vm_system_broker::MODE);
    // Through /proc, so that the broker can still take the descriptor.
    let file = if is_broker { format!("/proc/self/fd/4/{BROKER_REFUSES}") } else { HOST_REFUSES.to_owned() };
    if let Ok(errno) = std::fs::read_to_string(file)
        && let Err(error) = forbid(&errno)
    {
        eprintln!("openat2 could not be forbidden: {error}");
        return ExitCode::FAILURE;
    }
    vm_system_cli::main_with(vm_system_cli::modes::dispatch)
}

fn forbid(errno: &str) -> std::io::Result<()> {
    let errno = errno.parse().map_err(std::io::Error::other)?;
    nix::sys::prctl::set_no_new_privs()?;
    seccomp::install_refusals(&[FilterRow {
        number: libc::SYS_openat2,
        name: "openat2",
        when: &[],
        action: FilterAction::Fail(errno),
        reason: "the host forbids it",
    }])
}
