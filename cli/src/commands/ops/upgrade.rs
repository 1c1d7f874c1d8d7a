//! `ops upgrade`: which builds the workers run, and their replacement by a deadline.

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::{Fit, Rows};
use crate::parse::{self, TimeArgument};
use crate::signals::Interrupts;
use std::time::Duration;
use vm_system_protocol::control::{BuildUse, Upgrade, UpgradeDrain, UpgradeReport};
use vm_system_protocol::counted::counted;
use vm_system_protocol::time::Timestamp;

/// Between two requests of `--wait`.
const INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `ops upgrade`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Replace workers of other builds than the daemon's by then: 30m, 2h, or 2030-01-31T18:00:00Z. Sessions with `on_crash: restart`
    /// are restarted when they are idle; the others end at the deadline
    #[arg(long, value_name = "TIME", value_parser = parse::deadline)]
    drain_by: Option<TimeArgument>,
    /// Withdraw the deadline: workers of other builds stay
    #[arg(long, conflicts_with_all = ["drain_by", "wait"])]
    cancel: bool,
    /// Wait until no session runs another build than the daemon's, and show the progress
    #[arg(long)]
    wait: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let mut report = match args.drain_by {
        Some(deadline) => context.call(UpgradeDrain { drain_by: Some(deadline.timestamp()) }).await?,
        None if args.cancel => context.call(UpgradeDrain { drain_by: None }).await?,
        None => context.call(Upgrade).await?,
    };
    if args.wait {
        let interrupts = Interrupts::listen()?;
        let mut last = None;
        while others(&report) > 0 {
            let now = progress(&report);
            if last.as_ref() != Some(&now) {
                context.out.note(&now);
                last = Some(now);
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = interrupts.next() => return Err(CliError::silent(interrupts.exit_code())),
            }
            report = context.call(Upgrade).await?;
        }
    }
    context.out.result(&report, || text(&report, context.out.fit()))?;
    Ok(if report.unreached.is_empty() { exit::OK } else { exit::FAILED })
}

/// Sessions of other builds than the daemon's.
fn others(report: &UpgradeReport) -> u64 {
    report.builds.iter().filter(|build| !build.current).map(BuildUse::sessions).sum()
}

fn progress(report: &UpgradeReport) -> String {
    let deadline = report.drain_at.map_or_else(
        || "without a deadline (--drain-by sets one)".to_owned(),
        |at| format!("to be replaced by {at}"),
    );
    format!("{} of other builds, {deadline}", counted(others(report), "session"))
}

fn text(report: &UpgradeReport, fit: Option<Fit>) -> String {
    let mut rows = Rows::new([
        "VERSION",
        "BUILD",
        "PROTOCOL",
        "KEEPERS",
        "IDLE",
        "BUSY",
        "WAITING",
        "SUSPENDED",
        "PROGRAMS",
        "OLDEST",
    ]);
    for build in &report.builds {
        let keepers: Vec<String> = build.keepers.iter().map(u32::to_string).collect();
        rows.row([
            build.version.clone(),
            format!("{}{}", build.build, if build.current { " (daemon)" } else { "" }),
            build.protocol.to_string(),
            keepers.join(","),
            build.idle.to_string(),
            build.busy.to_string(),
            build.waiting.to_string(),
            build.suspended.to_string(),
            build.programs.to_string(),
            build.oldest.as_ref().map_or_else(|| "-".to_owned(), Timestamp::to_string),
        ]);
    }
    let mut parts = vec![rows.finish("", fit).trim_end().to_owned()];
    if others(report) > 0 {
        parts.push(progress(report));
    } else {
        parts.push("All sessions run the daemon's build.".to_owned());
    }
    if !report.unreached.is_empty() {
        let ids: Vec<String> = report.unreached.iter().map(ToString::to_string).collect();
        parts.push(format!("Not reached, repeat the command: {}", ids.join(", ")));
    }
    parts.join("\n\n")
}
