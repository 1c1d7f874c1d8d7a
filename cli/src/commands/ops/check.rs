//! `ops check`: by the daemon, or of a file that nobody has open.

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::{Fit, Rows};
use crate::rights::FileAction;
use std::io;
use std::path::Path;
use vm_system_daemon::DaemonError;
use vm_system_protocol::control::{CheckReport, DatabaseCheck};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let report = match &context.global.db {
        Some(path) => {
            vm_system_daemon::check_database(path).map_err(|error| unreadable(path, &error.into()))?
        }
        None => context.call(DatabaseCheck).await?,
    };
    context.out.result(&report, || text(&report, context.out.fit()))?;
    Ok(if report.ok { exit::OK } else { exit::FAILED })
}

fn unreadable(path: &Path, error: &DaemonError) -> CliError {
    if !error.is_not_permitted() {
        return CliError::new(exit::FAILED, error.to_string());
    }
    let failed = CliError::new(exit::NOT_PERMITTED, error.to_string());
    failed.with_right(path, FileAction::Read, &io::ErrorKind::PermissionDenied.into())
}

fn text(report: &CheckReport, fit: Option<Fit>) -> String {
    let schema = report.schema.map_or_else(|| "unknown".to_owned(), |schema| schema.to_string());
    let newest = report.newest_record.map_or_else(|| "none".to_owned(), |at| at.to_string());
    let head = format!("schema {schema}, {} bytes, newest record {newest}", report.bytes);
    if report.ok {
        return format!("ok: nothing was found ({head})");
    }
    let mut rows = Rows::new(["CHECK", "OBJECT", "ID", "DETAIL"]);
    for finding in &report.findings {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        rows.row([
            finding.check.clone(),
            or_none(&finding.object),
            or_none(&finding.id),
            finding.detail.clone(),
        ]);
    }
    let more = if report.more > 0 { format!("\nand {} more", report.more) } else { String::new() };
    format!("not ok: {head}\n\n{}{more}", rows.wrapped("", fit).trim_end())
}
