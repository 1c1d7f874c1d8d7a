//! `ops doctor`: queries the daemon, or probes this host itself if none is reachable.

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_daemon::{SpawnConfig, examine_host};
use vm_system_protocol::control::{DoctorReport, HostFinding, Op, Reply, SandboxLayer};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let report = match context.call(Op::Doctor).await {
        Err(error) if error.exit_code() == exit::NO_DAEMON && context.target.is_local() => {
            context.out.note("no supervisor responds: these are the findings of this process on this host");
            examine_host(SpawnConfig::embedded()).await
        }
        result => *expect_reply!(result?, Reply::Doctor(report) => report),
    };
    context.out.result(&report, || text(&report))?;
    Ok(if report.ok { exit::OK } else { exit::FAILED })
}

fn text(report: &DoctorReport) -> String {
    let verdict = match (report.ok, &report.problem) {
        (true, _) => "ok",
        (false, Some(_)) => "not ok",
        (false, None) => "not ok: a required feature is missing",
    };
    let mut parts = vec![format!("kernel {}: {verdict}", report.kernel)];
    parts.extend(report.problem.as_ref().map(|problem| format!("problem: {problem}")));
    if !report.layers.is_empty() {
        parts.push(format!("In the jail:\n{}", layers(&report.layers).trim_end()));
    }
    if !report.host.is_empty() {
        parts.push(format!("Tried on this machine:\n{}", findings(&report.host).trim_end()));
    }
    parts.join("\n\n")
}

/// The table of walls.
pub(super) fn layers(layers: &[SandboxLayer]) -> String {
    let mut rows = Rows::new(["WALL", "IN FORCE", "REQUIRED", "DETAIL"]);
    for layer in layers {
        rows.row([layer.name.clone(), word(layer.in_force), word(layer.required), layer.detail.clone()]);
    }
    rows.finish("No walls.", None)
}

fn findings(findings: &[HostFinding]) -> String {
    let mut rows = Rows::new(["WALL", "WORKS", "REQUIRED", "DETAIL"]);
    for finding in findings {
        rows.row([finding.name.clone(), word(finding.works), word(finding.required), finding.detail.clone()]);
    }
    rows.finish("No findings.", None)
}

fn word(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
