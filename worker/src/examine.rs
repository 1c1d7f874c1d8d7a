//! Probes the machine for `ops doctor`: tries every wall in child processes and reports the results. Runs as a separate process,
//! because only a single-threaded process may fork.

use std::os::fd::OwnedFd;
use vm_system_protocol::codec::encode;
use vm_system_protocol::control::HostFinding;
use vm_system_protocol::limits::KEEPER_MESSAGE_BYTES;
use vm_system_sandbox::namespaces::Ids;
use vm_system_sandbox::{doctor, process, socket};

/// First argument of the process: `examine UID GID`. Its second descriptor is a user namespace that was made for it, if there is one.
pub(crate) const MODE: &str = "examine";

const EXIT_CHANNEL: i32 = 70;

/// Writes the report to the process's first descriptor and exits.
pub(crate) fn main(arguments: &[String]) -> ! {
    process::exit_now(if write_report(arguments).is_some() { 0 } else { EXIT_CHANNEL })
}

fn write_report(arguments: &[String]) -> Option<()> {
    let channel: OwnedFd = process::inherited(process::FIRST_FD).ok()?;
    let namespace = process::inherited(process::FIRST_FD + 1).ok();
    process::close_inherited();
    let number = |at: usize| arguments.get(at)?.parse().ok();
    let service = Ids { uid: number(0)?, gid: number(1)? };
    let findings: Vec<HostFinding> =
        doctor::examine(service, namespace.as_ref()).into_iter().map(finding).collect();
    let bytes = encode(&findings, KEEPER_MESSAGE_BYTES).ok()?;
    socket::send(&channel, &[&bytes], &[], socket::Wait::Yes).ok()
}

fn finding(finding: doctor::Finding) -> HostFinding {
    HostFinding {
        name: finding.name.to_owned(),
        works: finding.works,
        required: finding.required,
        detail: finding.detail,
    }
}
