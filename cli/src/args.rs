//! The tree of commands and the flags that all of them take.

use crate::commands::{
    completions, exec, help, libs, man, mcp, ops, program, repl, run, serve, session, task, template,
};
use clap::{Parser, Subcommand, ValueEnum};
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
    after_help = "`vm-system help` lists the topics; `vm-system help getting-started` is the place to begin."
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// The supervisor's control socket [default: `$VM_SYSTEM_SOCKET`, then /run/vm-system/control.sock,
    /// then `$XDG_RUNTIME_DIR/vm-system/control.sock`]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The supervisor's state directory; its control socket is then looked for in it
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// How to print results
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
    /// What to log on stderr: error, warn, info, debug, trace, or a filter such as `warn,vm_system=debug`
    /// [default: info for serve, warn otherwise]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// How to log
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Print ids and results only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Never use colour (as `NO_COLOR` does)
    #[arg(long, global = true)]
    pub no_color: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Table,
    /// For programs; streams are one document a line.
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
    /// One JSON object a line.
    Json,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a script once, without a daemon or any set-up
    Run(run::Args),
    /// Type JavaScript and see what it does
    Repl(repl::Args),
    /// Run the daemon
    Serve(serve::Args),
    /// Serve agents: the Model Context Protocol on stdin and stdout
    Mcp(mcp::Args),
    /// Profiles from which sessions are made
    #[command(subcommand)]
    Template(template::Command),
    /// Sandboxed processes that run code
    #[command(subcommand)]
    Session(session::Command),
    /// Run code in sessions, and what came of it
    #[command(subcommand)]
    Exec(exec::Command),
    /// JavaScript libraries that templates may name
    #[command(subcommand)]
    Libs(libs::Command),
    /// Programs that wait for answers and survive everything
    #[command(subcommand)]
    Program(program::Command),
    /// The questions of programs
    #[command(subcommand)]
    Task(task::Command),
    /// The daemon and its host
    #[command(subcommand)]
    Ops(ops::Command),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write the man pages
    #[command(hide = true)]
    Man(man::Args),
    /// Explain a topic or a command
    Help(help::Args),
}

/// Which walls a supervisor of our own builds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// All.
    #[default]
    Full,
    /// All but namespaces, for hosts that forbid user namespaces.
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

/// Flags of verbs that make something.
#[derive(Debug, Clone, clap::Args)]
pub struct IdempotencyArgs {
    /// The same key gives the first answer again instead of doing it twice
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
}
