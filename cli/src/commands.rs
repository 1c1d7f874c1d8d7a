//! One file per command; each turns its arguments into verbs and the replies into output.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod event;
pub(crate) mod exec;
pub(crate) mod help;
pub(crate) mod libs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod ops;
pub(crate) mod program;
pub(crate) mod repl;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod task;
pub(crate) mod template;

use crate::args::Command;
use crate::context::Context;
use crate::error::CliError;

/// Runs one command and returns its exit code.
pub(crate) fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    let here = match &command {
        Command::Run(args) if !args.is_in_session() => {
            Some(("`run` without --session runs the script", "give a session of that daemon with --session"))
        }
        Command::Repl(args) if !args.is_in_session() => {
            Some(("`repl` without a SESSION runs code", "give a session of that daemon"))
        }
        Command::Check(_) => Some(("`check` reads files", "run it without --server-url")),
        Command::Serve(_) => {
            Some(("`serve` starts a daemon", "run it on that machine, without --server-url"))
        }
        _ => None,
    };
    if let Some((here, hint)) = here
        && let Some(url) = &context.global.remote.server_url
    {
        let message = format!("{here} on this machine: --server-url {url} names a daemon that is running");
        return Err(CliError::usage(message).with_hint(hint));
    }
    match command {
        Command::Run(args) => run::run(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Repl(args) => repl::run(context, args),
        Command::Serve(args) => serve::run(context, args),
        Command::Mcp(args) => mcp::run(context, args),
        Command::Template(command) => context.block_on(template::run(context, command)),
        Command::Session(command) => context.block_on(session::run(context, command)),
        Command::Exec(command) => context.block_on(exec::run(context, command)),
        Command::Libs(command) => context.block_on(libs::run(context, command)),
        Command::Program(command) => context.block_on(program::run(context, command)),
        Command::Task(command) => context.block_on(task::run(context, command)),
        Command::Event(command) => context.block_on(event::run(context, command)),
        Command::Ops(command) => context.block_on(ops::run(context, command)),
        Command::Completions(args) => completions::run(context, &args),
        Command::Man(args) => man::run(context, &args),
        Command::Help(args) => help::run(context, &args),
    }
}
