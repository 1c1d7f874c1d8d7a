//! `exec get`

use super::ExecutionArg;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context, args: ExecutionArg) -> Result<u8, CliError> {
    let reply = context.call(Op::ExecGet { execution: args.execution }).await?;
    let execution = expect_reply!(reply, Reply::Execution(execution) => execution);
    context.out.details(&execution)?;
    Ok(exit::OK)
}
