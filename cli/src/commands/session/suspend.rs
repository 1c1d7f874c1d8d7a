//! `session suspend` and `session resume`

use super::SessionArg;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn suspend(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    run(context, Op::SessionSuspend { session: args.session }, "Suspended").await
}

pub(crate) async fn resume(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    run(context, Op::SessionResume { session: args.session }, "Resumed").await
}

async fn run(context: &Context, op: Op, done: &str) -> Result<u8, CliError> {
    let session = expect_reply!(context.call(op).await?, Reply::Session(session) => session);
    let id = session.id.to_string();
    context.out.done(&session, &format!("{done} session: {id}"), &id)?;
    Ok(exit::OK)
}
