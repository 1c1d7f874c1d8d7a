//! Starts a keeper: exec with three descriptors, its report, and an inspection from outside.

use super::address::KeeperAddress;
use super::config::{SandboxMode, SpawnConfig};
use super::error::SpawnError;
use super::packets;
use crate::reactor::WatchedFd;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::hello::Hello;
use vm_system_protocol::keeper::{FromKeeper, LayerReport, ToKeeper};
use vm_system_protocol::limits::{HELLO_MS, KEEPER_MESSAGE_BYTES};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::{inspect, process, socket};

/// A keeper that is ready.
pub(super) struct Started {
    pub(super) control: WatchedFd,
    /// The supervisor's end of the first zygote's channel; the zygote has sent nothing yet.
    pub(super) zygote: WatchedFd,
    pub(super) pid: u32,
    pub(super) pidfd: PidFd,
    pub(super) layers: Vec<LayerReport>,
    /// The protocol version that it speaks.
    pub(super) protocol: u32,
    pub(super) address: Option<KeeperAddress>,
}

/// Starts a keeper, which moves itself into the cgroup first, and waits until its walls are built.
pub(super) async fn start(
    config: &SpawnConfig,
    group: Option<BorrowedFd<'_>>,
) -> Result<Started, SpawnError> {
    let deadline = Instant::now() + Duration::from_millis(HELLO_MS);
    let make = SpawnError::io;
    let (control, keepers_control) = socket::pair().map_err(make("make the keeper's channel"))?;
    let (zygote, zygotes_end) = socket::pair().map_err(make("make the zygote's channel"))?;
    for end in [&control, &zygote] {
        socket::attest_senders(end).map_err(make("have the kernel attest senders"))?;
    }
    // No supervisor can adopt a keeper without an address, and nobody waits for one without a grace.
    let keepers = config.keepers.as_ref().filter(|_| !config.grace.is_zero());
    let (adoption, address, token) = match keepers {
        Some(folder) => {
            let (address, token) = KeeperAddress::new(folder).map_err(make("make the keeper's address"))?;
            (address.bind().map_err(make("bind the keeper's socket"))?, Some(address), token)
        }
        None => (socket::unconnected().map_err(make("make the keeper's socket"))?, None, [0; 32]),
    };
    let grace = address.as_ref().map_or(Duration::ZERO, |_| config.grace);
    let begin = ToKeeper::Begin { token, grace_ms: grace.as_millis() as u64 };
    let begin = encode(&begin, KEEPER_MESSAGE_BYTES)
        .map_err(|error| make("order the keeper to begin")(std::io::Error::other(error)))?;
    let lifeline: Vec<BorrowedFd<'_>> = config.lifeline.iter().map(|pipe| pipe.as_fd()).collect();
    // Sent before the keeper runs: the message waits in the socket, so that no start needs another round trip.
    socket::send(&control, &[&begin], &lifeline, socket::Wait::Yes)
        .map_err(make("order the keeper to begin"))?;

    let namespace = config.user_namespace().await?;
    let child = execute(config, [&keepers_control, &adoption, &zygotes_end], group, namespace.as_ref())?;
    // Copies of ours would keep the channels open after the exit of keeper and zygote.
    drop((keepers_control, adoption, zygotes_end));
    let control = packets::register(control).map_err(make("watch the keeper's channel"))?;
    let zygote = packets::register(zygote).map_err(make("watch the zygote's channel"))?;
    let ready = timeout_at(deadline, handshake(&control)).await;
    // The executed process has forked the keeper and exits; unreaped it would stay as a zombie.
    child.reap();
    let (pidfd, layers, protocol) =
        ready.map_err(|_| SpawnError::KeeperSilent { what: "sent nothing" })??;
    // It has been attested; no other process can send here.
    socket::trust_senders(&control).map_err(make("set up the keeper's channel"))?;
    let pid = pidfd.pid().map_err(|_| SpawnError::KeeperSilent { what: "exited" })?;
    inspect_process(pid, config.sandbox)?;
    Ok(Started { control, zygote, pid, pidfd, layers, protocol, address })
}

