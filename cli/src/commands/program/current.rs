//! `program current`

use super::show;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::{CurrentGet, CurrentSet};

/// Arguments of `program current`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The new current execution: id, unique beginning of an id, or name [default: only show the current one]
    #[arg(value_name = "EXECUTION")]
    execution: Option<String>,
    /// The client: the name given to `vm-system mcp --client`
    #[arg(long, value_name = "NAME")]
    client: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let client = crate::commands::mcp::key_of_client(&args.client)?;
    if let Some(execution) = args.execution {
        let run = context.call_once(CurrentSet { client, execution }, None).await?;
        let id = run.execution.id.to_string();
        context.out.done(&run, &format!("Current execution: {id}"), &id)?;
        return Ok(exit::OK);
    }
    let run = context.call_once(CurrentGet { client }, None).await?;
    match run {
        Some(run) => show::run(context, &run).await.map(|_| exit::OK),
        None => Err(CliError::new(exit::FAILED, "no current execution is set for this client")
            .with_hint("`vm-system program current EXECUTION --client NAME` sets one")),
    }
}
