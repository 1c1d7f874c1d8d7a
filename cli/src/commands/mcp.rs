//! `mcp`: tools for agents on stdin and stdout. The supervisor provides the tools; this command connects to a daemon, starts one
//! if none is reachable, and reads the files that the agent names.

pub(crate) mod files;
mod front;
mod streams;
mod workspace;

pub(crate) use front::key_of_client;

use crate::args::SandboxArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::on_demand::Starter;
use front::StdioFront;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vm_system_api::mcp::{ToolSets, lines, serve};

/// Arguments of `mcp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Speaks JSON-RPC, one message per line; logs go to stderr. All agents of a user share one daemon: if none responds, one is \
started, and exits by itself some time after the last agent has disconnected. Its state is kept. With --server-url none is \
started, and --worktree is a folder of the daemon's machine.

An agent's configuration: {\"mcpServers\": {\"vm-system\": {\"command\": \"vm-system\", \"args\": [\"mcp\"]}}}")]
pub struct Args {
    /// The agent's name, under which its current execution is kept [default: each process has its own]
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    #[arg(
        long,
        value_name = "DIR",
        help = "A folder whose files loadFile and parsePlan may read [default: the current folder, and those in $CVM_SANDBOX_PATHS]"
    )]
    allow_read: Vec<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        help = "The folder whose files programs and sessions use unless a tool call names another [default: the first in $CVM_SANDBOX_PATHS]"
    )]
    worktree: Option<PathBuf>,
    #[arg(
        long,
        value_name = "SETS",
        default_value = "default",
        help = "Tools to list besides the basic ones: branch, admin, plans, sessions or all, separated by commas"
    )]
    toolsets: ToolSets,
    /// Do not start a daemon if none responds
    #[arg(long)]
    no_start: bool,
    /// A started daemon exits after this time without clients and executions
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    idle_exit: u32,
    /// The sandbox walls of a started daemon
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    sandbox: SandboxArg,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let target = context.target.clone();
    // Now, and not at the agent's first call.
    target.check()?;
    // A daemon behind a URL is started by its own operator.
    let may_start = !args.no_start && target.is_local();
    let starter = if may_start { Starter::new(context, args.idle_exit, args.sandbox)? } else { None };
    let worktree = match args.worktree {
        Some(folder) if target.other_machine().is_some() => Some(crate::paths::worktree(&folder, &target)?),
        Some(folder) => Some(absolute(&folder)?),
        // The folders of this machine are not the daemon's.
        None if target.other_machine().is_some() => None,
        None => match &files::of_environment()[..] {
            [] => None,
            [first, others @ ..] => {
                if !others.is_empty() {
                    tracing::warn!(folder = %first.display(), "programs use the first folder of $CVM_SANDBOX_PATHS only");
                }
                Some(absolute(first)?)
            }
        },
    };
    // The agent's folder: the given one, the first that it may read, or the current one.
    let own = worktree.as_ref().filter(|_| target.other_machine().is_none());
    let folder = own.map(PathBuf::from).or_else(|| args.allow_read.first().cloned());
    let workspace = workspace::Workspace::new(folder.unwrap_or_else(|| PathBuf::from(".")));
    let files = files::Files::new(args.allow_read)?;
    let patience = Duration::from_secs(u64::from(context.global.reconnect));
    let front = StdioFront::new(
        (args.client, args.toolsets),
        (target, patience),
        starter,
        files,
        worktree,
        workspace,
    )?;
    context.block_on(async {
        let streams = streams::Streams::open();
        serve(Arc::new(front), lines::LineTransport::new(streams.input, streams.output)).await;
        // Waits until the last responses are written.
        streams.writer.join().map_err(|_| CliError::internal("the thread that writes to stdout failed"))?;
        Ok(exit::OK)
    })
}

fn absolute(folder: &std::path::Path) -> Result<String, CliError> {
    let found = std::fs::canonicalize(folder).map_err(|error| CliError::file(folder.display(), &error))?;
    found.into_os_string().into_string().map_err(|path| {
        CliError::usage(format!("a worktree's name must be UTF-8: {}", path.to_string_lossy()))
    })
}
