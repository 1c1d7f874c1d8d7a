//! `session kill`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use nix::libc::SIGKILL;
use vm_system_protocol::control::SessionKill;

/// Arguments of `session kill`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Name or number of the signal
    #[arg(long, value_name = "SIGNAL", default_value = "KILL", value_parser = parse::signal)]
    signal: i32,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    context.call(SessionKill { session: args.session.clone(), signal: args.signal }).await?;
    let result = serde_json::json!({ "status": "ok", "session": args.session });
    let text = if args.signal == SIGKILL {
        format!("Killed session: {}", args.session)
    } else {
        format!("Sent signal {} to the worker of session: {}", args.signal, args.session)
    };
    context.out.done(&result, &text, &args.session)?;
    Ok(exit::OK)
}
