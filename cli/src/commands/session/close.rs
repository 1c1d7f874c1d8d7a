//! `session close`

use super::SessionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::SessionClose;

pub(crate) async fn run(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let session = context.call(SessionClose { session: args.session }).await?;
    context.out.done(&session, &format!("Closed session: {}", session.id), &session.id.to_string())?;
    if let Some(execution) = session.execution_id {
        context
            .out
            .note(&format!("The session belonged to a program: its execution {execution} has ended too."));
    }
    Ok(exit::OK)
}
