//! `session close`

use super::SessionArg;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    let reply = context.call(Op::SessionClose { session: args.session }).await?;
    let session = expect_reply!(reply, Reply::Session(session) => session);
    context.out.done(&session, &format!("Closed session: {}", session.id), &session.id.to_string())?;
    if let Some(execution) = session.execution_id {
        context
            .out
            .note(&format!("The session belonged to a program: its execution {execution} has ended too."));
    }
    Ok(exit::OK)
}
