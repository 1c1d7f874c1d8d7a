//! `program delete`

use super::call;
use super::get::Args;
use crate::context::{Context, unexpected};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{DurableOp, DurableReply, Reply};

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    match call(context, DurableOp::ProgramDelete { program: args.program }, None).await? {
        DurableReply::Program(program) => {
            let line = format!("Deleted program: {} (ID: {})", program.name, program.id);
            context.out.done(&program, &line, &program.id.to_string())?;
        }
        other => return Err(unexpected(&Reply::Durable(other))),
    }
    Ok(exit::OK)
}
