//! `program get`

use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::ProgramGet;

/// A program.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name, id, or unique beginning of an id
    #[arg(value_name = "PROGRAM")]
    pub(super) program: String,
}

/// Arguments of `program get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    #[command(flatten)]
    which: Args,
    /// The source of this version [default: the newest]
    #[arg(long, value_name = "N")]
    version: Option<u32>,
}

pub(crate) async fn run(context: &Context, args: GetArgs) -> Result<u8, CliError> {
    let op = ProgramGet { program: args.which.program, version: args.version };
    let program = context.call_once(op, None).await?;
    context.out.details(&program)?;
    Ok(exit::OK)
}
