//! The keeper from its second exec until the jail is complete: root directory, limits, privileges, Landlock, the first zygote and
//! the self-test at the same time, the filter. A step that fails is reported to the supervisor and ends the keeper.

use super::{Inherited, Walls, fail, serve};
use crate::roles::Modes;
use crate::zygote;
use std::os::fd::OwnedFd;
use vm_system_protocol::codec::decode;
use vm_system_protocol::keeper::{LayerReport, ToKeeper};
use vm_system_protocol::limits::KEEPER_MESSAGE_BYTES;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::seccomp::{self, table_keeper, table_worker};
use vm_system_sandbox::step::{AtStep as _, JailStep, Layer, Layers, StepError};
use vm_system_sandbox::{landlock, namespaces, privileges, rlimit, root, selftest, socket};

/// `keeper-inside WALLS CGROUP`.
pub(crate) fn main(arguments: &[String], modes: Modes) -> ! {
    let Ok(fds) = Inherited::take(&[]) else { process::exit_now(super::EXIT_FAILED) };
    let Some(walls) = Walls::from_argument(arguments.first()) else {
        fail(&fds.control, StepError { step: JailStep::Channel, errno: 0 }, "unknown arguments")
    };
    let mut found = JailReport::default();
    if arguments.get(1).is_some_and(|argument| argument == "cgroup") {
        found.layers.add(Layer::CgroupNamespace);
    }
    if let Err(error) = build(walls, &mut found) {
        fail(&fds.control, error, "")
    }
    let begin = match begin(&fds.control) {
        Ok(begin) => begin,
        Err(error) => fail(&fds.control, error, ""),
    };
    let zygote = match process::fork().at_step(JailStep::Zygote) {
        Ok(Fork::Parent(pid)) => PidFd::open(pid).map(|pidfd| (pid, pidfd)).at_step(JailStep::Zygote),
        Ok(Fork::Child) => {
            let Inherited { control, adoption, zygote, .. } = fds;
            // The control channel's number becomes the zygote's own channel: the zygote never holds the keeper's.
            if process::replace(&control, &zygote).is_err() {
                process::exit_now(zygote::EXIT_CHANNEL);
            }
            drop((adoption, zygote, begin));
            zygote::first(control, modes)
        }
        Err(error) => Err(error),
    };
    let Inherited { control, adoption, zygote: zygotes_end, .. } = fds;
    drop(zygotes_end);
    // The zygote prepares itself at the same time. Before its first order it runs only our code, and the supervisor sends no order
    // before this process has reported success.
    let tested = zygote.and_then(|zygote| test_itself(walls, &mut found).map(|()| zygote));
    // After the self-test, which waits for its children by pid: from here on one descriptor reports all exits.
    let exits =
        tested.and_then(|zygote| Ok((zygote, process::ChildExits::watch().at_step(JailStep::Signals)?)));
    let ready = exits.and_then(|(zygote, exits)| {
        // Before the filter, which does not allow `listen`.
        if begin.grace_ms > 0 {
            socket::start_listening(&adoption).at_step(JailStep::Listen)?;
        }
        seccomp::install(table_keeper::TABLE).at_step(JailStep::Seccomp)?;
        found.layers.add(Layer::Seccomp);
        Ok((zygote, exits))
    });
    match ready {
        Ok((zygote, exits)) => {
            let setup = serve::Setup {
                control,
                adoption,
                begin,
                exits,
                zygote,
                layers: found.reports(),
                hello: modes.hello,
            };
            serve::run(setup)
        }
        Err(error) => fail(&control, error, &found.detail),
    }
}

/// The supervisor's first message.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) token: [u8; 32],
    pub(super) grace_ms: u64,
    /// A pipe that hangs up when the service is stopped.
    pub(super) lifeline: Option<OwnedFd>,
}

