//! `program schedule get`

use super::change::Args;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::ScheduleGet;

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let schedule = context.call_once(ScheduleGet { schedule: args.schedule }, None).await?;
    context.out.details(&schedule)?;
    Ok(exit::OK)
}
