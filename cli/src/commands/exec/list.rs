//! `exec list`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::{ListArgs, PeriodArgs};
use crate::output::{Rows, with_owners};
use crate::parse;
use vm_system_protocol::control::{ExecList, ListPage};
use vm_system_protocol::model::{Execution, ExecutionStatus};

/// Arguments of `exec list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Only executions with this status
    #[arg(long, value_name = "STATUS", value_parser = parse::execution_status())]
    status: Option<ExecutionStatus>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    list: ListArgs,
}

/// Longest source in a table that fits a terminal (characters).
const SOURCE_CHARS: usize = 48;

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&Execution>, limit| {
        let filter = ExecList {
            session: args.session.clone(),
            status: args.status,
            period: args.period.period(),
            page: ListPage::after_last(last, limit),
        };
        context.call(filter).await
    };
    let executions = args.list.collect(part).await?;
    context.out.list(&executions, "No executions.", || {
        let mut rows = Rows::new(["ID", "KIND", "STATUS", "STARTED", "MS", "SOURCE"]);
        for execution in &executions {
            rows.row([
                execution.id.to_string(),
                execution.kind.to_string(),
                status(execution),
                execution.started_at.to_string(),
                execution.metrics.duration_ms.to_string(),
                context.out.cell(source(execution), SOURCE_CHARS),
            ]);
        }
        with_owners(context, rows, executions.iter().map(|execution| execution.owner.as_deref()))
    })?;
    Ok(exit::OK)
}

/// The status, with the mark of an execution of which a write was lost.
fn status(execution: &Execution) -> String {
    let degraded = if execution.degraded { " (degraded)" } else { "" };
    format!("{}{degraded}", execution.status)
}

fn source(execution: &Execution) -> &str {
    execution.path.as_deref().or(execution.input.as_deref()).unwrap_or("-")
}
