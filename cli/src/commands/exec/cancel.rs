//! `exec cancel`

use super::ExecutionArg;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};
use vm_system_protocol::model::ExecutionStatus;

pub(crate) async fn run(context: &Context, args: ExecutionArg) -> Result<u8, CliError> {
    context.call(Op::ExecCancel { execution: args.execution.clone() }).await?;
    // What has ended already stays as it is; what has not yet ended will, as cancelled.
    let reply = context.call(Op::ExecGet { execution: args.execution }).await?;
    let execution = expect_reply!(reply, Reply::Execution(execution) => execution);
    let id = execution.id.to_string();
    let line = match execution.status {
        status if status.is_final() && status != ExecutionStatus::Cancelled => {
            format!("Execution {id} had ended already: {status}")
        }
        _ => format!("Cancelled execution: {id}"),
    };
    context.out.done(&serde_json::json!({ "status": "ok", "execution": id }), &line, &id)?;
    Ok(exit::OK)
}
