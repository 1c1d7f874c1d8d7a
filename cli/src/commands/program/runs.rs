//! `program runs`

use super::show;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::{ListArgs, OwnerArgs, PeriodArgs};
use crate::output::{Rows, with_owners};
use crate::parse;
use vm_system_protocol::control::{ListPage, RunList};
use vm_system_protocol::model::{ExecutionStatus, Run};

/// Arguments of `program runs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only executions of this program
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,
    /// Only executions with this status
    #[arg(long, value_name = "STATUS", value_parser = parse::execution_status())]
    status: Option<ExecutionStatus>,
    /// Only executions with exactly this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&Run>, limit| {
        let op = RunList {
            status: args.status,
            program: args.program.clone(),
            name: args.name.clone(),
            period: args.period.period(),
            owner: args.owner.owner.clone(),
            page: ListPage::after_last(last, limit),
        };
        context.call_once(op, None).await
    };
    let runs = args.list.collect(part).await?;
    context.out.list(&runs, "No executions of programs.", || {
        let mut rows = Rows::new(["ID", "NAME", "PROGRAM", "STATUS", "STARTED", "WAITING FOR"]);
        for run in &runs {
            rows.row([
                run.execution.id.to_string(),
                run.name.clone().unwrap_or_else(|| "-".to_owned()),
                show::program(run),
                run.execution.status.to_string(),
                run.execution.started_at.to_string(),
                run.waiting_for.as_ref().map_or_else(|| "-".to_owned(), show::waiting_for),
            ]);
        }
        with_owners(context, rows, runs.iter().map(|run| run.execution.owner.as_deref()))
    })?;
    Ok(exit::OK)
}
