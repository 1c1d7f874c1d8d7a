//! `program get`

use super::call;
use crate::context::{Context, unexpected};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{DurableOp, DurableReply, Reply};

/// A program.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name, id, or unique beginning of one
    #[arg(value_name = "PROGRAM")]
    pub(super) program: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    match call(context, DurableOp::ProgramGet { program: args.program }, None).await? {
        DurableReply::Program(program) => context.out.details(&program)?,
        other => return Err(unexpected(&Reply::Durable(other))),
    }
    Ok(exit::OK)
}
