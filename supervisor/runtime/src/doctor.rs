//! The host and the jail, wall by wall: what is in force, what this host supports, what to do about the rest.

use crate::egress::Egress;
use crate::files_agents::FilesAgents;
use std::time::Duration;
use vm_system_protocol::control::{DoctorReport, SandboxLayer};
use vm_system_protocol::keeper::LayerReport;
use vm_system_sandbox::inspect::{self, Status};
use vm_system_sandbox::privileges;
use vm_system_sandbox::step::Layer;
use vm_system_spawn::files_agent::AgentStarter;
use vm_system_spawn::helper::SpawnHelper;
use vm_system_spawn::{Cgroups, SandboxMode, SpawnConfig, Spawner, examine, is_wanted};

/// Longest end of an empty jail.
const END: Duration = Duration::from_secs(2);

/// Builds a jail, reports, and ends it. A failure is part of the report.
pub async fn examine_host(config: SpawnConfig) -> DoctorReport {
    match Spawner::start(config.clone()).await {
        Ok((jail, _events)) => {
            let report = report(&config, (None, None), Ok(&jail)).await;
            jail.shutdown(END).await;
            report
        }
        Err(error) => report(&config, (None, None), Err(format!("{error}; {}", error.hint()))).await,
    }
}

/// The report about a jail, or about why it could not be built.
pub(super) async fn report(
    config: &SpawnConfig,
    (agents, egress): (Option<&FilesAgents>, Option<(&Egress, bool)>),
    jail: Result<&Spawner, String>,
) -> DoctorReport {
    let (layers, mut problem) = match jail {
        Ok(jail) => (layers(jail, config, agents, egress), None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    let host = examine(config).await.unwrap_or_else(|error| {
        problem.get_or_insert(error.to_string());
        Vec::new()
    });
    let in_force = layers.iter().all(|layer| layer.in_force || !layer.required);
    let works = host.iter().all(|finding| finding.works || !finding.required);
    DoctorReport {
        kernel: kernel_release(),
        ok: problem.is_none() && in_force && works,
        problem,
        layers,
        host,
        stuck: Vec::new(),
    }
}

/// The walls that the keeper reported as in force, the groups of owners, and what the kernel says of the supervisor and its helper.
/// The egress process has its state if that is for all owners.
pub(super) fn layers(
    jail: &Spawner,
    config: &SpawnConfig,
    agents: Option<&FilesAgents>,
    egress: Option<(&Egress, bool)>,
) -> Vec<SandboxLayer> {
    let starter = agents.map(FilesAgents::starter);
    let in_units = matches!(starter, Some(AgentStarter::Sockets(_)));
    let reported = jail.layers().iter().map(|report| layer(report, config.sandbox));
    reported
        .chain([cgroups(&config.cgroups, in_units), supervisor()])
        .chain(starter.and_then(AgentStarter::helper).map(of_helper))
        .chain(egress.map(of_egress))
        .collect()
}

/// This process.
fn supervisor() -> SandboxLayer {
    let bare = |status: &Status| status.uid != 0 && status.capabilities == 0;
    of_process("supervisor", std::process::id(), bare, "")
}

/// The process that makes HTTP requests. It is started by the first one; its walls are checked then. Whether and since when it runs, and
/// when it failed, is about all owners.
fn of_egress((egress, all): (&Egress, bool)) -> SandboxLayer {
    let (in_force, detail) = egress.describe(all);
    SandboxLayer { name: "egress".to_owned(), in_force, required: false, detail }
}

fn of_helper(helper: &SpawnHelper) -> SandboxLayer {
    if let Some(problem) = helper.problem() {
        let detail = format!("it {}: no files agent can be started; {}", problem.as_str(), problem.hint());
        return SandboxLayer { name: "spawn helper".to_owned(), in_force: false, required: false, detail };
    }
    let expected = privileges::of_starter(helper.makes_namespaces());
    let bounded = |status: &Status| status.capabilities == expected && status.bounding == expected;
    let names = if helper.makes_namespaces() {
        "kill, setgid, setuid, and sys_admin because this host refuses user namespaces to users: "
    } else {
        "kill, setgid, setuid: "
    };
    of_process("spawn helper", helper.pid(), bounded, names)
}

/// A row about a process of the daemon, from `/proc`.
fn of_process(
    name: &str,
    pid: u32,
    has_expected_rights: impl Fn(&Status) -> bool,
    rights: &str,
) -> SandboxLayer {
    let (in_force, detail) = match inspect::status(pid) {
        Ok(status) => {
            let Status { uid, capabilities, bounding, no_new_privs, filters, seccomp, .. } = status;
            let is_expected = has_expected_rights(&status) && no_new_privs && seccomp == 2;
            let privileges = if no_new_privs { "no_new_privs" } else { "without no_new_privs" };
            let detail = format!(
                "pid {pid}, uid {uid}, capabilities {rights}{capabilities:x} (bounding set {bounding:x}), {privileges}, \
                 filters: {filters}"
            );
            (is_expected, detail)
        }
        Err(error) => (false, format!("pid {pid} cannot be seen in /proc: {error}")),
    };
    SandboxLayer { name: name.to_owned(), in_force, required: false, detail }
}

/// The groups of owners, which the daemon makes and not the keeper.
fn cgroups(cgroups: &Cgroups, agents_in_units: bool) -> SandboxLayer {
    let (in_force, detail) = match cgroups {
        Cgroups::Unused(why) => (false, why.clone()),
        Cgroups::Used(groups) => {
            let (path, controllers) = (groups.subtree().path().display(), groups.subtree().controllers());
            let names = controllers.names();
            let lacks = if controllers.are_complete() { "" } else { "; needs cpu, memory and pids" };
            let outside = if agents_in_units {
                "; not of commands and file brokers, for which the limits of vm-files@UID.service hold"
            } else {
                ""
            };
            (
                controllers.are_complete(),
                format!(
                    "{path}: {}{lacks}{outside}",
                    if names.is_empty() { "no controller" } else { &names }
                ),
            )
        }
    };
    SandboxLayer { name: "cgroups of owners".to_owned(), in_force, required: false, detail }
}

fn layer(report: &LayerReport, sandbox: SandboxMode) -> SandboxLayer {
    let layer = Layer::ALL.iter().find(|layer| layer.name() == report.name);
    SandboxLayer {
        name: report.name.clone(),
        in_force: report.in_force,
        required: layer.is_none_or(|layer| layer.is_required()) && is_wanted(&report.name, sandbox),
        detail: report.detail.clone(),
    }
}

fn kernel_release() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}
