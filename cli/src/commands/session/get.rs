//! `session get`

use super::SessionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::SessionGet;

pub(crate) async fn run(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let session = context.call(SessionGet { session: args.session }).await?;
    context.out.details(&session)?;
    Ok(exit::OK)
}
