//! `ops runtime-summary`

use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::RuntimeSummaryGet;

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let summary = context.call(RuntimeSummaryGet).await?;
    context.out.details(&summary)?;
    Ok(exit::OK)
}