/// The executed process; it exits as soon as the first process of the jail runs.
struct Child {
    pid: u32,
    pidfd: Option<PidFd>,
}

impl Child {
    fn reap(self) {
        if let Some(pidfd) = self.pidfd {
            // It has exited already in the normal case.
            let _ = pidfd.kill();
        }
        let _ = process::wait_for(self.pid);
    }
}

fn execute(
    config: &SpawnConfig,
    fds: [&OwnedFd; 3],
    group: Option<BorrowedFd<'_>>,
    namespace: Option<&OwnedFd>,
) -> Result<Child, SpawnError> {
    let further = [("group", group), ("user-namespace", namespace.map(|namespace| namespace.as_fd()))];
    let further = || further.into_iter().filter_map(|(name, fd)| Some((name, fd?)));
    let fds: Vec<BorrowedFd<'_>> =
        fds.into_iter().map(|fd| fd.as_fd()).chain(further().map(|(_, fd)| fd)).collect();
    let (uid, gid) = (config.service_ids.uid.to_string(), config.service_ids.gid.to_string());
    let arguments = ["keeper", config.sandbox.argument(), &uid, &gid];
    let arguments: Vec<&OsStr> =
        arguments.into_iter().chain(further().map(|(name, _)| name)).map(OsStr::new).collect();
    let pid = process::spawn(&config.program, &arguments, &fds)
        .map_err(|error| SpawnError::Exec { program: config.program.display().to_string(), error })?;
    Ok(Child { pid, pidfd: PidFd::open(pid).ok() })
}

async fn handshake(control: &WatchedFd) -> Result<(PidFd, Vec<LayerReport>, u32), SpawnError> {
    let read = SpawnError::io("read the keeper's channel");
    let hello = packets::receive(control, |_, bytes| check_hello("the keeper", bytes)).await.map_err(read)?;
    let protocol = hello?.protocol;
    let read = SpawnError::io("read the keeper's channel");
    let (sender, message) = packets::receive(control, |got, bytes| {
        (got.sender, (got.len > 0).then(|| decode::<FromKeeper>(bytes)))
    })
    .await
    .map_err(read)?;
    match (sender, message) {
        (Some(keeper), Some(Ok(FromKeeper::Ready { layers }))) => Ok((keeper, layers, protocol)),
        (_, Some(Ok(FromKeeper::Failed(failure)))) => Err(SpawnError::Jail(failure)),
        (_, None) => Err(SpawnError::KeeperSilent { what: "exited" }),
        _ => Err(SpawnError::KeeperSilent { what: "sent another message than ready" }),
    }
}

/// Checks that the packet is a hello of a protocol version that this build speaks.
pub(super) fn check_hello(who: &'static str, packet: &[u8]) -> Result<Hello, SpawnError> {
    let wrong = |what: String| Err(SpawnError::WrongHello { who, what });
    if packet.is_empty() {
        return wrong("it closed its channel".to_owned());
    }
    match Hello::from_packet(packet) {
        Ok(hello) => match hello.supported() {
            Ok(_) => Ok(hello),
            Err(unsupported) => Err(SpawnError::Unsupported { who, unsupported }),
        },
        Err(error) => wrong(error.to_string()),
    }
}

/// Inspects a process of the jail from outside: walls first, then whether its namespaces are its own. Where `/proc`
/// hides the process (`ProtectProc=invisible`) the keeper's self-test has to suffice.
pub(super) fn inspect_process(pid: u32, sandbox: SandboxMode) -> Result<Option<inspect::Status>, SpawnError> {
    let namespaces = sandbox == SandboxMode::Full;
    let status = match inspect::verify(pid, inspect::Expected { namespaces }) {
        Err(inspect::InspectError::Unreadable { error, .. })
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied
            ) =>
        {
            tracing::warn!(pid, %error, "a jailed process cannot be seen in /proc; relying on the keeper's self-test");
            return Ok(None);
        }
        status => status?,
    };
    Ok(Some(status))
}
