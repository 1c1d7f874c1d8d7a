//! `exec run-file`

use super::start::{self, CodeRunner};
use crate::args::{DisconnectArgs, IdempotencyArgs};
use crate::context::Context;
use crate::error::CliError;
use crate::parse::{self, Variables};
use crate::script_output::{ScriptOutput, ShowValues};
use crate::signals::Interrupts;
use vm_system_protocol::control::ExecStart;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::ExecutionKind;

/// Arguments of `exec run-file`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "`args` are what the user calls arguments")]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Path of the file, relative to the session's worktree
    #[arg(value_name = "PATH")]
    path: String,
    /// The script's `args`
    #[arg(long, value_name = "JSON", value_parser = parse::json_object)]
    args: Option<JsonText>,
    /// The script's `process.env`
    #[arg(long, value_name = "JSON", value_parser = parse::variables)]
    env: Option<Variables>,
    /// Return as soon as it runs, with the execution's id
    #[arg(long)]
    no_wait: bool,
    /// Print the execution's id, status and metrics on stderr at the end
    #[arg(long, conflicts_with = "no_wait")]
    verbose: bool,
    #[command(flatten)]
    disconnect: DisconnectArgs,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let new = ExecStart {
        path: Some(args.path),
        args: args.args.unwrap_or_else(JsonText::empty_object),
        env: args.env.unwrap_or_default().0,
        ..ExecStart::new(args.session, ExecutionKind::RunFile)
    };
    let key = args.idempotency.idempotency_key;
    if args.no_wait {
        return start::start_and_leave(context, new, key).await;
    }
    context.daemon().cancel_on_disconnect(args.disconnect.cancels(key.as_deref()));
    let interrupts = Interrupts::listen()?;
    let output = ScriptOutput::new(context.out.style, ShowValues::Never).verbose(args.verbose);
    let runner = CodeRunner { context, backend: context.daemon(), interrupts: &interrupts };
    runner.run_to_end(new, key, &output).await
}
