//! `completions SHELL`

use crate::args::Cli;
use crate::context::Context;
use crate::error::{CliError, exit};
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "vm-system", &mut script);
    context.out.write(&String::from_utf8_lossy(&script))?;
    Ok(exit::OK)
}
