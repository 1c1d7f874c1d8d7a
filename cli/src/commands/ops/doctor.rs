//! `ops doctor`: queries the daemon, or probes this host itself if none is reachable.

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::{Fit, Output, Rows};
use vm_system_daemon::{SpawnConfig, examine_host};
use vm_system_protocol::control::{Doctor, DoctorReport, HostFinding, SandboxLayer, StuckExecution};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let report = match context.call(Doctor).await {
        Err(error) if error.exit_code() == exit::NO_DAEMON && context.target.is_local() => {
            context.out.note("no supervisor responds: these are the findings of this process on this host");
            examine_host(SpawnConfig::embedded()).await
        }
        result => result?,
    };
    context.out.result(&report, || text(&report, context.out))?;
    Ok(if report.ok { exit::OK } else { exit::FAILED })
}

fn text(report: &DoctorReport, out: Output) -> String {
    let verdict = match (report.ok, &report.problem) {
        (true, _) => "ok",
        (false, Some(_)) => "not ok",
        (false, None) if !report.stuck.is_empty() => "not ok: executions are stuck",
        (false, None) => "not ok: a required feature is missing",
    };
    let mut parts = vec![format!("kernel {}: {verdict}", report.kernel)];
    parts.extend(report.problem.as_ref().map(|problem| out.entry("problem: ", problem)));
    if !report.layers.is_empty() {
        parts.push(format!("In the jail:\n{}", layers(&report.layers, out.fit()).trim_end()));
    }
    if !report.host.is_empty() {
        parts.push(format!("Tried on this machine:\n{}", findings(&report.host, out.fit()).trim_end()));
    }
    if !report.stuck.is_empty() {
        let mut rows = Rows::new(["EXECUTION", "OWNER", "WHY"]);
        for StuckExecution { execution_id, owner, why } in &report.stuck {
            let owner = owner.clone().unwrap_or_else(|| "-".to_owned());
            rows.row([execution_id.to_string(), owner, why.clone()]);
        }
        parts.push(format!("Stuck, a bug of the daemon:\n{}", rows.wrapped("", out.fit()).trim_end()));
    }
    parts.join("\n\n")
}

/// The table of walls.
pub(super) fn layers(layers: &[SandboxLayer], fit: Option<Fit>) -> String {
    let mut rows = Rows::new(["WALL", "IN FORCE", "REQUIRED", "DETAIL"]);
    for layer in layers {
        rows.row([layer.name.clone(), word(layer.in_force), word(layer.required), layer.detail.clone()]);
    }
    rows.wrapped("No walls.", fit)
}

fn findings(findings: &[HostFinding], fit: Option<Fit>) -> String {
    let mut rows = Rows::new(["WALL", "WORKS", "REQUIRED", "DETAIL"]);
    for finding in findings {
        rows.row([finding.name.clone(), word(finding.works), word(finding.required), finding.detail.clone()]);
    }
    rows.wrapped("No findings.", fit)
}

fn word(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
