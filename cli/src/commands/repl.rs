//! `repl [SESSION]`: an interactive JavaScript shell.
//!
//! Without a session it embeds a supervisor with the current folder. Ctrl-C cancels the running code, not the shell.

mod assist;
mod complete_input;
mod dot;
mod input;

use super::exec::{repl::new_execution, start};
use super::run::{embedded, session};
use crate::args::{OutputFormat, SandboxArg};
use crate::backend::Backend;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::parse;
use crate::script_output::{ScriptOutput, ShowValues};
use crate::signals::Interrupts;
use dot::Dot;
use input::{Input, Line};
use std::time::Duration;
use vm_system_protocol::control::{Op, Reply};
use vm_system_protocol::model::SessionStatus;

/// Arguments of `repl`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A session of the daemon [default: a private session in the current folder]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Time limit of one input, for CPU time and for wall-clock time: 500ms, 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "30s", conflicts_with = "session")]
    timeout: Duration,
    /// Memory limit (MiB)
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "session")]
    memory: u32,
    /// The sandbox walls to set up
    #[arg(long, value_name = "MODE", value_enum, default_value_t, conflicts_with = "session")]
    sandbox: SandboxArg,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    if context.out.format != OutputFormat::Table {
        return Err(CliError::usage("repl is for people; use `exec repl` with --output"));
    }
    match args.session {
        Some(session) => context.block_on(in_session(context, session)),
        None => context.block_on_embedded(in_embedded(context, args.timeout, args.memory, args.sandbox)),
    }
}

async fn in_session(context: &Context, session: String) -> Result<u8, CliError> {
    let interrupts = Interrupts::listen_to_ctrl_c()?;
    let reply = context.call(Op::SessionGet { session }).await?;
    let session = expect_reply!(reply, Reply::Session(session) => session);
    if session.status != SessionStatus::Ready {
        let message = format!("session {} is {}", session.id, session.status);
        return Err(CliError::new(exit::FAILED, message)
            .with_hint("create a new one with `vm-system session create`"));
    }
    converse(context, context.daemon(), &interrupts, session.id.to_string()).await
}

async fn in_embedded(
    context: &Context,
    timeout: Duration,
    memory: u32,
    sandbox: SandboxArg,
) -> Result<u8, CliError> {
    let interrupts = Interrupts::listen_to_ctrl_c()?;
    let folder = embedded::current_folder()?;
    let own = embedded::start(sandbox).await?;
    let result = async {
        let session = session(&own, embedded::settings(timeout, memory), folder, false).await?;
        converse(context, own.backend(), &interrupts, session).await
    }
    .await;
    own.stop().await;
    result
}

async fn converse(
    context: &Context,
    backend: &Backend,
    interrupts: &Interrupts,
    session: String,
) -> Result<u8, CliError> {
    let mut input = Input::open(context)?;
    if input.is_terminal() {
        context.out.note("vm-system repl: .help for help, .exit to leave");
    }
    let mut code = exit::OK;
    loop {
        let text = match input.next()? {
            Line::End => break,
            Line::Text(text) if text.trim().is_empty() => continue,
            Line::Text(text) => text,
        };
        let text = match Dot::parse(&text) {
            None => text,
            Some(Dot::Exit) => break,
            Some(dot) => match dot.perform(context, &mut input)? {
                Some(text) => text,
                None => continue,
            },
        };
        input.learn(&text);
        let values = if input.is_terminal() { ShowValues::Always } else { ShowValues::Defined };
        let output = ScriptOutput::new(context.out.style, values);
        let new = new_execution(session.clone(), text);
        interrupts.forget();
        match start::to_its_end(context, backend, interrupts, new, None, &output).await {
            Ok(status) => code = status,
            Err(error) if input.is_terminal() && is_ready(backend, &session).await => {
                error.print(context.out.style);
            }
            Err(error) => return Err(error),
        }
    }
    input.save();
    // On a terminal the error was shown; for a pipe the exit code is that of the last input.
    Ok(if input.is_terminal() { exit::OK } else { code })
}

/// Whether the session is still ready, so that the shell can continue after an error.
async fn is_ready(backend: &Backend, session: &str) -> bool {
    let op = Op::SessionGet { session: session.to_owned() };
    matches!(backend.call(op, None).await, Ok(Reply::Session(session)) if session.status == SessionStatus::Ready)
}
