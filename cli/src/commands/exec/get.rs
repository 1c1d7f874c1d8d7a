//! `exec get`

use super::ExecutionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::ExecGet;

pub(crate) async fn run(context: &Context, args: ExecutionArg) -> Result<u8, CliError> {
    let execution = context.call(ExecGet { execution: args.execution }).await?;
    context.out.details(&execution)?;
    Ok(exit::OK)
}
