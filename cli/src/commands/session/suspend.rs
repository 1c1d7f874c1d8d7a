//! `session suspend` and `session resume`

use super::SessionArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::{SessionResume, SessionSuspend, Verb};
use vm_system_protocol::model::Session;

pub(crate) async fn suspend(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    run(context, SessionSuspend { session: args.session }, "Suspended").await
}

pub(crate) async fn resume(context: &Context, args: SessionArg) -> Result<u8, CliError> {
    run(context, SessionResume { session: args.session }, "Resumed").await
}

async fn run(context: &Context, verb: impl Verb<Reply = Session>, done: &str) -> Result<u8, CliError> {
    let session = context.call(verb).await?;
    let id = session.id.to_string();
    context.out.done(&session, &format!("{done} session: {id}"), &id)?;
    Ok(exit::OK)
}