fn begin(control: &OwnedFd) -> Result<Begin, StepError> {
    let mut buffer = vec![0; KEEPER_MESSAGE_BYTES];
    let got = socket::receive(control, &mut buffer, socket::Wait::Yes).at_step(JailStep::Channel)?;
    match decode::<ToKeeper>(&buffer[..got.len]) {
        Ok(ToKeeper::Begin { token, grace_ms }) => {
            Ok(Begin { token, grace_ms, lifeline: got.fds.into_iter().next() })
        }
        _ => Err(StepError { step: JailStep::Channel, errno: 0 }),
    }
}

/// The walls in force, and notes about the others.
#[derive(Debug, Default)]
struct JailReport {
    layers: Layers,
    landlock_abi: u32,
    detail: String,
}

impl JailReport {
    fn reports(&self) -> Vec<LayerReport> {
        let report = |layer: Layer| LayerReport {
            name: layer.name().to_owned(),
            in_force: self.layers.has(layer),
            detail: self.detail_of(layer),
        };
        Layer::ALL.into_iter().map(report).collect()
    }

    fn detail_of(&self, layer: Layer) -> String {
        match layer {
            Layer::Landlock if self.landlock_abi > 0 => format!("ABI {}", self.landlock_abi),
            Layer::Landlock => "needs kernel >= 5.13 with landlock in lsm=".to_owned(),
            Layer::LandlockScopes if !self.layers.has(layer) => "needs kernel >= 6.12".to_owned(),
            Layer::Mdwe if !self.layers.has(layer) => "needs kernel >= 6.3".to_owned(),
            Layer::Namespaces | Layer::EmptyRoot | Layer::NoNestedNamespaces if !self.layers.has(layer) => {
                "left out by --sandbox no-userns".to_owned()
            }
            _ => String::new(),
        }
    }
}

fn build(walls: Walls, found: &mut JailReport) -> Result<(), StepError> {
    found.layers.add(Layer::FreshExec);
    process::settle().at_step(JailStep::Signals)?;
    // Before the root is replaced: the first local time reads `/etc/localtime`.
    process::load_time_zone();
    if walls == Walls::Full {
        found.layers.add(Layer::Namespaces);
        // Fails where /proc/sys is read-only; the self-test below decides whether the chroot alone is sufficient.
        let _ = namespaces::forbid_nested();
        root::replace_by_nothing().at_step(JailStep::Root)?;
        found.layers.add(Layer::EmptyRoot);
    }
    // Before the first zygote is forked: it and its workers inherit these limits.
    rlimit::many_descriptors().at_step(JailStep::Rlimits)?;
    rlimit::constant().at_step(JailStep::Rlimits)?;
    found.layers.add(Layer::Rlimits);
    // After the mounts, which need capabilities; before Landlock, which needs `no_new_privs`.
    privileges::drop_all().at_step(JailStep::Privileges)?;
    found.layers.add(Layer::NoPrivileges);
    if privileges::deny_write_execute().at_step(JailStep::Mdwe)? {
        found.layers.add(Layer::Mdwe);
    }
    let domain = landlock::restrict(&[]).at_step(JailStep::Landlock)?;
    found.landlock_abi = domain.abi;
    if domain.abi > 0 {
        found.layers.add(Layer::Landlock);
    }
    if domain.scoped() {
        found.layers.add(Layer::LandlockScopes);
    }
    Ok(())
}

fn test_itself(walls: Walls, found: &mut JailReport) -> Result<(), StepError> {
    let mut passed = selftest::filter_kills(table_worker::TABLE, selftest::FILTERED)
        .and_then(|()| selftest::filter_holds_unattended(table_worker::TABLE, selftest::FILTERED));
    if walls == Walls::Full && passed.is_ok() {
        passed = selftest::layers_refuse(selftest::BENEATH);
        found.layers.add(Layer::NoNestedNamespaces);
    }
    passed.map_err(|error| {
        found.detail = error.to_string();
        StepError { step: JailStep::SelfTest, errno: 0 }
    })
}
