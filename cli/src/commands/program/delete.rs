//! `program delete`

use super::get::Args;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::ProgramDelete;

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let program = context.call_once(ProgramDelete { program: args.program }, None).await?;
    let line = format!("Deleted program: {} (ID: {})", program.name, program.id);
    context.out.done(&program, &line, &program.id.to_string())?;
    Ok(exit::OK)
}
