//! `program delete`

use super::call;
use super::get::Args;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{DurableOp, DurableReply};

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let reply = call(context, DurableOp::ProgramDelete { program: args.program }, None).await?;
    let program = expect_reply!(reply, DurableReply::Program(program) => program);
    let line = format!("Deleted program: {} (ID: {})", program.name, program.id);
    context.out.done(&program, &line, &program.id.to_string())?;
    Ok(exit::OK)
}
