//! `session rename`

use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::SessionRename;

/// Arguments of `session rename`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// The new name: unique among those of your sessions that have not ended (1–200 characters)
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let verb = SessionRename { session: args.session, name: args.name };
    let session = context.call_once(verb, args.idempotency.idempotency_key).await?;
    let (id, name) = (session.id.to_string(), session.name.as_deref().unwrap_or_default());
    context.out.done(&session, &format!("Renamed session: {name} (ID: {id})"), &id)?;
    Ok(exit::OK)
}
