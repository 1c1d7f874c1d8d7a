//! `task get`

use crate::commands::program::call;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::escape;
use vm_system_protocol::control::{DurableOp, DurableReply};
use vm_system_protocol::model::TaskStatus;

/// Arguments of `task get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The execution, or its task: id, unique beginning of one, or the execution's name
    #[arg(value_name = "EXECUTION")]
    execution: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let reply = call(context, DurableOp::TaskGet { execution: args.execution }, None).await?;
    let status = expect_reply!(reply, DurableReply::TaskStatus(status) => status);
    context.out.result(&status, || text(&status))?;
    Ok(exit::OK)
}

fn text(status: &TaskStatus) -> String {
    if let Some(task) = &status.task {
        return escape::for_terminal(&task.prompt).into_owned();
    }
    match (&status.result, &status.error) {
        (_, Some(error)) => format!("Error: {} ({})", escape::for_message(&error.message), error.code),
        (Some(result), None) => {
            format!("Execution completed with result: {}", escape::for_message(result.as_str()))
        }
        (None, None) => format!("Execution is {}", status.status),
    }
}
