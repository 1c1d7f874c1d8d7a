//! Starts a process that tries every wall on this host, and returns its report. Builds no jail.

use super::config::{SandboxMode, SpawnConfig};
use super::error::SpawnError;
use super::packets;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::time::Duration;
use tokio::time::timeout;
use vm_system_protocol::codec::decode;
use vm_system_protocol::control::HostFinding;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::step::Layer;
use vm_system_sandbox::{process, socket};

/// The hidden mode of the binary that tries the walls.
const MODE: &str = "examine";

/// The walls that this host supports for sessions with this configuration.
pub async fn examine(config: &SpawnConfig) -> Result<Vec<HostFinding>, SpawnError> {
    let io = SpawnError::io;
    let (ours, its) = socket::pair().map_err(io("make the examiner's channel"))?;
    let ours = packets::register(ours).map_err(io("watch the examiner's channel"))?;
    let (uid, gid) = (config.service_ids.uid.to_string(), config.service_ids.gid.to_string());
    let arguments = [MODE, &uid, &gid].map(OsStr::new);
    let namespace = config.user_namespace().await?;
    let fds: Vec<_> = std::iter::once(&its).chain(&namespace).map(|fd| fd.as_fd()).collect();
    let pid = process::spawn(&config.program, &arguments, &fds)
        .map_err(|error| SpawnError::Exec { program: config.program.display().to_string(), error })?;
    drop(its);
    let pidfd = PidFd::open(pid);
    let found =
        packets::receive(&ours, |got, bytes| (got.len > 0).then(|| decode::<Vec<HostFinding>>(bytes)));
    let found = timeout(Duration::from_millis(HELLO_MS), found).await;
    // The report is there, or too late; its children exit with it or by themselves.
    if let Ok(pidfd) = pidfd {
        let _ = pidfd.kill();
    }
    let _ = process::wait_for(pid);
    let silent = |what| SpawnError::Examiner { what };
    match found.map_err(|_| silent("did not report in time"))?.map_err(io("read the examiner's channel"))? {
        Some(Ok(mut findings)) => {
            for finding in &mut findings {
                finding.required &= is_wanted(&finding.name, config.sandbox);
            }
            Ok(findings)
        }
        Some(Err(_)) => Err(silent("sent another message")),
        None => Err(silent("exited")),
    }
}

/// Whether a wall belongs to the mode.
pub fn is_wanted(layer: &str, sandbox: SandboxMode) -> bool {
    let of_namespaces = [Layer::Namespaces, Layer::NoNestedNamespaces, Layer::EmptyRoot];
    sandbox == SandboxMode::Full || of_namespaces.iter().all(|wall| wall.name() != layer)
}
