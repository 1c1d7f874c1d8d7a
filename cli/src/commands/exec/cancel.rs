//! `exec cancel`

use super::ExecutionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::{ExecCancel, ExecGet};
use vm_system_protocol::model::ExecutionStatus;

pub(crate) async fn run(context: &Context, args: ExecutionArg) -> Result<u8, CliError> {
    context.call(ExecCancel { execution: args.execution.clone() }).await?;
    // An ended execution keeps its status; one that still runs will end as cancelled.
    let execution = context.call(ExecGet { execution: args.execution }).await?;
    let id = execution.id.to_string();
    let line = match execution.status {
        status if status.is_final() && status != ExecutionStatus::Cancelled => {
            format!("Execution {id} had already ended: {status} (`vm-system exec get {id}` shows its result)")
        }
        _ => format!("Cancelled execution: {id}"),
    };
    context.out.done(&serde_json::json!({ "status": "ok", "execution": id }), &line, &id)?;
    Ok(exit::OK)
}
