//! `program status`

use super::show;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::RunGet;

/// An execution of a program.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    pub(super) execution: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let run = context.call_once(RunGet { execution: args.execution }, None).await?;
    show::run(context, &run).await?;
    Ok(exit::OK)
}
