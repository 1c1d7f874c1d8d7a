//! `exec repl`

use super::start::{self, CodeRunner};
use crate::args::{DisconnectArgs, IdempotencyArgs};
use crate::context::Context;
use crate::error::CliError;
use crate::script_output::{ScriptOutput, ShowValues};
use crate::signals::Interrupts;
use vm_system_protocol::control::{ExecStart, TYPESCRIPT_INPUT};
use vm_system_protocol::model::ExecutionKind;

/// Arguments of `exec repl`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// JavaScript; `-` reads it from stdin
    #[arg(value_name = "CODE", allow_hyphen_values = true)]
    code: String,
    /// The code is TypeScript
    #[arg(long)]
    ts: bool,
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
    let code = if args.code == "-" { crate::read::read_stdin()? } else { args.code };
    let new = new_execution(args.session, code, args.ts.then_some(TYPESCRIPT_INPUT));
    let key = args.idempotency.idempotency_key;
    if args.no_wait {
        return start::start_and_leave(context, new, key).await;
    }
    context.daemon().cancel_on_disconnect(args.disconnect.cancels(key.as_deref()));
    let interrupts = Interrupts::listen()?;
    let output = ScriptOutput::new(context.out.style, ShowValues::Defined).verbose(args.verbose);
    let runner = CodeRunner { context, backend: context.daemon(), interrupts: &interrupts };
    runner.run_to_end(new, key, &output).await
}

/// Code for a session as typed; `input` is one of the names of inputs, or none.
pub(crate) fn new_execution(session: String, code: String, input: Option<&str>) -> ExecStart {
    // The supervisor refuses empty input; empty code is no error here, like an empty file.
    let code = if code.is_empty() { "\n".to_owned() } else { code };
    let path = input.map(str::to_owned);
    ExecStart { input: Some(code), path, ..ExecStart::new(session, ExecutionKind::Repl) }
}
