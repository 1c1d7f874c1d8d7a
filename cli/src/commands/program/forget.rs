//! `program forget`

use super::status::Args;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::RunDelete;

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let run = context.call_once(RunDelete { execution: args.execution }, None).await?;
    let id = run.execution.id.to_string();
    context.out.done(&run, &format!("Deleted execution: {id}"), &id)?;
    Ok(exit::OK)
}
