//! `program runs`

use super::{call, show};
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply, ListPage};

/// Arguments of `program runs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only executions of this program
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = DurableOp::RunList { program: args.program, page: ListPage::first(args.limit) };
    let reply = call(context, op, None).await?;
    let runs = expect_reply!(reply, DurableReply::Runs(runs) => runs);
    context.out.list(&runs, "No executions of programs.", || {
        let mut rows = Rows::new(["ID", "NAME", "PROGRAM", "STATUS", "STARTED"]);
        for run in &runs {
            rows.row([
                run.execution.id.to_string(),
                run.name.clone().unwrap_or_else(|| "-".to_owned()),
                show::program(run),
                run.execution.status.to_string(),
                run.execution.started_at.to_string(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
