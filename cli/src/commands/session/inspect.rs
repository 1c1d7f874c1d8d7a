//! `session inspect`

use super::SessionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::SessionInspect;

pub(crate) async fn run(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let inspection = context.call(SessionInspect { session: args.session }).await?;
    context.out.details(&inspection)?;
    Ok(exit::OK)
}
