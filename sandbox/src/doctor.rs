//! Probes which layers of the jail this machine supports, without building a permanent jail.

use crate::command_root::{self, View};
use crate::process::Fork;
use crate::step::{JailStep, Layer, StepError};
use crate::{beneath, landlock, namespaces, privileges, process, rlimit, seccomp, selftest, socket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// The result for one wall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The wall, or a requirement of a wall.
    pub name: &'static str,
    /// Whether this machine has it.
    pub works: bool,
    /// Whether the daemon refuses to start without it.
    pub required: bool,
    /// Version; or why the wall is missing, and the setting that fixes it.
    pub detail: String,
}

/// Tries every layer, each in a child process, as the given service user, with the user namespace `given` that was made for it if the
/// host refuses it to users. The caller must be single-threaded: the command line
/// calls it before it starts anything.
pub fn examine(service: namespaces::Ids, given: Option<&OwnedFd>) -> Vec<Finding> {
    vec![
        attempt(Layer::Namespaces.name(), true, JailStep::UserNamespace, || {
            namespaces::enter(service, given)
        }),
        attempt(Layer::CgroupNamespace.name(), false, JailStep::Namespaces, || {
            namespaces::enter(service, given)?;
            plain(JailStep::Namespaces, namespaces::enter_cgroup())
        }),
        attempt(Layer::EmptyRoot.name(), true, JailStep::Root, || {
            namespaces::enter(service, given)?;
            plain(JailStep::Root, crate::root::replace_by_nothing())
        }),
        attempt(Layer::NoNestedNamespaces.name(), true, JailStep::NestedNamespaces, || {
            nested_are_refused(service, given)
        }),
        attempt(Layer::Rlimits.name(), true, JailStep::Rlimits, || {
            plain(JailStep::Rlimits, rlimit::constant())
        }),
        attempt(Layer::NoPrivileges.name(), true, JailStep::Privileges, || {
            plain(JailStep::Privileges, privileges::drop_all())
        }),
        attempt(Layer::Mdwe.name(), false, JailStep::Mdwe, || match privileges::deny_write_execute() {
            Ok(true) => Ok(()),
            Ok(false) => Err(StepError { step: JailStep::Mdwe, errno: libc::EINVAL }),
            Err(error) => plain(JailStep::Mdwe, Err(error)),
        }),
        landlock_finding(Layer::Landlock, 1, "kernel >= 5.13 with landlock in lsm="),
        landlock_finding(Layer::LandlockScopes, 6, "kernel >= 6.12"),
        seccomp_finding(),
        command_finding(service, given),
        command_processes_finding(service, given),
        attested_senders(),
        open_beneath(),
    ]
}

/// Tries the layers that need the keeper's namespaces.
fn nested_are_refused(service: namespaces::Ids, given: Option<&OwnedFd>) -> Result<(), StepError> {
    namespaces::enter(service, given)?;
    let _ = namespaces::forbid_nested();
    plain(JailStep::Root, crate::root::replace_by_nothing())?;
    match namespaces::enter_nested() {
        Ok(()) => Err(StepError { step: JailStep::NestedNamespaces, errno: 0 }),
        Err(_) => Ok(()),
    }
}

/// The jail of a command of `exec`, without a worktree.
fn command_finding(service: namespaces::Ids, given: Option<&OwnedFd>) -> Finding {
    let mut finding = attempt("command jail", false, JailStep::Root, || {
        command_jail(service, given)?;
        plain(JailStep::Landlock, command_root::restrict(View::Nothing, Path::new("/bin/sh")).map(drop))?;
        plain(JailStep::Seccomp, seccomp::install_for_program(&seccomp::table_command::rows()))
    });
    if finding.works {
        finding.detail = format!("Landlock ABI {}", landlock::abi());
    }
    finding
}

/// Finds out whether commands have a `/proc`.
fn command_processes_finding(service: namespaces::Ids, given: Option<&OwnedFd>) -> Finding {
    let finding = attempt("command /proc", false, JailStep::Root, || {
        command_jail(service, given)?;
        plain(JailStep::Root, Path::new("/proc/self").metadata().map(drop))
    });
    let missing = "commands of `exec` have no /proc: parts of this machine's /proc are covered, as in containers, or its \
        kernel is older than 5.8";
    Finding { detail: if finding.works { String::new() } else { missing.to_owned() }, ..finding }
}

/// Becomes pid 1 of a command's namespaces, without capabilities. The calling process waits for that one and exits like it.
fn command_jail(service: namespaces::Ids, given: Option<&OwnedFd>) -> Result<(), StepError> {
    namespaces::enter(service, given)?;
    let nowhere = crate::step::AtStep::at_step(std::fs::File::open("/"), JailStep::Descriptors)?;
    match crate::step::AtStep::at_step(process::fork(), JailStep::Fork)? {
        Fork::Parent(pid) => match process::wait_for(pid) {
            Ok(process::ExitStatus::Exited(code)) => process::exit_now(code),
            _ => process::exit_now(i32::from(u8::MAX)),
        },
        Fork::Child => {}
    }
    plain(JailStep::Root, command_root::build(nowhere.as_fd(), View::Nothing, Path::new("/bin/sh")))?;
    plain(JailStep::Privileges, privileges::drop_all())
}

fn plain(step: JailStep, result: std::io::Result<()>) -> Result<(), StepError> {
    crate::step::AtStep::at_step(result, step)
}

/// Runs the steps in a child.
fn attempt(
    name: &'static str,
    required: bool,
    step: JailStep,
    steps: impl FnOnce() -> Result<(), StepError>,
) -> Finding {
    match selftest::steps_in_child(step, steps) {
        Ok(()) => Finding { name, works: true, required, detail: String::new() },
        Err(error) => Finding { name, works: false, required, detail: error.to_string() },
    }
}

fn landlock_finding(layer: Layer, needed: u32, knob: &str) -> Finding {
    let abi = landlock::abi();
    let works = abi >= needed;
    let detail = if works { format!("ABI {abi}") } else { format!("ABI {abi}; needs {knob}") };
    Finding { name: layer.name(), works, required: layer == Layer::Landlock && abi > 0, detail }
}

fn seccomp_finding() -> Finding {
    let works = selftest::in_child(|| i32::from(privileges::drop_all().is_err()) + probe_filter());
    let works = matches!(works, Ok(process::ExitStatus::Exited(0)));
    let error = StepError { step: JailStep::Seccomp, errno: libc::EINVAL };
    let detail = if works { String::new() } else { error.to_string() };
    Finding { name: Layer::Seccomp.name(), works, required: true, detail }
}

fn probe_filter() -> i32 {
    i32::from(selftest::filter_kills(seccomp::table_worker::TABLE, selftest::FILTERED).is_err())
}

/// Without kernel-attested senders the identity of a worker cannot be trusted.
fn attested_senders() -> Finding {
    let (works, detail) = match socket::has_pidfds_of_senders() {
        Ok(true) => (true, String::new()),
        Ok(false) => (true, "senders are attested by pid; by pidfd with kernel >= 6.5".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    Finding { name: Layer::FreshExec.name(), works, required: true, detail }
}

/// `openat2`, with which brokers and the supervisor open every file of a worktree.
fn open_beneath() -> Finding {
    let missing = beneath::check().err();
    let detail = missing.map(|error| error.to_string()).unwrap_or_default();
    Finding { name: "openat2", works: missing.is_none(), required: true, detail }
}
