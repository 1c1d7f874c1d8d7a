//! The tree of commands and the flags that all of them take.

use crate::commands::{
    check, completions, event, exec, help, libs, man, mcp, ops, program, repl, run, serve, session, task,
    template,
};
use clap::{Parser, Subcommand, ValueEnum};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use vm_system_daemon::SandboxMode;

/// Run untrusted JavaScript, each session in a separate sandboxed process.
#[derive(Debug, Parser)]
#[command(
    name = "vm-system",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "`vm-system help` lists the topics; begin with `vm-system help getting-started`."
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// The supervisor's control socket [default: `$VM_SYSTEM_SOCKET`, else the first of the usual places where one listens]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The supervisor's state directory, in which it records its socket
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The database file of `serve` [default: vm-system.db in the state directory], or that `ops check` checks; without effect on
    /// all other commands, whose daemon has it open
    #[arg(long, global = true, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// How long a command that waits connects again when its connection to the daemon breaks (seconds; 0: not at all)
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 30)]
    pub reconnect: u32,
    /// Format of results
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
    /// What to log on stderr: error, warn, info, debug, trace, or a filter such as `warn,vm_system=debug`
    /// [default: info for serve, warn otherwise]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Format of the log
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Print ids and results only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Nothing is shortened or wrapped for the terminal: whole ids, times and lines (as in pipes)
    #[arg(long, global = true)]
    pub wide: bool,
    /// Never use colour (as `NO_COLOR` does)
    #[arg(long, global = true)]
    pub no_color: bool,
}

/// Flags that name a daemon by the URL of its HTTP API.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct RemoteArgs {
    /// The daemon by its HTTP API: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:PATH` [default: `$VM_SYSTEM_URL`]
    #[arg(long, global = true, value_name = "URL")]
    pub server_url: Option<String>,
    /// With a URL: the file of your token [default: `$VM_SYSTEM_TOKEN_FILE`]
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// With an https URL: the certificates (PEM) that are trusted instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// With an http URL of this machine: the user whose server may get requests, by name or number, besides root, you and the user of the
    /// system's daemon [default: `$VM_SYSTEM_SERVER_USER`]
    #[arg(long, global = true, value_name = "USER")]
    pub server_user: Option<String>,
    /// With an http URL: send the token unencrypted to another machine, whose network you trust
    #[arg(long, global = true)]
    pub insecure_http: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Table,
    /// For programs; streams are one document per line.
    Json,
    /// For programs and people.
    Yaml,
    /// For spreadsheets; nested values as JSON.
    Csv,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a script once, without a daemon and without set-up
    Run(run::Args),
    /// Check the types of TypeScript files, without running them
    Check(check::Args),
    /// Evaluate JavaScript interactively
    Repl(repl::Args),
    /// Run the daemon
    Serve(serve::Args),
    /// Serve agents: the Model Context Protocol on stdin and stdout
    Mcp(mcp::Args),
    /// Profiles from which sessions are created
    #[command(subcommand)]
    Template(template::Command),
    /// Sandboxed processes that run code
    #[command(subcommand)]
    Session(session::Command),
    /// Executions: run code in sessions, show results
    #[command(subcommand)]
    Exec(exec::Command),
    /// JavaScript libraries that templates may name
    #[command(subcommand)]
    Libs(libs::Command),
    /// Durable programs, which wait for answers across restarts
    #[command(subcommand)]
    Program(program::Command),
    /// Tasks of programs that wait for an answer
    #[command(subcommand)]
    Task(task::Command),
    /// Events for which programs wait
    #[command(subcommand)]
    Event(event::Command),
    /// The daemon and its host
    #[command(subcommand)]
    Ops(ops::Command),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the man page, or write one for each command into a folder
    Man(man::Args),
    /// Explain a topic or a command
    Help(help::Args),
}

/// The sandbox walls that a supervisor sets up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// All walls.
    #[default]
    Full,
    /// All except namespaces, for hosts that forbid user namespaces.
    NoUserns,
}

impl From<SandboxArg> for SandboxMode {
    fn from(arg: SandboxArg) -> Self {
        match arg {
            SandboxArg::Full => Self::Full,
            SandboxArg::NoUserns => Self::NoUserns,
        }
    }
}

/// The action on an execution whose client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnDisconnect {
    /// It is cancelled, unless another client waits for it or follows it
    Cancel,
    /// It continues
    Continue,
}

/// Flags of commands that wait for an execution in a session.
#[derive(Debug, Clone, clap::Args)]
pub struct DisconnectArgs {
    /// Cancel the execution, or let it continue, if this command is killed or loses its connection [default: cancel if stdin is a
    /// terminal and there is no --idempotency-key, otherwise continue]
    #[arg(long, value_name = "ACTION", conflicts_with = "no_wait")]
    on_disconnect: Option<OnDisconnect>,
}

impl DisconnectArgs {
    /// Whether the execution is cancelled. A request with a key is meant to be repeated, and its execution to be there then.
    pub(crate) fn cancels(&self, key: Option<&str>) -> bool {
        let default = || key.is_none() && std::io::stdin().is_terminal();
        self.on_disconnect.map_or_else(default, |action| action == OnDisconnect::Cancel)
    }
}

/// Flags of verbs that create an object or run code.
#[derive(Debug, Clone, clap::Args)]
pub struct IdempotencyArgs {
    /// A repeated request with the same key gets the first response and is not executed again
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
}
