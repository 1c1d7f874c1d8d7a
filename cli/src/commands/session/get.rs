//! `session get`

use super::SessionArg;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let reply = context.call(Op::SessionGet { session: args.session }).await?;
    let session = expect_reply!(reply, Reply::Session(session) => session);
    context.out.details(&session)?;
    Ok(exit::OK)
}
