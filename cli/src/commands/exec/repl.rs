//! `exec repl`

use super::start;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::script_output::{ScriptOutput, ShowValues};
use crate::signals::Interrupts;
use vm_system_protocol::control::NewExecution;
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
    /// Return as soon as it runs, with the execution's id
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let code = if args.code == "-" { crate::read::read_stdin()? } else { args.code };
    let new = new_execution(args.session, code);
    let key = args.idempotency.idempotency_key;
    if args.no_wait {
        return start::and_leave(context, new, key).await;
    }
    let interrupts = Interrupts::listen()?;
    let output = ScriptOutput::new(context.out.style, ShowValues::Defined);
    start::to_its_end(context, context.daemon(), &interrupts, new, key, &output).await
}

/// Code for a session as typed.
pub(crate) fn new_execution(session: String, code: String) -> NewExecution {
    // The supervisor refuses empty input; empty code is no error here, like an empty file.
    let code = if code.is_empty() { "\n".to_owned() } else { code };
    NewExecution { input: Some(code), ..NewExecution::new(session, ExecutionKind::Repl) }
}
