//! `exec cancel`

use super::ExecutionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::Op;

pub(crate) async fn run(context: &Context, args: ExecutionArg) -> Result<u8, CliError> {
    context.call(Op::ExecCancel { execution: args.execution.clone() }).await?;
    let answer = serde_json::json!({ "status": "ok", "execution": args.execution });
    context.out.done(&answer, &format!("Cancelled execution: {}", args.execution), &args.execution)?;
    Ok(exit::OK)
}
