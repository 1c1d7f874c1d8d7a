//! `session inspect`

use super::SessionArg;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let reply = context.call(Op::SessionInspect { session: args.session }).await?;
    let inspection = expect_reply!(reply, Reply::Inspection(inspection) => inspection);
    context.out.details(&inspection)?;
    Ok(exit::OK)
}
