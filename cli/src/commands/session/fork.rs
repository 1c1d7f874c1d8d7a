//! `session fork`

use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::SessionFork;
use vm_system_protocol::limits::FORKS;

/// Arguments of `session fork`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Number of copies; if one fails, none is created
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(FORKS)))]
    count: u32,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = SessionFork { session: args.session, count: args.count };
    let sessions = context.call_once(op, args.idempotency.idempotency_key).await?;
    let ids: Vec<String> = sessions.iter().map(|session| session.id.to_string()).collect();
    let lines: Vec<String> = ids.iter().map(|id| format!("Forked session: {id}")).collect();
    context.out.done(&sessions, &lines.join("\n"), &ids.join("\n"))?;
    Ok(exit::OK)
}
